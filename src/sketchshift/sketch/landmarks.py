"""Landmarks: sums of the kernels of rows with each of them.

Symbols
-------
J         landmarks
u         rows that were added, a whole weight counted as often as it says
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sketchshift._typing import BoolArray, FloatArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import LOG2_E, Kernel, LandmarkAccumulator
from sketchshift.sketch.digits import to_floats
from sketchshift.sketch.family import Family, FamilyAdder, SlotSums, WeightedRows
from sketchshift.sketch.totals import AnyTotals, Totals

__all__ = ["LandmarkFamily"]


class LandmarkFamily(Family):
    """Gaussian kernels of the rows with each landmark, in steps of 2**-22: shape (J,)."""

    name = "landmarks"

    def __init__(self, spec: SketchSpec) -> None:
        assert spec.landmarks is not None
        assert isinstance(spec.bandwidth, float)
        self._places = spec.landmarks.table
        self._rate = 0.5 * LOG2_E / (spec.bandwidth * spec.bandwidth)
        self.shape = (len(self._places),)

    def adders(self, kernel: Kernel) -> Callable[[], FamilyAdder]:
        """Adders that share the places."""
        accumulate = kernel.landmarks(self._places, self._rate)
        return lambda: _LandmarkAdder(accumulate, len(self._places))

    def decode(self, totals: AnyTotals) -> FloatArray:
        """Their mean over the rows: shape (J,)."""
        return np.asarray(totals.integers(self.name) / totals.weight)

    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """A kernel is between 0 and 1: a sum of them between 0 and the weight of the rows."""
        sums = to_floats(totals.dense[self.name], self.n_digits)
        most = (totals.weights + u) * (1.0 + 1e-9)
        return np.asarray((sums.min(axis=1) >= 0) & (sums.max(axis=1) <= most))


class _LandmarkAdder(SlotSums):
    def __init__(self, accumulate: LandmarkAccumulator, n_places: int) -> None:
        super().__init__(n_places)
        self._accumulate = accumulate

    def add(self, rows: WeightedRows) -> None:
        """Add the kernels of the rows at once."""
        totals = self.reach(rows.n_slots)
        for some, slot in rows.runs:
            sums = np.zeros_like(totals[slot])
            shares = None if rows.shares is None else rows.shares[some]
            self._accumulate(rows.values[some], shares, sums)
            totals[slot] += sums << rows.digit
