"""How long the turnkey decoder takes, and how its time grows.

Run by ``make bench``. Data: spectral MNIST where it is (``make data``), else a mixture
of the same size. One thread. Seconds are those of the process, the best of a few runs taken in
turns.
"""

from __future__ import annotations

from time import process_time

import numpy as np
from harness import best_of, report
from threadpoolctl import threadpool_limits

import sketchshift as ss
from sketchshift.data import datasets

K, M, D = 10, 1000, 10
GOOD = 1.05  # relative squared error: a wrong fast answer must fail


def data() -> tuple[str, np.ndarray]:
    try:
        return "spectral MNIST", datasets.load("spectral_mnist").astype(np.float64)
    except ss.errors.DataError:
        return "a mixture of ten Gaussians", mixture(D)


def mixture(d: int) -> np.ndarray:
    """Ten Gaussians that overlap a little."""
    X, _ = datasets.gaussian_mixture(70_000, d, K, cluster_std=0.1)
    return X


def decoding(X: np.ndarray, reference: float) -> dict[str, float]:
    """Seconds and error of sketches of three seeds, with cells and of waves alone."""
    facts: dict[str, float] = {}
    for name, cells in (("waves and cells", True), ("waves alone", False)):
        sketches = [
            ss.sketch(X, n_clusters=K, sketch_size=M, seed=s, cells=cells) for s in range(3)
        ]
        for seed, s in enumerate(sketches):
            error = ss.metrics.mse(X, ss.decode(s, K, seed=seed).centroids) / reference
            assert error < GOOD, f"{name}, seed {seed}: RSE {error:.3f}"
        run = {"decode": lambda sketches=sketches: [ss.decode(s, K) for s in sketches]}
        facts[f"{name}, s"] = best_of(run, 3, process_time)["decode"] / 3
    return facts


def seconds(X: np.ndarray, k: int = K, m: int = M) -> float:
    s = ss.sketch(X, n_clusters=k, sketch_size=m)
    return best_of({"decode": lambda: ss.decode(s, k)}, 2, process_time)["decode"]


def growth(X: np.ndarray) -> dict[str, dict[str, float]]:
    """Seconds when one of k, m, d grows, the others at 10, 1000, 10; exponents of the growth."""
    by = {
        "k": {k: seconds(X, k=k) for k in (5, 10, 20, 40)},
        "m": {m: seconds(X, m=m) for m in (500, 1000, 2000, 4000)},
        "d": {d: seconds(mixture(d)) for d in (2, 5, 10, 20)},
    }
    tables = {}
    for name, times in by.items():
        exponent = np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0]
        rows = {f"{name} = {value}, s": time for value, time in times.items()}
        of = " (mixtures of ten Gaussians)" if name == "d" else ""
        tables[f"growth with {name}{of}"] = {**rows, "exponent": float(exponent)}
    return tables


def main() -> None:
    name, X = data()
    with threadpool_limits(1):
        reference = ss.metrics.mse(X, ss.metrics.lloyd(X, K))
        title = f"{name}, k = {K}, d = {D}, m = {M}"
        report("turnkey", {title: decoding(X, reference), **growth(X)})


if __name__ == "__main__":
    main()
