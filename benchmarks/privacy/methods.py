"""Ways to private centroids; each has the same (epsilon, delta) and the same public knowledge.

Public are a ball of 10 spreads off the middle for the private plan, a sample of a thousand rows
for the public one and for DP-Lloyd's ball, and, in its favour, the true range of every column
for diffprivlib.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

import sketchshift as ss
from privacy.data import K, Rows
from sketchshift.privacy.mechanism import epsilon_of, rho_of

DELTA = 1e-8
SAMPLE = 1000
PLAN_SHARE = 0.1  # of rho, for a private plan
COUNT_WEIGHT = 0.5  # of DP-Lloyd's counts, where sums have at most 1

Method = Callable[[Rows, float, int], np.ndarray]


def sketch_public(data: Rows, epsilon: float, seed: int) -> np.ndarray:
    """A plan from a public sample; all of the budget for the release."""
    spec = ss.privacy.plan_public(_sample(data, seed), K, seed=seed, cells=False)
    return _decoded(data, spec, epsilon, seed)


def sketch_with_cells(data: Rows, epsilon: float, seed: int) -> np.ndarray:
    """The same with cells from the same sample."""
    spec = ss.privacy.plan_public(_sample(data, seed), K, seed=seed)
    return _decoded(data, spec, epsilon, seed)


def sketch_private(data: Rows, epsilon: float, seed: int) -> np.ndarray:
    """A tenth of the budget for the plan, from a ball ten spreads wide."""
    rng = np.random.default_rng(seed)
    d = data.X.shape[1]
    center = data.center + data.spread * rng.normal(size=d) / math.sqrt(d)
    rho = rho_of(epsilon, DELTA)
    of_plan, of_release = (
        epsilon_of(share * rho, DELTA) for share in (PLAN_SHARE, 1.0 - PLAN_SHARE)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.errors.PrivacyWarning)
        spec = ss.privacy.plan(data.X, center, 10 * data.spread, K, of_plan, DELTA, seed=seed)
    return _decoded(data, spec, of_release, seed)


def _decoded(data: Rows, spec: ss.SketchSpec, epsilon: float, seed: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ss.errors.PrivacyWarning)
        private = ss.privacy.release(ss.sketch(data.X, spec), epsilon, DELTA, force=True)
    return ss.decode(private, K, seed=seed).centroids


def dp_lloyd(rounds: int, ball: float) -> Method:
    """Lloyd's iterations on noisy sums and counts of the cells (Blum et al. 2005).

    Gaussian noise, the budget split evenly over the rounds, rows clipped to a public ball of so
    many spreads, one random start in the sample.
    """

    def run(data: Rows, epsilon: float, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        sample = _sample(data, seed)
        middle = sample.mean(axis=0)
        radius = ball * math.sqrt(sample.var(axis=0).sum())
        places = (data.X - middle) / radius
        places /= np.maximum(np.linalg.norm(places, axis=1), 1.0)[:, None]
        noise = math.sqrt((1.0 + COUNT_WEIGHT**2) / (2.0 * rho_of(epsilon, DELTA) / rounds))
        centroids = ((sample - middle) / radius)[rng.choice(len(sample), K, replace=False)]
        for _ in range(rounds):
            labels = ss.metrics.assign(places, centroids)
            counts = np.bincount(labels, minlength=K) + noise / COUNT_WEIGHT * rng.normal(size=K)
            sums = np.array([np.bincount(labels, c, minlength=K) for c in places.T]).T
            sums += noise * rng.normal(size=sums.shape)
            means = sums / np.maximum(counts, 1.0)[:, None]
            is_sure = counts > 2.0 * noise / COUNT_WEIGHT
            centroids = np.where(is_sure[:, None], means, centroids)
            centroids /= np.maximum(np.linalg.norm(centroids, axis=1), 1.0)[:, None]
        return middle + radius * centroids

    return run


def _sample(data: Rows, seed: int) -> np.ndarray:
    return data.X[np.random.default_rng(seed).choice(len(data.X), SAMPLE, replace=False)]


METHODS: dict[str, Method] = {
    "sketch, public plan": sketch_public,
    "sketch, public plan with cells": sketch_with_cells,
    "sketch, private plan": sketch_private,
    "DP-Lloyd, 5 rounds, ball 2": dp_lloyd(5, 2.0),
    "DP-Lloyd, 5 rounds, ball 4": dp_lloyd(5, 4.0),
    "DP-Lloyd, 10 rounds, ball 4": dp_lloyd(10, 4.0),
}
