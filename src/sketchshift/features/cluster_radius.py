"""How wide a cluster is: a k-means of the sample, asked for its error alone."""

from __future__ import annotations

import math
import warnings

import numpy as np

from sketchshift._typing import FloatArray

__all__ = ["cluster_radius"]

FEW_CLUSTERS = 100  # up to here, the better of two starts
MOST_CLUSTERS = 1000  # beyond, a k-means would take minutes
MAX_ITERATIONS = 20  # the error is settled long before the centroids are


def cluster_radius(rows: FloatArray, shares: FloatArray, n_clusters: int) -> float:
    r"""Root mean squared distance of a row to the centroid of its cluster.

    .. math:: r_w^2 = \frac{n}{n - k} \sum_i w_i \min_j \|x_i - c_j\|^2

    Parameters
    ----------
    rows : array of shape (n, d)
        The sample.
    shares : array of shape (n,)
        Weights :math:`w_i` that sum up to 1.
    n_clusters : int
        Number k of clusters. If there are fewer than 2 k different rows, or more than 1000
        clusters, the radius of half as many clusters as rows, or of 1000 clusters, is continued
        by the law :math:`k^{-1/d}` of filled space.

    Returns
    -------
    radius : float
        Positive. It does not depend on the number of threads; O(n k d) an iteration.
    """
    n, d = rows.shape
    n_different = len(np.unique(rows, axis=0))
    k = min(n_clusters, n_different // 2, MOST_CLUSTERS)
    if k == 0:
        return float(n_clusters ** (-1.0 / d))  # of rows that fill a ball of radius 1
    error = _error(rows, shares, k) * n / (n - k)
    return max(math.sqrt(error), 1e-150) * float((k / n_clusters) ** (1.0 / d))


def _error(rows: FloatArray, shares: FloatArray, k: int) -> float:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    n_init = 2 if k <= FEW_CLUSTERS else 1
    means = KMeans(k, n_init=n_init, max_iter=MAX_ITERATIONS, random_state=0)
    with warnings.catch_warnings(), threadpool_limits(1):  # sums in a fixed order
        warnings.simplefilter("ignore", ConvergenceWarning)  # rows that differ by rounding only
        means.fit(rows, sample_weight=shares * len(shares))
    return float(means.inertia_) / len(shares)
