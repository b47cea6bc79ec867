"""Which rule chooses the best bandwidth? The table of ``docs/bandwidth.md``.

Run: ``python benchmarks/bandwidth_rules.py [dataset ...]``, after ``make data``; half an hour for
all. Relative squared errors of two decoders, means of two seeds, with the bandwidth of
each rule and with the best of a grid in hindsight.
"""

from __future__ import annotations

import math
import sys
from functools import partial

import numpy as np
from harness import if_here

import sketchshift as ss
from sketchshift.data.datasets import china_pixels
from sketchshift_papers import data as datasets
from sketchshift_papers.bandwidth_rules import entropy_rule, regression_rule

N, SEEDS = 20_000, (0, 1)
GRID = (0.05, 0.07, 0.1, 0.14, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.5)
DATASETS = {
    "spectral_mnist": 10,
    "cytof": 10,
    "covertype": 10,
    "skin": 10,
    "uber_pickups": 10,
    "mnist": 10,
    "cifar10_features": 10,
    "digits": 10,
    "china": 10,
    "sipu/s2": 15,
    "sipu/s3": 15,
}
AS_THEY_ARE = ("spectral_mnist", "cifar10_features", "digits", "china", "sipu/s2", "sipu/s3")


def data(name: str) -> np.ndarray:
    """At most 20 000 rows; standardised, or as they are, or the first 20 components of MNIST."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    loaders = {"digits": lambda: load_digits().data, "china": china_pixels}
    X = loaders.get(name, lambda: datasets.load(name))().astype(np.float64)
    if name == "mnist":
        X = PCA(20, random_state=0, svd_solver="randomized").fit_transform(X)
    elif name not in AS_THEY_ARE:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = np.random.default_rng(0).choice(len(X), min(N, len(X)), replace=False)
    return X[np.sort(rows)]


def errors(X: np.ndarray, k: int, widths: list[float], reference: float) -> np.ndarray:
    """Mean RSE of sketch and shift, refined, and of CL-OMPR; one bandwidth a seed."""
    decoders = (ss.SketchAndShift(n_initializations=100, refine=True), ss.ClOmpr())
    m, center = min(10 * k * X.shape[1], 1000), tuple(X.mean(axis=0))
    rows = []
    for seed, width in zip(SEEDS, widths, strict=True):
        spec = ss.SketchSpec(X.shape[1], m, width, seed=seed, center=center)
        s = ss.sketch(X, spec)
        found = [decoder(s, k, seed=seed).centroids for decoder in decoders]
        rows.append([ss.metrics.rse(X, centroids, reference) for centroids in found])
    return np.mean(rows, axis=0)


def main(names: list[str]) -> None:
    for name in names or DATASETS:
        X, k = if_here(name, lambda name=name: data(name)), DATASETS[name]
        if X is None:
            continue
        r0, reference = (
            math.sqrt(X.var(axis=0).sum()),
            ss.metrics.mse(X, ss.metrics.lloyd(X, k, n_init=10)),
        )
        print(f"{name}: {len(X)} rows, d = {X.shape[1]}, k = {k}")
        rules = {
            "sketchshift": partial(ss.decoders.bandwidth, n_clusters=k),
            "regression": regression_rule,
            "entropy": entropy_rule,
        }
        for rule, choose in rules.items():
            widths = [choose(X, seed=seed) for seed in SEEDS]
            found = errors(X, k, widths, reference)
            print(f"    {rule:<12}{widths[0] / r0:6.2f} r0   RSE {found[0]:.3f} {found[1]:.3f}")
        grid = np.array([errors(X, k, [share * r0] * len(SEEDS), reference) for share in GRID])
        print(f"    {'hindsight':<12}{'':12}RSE {grid[:, 0].min():.3f} {grid[:, 1].min():.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
