"""How fast is the sketch? Ratios against baselines of the same run; results are checked.

Run by ``make bench``, which prints a table and keeps it in ``benchmarks/results``.
One thread unless said; rates are row-frequency pairs a second; each time is the best of
several, taken in turns so that other load on the machine hits all alike. Against NumPy, and
structured against dense, seconds are those of the process, which leave other processes out.

A pair costs d + 11 multiply-adds at least, and d + 20 vector operations in all: the second is
the limit where additions and integer operations share the ports of the multiply-adds, as
with 512-bit vectors on Intel's server processors; the first where they do not (Zen 4).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import best_of, report
from peak import multiply_adds_per_second

import sketchshift as ss

N, M = 100_000, 1024
BLOCKS = (125, 250, 500, 1000, 2000, 4000)


def numpy_float32(X: np.ndarray, omega: np.ndarray, rows: int) -> np.ndarray:
    """Sums of cosines and sines, block by block, in float32."""
    total = np.zeros((2, omega.shape[1]))
    for first in range(0, len(X), rows):
        phases = X[first : first + rows] @ omega
        total[0] += np.cos(phases).sum(axis=0)
        total[1] += np.sin(phases).sum(axis=0)
    return total


def numpy_complex(X: np.ndarray, omega: np.ndarray, rows: int = 1000) -> np.ndarray:
    """What one would write first: np.exp(1j * X @ omega) in blocks."""
    total = np.zeros(omega.shape[1], dtype=complex)
    for first in range(0, len(X), rows):
        total += np.exp(1j * X[first : first + rows] @ omega).sum(axis=0)
    return total


def check(X: np.ndarray, spec: ss.SketchSpec) -> None:
    """A wrong fast answer must fail."""
    z = ss.sketch(X[:2000], spec, n_threads=1).z * np.sqrt(spec.sketch_size)
    omega = 2 * np.pi * spec.frequencies.turns.astype(np.float64)
    rows = (X[:2000] - spec.rows.center_vector) / spec.rows.scale_vector
    expected = np.exp(1j * rows @ omega).mean(axis=0)
    assert np.abs(z - expected).max() < 1e-5


def sketching(X: object, spec: ss.SketchSpec, n_threads: int = 1) -> Callable[[], object]:
    return lambda: ss.sketch(X, spec, n_threads=n_threads)


def against_numpy(d: int, peak: float) -> dict[str, float]:
    """The kernel, its exact state included, against NumPy in its best block size."""
    X = np.random.default_rng(0).normal(size=(N, d)).astype(np.float32)
    spec = ss.SketchSpec(d, M, bandwidth=np.sqrt(d))
    check(X, spec)
    omega = (2 * np.pi * spec.frequencies.turns).astype(np.float32)
    part = X[: N // 5]
    candidates: dict[str, Callable[[], object]] = {"sketch": sketching(X, spec)}
    for rows in BLOCKS:
        candidates[f"numpy {rows}"] = lambda rows=rows: numpy_float32(part, omega, rows)
    few = X[: N // 50].astype(np.float64)
    candidates["complex"] = lambda: numpy_complex(few, omega.astype(np.float64))
    seconds = best_of(candidates, 7, process_time)
    rate = N * M / seconds["sketch"]
    numpy_rate = max(len(part) * M / seconds[f"numpy {rows}"] for rows in BLOCKS)
    return {
        "G pairs/s": rate / 1e9,
        "NumPy float32, G pairs/s": numpy_rate / 1e9,
        "times NumPy float32": rate / numpy_rate,
        "times np.exp(1j * X @ W)": rate / (len(few) * M / seconds["complex"]),
        "share of peak / (d + 11)": rate / (peak / (d + 11)),
        "share of peak / (d + 20)": rate / (peak / (d + 20)),
    }


def with_threads() -> dict[str, float]:
    X = np.random.default_rng(0).normal(size=(N, 10)).astype(np.float32)
    plain = ss.SketchSpec(10, M, bandwidth=3.0, center=(0.0,) * 10, scale=1.0)
    large = np.tile(X, (4, 1))
    seconds = best_of(
        {
            "one thread": sketching(large, plain),
            "two threads": sketching(large, plain, n_threads=2),
        },
        10,
    )
    return {"two threads / one": seconds["one thread"] / seconds["two threads"]}


def structured() -> dict[str, float]:
    X = np.random.default_rng(0).normal(size=(2048, 784)).astype(np.float32)
    dense = ss.SketchSpec(784, 8192, bandwidth=28.0)
    fast = ss.SketchSpec(784, 8192, bandwidth=28.0, structured=True)
    check(X[:200], fast)
    candidates = {"dense": sketching(X, dense), "fast": sketching(X, fast)}
    seconds = best_of(candidates, 5, process_time)
    return {
        "structured / dense rate": seconds["dense"] / seconds["fast"],
        "structured, G pairs/s": len(X) * 8192 / seconds["fast"] / 1e9,
    }


def from_parquet() -> dict[str, float]:
    X = np.random.default_rng(0).normal(size=(500_000, 10)).astype(np.float32)
    spec = ss.SketchSpec(10, M, bandwidth=3.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.parquet"
        pq.write_table(pa.table({f"x{k}": X[:, k] for k in range(10)}), path)
        checkpoint = Path(folder) / "checkpoint"

        def checkpointed() -> ss.Sketch:
            checkpoint.unlink(missing_ok=True)
            return ss.sketch(path, spec, n_threads=1, checkpoint=checkpoint)

        def gone_on() -> ss.Sketch:
            """All of it was read: what is left is to compare."""
            return ss.sketch(path, spec, n_threads=1, checkpoint=checkpoint)

        assert ss.sketch(path, spec) == ss.sketch(X, spec) == checkpointed() == gone_on()
        seconds = best_of(
            {
                "array": sketching(X, spec),
                "file": sketching(path, spec),
                "checkpointed": checkpointed,
                "gone on": gone_on,
            },
            4,
        )
    return {
        "file to sketch, million rows/s": len(X) / seconds["file"] / 1e6,
        "array to sketch, million rows/s": len(X) / seconds["array"] / 1e6,
        "file / array rate": seconds["array"] / seconds["file"],
        "with a checkpoint / without, time": seconds["checkpointed"] / seconds["file"],
        "comparing what was read / reading it, time": seconds["gone on"] / seconds["file"],
    }


def one_by_one() -> dict[str, float]:
    """Rows that come alone: held and summed together, against each one summed by itself."""
    X = np.random.default_rng(0).normal(size=(1000, 10))
    spec = ss.SketchSpec(10, 1000, bandwidth=3.0)

    def update(**arguments: object) -> ss.Sketch:
        sketcher = ss.Sketcher(spec)
        for i in range(len(X)):
            sketcher.update(X[i : i + 1], **arguments)
        return sketcher.sketch()

    def ignore(n_rows: int, share: float | None) -> None:
        """Progress is told of every row, so that none is held."""

    assert update() == update(progress=ignore) == ss.sketch(X, spec)
    seconds = best_of({"held": update, "alone": lambda: update(progress=ignore)}, 5)
    return {
        "rows/s": len(X) / seconds["held"],
        "held / each by itself": seconds["alone"] / seconds["held"],
    }


def main() -> None:
    peak = multiply_adds_per_second()
    results = {
        "machine": {"multiply-adds, G/s": peak / 1e9},
        f"d = 10, m = {M}": against_numpy(10, peak),
        f"d = 64, m = {M}": against_numpy(64, peak),
        f"d = 10, m = {M}, threads": with_threads(),
        "d = 784, m = 8192": structured(),
        f"Parquet, d = 10, m = {M}": from_parquet(),
        "rows one by one, d = 10, m = 1000": one_by_one(),
    }
    report("sketch", results)


if __name__ == "__main__":
    main()
