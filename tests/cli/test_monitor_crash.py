"""A monitor that is killed again and again loses no row, counts none twice, alarms once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import sketchshift as ss

COMMAND = [sys.executable, "-m", "sketchshift", "monitor"]
SPEC = ss.SketchSpec(n_features=2, sketch_size=64, bandwidth=1.0, columns=("x", "y"))
KILLS, BURST = 20, 8
PATIENCE = 60  # seconds, on a busy machine


def add_files(folder: Path, numbers: range) -> None:
    """Files that are there whole or not at all; every thirty of them, the rows jump."""
    for i in numbers:
        X = np.random.default_rng(i).normal(size=(2, 200)) + (i // 30)
        draft = folder / f".{i:04d}.parquet"
        pyarrow.parquet.write_table(pa.table({"x": X[0], "y": X[1]}), draft)
        draft.rename(folder / f"{i:04d}.parquet")


def read_journal(state: Path) -> list[dict]:
    """Whole lines of the journal: half a line does not count."""
    path = state / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def monitor_once(state: str) -> dict:
    words = ["in", "--state", state, "--plan", "plan.json", "--once", "--json"]
    done = subprocess.run([*COMMAND, *words], capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_twenty_kills_while_files_come_change_nothing(place):
    """Against one run that nobody disturbs: the same alarms to the byte, and the same slices."""
    moments, state = random.Random(0), place / "killed"
    words = ["in", "--state", "killed", "--plan", "plan.json", "--poll", "0.02", "--settle", "0"]
    n_before = []
    for kill in range(KILLS):
        n_before.append(len(read_journal(state)))
        with subprocess.Popen([*COMMAND, *words], stdout=-1, stderr=-1) as process:
            add_files(place / "in", range(BURST * kill, BURST * (kill + 1)))
            wait_until_it_works(state, n_before[-1], process)
            time.sleep(moments.uniform(0.0, 0.4))
            process.kill()
            assert process.wait(PATIENCE) == -9

    facts = monitor_once("killed")
    undisturbed = monitor_once("undisturbed")

    files = sorted((place / "in").iterdir())
    table = ss.SketchTable.from_parquet("killed/slices.parquet")
    entered = [line["path"] for line in read_journal(state) if line["kind"] == "file"]
    assert len(set(n_before)) > KILLS // 2  # kills came while there was work
    assert entered == [str(file) for file in files]
    assert len(files) == KILLS * BURST == facts["files"] == len(table)
    assert table.merge().to_bytes() == ss.sketch(files, SPEC).to_bytes()
    assert table == ss.SketchTable.from_parquet("undisturbed/slices.parquet")
    told = (state / "alarms.jsonl").read_bytes()
    assert told == (place / "undisturbed" / "alarms.jsonl").read_bytes()
    assert [json.loads(line)["since_slice"] for line in told.splitlines()] == [30, 60, 90, 120, 150]
    assert facts["alarms"] == undisturbed["alarms"] == 5


def wait_until_it_works(state: Path, n_lines: int, process: subprocess.Popen) -> None:
    """Imports take longest, and a kill there shows nothing."""
    end = time.monotonic() + PATIENCE
    while len(read_journal(state)) <= n_lines and time.monotonic() < end:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


def test_a_stream_that_is_replayed_after_each_kill_loses_no_row(place):
    moments, state = random.Random(0), place / "st"
    X = np.random.default_rng(0).normal(size=(6000, 2))
    X[3000:] += 1.0
    lines = [b"x,y\n", *(f"{x!r},{y!r}\n".encode() for x, y in X.tolist())]
    words = ["-", "--state", "st", "--plan", "plan.json", "--slice-rows", "100"]
    words += ["--stream", "replayed", "--json"]
    for kill in range(4):
        n_lines = len(read_journal(state))
        with subprocess.Popen([*COMMAND, *words], stdin=-1, stdout=-1, stderr=-1) as process:
            process.stdin.write(b"".join(lines[: 1 + 1500 * (kill + 1)]))
            process.stdin.flush()
            wait_until_it_works(state, n_lines, process)
            time.sleep(moments.uniform(0.0, 0.4))
            process.kill()
            process.wait(PATIENCE)

    done = subprocess.run(
        [*COMMAND, *words], input=b"".join(lines), capture_output=True, timeout=PATIENCE
    )

    facts = json.loads(done.stdout.splitlines()[-1])
    table = ss.SketchTable.from_parquet("st/slices.parquet")
    assert (facts["stream_rows"], facts["slices"], facts["alarms"]) == (6000, 60, 1)
    assert list(table.sketches) == [ss.sketch(part, SPEC) for part in np.split(X, 60)]
    assert len((state / "alarms.jsonl").read_bytes().splitlines()) == 1
