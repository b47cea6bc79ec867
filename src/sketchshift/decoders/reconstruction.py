"""Points that stand for the data: drawn from fits, weighted back, with the exact moments.

Takes fits of the tilted measure from ``search``; hands weighted points to the last k-means.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchshift._typing import FloatArray, IntArray
from sketchshift.decoders.base import Problem
from sketchshift.decoders.gaussians import GaussianFit
from sketchshift.features.stream import Purpose, normal_quantile, uniforms

__all__ = ["Reconstruction", "draw_points", "reconstruct"]

FLAT = 1e-9  # share of the mean variance added to covariances, so that roots exist


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Weighted points, in normalised coordinates.

    Attributes
    ----------
    points : array of shape (n, d)
        Where.
    weights : array of shape (n,)
        Shares of the rows; they add up to 1.
    """

    points: FloatArray
    weights: FloatArray


def draw_points(fits: list[GaussianFit], n: int, seed: int) -> FloatArray:
    """About n points of the pooled fits, every fit alike: shape (n, d).

    Numbers of points are rounded from the weights, and points come in opposite pairs, so that
    the means of the atoms are exact.
    """
    d = fits[0].means.shape[1]
    normals = normal_quantile(uniforms(seed, Purpose.SAMPLE, np.arange(-(-n // 2) + 1), d))
    parts = []
    for fit in fits:
        counts = _rounded(fit.shares, n / (2 * len(fits)))
        atoms = np.repeat(np.arange(fit.n_atoms), counts)
        rests = fit.deviations[atoms] * normals[: len(atoms)]
        parts += [fit.means[atoms] + rests, fit.means[atoms] - rests]
    return np.concatenate(parts)


def _rounded(shares: FloatArray, n: float) -> IntArray:
    """Whole numbers near n times the shares, whose partial sums are right to one half."""
    ends = np.rint(np.cumsum(shares) * n).astype(np.int64)
    return np.diff(ends, prepend=0)


def reconstruct(problem: Problem, fits: list[GaussianFit], n: int, seed: int) -> Reconstruction:
    """Points like the rows themselves: un-tilted, with the exact moments if they are known.

    Parameters
    ----------
    problem : Problem
        The sketch.
    fits : list of GaussianFit
        Of the tilted measure.
    n : int
        Number of points.
    seed : int
        Of the points.

    Returns
    -------
    reconstruction : Reconstruction
        O(n d^2 + d^3).
    """
    points = draw_points(fits, n, seed)
    weights = problem.untilted(points, np.ones(len(points)))
    if problem.moments is not None:
        points = _with_moments(points, weights, *problem.moments)
    return Reconstruction(points, weights)


def _with_moments(
    points: FloatArray, weights: FloatArray, mean: FloatArray, covariance: FloatArray
) -> FloatArray:
    """The points moved as little as possible until mean and covariance are as given.

    The optimal transport between Gaussians, A = R^-1 (R Sigma R)^(1/2) R^-1 with R the root
    of the present covariance; axis by axis where only the diagonal is known.
    """
    rests = points - weights @ points
    floor = FLAT * float(np.trace(covariance)) / len(mean)
    if np.isnan(covariance).any():
        present = weights @ rests**2
        factors = np.sqrt((np.diagonal(covariance) + floor) / (present + floor))
        return np.asarray(mean + rests * factors)
    eye = floor * np.eye(len(mean))
    values, vectors = np.linalg.eigh((rests.T * weights) @ rests + eye)
    root, inverse = ((vectors * values**power) @ vectors.T for power in (0.5, -0.5))
    values, vectors = np.linalg.eigh(root @ (covariance + eye) @ root)
    middle = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.asarray(mean + rests @ (inverse @ middle @ inverse))
