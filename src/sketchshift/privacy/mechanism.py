"""Discrete Gaussian noise on integers, through OpenDP: the one place where noise is drawn.

OpenDP has the last word on what a release costs; our own formula only proposes the scale.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from sketchshift._typing import IntArray
from sketchshift._validation import check_choice, check_integer, check_number
from sketchshift.errors import MissingDependencyError, PrivacyWarning, warn
from sketchshift.features import Charge
from sketchshift.features.rows import ADJACENCIES

__all__ = ["LARGEST", "Budget", "Look", "epsilon_of", "rho_of"]

# Zero-concentrated differential privacy, in the words people use: epsilon at a delta.
#
# A release is rho-zCDP when its Rényi divergence of any order a > 1 is at most a rho (Bun and
# Steinke 2016); rho adds up over releases. Gaussian noise of scale s on a vector of L2
# sensitivity D has rho = D^2 / 2 s^2, discrete Gaussian noise on integers too (Canonne, Kamath
# and Steinke 2020).

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


LARGEST = 2**62
"""Integers of a release stay below this in size, so that two of them add up in int64."""

WEAK = 10.0  # an epsilon above it promises little


@dataclass(frozen=True)
class Budget:
    """What may be spent, and on which promise.

    Parameters
    ----------
    epsilon, delta : float
        Of (epsilon, delta)-differential privacy.
    adjacency : {"add_remove", "replace_one"}
        Whether neighbours differ by a person who is there or not, or by a person who is
        another one; the latter doubles the noise.
    rows_per_person : int
        How many rows a person has at most.
    """

    epsilon: float
    delta: float
    adjacency: str = "add_remove"
    rows_per_person: int = 1

    def check(self, caller: str) -> Budget:
        """The same with numbers of the right types; refuses what cannot be promised."""
        epsilon = check_number(caller, "epsilon", self.epsilon, low=1e-3, high=100.0)
        delta = check_number(caller, "delta", self.delta, low=1e-30, high=1e-2)
        check_choice(caller, "adjacency", self.adjacency, ADJACENCIES)
        c = check_integer(caller, "rows_per_person", self.rows_per_person, 1, 2**20)
        if epsilon > WEAK:
            msg = f"epsilon={epsilon:g} promises little: an adversary may still be nearly certain."
            warn(msg, PrivacyWarning)
        return Budget(epsilon, delta, self.adjacency, c)

    def part(self, share: float) -> float:
        """The rho of a share of this budget."""
        return share * rho_of(self.epsilon, self.delta)

    def per_row(self, sensitivity: int | float) -> float:
        """Sensitivity to a person, from that to one row that is added or removed."""
        factor = self.rows_per_person * (2 if self.adjacency == "replace_one" else 1)
        return float(sensitivity) * factor

    def look(self, row_sensitivity: int | float, purpose: str, share: float = 1.0) -> Look:
        """A look at private rows, whose cost is known before it is taken.

        Parameters
        ----------
        row_sensitivity : int or float
            L2 norm of what one row adds to the vector at most, exact in float64.
        purpose : str
            For the ledger.
        share : float, default=1
            Of the budget's rho.

        Returns
        -------
        look : Look
            To be charged first, then drawn, once.
        """
        sensitivity = self.per_row(row_sensitivity)
        measurement, scale, rho = _calibrated(sensitivity, self, share)
        charge = Charge(
            id=secrets.token_hex(16),
            purpose=purpose,
            rho=rho,
            delta=self.delta,
            sensitivity=sensitivity,
            scale=scale,
            adjacency=self.adjacency,
            rows_per_person=self.rows_per_person,
            mechanism=f"discrete Gaussian, OpenDP {_opendp_version()}",
        )
        return Look(charge, measurement)


@dataclass(frozen=True)
class Look:
    """One look at private rows, and what it costs."""

    charge: Charge
    _measurement: Any

    def draw(self, vector: IntArray) -> IntArray:
        """The int64 vector of shape (n,), each number with independent discrete Gaussian noise.

        O(n), some 20 000 numbers a second.
        """
        return _draw(self._measurement, vector)


def _draw(measurement: Any, vector: IntArray) -> IntArray:
    noisy = np.array(measurement(vector.tolist()), dtype=np.int64)
    return np.clip(noisy, 1 - LARGEST, LARGEST - 1)


def _calibrated(sensitivity: float, budget: Budget, share: float) -> tuple[Any, float, float]:
    """OpenDP's measurement, its scale and its rho, within the share of the budget."""
    dp = _opendp()
    scale, rho = _least_noise(sensitivity, budget, share)
    return _gaussian(dp, scale), scale, rho


@lru_cache(maxsize=64)
def _least_noise(sensitivity: float, budget: Budget, share: float) -> tuple[float, float]:
    """Scale and rho of the least noise within the share of the budget; some 10 ms.

    All of a budget is judged by OpenDP's own epsilon; a part of it by rho, which adds up.
    """
    dp = _opendp()
    allowed = budget.part(share)
    least = sensitivity / float(np.sqrt(2.0 * allowed))
    scale, more = least, 1e-9  # roundings of ours and of OpenDP's differ in the last digits
    while True:
        measurement = _gaussian(dp, scale)
        rho = float(measurement.map(sensitivity))
        curve = dp.c.make_zCDP_to_approxDP(measurement).map(sensitivity)
        is_within = share < 1.0 or curve.epsilon(budget.delta) <= budget.epsilon
        if rho <= allowed and is_within:
            return scale, rho
        scale, more = least * (1.0 + more), 2.0 * more


def _gaussian(dp: Any, scale: float) -> Any:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return dp.m.make_gaussian(*space, scale)


@cache
def _opendp_version() -> str:
    from importlib import metadata  # brings the whole of `email` along

    return metadata.version("opendp")


def _opendp() -> Any:
    try:
        dp = import_module("opendp.prelude")
    except ImportError:
        msg = (
            'noise is drawn by OpenDP, which is not installed: pip install "sketchshift[privacy]". '
            "A private sketch is read and decoded without it."
        )
        raise MissingDependencyError(msg) from None
    dp.enable_features("contrib")
    return dp
