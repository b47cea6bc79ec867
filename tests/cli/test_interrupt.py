"""Ctrl-C ends a command quietly, with exit status 130, whenever it comes."""

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

import sketchshift as ss

PACKAGE = str(Path(ss.__file__).parent)
COMMANDS = {
    "module": [sys.executable, "-m", "sketchshift"],
    "script": [str(Path(sys.executable).with_name("sketchshift"))],
}


@pytest.fixture(scope="module")
def long_command(tmp_path_factory) -> list[str]:
    """Arguments of a command that imports, reads, decodes and writes for more than two seconds."""
    folder = tmp_path_factory.mktemp("interrupted")
    X = np.random.default_rng(0).normal(size=(300_000, 4))
    columns = {f"x{i}": X[:, i] for i in range(4)}
    pyarrow.csv.write_csv(pa.table(columns), folder / "points.csv")
    return ["cluster", str(folder / "points.csv"), "-k", "150", "-o", str(folder / "centroids.csv")]


@pytest.fixture(scope="module")
def start() -> float:
    """Seconds until Python itself has started, before any line of ours can run."""
    begin = time.perf_counter()
    for _ in range(5):
        subprocess.run([sys.executable, "-c", ""], check=True)
    return (time.perf_counter() - begin) / 5


def end(words: list[str], number: int, after: float) -> subprocess.CompletedProcess:
    """A process that was sent a signal some seconds after its start."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        time.sleep(after)
        run.send_signal(number)
        output, errors = run.communicate(timeout=60)
    return subprocess.CompletedProcess(words, run.returncode, output, errors)


@pytest.mark.parametrize("how", list(COMMANDS))
def test_an_interruption_within_the_first_two_seconds_ends_the_command_quietly(
    how, long_command, start
):
    moments = random.Random(how)

    for _ in range(10):
        after = moments.uniform(2 * start, 2.0)
        ended = end([*COMMANDS[how], *long_command], signal.SIGINT, after)
        if ended.returncode == -signal.SIGINT and PACKAGE not in ended.stderr:
            continue  # a busy machine had not started Python yet
        assert ended.returncode == 130, (after, ended.stderr)
        assert ended.stderr in ("", "Aborted!\n")
    assert [file.name for file in Path(long_command[1]).parent.iterdir()] == ["points.csv"]


def test_a_terminated_command_leaves_no_half_written_file(long_command):
    target = Path(long_command[-1])
    target.write_text("old")
    moments = random.Random(0)

    for _ in range(4):
        ended = end([*COMMANDS["module"], *long_command], signal.SIGTERM, moments.uniform(0.2, 2.0))
        assert ended.returncode == -signal.SIGTERM
        assert target.read_text() == "old"


def test_a_command_that_is_told_to_ignore_interruptions_goes_on():
    ignoring = "import signal, os, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    ignoring += "os.execv(sys.executable, [sys.executable, '-m', 'sketchshift', '--version'])"

    ended = end([sys.executable, "-c", ignoring], signal.SIGINT, 0.3)

    assert ended.returncode == 0
    assert "version" in ended.stdout


def test_a_program_that_imports_the_package_keeps_its_own_way_of_being_interrupted():
    program = "import signal, sketchshift; print(signal.getsignal(signal.SIGINT).__name__)"

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ended.stdout == "default_int_handler\n"


AS_COMMAND = """
import os, signal, sys, time
sys.argv = ["sketchshift"]
from sketchshift._interrupt import interruptible
with interruptible():
"""


def test_an_interruption_that_a_library_swallows_comes_again():
    swallowing = """
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        pass
    time.sleep(30)
"""

    ended = subprocess.run([sys.executable, "-c", AS_COMMAND + swallowing], stderr=-1, timeout=20)

    assert b"KeyboardInterrupt" in ended.stderr


def test_tidying_up_after_an_interruption_is_not_interrupted():
    tidying = """
    try:
        os.kill(os.getpid(), signal.SIGINT)
    finally:
        time.sleep(1.5)
        print("tidy", flush=True)
"""

    ended = subprocess.run([sys.executable, "-c", AS_COMMAND + tidying], capture_output=True)

    assert ended.stdout == b"tidy\n"
