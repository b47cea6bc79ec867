r"""What sampling alone does to a sketch: the law of the distance between two, without drift.

With few assumptions, z of n independent rows is nearly Gaussian around its limit, with the
covariance of :math:`h(x) = \frac{t(x)}{E t} (\phi(x) - z)` divided by n, t being the tilt or 1.
The squared distance of two sketches is then a weighted sum of chi-squares. The weights are the
eigenvalues of that covariance, taken over points that the turnkey decoder draws; its trace is
corrected by what the sketch knows exactly.

Symbols
-------
n, d, m   points drawn, dimension, frequencies
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sketchshift._typing import ComplexArray, Float32Array, FloatArray
from sketchshift.decoders.base import Problem
from sketchshift.decoders.reconstruction import Reconstruction
from sketchshift.decoders.shares import ClusterAtoms
from sketchshift.drift.quadratic import quantile, tail
from sketchshift.kernels import select_kernel
from sketchshift.sketch import Sketch

__all__ = ["SamplingNoise"]

POINTS = 1_000
FREQUENCIES = 2_048  # whose features are in memory at once


@dataclass(frozen=True, eq=False)
class SamplingNoise:
    """The noise that one row of a population has in a sketch.

    Attributes
    ----------
    rows : _Rows
        Points of the population.
    eigenvalues : array of shape (n,)
        Of the covariance of the noise of one row, corrected.
    correction : float
        What they, and all variances, were multiplied by.
    """

    rows: _Rows
    eigenvalues: FloatArray
    correction: float

    @classmethod
    def of(cls, problem: Problem, points: Reconstruction) -> SamplingNoise:
        """Of the rows behind a sketch, for which these points stand: O(n m d + n^2 m + n^3)."""
        rows = _Rows.of(problem, points)
        gram = np.zeros((len(rows.points),) * 2)
        for _, features in rows.noise():
            gram += features.real @ features.real.T + features.imag @ features.imag.T
        trace = float(np.trace(gram))
        correction = _correction(problem, rows, trace)
        values = np.maximum(np.linalg.eigvalsh(gram), 0.0)
        return cls(rows, correction * values, correction)

    @property
    def mean(self) -> float:
        """Mean squared norm of the noise of one row."""
        return float(self.eigenvalues.sum())

    def p_value(self, squared_distance: float, scale: float) -> float:
        """The probability of a larger squared distance; ``scale`` is the sum of 1 / n."""
        return tail(squared_distance / scale, self.eigenvalues)

    def threshold(self, false_alarm: float, scale: float) -> float:
        """The distance that is exceeded with this probability."""
        return math.sqrt(scale * quantile(false_alarm, self.eigenvalues))

    def share_variances(self, atoms: ClusterAtoms) -> FloatArray:
        """Variances, of one row, of the shares that are fitted to a sketch, shape (k,)."""
        correlations = np.zeros((len(self.rows.points), len(atoms.weights)))
        for part, features in self.rows.noise():
            correlations += (features @ atoms.atoms[:, part].conj().T).real
        changes = atoms.response(correlations)
        return np.asarray(self.correction * (changes**2).sum(axis=0))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Points of a population in normalised coordinates, and how much each weighs in z."""

    points: FloatArray
    shares: FloatArray
    tilts: FloatArray
    turns: Float32Array

    @classmethod
    def of(cls, problem: Problem, found: Reconstruction) -> _Rows:
        step = max(1, len(found.points) // POINTS)
        points, shares = found.points[::step], found.weights[::step]
        tilt = problem.sketch.spec.tilt
        tilts = np.ones(len(points)) if tilt is None else tilt((points**2).sum(axis=1))
        return cls(points, shares / shares.sum(), tilts, problem.turns)

    def noise(self) -> Iterator[tuple[slice, ComplexArray]]:
        """The h(x) times the roots of the shares, at some of the frequencies at a time."""
        weights = self.shares * self.tilts
        mean_tilt = weights.sum()
        factors = (np.sqrt(self.shares) * self.tilts / mean_tilt)[:, None]
        m = self.turns.shape[1]
        for first in range(0, m, FREQUENCIES):
            part = slice(first, min(first + FREQUENCIES, m))
            turns = np.ascontiguousarray(self.turns[:, part])
            features = select_kernel().features(self.points, turns)
            features *= math.sqrt((part.stop - first) / m)
            yield part, factors * (features - weights @ features / mean_tilt)


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
        return unbiased * max(0.0, 1.0 - problem.norm**2) / trace
    assert isinstance(sketch, Sketch)  # private ones have no tilt
    mean, covariance = problem.outline
    known = 0.5 + (float(np.trace(covariance)) + float(mean @ mean)) / (2.0 * tilt.radius**2)
    drawn = float(rows.shares @ rows.tilts**2) / float(rows.shares @ rows.tilts) ** 2
    return unbiased * known / sketch.mean_tilt / drawn
