"""Points that stand for the rows of a sketch with cells, exact in each of them.

Where a cell is as tight as the plan expects, it becomes a Gaussian: a handful of points with its
weight, mean and variances. Where rows came that the plan has not seen, cells are loose. Their rows
are what the waves show once the tight cells are taken off: Gaussians are fitted to that, and their
points are moved until every cell has its exact weight, mean and variances.

Symbols
-------
J, d, m   cells, columns, frequencies
k         clusters
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sketchshift._typing import BoolArray, ComplexArray, FloatArray, IntArray
from sketchshift.decoders.gaussians import GaussianFit, GaussianFitter
from sketchshift.decoders.mixture import Mixture, Points
from sketchshift.decoders.problem import Problem
from sketchshift.features import Cells
from sketchshift.features.stream import Purpose, normal_quantile, uniforms
from sketchshift.kernels import select_kernel
from sketchshift.sketch.cells import CellSums

__all__ = ["CellPoints", "draw_gaussians"]

Report = Callable[[GaussianFit], None]


@dataclass(frozen=True)
class CellPoints:
    """How points are made of cells and waves.

    Parameters
    ----------
    fewest_points, points_per_cluster : int
        Points in all: at least, and for each cluster.
    loose : float
        A cell is loose where its rows have this many times the mean inertia of the plan's cells.
    fewest_rows : int
        Rows that a loose cell has at least.
    gaussians : int
        Fitted in loose cells, for each cluster.
    fits, iterations : int
        Number of fits, and of iterations of each.
    loss_ratio : float
        Fits within this factor of the least loss are good.
    fewest_fitted : int
        Loose cells with fewer points of the fits become Gaussians as well.
    """

    fewest_points: int = 6_000
    points_per_cluster: int = 60
    loose: float = 2.0
    fewest_rows: float = 12.0
    gaussians: int = 4
    fits: int = 2
    iterations: int = 150
    loss_ratio: float = 4.0
    fewest_fitted: int = 12

    def n_points(self, k: int) -> int:
        """Number of points for k clusters."""
        return max(self.fewest_points, self.points_per_cluster * k)

    def draw(self, problem: Problem, k: int, seed: int, penalty: float, report: Report) -> Points:
        """Points for the rows of a sketch that has cells.

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
        points : Points
            In an order of which every part is like the whole. O(n d) points, O(J m d) for the
            waves of tight cells, O(k m d) an iteration of a fit.
        """
        assert problem.cells is not None
        cells, sums = problem.cells
        is_loose = self._find_loose(cells, sums, len(problem.z))
        n = self.n_points(k)
        points = draw_gaussians(_only(sums, ~is_loose), n, seed)
        if is_loose.any():
            loose = _only(sums, is_loose)
            fits = self._fit(_Loose.of(problem, sums, is_loose), loose, k, seed, penalty, report)
            fitted = self._move_to_cells(cells, loose, fits, n, seed)
            points = [np.concatenate(pair) for pair in zip(points, fitted, strict=True)]
        places, weights = points
        order = np.argsort(uniforms(seed, Purpose.SAMPLE, np.arange(len(places)), 1)[:, 0])
        return Points(places[order], weights[order] / weights.sum())

    def _find_loose(self, cells: Cells, sums: CellSums, m: int) -> BoolArray:
        """Cells whose inertia is more than the plan expects, if there are waves to tell more."""
        inertia = sums.weights * sums.variances.sum(axis=1) / sums.weights.sum()
        is_loose = inertia > self.loose * cells.within / cells.n_cells
        return np.asarray(is_loose & (sums.weights >= self.fewest_rows) & (m > 0))

    def _fit(
        self,
        problem: _Loose,
        sums: CellSums,
        k: int,
        seed: int,
        penalty: float,
        report: Report,
    ) -> list[GaussianFit]:
        """Good fits of Gaussians to the loose rows, started inside their cells."""
        fitter, fits = GaussianFitter(problem, penalty), []
        inertia = sums.weights * sums.variances.sum(axis=1)
        counts = np.where(
            sums.weights > 0.0,
            np.maximum(np.rint(self.gaussians * k * inertia / inertia.sum()), 2.0),
            0.0,
        ).astype(np.int64)
        shares = np.repeat(sums.weights / sums.weights.sum() / np.maximum(counts, 1), counts)
        means, halves = (np.repeat(a, counts, axis=0) for a in (sums.means, 0.5 * sums.variances))
        for i in range(self.fits):
            j = np.arange(i * len(means), (i + 1) * len(means))
            normals = normal_quantile(uniforms(seed, Purpose.START, j, means.shape[1]))
            start = GaussianFit(shares, means + normals * np.sqrt(halves), halves + 1e-12)
            fits.append(fitter.fit(start, self.iterations))
            report(fits[-1])
        least = min(fit.loss for fit in fits)
        return [fit for fit in fits if fit.loss <= self.loss_ratio * least and fit.weights.any()]

    def _move_to_cells(
        self, cells: Cells, sums: CellSums, fits: list[GaussianFit], n: int, seed: int
    ) -> tuple[FloatArray, FloatArray]:
        """Points of the fits, shifted, stretched and weighted to what the cells say."""
        parts = [
            draw_gaussians(_Gaussians(fit.shares, fit.means, fit.covariances), n, seed + i)
            for i, fit in enumerate(fits)
        ]
        places = np.concatenate(
            [places for places, _ in parts] or [np.zeros((0, cells.n_features))]
        )
        weights = np.concatenate([weights for _, weights in parts] or [np.zeros(0)])
        J = cells.n_cells
        labels, _ = select_kernel().cells(cells.groups).nearest(places.astype(np.float32))
        n_fitted = np.bincount(labels, minlength=J)
        is_fitted = (sums.weights > 0.0) & (n_fitted >= self.fewest_fitted)
        inside = is_fitted[labels]
        places, weights, labels = places[inside], weights[inside], labels[inside]
        mass = np.maximum(np.bincount(labels, weights, minlength=J), 1e-300)
        rests = places - _means(labels, weights, places, mass)[labels]
        present = _means(labels, weights, rests**2, mass)
        ratio = sums.variances / np.maximum(present, 1e-300)
        factors = np.sqrt(np.where(present > 1e-12 * sums.variances.max(), ratio, 0.0))
        others = draw_gaussians(_only(sums, ~is_fitted), n, seed)
        return (
            np.concatenate([sums.means[labels] + rests * factors[labels], others[0]]),
            np.concatenate([weights * (sums.weights / mass)[labels], others[1]]),
        )


@dataclass(frozen=True, eq=False)
class _Gaussians:
    """Weights (J,), means (J, d) and variances (J, d) to draw from."""

    weights: FloatArray
    means: FloatArray
    variances: FloatArray


def _only(sums: CellSums, some: BoolArray) -> CellSums:
    """The same, without weight but in some cells."""
    weights = np.where(some, sums.weights, 0.0)
    return CellSums(weights, sums.means, sums.variances, sums.steps)


def draw_gaussians(
    gaussians: CellSums | _Gaussians, n: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """About n points of Gaussians along the axes, with weights (J,), means and variances exact.

    Points come in opposite pairs, at least one for each Gaussian of any weight, stretched until
    the variances are right. Returns places (n, d) and weights (n,). O(n d).
    """
    weights, J = gaussians.weights, len(gaussians.weights)
    share = weights / (weights.sum() or 1.0)
    counts = np.where(weights > 0.0, np.maximum(np.rint(share * n / 2.0), 1.0), 0.0).astype(
        np.int64
    )
    labels = np.repeat(np.arange(J), counts)
    d = gaussians.means.shape[1]
    normals = normal_quantile(uniforms(seed, Purpose.SAMPLE, np.arange(len(labels)), d))
    each = np.maximum(counts, 1).astype(np.float64)
    squares = _means(labels, np.ones(len(labels)), normals**2, each)
    rests = normals * np.sqrt(gaussians.variances / np.maximum(squares, 1e-300))[labels]
    middles, parts = gaussians.means[labels], (weights / (2.0 * each))[labels]
    return np.concatenate([middles + rests, middles - rests]), np.concatenate([parts, parts])


def _means(
    labels: IntArray, weights: FloatArray, values: FloatArray, mass: FloatArray
) -> FloatArray:
    """Weighted sums of values (n, d) by label, divided by the mass (J,) of each: (J, d)."""
    sums = [np.bincount(labels, weights * column, minlength=len(mass)) for column in values.T]
    return np.asarray(np.column_stack(sums) / mass[:, None])


@dataclass(frozen=True, eq=False)
class _Loose(Problem):
    """What is left of a sketch when the tight cells are taken off: the rows of loose ones."""

    rest: tuple[FloatArray, FloatArray] = field(default=(np.zeros(0), np.zeros(0)))

    @classmethod
    def of(cls, problem: Problem, sums: CellSums, is_loose: BoolArray) -> _Loose:
        shares = sums.weights / sums.weights.sum()
        tight = Mixture(shares[~is_loose], sums.means[~is_loose], sums.variances[~is_loose])
        share = float(shares[is_loose].sum())
        z: ComplexArray = (problem.z - tight.sketch(problem.turns)) / share
        rest = cls._moments(problem, sums, shares, is_loose, share)
        return cls(problem.sketch, problem.turns, z, problem.bandwidth, rest=rest)

    @staticmethod
    def _moments(
        problem: Problem, sums: CellSums, shares: FloatArray, is_loose: BoolArray, share: float
    ) -> tuple[FloatArray, FloatArray]:
        """Of loose rows; between columns, what the tight cells leave of all rows' products."""
        own, others = shares[is_loose] / share, shares[~is_loose]
        mean = own @ sums.means[is_loose]
        rests = sums.means[is_loose] - mean
        variances = own @ (sums.variances[is_loose] + rests**2)
        assert problem.moments is not None
        of_all, covariance = problem.moments
        tight = sums.means[~is_loose]
        products = covariance + np.outer(of_all, of_all) - (tight.T * others) @ tight
        covariance = products / share - np.outer(mean, mean)
        np.fill_diagonal(covariance, variances)
        return mean, covariance

    @property
    def moments(self) -> tuple[FloatArray, FloatArray]:  # type: ignore[override]
        """Those of the loose rows."""
        return self.rest

    @property
    def outline(self) -> tuple[FloatArray, FloatArray]:  # type: ignore[override]
        """The same: cells come without a tilt."""
        return self.rest
