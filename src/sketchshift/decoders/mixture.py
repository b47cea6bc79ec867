r"""Weighted components: mixtures of Diracs or Gaussians, and points that stand for rows.

Made by ``decoders``; knows frequencies as an array only, and neither how it was found nor
what it approximates. Everything is in the coordinates of the frequencies.

Symbols
-------
k, d, m   components, dimension, frequencies
turns     frequencies divided by 2 pi, shape (d, m): omega = 2 pi turns
psi_i     characteristic function of component i at the frequencies, shape (m,)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sketchshift._typing import ComplexArray, FloatArray, IntArray, RealArray
from sketchshift.errors import SpecError

__all__ = ["Mixture", "Points", "as_shares", "means_by", "wave_of"]

_TURN = 2.0 * math.pi


@dataclass(frozen=True, eq=False)
class Mixture:
    r"""A measure :math:`\sum_i \alpha_i \pi_i` with Diracs or Gaussians :math:`\pi_i`.

    Parameters
    ----------
    weights : array of shape (k,)
        The :math:`\alpha_i`. They need not add up to one.
    means : array of shape (k, d)
        Centroids :math:`c_i`.
    covariances : array of shape (k, d, d), (k, d) or (k,), or None
        The :math:`\Sigma_i`, symmetric; or variances along the axes, or in all directions. Zeros
        make a Dirac. None: Diracs only.

    Examples
    --------
    >>> import numpy as np
    >>> pair = Mixture(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]))
    >>> pair.sketch(np.array([[0.0, 0.25]])).real.round(3) + 0.0  # 1 and cos(pi / 2), over sqrt(2)
    array([0.707, 0.   ])
    """

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray | None = None

    def __post_init__(self) -> None:
        means = _as_floats("means", self.means)
        if means.ndim != 2:
            raise SpecError(f"the means of a Mixture must have shape (k, d). Got {means.shape}.")
        k, d = means.shape
        weights = _as_floats("weights", self.weights)
        _check_shape("weights", weights, (k,), means)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "means", means)
        if self.covariances is not None:
            covariances = _as_floats("covariances", self.covariances)
            shape = (k, d, d) if covariances.ndim > 2 else (k, d)[: max(covariances.ndim, 1)]
            _check_shape("covariances", covariances, shape, means)
            object.__setattr__(self, "covariances", covariances)

    @property
    def n_components(self) -> int:
        """Number k of components."""
        return len(self.means)

    @property
    def n_features(self) -> int:
        """Dimension d of a point."""
        return int(self.means.shape[1])

    @property
    def shares(self) -> FloatArray:
        """The weights, adding up to 1; all alike where no component has any."""
        return as_shares(self.weights)

    @property
    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (d,) and covariance (d, d) of a mixture whose weights add up to 1."""
        mean = self.weights @ self.means
        rests = self.means - mean
        covariance = (rests.T * self.weights) @ rests
        S = self.covariances
        if S is not None and S.ndim == 3:
            covariance += np.einsum("i,ijk->jk", self.weights, S)
        elif S is not None:
            covariance += np.diag(np.broadcast_to(self.weights @ S, mean.shape))
        return mean, covariance

    def characteristic_functions(self, turns: RealArray) -> ComplexArray:
        r"""Characteristic function of each component at the frequencies.

        .. math::

            \psi_i(\omega_j) = e^{\mathrm{i} \langle \omega_j, c_i \rangle}\,
                e^{-\omega_j^T \Sigma_i \omega_j / 2}

        Parameters
        ----------
        turns : array of shape (d, m)
            Frequencies divided by 2 pi.

        Returns
        -------
        psi : complex array of shape (k, m)
            In float64 throughout: O(k m d), and O(k m d^2) for full covariances.
        """
        omega = _TURN * np.asarray(turns, dtype=np.float64)
        if omega.ndim != 2 or len(omega) != self.n_features:
            msg = (
                f"this Mixture has means of shape {self.means.shape}, so it takes frequencies of "
                f"shape ({self.n_features}, m). Got {omega.shape}."
            )
            raise SpecError(msg)
        psi: ComplexArray = np.exp(1j * (self.means @ omega))
        if self.covariances is not None:
            for row, S in zip(psi, self.covariances, strict=True):
                row *= np.exp(-0.5 * (_spread(S, omega) * omega).sum(axis=0))
        return psi

    def sketch(self, turns: RealArray) -> ComplexArray:
        r"""The sketch of the mixture: :math:`\sum_i \alpha_i \psi_i / \sqrt m`.

        Parameters
        ----------
        turns : array of shape (d, m)
            Frequencies divided by 2 pi.

        Returns
        -------
        z : complex array of shape (m,)
            The paper's sketching operator applied to the mixture; costs of
            :meth:`characteristic_functions`.
        """
        psi = self.characteristic_functions(turns)
        z: ComplexArray = self.weights @ psi / math.sqrt(psi.shape[1])
        return z


@dataclass(frozen=True, eq=False)
class Points:
    """Weighted points, in normalised coordinates.

    Attributes
    ----------
    places : array of shape (n, d)
        Where they are.
    weights : array of shape (n,)
        Shares of the rows; they add up to 1.
    """

    places: FloatArray
    weights: FloatArray


def as_shares(weights: FloatArray) -> FloatArray:
    """Weights that add up to 1; all alike where they are all zero. There may be none."""
    weights = weights if weights.any() else np.ones_like(weights)
    return np.asarray(weights / (weights.sum() or 1.0))


def means_by(
    labels: IntArray, weights: FloatArray, values: FloatArray, mass: FloatArray
) -> FloatArray:
    """Weighted means of values (n, c) by label, of which each has a mass (k,): (k, c)."""
    sums = [np.bincount(labels, weights * column, minlength=len(mass)) for column in values.T]
    return np.asarray(np.column_stack(sums) / np.where(mass > 0.0, mass, 1.0)[:, None])


def wave_of(S: FloatArray, omega: FloatArray, wave: ComplexArray) -> ComplexArray:
    """Characteristic function of a Gaussian.

    Parameters
    ----------
    S : array of shape (d, d) or (d,)
        Covariance, or variances.
    omega : array of shape (d, m)
        Frequencies.
    wave : complex array of shape (m,)
        Characteristic function of the mean alone.

    Returns
    -------
    psi : complex array of shape (m,)
        O(m d^2), or O(m d) for variances.
    """
    return np.asarray(wave * np.exp(-0.5 * np.einsum("ij,ij->j", _spread(S, omega), omega)))


def _spread(S: FloatArray, omega: FloatArray) -> FloatArray:
    """The covariance, or the variances, times the frequencies: shape (d, m)."""
    return S @ omega if S.ndim == 2 else S[..., None] * omega


def _as_floats(name: str, value: RealArray) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if not np.isfinite(array).all():
        raise SpecError(f"the {name} of a Mixture must be finite. Got NaN or infinity.")
    return array


def _check_shape(
    name: str, array: FloatArray, expected: tuple[int, ...], means: FloatArray
) -> None:
    if array.shape != expected:
        msg = (
            f"a Mixture with means of shape {means.shape} must have {name} of shape {expected}. "
            f"Got {array.shape}."
        )
        raise SpecError(msg)
