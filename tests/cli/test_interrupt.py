"""Ctrl-C ends a command quietly, with exit status 130; the old output stays, and no part of a new."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

# Imported first: Python ends by the signal itself if it comes within an `exec`, as in imports.
CODE = "import scipy.optimize; from sketchshift.cli import main; main()"
PROGRAM = [sys.executable, "-c", CODE, "cluster", "rows.npy", "-k", "150"]
PROGRAM += ["--decoder", "sketch-and-shift", "-o", "out.csv"]


@pytest.mark.parametrize(
    ("number", "n", "phase"),
    [
        (signal.SIGINT, 10**8, "Reading"),
        (signal.SIGINT, 30_000, "Fitting the sketch"),
        (signal.SIGTERM, 30_000, "Fitting the sketch"),
    ],
)
def test_a_command_that_is_interrupted_leaves_the_old_output(number, n, phase, tmp_path):
    """A real process, at a terminal; rows for many seconds are a file of holes."""
    rows = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", "f8", (n, 2))
    rows[:30_000] = np.random.default_rng(0).normal(size=(30_000, 2))
    (tmp_path / "out.csv").write_bytes(b"old")
    terminal, stderr = pytest.importorskip("pty").openpty()
    process = subprocess.Popen(PROGRAM, cwd=tmp_path, stderr=stderr)
    os.close(stderr)
    heard = ""
    while phase not in heard:
        heard += os.read(terminal, 1024).decode()
    time.sleep(0.3)
    process.send_signal(number)
    with contextlib.suppress(OSError):  # how Linux ends a terminal
        while more := os.read(terminal, 1024):
            heard += more.decode()
    os.close(terminal)

    is_quiet = number == signal.SIGINT
    assert process.wait(timeout=60) == (130 if is_quiet else -number)
    assert "Traceback" not in heard
    assert ("Aborted!" in heard) == is_quiet
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "rows.npy"]
    assert (tmp_path / "out.csv").read_bytes() == b"old"
