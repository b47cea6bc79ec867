"""Whether a sketch is that of fewer distinct points than centroids were asked for."""

from __future__ import annotations

import numpy as np

from sketchshift.decoders.base import Problem
from sketchshift.decoders.refine import refine
from sketchshift.decoders.weights import choose, hard_threshold
from sketchshift.mixtures import Mixture

__all__ = ["fewest_points"]


def fewest_points(problem: Problem, mixture: Mixture, k: int) -> Mixture | None:
    """The fewest points, less than k, whose sketch is the given one up to rounding.

    A greedy search surrounds a point with light atoms that correct its place, so that their
    number says nothing. A joint descent puts the heavy ones right, if points they are.

    Parameters
    ----------
    problem : Problem
        The sketch.
    mixture : Mixture
        What a decoder found, as many components as it has; their covariances are left aside.
    k : int
        Number of centroids asked for.

    Returns
    -------
    points : Mixture or None
        None when k - 1 of them are not enough: one joint descent tells. Each point less takes
        one more.
    """
    points = None
    candidate = _heaviest(mixture, k - 1)
    while candidate.n_components:
        candidate = refine(problem, candidate)
        if problem.residual_norm(candidate) >= problem.empty:
            break
        points = candidate
        candidate = _heaviest(points, points.n_components - 1)
    return points


def _heaviest(mixture: Mixture, n: int) -> Mixture:
    keep = hard_threshold(mixture.weights, n)
    keep = np.sort(keep[mixture.weights[keep] > 0])
    return choose(Mixture(mixture.weights, mixture.means), keep)
