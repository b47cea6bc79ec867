"""Progress on stderr, and only there."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import sketchshift as ss
from sketchshift import _progress as progress
from sketchshift._progress import KINDS
from sketchshift.cli.output import show_progress


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)
    monkeypatch.setenv("COLUMNS", "120")


def plain(shown):
    """What is shown, without the signs that move the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


def test_nothing_is_shown_unless_stderr_is_a_terminal_or_it_is_asked_for(capsys, monkeypatch):
    with KINDS["rows"]("Reading") as advance:
        assert advance is None
    for kind in ("rows", "fits", "items"):
        with show_progress(kind, "Reading", show=True) as advance:
            assert callable(advance)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with show_progress("rows", "Reading", show=False) as advance:
        assert advance is None

    out, err = capsys.readouterr()
    assert (out, err.strip()) == ("", "")  # also where it was asked for: the pass was short


@pytest.mark.parametrize(
    ("kind", "steps", "pictures"),
    [
        (
            "rows",
            [(30_000, 0.25), (12_345, 0.5)],
            ["Second .* 25 %  30,000 rows", "Second .* 50 %  42,345 rows .*0:00:"],
        ),
        (
            "rows",
            [(30_000, None), (12_345, None)],
            [r"Second [^%:]* 30,000 rows ", r"Second [^%:]* 42,345 rows  [\d,]+ rows/s +$"],
        ),
        ("items", [(1, 2, "fits"), (2, 2, "fits")], ["First .* 1 of 2 fits", r"Second [^\d]+$"]),
    ],
)
def test_a_line_counts_and_its_label_changes_when_the_next_work_begins(
    kind, steps, pictures, at_once, capsys
):
    with show_progress(kind, "First", then="Second", show=True) as advance:
        time.sleep(0.3)
        assert re.search(r"First [^\d]+$", plain(capsys.readouterr().err))
        for step, picture in zip(steps, pictures, strict=True):
            advance(*step)
            time.sleep(0.3)
            out, err = capsys.readouterr()
            assert out == ""
            assert re.search(picture, plain(err).split("\r")[-1])


def test_an_error_ends_the_progress(at_once, capsys):
    def fail():
        with KINDS["rows"]("Reading", show=True):
            time.sleep(0.1)
            raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):
        fail()

    assert capsys.readouterr().err.endswith("\x1b[2K")  # the line is erased


def test_the_time_left_is_right_soon_after_a_stall_at_the_start(monkeypatch):
    """Three blocks at once, four seconds of waiting, then a steady pace of five a second."""
    now, made = 0.0, []

    class Watched(progress.Progress):
        def __init__(self, *columns, **options):
            super().__init__(*columns, get_time=lambda: now, **options)
            made.append(self)

    monkeypatch.setattr(progress, "Progress", Watched)
    with KINDS["rows"]("Reading", show=True) as advance:
        for block in range(1, 104):
            now = 4.0 + (block - 3) * 0.2 if block > 3 else 0.0
            advance(65_536, block / 103)
            left = (103 - block) * 0.2
            if 10 < block < 93:
                shown = made[0].tasks[0].time_remaining
                assert abs(shown - left) <= max(1.0, 0.25 * left)  # shown in whole seconds


COMMANDS = """
from sketchshift import _progress
from sketchshift.cli import main
_progress.DELAY = 0.0
for words in ("plan points.csv -o a.json -k 2", "cluster points.csv -k 2", "cluster points.csv -k auto"):
    main(words.split(), standalone_mode=False)
"""

FUNCTIONS = """
import sys, time
import numpy as np
import sketchshift as ss
from sketchshift import _progress
_progress.DELAY_OF_FUNCTIONS = float(sys.argv[1])
def blocks():
    for _ in range(3):
        yield np.random.default_rng(0).normal(size=(1000, 2))
        time.sleep(0.2)
spec = ss.plan(next(blocks()), n_clusters=2, cells=False)
ss.decode(ss.sketch(blocks(), spec, progress=True), 2, progress=True)
print("done")
"""


def read_terminal(code, *words):
    """What code shows on a terminal, without the signs that move the cursor."""
    master, slave = pytest.importorskip("pty").openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    done = subprocess.Popen(
        [sys.executable, "-c", code, *words], stdout=slave, stderr=slave, env=environment
    )
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux ends a terminal
        while more := os.read(master, 65_536):
            shown += more
    os.close(master)
    assert done.wait() == 0, shown
    return plain(shown.decode())


def test_on_a_terminal_a_command_names_what_it_is_doing(folder):
    cluster = "Looking at the table.*Reading rows.*"
    phases = f"Planning on a sample.*{cluster}Settling the centroids.*{cluster}Choosing the number"

    assert re.search(phases, read_terminal(COMMANDS), re.DOTALL)


def test_on_a_terminal_functions_show_a_bar_if_they_are_asked_to():
    shown = read_terminal(FUNCTIONS, "0")

    assert re.search(r"Reading rows.*\d,000 rows.*Finding clusters.*done\r\n$", shown, re.DOTALL)


def test_functions_show_nothing_for_short_work_or_where_nobody_looks():
    assert read_terminal(FUNCTIONS, "60") == "done\r\n"
    piped = [sys.executable, "-c", FUNCTIONS, "0"]
    said = subprocess.run(piped, stdout=-1, stderr=subprocess.STDOUT, text=True, check=True)
    assert said.stdout == "done\n"


def test_progress_is_a_function_or_true_or_false():
    for given in ("yes", 1, 2.0):
        with pytest.raises(ss.errors.SpecError, match="'progress' parameter of sketch"):
            ss.sketch(np.eye(3), n_clusters=1, progress=given)
    assert ss.sketch(np.eye(3), n_clusters=1, progress=False).count == 3
