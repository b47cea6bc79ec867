"""Ctrl-C while rows are read: the old output stays, and no part of a new one is there."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

PROGRAM = Path(sys.executable).with_name("sketchshift")


def test_an_interrupted_pass_leaves_the_old_output(tmp_path):
    """A real process, at a terminal; rows for many seconds are a file of holes."""
    rows = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", "f8", (10**8, 2))
    rows[:1000] = np.random.default_rng(0).normal(size=(1000, 2))
    (tmp_path / "out.sketch").write_bytes(b"old")
    words = ["sketch", "rows.npy", "-k", "3", "-o", "out.sketch"]
    terminal, stderr = pytest.importorskip("pty").openpty()
    process = subprocess.Popen([PROGRAM, *words], cwd=tmp_path, stderr=stderr)
    os.close(stderr)
    heard = ""
    while "Reading" not in heard:
        heard += os.read(terminal, 1024).decode()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # how Linux ends a terminal
        while more := os.read(terminal, 1024):
            heard += more.decode()
    os.close(terminal)

    assert process.wait(timeout=60) == 130
    assert "Traceback" not in heard
    assert "Aborted!" in heard
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.sketch", "rows.npy"]
    assert (tmp_path / "out.sketch").read_bytes() == b"old"
