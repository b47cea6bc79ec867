"""The last step: k-means on weighted points, with swaps out of its local minima."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sketchshift._typing import FloatArray, IntArray

__all__ = ["Cells", "lloyd_from", "weighted_kmeans", "with_means"]

SUBSET, SUBSET_PER_CELL = 3_000, 40  # points that starts are run on, at least
FINALISTS = 3
SWAPS, CANDIDATES, FAILURES = 60, 30, 3
LLOYD_STEPS = 2  # between swaps


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
        At least k, in an order of which every part is like the whole.
    weights : array of shape (n,)
        Not negative.
    k : int
        Number of cells.
    seed : int
        Of the starts.
    n_init : int
        Number of starts, by greedy k-means++. They are run on some of the points; the best
        three go on with all.
    max_iterations : int
        Of Lloyd's algorithm.
    swaps : bool
        Whether to try to exchange centers afterwards.

    Returns
    -------
    cells : Cells
        O(n k d) an iteration.
    """
    state = int(seed % 2**32)
    step = max(1, len(points) // max(SUBSET, SUBSET_PER_CELL * k)) if n_init > 1 else 1
    some, shares = points[::step], weights[::step]
    starts = [
        lloyd_from(some, shares, k, max_iterations, "k-means++", (state + i) % 2**32)
        for i in range(n_init)
    ]
    starts = sorted(starts, key=lambda cells: cells.inertia)[:FINALISTS]
    if step > 1:
        starts = [lloyd_from(points, weights, k, max_iterations, s.centers) for s in starts]
    found = min(starts, key=lambda cells: cells.inertia)
    if swaps and k > 1:
        centers = _swap(points, weights, found.centers.copy(), state)
        again = lloyd_from(points, weights, k, max_iterations, centers)
        found = min(found, again, key=lambda cells: cells.inertia)
    return found


def lloyd_from(
    points: FloatArray,
    weights: FloatArray,
    k: int,
    max_iterations: int,
    init: FloatArray | str,
    seed: int = 0,
) -> Cells:
    """One run of Lloyd's algorithm from centers, or from a rule that gives them."""
    from sklearn.cluster import KMeans

    found = KMeans(k, init=init, n_init=1, max_iter=max_iterations, random_state=seed)
    found.fit(points, sample_weight=weights)
    return Cells(found.cluster_centers_, found.labels_.astype(np.int64), float(found.inertia_))


def with_means(cells: Cells, points: FloatArray, weights: FloatArray) -> Cells:
    """The same cells around their very means: Lloyd's algorithm stops a little before."""
    return replace(cells, centers=_means(points, weights, cells.labels, cells.centers))


def _swap(points: FloatArray, weights: FloatArray, centers: FloatArray, seed: int) -> FloatArray:
    """Exchange a center for a point as long as one of the candidates makes that worth while.

    Candidates are drawn by their share of the inertia (Lattanzi and Sohler 2019). A round is
    O(n (k + candidates) d), and exact for every pair of a candidate and a center.
    """
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
        kept = np.minimum(nearest[:, None], to_new)
        gains = weights @ (nearest[:, None] - kept)
        missed = weights[:, None] * (np.minimum(second[:, None], to_new) - kept)
        members = (labels == np.arange(len(centers))[:, None]).astype(np.float64)
        net = gains - members @ missed  # (k, candidates)
        out, new = np.unravel_index(int(net.argmax()), net.shape)
        if net[out, new] <= 1e-6 * shares.sum():
            failures += 1
            continue
        failures = 0
        distances[:, out] = to_new[:, new]
        for _ in range(LLOYD_STEPS):
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
