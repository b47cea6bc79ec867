r"""Spectral features of images: what figure 8 clusters, from the raw pixels of MNIST.

One SIFT descriptor an image, the exact nearest-neighbour graph of these, and eigenvectors of
its normalised Laplacian. ``sketchshift data spectral_mnist`` fetches the pixels and makes them;
for other images, ``python -m sketchshift.data.spectral_features --help``. Needs the extra
``paper`` (OpenCV).

Symbols
-------
N, d      images, features
A         adjacency of the graph, symmetric, 0 or 1: (N, N)
L_sym     I - D^{-1/2} A D^{-1/2}, with D the degrees
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from sketchshift._text import visible
from sketchshift._typing import FloatArray
from sketchshift._validation import check_integer
from sketchshift.data.public import write_arrays
from sketchshift.errors import DataError, MissingDependencyError

__all__ = [
    "laplacian_eigenvectors",
    "main",
    "neighbour_graph",
    "sift_descriptors",
    "spectral_features",
    "write_features",
]

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
    check_integer("spectral_features", "n_features", n_features, 1, 1000)
    graph = neighbour_graph(sift_descriptors(images), n_neighbors)
    return laplacian_eigenvectors(graph, n_features)


def sift_descriptors(images: Any) -> NDArray[np.float32]:
    """One SIFT descriptor at the centre of each image, not rotated: (N, 128)."""
    try:
        import cv2
    except ImportError as cause:
        msg = 'SIFT descriptors need OpenCV. Run: pip install "sketchshift[paper]"'
        raise MissingDependencyError(msg) from cause
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

    n = len(descriptors)
    check_integer("spectral_features", "n_neighbors", n_neighbors, 1, max(1, n - 1))
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


@click.command()
@click.argument("images", type=click.Path(exists=True, dir_okay=False))
@click.option("-o", "--output", default="spectral_mnist.npz", show_default=True, metavar="PATH")
@click.option("--rows", type=click.IntRange(min=20), help="Only so many images; default: all.")
def main(images: str, output: str, rows: int | None) -> None:
    """Write spectral features of IMAGES, an .npz file with X (N, height, width) and y."""
    try:
        n, d = write_features(Path(images), Path(output), rows)
    except (DataError, MissingDependencyError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Wrote {visible(output)}: {n:,} rows x {d} columns.")


def write_features(images: Path, output: Path, rows: int | None = None) -> tuple[int, int]:
    """Write the features of a file of images.

    Parameters
    ----------
    images : Path
        An ``.npz`` file with ``X`` (N, height, width), and ``y`` where there are labels.
    output : Path
        An ``.npz`` file with ``X`` (N, d), and ``y``.
    rows : int or None
        Only so many images.

    Returns
    -------
    shape : tuple of int
        N and d.
    """
    with np.load(images, allow_pickle=False) as arrays:
        if "X" not in arrays:
            raise DataError(f"{str(images)!r} holds no array X.")
        pixels = arrays["X"][:rows]
        labels = {"y": arrays["y"][:rows]} if "y" in arrays else {}
    X = spectral_features(pixels)
    write_arrays(output, {"X": X.astype(np.float32), **labels})
    return len(X), X.shape[1]


if __name__ == "__main__":
    main()
