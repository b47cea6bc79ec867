r"""How far a mixture's sketch is from a given one, with gradients (moment matching).

Takes frequencies and a sketch z as arrays; hands value and gradient to the descents of
``decoders``. Knows no optimiser: :meth:`MomentMatching.pack` makes the vector one wants.

Symbols
-------
k, d, m   components, dimension, frequencies
alpha, C  weights, shape (k,); centroids in normalised coordinates, shape (k, d)
S         spreads: None, (k,), (k, d) or (k, d, d), by the kind of component
psi_ij    exp(i <omega_j, c_i> - q_ij / 2), characteristic function of component i
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from sketchshift._typing import ComplexArray, Float32Array, FloatArray
from sketchshift._validation import check_choice
from sketchshift.errors import SpecError
from sketchshift.kernels import Matcher, select_kernel

__all__ = ["MomentMatching", "Spread"]

Spread = Literal["none", "isotropic", "diagonal", "full"]

_TURN = 2.0 * math.pi


@dataclass(frozen=True, eq=False)
class MomentMatching:
    r"""The objective of a joint descent over weights, centroids and spreads.

    .. math::

        F(\alpha, C, S) = \sum_j w_j \Big| z_j
            - \frac{1}{\sqrt m} \sum_i \alpha_i \psi_{ij} \Big|^2,
        \qquad
        \psi_{ij} = e^{\mathrm{i} \langle \omega_j, c_i \rangle - q_{ij} / 2}

    with, by the spread, :math:`q_{ij} = 0`; :math:`s_i^2 |\omega_j|^2`;
    :math:`\sum_l s_{il}^2 \omega_{jl}^2`; or :math:`|L_i^T \omega_j|^2`, where
    :math:`\Sigma_i = L_i L_i^T`.

    Parameters
    ----------
    turns : float32 array of shape (d, m)
        Frequencies divided by 2 pi.
    z : complex array of shape (m,)
        The sketch to match.
    spread : {"none", "isotropic", "diagonal", "full"}
        Diracs (S is None), or Gaussians with S of shape (k,), (k, d), or (k, d, d) and lower
        triangular.
    frequency_weights : array of shape (m,) or None
        The :math:`w_j >= 0`; None: all 1.

    Notes
    -----
    A value with its gradient is one pass of sines: O(k m d) time, O(k) memory beside the
    frequencies; for "full", O(k m d^2) time and O(k m) memory. Sines are in float32,
    so values are off by about 1e-7 of the norm of z squared.
    """

    turns: Float32Array
    z: ComplexArray
    spread: Spread = "none"
    frequency_weights: FloatArray | None = None

    def __post_init__(self) -> None:
        check_choice("MomentMatching", "spread", self.spread, ("none", *_RANKS))
        turns = np.ascontiguousarray(self.turns, dtype=np.float32)
        z = np.asarray(self.z, dtype=np.complex128)
        if turns.ndim != 2 or z.shape != turns.shape[1:]:
            msg = (
                "MomentMatching takes frequencies of shape (d, m) and a sketch z of shape (m,). "
                f"Got {turns.shape} and {z.shape}."
            )
            raise SpecError(msg)
        object.__setattr__(self, "turns", turns)
        object.__setattr__(self, "z", z)
        if self.frequency_weights is not None:
            object.__setattr__(self, "frequency_weights", self._checked_weights())

    def _checked_weights(self) -> FloatArray:
        weights = np.asarray(self.frequency_weights, dtype=np.float64)
        if weights.shape != self.z.shape or not np.all(np.isfinite(weights) & (weights >= 0)):
            msg = (
                f"frequency_weights must be {len(self.z)} finite numbers of at least 0, one a "
                f"frequency. Got shape {weights.shape}, least {weights.min(initial=np.inf):g}."
            )
            raise SpecError(msg)
        return weights

    def atoms(self, C: FloatArray, S: FloatArray | None = None) -> ComplexArray:
        r"""Sketches :math:`\psi_i / \sqrt m` of the components, shape (k, m)."""
        cosines, minus_sines = self._correlate(C, self._envelopes(C, S), self._ones)
        atoms = np.empty(cosines.shape, dtype=np.complex128)
        atoms.real, atoms.imag = cosines, -minus_sines
        return atoms

    def residual(
        self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None
    ) -> ComplexArray:
        r"""What is left of the sketch, :math:`z - \sum_i \alpha_i \psi_i / \sqrt m`: shape (m,)."""
        return self._residual(alpha, C, self._envelopes(C, S))

    def value(self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None) -> float:
        """The objective F, O(k m d)."""
        if self.spread != "full":
            self._check_spreads(C, S)
            return self._matcher(alpha, C, self._variances(S))[0]
        r = self.residual(alpha, C, S)
        return float(np.vdot(r, self._weighted(r)).real)

    def value_and_gradient(
        self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray, FloatArray | None]:
        r"""F and its derivatives, from one pass of sines (two for "full").

        With :math:`b_{ij} = w_j \bar r_j \psi_{ij} / \sqrt m`,

        .. math::

            \frac{\partial F}{\partial \alpha_i} = -2 \sum_j \mathrm{Re}\, b_{ij}, \quad
            \frac{\partial F}{\partial c_i} =
                2 \alpha_i \sum_j \mathrm{Im}\, b_{ij}\, \omega_j, \quad
            \frac{\partial F}{\partial S_i} =
                \alpha_i \sum_j \mathrm{Re}\, b_{ij} \frac{\partial q_{ij}}{\partial S_i} .

        Parameters
        ----------
        alpha : array of shape (k,)
            Weights.
        C : array of shape (k, d)
            Centroids.
        S : array or None
            Spreads, as the class says.

        Returns
        -------
        value : float
            F.
        gradient_alpha, gradient_C, gradient_S : arrays of the shapes of alpha, C and S
            The last is None for Diracs, and lower triangular for "full".
        """
        self._check_spreads(C, S)
        if self.spread == "full":
            return self._full_value_and_gradient(alpha, C, S)
        value, sums = self._matcher(alpha, C, self._variances(S))
        of_weight, of_center, of_variance = np.split(sums, [1, 1 + C.shape[1]], axis=1)
        gradient_C = (2.0 * _TURN * alpha)[:, None] * of_center
        gradient_alpha = -2.0 * of_weight[:, 0]
        if S is None:
            return value, gradient_alpha, gradient_C, None
        if self.spread == "isotropic":
            of_variance = of_variance.sum(axis=1)
        gradient_S = (2.0 * _TURN**2 * alpha * (S * of_variance).T).T
        return value, gradient_alpha, gradient_C, gradient_S

    def _full_value_and_gradient(
        self, alpha: FloatArray, C: FloatArray, S: FloatArray | None
    ) -> tuple[float, FloatArray, FloatArray, FloatArray | None]:
        assert S is not None
        envelopes = self._envelopes(C, S)
        r = self._residual(alpha, C, envelopes)
        weighted = self._weighted(r)
        re, minus_im = self._correlate(C, envelopes, weighted)
        gradient_C = (-2.0 * alpha)[:, None] * (minus_im @ self._omega.T)
        # q = |L^T omega|^2 has the derivative 2 omega omega^T L
        sums = np.array([(self._omega * row) @ self._omega.T for row in re])
        gradient_S = np.tril((2.0 * alpha)[:, None, None] * (sums @ S))
        value = float(np.vdot(r, weighted).real)
        return value, -2.0 * re.sum(axis=1), gradient_C, gradient_S

    def covariances(self, S: FloatArray | None, d: int) -> FloatArray | None:
        r"""The :math:`\Sigma_i` of spreads in dimension d: shape (k, d, d), None for Diracs."""
        if S is None:
            return None
        if self.spread == "full":
            return S @ S.swapaxes(1, 2)
        squares = np.broadcast_to(S[:, None] if self.spread == "isotropic" else S, (len(S), d)) ** 2
        covariances: FloatArray = squares[:, :, None] * np.eye(d)
        return covariances

    def pack(self, alpha: FloatArray, C: FloatArray, S: FloatArray | None = None) -> FloatArray:
        """One vector of weights, centroids, spreads; of L_i the lower triangle alone, by rows.

        Packs gradients as well, so that ``pack(*gradients)`` is the gradient by the vector.
        """
        self._check_spreads(C, S)
        parts = [alpha, C.ravel()]
        if S is not None:
            parts.append(S[:, *np.tril_indices(C.shape[1])].ravel() if S.ndim == 3 else S.ravel())
        return np.concatenate(parts)

    def unpack(
        self, vector: FloatArray, k: int
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Weights, centroids and spreads of k components: the inverse of :meth:`pack`."""
        d = len(self.turns)
        alpha, C, rest = np.split(vector, [k, k + k * d])
        C = C.reshape(k, d)
        if self.spread == "none":
            return alpha, C, None
        if self.spread != "full":
            return alpha, C, rest.reshape((k, d)[: _RANKS[self.spread]])
        S = np.zeros((k, d, d))
        S[:, *np.tril_indices(d)] = rest.reshape(k, -1)
        return alpha, C, S

    @cached_property
    def _matcher(self) -> Matcher:
        """One pass for value and gradient; the kernel's waves have no 1 / sqrt(m)."""
        m = len(self.z)
        weights = np.ones(m) if self.frequency_weights is None else self.frequency_weights
        return select_kernel().matcher(self.turns, self.z * math.sqrt(m), weights / m)

    def _variances(self, S: FloatArray | None) -> FloatArray | None:
        """Squared spreads along the axes, (k, d); None for Diracs."""
        if S is None:
            return None
        return np.broadcast_to(S[:, None] if S.ndim == 1 else S, (len(S), len(self.turns))) ** 2

    @cached_property
    def _ones(self) -> ComplexArray:
        return np.ones(len(self.z), dtype=np.complex128)

    @cached_property
    def _omega(self) -> FloatArray:
        return _TURN * self.turns.astype(np.float64)

    @cached_property
    def _squares(self) -> FloatArray:
        """What squared spreads are multiplied by: |omega|^2, (1, m), or each omega_l^2, (d, m)."""
        squares = self._omega**2
        return squares.sum(axis=0, keepdims=True) if self.spread == "isotropic" else squares

    def _weighted(self, r: ComplexArray) -> ComplexArray:
        return r if self.frequency_weights is None else r * self.frequency_weights

    def _envelopes(self, C: FloatArray, S: FloatArray | None) -> Float32Array | None:
        """The e^{-q_ij / 2}, shape (k, m); None: all 1."""
        self._check_spreads(C, S)
        if S is None:
            return None
        if self.spread == "full":
            q = np.array([((L.T @ self._omega) ** 2).sum(axis=0) for L in S])
        else:
            q = S.reshape(len(S), -1) ** 2 @ self._squares
        envelopes: Float32Array = np.exp((-0.5 * q).astype(np.float32))
        return envelopes

    def _correlate(
        self, C: FloatArray, envelopes: Float32Array | None, r: ComplexArray
    ) -> tuple[FloatArray, FloatArray]:
        """Real and minus the imaginary parts of conj(r_j) psi_ij / sqrt(m), each (k, m)."""
        real, minus_imag = select_kernel().correlate(C, self.turns, r / math.sqrt(len(r)))
        if envelopes is not None:
            real *= envelopes
            minus_imag *= envelopes
        return real.astype(np.float64), minus_imag.astype(np.float64)

    def _residual(
        self, alpha: FloatArray, C: FloatArray, envelopes: Float32Array | None
    ) -> ComplexArray:
        cosines, minus_sines = self._correlate(C, envelopes, self._ones)
        residual: ComplexArray = self.z - alpha @ cosines + 1j * (alpha @ minus_sines)
        return residual

    def _check_spreads(self, C: FloatArray, S: FloatArray | None) -> None:
        d = len(self.turns)
        expected = None if self.spread == "none" else (len(C), d, d)[: _RANKS[self.spread]]
        actual = None if S is None else S.shape
        if C.ndim != 2 or C.shape[1] != d or actual != expected:
            msg = (
                f"MomentMatching with spread {self.spread!r} in dimension {d} takes C of shape "
                f"(k, {d}) and S of shape {expected}. Got {C.shape} and {actual}."
            )
            raise SpecError(msg)


_RANKS = {"isotropic": 1, "diagonal": 2, "full": 3}  # number of axes of S
