"""Slices of a table beside the same rows without slices: made, stored, loaded, added up.

Two million rows around ten centers in ten columns, with the default plan for ten clusters. Seconds
are those of the processor, and each figure is a ratio to ``ss.sketch`` of the same rows in the same
run, but for loading, which is in seconds.

    python benchmarks/bench_slices.py [--rows 2000000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from harness import report

import sketchshift as ss

D, K = 10, 10
SLICES = {10: 1.5, 1_000: 3.0, 9_000: 6.0, 100_000: 20.0}
"""How many, and at most how many times the seconds of a sketch."""

STORED, HOURS = 9_000, 8_760


def cpu(work: Callable[[], object]) -> float:
    """Seconds of the processor."""
    start = time.process_time()
    work()
    return time.process_time() - start


def bench(rows: int, repeats: int) -> dict[str, dict[str, float]]:
    """Ratios of one run."""
    rng = np.random.default_rng(0)
    X = 4.0 * rng.normal(size=(K, D))[rng.integers(K, size=rows)] + rng.normal(size=(rows, D))
    spec = ss.plan(X, n_clusters=K)
    ss.sketch_by(X[:1000], np.arange(1000) % 3, spec)  # imports what it needs
    whole = median(cpu(lambda: ss.sketch(X, spec)) for _ in range(repeats))
    made, stored = {"a sketch, s": whole}, {}
    for n, most in SLICES.items():
        labels = rng.integers(n, size=rows)

        def make(labels: np.ndarray = labels) -> ss.SketchTable:
            return ss.sketch_by(X, labels, spec)

        taken = median(cpu(make) for _ in range(repeats))
        made |= {f"{n:,} slices, ratio": taken / whole, f"{n:,} slices, wanted": most}
        if n == STORED:
            stored = bench_stored(make(), repeats)
    hours = ss.sketch_by(X, rng.integers(HOURS, size=rows), spec)
    sizes = {f"{rows:,} rows x {D}": made, f"{STORED:,} slices": stored}
    return sizes | {f"windows of {HOURS:,} slices": bench_windows(hours, rng)}


def bench_windows(table: ss.SketchTable, rng: np.random.Generator) -> dict[str, float]:
    """Any windows, once the sums that they are made of are there; medians of three for each."""
    first = cpu(table.window)
    ends = np.sort(rng.integers(len(table) + 1, size=(1000, 2)), axis=1)
    ends = ends[ends[:, 0] < ends[:, 1]].tolist()

    def take(a: int, b: int) -> float:
        return median(cpu(lambda: table.window(a, b)) for _ in range(3))

    def cluster(a: int, b: int) -> float:
        return cpu(lambda: ss.decode(table.window(a, b), K, seed=0))

    taken = [take(a, b) for a, b in ends]
    return {
        "the first, s": first,
        "median, ms": 1e3 * median(taken),
        "longest, ms": 1e3 * max(taken),
        "window and clusters, ms": 1e3 * median(cluster(a, b) for a, b in ends[:40]),
    }


def bench_stored(table: ss.SketchTable, repeats: int) -> dict[str, float]:
    """Written to Parquet, loaded and added up."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        seconds = {"written, s": cpu(lambda: table.save(path))}
        loads = [cpu(lambda: ss.load(path).merge()) for _ in range(repeats)]
        a_slice = path.stat().st_size / len(table)
    return seconds | {"loaded and added up, s": median(loads), "bytes a slice": a_slice}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    report("slices", bench(options.rows, options.repeats))


if __name__ == "__main__":
    main()
