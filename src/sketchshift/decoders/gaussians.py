"""Fits of Gaussians to a sketch, and two searches for good ones: coarse to fine, or stochastic.

Takes a :class:`Problem`; hands fits to ``turnkey``. The Gaussians of a fit have axes along the
columns and are more than there are clusters: they stand for the whole distribution, not for
centroids.

Symbols
-------
T, d, m   Gaussians, dimension, frequencies
k         clusters
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import ClassVar

import numpy as np

from sketchshift._threads import pool_of_threads
from sketchshift._typing import FloatArray
from sketchshift.decoders.mixture import Mixture, Points, as_shares
from sketchshift.decoders.points import KMeans, Partition, draw_places, lloyd_from
from sketchshift.decoders.problem import Problem
from sketchshift.errors import DataError
from sketchshift.features.stream import Purpose, normal_quantile, uniforms
from sketchshift.kernels import Matcher, processors, select_kernel

__all__ = ["CoarseToFine", "GaussianFit", "GaussianFitter", "Search", "Stochastic", "in_threads"]

TINY = 1e-12  # share of the total variance below which an axis is flat
NUMBERS = 4_000_000  # in an array, at most


@dataclass(frozen=True, eq=False)
class GaussianFit(Mixture):
    """A mixture of Gaussians with axes along the columns, and how well it fits a sketch.

    Attributes
    ----------
    weights : array of shape (T,)
        Not negative; they add up to about 1.
    means, covariances : arrays of shape (T, d)
        Centers, and variances along the axes.
    loss : float
        Weighted misfit and penalty that were reached.
    """

    covariances: FloatArray
    loss: float = math.inf

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations along the axes, shape (T, d)."""
        return np.sqrt(self.covariances)


@dataclass(frozen=True, eq=False)
class GaussianFitter:
    r"""Lowers the misfit of Gaussians at the frequencies up to a cut, moments kept right.

    .. math::

        \sum_{|\omega_j| \le \mathrm{cut}} w_j \Big| \zeta_j - \sum_t \alpha_t
            e^{\mathrm i \langle \omega_j, c_t \rangle - \frac12 \sum_l \omega_{jl}^2 s_{tl}^2}
            \Big|^2 + 10^{-2} P(\alpha, c, s),
        \qquad w_j \propto 1 / \max(|\omega_j|, \sqrt d / \mathrm{high})

    with P the penalty of mass, mean and covariance that differ from those of the sketch.

    Parameters
    ----------
    problem : Problem
        The sketch to fit.
    penalty : float
        Strength of the exact moments beside the misfit.
    """

    problem: Problem
    penalty: float = 1e-2
    _lock: Lock = field(default_factory=Lock, init=False)  # fits run in threads

    @cached_property
    def norms(self) -> FloatArray:
        """Lengths of the frequencies, shape (m,)."""
        norms: FloatArray = (
            2.0 * math.pi * np.linalg.norm(self.problem.turns.astype(np.float64), axis=0)
        )
        return norms

    @cached_property
    def weights(self) -> FloatArray:
        """High frequencies are many and noisy; below the range of bandwidths all are alike."""
        high = self.problem.sketch.spec.bandwidths[1]
        weights: FloatArray = 1.0 / np.maximum(
            self.norms, math.sqrt(len(self.problem.turns)) / high
        )
        of_law = self.problem.frequency_weights
        return weights if of_law is None else weights * of_law

    @cached_property
    def _matchers(self) -> dict[float, Matcher]:
        return {}

    def _matcher(self, cut: float) -> Matcher:
        """The misfit at the frequencies up to ``cut``; made once for all fits."""
        with self._lock:
            if cut not in self._matchers:
                below = self.norms <= cut
                z = self.problem.z[below] * math.sqrt(len(self.norms))
                weights = self.weights[below] / self.weights[below].sum()
                turns = np.ascontiguousarray(self.problem.turns[:, below])
                self._matchers[cut] = select_kernel().matcher(turns, z, weights)
            return self._matchers[cut]

    def fit(self, start: GaussianFit, iterations: int, cut: float = math.inf) -> GaussianFit:
        """Descend from a start: O(T m d) an iteration."""
        mean, covariance = self.problem.outline
        loss, weights, means, deviations = self._matcher(cut).descend(
            start.weights,
            start.means,
            start.deviations,
            mean=mean,
            covariance=covariance,
            strength=self.penalty if self.problem.moments is not None else 0.0,
            iterations=iterations,
            floor=self.problem.noise_floor,
        )
        return GaussianFit(weights, means, deviations**2, loss)

    def start(self, n_components: int, seed: int, first: int) -> GaussianFit:
        """Equal Gaussians drawn from the sketch's own mean and half of its covariance.

        Parameters
        ----------
        n_components : int
            T.
        seed : int
            Of the decoder.
        first : int
            How many places of the seed's stream to leave out: other starts than the first.
        """
        mean, covariance = self.problem.outline
        d = len(mean)
        j = np.arange(first, first + n_components)
        normals = normal_quantile(uniforms(seed, Purpose.START, j, d))
        variances = np.diagonal(covariance)
        deviations = np.sqrt(0.5 * np.maximum(variances, TINY * variances.sum()))
        places = mean + normals @ _square_root(covariance) * math.sqrt(0.5)
        weights = np.full(n_components, 1.0 / n_components)
        return GaussianFit(weights, places, np.tile(deviations**2, (n_components, 1)))


def _square_root(covariance: FloatArray) -> FloatArray:
    """Symmetric square root; of what is known, where only the diagonal is."""
    known = np.where(np.isnan(covariance), 0.0, covariance)
    values, vectors = np.linalg.eigh(known)
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


# The searches.

Report = Callable[[GaussianFit], None]


@dataclass(frozen=True)
class Search(ABC):
    """Gives several fits of comparable loss, to be pooled, and says what is drawn from them.

    Parameters
    ----------
    loss_ratio : float
        Fits within this factor of the least loss are good.
    points_per_cluster : int
        Points drawn from the fits, for each cluster.
    """

    loss_ratio: float = 4.0
    points_per_cluster: int = 200
    finds_points: ClassVar[bool]
    """Whether Gaussians shrink to points, where rows have few distinct values."""

    @abstractmethod
    def n_fits(self, k: int) -> int:
        """Number of fits that a search for k clusters makes."""

    @abstractmethod
    def find(self, fitter: GaussianFitter, k: int, seed: int, report: Report) -> list[GaussianFit]:
        """The good fits.

        Parameters
        ----------
        fitter : GaussianFitter
            Of the sketch.
        k : int
            Number of clusters that will be asked for.
        seed : int
            Of every random start.
        report : callable
            Called with each fit when it is done.

        Returns
        -------
        fits : list of GaussianFit
            Those with a loss within ``loss_ratio`` times the least.
        """

    @abstractmethod
    def n_points(self, k: int, d: int) -> int:
        """Number of points to draw from the fits."""

    def centers(self, fits: list[GaussianFit], k: int) -> Points | None:
        """Where the last k-means starts from; None leaves that to k-means."""
        return None

    def best(self, fits: list[GaussianFit]) -> list[GaussianFit]:
        """Fits whose loss is near the least, of those that have any weight."""
        weighty = [fit for fit in fits if fit.weights.any()]
        if not weighty:
            msg = (
                "there is nothing to decode: no cluster of any weight is like this sketch, whose "
                "numbers are not those of rows, or all noise. Take it anew, or release it with "
                "less."
            )
            raise DataError(msg)
        least = min(fit.loss for fit in weighty)
        return [fit for fit in weighty if fit.loss <= self.loss_ratio * least]


def in_threads(fit: Callable[[int], GaussianFit], n: int) -> Iterator[GaussianFit]:
    """Fits number 0 to n - 1, in this order and with the same bytes on any number of threads."""
    with pool_of_threads(min(n, processors())) as pool:
        yield from pool.map(fit, range(n))


@dataclass(frozen=True)
class CoarseToFine(Search):
    """Descents over all frequencies, low ones first; idle Gaussians moved, fits regrouped.

    A descent from random Gaussians ends in one of many valleys. Three things help: low frequencies
    first, so that Gaussians find their region before they see detail; those without weight put to
    use where one wide Gaussian does the work of two; and new starts made of what the fits agree
    upon.

    Parameters
    ----------
    loss_ratio : float
        Fits within this factor of the least loss are good.
    points_per_cluster, fewest_points : int
        Points drawn from the fits: for each cluster, and in all at least.
    components : int
        Gaussians for each cluster, in the first fits.
    few : int
        Up to so many clusters there are more fits.
    first, first_many : int
        Number of fits from random starts, for few and for more clusters.
    regroup, regroup_many : tuple of int
        Gaussians for each cluster of the fits that start from the others, likewise.
    step : float
        Ratio of the cuts of the frequencies.
    per_cut, at_last : int
        Iterations for each cut, and with all frequencies.
    idle : float
        Gaussians below this share of the mean weight are moved.
    narrowing : float
        Of regrouped Gaussians: cells cut tails off, descents widen them again.
    """

    fewest_points: int = 10_000
    components: int = 4
    few: int = 20
    first: int = 6
    first_many: int = 2
    regroup: tuple[int, ...] = (2, 3, 4)
    regroup_many: tuple[int, ...] = (2, 3)
    step: float = 2.5
    per_cut: int = 60
    at_last: int = 150
    idle: float = 0.05
    narrowing: float = 0.8
    finds_points: ClassVar[bool] = True

    def n_fits(self, k: int) -> int:
        """See :class:`Search`."""
        n_first, multiples = self._schedule(k)
        return n_first + len(multiples)

    def n_points(self, k: int, d: int) -> int:
        """See :class:`Search`."""
        return max(self.fewest_points, self.points_per_cluster * k)

    def find(self, fitter: GaussianFitter, k: int, seed: int, report: Report) -> list[GaussianFit]:
        """See :class:`Search`; O(k m d) an iteration, about a thousand of them."""
        n_first, multiples = self._schedule(k)
        n_components = self.components * k
        fits: list[GaussianFit] = []

        def add(fit: GaussianFit) -> None:
            fits.append(fit)
            report(fit)

        def descend(i: int) -> GaussianFit:
            start = fitter.start(n_components, seed, i * n_components)
            return self._coarse_to_fine(fitter, start)

        for fit in in_threads(descend, n_first):
            add(fit)
        for multiple in multiples:
            start = self._regroup(self.best(fits), multiple * k, seed)
            add(fitter.fit(start, self.at_last))
        return self.best(fits)

    def _schedule(self, k: int) -> tuple[int, tuple[int, ...]]:
        """Number of first fits, and Gaussians of the regrouped ones in multiples of k."""
        if k <= self.few:
            return self.first, self.regroup
        return self.first_many, self.regroup_many

    def _coarse_to_fine(self, fitter: GaussianFitter, fit: GaussianFit) -> GaussianFit:
        for cut in self._cuts(fitter.norms, fit):
            fit = self._revive(fitter.fit(fit, self.per_cut, cut))
        return fitter.fit(fit, self.at_last)

    def _cuts(self, norms: FloatArray, fit: GaussianFit) -> list[float]:
        """Lengths of frequencies, ascending, below each of which there are enough of them."""
        T, d = fit.means.shape
        enough = max(T * (d + 1) / 8, 50, 0.02 * len(norms))
        cuts, cut = [], float(np.quantile(norms, 0.98)) / self.step
        while np.count_nonzero(norms <= cut) >= enough:
            cuts.append(cut)
            cut /= self.step
        return cuts[::-1]

    def _revive(self, fit: GaussianFit) -> GaussianFit:
        """Move idle Gaussians onto the largest ones, which are split along their widest axis."""
        weights, means, deviations = fit.weights.copy(), fit.means.copy(), fit.deviations
        for i in np.flatnonzero(weights < self.idle / len(weights)):
            j = int(np.argmax(weights * (deviations**2).sum(axis=1)))
            axis = int(np.argmax(deviations[j]))
            width = deviations[j, axis]
            # halves at +-0.8 width with 0.6 of it: the same mean and variance as the whole
            weights[i] = weights[j] = weights[j] / 2
            means[i], deviations[i] = means[j], deviations[j]
            means[i, axis] += 0.8 * width
            means[j, axis] -= 0.8 * width
            deviations[i, axis] = deviations[j, axis] = 0.6 * width
        return GaussianFit(weights, means, deviations**2)

    def _regroup(self, fits: Sequence[GaussianFit], n: int, seed: int) -> GaussianFit:
        """A start from what the fits agree upon: cells of a k-means of points drawn from all."""
        places = draw_places(fits, max(5_000, 30 * n), seed)
        points = Points(places, np.full(len(places), 1.0 / len(places)))
        cells = lloyd_from(points, n, 10, seed=int(seed % 2**32))
        labels, d = cells.labels, places.shape[1]
        shares = np.bincount(labels, minlength=n) / len(places)
        rests = (places - cells.centers[labels]) ** 2
        sums = [np.bincount(labels, column, minlength=n) for column in rests.T]
        variances = np.column_stack(sums) / len(places) / np.maximum(shares, 1e-12)[:, None]
        floor = 1e-6 * math.sqrt(float(rests.mean()) * d) + 1e-12
        deviations = self.narrowing * np.sqrt(variances) + floor
        return GaussianFit(shares, cells.centers, deviations**2)


@dataclass(frozen=True)
class Stochastic(Search):
    """A stochastic descent over blocks of frequencies, for many clusters.

    Takes the place of :class:`CoarseToFine` where one look at all frequencies takes long. A
    thousand looks at a block of them cost O(k d) each, whatever the sketch size m: time is linear
    in k, where that of the other is quadratic at m = 10 k d. Gaussians share one spread in the
    first half of a descent, so that none becomes a cloud that covers many clusters; then each finds
    its own.

    Parameters
    ----------
    loss_ratio : float
        Fits within this factor of the least loss are good.
    points_per_cluster, fewest_per_cluster : int
        Points drawn from the fits for each cluster; fewer where they would take much memory.
    above : int
        Pairs of Gaussians and frequencies from which on this search is quicker: about here L-BFGS
        on all takes as long, some 5 to 10 s.
    components : int
        Gaussians for each cluster.
    fits : int
        Descents that are pooled.
    block, steps : int
        Frequencies at a time, and steps of Adam.
    mean_step, weight_step, spread_step : float
        Their lengths: of means in units of the distance between clusters, of weights in units of
        their mean, of logarithms of deviations. For means, 0.03 to 0.12 were alike.
    last_step : float
        Share of these lengths that is left at the end.
    memory : pair of float
        Of gradients, and of their squares.
    on_components, on_points : int
        Iterations of k-means.
    """

    fewest_per_cluster: int = 20
    above: int = 3_000_000
    components: int = 3
    fits: int = 3
    block: int = 1024
    steps: int = 1000
    mean_step: float = 0.1
    weight_step: float = 0.1
    spread_step: float = 0.02
    last_step: float = 0.05
    memory: tuple[float, float] = (0.9, 0.99)
    on_components: int = 20
    on_points: int = 10
    finds_points: ClassVar[bool] = False

    def is_for(self, k: int, m: int) -> bool:
        """Whether k clusters from m frequencies are quicker found by this search."""
        return self.components * k * m > self.above

    def n_fits(self, k: int) -> int:
        """See :class:`Search`."""
        return self.fits

    def n_points(self, k: int, d: int) -> int:
        """See :class:`Search`; fewer where they would take much memory."""
        return max(min(self.points_per_cluster * k, NUMBERS // d), self.fewest_per_cluster * k)

    def find(self, fitter: GaussianFitter, k: int, seed: int, report: Report) -> list[GaussianFit]:
        """See :class:`Search`; the loss is the misfit, averaged over the last blocks.

        O(k d) a step, 3000 steps in all.
        """
        covariance, n_components = fitter.problem.outline[1], self.components * k
        d = len(covariance)
        apart = k ** (-1.0 / d)  # distance between clusters, as a share of the deviation of all
        length = apart * math.sqrt(float(np.trace(covariance)) / d)

        def descend(i: int) -> GaussianFit:
            start = fitter.start(n_components, seed, i * n_components)
            narrow = math.sqrt(2.0) * apart * start.deviations
            return self._descend(fitter, replace(start, covariances=narrow**2), length)

        fits = []
        for fit in in_threads(descend, self.fits):
            fits.append(fit)
            report(fit)
        return self.best(fits)

    def centers(self, fits: list[GaussianFit], k: int) -> Points:
        """Centers of the Gaussians; of many, those of the best fit."""
        n_fits = max(1, NUMBERS // (self.components * k * k))
        pooled = sorted(fits, key=lambda fit: fit.loss)[:n_fits]
        means = np.concatenate([fit.means for fit in pooled])
        weights = np.concatenate([fit.shares for fit in pooled])
        return Points(means, as_shares(weights))

    def cut(self, centers: Points, points: Points, k: int, seed: int, kmeans: KMeans) -> Partition:
        """Partition of many points, from a k-means of the few centers they were drawn around.

        Starts and swaps are run on the centers, a few for each cluster: on all points they would
        take minutes and hold n k distances. Beyond 1150 clusters those of the centers are too many
        as well, and there are no swaps. O(n k d) for each of the ten iterations on those.
        """
        has_swaps = len(centers.places) * k <= NUMBERS
        quick = replace(kmeans, max_iterations=self.on_components)
        rough = quick.cut(centers, k, seed, has_swaps=has_swaps)
        return lloyd_from(points, k, self.on_points, rough.centers)

    def _descend(self, fitter: GaussianFitter, start: GaussianFit, length: float) -> GaussianFit:
        """Adam over the blocks in turn, with steps that shrink along a cosine."""
        weights, means, deviations = start.weights, start.means, start.deviations
        of_weights, of_means, of_shared, of_each = (_Direction(self.memory) for _ in range(4))
        blocks, floor = self._blocks(len(fitter.norms)), fitter.problem.noise_floor
        recent = min(len(blocks), self.steps // 10)
        values: list[float] = []
        for step in range(self.steps):
            cosine = (1.0 + math.cos(math.pi * step / self.steps)) / 2.0
            rate = self.last_step + (1.0 - self.last_step) * cosine
            matcher = _matcher(fitter, blocks[step % len(blocks)])
            value, by_weight, by_mean, by_spread = _gradients(matcher, weights, means, deviations)
            if step < self.steps // 2:
                turn = of_shared.after(by_spread.sum(axis=0, keepdims=True))
            else:
                turn = of_each.after(by_spread)
            shift = (rate * self.weight_step / len(weights)) * of_weights.after(by_weight)[:, 0]
            weights = np.maximum(weights - shift, 0.0)
            means = means - rate * self.mean_step * length * of_means.after(by_mean)
            deviations = deviations * np.exp(-rate * self.spread_step * turn)
            values.append(value)
            if len(values) >= recent and np.mean(values[-recent:]) <= floor:
                break
        return GaussianFit(weights, means, deviations**2, float(np.mean(values[-recent:])))

    def _blocks(self, m: int) -> list[slice]:
        """The frequencies in parts of about 1024; they are independent, so any part is random."""
        ends = np.linspace(0, m, max(1, round(m / self.block)) + 1).astype(int)
        return [slice(first, end) for first, end in pairwise(ends.tolist())]


@dataclass
class _Direction:
    """Where Adam goes: a mean of past gradients, over their root mean square in each row."""

    memory: tuple[float, float]
    first: FloatArray | float = 0.0
    second: FloatArray | float = 0.0
    count: int = 0

    def after(self, gradient: FloatArray) -> FloatArray:
        """The direction, shape (rows, columns), when one more gradient of that shape is known."""
        (keep, keep_squares), self.count = self.memory, self.count + 1
        squares = (gradient**2).mean(axis=1, keepdims=True)
        self.first = keep * self.first + (1.0 - keep) * gradient
        self.second = keep_squares * self.second + (1.0 - keep_squares) * squares
        size = np.sqrt(self.second / (1.0 - keep_squares**self.count))
        direction: FloatArray = self.first / (1.0 - keep**self.count) / (size + 1e-100)
        return direction


def _matcher(fitter: GaussianFitter, block: slice) -> Matcher:
    """The misfit at a block; made anew each time, as hundreds of them would fill memory."""
    problem, weights = fitter.problem, fitter.weights[block]
    z = problem.z[block] * math.sqrt(len(problem.z))
    turns = np.ascontiguousarray(problem.turns[:, block])
    return select_kernel().matcher(turns, z, weights / weights.sum())


def _gradients(
    matcher: Matcher, weights: FloatArray, means: FloatArray, deviations: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """Misfit, and its derivatives but for a factor: by weights (T, 1), means, log deviations."""
    variances = deviations**2
    value, sums = matcher(weights, means, variances)
    of_weight, of_mean, of_variance = np.split(sums, [1, 1 + means.shape[1]], axis=1)
    by_mean = weights[:, None] * of_mean
    return value, -of_weight, by_mean, weights[:, None] * of_variance * variances
