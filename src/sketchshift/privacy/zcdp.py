r"""Zero-concentrated differential privacy, in the words people use: epsilon at a delta.

A release is rho-zCDP when its Rényi divergence of any order a > 1 is at most a rho (Bun and
Steinke 2016); rho adds up over releases. Gaussian noise of scale s on a vector of L2
sensitivity D has rho = D^2 / 2 s^2, discrete Gaussian noise on integers too (Canonne, Kamath
and Steinke 2020).
"""

from __future__ import annotations

import math

__all__ = ["epsilon_of", "rho_of"]

_ORDERS = (-30.0, 60.0)  # of log(a - 1)
_AROUND = 4.0  # that the best order is searched for
_RHO = (1e-14, 1e5)


def epsilon_of(rho: float, delta: float) -> float:
    r"""The epsilon that rho-zCDP has at delta.

    .. math:: \varepsilon = \min_{a > 1}\; a \rho
        + \log\Big(1 - \frac1a\Big) - \frac{\log(\delta a)}{a - 1}

    Any order a gives a valid epsilon, so that a minimum found roughly promises nothing wrong
    (Canonne, Kamath and Steinke 2020, proposition 12).

    Parameters
    ----------
    rho : float
        0 or more.
    delta : float
        Between 0 and 1.

    Returns
    -------
    epsilon : float
        0 or more.
    """
    from scipy.optimize import minimize_scalar

    if rho == 0.0:
        return 0.0

    def epsilon(log_order: float) -> float:
        above = math.exp(log_order)  # a - 1
        a = 1.0 + above
        return a * rho + math.log(above / a) - (math.log(delta) + math.log(a)) / above

    # the order of the plain bound rho + 2 sqrt(rho log(1/delta)) lies near the best one
    middle = 0.5 * (math.log(-math.log(delta)) - math.log(rho))
    middle = min(max(middle, _ORDERS[0] + _AROUND), _ORDERS[1] - _AROUND)
    bounds = (middle - _AROUND, middle + _AROUND)
    found = minimize_scalar(epsilon, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    return max(0.0, float(found.fun))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose epsilon at delta is not above the one given.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        Between 0 and 1.

    Returns
    -------
    rho : float
        To twelve digits, rounded down.
    """
    low, high = _RHO
    while high > low * (1.0 + 1e-12):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if epsilon_of(middle, delta) <= epsilon else (low, middle)
    return low
