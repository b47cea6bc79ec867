"""Rows a second of `sketchshift monitor`, beside plainly reading and sketching the same files.

The plan has d = 10 columns and m = 256 frequencies and no cells: for drift alone. Files are Parquet
with float32; the stream is Arrow's, through a pipe. All of a run counts: the start of the command,
the plan that is read, slices, windows, the journal on the disk, the table at the end.

    python benchmarks/bench_monitor.py [--repeats 3]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import best_of, machine, report

import sketchshift as ss
from sketchshift.cli import main

D, M = 10, 256


def write_data(folder: Path, rows: int, files: int) -> None:
    """Parquet files, the same rows as one stream of Arrow, and the plan."""
    centers = 3 * np.random.default_rng(0).normal(size=(10, D))
    (folder / "in").mkdir()
    names = [f"x{i}" for i in range(D)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pa.ipc.new_stream(folder / "all.arrows", schema) as stream:
        for i in range(files):
            rng = np.random.default_rng(i)
            X = centers[rng.integers(10, size=rows)] + rng.normal(size=(rows, D))
            table = pa.table(dict(zip(names, X.T.astype(np.float32), strict=True)))
            pq.write_table(table, folder / "in" / f"{i:04d}.parquet")
            stream.write_table(table, max_chunksize=65_536)
    plan = ss.plan(folder / "in", 10, sketch_size=M, cells=False)
    (folder / "plan.json").write_text(plan.to_json())


def sketch_plainly(folder: Path) -> None:
    spec = ss.SketchSpec.from_json((folder / "plan.json").read_text())
    whole = sum(
        ss.sketch(pq.read_table(file, use_threads=False), spec, n_threads=1)
        for file in sorted((folder / "in").iterdir())
    )
    assert whole.count


def run_monitor(folder: Path, *words: str) -> None:
    shutil.rmtree(folder / "state", ignore_errors=True)
    fixed = [
        "--state",
        str(folder / "state"),
        "--plan",
        str(folder / "plan.json"),
        "--threads",
        "1",
    ]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(["monitor", *words, *fixed], standalone_mode=False)


def monitor_files(folder: Path) -> None:
    run_monitor(folder, str(folder / "in"), "--once")


def monitor_stream(folder: Path, rows: int) -> None:
    keep = os.dup(0)
    with subprocess.Popen(["cat", str(folder / "all.arrows")], stdout=subprocess.PIPE) as sender:
        os.dup2(sender.stdout.fileno(), 0)
        try:
            run_monitor(folder, "-", "--slice-rows", str(rows))
        finally:
            os.dup2(keep, 0)
            os.close(keep)


def compare(rows: int, files: int, repeats: int) -> dict[str, float]:
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, rows, files)
        candidates = {
            "plain": lambda: sketch_plainly(folder),
            "files": lambda: monitor_files(folder),
            "stream": lambda: monitor_stream(folder, rows),
        }
        seconds = best_of(candidates, repeats, time.process_time)
        whole = ss.SketchTable.from_parquet(folder / "state" / "slices.parquet").merge()
        assert whole.count == rows * files
    rates = {
        f"{name}, million rows/s and core": rows * files / s / 1e6 for name, s in seconds.items()
    }
    ratios = {
        f"monitor of {name} / plain reading": seconds["plain"] / seconds[name]
        for name in ("files", "stream")
    }
    return rates | ratios


SIZES = ((1_000_000, 8), (50_000, 64))  # rows of a file, and of a slice; files

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    print(machine())
    results = {
        f"monitor: d = {D}, m = {M}, {files} files of {rows:,} rows": compare(
            rows, files, given.repeats
        )
        for rows, files in SIZES
    }
    report("monitor", results)
