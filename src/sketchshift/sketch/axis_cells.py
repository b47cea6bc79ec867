"""Cells along axes: of many columns, squares are summed along a few directions.

Symbols
-------
d, J, p   columns, cells, axes
u         rows that were added, a whole weight counted as often as it says
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from sketchshift._typing import BoolArray, FloatArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, WIDE_CELL_BITS, Centers
from sketchshift.sketch.cells import CellFamily, GridFamily, missing_weight, none_of
from sketchshift.sketch.totals import WEIGHT_BITS, Totals

__all__ = ["AxisCellFamily"]


class AxisCellFamily(CellFamily):
    """Weight, offsets, squared length and squared coordinates of cells: shape (J, 2 + d + p)."""

    n_digits = 2
    weight_bits = BITS
    lanes = GridFamily.lanes

    def __init__(self, spec: SketchSpec) -> None:
        assert spec.axes is not None
        self._axes = spec.axes.table
        GridFamily.__init__(self, spec, 2 + spec.n_features + len(self._axes))

    @cached_property
    def _centers(self) -> Centers:
        return replace(self._cells.groups, axes=self._axes)

    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """Weights that add up to that of the rows; sums within reach; Cauchy and Schwarz."""
        d, power = self._spec.n_features, WEIGHT_BITS - self.weight_bits
        sound = missing_weight(totals, power) <= 2 * u * 2.0**power
        owners, numbers = totals.entry_floats(self.name)
        n, sums, squares, u = numbers[:, 0], numbers[:, 1 : 1 + d], numbers[:, 1 + d :], u[owners]
        are_wrong = (n < 0) | (squares < 0).any(axis=1)
        mass = n * 2.0**-BITS + u + 1.0
        are_wrong |= (squares > (mass * 2.0 ** (2 * WIDE_CELL_BITS + 1))[:, None]).any(axis=1)
        # in steps, a row of partial weight is off by half of one in each column
        lengths = np.sqrt(np.square(sums).sum(axis=1))
        shrunk = np.maximum(lengths - u * math.sqrt(d), 0.0)
        are_wrong |= shrunk**2 > 1.001 * mass * (squares[:, 0] + 2.0 * u * d)
        return sound & none_of(totals, owners, are_wrong)
