"""Ways to find k centroids of wide data, each from a file of rows, and what each keeps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import sketchshift as ss

PLAN_NUMBERS = 2**24  # numbers of the rows that a plan sees
BLOCK_NUMBERS = 2**21
FEW = 50  # clusters up to which the k-means of a sample has five starts


@dataclass(frozen=True, eq=False)
class Problem:
    """A file of rows, the number of clusters, and what a plan may see."""

    path: Path
    k: int
    is_stale: bool = False
    seed: int = 0
    n_bytes: int = 0

    @property
    def rows(self) -> np.ndarray:
        """All rows, as a map of the file."""
        return np.load(self.path, mmap_mode="r")


@dataclass(frozen=True, eq=False)
class Found:
    """Centroids (k, d), and the bytes they were found from."""

    centroids: np.ndarray
    n_bytes: int


def blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    """A few rows at a time, in memory."""
    step = max(1, BLOCK_NUMBERS // rows.shape[1])
    for first in range(0, len(rows), step):
        yield np.array(rows[first : first + step])


def plan_rows(problem: Problem) -> np.ndarray:
    """The rows that a plan sees: drawn from all, or from the lower half along the first axis."""
    rows, rng = problem.rows, np.random.default_rng(problem.seed)
    n, d = rows.shape
    those = np.arange(n)
    if problem.is_stale:
        along = _first_coordinates(rows, rng)
        those = np.flatnonzero(along <= np.median(along))
    most = min(len(those), PLAN_NUMBERS // d)
    return rows[np.sort(rng.choice(those, most, replace=False))]


def _first_coordinates(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    some = rows[np.sort(rng.choice(len(rows), min(len(rows), 5_000), replace=False))]
    middle = some.mean(axis=0)
    _, vectors = np.linalg.eigh(np.cov((some - middle).T))
    axis = vectors[:, -1].astype(np.float32)
    axis *= np.sign(axis[np.abs(axis).argmax()])  # the same half on every machine
    return np.concatenate([(block - middle) @ axis for block in blocks(rows)])


def nearest(block: np.ndarray, centroids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels and squared distances: found in single precision, then exact."""
    points = centroids.astype(np.float32)
    labels = (block @ points.T - 0.5 * np.square(points).sum(axis=1)).argmax(axis=1)
    return labels, np.square(block - centroids[labels]).sum(axis=1, dtype=np.float64)


def mse(rows: np.ndarray, centroids: np.ndarray) -> float:
    """Mean squared distance of all rows to their nearest centroids, block by block."""
    return sum(float(nearest(block, centroids)[1].sum()) for block in blocks(rows)) / len(rows)


def kmeans(rows: np.ndarray, k: int, seed: int, n_init: int) -> np.ndarray:
    """scikit-learn's k-means."""
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KMeans(k, n_init=n_init, random_state=seed).fit(rows).cluster_centers_


def ours(problem: Problem) -> Found:
    """The default call: plan, one pass over the file, decoding."""
    seen = plan_rows(problem) if problem.is_stale else problem.path
    spec = ss.plan(seen, n_clusters=problem.k)
    sketch = ss.sketch(problem.path, spec)
    return Found(ss.decode(sketch, problem.k, seed=problem.seed).centroids, sketch.nbytes)


def pilot(problem: Problem) -> Found:
    """k-means of the rows that the plan sees."""
    seen = plan_rows(problem)
    centroids = kmeans(seen, problem.k, problem.seed, 5 if problem.k <= FEW else 1)
    return Found(centroids, 4 * seen.size)


def pilot_and_pass(problem: Problem) -> Found:
    """The same, moved to the means of all rows nearest to them."""
    found = pilot(problem)
    sums, counts = np.zeros(found.centroids.shape), np.zeros(problem.k)
    for block in blocks(problem.rows):
        labels, _ = nearest(block, found.centroids)
        np.add.at(sums, labels, block)
        counts += np.bincount(labels, minlength=problem.k)
    has_rows = counts > 0
    moved = np.array(found.centroids, dtype=np.float64)
    moved[has_rows] = sums[has_rows] / counts[has_rows, None]
    return Found(moved, found.n_bytes)


def sample(problem: Problem) -> Found:
    """k-means of as many rows as our sketch has bytes for, drawn from all."""
    rows, rng = problem.rows, np.random.default_rng(problem.seed)
    n = min(len(rows), max(problem.k, problem.n_bytes // (4 * rows.shape[1])))
    some = rows[np.sort(rng.choice(len(rows), n, replace=False))]
    centroids = kmeans(some, problem.k, problem.seed, 5 if problem.k <= FEW else 1)
    return Found(centroids, 4 * some.size)


def reference(problem: Problem) -> Found:
    """One run of scikit-learn's k-means with all rows in memory."""
    rows = np.array(problem.rows)
    return Found(kmeans(rows, problem.k, problem.seed, 1), rows.nbytes)


METHODS: dict[str, Callable[[Problem], Found]] = {
    "ours": ours,
    "pilot": pilot,
    "pilot-pass": pilot_and_pass,
    "sample": sample,
    "k-means": reference,
}
"""By name. Those after "ours" that keep as many bytes need its run first."""
