r"""How good centroids are: mean squared error, and ratios of it.

Takes data and centroids as arrays, in the same units; nothing here knows sketches. Data is
read block by block, so it may be a memory map. Where a :class:`~sketchshift.Decoding` is given
instead of centroids, it measures distances itself, as its clusters were found.

Symbols
-------
N, d, k   rows, columns, centroids
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift._validation import check_integer, parameter_error, unmasked, widen
from sketchshift.errors import DataError

__all__ = [
    "Assignment",
    "as_weights",
    "assign",
    "lloyd",
    "match_centroids",
    "mse",
    "nearest_two",
    "rse",
]

_BLOCK = 1 << 18  # numbers of an array held at a time


def mse(X: Any, centroids: Any, *, sample_weight: Any = None) -> float:
    r"""Mean squared distance of the rows to their nearest centroids.

    .. math::

        \mathrm{MSE}(X, C) = \frac{\sum_n w_n \min_i \|x_n - c_i\|^2}{\sum_n w_n}

    Parameters
    ----------
    X : array-like of shape (N, d)
        Of any real dtype; a memory map is read block by block.
    centroids : array-like of shape (k, d)
        In the units of X.
    sample_weight : array-like of shape (N,) or None
        The :math:`w_n >= 0`; None: all 1.

    Returns
    -------
    mse : float
        Data far from the origin costs no digits. O(N k d) time, memory of a few blocks.

    Examples
    --------
    >>> mse([[0.0], [1.0], [5.0]], [[0.5], [5.0]])
    0.16666666666666666
    """
    rows, points = _as_rows(X), _as_centroids(centroids)
    weights = None if sample_weight is None else as_weights(sample_weight, len(rows))
    sums = []
    for part, _, distances in _nearest(rows, points):
        sums.append(float(distances.sum() if weights is None else distances @ weights[part]))
    return math.fsum(sums) / (len(rows) if weights is None else float(weights.sum()))


def rse(X: Any, centroids: Any, reference: Any, *, sample_weight: Any = None) -> float:
    r"""Mean squared error relative to that of a reference: MSE(X, C) / MSE(X, reference).

    Parameters
    ----------
    X : array-like of shape (N, d)
        Data, see :func:`mse`.
    centroids : array-like of shape (k, d)
        To be judged.
    reference : array-like of shape (k', d) or float
        Centroids, usually those of :func:`lloyd`, or their MSE if it is known.
    sample_weight : array-like of shape (N,) or None
        Weights of the rows in both errors.

    Returns
    -------
    rse : float
        1 is as good as the reference, more is worse.
    """
    if np.ndim(reference) == 0:
        is_number = isinstance(reference, Real) and not isinstance(reference, bool)
        if not is_number or not 0.0 < float(reference) < math.inf:
            must = "centroids or a positive number"
            raise parameter_error("rse", "reference", must, reference)
        error = float(reference)
    else:
        error = mse(X, reference, sample_weight=sample_weight)
    if error == 0.0:
        msg = "the reference has an MSE of 0, so no ratio to it exists. Compare MSEs instead."
        raise DataError(msg)
    return mse(X, centroids, sample_weight=sample_weight) / error


def assign(X: Any, centroids: Any) -> IntArray:
    """Number of the nearest centroid of each row, the lowest among equal centroids.

    Parameters
    ----------
    X : array-like of shape (N, d)
        Data, see :func:`mse`. With a decoding, anything that :func:`~sketchshift.sketch` reads.
    centroids : array-like of shape (k, d), or Decoding
        In the units of X: distances are those of the numbers as they are. A
        :class:`~sketchshift.Decoding` knows more than centroids, and is better: distances are those
        that its clusters were found by, see :meth:`~sketchshift.Decoding.predict`.

    Returns
    -------
    labels : int64 array of shape (N,)
        From 0 to k - 1; with a decoding, -1 where a value is missing. O(N k d).
    """
    if hasattr(centroids, "predict"):
        labels_of: IntArray = centroids.predict(X)
        return labels_of
    rows = _as_rows(X)
    labels = np.empty(len(rows), dtype=np.int64)
    for part, nearest, _ in _nearest(rows, _as_centroids(centroids)):
        labels[part] = nearest
    return labels


@dataclass(frozen=True, eq=False)
class Assignment:
    """The clusters that rows belong to, and how surely.

    Attributes
    ----------
    labels : int64 array of shape (N,)
        Number of the nearest centroid; -1 where a value is missing or infinite.
    distances : array of shape (N,)
        To that centroid, in the distances that the clusters were found by; NaN for -1.
    second : int64 array of shape (N,)
        Number of the second nearest centroid; -1 where there is none.
    confidence : array of shape (N,)
        ``1 - d1 / d2`` of the distances to both: 1 at a centroid, 0 half-way between two. 1 where
        there is one cluster alone, and 0 for -1.
    """

    labels: IntArray
    distances: FloatArray
    second: IntArray
    confidence: FloatArray

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"<Assignment of {len(self):,} rows to {len(set(self.labels) - {-1})} clusters>"


def nearest_two(values: Any, centroids: Any, scale: Any = None) -> Assignment:
    """The nearest and the second nearest centroid of each row.

    Parameters
    ----------
    values : array of shape (N, d)
        Rows, in memory. Rows with missing or infinite values belong to no cluster.
    centroids : array-like of shape (k, d)
        In the units of the rows.
    scale : array-like of shape (d,) or None
        What distances divide each column by.

    Returns
    -------
    assignment : Assignment
        O(N k d) time, O(N) memory and a few blocks.
    """
    points = _as_centroids(centroids)
    widths = np.ones(points.shape[1]) if scale is None else np.asarray(scale, dtype=np.float64)
    n = len(values)
    labels, second = (np.full(n, -1, dtype=np.int64) for _ in range(2))
    distances, confidence = np.full(n, np.nan), np.zeros(n)
    middle = points.mean(axis=0)
    offsets = (points - middle) / widths
    step = max(1, _BLOCK // max(offsets.shape))
    for first in range(0, n, step):
        block = (np.asarray(values[first : first + step], dtype=np.float64) - middle) / widths
        rows = np.flatnonzero(np.isfinite(block).all(axis=1))
        block = block[rows]
        scores = block @ offsets.T - 0.5 * (offsets**2).sum(axis=1)
        nearest = np.argmax(scores, axis=1)
        own = np.linalg.norm(block - offsets[nearest], axis=1)
        rows = rows + first
        labels[rows], distances[rows], confidence[rows] = nearest, own, 1.0
        if len(points) > 1:
            scores[np.arange(len(rows)), nearest] = -np.inf
            second[rows] = np.argmax(scores, axis=1)
            other = np.linalg.norm(block - offsets[second[rows]], axis=1)
            ratio = np.divide(own, other, out=np.ones_like(own), where=other > 0.0)
            confidence[rows] = np.clip(1.0 - ratio, 0.0, 1.0)
    return Assignment(labels, distances, second, confidence)


def lloyd(X: Any, n_clusters: int, *, n_init: int = 5, seed: int = 0) -> FloatArray:
    """Centroids of k-means with the data at hand: the reference of :func:`rse`.

    Parameters
    ----------
    X : array-like of shape (N, d)
        Data, held in memory.
    n_clusters : int
        Number k of centroids.
    n_init : int, default=5
        Runs of Lloyd's algorithm from k-means++ starts, of which the best is kept.
    seed : int, default=0
        From 0 to 2**32 - 1. It sets the starts; sums over several threads may still differ
        in the last bit.

    Returns
    -------
    centroids : array of shape (k, d)
        scikit-learn's. O(N k d) an iteration.
    """
    from sklearn.cluster import KMeans

    rows = _as_rows(X)
    check_integer("lloyd", "n_clusters", n_clusters, 1, len(rows))
    check_integer("lloyd", "n_init", n_init, 1, 2**31 - 1)
    check_integer("lloyd", "seed", seed, 0, 2**32 - 1)
    if not np.isfinite(rows).all():
        raise DataError("lloyd needs finite rows, and there is NaN or infinity among them.")
    means = KMeans(n_clusters, init="k-means++", n_init=n_init, random_state=seed).fit(rows)
    return np.asarray(means.cluster_centers_, dtype=np.float64)


def match_centroids(left: Any, right: Any) -> IntArray:
    r"""The permutation that lines up one set of centroids with another.

    .. math::

        \arg\min_\pi \sum_i \|l_i - r_{\pi(i)}\|^2

    Parameters
    ----------
    left, right : array-like of shape (k, d)
        Two sets of as many centroids.

    Returns
    -------
    order : int64 array of shape (k,)
        ``right[order]`` lines up with ``left``. O(k^2 d + k^3).
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    left, right = _as_centroids(left), _as_centroids(right)
    if left.shape != right.shape:
        msg = f"only as many centroids can be matched. Got shapes {left.shape} and {right.shape}."
        raise DataError(msg)
    _, order = linear_sum_assignment(cdist(left, right, "sqeuclidean"))
    return np.asarray(order, dtype=np.int64)


def _nearest(
    rows: RealArray, centroids: FloatArray
) -> Iterator[tuple[slice, IntArray, FloatArray]]:
    """Blocks of rows, their nearest centroids and the squared distances to them."""
    if rows.shape[1] != centroids.shape[1]:
        msg = f"the data has {rows.shape[1]} columns, and the centroids have {centroids.shape[1]}."
        raise DataError(msg)
    middle = centroids.mean(axis=0)
    centroids = centroids - middle
    step = max(1, _BLOCK // max(centroids.shape))
    for first in range(0, len(rows), step):
        part = slice(first, min(first + step, len(rows)))
        nearest, distances = _nearest_to(rows[part].astype(np.float64) - middle, centroids)
        if not np.isfinite(distances).all():
            row = first + int(np.flatnonzero(~np.isfinite(distances))[0])
            raise DataError(f"row {row} holds NaN, infinity or numbers whose squares overflow.")
        yield part, nearest, distances


@np.errstate(over="ignore", invalid="ignore")  # the caller looks at the distances
def _nearest_to(block: FloatArray, centroids: FloatArray) -> tuple[IntArray, FloatArray]:
    """Nearest centroids of centred rows, and squared distances to them.

    The nearest one maximises <x, c> - |c|^2 / 2; its distance is then computed by itself, so
    that nothing cancels. ``block`` is used up.
    """
    nearest = np.argmax(block @ centroids.T - 0.5 * (centroids**2).sum(axis=1), axis=1)
    block -= centroids[nearest]
    return nearest, np.einsum("ij,ij->i", block, block)


def _as_rows(X: Any) -> RealArray:
    rows: RealArray = widen(np.asarray(unmasked(X)))
    if rows.ndim != 2 or rows.size == 0 or rows.dtype.kind not in "fiub":
        msg = (
            "data must be an array of real numbers of shape (N, d), neither 0. Got shape "
            f"{rows.shape} and dtype {rows.dtype}."
        )
        raise DataError(msg)
    return rows


def _as_centroids(centroids: Any) -> FloatArray:
    points = np.asarray(unmasked(centroids))
    if points.ndim != 2 or points.size == 0 or points.dtype.kind not in "fiub":
        msg = (
            "centroids must be an array of real numbers of shape (k, d), neither 0. Got shape "
            f"{points.shape} and dtype {points.dtype}."
        )
        raise DataError(msg)
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if bad.size:
        raise DataError(f"centroids must be finite. Number {bad[0]} holds NaN or infinity.")
    return points.astype(np.float64)


def as_weights(sample_weight: Any, n: int) -> FloatArray:
    """Weights as floats, one for each of n rows; refused where one is missing or negative."""
    weights = np.asarray(unmasked(sample_weight), dtype=np.float64)
    if weights.shape != (n,):
        raise DataError(f"sample_weight must have shape ({n},), one a row. Got {weights.shape}.")
    if not np.isfinite(weights).all() or weights.min() < 0.0 or weights.sum() == 0.0:
        raise DataError("sample_weight must be finite, at least 0, and not 0 everywhere.")
    return weights
