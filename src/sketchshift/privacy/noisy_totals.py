"""The integers of a private sketch: what a release of the totals leaves of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sketchshift._typing import IntArray
from sketchshift.privacy.mechanism import LARGEST

__all__ = ["NoisyTotals"]


@dataclass(frozen=True, eq=False)
class NoisyTotals:
    """Totals with noise, which add up as raw ones do.

    Attributes
    ----------
    waves : int64 array of shape (2, m)
        Cosines and sines.
    scaled_count : int
        The number of rows times ``count_factor``.
    count_factor : int
        From the m of the release alone.
    scale : float
        Standard deviation of the noise in each of these integers.
    """

    waves: IntArray
    scaled_count: int
    count_factor: int
    scale: float

    def __add__(self, other: NoisyTotals) -> NoisyTotals:
        return self._combined(other, 1)

    def __sub__(self, other: NoisyTotals) -> NoisyTotals:
        return self._combined(other, -1)

    def _combined(self, other: NoisyTotals, sign: int) -> NoisyTotals:
        """Both, kept where two of them still add up in int64: beyond, noise has gone wild."""
        count = self.scaled_count + sign * other.scaled_count
        return NoisyTotals(
            np.clip(self.waves + sign * other.waves, 1 - LARGEST, LARGEST - 1),
            max(1 - LARGEST, min(count, LARGEST - 1)),
            self.count_factor,
            math.hypot(self.scale, other.scale),
        )

    def prefix(self, sketch_size: int) -> NoisyTotals:
        """Those of the first frequencies."""
        return replace(self, waves=np.ascontiguousarray(self.waves[:, :sketch_size]))
