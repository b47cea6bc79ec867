"""Datasets: a folder of real ones, a picture that comes with scikit-learn, made-up clusters.

The folder holds one ``.npz`` file per dataset; none of it is part of this library. It is the one
that the environment variable ``SKETCHSHIFT_DATA`` names, else a cache that ``sketchshift data``
fills.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift.errors import DataError, MissingDependencyError

__all__ = [
    "NAMES",
    "NOT_PUBLIC",
    "china_pixels",
    "data_folder",
    "gaussian_mixture",
    "is_here",
    "load",
    "load_labels",
    "path_of",
]

SIPU = ("a1", "a2", "a3", "birch1", "birch2", "d31", "s1", "s2", "s3", "s4", "unbalance", "worms_2")
NAMES = (
    "cifar10_features",
    "covertype",
    "cytof",
    "mnist",
    *(f"sipu/{name}" for name in SIPU),
    "skin",
    "spectral_mnist",
    "uber_pickups",
)
NOT_PUBLIC = {
    "cifar10_features": (
        "the features are those of a trained network, which no public file has. Its making is told "
        "in docs/reproduction.md"
    )
}
"""What ``sketchshift data`` does not fetch, and why."""


def data_folder() -> Path:
    """The folder of the datasets: ``SKETCHSHIFT_DATA``, else a cache of the user.

    Returns
    -------
    folder : Path
        It need not exist.
    """
    named = os.environ.get("SKETCHSHIFT_DATA")
    if named:
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "sketchshift"


def is_here(name: str) -> bool:
    """Whether a dataset of ``NAMES`` can be loaded."""
    return _path(name).is_file()


def load(name: str) -> RealArray:
    """The points of a dataset in the folder.

    Parameters
    ----------
    name : str
        One of ``NAMES``.

    Returns
    -------
    X : array of shape (N, d)
        In the dtype it is stored in, all in memory; images have one pixel per column.
    """
    with np.load(path_of(name), allow_pickle=False) as arrays:
        X: RealArray = arrays[_key(name, "X")]
    return X.reshape(len(X), -1)


def load_labels(name: str) -> NDArray[np.integer] | None:
    """The labels of a dataset in the folder, one a row.

    Parameters
    ----------
    name : str
        One of ``NAMES``.

    Returns
    -------
    y : array of shape (N,) or None
        None where there are none.
    """
    with np.load(path_of(name), allow_pickle=False) as arrays:
        y: NDArray[np.integer] | None = arrays.get(_key(name, "y"))
    return y


def path_of(name: str) -> Path:
    """The file of a dataset; where there is none, the exception says how to get it.

    Parameters
    ----------
    name : str
        One of ``NAMES``.

    Returns
    -------
    path : Path
        Of an ``.npz`` file.
    """
    if name not in NAMES:
        close = get_close_matches(name, NAMES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        msg = f"there is no dataset {name!r}.{hint} There are {', '.join(NAMES)}."
        raise DataError(msg)
    path = _path(name)
    if path.is_file():
        return path
    msg = (
        f"the dataset {path.stem!r} is not here: there is no {path.name!r} in the folder "
        f"{str(path.parent)!r}. {_advice(path.stem)} Another folder is named by the environment "
        "variable SKETCHSHIFT_DATA."
    )
    raise DataError(msg)


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


def _path(name: str) -> Path:
    return data_folder() / f"{name.partition('/')[0]}.npz"


def _key(name: str, kind: str) -> str:
    """``X`` or ``y``; in an archive of several sets, with the name of the set before it."""
    member = name.partition("/")[2]
    return f"{member}_{kind}" if member else kind


def _advice(archive: str) -> str:
    if archive in NOT_PUBLIC:
        return f"It cannot be fetched: {NOT_PUBLIC[archive]}."
    return f"Fetch it: sketchshift data {archive} (in a clone of the repository: make data)."


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
