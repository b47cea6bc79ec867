"""What the same bytes buy without a sketch: rows, weighted rows, one pass, or all of the data."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning

from quality.datasets import Dataset
from quality.found import Found, timed

NUMBER = 4  # bytes of a number of a row that is kept: float32
STARTS = 5  # k-means++ starts on the rows that were kept
BATCH = 1024


def uniform(data: Dataset, n_bytes: int, seed: int) -> Found:
    """k-means of as many rows, drawn alike, as fit into the bytes."""
    n_rows = min(n_bytes // (NUMBER * data.d), data.n)
    rows = np.random.default_rng(seed).choice(data.n, n_rows, replace=False)
    centroids, seconds = timed(lambda: kmeans(_stored(data.X[rows]), data.k, seed))
    return Found(centroids, seconds, n_rows * NUMBER * data.d)


def coreset(data: Dataset, n_bytes: int, seed: int) -> Found:
    """k-means of a lightweight coreset that fits into the bytes; a weight is one more number."""
    n_rows = n_bytes // (NUMBER * (data.d + 1))
    rows, weights = lightweight_coreset(data.X, n_rows, seed)
    centroids, seconds = timed(lambda: kmeans(_stored(data.X[rows]), data.k, seed, weights))
    return Found(centroids, seconds, n_rows * NUMBER * (data.d + 1))


def lightweight_coreset(X: np.ndarray, n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1 of Bachem, Lucic and Krause (2018): rows and their weights, in two passes.

    Half of the probability is uniform, half goes with the squared distance to the mean.
    """
    distances = ((X - X.mean(axis=0)) ** 2).sum(axis=1)
    probabilities = 0.5 / len(X) + 0.5 * distances / distances.sum()
    probabilities /= probabilities.sum()
    rows = np.random.default_rng(seed).choice(len(X), n_rows, p=probabilities)
    weights = 1.0 / (n_rows * probabilities[rows])
    return rows, weights.astype(np.float32).astype(np.float64)


def kmeans(
    rows: np.ndarray, k: int, seed: int, weights: np.ndarray | None = None, starts: int = STARTS
) -> np.ndarray:
    """Lloyd's algorithm from k-means++ starts, the best of several."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than k
        found = KMeans(k, n_init=starts, random_state=seed).fit(rows, sample_weight=weights)
    return found.cluster_centers_


def mini_batch(data: Dataset, seed: int) -> Found:
    """One pass of MiniBatchKMeans in the order of the file."""
    return _one_pass(data, np.arange(data.n), seed)


def mini_batch_sorted(data: Dataset, seed: int) -> Found:
    """One pass of MiniBatchKMeans in the order of the labels, as a sorted stream comes."""
    assert data.labels is not None
    return _one_pass(data, np.argsort(data.labels, kind="stable"), seed)


def _one_pass(data: Dataset, order: np.ndarray, seed: int) -> Found:
    means = MiniBatchKMeans(data.k, batch_size=BATCH, n_init=1, random_state=seed)

    def read() -> np.ndarray:
        for first in range(0, data.n, BATCH):
            means.partial_fit(data.X[order[first : first + BATCH]])
        return means.cluster_centers_

    centroids, seconds = timed(read)
    return Found(centroids, seconds, 8 * data.k * (data.d + 1))


def lloyd(data: Dataset, seed: int) -> Found:
    """One run of k-means with all of the data at hand."""
    centroids, seconds = timed(lambda: kmeans(data.X, data.k, seed, starts=1))
    return Found(centroids, seconds, NUMBER * data.n * data.d)


def _stored(rows: np.ndarray) -> np.ndarray:
    """The rows as float32 keeps them."""
    return rows.astype(np.float32).astype(np.float64)
