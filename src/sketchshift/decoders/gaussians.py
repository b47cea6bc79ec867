"""Over-complete fits of Gaussians to a sketch: what the turnkey decoder is made of.

Takes a :class:`Problem`; hands fits to ``search``. The atoms of a fit have diagonal covariances
and are more than there are clusters: they stand for the whole distribution, not for centroids.

Symbols
-------
T, d, m   atoms, dimension, frequencies
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.decoders.base import Problem
from sketchshift.features.stream import Purpose, normal_quantile, uniforms
from sketchshift.kernels import Matcher, select_kernel

__all__ = ["GaussianFit", "GaussianFitter"]

PENALTY = 1e-2  # strength of the exact moments beside the misfit
TINY = 1e-12  # share of the total variance below which an axis is flat


@dataclass(frozen=True, eq=False)
class GaussianFit:
    """Weighted Gaussians with diagonal covariances, in normalised coordinates.

    Attributes
    ----------
    weights : array of shape (T,)
        Not negative; they add up to about 1.
    means, deviations : arrays of shape (T, d)
        Centers, and standard deviations along the axes.
    loss : float
        Weighted misfit and penalty that were reached.
    """

    weights: FloatArray
    means: FloatArray
    deviations: FloatArray
    loss: float = math.inf

    @property
    def n_atoms(self) -> int:
        """Number T of atoms."""
        return len(self.weights)

    @property
    def shares(self) -> FloatArray:
        """The weights, adding up to 1; all alike where no atom explains anything."""
        weights = self.weights if self.weights.any() else np.ones(self.n_atoms)
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class GaussianFitter:
    r"""Lowers the misfit of Gaussians at the frequencies up to a cut, moments kept right.

    .. math::

        \sum_{|\omega_j| \le \mathrm{cut}} w_j \Big| \zeta_j - \sum_t \alpha_t
            e^{\mathrm i \langle \omega_j, c_t \rangle - \frac12 \sum_l \omega_{jl}^2 s_{tl}^2}
            \Big|^2 + 10^{-2} P(\alpha, c, s),
        \qquad w_j \propto 1 / \max(|\omega_j|, \sqrt d / \mathrm{high})

    with P the penalty of mass, mean and covariance that differ from those of the sketch.

    Parameters
    ----------
    problem : Problem
        The sketch to fit.
    """

    problem: Problem
    _lock: Lock = field(default_factory=Lock, init=False)  # fits run in threads

    @cached_property
    def norms(self) -> FloatArray:
        """Lengths of the frequencies, shape (m,)."""
        norms: FloatArray = (
            2.0 * math.pi * np.linalg.norm(self.problem.turns.astype(np.float64), axis=0)
        )
        return norms

    @cached_property
    def weights(self) -> FloatArray:
        """High frequencies are many and noisy; below the range of bandwidths all are alike."""
        bandwidth = self.problem.sketch.spec.bandwidth
        high = bandwidth[1] if isinstance(bandwidth, tuple) else bandwidth
        weights: FloatArray = 1.0 / np.maximum(
            self.norms, math.sqrt(len(self.problem.turns)) / high
        )
        return weights

    @cached_property
    def _matchers(self) -> dict[float, Matcher]:
        return {}

    def _matcher(self, cut: float) -> Matcher:
        """The misfit at the frequencies up to ``cut``; made once for all fits."""
        with self._lock:
            if cut not in self._matchers:
                below = self.norms <= cut
                z = self.problem.z[below] * math.sqrt(len(self.norms))
                weights = self.weights[below] / self.weights[below].sum()
                turns = np.ascontiguousarray(self.problem.turns[:, below])
                self._matchers[cut] = select_kernel().matcher(turns, z, weights)
            return self._matchers[cut]

    def fit(self, start: GaussianFit, iterations: int, cut: float = math.inf) -> GaussianFit:
        """Descend from a start: O(T m d) an iteration."""
        mean, covariance = self.problem.outline
        loss, weights, means, deviations = self._matcher(cut).descend(
            start.weights,
            start.means,
            start.deviations,
            mean=mean,
            covariance=covariance,
            strength=PENALTY if self.problem.moments is not None else 0.0,
            iterations=iterations,
            floor=self.problem.noise_floor,
        )
        return GaussianFit(weights, means, deviations, loss)

    def start(self, n_atoms: int, seed: int, first: int) -> GaussianFit:
        """Equal atoms drawn from the sketch's own mean and half of its covariance.

        Parameters
        ----------
        n_atoms : int
            T.
        seed : int
            Of the decoder.
        first : int
            How many places of the seed's stream to leave out: other starts than the first.
        """
        mean, covariance = self.problem.outline
        d = len(mean)
        j = np.arange(first, first + n_atoms)
        normals = normal_quantile(uniforms(seed, Purpose.START, j, d))
        variances = np.diagonal(covariance)
        deviations = np.sqrt(0.5 * np.maximum(variances, TINY * variances.sum()))
        places = mean + normals @ _square_root(covariance) * math.sqrt(0.5)
        weights = np.full(n_atoms, 1.0 / n_atoms)
        return GaussianFit(weights, places, np.tile(deviations, (n_atoms, 1)))


def _square_root(covariance: FloatArray) -> FloatArray:
    """Symmetric square root; of what is known, where only the diagonal is."""
    known = np.where(np.isnan(covariance), 0.0, covariance)
    values, vectors = np.linalg.eigh(known)
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root
