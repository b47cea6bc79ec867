"""Real data: the datasets folder, and a picture that comes with scikit-learn.

The folder is named by the environment variable ``SKETCHSHIFT_DATA`` and holds one
``.npz`` file per dataset; none of it is part of this library.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import RealArray
from sketchshift.errors import DataError, MissingDependencyError

__all__ = ["NAMES", "china_pixels", "load"]

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


def load(name: str) -> RealArray:
    """The points of a dataset in the folder ``SKETCHSHIFT_DATA``.

    Parameters
    ----------
    name : str
        One of ``NAMES``.

    Returns
    -------
    X : array of shape (N, d)
        In the dtype it is stored in, all in memory; images have one pixel per column.
    """
    if name not in NAMES:
        close = get_close_matches(name, NAMES, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        msg = f"there is no dataset {name!r}.{hint} There are {', '.join(NAMES)}."
        raise DataError(msg)
    archive, _, member = name.partition("/")
    path = _folder() / f"{archive}.npz"
    if not path.is_file():
        msg = f"the folder SKETCHSHIFT_DATA={str(path.parent)!r} has no file {path.name!r}."
        raise DataError(msg)
    with np.load(path, allow_pickle=False) as arrays:
        X: RealArray = arrays[f"{member}_X" if member else "X"]
    return X.reshape(len(X), -1)


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
        msg = 'reading the picture needs Pillow. Run: pip install "sketchshift[plot]"'
        raise MissingDependencyError(msg) from cause
    return picture.reshape(-1, 3)


def _folder() -> Path:
    named = os.environ.get("SKETCHSHIFT_DATA", "")
    folder = Path(named).expanduser()
    if not named or not folder.is_dir():
        fact = f"{named!r} is not a folder" if named else "it is not set"
        msg = (
            "the datasets are looked for in the folder that the environment variable "
            f"SKETCHSHIFT_DATA names, and {fact}. Set it to the folder of the .npz files."
        )
        raise DataError(msg)
    return folder
