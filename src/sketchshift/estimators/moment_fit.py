r"""Exactly k Gaussians fitted to a sketch without tilt, by moment matching.

Takes a sketch and the clusters decoded from it as a start. As good as a fit to the data where
that is a mixture of Gaussians, and useless where it is not: the misfit tells.

Symbols
-------
k, d, m   components, dimension, frequencies
N         total weight of the rows; with the noise of a release, of as many as leave all of it
F         misfit of the sketch, in units in which the true mixture has 1 / N on average
S         spreads, as ``MomentMatching`` has them: shape (k, d, d), (k, d) or (k,)
P         covariances of the start, in the shape of S
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders import Decoding
from sketchshift.estimators.gaussians import LEAST_WEIGHT, Coordinates, Gaussians, roots, squares
from sketchshift.objective import MomentMatching
from sketchshift.objective.moment_matching import Spread
from sketchshift.sketch import AnySketch

__all__ = ["MomentFit", "prior"]

SPREADS: dict[str, Spread] = {"full": "full", "diag": "diagonal", "spherical": "isotropic"}

STRENGTH = 0.005  # of the prior
LEAST_NOISE = 1e-6
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class MomentFit:
    r"""A joint descent in weights, means and covariances.

    .. math::

        N F(\alpha, C, \Sigma) + \lambda \sum_i \pi_i \big(
            \mathrm{tr}\, \Sigma_i^{-1} P_i + \log\det \Sigma_i \big)
        + N \big( \textstyle\sum_i \alpha_i - 1 \big)^2

    High frequencies die out in wide clusters, so a sketch hardly sees how thin a cluster is
    along its short axes; there the prior, weak as it is, keeps the covariances
    :math:`P_i` of the decoded clusters, whose weights are the :math:`\pi_i`.

    Attributes
    ----------
    objective : MomentMatching
        F.
    n_rows : float
        N.
    added : float
        Share of the noise in the sketch that a release added; 0 if it has none.
    start : Gaussians
        The decoded clusters.
    length : float
        Root of the mean variance of a column: steps are of this order.
    """

    objective: MomentMatching
    n_rows: float
    added: float
    start: Gaussians
    length: float

    @classmethod
    def of(cls, sketch: AnySketch, decoding: Decoding, coordinates: Coordinates) -> MomentFit:
        """The fit of a sketch without tilt, from its decoded clusters."""
        stretch = (coordinates.widths / sketch.spec.scale_vector)[:, None]
        z, released = sketch.z, _released(sketch)
        squared_norm = float(np.vdot(z, z).real) - released
        noise = max(1.0 - squared_norm, LEAST_NOISE)  # mean variance of a wave
        objective = MomentMatching(
            (sketch.frequencies.turns * stretch).astype(np.float32),
            z,
            SPREADS[coordinates.kind],
            frequency_weights=np.full(len(z), 1.0 / noise),
        )
        start = coordinates.gaussians(decoding)
        n_rows = 1.0 / (1.0 / sketch.total_weight + released / noise)
        length = float(np.sqrt(coordinates.variance))
        return cls(objective, n_rows, n_rows * released / noise, start, length)

    def descend(self, max_iterations: int) -> tuple[Gaussians, float]:
        """The mixture found, and its misfit N F: the true one has 1 on average, and fits have less.

        Parameters
        ----------
        max_iterations : int
            Of L-BFGS-B; O(k m d) each, O(k m d^2) for full covariances.
        """
        from scipy.optimize import minimize

        first, k = self.start, len(self.start.weights)
        x = self.objective.pack(first.weights, first.means, roots(first.covariances)) / self._units
        result = minimize(
            self.value_and_gradient,
            x,
            jac=True,
            method="L-BFGS-B",
            bounds=[(LEAST_WEIGHT, None)] * k + [(None, None)] * (len(x) - k),
            options={"maxiter": max_iterations, "ftol": TOLERANCE, "gtol": 0.0},
        )
        alpha, C, S = self._unpack(result.x)
        misfit = self.n_rows * self.objective.value(alpha, C, S)
        return Gaussians(
            alpha, C, squares(S), int(result.nit), bool(result.nit < max_iterations)
        ), misfit

    def value_and_gradient(self, x: FloatArray) -> tuple[float, FloatArray]:
        """The objective and its derivatives, at a vector scaled to be of order 1."""
        alpha, C, S = self._unpack(x)
        value, by_alpha, by_C, by_S = self.objective.value_and_gradient(alpha, C, S)
        assert by_S is not None
        mass = float(alpha.sum()) - 1.0
        held, by_prior = prior(S, self.start.covariances)
        columns = C.shape[1] if S.ndim == 1 else 1
        pull = STRENGTH * columns * self.start.weights
        gradient = self.objective.pack(
            self.n_rows * (by_alpha + 2.0 * mass),
            self.n_rows * by_C,
            self.n_rows * by_S + (pull * by_prior.T).T,
        )
        total = self.n_rows * (value + mass * mass) + float(pull @ held)
        return total, gradient * self._units

    @cached_property
    def _units(self) -> FloatArray:
        first = self.start
        k = len(first.weights)
        lengths = (np.full_like(part, self.length) for part in (first.means, first.covariances))
        return self.objective.pack(np.full(k, 1.0 / k), *lengths)

    def _unpack(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        alpha, C, S = self.objective.unpack(x * self._units, len(self.start.weights))
        assert S is not None
        return alpha, C, S


def _released(sketch: AnySketch) -> float:
    """Mean squared norm of what a release added to z: in the waves, and in their divisor."""
    relative = sketch.count_std / sketch.total_weight
    return 2.0 * sketch.noise_std**2 + (relative * float(np.linalg.norm(sketch.z))) ** 2


def prior(S: FloatArray, P: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""What holds covariances: tr :math:`\Sigma^{-1} P` + log det :math:`\Sigma`, and derivatives.

    Parameters
    ----------
    S : array of shape (k,), (k, d) or (k, d, d)
        Spreads, lower triangular if full; of shape (k,), the values are those of one column.
    P : array of the shape of S
        Covariances, where the values are least.

    Returns
    -------
    values, gradient : arrays of shape (k,) and the shape of S
        O(k d^3) if full.
    """
    if S.ndim < 3:
        values = P / S**2 + 2.0 * np.log(np.abs(S))
        return values.reshape(len(S), -1).sum(axis=1), 2.0 / S - 2.0 * P / S**3
    inverse = np.linalg.inv(S)
    shares = inverse.swapaxes(1, 2) @ inverse @ P
    axes = np.diagonal(S, axis1=1, axis2=2)
    values = np.trace(shares, axis1=1, axis2=2) + 2.0 * np.log(np.abs(axes)).sum(axis=1)
    gradient = np.tril(-2.0 * shares @ inverse.swapaxes(1, 2))
    along = np.arange(S.shape[1])
    gradient[:, along, along] += 2.0 / axes
    return values, gradient
