"""Clipped cells of private releases: a row adds a bounded amount to its cell, whatever the row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, CELL_WEIGHT_BITS, CellAccumulator, Kernel
from sketchshift.sketch.cells import CellSlots, GridFamily, none_of
from sketchshift.sketch.family import FamilyAdder, WeightedRows
from sketchshift.sketch.totals import AnyTotals, Entries, Totals

__all__ = ["ClippedFamily", "NoisyCells"]


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """What a release tells of the rows of each cell, in normalised coordinates.

    Offsets are from the center of the cell, moved to the length of its radius if they are longer.

    Attributes
    ----------
    weights : array of shape (J,)
        Number of rows.
    sums : array of shape (J, d)
        Of the offsets.
    squares : array of shape (J,)
        Of the squared lengths of the offsets.
    centers, radii : arrays of shapes (J, d) and (J,)
        Of the cells; public.
    weight_std, sum_std, square_std : arrays of shape (J,)
        Standard deviations of the noise: of each number above.
    """

    weights: FloatArray
    sums: FloatArray
    squares: FloatArray
    centers: FloatArray
    radii: FloatArray
    weight_std: FloatArray
    sum_std: FloatArray
    square_std: FloatArray

    @property
    def steps(self) -> FloatArray:
        """What offsets were rounded to, shape (J,); their squares to as much times the radius."""
        return self.radii * 2.0**-BITS


class ClippedFamily(GridFamily):
    """Count, offsets and squared length of these, of the rows of each cell: shape (J, 2 + d).

    With r the radius of the cell of a row and e = (x' - c) / r, divided by its length if that is
    above 1, a row adds 2**22, the integers nearest to 2**22 e_k, and that nearest to 2**21 |e|^2.
    The radius is the distance to the nearest other center, or at most the diameter of the ball that
    all rows are in.
    """

    name = "clipped"

    def __init__(self, spec: SketchSpec) -> None:
        super().__init__(spec, 2 + spec.n_features)
        assert spec.rows.ball is not None
        self._diameter = 2.0 * spec.rows.ball.radius
        # each coordinate is rounded, which adds half the root of d to a length of 2**22
        longest = 2**BITS + math.isqrt(spec.n_features) // 2 + 2
        self.row_square = 4**BITS + longest**2 + 4 ** (BITS - 1)

    @cached_property
    def radii(self) -> FloatArray:
        """Of the cells: O(J^2 d), summed from the first column."""
        centers = self._cells.table.astype(np.float64)
        squares = np.zeros((len(centers), len(centers)))
        for column in centers.T:
            squares += np.square(column[:, None] - column)
        elsewhere = np.where(squares > 0.0, squares, np.inf)
        nearest: FloatArray = np.sqrt(elsewhere.min(axis=1))
        return np.minimum(nearest, self._diameter)

    def decode(self, totals: AnyTotals) -> NoisyCells:
        """What integers say that were multiplied by a factor before noise came."""
        one, r = totals.cell_factor * 2.0**BITS, self.radii
        numbers, std = totals.integers(self.name) / one, np.full(len(r), totals.scale / one)
        return NoisyCells(
            numbers[:, 0],
            numbers[:, 1:-1] * r[:, None],
            2.0 * numbers[:, -1] * r**2,
            self._cells.table.astype(np.float64),
            r,
            std,
            std * r,
            2.0 * std * r**2,
        )

    def adders(self, kernel: Kernel) -> Callable[[], FamilyAdder]:
        """Adders that share the kernel's table of centers."""
        accumulate = kernel.cells(self._centers)
        return lambda: _ClippedAdder(accumulate, self)

    def clip(self, values: FloatArray, labels: IntArray) -> FloatArray:
        """What rows (n, d) add to their cells (n,), as whole numbers: (n, 2 + d).

        Each row alone, by operations that are rounded alike everywhere.
        """
        radii = self.radii[labels]
        offsets = (values - self._cells.table[labels].astype(np.float64)) / radii[:, None]
        squares = np.zeros(len(values))
        for column in offsets.T:
            squares += column * column
        offsets /= np.sqrt(np.maximum(squares, 1.0))[:, None]
        whole, half = np.full((len(values), 1), 2.0**BITS), np.minimum(squares, 1.0) / 2.0
        numbers = np.hstack([offsets, half[:, None]])
        return np.hstack([whole, np.rint(numbers * 2.0**BITS)])

    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """Counts are those of the cells, and bound all else."""
        owners, numbers = totals.entry_floats(self.name)
        n, offsets, squares = numbers[:, 0], numbers[:, 1:-1], numbers[:, -1]
        within = (n + np.floor(n * 2.0**-BITS))[:, None]
        are_wrong = (np.abs(offsets) > within).any(axis=1) | (squares < 0) | (2 * squares > n)
        sound = none_of(totals, owners, are_wrong)
        of_cells = self._rows_of(totals, "cells", CELL_WEIGHT_BITS)
        wrong = self._rows_of(totals, self.name, BITS) ^ of_cells
        sound[[int(slot) for slot, *_ in wrong]] = False
        return sound

    @staticmethod
    def _rows_of(totals: Totals, name: str, bits: int) -> set[tuple[float, ...]]:
        """Slices and cells with the number of their rows, where there are some."""
        counts = totals.entry_floats(name)[1][:, 0] * 2.0**-bits
        rows = np.column_stack([totals.entries[name].names, counts])[counts != 0]
        return set(map(tuple, rows.tolist()))


class _ClippedAdder:
    def __init__(self, accumulate: CellAccumulator, family: ClippedFamily) -> None:
        self._accumulate, self._family = accumulate, family
        self._slots = CellSlots(*family.full_shape)

    @property
    def n_bytes(self) -> int:
        """See :class:`FamilyAdder`."""
        return self._slots.n_bytes

    def add(self, rows: WeightedRows) -> None:
        """Add rows at once: sums of so few of them are exact in float64."""
        labels, _ = self._accumulate.nearest(rows.values.astype(np.float32))
        places = self._slots.places(rows.slots, labels, rows.n_slots)
        some, which = np.unique(places, return_inverse=True)
        for k, column in enumerate(self._family.clip(rows.values, labels).T):
            self._slots.sums[some, k] += np.bincount(which, column).astype(np.int64)

    def take(self, n: int) -> Entries:
        """See :class:`FamilyAdder`."""
        return self._slots.take(self._family)
