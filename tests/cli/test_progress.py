"""Progress on stderr, and only there."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from sketchshift.cli import progress
from sketchshift.cli.output import show_progress
from sketchshift.cli.progress import reading_progress


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


def test_the_command_reports_progress_when_forced(folder, run, at_once):
    result = run("sketch points.csv -o a.sketch --plan plan.json --progress --json")

    assert "Reading" in result.stderr
    assert result.stdout.startswith("{")


def test_the_time_left_is_right_soon_after_a_stall_at_the_start(monkeypatch):
    """Three blocks at once, four seconds of compilation, then a steady pace of five a second."""
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
