"""Cells along axes: of many columns, squares are summed along a few directions.

Symbols
-------
d, J, p   columns, cells, axes
u         rows that were added, a whole weight counted as often as it says
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sketchshift._typing import BoolArray, FloatArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, WIDE_CELL_BITS, Kernel
from sketchshift.sketch.cells import (
    CellAdder,
    CellSums,
    GridFamily,
    missing_weight,
    none_of,
)
from sketchshift.sketch.family import FamilyAdder
from sketchshift.sketch.totals import WEIGHT_BITS, Totals

__all__ = ["AxisCellFamily"]


class AxisCellFamily(GridFamily):
    """Weight, offsets, squared length and squared coordinates of cells: shape (J, 2 + d + p)."""

    name = "cells"

    def __init__(self, spec: SketchSpec) -> None:
        assert spec.cells is not None
        assert spec.axes is not None
        self._axes = spec.axes.table
        self._centers = replace(spec.cells.groups, axes=self._axes)
        super().__init__(spec, self._centers.width)

    def sums(self, totals: Totals) -> CellSums:
        """What the integers of one slice say of the rows."""
        centers = self._centers.centers.astype(np.float64)
        steps = np.full(len(centers), 1.0 / self._centers.per_unit)
        return CellSums.of_wide(self.integers(totals), centers, self._axes, steps, BITS)

    def adders(self, kernel: Kernel) -> Callable[[], FamilyAdder]:
        """Adders that share the kernel's table of centers."""
        accumulate = kernel.cells(self._centers)
        return lambda: CellAdder(self, kernel, accumulate, self._centers)

    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """Weights that add up to that of the rows; sums within reach; Cauchy and Schwarz."""
        d, one = self._spec.n_features, 2.0 ** (WEIGHT_BITS - BITS)
        sound = missing_weight(totals, WEIGHT_BITS - BITS) <= 2 * u * one
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
