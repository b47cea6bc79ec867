"""Points that stand for the rows of a sketch with cells, exact in each of them.

Where a cell is as tight as the plan expects, its rows are as good as any with its weight, mean and
variances. Where rows came that the plan has not seen, cells are loose: what the waves show once the
tight cells are taken off is fitted by Gaussians, and their points are moved until every cell has
its exact weight, mean and variances. A k-means of all points gives the centroids.

Symbols
-------
J, d, m   cells, columns, frequencies
k, n      clusters, points
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift.decoders.gaussians import GaussianFit, GaussianFitter, in_threads
from sketchshift.decoders.mixture import Mixture, Points, as_shares, means_by
from sketchshift.decoders.points import (
    Partition,
    exchange_gains,
    exchange_many,
    lloyd_from,
    squared_distances,
)
from sketchshift.decoders.problem import Problem
from sketchshift.features import Axes, Cells
from sketchshift.features.stream import Purpose, normal_quantile, uniforms
from sketchshift.metrics import mse
from sketchshift.sketch import Sketch
from sketchshift.sketch.cells import CellSums

__all__ = ["CellFit", "CellPoints", "Exchange", "WideFit", "draw_inside", "draw_pairs"]

Report = Callable[[GaussianFit], None]
SQUARABLE = 1e100  # coordinates beyond it have squares that no float can hold
HUGE = 1e8  # beyond, no float tells the distances of other rows beside a far one


@dataclass(frozen=True)
class CellPoints:
    """How points are made of cells and waves.

    Parameters
    ----------
    fewest_points, points_per_cluster, more_per_cluster : int
        Points in all: at least, for each cluster up to ``few_clusters``, and for each one more.
    few_clusters : int
        See there.
    unlike : float
        Rows are unlike those of the plan if they have more than this many times their mean inertia
        within cells; otherwise no cell is loose.
    narrow : float
        Along axes, rows are unlike those of the plan also if they have less than this share of it.
    loose : float
        A cell is loose where its rows have this many times the mean inertia of the plan's cells.
    fewest_rows : float
        Share of the rows that a loose cell has at least.
    gaussians : int
        Fitted in loose cells, for each cluster.
    most_gaussians : int
        Of a fit along axes; of more clusters, cells are spread out and nothing is fitted.
    fits, iterations : int
        Number of fits, and of iterations of each.
    loss_ratio : float
        Fits within this factor of the least loss are good.
    fewest_fitted : int
        Loose cells with fewer points of the fits are drawn as tight ones.
    light : float
        Cells with fewer points stay at one place: a few rows far out make most of the variance of
        such a cell, and two halves would be an invention.
    far_share : float
        From this share of the rows on, those beyond the reach of the plan belong to clusters; fewer
        are told of, and change nothing.
    """

    fewest_points: int = 6_000
    points_per_cluster: int = 200
    more_per_cluster: int = 80
    few_clusters: int = 100
    unlike: float = 1.1
    narrow: float = 0.5
    loose: float = 2.0
    fewest_rows: float = 0.005
    gaussians: int = 8
    most_gaussians: int = 400
    fits: int = 8
    iterations: int = 200
    loss_ratio: float = 4.0
    fewest_fitted: int = 12
    light: float = 1.0
    far_share: float = 1e-3

    def n_points(self, k: int) -> int:
        """Number of points for k clusters."""
        few = min(k, self.few_clusters)
        wanted = self.points_per_cluster * few + self.more_per_cluster * (k - few)
        return max(self.fewest_points, wanted)

    def fit(self, problem: Problem, k: int, seed: int, penalty: float, report: Report) -> CellFit:
        """What points of a sketch with cells are drawn from.

        Parameters
        ----------
        problem : Problem
            The sketch.
        k : int
            Number of clusters that will be asked for.
        seed : int
            Of the points and of the starts.
        penalty : float
            Strength of the exact moments beside the misfit, in the fits.
        report : callable
            Called with each fit when it is done.

        Returns
        -------
        fit : CellFit
            O(J m d) for the waves of tight cells, O(k m d) an iteration of a fit.
        """
        sketch = problem.sketch
        assert isinstance(sketch, Sketch)
        assert problem.cells is not None
        cells, sums = problem.cells
        outer, (far, left_out) = sketch.outer, self._find_far(sketch, sums)
        nothing = np.zeros(len(sums.weights), dtype=bool)
        axes, wide = sketch.spec.axes, sums
        if axes is not None:
            sums, outer = sums.project(axes), outer.project(axes)
        if not sums.weights.any():
            kind = CellFit if axes is None else WideFit
            return kind(self, sketch, wide, nothing, [], None, far, left_out, seed)
        if len(outer.weights):
            is_near = np.arange(len(sums.weights) + len(outer.weights)) < len(sums.weights)
            problem = _Rest.behind(problem, sums + outer, is_near)
        is_loose, fits = self._find_loose(cells, wide, len(problem.z)), []
        rule = self if axes is None else self._for_many(k)
        if is_loose.any() and rule.gaussians:
            rest = _Rest.behind(problem, sums, is_loose)
            fits = rule._fit_loose(rest, sums.only(is_loose), k, seed, penalty, report)
        if axes is not None:
            return WideFit(self, sketch, wide, is_loose, fits, None, far, left_out, seed)
        root = _root_of_correlation(problem, sums)
        return CellFit(self, sketch, sums, is_loose, fits, root, far, left_out, seed)

    def _for_many(self, k: int) -> CellPoints:
        """The same with fewer Gaussians, and fits, where clusters are many; with none for most."""
        gaussians = min(self.gaussians, self.most_gaussians // k)
        fits = self.most_gaussians * 2 // max(1, gaussians * k)
        return replace(self, gaussians=gaussians, fits=max(2, min(self.fits, fits)))

    def _find_far(self, sketch: Sketch, sums: CellSums) -> tuple[CellSums, str]:
        """Rows far from all that the plan saw, if they are more than a few; of others a word."""
        far = sketch.outer + sketch.far
        sizes = np.abs(far.means).max(axis=1, initial=0.0)
        is_tame = sizes < HUGE
        if not sums.weights.any() and not is_tame.any():  # all rows are far: beside none of others
            is_tame = sizes < SQUARABLE
        if float(far.weights[is_tame].sum()) < self.far_share * sketch.total_weight:
            is_tame[:] = False
        if is_tame.all():
            return far, ""
        lengths, weight = sizes[~is_tame], far.weights[~is_tame].sum()
        left_out = (
            f"Rows of weight {weight:,.6g} lie {lengths.min():.3g} to {lengths.max():.3g} times "
            "the spread of the plan's sample away, where it has seen none; they are counted, and "
            "belong to no cluster."
        )
        return far[is_tame], left_out

    def _find_loose(self, cells: Cells, sums: CellSums, m: int) -> BoolArray:
        """Cells whose inertia is more than the plan expects, if there are waves to tell more."""
        shares = as_shares(sums.weights)
        inertia = shares * sums.variances.sum(axis=1)
        if not self._are_unlike(cells, sums):
            return np.zeros(len(shares), dtype=bool)
        is_loose = inertia > self.loose * cells.within / cells.n_cells
        return np.asarray(is_loose & (shares >= self.fewest_rows) & (m > 0))

    def _are_unlike(self, cells: Cells, sums: CellSums) -> bool:
        """Whether the rows have more inertia within cells than those of the plan."""
        inertia = as_shares(sums.weights) @ sums.variances.sum(axis=1)
        return bool(inertia > self.unlike * cells.within)

    def _fit_loose(
        self, rest: Problem, sums: CellSums, k: int, seed: int, penalty: float, report: Report
    ) -> list[GaussianFit]:
        """Good fits of Gaussians to the loose rows, started inside their cells."""
        fitter, d = GaussianFitter(rest, penalty), sums.means.shape[1]
        inertia = as_shares(sums.weights * sums.variances.sum(axis=1))
        counts = np.maximum(np.rint(self.gaussians * k * inertia), 2.0) * (sums.weights > 0.0)
        labels = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
        shares, halves = as_shares((sums.weights / counts.clip(1))[labels]), 0.5 * sums.variances

        def descend(i: int) -> GaussianFit:
            j = np.arange(i * len(labels), (i + 1) * len(labels))
            normals = normal_quantile(uniforms(seed, Purpose.START, j, d))
            means = sums.means[labels] + normals * np.sqrt(halves)[labels]
            return fitter.fit(GaussianFit(shares, means, halves[labels] + 1e-12), self.iterations)

        fits = []
        for fit in in_threads(descend, self.fits):
            fits.append(fit)
            report(fit)
        least = min(fit.loss for fit in fits)
        return [fit for fit in fits if fit.loss <= self.loss_ratio * least and fit.weights.any()]


def _root_of_correlation(problem: Problem, sums: CellSums) -> FloatArray | None:
    """Square root of the correlation within cells, all taken together; None if it is not known."""
    if problem.moments is None or np.isnan(problem.moments[1]).any():
        return None
    mean, covariance = problem.moments
    rests, shares = sums.means - mean, as_shares(sums.weights)
    within = covariance - (rests.T * shares) @ rests
    deviations = np.sqrt(np.maximum(shares @ sums.variances, 1e-300))
    correlation = np.clip(within / np.outer(deviations, deviations), -1.0, 1.0)
    if np.isnan(correlation).any():
        return None
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


@dataclass(frozen=True, eq=False)
class CellFit:
    """What is known of the rows of cells, to draw points from.

    Attributes
    ----------
    rule : CellPoints
        How.
    sketch : Sketch
        Whose cells they are.
    sums : CellSums
        Of the rows.
    is_loose : bool array of shape (J,)
        Which cells the fits are for.
    fits : list of GaussianFit
        Of the loose rows.
    root : array of shape (d, d) or None
        Of the correlation within cells.
    far : CellSums
        Rows beyond the reach of cells, by column, sign and size.
    left_out : str
        A sentence on those of them that belong to no cluster; empty if there are none.
    seed : int
        Of the points.
    """

    rule: CellPoints
    sketch: Sketch
    sums: CellSums
    is_loose: BoolArray
    fits: list[GaussianFit]
    root: FloatArray | None
    far: CellSums
    left_out: str
    seed: int

    def draw(self, n: int) -> Points:
        """About n points, in an order of which every part is like the whole: O(n d)."""
        places, weights, is_drawn = self._draw_fitted(n)
        tight, parts = self.sums.only(~is_drawn), [(places, weights)]
        for sums, root in ((tight, self.root), (self.far, None)):
            is_light = as_shares(sums.weights) * n < self.rule.light
            variances = np.where(is_light[:, None], 0.0, sums.variances)
            parts.append(draw_pairs(sums.weights, sums.means, variances, n, self.seed, root))
        places, weights = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(uniforms(self.seed, Purpose.SAMPLE, np.arange(len(places)), 1)[:, 0])
        return Points(places[order], as_shares(weights[order]))

    def blocks(self, n: int) -> Mixture:
        """What stands for the rows: tight cells with variances (J, d), and points in loose ones.

        There are about n points where any cell is loose, with variances of 0. O(n d).
        """
        return self.around(*self._draw_fitted(n))

    def around(self, places: FloatArray, weights: FloatArray, is_drawn: BoolArray) -> Mixture:
        """Points (n, d) with weights (n,), and all cells that they do not stand for."""
        sums = self.sums.only(~is_drawn) + self.far
        sums = sums[sums.weights > 0.0]
        return Mixture(
            as_shares(np.concatenate([sums.weights, weights])),
            np.concatenate([sums.means, places]),
            np.concatenate([sums.variances, np.zeros_like(places)]),
        )

    @property
    def components(self) -> CellSums:
        """All cells that belong to clusters and have rows."""
        sums = self.sums + self.far
        return sums[sums.weights > 0.0]

    @property
    def variances(self) -> FloatArray:
        """Of the columns of all rows that belong to clusters, shape (d,)."""
        sums = self.components
        shares = as_shares(sums.weights)
        rests = sums.means - shares @ sums.means
        return np.asarray(shares @ (sums.variances + rests**2))

    def keep_possible(self, centroids: FloatArray) -> FloatArray:
        """Centroids (k, d), in the units of the data, moved to where rows can be.

        Where no cell has its mean beyond the least value of a column that the plan saw, no centroid
        has, either; the same for the largest. If indeed no row has, none is farther from a centroid
        than before.
        """
        spec, sums = self.sketch.spec, self.components
        assert spec.cells is not None
        if not spec.cells.lower:
            return centroids
        means = spec.rows.center_vector + spec.rows.scale_vector * sums.means
        off = spec.rows.scale_vector * sums.steps.max()
        lower, upper = np.array(spec.cells.lower), np.array(spec.cells.upper)
        lower[means.min(axis=0) < lower - off] = -np.inf
        upper[means.max(axis=0) > upper + off] = np.inf
        return np.asarray(np.clip(centroids, lower, upper))

    def costs(self, points: Points, partition: Partition, scale: FloatArray) -> tuple[float, float]:
        """Mean squared distance of the rows to the centers, times the squared scales: O(n d).

        First that of the points, which have all the variance of the rows but that of light cells;
        then the latter: what it would be if clusters cut them, nobody knows.
        """
        sums = self.components
        shares, squares = as_shares(sums.weights), np.square(sums.means) + sums.variances
        missing = np.maximum(shares @ squares - points.weights @ np.square(points.places), 0.0)
        rests = points.places - partition.centers[partition.labels]
        return float(points.weights @ np.square(rests) @ scale**2), float(missing @ scale**2)

    @property
    def is_exact(self) -> bool:
        """Whether the rows of each cell are equal, up to the rounding of integers."""
        return not self.components.variances.any()

    @property
    def _seen(self) -> CellSums:
        """The cells in the coordinates of the fits."""
        return self.sums

    def _find_cells(self, places: FloatArray) -> IntArray:
        """Cell of each place, in the coordinates of the fits."""
        return self.sketch.find_cells(places)

    def _lift(self, places: FloatArray, labels: IntArray) -> FloatArray:
        """Places inside cells in all columns, from the coordinates of the fits."""
        return places

    def _draw_fitted(self, n: int) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Points of the fits moved to what the loose cells say, and which cells they are for."""
        sums, (J, d) = self._seen, self.sums.means.shape
        if not self.fits:
            return np.zeros((0, d)), np.zeros(0), np.zeros(J, dtype=bool)
        n_each = max(2, round(n / len(self.fits)))
        parts = [
            draw_pairs(fit.shares, fit.means, fit.covariances, n_each, self.seed + i)
            for i, fit in enumerate(self.fits)
        ]
        places, weights = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        labels = self._find_cells(places)
        is_drawn = self.is_loose & (np.bincount(labels, minlength=J) >= self.rule.fewest_fitted)
        inside = is_drawn[labels]
        places, weights, labels = places[inside], weights[inside], labels[inside]
        mass = np.bincount(labels, weights, minlength=J).astype(np.float64)
        rests = places - means_by(labels, weights, places, mass)[labels]
        present = means_by(labels, weights, rests**2, mass)
        is_flat = present <= 1e-12 * sums.variances.max()
        factors = np.sqrt(np.where(is_flat, 0.0, sums.variances / np.where(is_flat, 1.0, present)))
        moved = self._lift(sums.means[labels] + rests * factors[labels], labels)
        return moved, weights * (sums.weights / np.where(mass > 0.0, mass, 1.0))[labels], is_drawn


@dataclass(frozen=True, eq=False)
class WideFit(CellFit):
    """What is known of the rows of cells with axes.

    Where rows are like those of the plan, no cell lies across two clusters, and each is a point.
    Where they are not, points are spread along the axes, with the exact variances there.
    """

    @property
    def is_spread(self) -> bool:
        """Whether the rows are unlike those of the plan."""
        return bool(self.is_loose.any())

    @cached_property
    def _seen(self) -> CellSums:
        assert self.sketch.spec.axes is not None
        return self.sums.project(self.sketch.spec.axes)

    def _find_cells(self, places: FloatArray) -> IntArray:
        """The loose cell that a place is most likely in, as of Gaussians along the axes."""
        seen, at = self._seen, np.flatnonzero(self.is_loose)
        variances = seen.variances[at] + 1e-6 * seen.variances[at].max() + 1e-300
        rates = 1.0 / variances
        exponents = places**2 @ rates.T - 2.0 * places @ (seen.means[at] * rates).T
        exponents += (seen.means[at] ** 2 * rates + np.log(variances)).sum(axis=1)
        exponents -= 2.0 * np.log(np.maximum(seen.weights[at], 1e-300))  # 0: as good as never
        return np.asarray(at[exponents.argmin(axis=1)])

    def _lift(self, places: FloatArray, labels: IntArray) -> FloatArray:
        assert self.sketch.spec.axes is not None
        along = places - self._seen.means[labels]
        return self.sums.means[labels] + along @ self.sketch.spec.axes.table.astype(np.float64)

    @property
    def group_means(self) -> FloatArray:
        """Mean of the rows of each group of cells that has rows: O(J d)."""
        spec = self.sketch.spec
        assert spec.cells is not None
        J, starts = spec.cells.n_cells, np.array(spec.cells.starts)
        weights, means = self.sums.weights[:J], self.sums.means[:J]
        mass = np.add.reduceat(weights, starts)
        sums = np.add.reduceat(weights[:, None] * means, starts, axis=0)
        return np.asarray(sums[mass > 0.0] / mass[mass > 0.0, None])

    def draw(self, n: int) -> Points:
        """The cells as points, or about n points spread inside them: O(n d)."""
        if self.is_spread:
            return self.spread(n)
        sums = self.components
        return Points(sums.means, as_shares(sums.weights))

    def spread(self, n: int) -> Points:
        """About n points inside all cells, in an order of which every part is like the whole."""
        fitted, of_fitted, is_drawn = self._draw_fitted(n)
        sums = self.sums.only(~is_drawn) + self.far
        sums = sums[sums.weights > 0.0]
        is_light = as_shares(sums.weights) * n < self.rule.light
        assert sums.along is not None
        sums = replace(sums, along=np.where(is_light[:, None], 0.0, sums.along))
        drawn, of_drawn = draw_inside(sums, self.sketch.spec.axes, n, self.seed)
        places, weights = np.concatenate([fitted, drawn]), np.concatenate([of_fitted, of_drawn])
        order = np.argsort(uniforms(self.seed, Purpose.SAMPLE, np.arange(len(places)), 1)[:, 0])
        return Points(places[order], as_shares(weights[order]))

    def doubt(self, k: int) -> str:
        """Why k clusters may be wrong although the bound is close; empty if nothing says so.

        In many columns most of the spread within cells is across the axes, in bound and estimate
        alike: that they are close proves little where cells hold other rows than the plan saw.
        """
        cells = self.sketch.spec.cells
        assert cells is not None
        sums = self.components
        inertia = float(as_shares(sums.weights) @ sums.variances.sum(axis=1))
        # rows of the plan lie nearer to centers that were found on them than others will
        seen = max(cells.n_rows, cells.n_cells + 1)
        expected = cells.within * seen / (seen - cells.n_cells)
        ratio, n_cells = inertia / (expected or 1.0), len(sums.weights)
        if self.rule.narrow <= ratio <= self.rule.unlike and n_cells >= 2 * k:
            return ""
        return (
            f"But the rows are unlike those of the plan: their spread within cells is {ratio:.2g} "
            f"times what it expects, in {n_cells:,} cells for {k:,} clusters, so that better "
            "clusters may exist. A plan on rows like these would tell."
        )

    @cached_property
    def inside(self) -> Points:
        """Points that have the spread of the rows along the axes."""
        return self.spread(self.rule.fewest_points)

    def costs(self, points: Points, partition: Partition, scale: FloatArray) -> tuple[float, float]:
        """See :class:`CellFit`: of points inside the cells, and what is across the axes."""
        sums, spread = self.components, self.inside
        shares, unit = as_shares(sums.weights), float(scale[0]) ** 2
        cost = mse(spread.places, partition.centers, sample_weight=spread.weights)
        inside = shares @ sums.variances.sum(axis=1)
        rests = spread.places - spread.weights @ spread.places
        between = sums.means - shares @ sums.means
        drawn = spread.weights @ np.square(rests).sum(axis=1) - shares @ (between**2).sum(axis=1)
        across = max(float(inside) - max(float(drawn), 0.0), 0.0)
        return (cost + across) * unit, 0.0


def draw_inside(
    sums: CellSums, axes: Axes | None, n: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """About n points with the means of cells and their variances, along the axes if there are any.

    Returns places (n, d) and weights (n,), pair by pair in the order of the cells. O(n d).
    """
    if axes is None:
        return draw_pairs(sums.weights, sums.means, sums.variances, n, seed)
    assert sums.along is not None
    origin = np.zeros_like(sums.along)
    rests, weights = draw_pairs(sums.weights, origin, sums.along, n, seed)
    labels = label_pairs(sums.weights, n)
    return sums.means[labels] + rests @ axes.table.astype(np.float64), weights


def label_pairs(weights: FloatArray, n: int) -> IntArray:
    """Which component each point of :func:`draw_pairs` is of."""
    pairs = np.maximum(np.rint(as_shares(weights) * n / 2.0), 1.0) * (weights > 0.0)
    labels = np.repeat(np.arange(len(weights)), pairs.astype(np.int64))
    return np.concatenate([labels, labels])


def draw_pairs(
    weights: FloatArray,
    means: FloatArray,
    variances: FloatArray,
    n: int,
    seed: int,
    root: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """About n points of components with these weights (J,), means and variances (J, d), exactly.

    Points come in opposite pairs, at least one for each component of any weight. They are uniform
    numbers with one correlation for all, whose square root is ``root``, stretched until the
    variances are right. Returns places (n, d) and weights (n,). O(n d), or O(n d^2) with a root.
    """
    labels = label_pairs(weights, n)
    labels = labels[: len(labels) // 2]
    pairs = np.bincount(labels, minlength=len(weights)).astype(np.float64)
    numbers = 2.0 * uniforms(seed, Purpose.SAMPLE, np.arange(len(labels)), means.shape[1]) - 1.0
    if root is not None:
        numbers = numbers @ root
    squares = means_by(labels, np.ones(len(labels)), numbers**2, pairs)
    rests = numbers * np.sqrt(variances / np.where(squares > 0.0, squares, 1.0))[labels]
    middles, parts = means[labels], (weights / (2.0 * pairs.clip(1)))[labels]
    return np.concatenate([middles + rests, middles - rests]), np.concatenate([parts, parts])


@dataclass(frozen=True, eq=False)
class _Rest(Problem):
    """What is left of a sketch when some of its cells are taken off: the rows of the others."""

    known: tuple[FloatArray, FloatArray] | None = None

    @classmethod
    def behind(cls, problem: Problem, sums: CellSums, is_left: BoolArray) -> _Rest:
        """The rows of the cells that are left; the others are Gaussians along the axes."""
        shares = as_shares(sums.weights)
        share, of_others = float(shares[is_left].sum()), sums.means[~is_left]
        others = Mixture(shares[~is_left], of_others, sums.variances[~is_left])
        z = (problem.z - others.sketch(problem.turns)) / share
        left = Mixture(shares[is_left] / share, sums.means[is_left], sums.variances[is_left])
        mean, known = left.moments
        if problem.moments is not None:  # between columns: what the others leave of all rows
            of_all, covariance = problem.moments
            products = covariance + np.outer(of_all, of_all)
            products -= (of_others.T * others.weights) @ of_others
            between = products / share - np.outer(mean, mean)
            np.fill_diagonal(between, np.diagonal(known))
            known = between
        return cls(problem.sketch, problem.turns, z, problem.bandwidth, known=(mean, known))

    @property
    def moments(self) -> tuple[FloatArray, FloatArray] | None:
        """Those of the rows that are left."""
        return self.known

    @property
    def outline(self) -> tuple[FloatArray, FloatArray]:
        """The same."""
        assert self.known is not None
        return self.known


@dataclass(frozen=True)
class Exchange:
    """k-means of many points by way of a few: starts, then exchanges of centers, then all points.

    Parameters
    ----------
    fewest_points, points_per_cluster : int
        Of the few points: at least, and for each cluster.
    starts, settling : int
        Runs of Lloyd's algorithm from greedy k-means++, and iterations of each.
    finalists : int
        The best of them go on.
    work : int
        Rounds of exchanges, times the number of clusters.
    most_rounds : int
        At most so many rounds.
    candidates, tries : int
        Points that may come in, and exchanges that are tried in a round, each with ``steps`` steps
        of Lloyd's algorithm before it is judged.
    failures : int
        Rounds without a gain that end it.
    many : int
        Of more clusters there would be hardly any round: many centers are exchanged in each, which
        finds as good ones from a start at random points.
    least_gain : float
        Share of the inertia that such a round has to gain.
    max_iterations, fewest_iterations : int
        With all points: fewer than at most where clusters are many.
    """

    fewest_points: int = 1_400
    points_per_cluster: int = 8
    starts: int = 10
    settling: int = 8
    finalists: int = 2
    work: int = 2_000
    most_rounds: int = 40
    candidates: int = 48
    tries: int = 6
    steps: int = 5
    failures: int = 4
    many: int = 500
    least_gain: float = 1e-4
    max_iterations: int = 30
    fewest_iterations: int = 12

    def n_points(self, k: int) -> int:
        """Number of the few points."""
        return max(self.fewest_points, self.points_per_cluster * k)

    def cut(self, few: Points, points: Points, k: int, seed: int) -> Partition:
        """The points cut into k cells: O(n k d) an iteration."""
        return self.settle(points, [found.centers for found in self.search(few, k, seed)])

    def settle(self, points: Points, starts: Sequence[FloatArray]) -> Partition:
        """The best partition of the points that is reached from some centers."""
        k = len(starts[0])
        n_iterations = max(self.fewest_iterations, min(self.max_iterations, 2 * self.work // k))
        ends = [lloyd_from(points, k, n_iterations, centers) for centers in starts]
        return min(ends, key=lambda found: found.inertia)

    def search(self, few: Points, k: int, seed: int) -> list[Partition]:
        """Good partitions of a few points into k cells."""
        if k > self.many:
            return [self._exchange_many(few, k, np.random.Generator(np.random.Philox(seed)))]
        n_starts, n_finalists = (
            max(1, min(self.starts, self.work // k)),
            max(1, min(self.finalists, self.work // (10 * k))),
        )
        state = int(seed % 2**31)
        begun = [lloyd_from(few, k, self.settling, seed=state + i) for i in range(n_starts)]
        best = sorted(begun, key=lambda found: found.inertia)[:n_finalists]
        rng = np.random.Generator(np.random.Philox(seed))
        return [self._exchange(few, start, rng) for start in best]

    def _exchange(self, few: Points, found: Partition, rng: np.random.Generator) -> Partition:
        """Exchange centers for points as long as that is worth while after some steps."""
        failures = 0
        for _ in range(min(self.most_rounds, self.work // len(found.centers))):
            tried = [
                lloyd_from(few, len(starts), self.steps, starts)
                for starts in self._proposals(few, found, rng)
            ]
            best = min(tried, key=lambda other: other.inertia, default=found)
            if best.inertia < found.inertia * (1.0 - 1e-5):
                found, failures = best, 0
                continue
            failures += 1
            if failures == self.failures:
                break
        return found

    def _exchange_many(self, few: Points, k: int, rng: np.random.Generator) -> Partition:
        """From random points, exchange many centers at once as long as that is worth while."""
        starts = few.places[rng.choice(len(few.places), k, replace=False)]
        found = lloyd_from(few, k, self.settling, starts)
        for _ in range(self.most_rounds):
            centers, gain = exchange_many(few, found.centers)
            if gain <= self.least_gain * found.inertia:
                break
            found = lloyd_from(few, k, self.steps, centers)
        return found

    def _proposals(
        self, few: Points, found: Partition, rng: np.random.Generator
    ) -> list[FloatArray]:
        """Centers with one exchanged, those of the largest gain: O(n (k + candidates) d)."""
        places, weights = few.places, few.weights
        distances = squared_distances(places, found.centers)
        masses = np.cumsum(weights * distances.min(axis=1))
        if len(found.centers) == 1 or not masses[-1] > 0.0:  # nothing is better than the mean
            return []
        drawn = np.searchsorted(masses, rng.random(self.candidates) * masses[-1])
        new = np.unique(np.minimum(drawn, len(places) - 1))
        net = exchange_gains(weights, distances, squared_distances(places, places[new]))
        out = net.argmax(axis=0)
        order = np.argsort(-net[out, np.arange(len(new))])[: self.tries]
        proposals = []
        for i in order.tolist():
            centers = found.centers.copy()
            centers[out[i]] = places[new[i]]
            proposals.append(centers)
        return proposals
