"""Text files as people write them, from the command line: flags, standard input, keys in zones."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

import sketchshift as ss
from sketchshift.cli import main
from sketchshift.data.open import spool_stdin

ROWS = "".join(f"{i % 7},5;{i % 3};{i % 28 + 1}.1.2026 23:30\n" for i in range(300))
TEXT = "x;y;t\n" + ROWS


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text(TEXT)
    spool_stdin.cache_clear()
    yield tmp_path
    spool_stdin.cache_clear()


def run(line: str, stdin: str | None = None, status: int = 0):
    result = CliRunner().invoke(main, shlex.split(line), input=stdin)
    assert result.exit_code == status, result.output
    return result


def test_standard_input_gives_the_sketch_of_the_same_file():
    run("sketch x.csv -k 2 --columns x,y -o file.sketch")
    run("sketch - -k 2 --columns x,y -o pipe.sketch", stdin=TEXT)

    assert ss.load("pipe.sketch") == ss.load("file.sketch")


def test_what_an_error_proposes_for_a_word_works_when_it_is_pasted(folder):
    (folder / "bad.csv").write_text(TEXT + "broken;1;2.1.2026\n")

    line = "sketch bad.csv -k 2 --columns x,y --on-invalid skip -o a.sketch"
    said = run(line, status=1).stderr
    flag = said.strip().removesuffix(".").rpartition("say so: ")[2]

    assert flag == "--csv missing=broken"
    run(f"{line} {flag}")
    assert ss.load("a.sketch").count == 300


@pytest.mark.parametrize(
    ("flags", "mean"),
    [
        ("--csv thousands=,", 1234.0),
        ("--csv decimal=,", 1.234),
        ("--csv sep=';' --csv decimal=.", 1234.0),
    ],
)
def test_flags_say_how_numbers_are_written(folder, flags, mean):
    (folder / "n.csv").write_text("a;b\n" + "1,234;1\n1,234;2\n" * 20)

    run(f"sketch n.csv -k 1 --columns a,b {flags} -o n.sketch")

    assert ss.load("n.sketch").mean[0] == pytest.approx(mean)


def test_a_flag_that_no_file_can_be_read_with_is_misuse():
    assert (
        "must be one sign"
        in run("sketch x.csv -k 2 --csv separator=;; -o a.sketch", status=2).stderr
    )


def test_flags_of_one_command_do_not_reach_the_next():
    run("sketch x.csv -k 2 --columns x,y --csv missing=0,5 -o a.sketch --on-invalid skip")
    run("sketch x.csv -k 2 --columns x,y -o b.sketch")

    assert ss.load("b.sketch").count == 300


def test_days_are_cut_in_a_zone_that_the_key_names():
    run("""sketch x.csv -k 2 --columns x,y --by "day(t, 'Europe/Paris'),y" -o days.parquet""")

    table = ss.SketchTable.from_parquet("days.parquet")
    assert table.by == ("day", "y")
    assert str(min(day for (day, _), _ in table)) == "2026-01-02"
