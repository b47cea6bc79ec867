"""The tilt: a weight that every row computes from itself, so that far points are seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import check_number

__all__ = ["Tilt"]


@dataclass(frozen=True)
class Tilt:
    r"""A weight computed from the row alone, larger for far points.

    .. math:: t(x) = \min(\mathrm{cap},\; 1/2 + |x'|^2 / (2 \, \mathrm{radius}^2))

    Parameters
    ----------
    radius : float
        In the units of the normalised data x'; the root of its total variance gives a mean
        weight of 1.
    cap : float
        The largest weight, from 1 to 65536. The integers keep 22 - ceil(log2(cap)) bits.
    """

    radius: float
    cap: float = 16.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "radius", check_number("Tilt", "radius", self.radius, low=1e-20, high=1e20)
        )
        object.__setattr__(
            self, "cap", check_number("Tilt", "cap", self.cap, low=1.0, high=2.0**16)
        )

    @property
    def exponent(self) -> int:
        """The least e with cap <= 2**e: weights enter the integers divided by 2**e."""
        significand, exponent = math.frexp(self.cap)  # significand in [1/2, 1)
        return exponent - (significand == 0.5)

    def __call__(self, squared_norms: FloatArray) -> FloatArray:
        """Weights of rows with these squared norms of x'; two roundings, then the cap."""
        per_square = 0.5 / (self.radius * self.radius)
        return np.minimum(squared_norms * per_square + 0.5, self.cap)
