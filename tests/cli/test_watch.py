"""``sketchshift watch``."""

from __future__ import annotations

import numpy as np

import sketchshift as ss


def test_facts_and_lines_tell_the_same(folder, run):
    facts = run.facts("watch sketches.parquet --by day -k 2")
    lines = run("watch sketches.parquet --by day -k 2").stdout.splitlines()

    found = ss.watch(ss.SketchTable.from_parquet("sketches.parquet"), by="day", n_clusters=2)
    assert [s["key"] for s in facts["slices"]] == [f"2026-01-0{day}" for day in range(1, 9)]
    assert [s["rows"] for s in facts["slices"]] == [25] * 8
    assert facts["slices"][0]["before"] is None
    assert facts["slices"][3]["before"]["distance"] == found.slices[3].before.distance
    assert facts["slices"][3]["shares"] == found.slices[3].shares.tolist()
    assert lines[0] == "8 slices by day, 200 rows: no alarms."
    assert lines[3].split() == [
        *("day", "rows", "before", "threshold", "earlier", "threshold", "alarm"),
        *("cluster", "0", "cluster", "1"),
    ]
    assert len([line for line in lines if line.startswith("2026-01-")]) == 8
    assert lines[-1] == "Next: sketchshift watch sketches.parquet --by day --plot drift.png"


def test_slices_are_selected_before_they_are_added_up(folder, run):
    facts = run.facts("watch sketches.parquet --by day -k 1 --where \"shop = 'a'\"")

    assert sum(s["rows"] for s in facts["slices"]) == 67


def test_a_jump_is_an_alarm_and_can_be_a_failing_status(folder, run):
    X = np.random.default_rng(0).normal(size=(400, 2))
    X[300:] += 3.0
    ss.sketch_by(X, by=np.arange(400) // 100, n_clusters=2).to_parquet("jump.parquet")

    result = run("watch jump.parquet -k 2 --fail-on-drift --plot jump.svg", status=1)

    assert result.stdout.startswith("4 slices by key, 400 rows: 1 alarm.")
    assert "drift" in result.stdout.splitlines()[7]
    assert (folder / "jump.svg").exists()


def test_misuse_and_failures_are_one_sentence(folder, run):
    assert "only one of them is the time" in run.error("watch sketches.parquet")
    assert "cannot merge by 'week'" in run.error("watch sketches.parquet --by week")
    assert "is data. Take its sketch first" in run.error("watch 'part-*.parquet'", status=2)
    assert "'day1.sketch' is one sketch, and not a table" in run.error("watch day1.sketch")
    error = run.error("watch sketches.parquet day1.sketch", status=2)
    assert "'sketches.parquet' is one of 2 files" in error
    error = run.error("watch day1.sketch day2.sketch --by day", status=2)
    assert "--by and --where are for tables" in error


def test_sketches_in_a_row_are_watched_in_the_order_given(folder, run):
    facts = run.facts("watch day2.sketch day1.sketch -k 2")
    line = run("watch day2.sketch day1.sketch -k 2").stdout.splitlines()[-1]

    a, b = (ss.load(f"day{i}.sketch") for i in (2, 1))
    assert facts["by"] == "file"
    assert [s["key"] for s in facts["slices"]] == ["day2.sketch", "day1.sketch"]
    assert facts["slices"][1]["before"]["distance"] == np.linalg.norm(a.z - b.z)
    assert line == "Next: sketchshift watch day2.sketch day1.sketch --plot drift.png"
