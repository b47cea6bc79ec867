"""Commands killed at random moments, and given again: the same bytes in the end."""

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
import pyarrow.parquet
import pytest

import sketchshift as ss
from sketchshift.sketch import checkpoint

N = 60_000
COMMANDS = {
    "sketch": "sketch {data} -k 3 --columns x,y -o {out}.sketch",
    "slices": "sketch {data} -k 3 --columns x,y --by key -o {out}.parquet",
}
SLOWED = """
import sys, time
from sketchshift.sketch import checkpoint
from sketchshift.data import text_files
from sketchshift.sketch.rows import RowAdder
checkpoint.SECONDS, checkpoint.SHARE = 0.02, 1.0
text_files.PIECE_BYTES = 200_000
add = RowAdder.add
def slow(self, block, *where):
    time.sleep(0.02 * len(block.values) / 4000)
    add(self, block, *where)
RowAdder.add = slow
from sketchshift.cli import main
main()
"""
"""The real command, with more checkpoints, and so slow that it can be hit."""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A folder with text and Parquet files."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for i in range(4):
        columns = {"x": rng.normal(size=N // 4), "y": rng.normal(size=N // 4) + i}
        columns |= {"key": rng.integers(0, 3, N // 4)}
        if i % 2:
            pyarrow.csv.write_csv(pa.table(columns), folder / f"{i}.csv")
        else:
            pyarrow.parquet.write_table(
                pa.table(columns), folder / f"{i}.parquet", row_group_size=4000
            )
    return folder


def start(command: str, data: Path, out: Path) -> subprocess.Popen[bytes]:
    words = command.format(data=data, out=out).split()
    words += ["--checkpoint", f"{out}.checkpoint"]
    return subprocess.Popen(
        [sys.executable, "-c", SLOWED, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    _, error = process.communicate(timeout=300)
    assert process.returncode == 0, error.decode()


def kill_and_finish(command: str, data: Path, folder: Path, n_kills: int, seed: int) -> int:
    """Kill the command so many times and let it end; how often it had a checkpoint to go on."""
    moments, out, n_gone_on = random.Random(seed), folder / "killed", 0
    started = time.monotonic()
    finish(start(command, data, folder / "whole"))
    longest = time.monotonic() - started
    for _ in range(n_kills):
        process = start(command, data, out)
        time.sleep(moments.uniform(0.3, 1.0) * longest)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        n_gone_on += Path(f"{out}.checkpoint").exists()
    finish(start(command, data, out))
    return n_gone_on


def check_same(folder: Path) -> None:
    whole = sorted(folder.glob("whole.*"))
    assert [path.suffix for path in whole] == [p.suffix for p in sorted(folder.glob("killed.*"))]
    for path in whole:
        assert path.read_bytes() == path.with_stem("killed").read_bytes(), path.name


def test_a_command_that_was_killed_goes_on_and_writes_the_same_bytes(data, tmp_path):
    kill_and_finish(COMMANDS["slices"], data, tmp_path, n_kills=2, seed=1)

    check_same(tmp_path)


@pytest.mark.slow
def test_fifty_kills_at_random_moments_change_no_byte_and_leave_no_file_behind(data, tmp_path):
    n_gone_on = 0
    for i, (name, n_kills) in enumerate([("sketch", 25), ("slices", 25)]):
        folder = tmp_path / name
        folder.mkdir()
        n_gone_on += kill_and_finish(COMMANDS[name], data, folder, n_kills, seed=10 + i)
        check_same(folder)
        assert {path.stem for path in folder.iterdir()} == {"whole", "killed"}

    assert n_gone_on > 10  # else the kills came too early to mean much


def test_a_pass_that_failed_goes_on_when_the_fault_is_mended(run, folder):
    """The second file is the fault; the first is not read again, and the checkpoint goes."""
    whole = Path("part-2.parquet").read_bytes()
    bad = pyarrow.parquet.read_table("part-2.parquet")
    bad = bad.set_column(0, "x", pa.array([np.nan] * len(bad)))
    pyarrow.parquet.write_table(bad, "part-2.parquet")
    line = "sketch 'part-*.parquet' --plan plan.json -o out.sketch --checkpoint c"
    patch = pytest.MonkeyPatch()
    patch.setattr(checkpoint, "SECONDS", -1.0)
    assert "missing or infinite" in run.error(line)
    patch.undo()
    Path("part-2.parquet").write_bytes(whole)

    told = run(line).stderr

    assert "Going on from c" in told
    assert not Path("c").exists()
    spec = ss.SketchSpec.from_json(Path("plan.json").read_text())
    assert ss.load("out.sketch") == ss.sketch("part-*.parquet", spec)
