"""Ctrl-C ends a command quietly, with exit status 130."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

PROGRAM = [sys.executable, "-m", "sketchshift"]


@pytest.fixture
def long_command(tmp_path) -> list[str]:
    """Arguments of a command that imports, reads, decodes and writes for more than two seconds."""
    X = np.random.default_rng(0).normal(size=(300_000, 4))
    columns = {f"x{i}": X[:, i] for i in range(4)}
    pyarrow.csv.write_csv(pa.table(columns), tmp_path / "points.csv")
    return ["cluster", str(tmp_path / "points.csv"), "-k", "150", "-o", str(tmp_path / "out.csv")]


def end(words: list[str], number: int, after: float) -> subprocess.CompletedProcess:
    """A process that was sent a signal some seconds after its start."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        time.sleep(after)
        run.send_signal(number)
        output, errors = run.communicate(timeout=60)
    return subprocess.CompletedProcess(words, run.returncode, output, errors)


def test_an_interruption_ends_the_command_quietly_while_it_reads_and_decodes(long_command):
    moments = random.Random(0)

    for _ in range(6):
        ended = end([*PROGRAM, *long_command], signal.SIGINT, moments.uniform(0.2, 2.0))
        if ended.returncode == -signal.SIGINT:
            continue  # the package was being imported
        assert ended.returncode == 130, ended.stderr
        assert ended.stderr == "Aborted!\n"
    assert [file.name for file in Path(long_command[1]).parent.iterdir()] == ["points.csv"]


def test_a_terminated_command_leaves_no_half_written_file(long_command):
    target = Path(long_command[-1])
    target.write_text("old")
    moments = random.Random(0)

    for _ in range(4):
        ended = end([*PROGRAM, *long_command], signal.SIGTERM, moments.uniform(0.2, 2.0))
        assert ended.returncode == -signal.SIGTERM
        assert target.read_text() == "old"
