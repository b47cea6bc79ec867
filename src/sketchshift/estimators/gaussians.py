"""A mixture of k Gaussians, and the coordinates in which it is fitted.

Knows decoded clusters and what scikit-learn calls a covariance type; neither how a fit is
made nor why.

Symbols
-------
k, d      components, dimension
Sigma     covariances in the shape of their type: (k, d, d), (k, d) or (k,)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders import Decoding
from sketchshift.decoders.moments import spread_of
from sketchshift.sketch import AnySketch

__all__ = [
    "FLOOR",
    "LEAST_WEIGHT",
    "Coordinates",
    "CovarianceType",
    "Gaussians",
    "roots",
    "squares",
]

CovarianceType = Literal["full", "diag", "spherical"]

FLOOR = 1e-6
"""Share of the mean variance of the columns that is added to every covariance."""

LEAST_WEIGHT = 1e-6
"""Share of the mean weight that every component has at least."""


@dataclass(frozen=True, eq=False)
class Gaussians:
    """A mixture.

    Attributes
    ----------
    weights : array of shape (k,)
        Positive; they add up to 1 in the end.
    means : array of shape (k, d)
        Centers.
    covariances : array of shape (k, d, d), (k, d) or (k,)
        Full, diagonals, or variances common to all columns.
    n_iter : int
        Iterations of the fit.
    converged : bool
        Whether it came to its end.
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray
    n_iter: int = 0
    converged: bool = True


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where fits take place: x' = (x - center) / widths.

    The widths are the scales of the spec, but one for all columns where covariances are
    spherical, so that these are spheres in the units of the data.

    Attributes
    ----------
    center, widths : arrays of shape (d,)
        In the units of the data.
    variance : float
        Mean variance of the columns of x', positive.
    kind : {"full", "diag", "spherical"}
        Type of the covariances.
    """

    center: FloatArray
    widths: FloatArray
    variance: float
    kind: CovarianceType

    @classmethod
    def of(cls, sketch: AnySketch, decoding: Decoding, kind: CovarianceType) -> Coordinates:
        """Those that suit a sketch and its clusters."""
        widths = sketch.spec.scale_vector
        if kind == "spherical":
            widths = np.full_like(widths, np.exp(np.log(widths).mean()))
        variance = float(np.mean(spread_of(sketch, decoding)[1] / widths**2))
        return cls(sketch.spec.center_vector, widths, variance or 1.0, kind)

    @property
    def floor(self) -> float:
        """What is added to variances, so that none is zero."""
        return FLOOR * self.variance

    def clusters(self, decoding: Decoding) -> tuple[FloatArray, FloatArray]:
        """Means (k, d) and full covariances (k, d, d) of decoded clusters."""
        means = (decoding.centroids - self.center) / self.widths
        d = len(self.widths)
        covariances = np.zeros((len(means), d, d))
        if decoding.covariances is not None:
            covariances = decoding.covariances / np.outer(self.widths, self.widths)
        return means, covariances + self.floor * np.eye(d)

    def gaussians(self, decoding: Decoding) -> Gaussians:
        """Decoded clusters as a mixture of this type."""
        means, covariances = self.clusters(decoding)
        if self.kind != "full":
            covariances = np.diagonal(covariances, axis1=1, axis2=2)
        if self.kind == "spherical":
            covariances = covariances.mean(axis=1)
        return Gaussians(decoding.weights, means, covariances)

    def in_units(self, fit: Gaussians) -> Gaussians:
        """A mixture in the units of the data, heaviest component first."""
        weights = np.maximum(fit.weights, LEAST_WEIGHT * fit.weights.mean())
        order = np.argsort(-weights, kind="stable")
        means = self.center + fit.means * self.widths
        covariances = fit.covariances
        if self.kind == "full":
            covariances = covariances + self.floor * np.eye(len(self.widths))
            covariances = covariances * np.outer(self.widths, self.widths)
        else:
            units = self.widths if self.kind == "diag" else self.widths[0]
            covariances = (covariances + self.floor) * units**2
        weights = weights / weights.sum()
        return Gaussians(
            weights[order], means[order], covariances[order], fit.n_iter, fit.converged
        )


def roots(covariances: FloatArray) -> FloatArray:
    """Spreads whose squares are these: Cholesky factors, or standard deviations."""
    if covariances.ndim < 3:
        return np.sqrt(covariances)
    return np.asarray(np.linalg.cholesky(covariances), dtype=np.float64)


def squares(S: FloatArray) -> FloatArray:
    """Covariances of spreads, in the shape of these."""
    return S @ S.swapaxes(1, 2) if S.ndim == 3 else S**2
