"""Which clusters grew, shrank or moved between two sketches.

Clusters are those of both sketches together. Their shares on either side are fitted with places
and shapes held fixed; their places are the means of the points that stand for the rows of that
side, around the common centroids.

Symbols
-------
k, d      clusters, dimension
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders import Decoding
from sketchshift.decoders.fitted import Fitted
from sketchshift.decoders.refit import refit
from sketchshift.decoders.shares import ClusterAtoms, shares
from sketchshift.drift.model import Population
from sketchshift.drift.noise import AddedNoise
from sketchshift.drift.quadratic import tail
from sketchshift.metrics import assign
from sketchshift.sketch import AnySketch, Sketch

__all__ = ["ClusterChange", "cluster_changes"]

FITTING = 0.03
"""Moves that fits of equal data differ by, as a share of the cluster's width (measured)."""


@dataclass(frozen=True, eq=False)
class ClusterChange:
    """A cluster of two sketches together, and what became of it between them.

    Attributes
    ----------
    centroid : array of shape (d,)
        Of both sketches together, in the units of the data.
    share_a, share_b : float
        Shares of the rows of either sketch.
    standard_error : float
        Of ``share_b - share_a``, from sampling and from the noise of releases.
    share_p_value : float
        The probability of a change of the share at least as large without drift.
    centroid_a, centroid_b : array of shape (d,)
        Means of the cluster on either side; NaN where it has no rows, and of private sketches.
    width : float
        Root of the trace of its covariance.
    move_p_value : float
        The probability of a move at least as large without drift.
    verdict : str
        "same", or "grew" or "shrank", and "moved": what is significant at the false-alarm rate
        divided by the number of such tests, 2 k.
    """

    centroid: FloatArray
    share_a: float
    share_b: float
    standard_error: float
    share_p_value: float
    centroid_a: FloatArray
    centroid_b: FloatArray
    width: float
    move_p_value: float
    verdict: str

    @property
    def change(self) -> float:
        """What the share grew by."""
        return self.share_b - self.share_a

    @property
    def move(self) -> float:
        """Distance from where it was to where it is, in the units of the data."""
        return float(np.linalg.norm(self.centroid_b - self.centroid_a))

    @property
    def relative_move(self) -> float:
        """The move as a share of the width; infinity for points that moved."""
        if self.move > 0.0 and self.width == 0.0:
            return math.inf
        return self.move / (self.width or 1.0)

    def __repr__(self) -> str:
        return (
            f"<ClusterChange {self.share_a:.3f} -> {self.share_b:.3f}, moved by "
            f"{self.relative_move:.2g} widths: {self.verdict}>"
        )


def cluster_changes(
    sides: tuple[AnySketch, AnySketch],
    counts: tuple[float, float],
    population: Population,
    false_alarm: float,
) -> tuple[ClusterChange, ...]:
    """One record a cluster, in the order of the decoding.

    Parameters
    ----------
    sides : pair of sketches
        Before and after.
    counts : pair of float
        Numbers of independent rows.
    population : Population
        Both together, decoded.
    false_alarm : float
        For all clusters together.

    Returns
    -------
    changes : tuple of ClusterChange
        Costs two refits of the sketch.
    """
    decoding, fitted = population.decoding, population.fitted
    assert decoding is not None
    whole = fitted.problem.sketch
    atoms = ClusterAtoms.of(decoding, whole.spec)
    scale = sum(1.0 / n for n in counts)
    added = AddedNoise.of(*sides).share_variances(atoms)
    errors = np.sqrt(scale * population.noise.share_variances(atoms) + added)
    parts = np.array([shares(decoding, side, reference=whole) for side in sides])
    share_p = _normal_tails(parts[1] - parts[0], errors)
    means = [_means(fitted, side, decoding) for side in sides]
    rows = np.maximum(parts * np.array(counts)[:, None], 1.0)
    move_p = _move_tails(means[1] - means[0], decoding, (1.0 / rows).sum(axis=0))
    level = false_alarm / (2 * len(errors))
    return tuple(
        ClusterChange(
            decoding.centroids[i],
            float(parts[0, i]),
            float(parts[1, i]),
            float(errors[i]),
            float(share_p[i]),
            means[0][i],
            means[1][i],
            math.sqrt(float(_covariances(decoding)[i].trace())),
            float(move_p[i]),
            _verdict(parts[1, i] - parts[0, i], share_p[i] < level, move_p[i] < level),
        )
        for i in range(len(errors))
    )


def _normal_tails(changes: FloatArray, errors: FloatArray) -> FloatArray:
    """Two-sided; 1 where nothing can change, as the share of a single cluster."""
    from scipy.special import ndtr

    ratios = np.divide(np.abs(changes), errors, out=np.zeros_like(errors), where=errors > 1e-12)
    return np.asarray(2.0 * ndtr(-ratios))


def _means(fitted: Fitted, side: AnySketch, decoding: Decoding) -> FloatArray:
    """Means of the points of one side in the cells of the centroids, shape (k, d)."""
    if not isinstance(side, Sketch):  # what its noise does to a mean has no law here
        return np.full_like(decoding.centroids, np.nan)
    found, spec = refit(fitted, side), side.spec
    points = spec.center_vector + found.points * spec.scale_vector
    k = len(decoding.weights)
    normalised = (decoding.centroids - spec.center_vector) * spec.per_unit
    labels = assign(found.points, normalised)
    mass = np.bincount(labels, found.weights, minlength=k)
    sums = [np.bincount(labels, found.weights * column, minlength=k) for column in points.T]
    mass = np.where(mass > 0.0, mass, np.nan)
    return np.asarray(np.column_stack(sums) / mass[:, None])


def _move_tails(moves: FloatArray, decoding: Decoding, scales: FloatArray) -> FloatArray:
    """Of the squared move of a mean of rows, with what fits add; 1 where there is no mean."""
    tails = []
    for move, covariance, scale in zip(moves, _covariances(decoding), scales, strict=True):
        variances = np.maximum(np.linalg.eigvalsh(covariance), 0.0) * (scale + FITTING**2)
        squared = float(move @ move)
        tails.append(tail(squared, variances) if math.isfinite(squared) else 1.0)
    return np.array(tails)


def _covariances(decoding: Decoding) -> FloatArray:
    k, d = decoding.centroids.shape
    return np.zeros((k, d, d)) if decoding.covariances is None else decoding.covariances


def _verdict(change: float, is_share: bool, is_move: bool) -> str:
    words = ["grew" if change > 0 else "shrank"] * bool(is_share) + ["moved"] * bool(is_move)
    return " and ".join(words) or "same"
