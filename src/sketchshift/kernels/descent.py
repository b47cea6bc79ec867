r"""The joint descent that any kernel can run: SciPy's L-BFGS-B on its misfit.

A kernel with a descent of its own is tested against this one.

Symbols
-------
T, d      components, dimension
alpha, C  weights, shape (T,); centers, shape (T, d)
S         standard deviations along the axes, shape (T, d)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sketchshift._typing import FloatArray

__all__ = ["descend", "moment_penalty"]

_TURN = 2.0 * math.pi

Misfit = Callable[[FloatArray, FloatArray, FloatArray | None], tuple[float, FloatArray]]


def moment_penalty(
    alpha: FloatArray, C: FloatArray, S: FloatArray, mean: FloatArray, covariance: FloatArray
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    r"""Squared errors of mass, mean and covariance, without units, and their derivatives.

    .. math::

        P = \Big(\sum_i \alpha_i - 1\Big)^2 + \frac{|e|^2}{\operatorname{tr} \Sigma}
            + \frac{\|E\|_F^2}{(\operatorname{tr} \Sigma)^2}, \quad
        e = \sum_i \alpha_i (c_i - \mu), \quad
        E = \sum_i \alpha_i \big((c_i - \mu)(c_i - \mu)^T + \operatorname{diag} s_i^2\big) - \Sigma

    Entries of :math:`\Sigma` that are NaN are not known, and not matched. O(T d^2).
    """
    per_square = 1.0 / float(np.trace(covariance))
    mass, places, variances = alpha.sum() - 1.0, C - mean, S * S
    e = alpha @ places
    E = (places.T * alpha) @ places + np.diag(alpha @ variances) - covariance
    E[np.isnan(covariance)] = 0.0
    bent, diagonal = places @ E, np.diagonal(E)
    value = mass * mass + per_square * (e @ e) + per_square**2 * np.sum(E * E)
    square = (bent * places).sum(axis=1) + variances @ diagonal
    by_alpha = 2.0 * mass + 2.0 * per_square * (places @ e) + 2.0 * per_square**2 * square
    by_C = alpha[:, None] * (4.0 * per_square**2 * bent + 2.0 * per_square * e)
    by_S = alpha[:, None] * (4.0 * per_square**2 * S * diagonal)
    return float(value), by_alpha, by_C, by_S


def descend(
    misfit: Misfit,
    alpha: FloatArray,
    C: FloatArray,
    S: FloatArray,
    mean: FloatArray,
    covariance: FloatArray,
    strength: float,
    iterations: int,
    floor: float,
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """See ``Matcher.descend``; ``misfit`` is the matcher's call."""
    from scipy.optimize import minimize

    T, d = C.shape
    unit = math.sqrt(float(np.trace(covariance)) / d)

    def unpack(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        weights, centers, spreads = np.split(x, [T, T + T * d])
        return weights / T, centers.reshape(T, d) * unit, spreads.reshape(T, d) * unit

    def f(x: FloatArray) -> tuple[float, FloatArray]:
        alpha, C, S = unpack(x)
        value, sums = misfit(alpha, C, S * S)
        penalty, by_alpha, by_C, by_S = moment_penalty(alpha, C, S, mean, covariance)
        by_alpha = strength * by_alpha - 2.0 * sums[:, 0]
        by_C = strength * by_C + (2.0 * _TURN * alpha)[:, None] * sums[:, 1 : 1 + d]
        by_S = strength * by_S + (2.0 * _TURN**2 * alpha)[:, None] * S * sums[:, 1 + d :]
        gradient = np.concatenate([by_alpha / T, unit * by_C.ravel(), unit * by_S.ravel()])
        return value + strength * penalty, gradient

    def stop_at_floor(intermediate_result: Any) -> None:
        if intermediate_result.fun <= floor:
            raise StopIteration

    result = minimize(
        f,
        np.concatenate([alpha * T, C.ravel() / unit, S.ravel() / unit]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * T + [(None, None)] * (2 * T * d),
        options={"maxiter": iterations},
        callback=stop_at_floor,
    )
    alpha, C, S = unpack(result.x)
    return float(result.fun), alpha, C, np.abs(S)
