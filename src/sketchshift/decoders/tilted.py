"""The sketch of a Gaussian whose rows were weighted by the tilt, in closed form."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import ComplexArray, FloatArray
from sketchshift.features import Tilt

__all__ = ["tilted_wave"]


def tilted_wave(
    c: FloatArray, S: FloatArray, omega: FloatArray, wave: ComplexArray, tilt: Tilt | None
) -> tuple[ComplexArray, float]:
    r"""Characteristic function of a Gaussian after the tilt, and its mass.

    Below its cap the tilt is :math:`\frac12 + b |x|^2`, and :math:`|x|^2` under a Gaussian has
    the transform :math:`(\mathrm{tr} \Sigma + (c + \mathrm i \Sigma \omega)^T (c + \mathrm i
    \Sigma \omega))\, \psi(\omega)`. A Gaussian with a mean beyond the cap is just weighted.

    Parameters
    ----------
    c : array of shape (d,)
        Mean.
    S : array of shape (d, d) or (d,)
        Covariance, or variances.
    omega : array of shape (d, m)
        Frequencies.
    wave : complex array of shape (m,)
        Characteristic function of the mean alone.
    tilt : Tilt or None
        The weight; None is 1.

    Returns
    -------
    psi : complex array of shape (m,)
        Not divided by the mass. O(m d^2), or O(m d) for variances.
    mass : float
        Mean tilt of the Gaussian.
    """
    spread = S @ omega if S.ndim == 2 else S[:, None] * omega
    psi = wave * np.exp(-0.5 * np.einsum("ij,ij->j", spread, omega))
    mass = 1.0 if tilt is None else float(tilt(c @ c))
    if tilt is None or mass == tilt.cap:
        return mass * psi, mass
    b = 0.5 / tilt.radius**2
    mass += b * float(S.trace() if S.ndim == 2 else S.sum())
    squares = np.einsum("ij,ij->j", spread, spread)
    return (mass - b * squares + (2j * b) * (c @ spread)) * psi, mass
