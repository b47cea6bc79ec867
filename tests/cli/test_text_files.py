"""Text files as people write them, from the command line: flags, standard input, keys in zones."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import sketchshift as ss
from sketchshift.cli import main
from sketchshift.data.open import spool_stdin

ROWS = "".join(f"{i % 7},5;{i % 3};{i % 28 + 1}.1.2026 23:30\n" for i in range(300))
TEXT = "x;y;t\n" + ROWS
LINE = "sketch x.csv -k 2 --columns x,y"


@pytest.fixture(autouse=True)
def text(here):
    """x.csv in the current folder."""
    Path("x.csv").write_text(TEXT)
    spool_stdin.cache_clear()
    yield
    spool_stdin.cache_clear()


def test_standard_input_gives_the_sketch_of_the_same_file(run):
    run(f"{LINE} -o file.sketch")
    piped = LINE.replace("x.csv", "-").split()
    assert CliRunner().invoke(main, [*piped, "-o", "pipe.sketch"], input=TEXT).exit_code == 0

    assert ss.load("pipe.sketch") == ss.load("file.sketch")


def test_a_name_may_begin_as_those_of_home_folders_do(run):
    Path("x.csv").rename("~x.csv")
    run("sketch '~x.csv' -k 2 --columns x,y -o '~x.sketch'")

    assert ss.load("~x.sketch").count == 300


def test_what_an_error_proposes_for_a_word_works_when_it_is_pasted(run):
    """And flags of one command do not reach the next."""
    Path("x.csv").write_text(TEXT + "broken;1;2.1.2026\n")
    line = f"{LINE} --on-invalid skip -o a.sketch"

    flag = run.error(line).strip().removesuffix(".").rpartition("say so: ")[2]

    assert flag == "--csv missing=broken"
    run(f"{line} {flag}")
    assert ss.load("a.sketch").count == 300
    run.error(line)


@pytest.mark.parametrize(
    ("flags", "mean"),
    [
        ("--csv decimal=.", 1234.0),
        ("--csv decimal=,", 1.234),
        ("--csv sep=';'", 1.234),
    ],
)
def test_flags_say_how_numbers_are_written(flags, mean, run):
    Path("n.csv").write_text("a;b\n" + "1,234;1\n1,234;2\n" * 20)

    run(f"sketch n.csv -k 1 --columns a,b {flags} -o n.sketch")

    assert ss.load("n.sketch").mean[0] == pytest.approx(mean)


def test_days_are_cut_in_a_zone_that_the_key_names(run):
    run(f"""{LINE} --by "day(t, 'Europe/Paris'),y" -o days.parquet""")

    table = ss.load("days.parquet")
    assert table.by == ("day", "y")
    assert str(min(day for (day, _), _ in table)) == "2026-01-02"
