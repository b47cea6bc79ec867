"""Whether a sketch is that of fewer distinct points than centroids were asked for."""

from __future__ import annotations

from sketchshift.decoders.base import Problem
from sketchshift.decoders.reduce_support import merge_nearest
from sketchshift.decoders.refine import refine
from sketchshift.decoders.weights import choose, hard_threshold
from sketchshift.mixtures import Mixture

__all__ = ["fewest_points"]


def fewest_points(problem: Problem, mixture: Mixture, k: int) -> Mixture | None:
    """The fewest points, less than k, whose sketch is the given one up to rounding.

    A greedy search surrounds a point with light atoms that correct its place, so that their
    number says nothing. The heaviest of them, or all merged to a few, descend jointly to the
    points, if points there are.

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
        None when k - 1 of them are not enough: joint descents from 1, 2, 4, ..., k - 1
        components tell. Too many at once are slow to fall together.
    """
    atoms = Mixture(mixture.weights, mixture.means)
    for n in _sizes(min(k - 1, atoms.n_components)):
        points = _explain(problem, atoms, n)
        if points is not None:
            return _shrink(problem, points)
    return None


def _sizes(largest: int) -> list[int]:
    """1, 2, 4, ... and the largest itself."""
    powers = [2**i for i in range(largest.bit_length()) if 2**i < largest]
    return [*powers, largest] if largest else []


def _shrink(problem: Problem, points: Mixture) -> Mixture:
    """Merge points as long as the others explain the sketch."""
    while points.n_components > 1:
        fewer = _explain(problem, points, points.n_components - 1)
        if fewer is None:
            break
        points = fewer
    return points


def _explain(problem: Problem, atoms: Mixture, n: int) -> Mixture | None:
    """The n points that explain the sketch, from two places to start."""
    for start in (choose(atoms, hard_threshold(atoms.weights, n)), merge_nearest(atoms, n)):
        points = refine(problem, start)
        if problem.residual_norm(points) < problem.empty:
            return points
    return None
