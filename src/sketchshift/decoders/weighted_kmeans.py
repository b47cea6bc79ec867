"""The last step: k-means on weighted points, with swaps out of its local minima."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sketchshift._typing import FloatArray, IntArray

__all__ = ["Cells", "weighted_kmeans"]

SWAPS, CANDIDATES, FAILURES = 60, 30, 3


@dataclass(frozen=True, eq=False)
class Cells:
    """A partition of points around centers.

    Attributes
    ----------
    centers : array of shape (k, d)
        Means of the cells.
    labels : int array of shape (n,)
        Cell of each point.
    inertia : float
        Weighted sum of squared distances.
    """

    centers: FloatArray
    labels: IntArray
    inertia: float


def weighted_kmeans(
    points: FloatArray,
    weights: FloatArray,
    k: int,
    seed: int,
    *,
    n_init: int,
    max_iterations: int = 100,
    swaps: bool = False,
) -> Cells:
    """k-means of weighted points by scikit-learn, the best of several starts.

    Parameters
    ----------
    points : array of shape (n, d)
        At least k.
    weights : array of shape (n,)
        Not negative.
    k : int
        Number of cells.
    seed : int
        Of the starts.
    n_init : int
        Number of starts, by greedy k-means++.
    max_iterations : int
        Of Lloyd's algorithm.
    swaps : bool
        Whether to try to exchange centers afterwards.

    Returns
    -------
    cells : Cells
        O(n k d) an iteration.
    """
    from sklearn.cluster import KMeans

    state = int(seed % 2**32)
    found = KMeans(k, n_init=n_init, max_iter=max_iterations, random_state=state)
    found.fit(points, sample_weight=weights)
    if swaps and k > 1:
        start = _swap(points, weights, found.cluster_centers_.copy(), state)
        again = KMeans(k, init=start, n_init=1, max_iter=max_iterations)
        again.fit(points, sample_weight=weights)
        if again.inertia_ < found.inertia_:
            found = again
    return Cells(found.cluster_centers_, found.labels_.astype(np.int64), float(found.inertia_))


def _swap(points: FloatArray, weights: FloatArray, centers: FloatArray, seed: int) -> FloatArray:
    """Put centers where they gain most, and take away those that are missed least."""
    rng = np.random.Generator(np.random.Philox(seed))
    distances = _squared_distances(points, centers)
    failures = 0
    for _ in range(SWAPS):
        labels = distances.argmin(axis=1)
        nearest, second = np.partition(distances, 1, axis=1)[:, :2].T
        shares = weights * nearest
        if failures == FAILURES or shares.sum() <= 0.0:
            break
        drawn = rng.choice(len(points), CANDIDATES, p=shares / shares.sum())
        to_new = _squared_distances(points, points[drawn])
        gains = weights @ np.maximum(nearest[:, None] - to_new, 0.0)
        new = int(gains.argmax())
        left = np.minimum(second, to_new[:, new]) - np.minimum(nearest, to_new[:, new])
        losses = np.bincount(labels, weights * left, minlength=len(centers))
        out = int(losses.argmin())
        if losses[out] >= gains[new] * (1.0 - 1e-6):
            failures += 1
            continue
        failures = 0
        distances[:, out] = to_new[:, new]
        centers = _means(points, weights, distances.argmin(axis=1), centers)
        distances = _squared_distances(points, centers)
    return centers


def _means(
    points: FloatArray, weights: FloatArray, labels: IntArray, centers: FloatArray
) -> FloatArray:
    """Means of the cells; a cell without weight keeps its center."""
    k = len(centers)
    mass = np.bincount(labels, weights, minlength=k)
    sums = [np.bincount(labels, weights * column, minlength=k) for column in points.T]
    means = np.column_stack(sums) / np.where(mass > 0.0, mass, 1.0)[:, None]
    return np.where(mass[:, None] > 0.0, means, centers)


def _squared_distances(points: FloatArray, centers: FloatArray) -> FloatArray:
    cross = points @ centers.T
    squares = (points**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1)
    return np.asarray(np.maximum(squares - 2.0 * cross, 0.0))
