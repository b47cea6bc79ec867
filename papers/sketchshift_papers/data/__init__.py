"""Public datasets in a folder: one ``.npz`` file each, fetched by ``make data``.

The folder is the one that the environment variable ``SKETCHSHIFT_DATA`` names, else a cache of the
user.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchshift.errors import DataError

__all__ = ["NAMES", "NOT_PUBLIC", "data_folder", "is_here", "load", "load_labels", "path_of"]

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
        "the features are those of a trained network, which no public file has. Their making is "
        "described in docs/reproduction.md"
    )
}
"""What is not fetched, and why."""


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


def load(name: str) -> NDArray[Any]:
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
    X = _array(name, "X")
    assert X is not None
    return X.reshape(len(X), -1)


def load_labels(name: str) -> NDArray[Any] | None:
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
    return _array(name, "y")


def _array(name: str, kind: str) -> NDArray[Any] | None:
    """``X`` or ``y``; in an archive of several sets, with the name of the set before it."""
    member = name.partition("/")[2]
    with np.load(path_of(name), allow_pickle=False) as arrays:
        found: NDArray[Any] | None = arrays.get(f"{member}_{kind}" if member else kind)
    return found


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
        raise DataError(f"there is no dataset {name!r}. There are {', '.join(NAMES)}.")
    path = _path(name)
    if path.is_file():
        return path
    advice = f"Fetch it: make data DATA={path.stem}"
    if path.stem in NOT_PUBLIC:
        advice = f"It cannot be fetched: {NOT_PUBLIC[path.stem]}"
    msg = (
        f"the dataset {path.stem!r} is not here: there is no {path.name!r} in the folder "
        f"{str(path.parent)!r}. {advice}. The environment variable SKETCHSHIFT_DATA names another "
        "folder."
    )
    raise DataError(msg)


def _path(name: str) -> Path:
    return data_folder() / f"{name.partition('/')[0]}.npz"
