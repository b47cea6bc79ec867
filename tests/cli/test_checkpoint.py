"""Commands killed at random moments, and given again: the same bytes in the end."""

from __future__ import annotations

import random
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
LINE = "sketch {data} -k 3 --columns x,y -o {out}.sketch"
SLICES = LINE.replace(".sketch", ".parquet --by key")
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


@pytest.fixture
def data(tmp_path):
    """A folder with text and Parquet files."""
    folder, rng = tmp_path / "data", np.random.default_rng(0)
    folder.mkdir()
    for i in range(4):
        x, y = rng.normal(size=(2, N // 4))
        table = pa.table({"x": x, "y": y + i, "key": rng.integers(0, 3, N // 4)})
        if i % 2:
            pyarrow.csv.write_csv(table, folder / f"{i}.csv")
        else:
            pyarrow.parquet.write_table(table, folder / f"{i}.parquet", row_group_size=4000)
    return folder


def start(line, **names):
    words = f"{line} --checkpoint {{out}}.checkpoint".format(**names).split()
    command = [sys.executable, "-c", SLOWED, *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process):
    _, error = process.communicate(timeout=300)
    assert process.returncode == 0, error.decode()


@pytest.mark.parametrize(
    ("line", "n_kills"),
    [
        (SLICES, 1),
        pytest.param(LINE, 25, marks=pytest.mark.slow),
        pytest.param(SLICES, 25, marks=pytest.mark.slow),
    ],
)
def test_kills_at_random_moments_change_no_byte_and_leave_no_file_behind(
    line, n_kills, data, tmp_path
):
    moments, n_gone_on = random.Random(n_kills), 0
    folder = tmp_path / "out"
    folder.mkdir()
    started = time.monotonic()
    finish(start(line, data=data, out=folder / "whole"))
    longest = time.monotonic() - started
    for _ in range(n_kills):
        process = start(line, data=data, out=folder / "killed")
        time.sleep(moments.uniform(0.3, 1.0) * longest)
        process.kill()
        process.communicate()
        n_gone_on += (folder / "killed.checkpoint").exists()
    finish(start(line, data=data, out=folder / "killed"))

    killed, whole = sorted(folder.iterdir())
    assert (killed.stem, whole.stem) == ("killed", "whole")
    assert killed.read_bytes() == whole.read_bytes()
    assert n_gone_on >= n_kills // 5  # else the kills came too early to mean much


def test_a_pass_that_failed_goes_on_when_the_fault_is_mended(run, folder, monkeypatch):
    """The second file is the fault; the first is not read again, and the checkpoint goes."""
    whole = Path("part-2.parquet").read_bytes()
    bad = pyarrow.parquet.read_table("part-2.parquet")
    bad = bad.set_column(0, "x", pa.array([np.nan] * len(bad)))
    pyarrow.parquet.write_table(bad, "part-2.parquet")
    line = "sketch 'part-*.parquet' --plan plan.json -o out.sketch --checkpoint c"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "SECONDS", -1.0)
        run.error(line, "missing or infinite")
    Path("part-2.parquet").write_bytes(whole)

    assert "Going on from c" in run(line).stderr
    assert not Path("c").exists()
    spec = ss.SketchSpec.from_json(Path("plan.json").read_text())
    assert ss.load("out.sketch") == ss.sketch("part-*.parquet", spec)
