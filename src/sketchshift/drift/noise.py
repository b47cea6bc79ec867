r"""What sampling alone does to a sketch: the law of the distance between two, without drift.

With few assumptions, z of n independent rows is nearly Gaussian around its limit, with the
covariance of :math:`h(x) = \phi(x) - z` divided by n.
The squared distance of two sketches is then a weighted sum of chi-squares. The weights are the
eigenvalues of that covariance. A plan for drift has measured their shape (:class:`PlannedNoise`);
for other specs they are taken over points that stand for the rows (:class:`SamplingNoise`). The
trace is what the sketch knows exactly. Private sketches add the noise of their release.

Symbols
-------
n, d, m   points drawn, dimension, frequencies
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from sketchshift._typing import ComplexArray, Float32Array, FloatArray
from sketchshift.decoders.mixture import Points
from sketchshift.decoders.problem import Problem
from sketchshift.decoders.shares import ClusterCells, ClusterSketches
from sketchshift.features import Spectrum
from sketchshift.features.plan import measure_spectrum
from sketchshift.kernels import select_kernel
from sketchshift.sketch import AnySketch, Sketch

__all__ = [
    "FREQUENCIES",
    "AddedNoise",
    "Noise",
    "NullLaw",
    "PlannedNoise",
    "SamplingNoise",
    "quantile",
    "ratio_quantile",
    "ratio_tail",
    "spectrum_of_cells",
    "tail",
    "trace_of",
]

CORRECTIONS = 2  # of a quantile, by the ratio of two tails that is nearly constant
POINTS = 1_000
FREQUENCIES = 2_048  # whose features are in memory at once


@dataclass(frozen=True, eq=False)
class NullLaw:
    r"""The law of the squared distance of two sketches without drift.

    That of :math:`s + \sum_i w_i \chi^2_{f_i}`.

    Attributes
    ----------
    weights, freedoms : array of shape (r,)
        The :math:`w_i` and :math:`f_i`.
    shift : float
        The s.
    is_measured : bool
        Whether the weights are worth more than the saddlepoint approximation, which is off by up
        to 11 % of p: then the characteristic function is inverted, down to p = 1e-6.
    """

    weights: FloatArray
    freedoms: FloatArray
    shift: float = 0.0
    is_measured: bool = False

    @property
    def mean(self) -> float:
        """Of the squared distance."""
        return self.shift + float((self.weights * self.freedoms).sum())

    def tail(self, squared: float) -> float:
        """The probability of a squared distance beyond this."""
        return self._tail(squared - self.shift)

    def quantile(self, p: float) -> float:
        """What the squared distance exceeds with probability p."""
        level = p
        x = quantile(p, self.weights, self.freedoms)
        for _ in range(CORRECTIONS if x > 0.0 else 0):
            level = min(max(level * p / self._tail(x), 1e-300), 0.9)
            x = quantile(level, self.weights, self.freedoms)
        return max(0.0, self.shift + x)

    def _tail(self, x: float) -> float:
        found = tail(x, self.weights, self.freedoms)
        if self._inversion is None or not LEAST_INVERTED < found < 1.0:
            return found
        inverted = self._inversion.tail(x)
        return inverted if inverted > LEAST_INVERTED else found

    @cached_property
    def _inversion(self) -> _Inversion | None:
        return _Inversion.of(self.weights, self.freedoms) if self.is_measured else None


class Noise(Protocol):
    """Who knows how sketches of one population differ."""

    def null(self, a: AnySketch, b: AnySketch, counts: tuple[float, float]) -> NullLaw:
        """The law of the squared distance of two sketches of so many independent rows."""


@dataclass(frozen=True)
class PlannedNoise:
    r"""The noise whose shape the plan has measured, and whose size is that of the sketches.

    With :math:`\tau = \frac{n}{n - 1} (1 - |z|^2)`, whose mean is the trace of the covariance, of
    a, of b and of both, and :math:`\lambda_i` the shares of the spectrum,

    .. math::

        \|z_a - z_b\|^2 \approx \frac{\tau_a}{n_a} + \frac{\tau_b}{n_b}
        + c\, \tau \sum_i \lambda_i (\chi^2_1 - 1), \quad
        c^2 = \frac{1}{n_a (n_a - 1)} + \frac{1}{n_b (n_b - 1)} + \frac{2}{n_a n_b} .

    The first two terms make the mean exact for any counts (they leave the unbiased estimate of the
    squared MMD); mean and variance of the third are exact for all of them, too.

    Attributes
    ----------
    spectrum : Spectrum
        That of the spec.
    """

    spectrum: Spectrum

    def null(self, a: AnySketch, b: AnySketch, counts: tuple[float, float]) -> NullLaw:
        """See :class:`Noise`: O(m)."""
        n_a, n_b = counts
        n, z_a, z_b = n_a + n_b, a.z, b.z
        trace = trace_of((n_a * z_a + n_b * z_b) / n, n)
        mean = sum(
            (trace_of(z, count) if count >= 2.0 else trace) / count
            for z, count in ((z_a, n_a), (z_b, n_b))
        )
        pairs = sum(1.0 / (count * max(count - 1.0, 1.0)) for count in counts)
        size = trace * math.sqrt(pairs + 2.0 / (n_a * n_b))
        rest, freedom = self.spectrum.rest, self.spectrum.freedom
        shares = np.array([*self.spectrum.leading, rest / freedom])
        freedoms = np.array([1.0] * len(self.spectrum.leading) + [freedom])
        shift = mean - size * float(shares @ freedoms)
        return NullLaw(size * shares, freedoms, shift, is_measured=True)


def trace_of(z: ComplexArray, n: float) -> float:
    """That of the covariance of features, from the z of n rows: unbiased."""
    return max(0.0, 1.0 - float(np.vdot(z, z).real)) * n / max(n - 1.0, 1.0)


def spectrum_of_cells(sketch: Sketch, seed: int) -> Spectrum:
    """The shape of the noise of rows that cells have counted, where the plan does not tell it.

    Parameters
    ----------
    sketch : Sketch
        With cells.
    seed : int
        Of the points that are drawn from Gaussians, one a cell.

    Returns
    -------
    spectrum : Spectrum
        Of 1000 points and at most 2048 frequencies: bounded time, whatever d, m and J.
    """
    cells, axes = sketch.cells, sketch.spec.axes
    assert cells is not None
    if axes is not None:
        cells = cells.project(axes)
    rng = np.random.default_rng(seed)
    shares = np.maximum(cells.weights, 0.0)
    which = rng.choice(len(shares), POINTS, p=shares / shares.sum())
    noise = rng.standard_normal((POINTS, cells.means.shape[1]))
    points = cells.means[which] + np.sqrt(cells.variances[which]) * noise
    first = sketch.spec.prefix(min(FREQUENCIES, sketch.spec.sketch_size))
    features = select_kernel().features(points, first.frequencies.turns)
    return measure_spectrum(np.hstack([features.real, features.imag]))


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
        return cls(rows, gram, _correction(problem, float(np.trace(gram))))

    @cached_property
    def eigenvalues(self) -> FloatArray:
        """Of the covariance of the noise of one row, shape (n,): O(n^3)."""
        return np.asarray(self.correction * np.maximum(np.linalg.eigvalsh(self.gram), 0.0))

    def null(self, a: AnySketch, b: AnySketch, counts: tuple[float, float]) -> NullLaw:
        """See :class:`Noise`."""
        weights = self.law(1.0 / counts[0] + 1.0 / counts[1], AddedNoise.of(a, b))
        return NullLaw(weights, np.ones(len(weights)))

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

    def share_variances(self, clusters: ClusterSketches) -> FloatArray:
        """Variances, of one row, of the shares that are fitted to a sketch, shape (k,)."""
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
    turns: Float32Array

    @classmethod
    def of(cls, problem: Problem, found: Points) -> _Rows:
        step = max(1, len(found.places) // POINTS)
        points, shares = found.places[::step], found.weights[::step]
        return cls(problem.along_axes(points), shares / shares.sum(), problem.turns)

    def noise(self) -> Iterator[tuple[slice, ComplexArray, ComplexArray]]:
        """Some of the frequencies at a time, with h(x) times the roots of the shares, and z."""
        roots = np.sqrt(self.shares)[:, None]
        m = self.turns.shape[1]
        for first in range(0, m, FREQUENCIES):
            part = slice(first, min(first + FREQUENCIES, m))
            turns = np.ascontiguousarray(self.turns[:, part])
            features = select_kernel().features(self.points, turns)
            features *= math.sqrt((part.stop - first) / m)
            z = self.shares @ features
            yield part, roots * (features - z), z


def _correction(problem: Problem, trace: float) -> float:
    """The trace, which the sketch knows exactly, 1 - |z|^2, over that of the points."""
    n = problem.sketch.count
    if not trace > 0.0:
        return 1.0
    squared_norm = max(0.0, problem.norm**2 - problem.noise_floor)
    return n / max(n - 1, 1) * max(0.0, 1.0 - squared_norm) / trace


# Sums of weighted chi-squares: the law of a squared norm of a Gaussian vector.
#
# Takes the eigenvalues of a covariance; hands tail probabilities and quantiles. The saddlepoint
# approximation (Kuonen 1999) keeps its relative accuracy far out in the tail, where matching a few
# moments loses it and simulation has no draws.

NEAR_MEAN = 1e-4  # the formula is 0 / 0 at the mean: below this its limit is taken
LEAST_RATIO = 1.1  # ratios up to this are those that chance has half of the time
NEAR_ZERO, FAR = 1e-200, 1e8  # in the largest weight: the tail is 1 or 0 to the last bit
LEAST = 1e-12  # share of the largest weight below which one is rounding


def tail(x: float, weights: FloatArray, freedoms: FloatArray | None = None) -> float:
    r"""The probability :math:`P(\sum_i \lambda_i \chi^2_{f_i} > x)`.

    With :math:`K(s) = -\frac12 \sum_i f_i \log(1 - 2 s \lambda_i)` and :math:`K'(s) = x`, the
    normal tail at :math:`w + \log(v / w) / w`, where :math:`w = \pm\sqrt{2 (s x - K(s))}` and
    :math:`v = s \sqrt{K''(s)}`.

    Parameters
    ----------
    x : float
        Where.
    weights : array of shape (r,)
        The :math:`\lambda_i`, not negative.
    freedoms : array of shape (r,) or None
        The :math:`f_i`, positive; None takes 1.

    Returns
    -------
    p : float
        At p = 0.01 off by 5 % of p for one weight, 0.6 % for five equal ones; O(r) a step of a
        root search.
    """
    from scipy.optimize import brentq

    law = _Saddlepoints.of(weights, freedoms)
    if x <= NEAR_ZERO * law.largest:
        return 1.0
    if x >= FAR * law.largest:
        return 0.0
    x /= law.largest
    # u = 1 - 2 s, in logarithms, keeps its digits where s comes near its end, 1/2.
    ends = law.ends(x)
    return law.tail(math.exp(brentq(lambda v: law.slope(math.exp(v)) - x, *ends, xtol=1e-14)), x)


def quantile(p: float, weights: FloatArray, freedoms: FloatArray | None = None) -> float:
    r"""The x that :math:`\sum_i \lambda_i \chi^2_{f_i}` exceeds with probability p.

    Parameters
    ----------
    p : float
        Between 0 and 1, both excluded.
    weights : array of shape (r,)
        The :math:`\lambda_i`, not negative.
    freedoms : array of shape (r,) or None
        The :math:`f_i`, positive; None takes 1.

    Returns
    -------
    x : float
        Where :func:`tail` is p; 0 when all weights are. One root search, over the saddlepoint.
    """
    from scipy.optimize import brentq

    if not float(weights.max(initial=0.0)) > 0.0:
        return 0.0
    law = _Saddlepoints.of(weights, freedoms)

    def excess(v: float) -> float:
        u = math.exp(v)
        return law.tail(u, law.slope(u)) - p

    low, high = -1.0, 1.0  # the tail falls with x, and x with u
    while excess(low) > 0.0:
        low *= 2.0
    while excess(high) < 0.0:
        high *= 2.0
    return law.largest * law.slope(math.exp(brentq(excess, low, high, xtol=1e-14)))


@dataclass(frozen=True, eq=False)
class _Saddlepoints:
    """A sum of weighted chi-squares in units of its largest weight, by u = 1 - 2 s."""

    largest: float
    weights: FloatArray
    freedoms: FloatArray

    @classmethod
    def of(cls, weights: FloatArray, freedoms: FloatArray | None) -> _Saddlepoints:
        freedoms = np.ones(len(weights)) if freedoms is None else freedoms
        largest = float(weights.max(initial=0.0))
        kept = weights > LEAST * largest
        return cls(largest, weights[kept] / (largest or 1.0), freedoms[kept])

    def ends(self, x: float) -> tuple[float, float]:
        """Logarithms of u well outside on both sides of where the slope is x."""
        least = min(1.0, float(self.freedoms[np.argmax(self.weights)]))
        return math.log(0.5 * least / x), math.log(1.0 + 2.0 * float(self.freedoms.sum()) / x)

    def slope(self, u: float) -> float:
        """K', of which the saddlepoint is where it is x."""
        rests = 1.0 - self.weights + u * self.weights
        return float((self.freedoms * (self.weights / rests)).sum())

    def tail(self, u: float, x: float) -> float:
        """The probability beyond x, whose saddlepoint is u."""
        from scipy.special import ndtr

        weights, freedoms = self.weights, self.freedoms
        s, rests = (1.0 - u) / 2.0, 1.0 - weights + u * weights
        logarithms = float((freedoms * np.log(rests)).sum())
        w = math.copysign(math.sqrt(max(0.0, 2.0 * s * x + logarithms)), s)
        if abs(w) < NEAR_MEAN:
            squares, cubes = (float((freedoms * weights**power).sum()) for power in (2, 3))
            return float(ndtr(-w - 8.0 * cubes / (2.0 * squares) ** 1.5 / 6.0))
        v = s * math.sqrt(2.0 * float((freedoms * (weights / rests) ** 2).sum()))
        return float(ndtr(-w - math.log(v / w) / w))


LEAST_INVERTED = 1e-6  # p below which the digits of an integral are lost
DECAY = 20.0  # the integral is cut where its integrand is e^-20
MOST_NUMBERS = 2**17  # of the grid: with few weights the integrand falls too slowly


@dataclass(frozen=True, eq=False)
class _Inversion:
    r"""Tails of a sum of weighted chi-squares by its characteristic function (Imhof 1961).

    .. math::

        P(Q > x) = \frac12 + \frac1\pi \int_0^\infty \frac{\sin \theta(u)}{u \rho(u)} du, \quad
        \theta = \tfrac12 \sum_i f_i \arctan(\lambda_i u) - \tfrac12 x u, \quad
        \rho = \prod_i (1 + \lambda_i^2 u^2)^{f_i / 4}

    as the sum over the midpoints of a grid (Davies 1973), whose step leaves out what is beyond
    twice the reach.
    """

    reach: float
    grid: FloatArray
    angles: FloatArray
    factors: FloatArray

    @classmethod
    def of(cls, weights: FloatArray, freedoms: FloatArray) -> _Inversion | None:
        """None where the sum would be too long."""
        largest = float(weights.max(initial=0.0))
        if not largest > 0.0:
            return None
        deviation = math.sqrt(2.0 * float(freedoms @ weights**2))
        reach = float(freedoms @ weights) + 12.0 * deviation + 40.0 * largest
        step, end = math.pi / reach, 1.0 / deviation
        while float(freedoms @ np.log1p((weights * end) ** 2)) < 4.0 * DECAY:
            end *= 1.25
            if end / step * len(weights) > MOST_NUMBERS:
                return None
        grid: FloatArray = np.asarray(step * (np.arange(math.ceil(end / step)) + 0.5), np.float64)
        scaled = grid[:, None] * weights
        angles = np.asarray(0.5 * np.arctan(scaled) @ freedoms)
        sizes = np.exp(0.25 * np.log1p(scaled**2) @ freedoms)
        factors: FloatArray = step / (math.pi * grid * sizes)
        return cls(reach, grid, angles, factors)

    def tail(self, x: float) -> float:
        """The probability beyond x, to about 1e-9: O(grid); 0 beyond reach."""
        if x >= self.reach:
            return 0.0
        return float(0.5 + np.sin(self.angles - 0.5 * x * self.grid) @ self.factors)


# The same beside an estimate of its own size: what Student's t is to the normal law.


def ratio_tail(c: float, weights: FloatArray, freedom: int) -> float:
    r"""The probability of a squared distance c times the mean of some like it.

    With n the freedom,

    .. math:: P\Big(\sum_i \lambda_i \chi^2_1 > \frac{c}{n} \sum_i \lambda_i \chi^2_n\Big)

    by the saddlepoint of the difference, as in :func:`tail`. With one weight, that of F(1, n).

    Parameters
    ----------
    c : float
        The ratio.
    weights : array of shape (r,)
        The :math:`\lambda_i`, positive.
    freedom : int
        How many distances the mean is of, n.

    Returns
    -------
    p : float
        For c above 1.1; 0.5 below, where nobody asks for more. For one weight too large by up to
        17 % of p at n = 2 and 12 % at n = 11, down to p = 1e-6; for six equal ones by 1 %.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    if c <= LEAST_RATIO:
        return 0.5
    up = weights / float(weights.max())
    down, n = c / freedom * up, float(freedom)

    def slope(s: float) -> float:
        return float((up / (1.0 - 2.0 * s * up)).sum() - n * (down / (1.0 + 2.0 * s * down)).sum())

    s = brentq(slope, 0.0, 0.5 * (1.0 - 1e-13), xtol=1e-15)
    of_up, of_down = 1.0 - 2.0 * s * up, 1.0 + 2.0 * s * down
    value = -0.5 * float(np.log(of_up).sum() + n * np.log(of_down).sum())
    curve = 2.0 * float(np.square(up / of_up).sum() + n * np.square(down / of_down).sum())
    w, v = math.sqrt(-2.0 * value), s * math.sqrt(curve)
    return float(ndtr(-(w + math.log(v / w) / w)))


def ratio_quantile(p: float, weights: FloatArray, freedom: int) -> float:
    """The ratio whose :func:`ratio_tail` is p: one root search."""
    from scipy.optimize import brentq

    def excess(v: float) -> float:
        return math.log(max(ratio_tail(math.exp(v), weights, freedom), 1e-300) / p)

    low, high = math.log(LEAST_RATIO) + 1e-9, 1.0
    while excess(high) > 0.0:
        high *= 2.0
    return math.exp(brentq(excess, low, high, xtol=1e-10))
