"""The data: seven real sets, synthetic sets whose clusters are known, and scikit-learn's digits.

All but digits lie in the folder that ``make data`` fills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from harness import if_here

from sketchshift.data import real

Prepare = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows to be clustered; labels where there are any."""

    name: str
    group: str
    k: int
    X: np.ndarray
    labels: np.ndarray | None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.X.shape[1]

    @cached_property
    def mean(self) -> np.ndarray:
        """Of the rows."""
        return self.X.mean(axis=0)

    @cached_property
    def radius(self) -> float:
        """Root of the total variance: bandwidths are shares of it."""
        return float(np.sqrt(self.X.var(axis=0).sum()))

    @cached_property
    def true_centroids(self) -> np.ndarray | None:
        """Means of the known clusters; None for real data, whose labels are not clusters."""
        if self.group != "sipu" or self.labels is None:
            return None
        return np.array([self.X[self.labels == y].mean(axis=0) for y in np.unique(self.labels)])


def as_it_is(X: np.ndarray) -> np.ndarray:
    """The rows in double precision."""
    return X.astype(np.float64)


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1."""
    rows = X.astype(np.float64)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def twenty_components(X: np.ndarray) -> np.ndarray:
    """The first twenty principal components of pixels between 0 and 1."""
    from sklearn.decomposition import PCA

    pixels = X.astype(np.float32) / 255
    return PCA(20, svd_solver="covariance_eigh").fit_transform(pixels).astype(np.float64)


@dataclass(frozen=True)
class Recipe:
    """Where a dataset comes from and how it is prepared."""

    source: str
    group: str
    k: int
    prepare: Prepare = as_it_is


SIPU = {
    "s1": 15,
    "s2": 15,
    "s3": 15,
    "s4": 15,
    "a1": 20,
    "a2": 35,
    "a3": 50,
    "unbalance": 8,
    "d31": 31,
    "birch1": 100,
    "birch2": 100,
    "worms_2": 35,
}
RECIPES = {
    "spectral_mnist": Recipe("spectral_mnist", "real", 10),
    "cifar10": Recipe("cifar10_features", "real", 10),
    "mnist": Recipe("mnist", "real", 10, twenty_components),
    "cytof": Recipe("cytof", "real", 10, standardised),
    "covertype": Recipe("covertype", "real", 10, standardised),
    "skin": Recipe("skin", "real", 10, standardised),
    "uber": Recipe("uber_pickups", "real", 10, standardised),
    "digits": Recipe("digits", "further", 10),
    **{name: Recipe(f"sipu/{name}", "sipu", k) for name, k in SIPU.items()},
}
WITHOUT_LABELS = ("covertype", "uber")


def load(name: str) -> Dataset:
    """A dataset of ``RECIPES``, prepared."""
    recipe = RECIPES[name]
    if recipe.source == "digits":
        from sklearn.datasets import load_digits

        X, labels = load_digits(return_X_y=True)
    else:
        X, labels = real.load(recipe.source), real.load_labels(recipe.source)
    return Dataset(name, recipe.group, recipe.k, recipe.prepare(X), labels)


def here(names: Iterable[str]) -> list[str]:
    """Those datasets that can be loaded; of the others, stderr says how to get them."""
    return [name for name in names if if_here(name, lambda name=name: _find(name))]


def _find(name: str) -> bool:
    source = RECIPES[name].source
    return source == "digits" or real.path_of(source).is_file()
