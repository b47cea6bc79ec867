r"""Sums of weighted chi-squares: the law of a squared norm of a Gaussian vector.

Takes the eigenvalues of a covariance; hands tail probabilities and quantiles. The saddlepoint
approximation (Kuonen 1999) keeps its relative accuracy far out in the tail, where matching a few
moments loses it and simulation has no draws.
"""

from __future__ import annotations

import math

import numpy as np

from sketchshift._typing import FloatArray

__all__ = ["quantile", "tail"]

NEAR_MEAN = 1e-4  # the formula is 0 / 0 at the mean: below this its limit is taken
NEAR_ZERO, FAR = 1e-200, 1e8  # in the largest weight: the tail is 1 or 0 to the last bit
LEAST = 1e-12  # share of the largest weight below which one is rounding


def tail(x: float, weights: FloatArray) -> float:
    r"""The probability :math:`P(\sum_i \lambda_i \chi^2_1 > x)`.

    With :math:`K(s) = -\frac12 \sum_i \log(1 - 2 s \lambda_i)` and :math:`K'(s) = x`, the normal
    tail at :math:`w + \log(v / w) / w`, where :math:`w = \pm\sqrt{2 (s x - K(s))}` and
    :math:`v = s \sqrt{K''(s)}`.

    Parameters
    ----------
    x : float
        Where.
    weights : array of shape (r,)
        The :math:`\lambda_i`, not negative.

    Returns
    -------
    p : float
        At p = 0.01 off by 5 % of p for one weight, 0.6 % for five equal ones; O(r) a step of a
        root search.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    largest = float(weights.max(initial=0.0))
    if x <= NEAR_ZERO * largest:
        return 1.0
    if x >= FAR * largest:
        return 0.0
    weights = weights[weights > LEAST * largest] / largest
    x /= largest

    def slope(u: float) -> float:
        return float((weights / (1.0 - weights + u * weights)).sum())

    # u = 1 - 2 s, in logarithms, keeps its digits where s comes near its end, 1/2.
    ends = math.log(0.5 / x), math.log(1.0 + 2.0 * len(weights) / x)  # well outside on both sides
    u = math.exp(brentq(lambda v: slope(math.exp(v)) - x, *ends, xtol=1e-14))
    s, rests = (1.0 - u) / 2.0, 1.0 - weights + u * weights
    w = math.copysign(math.sqrt(max(0.0, 2.0 * s * x + float(np.log(rests).sum()))), s)
    if abs(w) < NEAR_MEAN:
        skewness = 8.0 * float((weights**3).sum()) / (2.0 * float((weights**2).sum())) ** 1.5
        return float(ndtr(-w - skewness / 6.0))
    v = s * math.sqrt(2.0 * float(((weights / rests) ** 2).sum()))
    return float(ndtr(-w - math.log(v / w) / w))


def quantile(p: float, weights: FloatArray) -> float:
    r"""The x that :math:`\sum_i \lambda_i \chi^2_1` exceeds with probability p.

    Parameters
    ----------
    p : float
        Between 0 and 1, both excluded.
    weights : array of shape (r,)
        The :math:`\lambda_i`, not negative.

    Returns
    -------
    x : float
        Where :func:`tail` is p; 0 when all weights are.
    """
    from scipy.optimize import brentq

    mean = float(weights.sum())
    if mean <= 0.0:
        return 0.0
    low = high = mean
    while tail(high, weights) > p:
        high *= 2.0
    while tail(low, weights) < p:
        low /= 2.0
    return float(brentq(lambda x: tail(x, weights) - p, low, 2.0 * high, rtol=1e-9))
