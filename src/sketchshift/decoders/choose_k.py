r"""The number of clusters, from the sketch alone.

Takes the points that the turnkey decoder draws from its fits; hands a :class:`KCurve`. For each
k the points are cut into k cells, and every cell stands for a Gaussian that is not fitted any
further. Their sketch comes near the true one when cells are clusters: fewer cells cover two
clusters with one Gaussian, more cut a cluster into halves that are not Gaussian. Where there are no
clusters the score falls without end, and says nothing: the choice is then one of three numbers at
which the share of the variance explained slackens.

Symbols
-------
k, d, m   cells, dimension, frequencies
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sketchshift._typing import ComplexArray, FloatArray, IntArray
from sketchshift._validation import check_integer
from sketchshift.decoders.decoder import KCurve
from sketchshift.decoders.gaussians import GaussianFitter
from sketchshift.decoders.mixture import Mixture, Points, wave_of
from sketchshift.decoders.paper.refine import merge_nearest
from sketchshift.decoders.points import KMeans, lloyd_from
from sketchshift.decoders.problem import Problem
from sketchshift.features import SketchSpec
from sketchshift.features.plan import MAX_CLUSTERS, clusters_served
from sketchshift.kernels import select_kernel
from sketchshift.metrics import assign

__all__ = ["TOLERANCE", "ChoiceOfK", "curve_of_one_point", "most_clusters"]

TOLERANCE = 1.025
"""Scores within this factor of the least are as good."""


@dataclass(frozen=True)
class ChoiceOfK:
    """How the number of clusters is chosen.

    Parameters
    ----------
    fewest, most : int
        Limits of the largest k that is looked at, unless it is given.
    n_points, points_per_cluster : int
        Points that are cut into cells, at least.
    n_starts, n_steps : int
        Of the first k-means, and of Lloyd's algorithm after two cells were merged.
    n_frequencies : int
        At most; they are independent, so that the first ones are like all.
    full : int
        Columns up to which Gaussians have axes of their own.
    growth : float
        The power of k in the score.
    tolerance : float
        The least k within this factor of the least score is chosen.
    noise_factor : float
        Of the noise of a release: Gaussians fit it too, so that cells are further off than that.
    gain : float
        A natural number of clusters has a score better than one cluster by this factor.
    knee : float
        Its score is better than with one cluster less, times better than with the most, by this.
    room, steep : float
        Where the most are not more than ``room`` times as many, the curve has hardly gone on: then
        its score must be better than with one cluster less by the factor ``steep``.
    finest : int
        The alternatives to a natural number are up to so many.
    """

    fewest: int = 2
    most: int = 100
    n_points: int = 3_000
    points_per_cluster: int = 40
    n_starts: int = 3
    n_steps: int = 4
    n_frequencies: int = 5_000
    full: int = 64
    growth: float = 0.25
    tolerance: float = TOLERANCE
    noise_factor: float = 10.0
    gain: float = 1.15
    knee: float = 1.2
    room: float = 1.25
    steep: float = 1.5
    finest: int = 20

    def most_clusters(self, spec: SketchSpec, max_clusters: int | None) -> int:
        """The largest k to look at: as asked for, or what so many frequencies can tell apart."""
        if max_clusters is not None:
            return check_integer("decode", "max_clusters", max_clusters, 1, MAX_CLUSTERS)
        return min(max(clusters_served(spec), self.fewest), self.most)

    def choose(
        self,
        problem: Problem,
        points: Points,
        max_clusters: int,
        seed: int,
        kmeans: KMeans,
        *,
        exact: bool,
    ) -> KCurve:
        r"""Compare the sketches of 1, 2, ... Gaussians with that of the data.

        With r_k the misfit of k Gaussians and nu^2 the variance of a sketch of so many random
        rows (with ten times that of the noise of a private release), the choice is the least k
        whose score is within 2.5 % of the least, if the curve has a bend there (``is_natural``);
        otherwise the middle one of three ``alternatives``.

        .. math:: \mathrm{score}_k = k^{1/4} \sqrt{r_k^2 + \nu^2}

        Parameters
        ----------
        problem : Problem
            The sketch.
        points : Points
            They stand for the rows, in an order of which every part is like the whole.
        max_clusters : int
            The largest k.
        seed : int
            Of the k-means.
        kmeans : KMeans
            That of the decoder.
        exact : bool
            Whether the points are the distinct rows themselves: then there is no noise.

        Returns
        -------
        curve : KCurve
            O(k^2 d^2) for each of 5000 frequencies, and O(n k^2 d) for n points.
        """
        rule = _Misfit(problem, self)
        found = [
            rule.of_cells(points, assign(points.places, centers), len(centers))
            for centers in self.nested_centers(points, max_clusters, seed, kmeans)
        ]
        misfit, within = np.array(found[::-1]).T
        numbers = np.arange(1, max_clusters + 1)
        noise = 0.0 if exact else rule.noise()
        score = numbers**self.growth * np.sqrt(misfit**2 + noise)
        chosen = int(np.argmax(score <= self.tolerance * score.min())) + 1
        inertia = within / (within[0] or 1.0)
        is_natural, others = exact or self.is_natural(score, chosen), self.alternatives(inertia)
        if not is_natural:
            chosen = others[len(others) // 2]
        criterion = "distinct points" if exact else "misfit" if is_natural else "variance"
        return KCurve(numbers, misfit, score, inertia, chosen, criterion, is_natural, others)

    def is_natural(self, score: FloatArray, k: int) -> bool:
        r"""Whether the curve of scores, shape (k_max,), singles k out of its neighbours.

        One cluster always is: more of them explain nothing. Other numbers have to explain more than
        one cluster does, and to lie where the curve bends: it falls before them, by how much one
        cluster less is worse, and does not fall after them.

        .. math:: \frac{s_{k-1}}{s_k} \cdot \frac{s_{k_{\max}}}{s_k} \ge 1.2
        """
        if k == 1:
            return True
        most, at = len(score), score[k - 1]
        if score[0] < self.gain * at:
            return False
        before, after = score[k - 2] / at, score[-1] / at
        if most <= self.room * k:
            return bool(before >= self.steep)
        return bool(before * after >= self.knee)

    def alternatives(self, inertia: FloatArray) -> tuple[int, ...]:
        r"""A coarse, a medium and a fine number of clusters, from the inertia of shape (k_max,).

        Each is the number, of those that come into question, after which the curve slackens most:
        with V_k the inertia, where this is largest.

        .. math::
            \frac{\log V_{k-1} - \log V_k}{\log k - \log (k-1)}
            - \frac{\log V_k - \log V_{k+1}}{\log (k+1) - \log k}

        The medium one is taken from the middle third of the numbers from 2 to 20, counted in
        logarithms; the others are at least 1.5 times smaller or larger. Where the most clusters are
        few, there are fewer than three.
        """
        numbers = np.arange(1, len(inertia) + 1)
        left = np.log(np.maximum(inertia, np.finfo(np.float64).tiny))
        falls = -np.diff(left) / np.diff(np.log(numbers))
        bends = np.append(falls[:-1] - falls[1:], -np.inf)  # of 2, 3, ..., k_max

        def sharpest(low: float, high: float) -> list[int]:
            some = numbers[1 : self.finest]
            some = some[(some >= low) & (some <= high)]
            return [int(some[bends[some - 2].argmax()])] if len(some) else []

        third = (min(len(inertia), self.finest) / 2.0) ** (1.0 / 3.0)
        medium = sharpest(2.0 * third, 2.0 * third**2) or sharpest(2, self.finest)
        coarse = [n for k in medium for n in sharpest(2, k / 1.5)]
        fine = [n for k in medium for n in sharpest(1.5 * k, self.finest)]
        return (*coarse, *medium, *fine)

    def nested_centers(
        self, points: Points, k: int, seed: int, kmeans: KMeans
    ) -> Iterator[FloatArray]:
        """Centers of k cells, of k - 1, ..., of one: two are merged, and all settle again."""
        n = max(self.n_points, self.points_per_cluster * k)
        step = max(1, len(points.places) // n)
        some = Points(points.places[::step], points.weights[::step])
        cells = kmeans.cut(some, k, seed, n_starts=self.n_starts, has_swaps=True)
        yield cells.centers
        for n in range(k - 1, 0, -1):
            merged = merge_nearest(Mixture(cells.shares(some), cells.centers), n)
            cells = lloyd_from(some, n, self.n_steps, merged.means)
            yield cells.centers


def most_clusters(spec: SketchSpec, max_clusters: int | None) -> int:
    """The largest k that the turnkey decoder looks at, unless other constants are chosen."""
    return ChoiceOfK().most_clusters(spec, max_clusters)


def curve_of_one_point() -> KCurve:
    """The curve of rows that are all equal: one cluster and nothing left."""
    numbers, none, all_ = np.ones(1, dtype=np.int64), np.zeros(1), np.ones(1)
    return KCurve(numbers, none, none, all_, 1, "distinct points")


class _Misfit:
    """What Gaussians leave of the sketch, as a share of it, at the first frequencies."""

    def __init__(self, problem: Problem, choice: ChoiceOfK) -> None:
        m, n = len(problem.z), choice.n_frequencies
        self.turns = np.ascontiguousarray(problem.turns[:, :n])
        self.zeta: ComplexArray = problem.z[:n] * math.sqrt(m)
        weights = GaussianFitter(problem).weights[:n]
        self.weights = weights / (weights @ np.abs(self.zeta) ** 2 or 1.0)
        self.count = max(1, problem.sketch.count)  # noise may have left less than half a row
        self.floor = choice.noise_factor * problem.noise_floor
        self.full = choice.full

    def noise(self) -> float:
        """Expected square of the difference between sketches of the rows and of their law."""
        variances = np.maximum(1.0 - np.abs(self.zeta) ** 2, 0.0) / self.count
        return float(self.weights @ (variances + self.floor))

    def of_cells(self, points: Points, labels: IntArray, k: int) -> tuple[float, float]:
        """Misfit of k cells as Gaussians, and the inertia within them.

        The geometric mean of two: of Gaussians with the covariances of the cells,
        which fit all shapes, in many columns two clusters at once too; and of round ones, which
        tell those apart. A single one has its shape in both.
        """
        shares, means, covariances = _moments(points, labels, k, self.full)
        d, m = self.turns.shape
        sizes = np.array([S.trace() if S.ndim == 2 else S.sum() for S in covariances])
        omega = 2.0 * math.pi * self.turns.astype(np.float64)
        waves = select_kernel().features(means, self.turns) * math.sqrt(m)
        sums = np.zeros((2, m), dtype=np.complex128)
        for share, S, size, wave in zip(shares, covariances, sizes, waves, strict=True):
            shapes = (S, np.full(d, size / d) if k > 1 else S)
            for j, shape in enumerate(shapes):
                sums[j] += share * wave_of(shape, omega, wave)
        squares = np.abs(self.zeta - sums) ** 2 @ self.weights
        return float(squares.prod()) ** 0.25, float(shares @ sizes)


def _moments(
    points: Points, labels: IntArray, k: int, full: int
) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
    """Shares (k,), means (k, d) and covariances of cells; beyond 64 columns, variances."""
    shares, means, covariances = np.zeros(k), np.zeros((k, points.places.shape[1])), []
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels, minlength=k))
    for i, inside in enumerate(np.split(order, ends[:-1])):
        X, weights = points.places[inside], points.weights[inside]
        shares[i] = weights.sum()
        weights = weights / (shares[i] or 1.0)
        means[i] = weights @ X
        rests = X - means[i]
        is_full = X.shape[1] <= full
        covariances.append((rests.T * weights) @ rests if is_full else weights @ rests**2)
    return shares, means, covariances
