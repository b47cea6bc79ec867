"""Nyström features and leverage scores at equal numbers: the table of ``docs/theory.md``.

Run: ``python benchmarks/feature_maps.py [dataset ...]``, after ``make data``; half an hour for all.
Relative squared errors, means of three seeds, of sketches that all hold the same number of
integers, 4 k d or 10 k d. Plans, bandwidths and landmarks are those of a pilot of at most 2 000
rows; 10 000 others are sketched, and judged by.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from harness import if_here, report

import sketchshift as ss
from sketchshift_papers import data as datasets
from sketchshift_papers import landmarks
from sketchshift_papers import leverage as leverage  # registers the law

SEEDS, PILOT, ROWS = (0, 1, 2), 2_000, 10_000
NUMBERS = (4, 10)  # integers of a sketch, in k d
DATASETS = {
    "sipu/s2": 15,
    "uber_pickups": 10,
    "skin": 10,
    "cytof": 10,
    "covertype": 10,
    "spectral_mnist": 10,
}
AS_THEY_ARE = ("spectral_mnist", "sipu/s2")


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A pilot, at most a fifth of the rows, and others; standardised, or as they are."""
    X = datasets.load(name).astype(np.float64)
    if name not in AS_THEY_ARE:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    X = X[np.random.default_rng(0).permutation(len(X))]
    n = min(PILOT, len(X) // 5)
    return X[:n], X[n : n + ROWS]


def specs(pilot: np.ndarray, k: int, n: int, seed: int) -> dict[str, ss.SketchSpec]:
    """Specs of n integers beside the moments; for the turnkey decoder those of plans."""
    d, m = pilot.shape[1], n // 2
    width = ss.decoders.bandwidth(pilot, n_clusters=k, seed=seed)
    one = ss.SketchSpec(d, m, width, seed=seed, center=tuple(pilot.mean(axis=0)))
    rows = pilot - one.center_vector
    places = {
        name: landmarks.draw(rows, size, bandwidth=width, seed=seed)
        for name, size in (("Nyström", n), ("Nyström, places counted", 8 * n // (8 + 4 * d)))
    }
    waves = ss.plan(pilot, k, sketch_size=m, seed=seed, cells=False)
    return {
        "Gaussian law": one,
        "leverage": one.replaced(waves=replace(one.waves, law="leverage")),
        **{
            name: one.replaced(waves=None, families={"landmarks": own})
            for name, own in places.items()
        },
        "plan of waves": waves,
        "plan of waves, leverage": waves.replaced(waves=replace(waves.waves, law="leverage")),
        "plan": ss.plan(pilot, k, sketch_size=m, seed=seed),
    }


def decoder_for(name: str) -> Callable[..., ss.Decoding]:
    """Algorithm 2, refined, for one bandwidth; the turnkey decoder for plans."""
    return ss.decode if "plan" in name else ss.SketchAndShift(n_initializations=100, refine=True)


def errors(pilot: np.ndarray, X: np.ndarray, k: int, n: int) -> dict[str, float]:
    """Mean RSE of each spec."""
    reference = ss.metrics.mse(X, ss.metrics.lloyd(X, k, n_init=10))
    found: dict[str, list[float]] = {}
    for seed in SEEDS:
        for name, spec in specs(pilot, k, n, seed).items():
            decoding = decoder_for(name)(ss.sketch(X, spec), k, seed=seed)
            found.setdefault(name, []).append(ss.metrics.rse(X, decoding.centroids, reference))
    found["k-means of the pilot"] = [
        ss.metrics.rse(X, ss.metrics.lloyd(pilot, k, n_init=10, seed=seed), reference)
        for seed in SEEDS
    ]
    return {name: float(np.mean(values)) for name, values in found.items()}


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")  # sketches are smaller than plans would have them
    results = {}
    for name in names or DATASETS:
        pair, k = if_here(name, lambda name=name: data(name)), DATASETS[name]
        if pair is None:
            continue
        d = pair[0].shape[1]
        for per in NUMBERS:
            title = f"{name}: {len(pair[1])} rows, d = {d}, k = {k}, {per} k d integers"
            results[title] = errors(*pair, k, per * k * d)
            print(title, results[title], flush=True)
    report("feature-maps", results)


if __name__ == "__main__":
    main(sys.argv[1:])
