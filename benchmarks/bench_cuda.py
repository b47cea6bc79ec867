"""Rates of the sums on a GPU, beside plain CuPy and all cores in the same run; bytes are compared.

Run: ``python benchmarks/bench_cuda.py [--rows 8_388_608]``, with CuPy and a GPU. "On the GPU" is
the kernel alone, on rows that lie there; "from memory" includes their way there; ``ss.sketch``
also normalises rows and takes moments, on all cores.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import cupy
import numpy as np
from harness import report

import sketchshift as ss
from sketchshift.kernels import Centers
from sketchshift.kernels.cpu import KERNEL as CPU
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


def cells(n: int, d: int, k: int) -> dict[str, float]:
    """One pass over rows on the GPU, nearest centers and their sums: millions of rows a second.

    Beside it the usual way, as faiss and torch have it: distances by a product of matrices, an
    index_add of float32; once in full float32, once with the tensor cores (TF32).
    """
    import torch

    rng = np.random.default_rng(0)
    middles = rng.standard_normal((k, d), dtype=np.float32)
    points = np.repeat(middles, 8, axis=0) + 0.1 * rng.standard_normal((8 * k, d), dtype=np.float32)
    axes = np.linalg.qr(rng.normal(size=(d, 10)))[0].T.astype(np.float32)
    starts = np.arange(0, 8 * k + 1, 8)
    of = Centers(points, starts, middles, 1, 1.0, 144.0 * 1.01 * d, axes)
    rows = cupy.asarray(middles)[rng.integers(0, k, n)] + cupy.random.standard_normal(
        (n, d), dtype=np.float32
    )
    double = rows.astype(np.float64)
    gpu, totals = accumulators.KERNEL.cells(of), accumulators.KERNEL.zeros((8 * k, of.width))
    expected, found = np.zeros((2, 8 * k, of.width), dtype=np.int64)
    few = cupy.asnumpy(double[:5000])
    CPU.cells(of).add(few, CPU.project(few, axes), None, expected)
    gpu.add(double[:5000], accumulators.KERNEL.project(double[:5000], axes), None, found)
    assert np.array_equal(found, expected)

    alone = replace(of, centers=middles, starts=np.array([0, k]), middles=middles[:1])
    flat, sums = accumulators.KERNEL.cells(alone), accumulators.KERNEL.zeros((k, alone.width))

    def ours(cells: object, into: np.ndarray) -> None:
        cells.add(double, accumulators.KERNEL.project(double, axes), None, into)

    x, c = torch.as_tensor(rows, device="cuda"), torch.as_tensor(middles, device="cuda")

    def usual() -> None:
        total = torch.zeros(k, d, device="cuda")
        counts = torch.zeros(k, device="cuda")
        for block in x.split(2**16):
            labels = torch.addmm((c * c).sum(1), block, c.T, alpha=-2.0).argmin(1)
            total.index_add_(0, labels, block)
            counts += torch.bincount(labels, minlength=k)

    seconds = {
        "8 cells a cluster, exact": best_seconds(lambda: ours(gpu, totals), 3),
        "a cell a cluster, exact": best_seconds(lambda: ours(flat, sums), 3),
        "torch, float32": 0.0,
        "torch, TF32": 0.0,
    }
    for name, is_fast in (("torch, float32", False), ("torch, TF32", True)):
        torch.backends.cuda.matmul.allow_tf32 = is_fast
        seconds[name] = best_seconds(usual, 3)
    rates = {name: n / value / 1e6 for name, value in seconds.items()}
    return rates | {"ratio to float32": rates["a cell a cluster, exact"] / rates["torch, float32"]}


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
    parser.add_argument("--cells", action="store_true", help="those alone")
    given = parser.parse_args()
    n = given.rows
    if given.cells:
        report("cuda-cells", {"cells, d = 768, k = 1024": cells(2**18, 768, 1024)})
        return
    results = {f"d = {d}, m = {m}": case(n * 1024 // m, d, m) for d, m in CASES}
    results["structured, d = 784, m = 8192"] = structured(n // 64, 784, 8192)
    results["cells, d = 768, k = 1024"] = cells(2**18, 768, 1024)
    for d, m in ((10, 1000), (10, 10_000), (64, 6400)):
        results[f"ss.sketch, d = {d}, m = {m}"] = whole(n * 512 // m, d, m)
    report("cuda", results)


if __name__ == "__main__":
    main()
