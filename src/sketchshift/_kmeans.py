"""k-means of weighted points: greedy k-means++ and Lloyd's algorithm, in products of matrices.

It stands below all rooms: plans judge a sample with it, decoders cut their points with it, and
neither should load a second of imports for that. Starts, stopping and the care of empty cells are
those of scikit-learn's ``KMeans``, with its random numbers, so that both agree up to rounding.

Symbols
-------
n, d, k   points, columns, centroids
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np

from sketchshift._threads import one_blas_thread
from sketchshift._typing import FloatArray, IntArray

__all__ = ["WeightedClusters", "nearest", "nearest_two", "weighted_kmeans"]

_BLOCK = 1 << 16  # numbers of a product held at a time: they stay in cache
_FEW = 128  # centroids, times two for each column, up to which a product is faster than a tree


class WeightedClusters(NamedTuple):
    """What k-means found.

    Attributes
    ----------
    centroids : array of shape (k, d)
        In the order of the starts.
    labels : int array of shape (n,)
        The nearest centroid of each point.
    cost : float
        Weighted sum of squared distances to these.
    """

    centroids: FloatArray
    labels: IntArray
    cost: float


@one_blas_thread
def weighted_kmeans(
    points: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    *,
    n_init: int = 1,
    seed: int = 0,
    starts: FloatArray | None = None,
    max_iterations: int = 300,
    tolerance: float = 1e-4,
) -> WeightedClusters:
    """The best of several runs of Lloyd's algorithm on weighted points.

    Parameters
    ----------
    points : array of shape (n, d)
        At least k of them, finite.
    weights : array of shape (n,)
        At least 0, not 0 everywhere.
    n_clusters : int
        Number k of centroids.
    n_init : int
        Runs from greedy k-means++ starts. The first of the least cost is kept.
    seed : int
        Of the starts, from 0 to 2**32 - 1. The number of threads changes nothing.
    starts : array of shape (k, d) or None
        Where one run begins, instead of k-means++.
    max_iterations : int
        Of each run.
    tolerance : float
        A run ends when the squared moves of all centroids together are at most this share of
        the mean variance of the columns.

    Returns
    -------
    clusters : WeightedClusters
        O(n k d) an iteration, and O(n k d log k) for the starts.
    """
    middle = points.mean(axis=0)
    cloud = _Cloud.of(points - middle, weights)
    tolerance = tolerance * float(points.var(axis=0).mean())
    if starts is not None:
        begins: Iterator[FloatArray] = iter([starts - middle])
    else:
        rng = np.random.RandomState(seed)
        begins = (cloud.spread(n_clusters, rng) for _ in range(n_init))
    runs = (cloud.settle(begin, max_iterations, tolerance) for begin in begins)
    centroids, labels, cost = min(runs, key=lambda found: found.cost)
    return WeightedClusters(centroids + middle, labels, cost)


@dataclass(frozen=True, eq=False)
class _Cloud:
    """Weighted points around the origin, with the products that every iteration needs."""

    points: FloatArray
    weights: FloatArray
    squares: FloatArray
    moments: FloatArray  # (d, n), weights times columns

    @classmethod
    def of(cls, points: FloatArray, weights: FloatArray) -> _Cloud:
        squares = np.einsum("ij,ij->i", points, points)
        return cls(points, weights, squares, np.ascontiguousarray((points * weights[:, None]).T))

    def spread(self, k: int, rng: np.random.RandomState) -> FloatArray:
        """K of the points, by greedy k-means++: of a few candidates, the one that helps most."""
        points, weights = self.points, self.weights
        chosen = [rng.choice(len(points), p=weights / weights.sum())]
        nearest = self._squared_distances(chosen)[0]
        cost = float(nearest @ weights)
        n_candidates = 2 + int(log(k))
        while len(chosen) < k:
            draws = rng.uniform(size=n_candidates) * cost
            candidates = np.searchsorted(np.cumsum(weights * nearest), draws)
            np.minimum(candidates, len(points) - 1, out=candidates)  # sums round
            closest = np.minimum(nearest, self._squared_distances(candidates))
            costs = closest @ weights
            best = int(np.argmin(costs))
            cost, nearest = float(costs[best]), closest[best]
            chosen.append(candidates[best])
        return points[chosen]

    def _squared_distances(self, chosen: list[int] | IntArray) -> FloatArray:
        """From some of the points to all: shape (number, n)."""
        distances: FloatArray = self.points[chosen] @ self.points.T
        distances *= -2.0
        distances += self.squares[chosen, None]
        distances += self.squares
        return np.maximum(distances, 0.0, out=distances)

    def settle(self, centroids: FloatArray, most: int, tolerance: float) -> WeightedClusters:
        """Lloyd's algorithm, until no label changes or the centroids hardly move."""
        before: IntArray | None = None
        for _ in range(most):
            labels = nearest(self.points, centroids)
            moved = self._means(labels, centroids)
            shift = float(np.square(moved - centroids).sum())
            centroids = moved
            if before is not None and np.array_equal(labels, before):
                break
            before = labels
            if shift <= tolerance:
                labels = nearest(self.points, centroids)
                break
        else:
            labels = nearest(self.points, centroids)
        rests = self.points - centroids[labels]
        cost = float(self.weights @ np.einsum("ij,ij->i", rests, rests))
        return WeightedClusters(centroids, labels, cost)

    def _means(self, labels: IntArray, centroids: FloatArray) -> FloatArray:
        """Means of the cells; a cell without weight gets one of the farthest points."""
        k = len(centroids)
        mass: FloatArray = np.bincount(labels, self.weights, minlength=k).astype(np.float64)
        sums: FloatArray = np.column_stack(
            [np.bincount(labels, row, minlength=k) for row in self.moments]
        )
        if not mass.all():
            self._fill_empty(labels, centroids, mass, sums)
        full = np.where(mass > 0.0, np.arange(k), mass.argmax())  # or the heaviest, if none is left
        return np.asarray(sums[full] * (1.0 / mass[full, None]))

    def _fill_empty(
        self, labels: IntArray, centroids: FloatArray, mass: FloatArray, sums: FloatArray
    ) -> None:
        """Take the farthest points out of their cells, one for each cell that has no weight."""
        empty = np.flatnonzero(mass == 0.0)
        distances = np.square(self.points - centroids[labels]).sum(axis=1)
        if distances.max() == 0.0:  # fewer different points than cells
            return
        farthest = np.argpartition(distances, -len(empty))[: -len(empty) - 1 : -1]
        for cell, point in zip(empty, farthest, strict=True):
            moment, weight = self.moments[:, point], self.weights[point]
            sums[labels[point]] -= moment
            mass[labels[point]] -= weight
            sums[cell], mass[cell] = moment, weight


def nearest(points: FloatArray, centroids: FloatArray) -> IntArray:
    """The nearest centroid of each point, shape (n,).

    Parameters
    ----------
    points, centroids : arrays of shapes (n, d) and (k, d)
        Finite.

    Returns
    -------
    labels : int array of shape (n,)
        Exact but for rounding. O(n k d), or O(n log k) where centroids are many for the number of
        columns.
    """
    if _are_many(centroids):
        return _ask_tree(points, centroids, 1)
    labels = np.empty(len(points), dtype=np.int64)
    for part, scores in _scores(points, centroids):
        np.argmax(scores, axis=1, out=labels[part])
    return labels


def nearest_two(points: FloatArray, centroids: FloatArray) -> tuple[IntArray, IntArray]:
    """The nearest and the second nearest centroid of each point, shape (n,) each.

    Parameters
    ----------
    points, centroids : arrays of shapes (n, d) and (k, d)
        At least two centroids.

    Returns
    -------
    owners, heirs : int arrays of shape (n,)
        As exact, and as long.
    """
    if _are_many(centroids):
        both = _ask_tree(points, centroids, 2)
        return both[:, 0], both[:, 1]
    owners, heirs = (np.empty(len(points), dtype=np.int64) for _ in range(2))
    for part, scores in _scores(points, centroids):
        owners[part] = scores.argmax(axis=1)
        scores[np.arange(len(scores)), owners[part]] = -np.inf
        heirs[part] = scores.argmax(axis=1)
    return owners, heirs


def _scores(points: FloatArray, centroids: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Some points at a time, and <x, c> - |c|^2 / 2: the nearest centroid maximises it."""
    across, halves = centroids.T, 0.5 * np.einsum("ij,ij->i", centroids, centroids)
    step = max(1, _BLOCK // len(centroids))
    for first in range(0, len(points), step):
        part = slice(first, first + step)
        scores: FloatArray = points[part] @ across
        scores -= halves
        yield part, scores


def _are_many(centroids: FloatArray) -> bool:
    """Whether a tree finds the nearest one faster than a product does."""
    k, d = centroids.shape
    return bool(k >> d > _FEW)


def _ask_tree(points: FloatArray, centroids: FloatArray, n: int) -> IntArray:
    from scipy.spatial import cKDTree

    found = cKDTree(centroids).query(points, k=n)[1]
    # where squares are too large for a float, none is found
    return np.asarray(np.minimum(found, len(centroids) - 1), dtype=np.int64)
