r"""Spectral features of images: what figure 8 clusters, from the raw pixels of MNIST.

One SIFT descriptor an image, the exact nearest-neighbour graph of these, and eigenvectors of
its normalised Laplacian. ``make data DATA=spectral_mnist`` fetches the pixels and makes them.

Symbols
-------
N, d      images, features
A         adjacency of the graph, symmetric, 0 or 1: (N, N)
L_sym     I - D^{-1/2} A D^{-1/2}, with D the degrees
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from sketchshift.errors import DataError
from sketchshift_papers.data.fetch import write_arrays

__all__ = [
    "laplacian_eigenvectors",
    "neighbour_graph",
    "sift_descriptors",
    "spectral_features",
    "write_features",
]

FloatArray: TypeAlias = NDArray[np.float64]
WINDOW = 22.0 / 28.0
"""Width of the descriptor's window, as a share of the image's."""
WIDTHS_OF_SIZE = 6.0  # OpenCV's descriptor spans 4 cells of 1.5 times the keypoint's size


def spectral_features(images: Any, *, n_features: int = 10, n_neighbors: int = 10) -> FloatArray:
    """Features of images, as in section 5.3 of the paper.

    Parameters
    ----------
    images : uint8 array of shape (N, height, width)
        Grey levels.
    n_features : int
        d, the number of eigenvectors.
    n_neighbors : int
        Of each image in the graph, itself left out.

    Returns
    -------
    X : array of shape (N, d)
        Eigenvectors scaled by the square root of N: every column has unit root mean square.
    """
    graph = neighbour_graph(sift_descriptors(images), n_neighbors)
    return laplacian_eigenvectors(graph, n_features)


def sift_descriptors(images: Any) -> NDArray[np.float32]:
    """One SIFT descriptor at the centre of each image, not rotated: (N, 128)."""
    pixels = np.asarray(images)
    if pixels.ndim != 3 or pixels.dtype != np.uint8 or len(pixels) == 0:
        msg = (
            "images must be a uint8 array of shape (N, height, width). Got shape "
            f"{pixels.shape} and dtype {pixels.dtype}."
        )
        raise DataError(msg)
    height, width = pixels.shape[1:]
    size = WINDOW * min(height, width) / WIDTHS_OF_SIZE
    sift = getattr(cv2, "SIFT_create")()  # noqa: B009 - not in all its stubs
    centre = cv2.KeyPoint(x=(width - 1) / 2, y=(height - 1) / 2, size=size, angle=0.0)
    rows = [sift.compute(np.ascontiguousarray(image), [centre])[1][0] for image in pixels]
    return np.asarray(rows, dtype=np.float32)


def neighbour_graph(descriptors: Any, n_neighbors: int) -> Any:
    """Symmetric 0/1 graph of the exact nearest neighbours, sparse: O(N^2) time."""
    from sklearn.neighbors import NearestNeighbors

    finder = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(descriptors)
    directed = finder.kneighbors_graph(mode="connectivity")
    return directed.maximum(directed.T).tocsr()


def laplacian_eigenvectors(graph: Any, n_features: int) -> FloatArray:
    """Eigenvectors of the smallest positive eigenvalues of L_sym, scaled by sqrt(N).

    Parameters
    ----------
    graph : sparse array of shape (N, N)
        Symmetric, without isolated nodes.
    n_features : int
        How many.

    Returns
    -------
    X : array of shape (N, n_features)
        By rising eigenvalue; the entry of largest magnitude of each column is positive.
    """
    from scipy.sparse import diags_array
    from scipy.sparse.csgraph import connected_components
    from scipy.sparse.linalg import eigsh

    n = graph.shape[0]
    n_zero = int(connected_components(graph, directed=False)[0])
    if n_zero + n_features >= n:
        msg = f"{n} images in {n_zero} unconnected groups are too few for {n_features} features."
        raise DataError(msg)
    roots = diags_array(1.0 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
    start = np.random.Generator(np.random.PCG64(0)).standard_normal(n)
    # the largest of D^{-1/2} A D^{-1/2} are the smallest of L_sym; every group adds a zero
    values, vectors = eigsh(roots @ graph @ roots, k=n_zero + n_features, which="LA", v0=start)
    order = np.argsort(-values)[n_zero:]
    X = vectors[:, order] * np.sqrt(n)
    tops = X[np.abs(X).argmax(axis=0), np.arange(n_features)]
    return np.asarray(X * np.sign(tops), dtype=np.float64)


def write_features(images: Path, output: Path) -> None:
    """Write the features of a file of images.

    Parameters
    ----------
    images : Path
        An ``.npz`` file with ``X`` (N, height, width), and ``y``.
    output : Path
        An ``.npz`` file with ``X`` (N, d), and ``y``.
    """
    with np.load(images, allow_pickle=False) as arrays:
        pixels, labels = arrays["X"], arrays["y"]
    write_arrays(output, {"X": spectral_features(pixels).astype(np.float32), "y": labels})
