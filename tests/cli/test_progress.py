"""Progress on stderr, and only there."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss
from sketchshift import _progress as progress
from sketchshift._progress import reading_progress
from sketchshift.cli.output import show_progress


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0.0)


def test_nothing_is_shown_unless_stderr_is_a_terminal(capsys):
    with reading_progress("Reading") as advance:
        assert advance is None

    assert capsys.readouterr() == ("", "")


def test_where_nothing_is_shown_nothing_is_loaded_to_show_it():
    code = """
import sys
from sketchshift.cli.output import show_progress
with show_progress("rows", "Reading") as advance:
    sys.exit(advance is not None or "rich" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE).returncode == 0


@pytest.mark.parametrize("kind", ["rows", "fits", "items"])
def test_each_kind_of_progress_can_be_asked_for(kind, capsys):
    with show_progress(kind, "Reading", show=True) as advance:
        assert callable(advance)
    with show_progress(kind, "Reading", show=False) as advance:
        assert advance is None


def test_progress_can_be_refused(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")

    with reading_progress("Reading", show=False) as advance:
        assert advance is None


@pytest.mark.parametrize(("share", "shown"), [(0.25, "25 %"), (None, "rows/s")])
def test_progress_shows_rows_and_the_share_read(share, shown, at_once, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")

    with reading_progress("Reading", show=True) as advance:
        advance(30_000, share)
        advance(12_345, share)
        time.sleep(0.3)

    out, err = capsys.readouterr()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", err)
    assert out == ""
    assert "Reading" in plain
    assert "42,345 rows" in plain
    assert shown in plain
    assert ("%" in plain) == (share is not None)


def test_a_short_pass_shows_nothing(capsys):
    with reading_progress("Reading", show=True) as advance:
        advance(10, 1.0)

    assert capsys.readouterr().err.strip() == ""


def test_an_error_ends_the_progress(at_once, capsys):
    def fail() -> None:
        with reading_progress("Reading", show=True):
            time.sleep(0.1)
            raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):
        fail()

    assert capsys.readouterr().err.endswith("\x1b[2K")  # the line is erased


def test_the_time_left_is_right_soon_after_a_stall_at_the_start(monkeypatch):
    """Three blocks at once, four seconds of waiting, then a steady pace of five a second."""
    now = 0.0
    made = []

    class Watched(progress.Progress):
        def __init__(self, *columns, **options):
            super().__init__(*columns, get_time=lambda: now, **options)
            made.append(self)

    monkeypatch.setattr(progress, "Progress", Watched)
    n_blocks, start, pace = 103, 4.0, 0.2
    with reading_progress("Reading", show=True) as advance:
        for block in range(1, n_blocks + 1):
            now = start + (block - 3) * pace if block > 3 else 0.0
            advance(65_536, block / n_blocks)
            left = (n_blocks - block) * pace
            if 0.1 <= block / n_blocks <= 0.9:
                shown = made[0].tasks[0].time_remaining
                assert abs(shown - left) <= max(1.0, 0.25 * left)  # shown in whole seconds


def test_the_label_changes_with_the_first_rows(at_once, capsys):
    with show_progress("rows", "Planning", then="Reading rows", show=True) as advance:
        time.sleep(0.3)
        before = capsys.readouterr().err
        advance(10, 0.5)
        time.sleep(0.3)

    assert "Planning" in before
    assert "Reading rows" not in before
    assert "Reading rows" in capsys.readouterr().err


def test_the_label_changes_after_the_last_step_and_counts_no_more(at_once, capsys):
    with show_progress("items", "Fitting", then="Choosing", show=True) as count:
        count(1, 2, "fits")
        time.sleep(0.3)
        before = capsys.readouterr().err
        count(2, 2, "fits")
        time.sleep(0.3)

    after = capsys.readouterr().err.partition("Choosing")[2]
    assert "1 of 2 fits" in before
    assert after
    assert "of 2 fits" not in after


PTY = """
import sys
from sketchshift import _progress
from sketchshift.cli import main
_progress.DELAY = 0.0
main(sys.argv[1:])
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


def read_terminal(words: list[str], folder: Path, code: str = PTY) -> str:
    """What a command, or code, shows on a terminal, without the signs that move the cursor."""
    pty = pytest.importorskip("pty")
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    done = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=slave, stderr=slave, env=environment, cwd=folder,
    )  # fmt: skip
    os.close(slave)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux ends a terminal
        while more := os.read(master, 65_536):
            shown += more
    os.close(master)
    assert done.wait() == 0, shown
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


@pytest.mark.parametrize(
    ("command", "phases"),
    [
        (
            "cluster points.csv -k 2 --decoder sketch-and-shift",
            ["Looking at the table", "Reading rows", "Fitting the sketch"],
        ),
        ("cluster points.csv -k auto", ["Reading rows", "Choosing the number"]),
        ("cluster points.csv -k 2", ["Reading rows", "Settling the centroids"]),
        ("sketch points.csv -k 2 -o a.sketch", ["Planning on a sample", "Reading rows"]),
        ("plan points.csv -k 2 -o a.json", ["Planning on a sample"]),
    ],
)
def test_on_a_terminal_a_command_names_what_it_is_doing(command, phases, folder):
    shown = read_terminal(command.split(), folder)

    places = [shown.find(phase) for phase in phases]
    assert -1 not in places, shown
    assert places == sorted(places)


def test_on_a_terminal_functions_show_a_bar_if_they_are_asked_to(tmp_path):
    shown = read_terminal(["0"], tmp_path, FUNCTIONS)

    assert "Reading rows" in shown
    assert re.search(r"\d,000 rows", shown)
    assert "Finding clusters" in shown
    assert shown.endswith("done\r\n")


def test_functions_show_nothing_for_short_work_or_where_nobody_looks(tmp_path):
    assert read_terminal(["60"], tmp_path, FUNCTIONS) == "done\r\n"
    piped = [sys.executable, "-c", FUNCTIONS, "0"]
    done = subprocess.run(piped, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")


@pytest.mark.parametrize("progress", ["yes", 1, 2.0])
def test_progress_is_a_function_or_true_or_false(progress):
    X = np.eye(3)
    with pytest.raises(ss.errors.SpecError, match="'progress' parameter of sketch"):
        ss.sketch(X, n_clusters=1, progress=progress)
    assert ss.sketch(X, n_clusters=1, progress=False).count == 3
