"""Six datasets at a given number of rows, and what k-means without privacy gets on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from quality import datasets
from quality.baselines import kmeans

import sketchshift as ss
from sketchshift.data.datasets import gaussian_mixture

NAMES = ("spectral_mnist", "covertype", "cytof", "uber", "skin", "gmm")
K = 10
STARTS = 10


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to be clustered, what is public of them, and the error to compare with."""

    X: np.ndarray
    center: np.ndarray
    spread: float
    least: float


def here(names: Sequence[str]) -> list[str]:
    """Those that can be had; of the others, stderr says how to get them."""
    found = datasets.here(name for name in names if name != "gmm")
    return [name for name in names if name == "gmm" or name in found]


@lru_cache(maxsize=1)
def rows(name: str, n: int) -> Rows:
    """So many rows of a dataset, drawn without putting back if there are enough of them."""
    rng = np.random.default_rng(0)
    if name == "gmm":
        X = gaussian_mixture(n, 10, K, cluster_std=0.15, seed=3)[0]
    else:
        X = datasets.load(name).X
        X = X[rng.choice(len(X), n, replace=n > len(X))]
    centroids = kmeans(X, K, 0, starts=STARTS)
    spread = float(np.sqrt(X.var(axis=0).sum()))
    return Rows(X, X.mean(axis=0), spread, ss.metrics.mse(X, centroids))
