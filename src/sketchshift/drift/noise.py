r"""What sampling alone does to a sketch: the law of the distance between two, without drift.

With few assumptions, z of n independent rows is nearly Gaussian around its limit, with the
covariance of :math:`h(x) = \frac{t(x)}{E t} (\phi(x) - z)` divided by n, t being the tilt or 1.
The squared distance of two sketches is then a weighted sum of chi-squares. The weights are the
eigenvalues of that covariance, taken over points that the turnkey decoder draws; its trace is
corrected by what the sketch knows exactly. Private sketches add the noise of their release.

Symbols
-------
n, d, m   points drawn, dimension, frequencies
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchshift._typing import ComplexArray, Float32Array, FloatArray
from sketchshift.decoders.mixture import Points
from sketchshift.decoders.problem import Problem
from sketchshift.decoders.shares import ClusterCells, ClusterSketches
from sketchshift.kernels import select_kernel
from sketchshift.sketch import AnySketch, Sketch

__all__ = ["AddedNoise", "SamplingNoise", "quantile", "tail"]

POINTS = 1_000
FREQUENCIES = 2_048  # whose features are in memory at once


@dataclass(frozen=True, eq=False)
class SamplingNoise:
    """The noise that one row of a population has in a sketch.

    Attributes
    ----------
    rows : _Rows
        Points of the population.
    gram : array of shape (n, n)
        Inner products of the noise of the points, weighted by their shares.
    correction : float
        What these, and all variances, are to be multiplied by.
    """

    rows: _Rows
    gram: FloatArray
    correction: float

    @classmethod
    def of(cls, problem: Problem, points: Points) -> SamplingNoise:
        """Of the rows behind a sketch, for which these points stand: O(n m d + n^2 m + n^3)."""
        rows = _Rows.of(problem, points)
        gram = np.zeros((len(rows.points),) * 2)
        for _, features, _ in rows.noise():
            gram += features.real @ features.real.T + features.imag @ features.imag.T
        return cls(rows, gram, _correction(problem, rows, float(np.trace(gram))))

    @cached_property
    def eigenvalues(self) -> FloatArray:
        """Of the covariance of the noise of one row, shape (n,): O(n^3)."""
        return np.asarray(self.correction * np.maximum(np.linalg.eigvalsh(self.gram), 0.0))

    def law(self, scale: float, added: AddedNoise) -> FloatArray:
        r"""Weights of the chi-squares that the squared distance of two samples is a sum of.

        The eigenvalues of :math:`s \Sigma + c^2 z z^* + \frac{\sigma^2}{m} I`.

        Parameters
        ----------
        scale : float
            The sum s of the 1 / n.
        added : AddedNoise
            That of releases, with c its part in the counts and :math:`\sigma` that in the waves.

        Returns
        -------
        weights : array of shape (n,), or (2 m,) with added noise
            O(1) without added noise, O(n m d + n^3) with it.
        """
        if not added.waves:
            return scale * self.eigenvalues
        n, m = len(self.gram), self.rows.turns.shape[1]
        gram = np.zeros((n + 1, n + 1))  # of the points' noise, and of that in the counts
        gram[:n, :n] = scale * self.correction * self.gram
        size = math.sqrt(scale * self.correction) * added.counts
        for _, features, z in self.rows.noise():
            gram[:n, n] += size * (features @ z.conj()).real
            gram[n, n] += added.counts**2 * float(np.vdot(z, z).real)
        gram[n, :n] = gram[:n, n]
        found = np.linalg.eigvalsh(gram)[::-1][: 2 * m]
        weights = np.full(2 * m, added.waves**2 / m)
        weights[: len(found)] += np.maximum(found, 0.0)
        return weights

    def share_variances(self, clusters: ClusterCells | ClusterSketches) -> FloatArray:
        """Variances, of one row, of the shares that are found in a sketch, shape (k,)."""
        if isinstance(clusters, ClusterCells):
            shares = np.minimum(clusters.weights, 1.0)
            return np.asarray(shares * (1.0 - shares))  # rows are counted
        correlations = np.zeros((len(self.rows.points), len(clusters.weights)))
        for part, features, _ in self.rows.noise():
            correlations += (features @ clusters.sketches[:, part].conj().T).real
        changes = clusters.response(correlations)
        return np.asarray(self.correction * (changes**2).sum(axis=0))


@dataclass(frozen=True)
class AddedNoise:
    r"""What the releases of private sketches add to the z of one, or to the difference of two.

    Attributes
    ----------
    waves : float
        Standard deviation in the real, and imaginary, parts of :math:`\sqrt m z`.
    counts : float
        That of the factor that noise in the numbers of rows multiplies z by.
    """

    waves: float
    counts: float

    @classmethod
    def of(cls, *sketches: AnySketch) -> AddedNoise:
        """Of sketches with rows; that of plain ones is 0."""
        relative = (side.count_std / max(side.total_weight, 1.0) for side in sketches)
        return cls(math.hypot(*(side.noise_std for side in sketches)), math.hypot(*relative))

    def share_variances(self, clusters: ClusterCells | ClusterSketches) -> FloatArray:
        """Variances that it adds to fitted shares, or their differences, shape (k,)."""
        if not self.waves or isinstance(clusters, ClusterCells):
            return np.zeros(len(clusters.weights))
        gram = (clusters.sketches.conj() @ clusters.sketches.T).real
        values, vectors = np.linalg.eigh(gram)
        roots = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # whose squares add up to it
        changes = clusters.response(self.waves / math.sqrt(clusters.sketches.shape[1]) * roots)
        return np.asarray((changes**2).sum(axis=0))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Points of a population in normalised coordinates, and how much each weighs in z."""

    points: FloatArray
    shares: FloatArray
    tilts: FloatArray
    turns: Float32Array

    @classmethod
    def of(cls, problem: Problem, found: Points) -> _Rows:
        step = max(1, len(found.places) // POINTS)
        points, shares = found.places[::step], found.weights[::step]
        tilt = problem.sketch.spec.tilt
        tilts = np.ones(len(points)) if tilt is None else tilt((points**2).sum(axis=1))
        return cls(points, shares / shares.sum(), tilts, problem.turns)

    def noise(self) -> Iterator[tuple[slice, ComplexArray, ComplexArray]]:
        """Some of the frequencies at a time, with h(x) times the roots of the shares, and z."""
        weights = self.shares * self.tilts
        mean_tilt = weights.sum()
        factors = (np.sqrt(self.shares) * self.tilts / mean_tilt)[:, None]
        m = self.turns.shape[1]
        for first in range(0, m, FREQUENCIES):
            part = slice(first, min(first + FREQUENCIES, m))
            turns = np.ascontiguousarray(self.turns[:, part])
            features = select_kernel().features(self.points, turns)
            features *= math.sqrt((part.stop - first) / m)
            z = weights @ features / mean_tilt
            yield part, factors * (features - z), z


def _correction(problem: Problem, rows: _Rows, trace: float) -> float:
    """What the sketch knows of the trace, over that of the points.

    Without a tilt, the trace itself: 1 - |z|^2. With one, the mean of t (1/2 + |x|^2 / 2 r^2),
    which is the mean of t^2 where no row reaches the cap, and more than that otherwise.
    """
    sketch = problem.sketch
    tilt, n = sketch.spec.tilt, sketch.count
    unbiased = n / max(n - 1, 1)
    if not trace > 0.0:
        return 1.0
    if tilt is None:
        squared_norm = max(0.0, problem.norm**2 - problem.noise_floor)
        return unbiased * max(0.0, 1.0 - squared_norm) / trace
    assert isinstance(sketch, Sketch)  # private ones have no tilt
    mean, covariance = problem.outline
    known = 0.5 + (float(np.trace(covariance)) + float(mean @ mean)) / (2.0 * tilt.radius**2)
    drawn = float(rows.shares @ rows.tilts**2) / float(rows.shares @ rows.tilts) ** 2
    return unbiased * known / sketch.mean_tilt / drawn


# Sums of weighted chi-squares: the law of a squared norm of a Gaussian vector.
#
# Takes the eigenvalues of a covariance; hands tail probabilities and quantiles. The saddlepoint
# approximation (Kuonen 1999) keeps its relative accuracy far out in the tail, where matching a few
# moments loses it and simulation has no draws.

NEAR_MEAN = 1e-4  # the formula is 0 / 0 at the mean: below this its limit is taken
NEAR_ZERO, FAR = 1e-200, 1e8  # in the largest weight: the tail is 1 or 0 to the last bit
LEAST = 1e-12  # share of the largest weight below which one is rounding


def tail(x: float, weights: FloatArray) -> float:
    r"""The probability :math:`P(\sum_i \lambda_i \chi^2_1 > x)`.

    With :math:`K(s) = -\frac12 \sum_i \log(1 - 2 s \lambda_i)` and :math:`K'(s) = x`, the normal
    tail at :math:`w + \log(v / w) / w`, where :math:`w = \pm\sqrt{2 (s x - K(s))}` and
    :math:`v = s \sqrt{K''(s)}`.

    Parameters
    ----------
    x : float
        Where.
    weights : array of shape (r,)
        The :math:`\lambda_i`, not negative.

    Returns
    -------
    p : float
        At p = 0.01 off by 5 % of p for one weight, 0.6 % for five equal ones; O(r) a step of a
        root search.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    largest = float(weights.max(initial=0.0))
    if x <= NEAR_ZERO * largest:
        return 1.0
    if x >= FAR * largest:
        return 0.0
    weights = weights[weights > LEAST * largest] / largest
    x /= largest

    def slope(u: float) -> float:
        return float((weights / (1.0 - weights + u * weights)).sum())

    # u = 1 - 2 s, in logarithms, keeps its digits where s comes near its end, 1/2.
    ends = math.log(0.5 / x), math.log(1.0 + 2.0 * len(weights) / x)  # well outside on both sides
    u = math.exp(brentq(lambda v: slope(math.exp(v)) - x, *ends, xtol=1e-14))
    s, rests = (1.0 - u) / 2.0, 1.0 - weights + u * weights
    w = math.copysign(math.sqrt(max(0.0, 2.0 * s * x + float(np.log(rests).sum()))), s)
    if abs(w) < NEAR_MEAN:
        skewness = 8.0 * float((weights**3).sum()) / (2.0 * float((weights**2).sum())) ** 1.5
        return float(ndtr(-w - skewness / 6.0))
    v = s * math.sqrt(2.0 * float(((weights / rests) ** 2).sum()))
    return float(ndtr(-w - math.log(v / w) / w))


def quantile(p: float, weights: FloatArray) -> float:
    r"""The x that :math:`\sum_i \lambda_i \chi^2_1` exceeds with probability p.

    Parameters
    ----------
    p : float
        Between 0 and 1, both excluded.
    weights : array of shape (r,)
        The :math:`\lambda_i`, not negative.

    Returns
    -------
    x : float
        Where :func:`tail` is p; 0 when all weights are.
    """
    from scipy.optimize import brentq

    mean = float(weights.sum())
    if mean <= 0.0:
        return 0.0
    low = high = mean
    while tail(high, weights) > p:
        high *= 2.0
    while tail(low, weights) < p:
        low /= 2.0
    return float(brentq(lambda x: tail(x, weights) - p, low, 2.0 * high, rtol=1e-9))
