"""Data for examples: a picture that comes with scikit-learn, and made-up clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import FloatArray, IntArray
from sketchshift.errors import MissingDependencyError

__all__ = ["china_pixels", "gaussian_mixture"]


def china_pixels() -> NDArray[np.uint8]:
    """The pixels of scikit-learn's picture ``china.jpg``: real data of dimension 3.

    Returns
    -------
    X : array of shape (273280, 3)
        Red, green and blue, uint8: 0.8 MB.
    """
    from sklearn.datasets import load_sample_image

    try:
        picture: NDArray[np.uint8] = load_sample_image("china.jpg")
    except ImportError as cause:
        msg = 'reading the picture needs Pillow. Run: pip install "sketchshift[view]"'
        raise MissingDependencyError(msg) from cause
    return picture.reshape(-1, 3)


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
