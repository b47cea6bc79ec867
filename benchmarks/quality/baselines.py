"""What a user could take instead: rows, weighted rows, cells of means, one pass, many passes."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin

from quality.found import Found, Problem
from sketchshift.features.cells import plan_cells

NUMBER = 4  # bytes of a number that is kept: float32
BATCH = 1024
FEW = 50  # clusters: k-means of 200,000 rows takes minutes for more
MOST_SEEN = 200_000  # rows that a plan looks at
MOST_CELLS = 10_000  # of means: more take minutes to place
ROWS_PER_CELL = 4  # of those that were seen, at least
ROUNDS, MOST_AT_ONCE = 50, 256  # of D^2 sampling
HALF_LIFE = 0.01  # of river's centroids


def kmeans(
    rows: np.ndarray,
    k: int,
    seed: int,
    weights: np.ndarray | None = None,
    starts: int | None = None,
) -> np.ndarray:
    """Lloyd's algorithm from k-means++ starts, the best of five; of one for many clusters."""
    if starts is None:
        starts = 5 if k <= 100 else 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than k
        found = KMeans(k, n_init=starts, random_state=seed).fit(rows, sample_weight=weights)
    return found.cluster_centers_


def lloyd(problem: Problem) -> Found:
    """One run of k-means with all of the data at hand."""
    centroids = kmeans(problem.X, problem.k, problem.seed, starts=1)
    return Found(centroids, NUMBER * problem.X.size)


def faiss_kmeans(problem: Problem) -> Found:
    """k-means of faiss with all of the data at hand, 25 steps, no row left out."""
    import faiss

    rows = problem.X.astype(np.float32)
    options = {"niter": 25, "nredo": 5 if problem.k <= 100 else 1}
    means = faiss.Kmeans(
        problem.d, problem.k, seed=problem.seed, max_points_per_centroid=len(rows), **options
    )
    means.train(rows)
    return Found(means.centroids.astype(np.float64), NUMBER * rows.size)


def pilot(problem: Problem) -> Found:
    """k-means of the rows that the plan sees, and no pass at all."""
    starts = 5 if problem.k <= FEW else 1
    centroids = kmeans(_seen(problem), problem.k, problem.seed, starts=starts)
    return Found(centroids, NUMBER * centroids.size)


def pilot_and_pass(problem: Problem) -> Found:
    """The same, each centroid then moved to the mean of all rows nearest to it."""
    centroids, _ = _means_around(problem.X, pilot(problem).centroids)
    return Found(centroids, NUMBER * problem.k * (problem.d + 1))


def cells_of_means(problem: Problem) -> Found:
    """Count and mean of the rows around each of many centers, which the plan's rows give."""
    rows = _seen(problem)
    n_cells = problem.n_bytes // (NUMBER * (problem.d + 1))
    n_cells = max(problem.k, min(n_cells, len(rows) // ROWS_PER_CELL, MOST_CELLS))
    middle, spread = rows.mean(axis=0), np.sqrt(rows.var(axis=0).sum())
    cells = plan_cells((rows - middle) / spread, n_cells, seed=problem.seed)
    means, counts = _means_around(problem.X, cells.table * spread + middle)
    centroids = kmeans(_stored(means), problem.k, problem.seed, counts)
    return Found(centroids, NUMBER * cells.n_cells * (problem.d + 1))


def _seen(problem: Problem) -> np.ndarray:
    """The rows that a plan looks at."""
    if len(problem.seen) <= MOST_SEEN:
        return problem.seen
    rng = np.random.default_rng(problem.seed)
    return problem.seen[rng.choice(len(problem.seen), MOST_SEEN, replace=False)]


def _means_around(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and number of the rows nearest to each center; a center without rows stays."""
    labels = pairwise_distances_argmin(X, centers)
    counts = np.bincount(labels, minlength=len(centers)).astype(np.float64)
    sums = [np.bincount(labels, column, minlength=len(centers)) for column in X.T]
    means = np.array(sums).T / np.maximum(counts, 1.0)[:, None]
    means[counts == 0.0] = centers[counts == 0.0]
    return means, counts


def bico(problem: Problem) -> Found:
    """BICO of its authors (Fichtenberger et al. 2013), and k-means of the means of its features."""
    from bico import BICO

    size = problem.n_bytes // (NUMBER * (problem.d + 2))
    tree = BICO(problem.k, summary_size=size, random_state=problem.seed).fit(problem.X)
    rows, weights = tree.coreset_points_.copy(), tree.coreset_weights_.copy()
    centroids = kmeans(_stored(rows), problem.k, problem.seed, weights)
    return Found(centroids, NUMBER * len(rows) * (problem.d + 2))


def streamkm(problem: Problem) -> Found:
    """A coreset by merge and reduce, as StreamKM++ has it (Ackermann et al. 2012).

    Blocks of rows are merged two by two, and each pair reduced to the size of one by D^2 sampling.
    Here some rows are drawn at a time and not one. Only the last block counts as bytes.
    """
    size = problem.n_bytes // (NUMBER * (problem.d + 1))
    rng = np.random.default_rng(problem.seed)
    levels: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for first in range(0, len(problem.X), size):
        rows = problem.X[first : first + size]
        block, level = (rows, np.ones(len(rows))), 0
        while level in levels:
            block, level = _reduced(_merged(levels.pop(level), block), size, rng), level + 1
        levels[level] = block
    rows, weights = _reduced(_merged(*levels.values()), size, rng)
    centroids = kmeans(_stored(rows), problem.k, problem.seed, weights)
    return Found(centroids, NUMBER * len(rows) * (problem.d + 1))


def _merged(*blocks: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    rows, weights = zip(*blocks, strict=True)
    return np.concatenate(rows), np.concatenate(weights)


def _reduced(
    block: tuple[np.ndarray, np.ndarray], size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """So many of the rows, drawn by weight and squared distance; each has the weight around it."""
    rows, weights = block
    if len(rows) <= size:
        return block
    at_once = min(max(1, size // ROUNDS), MOST_AT_ONCE)
    chosen = np.empty(0, dtype=np.int64)
    nearest, owners = np.full(len(rows), np.inf), np.zeros(len(rows), dtype=np.int64)
    chances = weights
    while len(chosen) < size and chances.any():
        totals = np.cumsum(chances)
        draws = rng.random(min(at_once, size - len(chosen))) * totals[-1]
        new = np.unique(np.minimum(np.searchsorted(totals, draws, "right"), len(rows) - 1))
        distances = cdist(rows, rows[new], "sqeuclidean")
        best = distances.argmin(axis=1)
        least = distances[np.arange(len(rows)), best]
        is_nearer = least < nearest
        owners[is_nearer] = len(chosen) + best[is_nearer]
        nearest = np.minimum(nearest, least)
        chosen, chances = np.concatenate([chosen, new]), weights * nearest
    return rows[chosen], np.bincount(owners, weights, minlength=len(chosen))


def mini_batch(problem: Problem) -> Found:
    """One pass of MiniBatchKMeans, 1024 rows at a time, in the order of the file."""
    means = MiniBatchKMeans(problem.k, batch_size=BATCH, n_init=1, random_state=problem.seed)
    for first in range(0, len(problem.X), BATCH):
        means.partial_fit(problem.X[first : first + BATCH])
    return Found(means.cluster_centers_, NUMBER * problem.k * (problem.d + 1))


def river_kmeans(problem: Problem) -> Found:
    """One pass of river's KMeans in the order of the file.

    It starts at standard normal points, so that the rows are centred and scaled for it.
    """
    from river import cluster

    middle = problem.X.mean(axis=0)
    rows = problem.X - middle
    spread = rows.std()
    means = cluster.KMeans(problem.k, halflife=HALF_LIFE, seed=problem.seed)
    for row in (rows / spread).tolist():
        means.learn_one(dict(enumerate(row)))
    found = [[center[j] for j in range(problem.d)] for center in means.centers.values()]
    return Found(np.array(found) * spread + middle, NUMBER * problem.k * problem.d)


def _stored(rows: np.ndarray) -> np.ndarray:
    """The rows as float32 keeps them."""
    return rows.astype(np.float32).astype(np.float64)
