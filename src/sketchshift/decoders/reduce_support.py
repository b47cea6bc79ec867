"""From all atoms to k of them: near ones are merged between two joint descents."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders.base import Problem
from sketchshift.decoders.refine import refine
from sketchshift.mixtures import Mixture

__all__ = ["merge_nearest", "reduce_support"]

_LIGHTEST = 1e-12  # share of an atom without weight, so that it merges with its nearest


def reduce_support(problem: Problem, mixture: Mixture, k: int) -> Mixture:
    """Refine all components, merge them to k, refine these.

    Both descents start from equal weights: an atom of weight zero feels no gradient, and greedy
    searches with a wide kernel leave most atoms so.

    Parameters
    ----------
    problem : Problem
        The sketch and the domain.
    mixture : Mixture
        All atoms found.
    k : int
        Number of components to keep.

    Returns
    -------
    mixture : Mixture
        At most k components, refined.
    """
    mixture = refine(problem, _even(mixture))
    if mixture.n_components > k:
        mixture = refine(problem, _even(merge_nearest(_untilted(problem, mixture), k)))
    return mixture


def merge_nearest(mixture: Mixture, k: int) -> Mixture:
    r"""Merge two components, those whose merging costs k-means least, until k remain.

    That cost is Ward's, :math:`\frac{\alpha_i \alpha_j}{\alpha_i + \alpha_j} \|c_i - c_j\|^2`:
    twins cost nothing, however heavy, and a light cluster of its own stays.

    Parameters
    ----------
    mixture : Mixture
        T components.
    k : int
        Number of components to keep.

    Returns
    -------
    merged : Mixture
        Weights are sums, centroids weighted means; Gaussians keep the covariance of what they
        are merged from, Diracs stay Diracs. O(T^2 (T - k + d)).
    """
    n = mixture.n_components
    weights = np.maximum(mixture.weights, _LIGHTEST * (mixture.weights.sum() or 1.0))
    means = mixture.means.copy()
    covariances = None if mixture.covariances is None else mixture.covariances.copy()
    is_left = np.ones(n, dtype=bool)
    costs = np.array([_costs(weights, means, is_left, i) for i in range(n)])
    for _ in range(n - k):
        i, j = sorted(divmod(int(np.argmin(costs)), n))
        share = weights[j] / (weights[i] + weights[j])
        step = means[j] - means[i]
        if covariances is not None:
            between = share * (1.0 - share) * np.outer(step, step)
            covariances[i] += share * (covariances[j] - covariances[i]) + between
        means[i] += share * step
        weights[i] += weights[j]
        is_left[j] = False
        costs[j], costs[:, j] = np.inf, np.inf
        costs[i] = costs[:, i] = _costs(weights, means, is_left, i)
    return Mixture(
        weights[is_left], means[is_left], None if covariances is None else covariances[is_left]
    )


def _costs(weights: FloatArray, means: FloatArray, is_left: np.ndarray, i: int) -> FloatArray:
    """What it costs to merge component i with each other one; infinity with itself."""
    costs = weights * weights[i] / (weights + weights[i]) * ((means - means[i]) ** 2).sum(axis=1)
    costs[~is_left] = np.inf
    costs[i] = np.inf
    return np.asarray(costs)


def _untilted(problem: Problem, mixture: Mixture) -> Mixture:
    """With weights of the rows themselves: merging is to cost them little."""
    tilt = problem.sketch.spec.tilt
    if tilt is None:
        return mixture
    weights = mixture.weights / tilt((mixture.means**2).sum(axis=1))
    return Mixture(weights, mixture.means, mixture.covariances)


def _even(mixture: Mixture) -> Mixture:
    k = mixture.n_components
    return Mixture(np.full(k, 1.0 / max(k, 1)), mixture.means, mixture.covariances)
