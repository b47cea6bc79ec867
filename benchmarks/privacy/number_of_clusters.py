"""Is the noise of a release taken for clusters? The table of ``docs/privacy.md``.

Run: ``PYTHONPATH=benchmarks python -m privacy.number_of_clusters``; five minutes. Mixtures of 2 to
9 round Gaussians in 2 to 7 columns, 20 000 to 300 000 rows, epsilon 0.3, 1 or 3, plans for 1 to 2.5
times the true k; each is released three times, with noise from a seed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import sketchshift as ss
from sketchshift.data import datasets
from sketchshift.decoders import Turnkey
from sketchshift.decoders.choose_k import ChoiceOfK
from sketchshift.privacy import mechanism

WEIGHTS = (1.0, 3.0, 10.0, 30.0)  # of the noise of the release in the score
STDS = {"far": (0.05, 0.05), "near": (0.12, 0.32)}  # of the clusters, in a cube of side 2
MIXTURES, RELEASES, DELTA = 60, 3, 1e-8


def main() -> None:
    """One line for each kind of mixture and weight."""
    warnings.simplefilter("ignore", ss.errors.PrivacyWarning)
    print("| clusters | weight of the noise | right | too many | too few |\n|---|---|---|---|---|")
    for kind in STDS:
        found = {weight: [] for weight in WEIGHTS}
        for k, released in releases(kind):
            for weight in WEIGHTS:
                decoder = Turnkey(choice=ChoiceOfK(noise_factor=weight))
                found[weight].append(len(ss.decode(released, "auto", decoder=decoder).weights) - k)
        for weight, off in found.items():
            counts = [np.count_nonzero(np.sign(off) == sign) for sign in (0, 1, -1)]
            print(f"| {kind} | {weight:g} | {counts[0]} | {counts[1]} | {counts[2]} |", flush=True)


def releases(kind: str) -> Iterator[tuple[int, ss.privacy.PrivateSketch]]:
    """Private sketches with the true number of clusters behind them."""
    for i in range(MIXTURES):
        rng = np.random.default_rng((i, len(kind)))
        n, d, k = (
            int(10 ** rng.uniform(4.3, 5.5)),
            int(rng.integers(2, 8)),
            int(rng.integers(2, 10)),
        )
        std, epsilon = rng.uniform(*STDS[kind]), float(rng.choice([0.3, 1.0, 3.0]))
        X, _ = datasets.gaussian_mixture(n, d, k, cluster_std=std, seed=i)
        planned = int(rng.uniform(1.0, 2.5) * k) + 1
        raw = ss.sketch(X, ss.privacy.plan_declared([0.0] * d, float(np.sqrt(d / 3)), planned))
        with_seed(rng)
        for _ in range(RELEASES):
            yield k, ss.privacy.release(raw, epsilon, DELTA, force=True)


def with_seed(rng: np.random.Generator, calibrated: Any = mechanism._calibrated) -> None:
    """Let releases take their noise from a generator, at the scale that OpenDP agrees to."""

    def seeded(*how: Any) -> tuple[Any, float, float]:
        _, scale, rho = calibrated(*how)
        return lambda numbers: np.rint(rng.normal(numbers, scale)), scale, rho

    mechanism._calibrated = seeded


if __name__ == "__main__":
    main()
