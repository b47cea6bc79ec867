"""Commands do what the Python API does, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

import sketchshift as ss


def test_sketch_merge_and_subtract_agree_with_python(folder, run):
    """The whole way on two days of data, against ``sketch``, + and -."""
    run("sketch part-1.parquet -o a.sketch --plan plan.json")
    run("sketch part-2.parquet -o b.sketch --plan plan.json")
    run("merge a.sketch b.sketch -o ab.sketch")
    run("merge ab.sketch --minus a.sketch -o rest.sketch")

    a, b = ss.load("day1.sketch"), ss.load("day2.sketch")
    for name, expected in {"a": a, "ab": a + b, "rest": b}.items():
        assert Path(f"{name}.sketch").read_bytes() == expected.to_bytes()


@pytest.mark.parametrize("data", ["'part-*.parquet'", "part-1.parquet part-2.parquet", "parts"])
def test_quoted_globs_lists_and_folders_give_the_same_bytes(data, folder, run):
    Path("parts").mkdir()
    for day in (1, 2):
        Path(f"parts/{day}.parquet").symlink_to(folder / f"part-{day}.parquet")

    run(f"sketch {data} -o both.sketch --plan plan.json")

    days = ss.load("day1.sketch") + ss.load("day2.sketch")
    assert Path("both.sketch").read_bytes() == days.to_bytes()


def test_inspect_is_a_table_for_people(folder, run):
    text = run("inspect day1.sketch").stdout

    facts = dict(line.split(maxsplit=1) for line in text.splitlines()[1:12] if line)
    assert (facts["rows"], facts["columns"], facts["bandwidth"]) == ("60", "x, y", "0.3")
    assert facts["file"] == f"size      {Path('day1.sketch').stat().st_size:,} bytes"
    assert facts["fingerprint"] == ss.load("day1.sketch").fingerprint


def test_inspect_of_an_empty_sketch_has_no_mean(folder, run):
    day = ss.load("day1.sketch")
    (day - day).save("empty.sketch")

    assert run.facts("inspect empty.sketch")["statistics"][0]["mean"] is None
    run.says("inspect empty.sketch", "x          -")
