"""Made-up data with known clusters, for tests, benchmarks and the documentation."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import FloatArray, IntArray

__all__ = ["gaussian_mixture"]


def gaussian_mixture(
    n_samples: int,
    n_features: int,
    n_clusters: int,
    *,
    cluster_std: float = 0.05,
    seed: int = 0,
) -> tuple[FloatArray, IntArray]:
    """Draw points around means that are uniform in the cube [-1, 1]^d.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        Number of points, their dimension d, and the number of means.
    cluster_std : float
        Standard deviation of every cluster in every direction.
    seed : int
        Of the bit generator PCG64.

    Returns
    -------
    X : array of shape (n_samples, n_features)
        Points in float64: all of them, in memory.
    labels : array of shape (n_samples,)
        Cluster of each point, all equally likely and independent.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    means = rng.uniform(-1.0, 1.0, (n_clusters, n_features))
    labels = rng.integers(n_clusters, size=n_samples)
    noise = rng.standard_normal((n_samples, n_features))
    return means[labels] + cluster_std * noise, labels
