"""Rates of the sums on a GPU, beside plain CuPy and all cores in the same run; bytes are compared.

Run: ``python benchmarks/bench_cuda.py [--rows 8_388_608]``, with CuPy and a GPU. "On the GPU" is
the kernel alone, on rows that lie there; "from memory" includes their way there; ``ss.sketch``
also normalises rows and takes moments, on all cores.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import cupy
import numpy as np
from harness import report

import sketchshift as ss
from sketchshift.kernels.cuda import kernel as accumulators
from sketchshift.kernels.reference import KERNEL as REFERENCE

CASES = ((10, 1024), (16, 1024), (64, 1024), (10, 10_240))


def best_seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """Least seconds until the GPU is done."""
    times = []
    for _ in range(repeats + 1):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        run()
        cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return min(times[1:])


def plain(rows: cupy.ndarray, turns: cupy.ndarray) -> cupy.ndarray:
    """The same sums in floating point, block by block."""
    sums, omega = cupy.zeros((2, turns.shape[1])), 2 * np.float32(np.pi) * turns
    for block in cupy.array_split(rows, -(-len(rows) * turns.shape[1] // 2**28)):
        phases = block @ omega
        sums += cupy.stack([cupy.cos(phases).sum(axis=0), cupy.sin(phases).sum(axis=0)])
    return sums


def case(n: int, d: int, m: int) -> dict[str, float]:
    """Rates in billions of row-frequency pairs a second."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((n, d), dtype=np.float32)
    turns = (rng.normal(size=(d, m)) / 6).astype(np.float32)
    weights = np.ones(n, dtype=np.float32)
    dense, totals = accumulators.CudaDense(turns), np.zeros((2, m), dtype=np.int64)
    expected, found = np.zeros((2, 2, m), dtype=np.int64)
    REFERENCE.dense(turns)(rows[:2000], weights[:2000], expected)
    dense(rows[:2000], weights[:2000], found)
    assert np.array_equal(found, expected)

    there = cupy.asarray(rows), cupy.asarray(weights)
    sums = cupy.zeros((2, m), dtype=np.int64)
    seconds = {
        "on the GPU": best_seconds(lambda: dense.add(*there, sums)),
        "from memory": best_seconds(lambda: dense(rows, weights, totals)),
        "plain CuPy, on the GPU": best_seconds(lambda: plain(there[0], cupy.asarray(turns)), 2),
    }
    rates = {name: n * m / value / 1e9 for name, value in seconds.items()}
    double = there[0].astype(np.float64)
    rates["float64 phases, on the GPU"] = (
        n * m / best_seconds(lambda: dense.add(double, there[1], sums)) / 1e9
    )
    return rates | {"ratio": rates["on the GPU"] / rates["plain CuPy, on the GPU"]}


def structured(n: int, d: int, m: int) -> dict[str, float]:
    """The same at structured frequencies."""
    rng = np.random.default_rng(0)
    size = 1 << (d - 1).bit_length()
    signs = rng.choice(np.array([-1, 1], dtype=np.float32), size=(-(-m // size), 3, size))
    radii = (rng.uniform(size=m) / size).astype(np.float32)
    rows = cupy.asarray(rng.standard_normal((n, d), dtype=np.float32))
    sums = cupy.zeros((2, m), dtype=np.int64)
    fast = accumulators.CudaStructured(signs, radii)
    dense = accumulators.CudaDense((rng.normal(size=(d, m)) / 6).astype(np.float32))
    weights = cupy.ones(n, dtype=np.float32)
    rate = n * m / best_seconds(lambda: fast.add(rows, weights, sums)) / 1e9
    beside = n * m / best_seconds(lambda: dense.add(rows, weights, sums)) / 1e9
    return {"structured": rate, "dense": beside, "ratio": rate / beside}


def whole(n: int, d: int, m: int) -> dict[str, float]:
    """``ss.sketch`` of an array, on all cores with and without the GPU."""
    rows = np.random.default_rng(0).standard_normal((n, d), dtype=np.float32)
    spec = ss.plan(rows[:20_000], n_clusters=10, sketch_size=m)
    assert ss.sketch(rows, spec, kernel="cuda") == ss.sketch(rows, spec, kernel="cpu")
    with_gpu, without = (
        n * m / best_seconds(lambda k=kernel: ss.sketch(rows, spec, kernel=k), 2) / 1e9
        for kernel in ("cuda", "cpu")
    )
    return {"with the GPU": with_gpu, "without": without, "ratio": with_gpu / without}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2**23)
    n = parser.parse_args().rows
    results = {f"d = {d}, m = {m}": case(n * 1024 // m, d, m) for d, m in CASES}
    results["structured, d = 784, m = 8192"] = structured(n // 64, 784, 8192)
    for d, m in ((10, 1000), (10, 10_000), (64, 6400)):
        results[f"ss.sketch, d = {d}, m = {m}"] = whole(n * 512 // m, d, m)
    report("cuda", results)


if __name__ == "__main__":
    main()
