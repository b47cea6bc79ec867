"""Comparisons beside one decoding, and a series beside one sketch of its rows.

Rows around ten centers in ten columns, with the default plan for ten clusters made from as many
rows as a sketch has. Seconds are those of the processor, medians of a few runs in one thread; a
ratio is to ``ss.decode`` of the sum of both sketches, or to ``ss.sketch`` of all rows of the series,
in the same run.

    python benchmarks/bench_compare.py [--slices 1000] [--rows 200] [--repeats 9]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from harness import report

import sketchshift as ss

D, K = 10, 10
SECONDS, RATIO, SERIES = 0.025, 2.5, 3.0
"""Wanted: without clusters, with clusters (in decodings), and of 1,000 slices."""


def rows_of(n: int, seed: int) -> np.ndarray:
    """Rows of one population."""
    centers = 4.0 * np.random.default_rng(0).normal(size=(K, D))
    rng = np.random.default_rng(seed)
    return centers[rng.integers(K, size=n)] + rng.normal(size=(n, D))


def cpu(work: Callable[[], object], repeats: int) -> float:
    """Median seconds of the processor, after a first run that imports what it needs."""
    seconds = []
    for _ in range(repeats + 1):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return median(seconds[1:])


def bench_pair(n: int, repeats: int) -> dict[str, float]:
    """Two sketches of n rows each."""
    spec = ss.plan(rows_of(n, 9), n_clusters=K)
    a, b = (ss.sketch(rows_of(n, seed), spec) for seed in (1, 2))
    decoding = cpu(lambda: ss.decode(a + b, K), repeats)
    alone = cpu(lambda: ss.compare(a, b, n_clusters=None), repeats)
    whole = cpu(lambda: ss.compare(a, b, n_clusters=K), repeats)
    drift = ss.drift.plan_drift(rows_of(max(n, 200), 9))
    pair = [ss.sketch(rows_of(n, seed), drift) for seed in (1, 2)]
    return {
        "frequencies": spec.sketch_size,
        "a decoding, s": decoding,
        "without clusters, s": alone,
        "without clusters, wanted": SECONDS,
        "without clusters, ratio": alone / decoding,
        "with clusters, s": whole,
        "with clusters, ratio": whole / decoding,
        "with clusters, wanted ratio": RATIO,
        "of a plan for drift, s": cpu(lambda: ss.compare(*pair), repeats),
    }


def bench_series(n: int, rows: int, repeats: int) -> dict[str, float]:
    """A table of n slices of so many rows."""
    X, times = rows_of(n * rows, 1), np.arange(n * rows) // rows
    spec = ss.plan(X, n_clusters=K)
    data = ss.sketch_by(X, times, spec).to_arrow()
    sketch = cpu(lambda: ss.sketch(X, spec), repeats)
    found = {"a sketch of all rows, s": sketch}
    ways: dict[str, Callable[[ss.SketchTable], object]] = {
        "in turn": ss.drift.watch,
        "in turn, without clusters": lambda table: ss.drift.watch(table, n_clusters=None),
        "beside a reference": lambda table: ss.drift.watch(table, reference=f"key < {n // 4}"),
        "since when": ss.drift.since_when,
    }
    for name, compare in ways.items():
        seconds = cpu(lambda compare=compare: compare(ss.SketchTable.from_arrow(data)), repeats)
        found |= {f"{name}, s": seconds, f"{name}, ratio": seconds / sketch}
    return found | {"wanted of 1,000 slices, s": SERIES}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--slices", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    results = {
        f"two sketches of {n:,} rows x {D}": bench_pair(n, options.repeats)
        for n in (1_000, 100_000)
    }
    title = f"{options.slices:,} slices of {options.rows:,} rows x {D}"
    results[title] = bench_series(options.slices, options.rows, max(1, options.repeats // 3))
    report("compare", results)


if __name__ == "__main__":
    main()
