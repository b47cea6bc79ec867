"""The paper's datasets: recipes by name, and what every run needs of them.

The paper gives neither the centroids nor the widths of its synthetic clusters; ours are
written down here. Real data comes from ``sketchshift_papers.data``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sketchshift.decoders import Box, bandwidth
from sketchshift.errors import DataError
from sketchshift.metrics import mse
from sketchshift_papers.data import load
from sketchshift_papers.definition import DatasetSpec

__all__ = ["RECIPES", "Data", "FloatArray", "cube", "make_data"]

FloatArray: TypeAlias = NDArray[np.float64]

SEPARATED = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.5)])
CAPTION = 0.5 * np.array(
    [(-0.5, -0.5 / math.sqrt(3)), (0.5, -0.5 / math.sqrt(3)), (0.0, 1 / math.sqrt(3))]
)
CLOSE = np.array([(-0.2, -0.15), (0.2, -0.15), (0.0, 0.2)])


@dataclass(frozen=True, eq=False)
class Data:
    """A dataset in memory.

    Attributes
    ----------
    X : array of shape (N, d)
        The rows.
    n_clusters : int
        k.
    domain : Box or None
        Where decoders look; None is the sketch's own box.
    means : array of shape (k, d) or None
        The true ones, where there are any.
    """

    X: FloatArray
    n_clusters: int
    domain: Box | None
    means: FloatArray | None

    @property
    def n_features(self) -> int:
        """Dimension of a row."""
        return int(self.X.shape[1])

    @property
    def variance(self) -> float:
        """Of a cluster on one axis, where the means are known."""
        assert self.means is not None
        gaps = ((self.X[:5000, None] - self.means) ** 2).sum(axis=2).min(axis=1)
        return float(gaps.mean()) / self.n_features

    def error(self, centroids: FloatArray) -> float:
        """MSE; that of the overall mean where a decoder found nothing at all."""
        return mse(self.X, centroids if len(centroids) else self.X.mean(axis=0, keepdims=True))


def make_data(spec: DatasetSpec, n_samples: int | None = None, draw: int = 0) -> Data:
    """Draw or read a dataset.

    Parameters
    ----------
    spec : DatasetSpec
        From a figure's file.
    n_samples : int or None
        Rows of a synthetic one; real ones are always read whole.
    draw : int
        Which of its draws; the seed of the rows.

    Returns
    -------
    data : Data
        The same rows for the same arguments.
    """
    if spec.kind not in RECIPES:
        known = ", ".join(RECIPES)
        raise DataError(f"there is no dataset of kind {spec.kind!r}. There are: {known}.")
    options = dict(spec.options)
    if n_samples is not None and "n_samples" in options:
        options["n_samples"] = n_samples
    if spec.n_draws > 1:
        options["seed"] = draw
    X, means = RECIPES[spec.kind](**options)
    d = X.shape[1]
    domain = None if spec.domain is None else cube(d, *spec.domain)
    return Data(X, spec.n_clusters, domain, means)


def cube(d: int, low: float = -1.0, high: float = 1.0) -> Box:
    """The domain [low, high]^d."""
    return Box(np.full(d, float(low)), np.full(d, float(high)))


Drawn = tuple[FloatArray, FloatArray | None]


def _around(means: FloatArray, std: float, n_samples: int, seed: int = 0) -> Drawn:
    """Isotropic Gaussians of equal weight around the means."""
    rng = np.random.Generator(np.random.PCG64(seed))
    labels = rng.integers(0, len(means), n_samples)
    return means[labels] + std * rng.standard_normal((n_samples, means.shape[1])), means


def _six_dimensions(
    n_samples: int,
    d: int = 6,
    k: int = 3,
    seed: int = 0,
    least_distance: float = 5.0,
    variance: float = 1.0,
) -> Drawn:
    """Figures 5 and 6: as pycle draws them, then scaled into [-1, 1]^6.

    The variance is in the generator's unit; after scaling, 1 is a standard deviation of about
    0.08. Ours was 0.15 until the claims were run again.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    while True:
        means = 10.0 / math.sqrt(d) * rng.standard_normal((k, d))
        gaps = np.linalg.norm(means[:, None] - means, axis=2) + 1e9 * np.eye(k)
        if gaps.min() > least_distance:
            break
    labels = rng.integers(0, k, n_samples)
    X = means[labels] + math.sqrt(variance) * rng.standard_normal((n_samples, d))
    scale = float(np.abs(X).max()) + 1e-6
    return X / scale, means / scale


def _two_clusters(n_samples: int, d: int, std: float = 0.05, seed: int = 0) -> Drawn:
    """Figure 9: two clusters at distance 1 in any dimension."""
    half = np.full((1, d), 0.5 / math.sqrt(d))
    return _around(np.vstack([-half, half]), std, n_samples, seed)


def _real(name: str, normalize_rows: bool = False) -> Drawn:
    """Figures 8 and 10: real features, in [-1, 1]^d by their rows' lengths or largest entry."""
    X = load(name).astype(np.float64)
    lengths = np.linalg.norm(X, axis=1, keepdims=True) if normalize_rows else np.abs(X).max()
    return X / np.maximum(lengths, np.finfo(float).tiny), None


# Beyond the paper: sets of any size, and others in units of the bandwidth the library chooses.


def _mixture(
    n_samples: int,
    d: int,
    k: int,
    std: float = 0.05,
    length: float = 0.6,
    least_distance: float = 0.5,
    uneven: bool = False,
    seed: int = 0,
) -> Drawn:
    """Gaussians around means that are drawn normal, of a mean length, with a least distance.

    Where ``uneven``, the heaviest has five times the rows of the lightest, and standard deviations
    go from half of ``std`` to one and a half.
    """
    rng = np.random.Generator(np.random.PCG64([seed, d, k]))
    means: FloatArray = np.empty((0, d))
    while len(means) < k:
        mean = length / math.sqrt(d) * rng.standard_normal(d)
        if np.linalg.norm(means - mean, axis=1).min(initial=np.inf) > least_distance:
            means = np.vstack([means, mean])
    steps = np.linspace(0.0, 1.0, k) if uneven else np.full(k, 0.5)
    shares = 5.0**steps
    labels = rng.choice(k, n_samples, p=shares / shares.sum())
    widths = std * (0.5 + rng.permutation(steps))
    return means[labels] + widths[labels, None] * rng.standard_normal((n_samples, d)), means


def _grid(side: int, rows_per_cluster: int, std: float = 0.15, seed: int = 0) -> Drawn:
    """As birch1: side^2 clusters in the plane, on a grid whose meshes have width 1."""
    steps = np.arange(float(side))
    means = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    return _around(means, std, rows_per_cluster * side**2, seed)


def _flower() -> Drawn:
    """Pixels of the photograph of a flower that comes with scikit-learn."""
    from sklearn.datasets import load_sample_image

    return load_sample_image("flower.jpg").reshape(-1, 3) / 255.0, None


def _in_bandwidths(of: str, k: int, n_samples: int, rows: dict[str, Any]) -> Drawn:
    """So many rows of another set, in units of the bandwidth that the library chooses."""
    X, means = RECIPES[of](**rows)
    rng = np.random.Generator(np.random.PCG64(0))
    X = X[rng.choice(len(X), min(n_samples, len(X)), replace=False)]
    unit = bandwidth(X, n_clusters=k)
    return X / unit, None if means is None else means / unit


RECIPES: dict[str, Callable[..., Any]] = {
    # figure 1: three clusters in the plane, twenty standard deviations apart
    "separated": partial(_around, SEPARATED, 0.05),
    # as its caption has it, with 0.005 for 0.05: squared distances 0.25, MSE 0.01
    "caption": partial(_around, CAPTION, math.sqrt(0.005)),
    # figure 7: four standard deviations apart
    "close": partial(_around, CLOSE, 0.1),
    "six_dimensions": _six_dimensions,
    "two_clusters": _two_clusters,
    "real": _real,
    "mixture": _mixture,
    "grid": _grid,
    "flower": _flower,
    "in_bandwidths": _in_bandwidths,
}
