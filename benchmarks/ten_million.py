"""Ten million rows from a Parquet file to clusters with one command: memory, and time left.

Writes the file if it is not there (``--rows``, d columns of a mixture of Gaussians, in row
groups of a million), runs ``sketchshift cluster`` on it in a terminal of its own, and reports
its peak memory and how far the time left that it showed was off, from the first tenth on.

    python benchmarks/ten_million.py --file rows.parquet
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GROUP = 1_000_000
SHOWN = re.compile(rb"(\d+) %  ([\d,]+) rows.*?(\d+):(\d\d):(\d\d)")


def write_rows(path: Path, n_rows: int, d: int, k: int, seed: int) -> None:
    """A mixture of k Gaussians in d columns, a row group at a time."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-10, 10, (k, d))
    names = [f"x{j}" for j in range(d)]
    writer = None
    for first in range(0, n_rows, GROUP):
        n = min(GROUP, n_rows - first)
        rows = centers[rng.integers(0, k, n)] + rng.normal(size=(n, d))
        table = pa.table(dict(zip(names, rows.T.astype(np.float32), strict=True)))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def watch(words: list[str]) -> tuple[list[tuple[float, float, float]], int]:
    """Run a command in a terminal: (when, share read, seconds left) as shown, exit status."""
    shown: list[tuple[float, float, float]] = []
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="160")
        os.execv(words[0], words)
    text = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text = (text + re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", piece))[-2000:]
        for match in SHOWN.finditer(text):
            hours, minutes, seconds = (int(part) for part in match.groups()[2:])
            left = 3600 * hours + 60 * minutes + seconds
            shown.append((time.perf_counter(), int(match[1]) / 100, left))
        text = text[-200:]
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--file", type=Path, default=Path("ten_million.parquet"))
    options = parser.parse_args()
    if not options.file.exists():
        write_rows(options.file, options.rows, options.columns, options.k, seed=0)
    program = str(Path(sys.executable).with_name("sketchshift"))
    start = time.perf_counter()
    shown, status = watch([program, "cluster", str(options.file), "-k", str(options.k)])
    seconds = time.perf_counter() - start
    end = shown[-1][0]
    errors = [(at + left - end) / (end - at) for at, share, left in shown if 0.1 <= share <= 0.9]
    facts = {
        "rows": pq.read_metadata(options.file).num_rows,
        "status": status,
        "seconds": round(seconds, 1),
        "seconds_reading": round(end - shown[0][0], 1),
        "peak_memory_MB": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
        "time_left_worst": round(float(np.abs(errors).max()), 3),
        "time_left_median": round(float(np.median(np.abs(errors))), 3),
    }
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
