"""Cells: rows by their nearest center.

Symbols
-------
d, J      columns, cells
n, S, Q   weight, sums of offsets, sums of their squares of one cell, in their steps
u         rows that were added, a whole weight counted as often as it says
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from sketchshift._typing import BoolArray, Digits, Float32Array, FloatArray, IntArray
from sketchshift.features import Axes, SketchSpec
from sketchshift.kernels import (
    CELL_BITS,
    CELL_ROWS,
    CELL_WEIGHT_BITS,
    CellAccumulator,
    Centers,
    Kernel,
    select_kernel,
)
from sketchshift.sketch.digits import (
    carry,
    lanes_of,
    shifted,
    to_floats,
    to_integers,
)
from sketchshift.sketch.family import Family, FamilyAdder, SlotSums, WeightedRows, Zone
from sketchshift.sketch.totals import (
    WEIGHT_BITS,
    AnyTotals,
    Entries,
    EntrySums,
    Totals,
    to_digits,
)

__all__ = [
    "CellAdder",
    "CellFamily",
    "CellSlots",
    "CellSums",
    "GridFamily",
    "PartialFamily",
    "are_sums",
    "missing_weight",
    "none_of",
]

_CANCELLED = 1e-12
_STEP_BITS = CELL_BITS + 12  # an offset within reach is below 2**_STEP_BITS steps
_CLOSE = 1.0 + 1e-9


@dataclass(frozen=True, eq=False)
class CellSums:
    """What is known of the rows of each cell, in normalised coordinates.

    Attributes
    ----------
    weights : array of shape (J,)
        Total weight of the rows.
    means, variances : arrays of shape (J, d)
        Of the rows, along each column; those of a cell without rows are its center and 0.
    steps : array of shape (J,)
        What coordinates were rounded to.
    origins : array of shape (J, d)
        What offsets are from.
    sums, squares : arrays of shape (J, d)
        Of the offsets, and of their squares, times the weights: also where weights are so small
        that they count as 0.
    along : array of shape (J, p) or None
        Variances along the axes of the spec. Where it has axes, those along columns are not known:
        ``variances`` and ``squares`` have then the exact sum over all columns, shared out alike.
    """

    weights: FloatArray
    means: FloatArray
    variances: FloatArray
    steps: FloatArray
    origins: FloatArray
    sums: FloatArray
    squares: FloatArray
    along: FloatArray | None = None

    def only(self, some: BoolArray) -> CellSums:
        """The same without weight but in some cells."""
        return replace(self, weights=np.where(some, self.weights, 0.0))

    def __getitem__(self, some: BoolArray) -> CellSums:
        """Some of the cells."""
        return self._map(lambda array: array[some])

    def __add__(self, other: CellSums) -> CellSums:
        """The cells of both."""
        others = iter([getattr(other, f.name) for f in fields(self)])
        return self._map(lambda array: np.concatenate([array, next(others)]))

    def _map(self, change: Callable[[FloatArray], FloatArray]) -> CellSums:
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        changed: dict[str, Any] = {n: change(a) for n, a in arrays.items() if a is not None}
        return CellSums(**changed)

    def project(self, axes: Axes) -> CellSums:
        """The same in the coordinates along the axes: O(J p d)."""
        assert self.along is not None
        table = axes.table.astype(np.float64)
        means, origins, sums = (a @ table.T for a in (self.means, self.origins, self.sums))
        squares = self.weights[:, None] * (self.along + np.square(means - origins))
        return CellSums(self.weights, means, self.along, self.steps, origins, sums, squares)

    @classmethod
    def of(
        cls,
        digits: Digits,
        centers: FloatArray,
        steps: FloatArray,
        bits: int,
        axes: Float32Array | None = None,
    ) -> CellSums:
        """From weights, sums and squares (J, integers, n) in steps (J,), around centers (J, d).

        A row of weight 1 has 2**bits of it. Sums and squares are divided by the weight, and the
        squares of the former subtracted, in integers: each number is rounded once. With axes (p, d)
        that is so of the sum of all variances, and those along the axes are of rounded numbers.
        """
        kernel, d, one = select_kernel(), centers.shape[1], 2.0**bits
        n, Q = digits[:, 0], digits[:, 1 + d :]
        S = np.ascontiguousarray(digits[:, 1 : 1 + d])
        numbers, step = kernel.central(digits), steps[:, None]
        weights, sums = numbers[:, 0] / one, numbers[:, 1 : 1 + d] * step
        with np.errstate(over="ignore"):  # of rows beyond 1e154
            raw = numbers[:, 1 + d :] * step * step
            if axes is None:
                offsets = kernel.central(S, n) * one * step
                squares = kernel.central(Q, n, S[:, :, None], S[:, :, None], bits) * one
                variances = np.maximum(squares, 0.0) * step * step
                return cls(weights, centers + offsets, variances, steps, centers, sums, raw)
            total = kernel.central(Q[:, :1], n, S[:, None], S[:, None], bits) * one
            share = np.full((1, d), 1.0 / d)
            variances = np.maximum(total, 0.0) * step * step * share
        heavy = np.where(weights > 0.0, weights, np.inf)[:, None]
        means, offsets = raw[:, 1:] / heavy, sums / heavy
        along = np.maximum(means - np.square(offsets @ axes.T.astype(np.float64)), 0.0)
        along[along <= _CANCELLED * means] = 0.0  # of equal rows, rounding is left
        squares = raw[:, :1] * share
        return cls(weights, centers + offsets, variances, steps, centers, sums, squares, along)

    @classmethod
    def none(cls, d: int) -> CellSums:
        """Of no cells."""
        return cls.of(np.zeros((0, 1 + 2 * d, 4), np.int32), np.zeros((0, d)), np.zeros(0), 0)


class GridFamily(Family):
    """A family of entries that are named by their cell: what all such share."""

    id_width = 1
    zones = frozenset({Zone.NEAR})

    def __init__(self, spec: SketchSpec, width: int) -> None:
        assert spec.cells is not None
        self._spec, self._cells, self.shape = spec, spec.cells, (width,)
        self._n_cells = spec.cells.n_cells

    @cached_property
    def _centers(self) -> Centers:
        return self._cells.groups

    @property
    def full_shape(self) -> tuple[int, ...]:
        """All cells."""
        return self._n_cells, *self.shape

    def integers(self, totals: Totals, i: int = 0) -> Any:
        """The integers of all cells of slice i, shape (J, integers)."""
        return to_integers(self._digits_of(totals[i]).reshape(self._n_cells, -1), self.n_digits)

    def _digits_of(self, totals: Totals) -> Digits:
        """Those of all cells of a single slice, shape (J, integers, n)."""
        own, shape = totals.entries[self.name], (self.n_integers, self.n_digits)
        digits = np.zeros((self._n_cells, *shape), dtype=np.int32)
        digits[own.names[:, 1]] = own.digits.reshape(-1, *shape)
        return digits

    def lanes(self, sums: IntArray) -> IntArray:
        """Sums of rows (E, integers) as digits that are not in their range."""
        return lanes_of([(sums, 0)], self.n_digits)

    @property
    def groups(self) -> tuple[int, ...]:
        """Weights, sums, squares."""
        d = self._spec.n_features
        return 1, d, self.n_integers - 1 - d

    def are_names(self, names: IntArray) -> BoolArray:
        """Those of cells of the plan."""
        return np.asarray((names[:, 1] >= 0) & (names[:, 1] < self._n_cells))


class CellFamily(GridFamily):
    """Weight, offsets and squared offsets of the rows nearest to each center: (J, 1 + 2 d)."""

    name = "cells"
    n_digits = 4
    weight_bits = CELL_WEIGHT_BITS
    """A row of weight 1 adds 2**weight_bits to the weight of its cell."""

    def __init__(self, spec: SketchSpec) -> None:
        super().__init__(spec, 1 + 2 * spec.n_features)

    @cached_property
    def _centers(self) -> Centers:
        groups = self._cells.groups
        if self._spec.rows.ball is None:
            return groups
        return replace(groups, limit=math.inf)  # rows of releases are all in cells

    def decode(self, totals: AnyTotals) -> CellSums:
        """The rows of each cell, then those in shells: see :class:`Sketch`."""
        assert isinstance(totals, Totals)
        centers = self._centers.centers.astype(np.float64)
        steps = np.full(len(centers), 1.0 / self._centers.per_unit)
        digits, axes = self._digits_of(totals), self._centers.axes
        shells: CellSums = totals.decode("outliers").shells
        return CellSums.of(digits, centers, steps, self.weight_bits, axes) + shells

    def adders(self, kernel: Kernel) -> Callable[[], FamilyAdder]:
        """Adders that share the kernel's table of centers."""
        accumulate = kernel.cells(self._centers)
        return lambda: CellAdder(self, kernel, accumulate, self._centers)

    def lanes(self, sums: IntArray) -> IntArray:
        """Sums of a kernel (E, 1 + 3 d) as digits that are not in their range."""
        d = self._spec.n_features
        lanes = np.zeros((len(sums), self.width), dtype=np.int64)
        lanes[:, 0::4] = sums[:, : 1 + 2 * d]
        lanes[:, 4 * (1 + d) + 1 :: 4] = sums[:, 1 + 2 * d :]  # SQUARE_BITS are those of a digit
        return lanes

    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """Weights that add up to that of the rows; sums within reach; Cauchy and Schwarz."""
        power = WEIGHT_BITS - self.weight_bits
        sound = missing_weight(totals, power) <= u * 2.0**power
        owners, numbers = totals.entry_floats(self.name)
        return sound & none_of(totals, owners, ~are_sums(numbers, u[owners], _STEP_BITS))


def none_of(totals: Totals, owners: IntArray, are_wrong: BoolArray) -> BoolArray:
    """Say of each slice whether none of its entries (E,), which have owners (E,), is wrong."""
    return np.asarray(np.bincount(owners[are_wrong], minlength=len(totals)) == 0)


def missing_weight(totals: Totals, power: int) -> FloatArray:
    """Fine weight of each slice that is neither in cells nor in shells, as a positive number.

    Parameters
    ----------
    totals : Totals
        With cells.
    power : int
        What cells count, in powers of two of the fine weight.
    """
    lanes = -totals.dense["moments"][:, 4:8].astype(np.int64)
    cells, outliers = totals.entries["cells"], totals.entries["outliers"]
    outer = outliers[outliers.names[:, 1] == Zone.OUTER]
    n_digits = totals.layout.by_name["cells"].n_digits
    for own, n, by in ((cells, n_digits, power), (outer, 4, WEIGHT_BITS - CELL_WEIGHT_BITS)):
        weights = np.zeros((len(totals), 4), dtype=np.int64)
        for i in range(n):  # sums of digits are exact in float64
            weights[:, i] = np.bincount(own.names[:, 0], own.digits[:, i], len(totals))
        lanes += shifted(carry(weights, 4), 4, by)
    return np.abs(to_floats(carry(lanes, 4), 4)[:, 0])


def are_sums(numbers: FloatArray, u: FloatArray, step_bits: int) -> BoolArray:
    """Whether weights, sums and squares (E, 1 + 2 d) of rows can be such.

    Rounding of weights included: u (E,) rows were added.
    """
    d = numbers.shape[1] // 2
    n, S, Q, u = numbers[:, :1], numbers[:, 1 : 1 + d], numbers[:, 1 + d :], u[:, None]
    # in steps: weights are rounded to 2**-CELL_WEIGHT_BITS, sums and squares to one step each
    mass = (np.floor(n * 2.0**-CELL_WEIGHT_BITS) + u + 1) * _CLOSE
    sound = (n >= 0) & (Q >= 0)
    sound = sound & (np.abs(S) <= mass * 2.0**step_bits) & (mass * 2.0 ** (2 * step_bits) >= Q)
    shrunk = np.maximum(np.abs(S) - 2 * u, 0)
    bound = (n + u) * (2 * Q + 2 * u) * _CLOSE
    sound &= shrunk**2 * 2.0**CELL_WEIGHT_BITS <= bound
    return np.asarray(sound.all(axis=1))


class CellSlots:
    """Sums in int64 of those cells of slices that have rows.

    Where they stand is looked up in a table of all cells of all slices, of four bytes each.
    """

    def __init__(self, n_cells: int, width: int) -> None:
        self._n_cells, self._width = n_cells, width
        self._clear()

    def _clear(self) -> None:
        self._table = np.full((0, self._n_cells), -1, dtype=np.int32)
        self._pairs = np.zeros(0, dtype=np.int64)  # slot times J, and cell, by place
        self._n = 0
        self.sums: IntArray = np.zeros((0, self._width), dtype=np.int64)

    @property
    def n_bytes(self) -> int:
        """Memory of the sums and of their places."""
        return self.sums.nbytes + self._pairs.nbytes + self._table.nbytes

    def places(self, slots: IntArray, cells: IntArray, n_slots: int) -> IntArray:
        """Where rows of some slots and cells are summed; new places begin with zeros."""
        if n_slots > len(self._table):
            more = n_slots if n_slots == 1 else n_slots + n_slots // 4 - len(self._table)
            rows = np.full((more, self._n_cells), -1, dtype=np.int32)
            self._table = np.concatenate([self._table, rows])
        pairs = slots * self._n_cells + cells
        flat = self._table.ravel()
        places = flat[pairs]
        is_new = places < 0
        if is_new.any():
            new = pairs[is_new]
            flat[new] = np.arange(len(new))  # of equal pairs one is left
            new = new[flat[new] == np.arange(len(new))]
            self._make_room(self._n + len(new))
            flat[new] = np.arange(self._n, self._n + len(new))
            self._pairs[self._n : self._n + len(new)] = new
            self._n += len(new)
            places = flat[pairs]
        return np.asarray(places, dtype=np.int64)

    def _make_room(self, n: int) -> None:
        if n > len(self._pairs):
            size = n + n // 8
            self._pairs.resize(size, refcheck=False)
            self.sums.resize((size, self._width), refcheck=False)

    def take(self, family: Any) -> Entries:
        """Return entries in their order, and begin anew."""
        order = np.argsort(self._pairs[: self._n])
        names = np.column_stack(np.divmod(self._pairs[order], self._n_cells))
        digits = to_digits(self.sums, order, family)
        self._clear()
        return Entries(names, digits)


class CellAdder:
    """Sums of a kernel by slice and cell, that become digits in time."""

    def __init__(
        self, family: Any, kernel: Kernel, accumulate: CellAccumulator, centers: Centers
    ) -> None:
        self._family, self._kernel, self._accumulate = family, kernel, accumulate
        self._limit, shape = np.float32(centers.limit), (len(centers.centers), centers.width)
        self._slots, self._n_pending = CellSlots(*shape), 0
        self._shape, self._sums = shape, EntrySums(family)

    @property
    def n_bytes(self) -> int:
        """See :class:`FamilyAdder`."""
        return self._slots.n_bytes + self._sums.n_bytes

    def add(self, rows: WeightedRows) -> WeightedRows | None:
        """Add rows to what is pending; return those that are in no cell."""
        if rows.digit or self._n_pending + len(rows.slots) > CELL_ROWS:
            self._write()
        self._n_pending += len(rows.slots)
        if not isinstance(rows.values, np.ndarray) and len(rows.runs.slots) == 1:
            left = self._add_elsewhere(rows)
        else:
            left = self._add_here(rows.on_host(self._kernel))
        if rows.digit:
            self._write(rows.digit)
        return left

    def _add_here(self, rows: WeightedRows) -> WeightedRows | None:
        labels, squares = self._accumulate.nearest(rows.values.astype(np.float32))
        is_out, left, slots = squares > self._limit, None, rows.slots
        given = rows.values, rows.coordinates, rows.shares
        if is_out.any():
            left = rows.outside(np.flatnonzero(is_out), labels[is_out])
            given = tuple(None if a is None else a[~is_out] for a in given)  # type: ignore[assignment]
            slots, labels = slots[~is_out], labels[~is_out]
        places = self._slots.places(slots, labels, rows.n_slots)
        self._accumulate.sum_at(*given, labels, places, self._slots.sums)
        return left

    def _add_elsewhere(self, rows: WeightedRows) -> WeightedRows | None:
        """Add rows of one slice where the kernel computes, to a table of all its cells."""
        table = self._kernel.zeros(self._shape)
        left = self._accumulate.add(rows.values, rows.coordinates, rows.shares, table)
        sums = self._kernel.on_host(table)
        cells = np.flatnonzero(sums.any(axis=1))
        places = self._slots.places(np.full(len(cells), rows.slots[0]), cells, rows.n_slots)
        self._slots.sums[places] += sums[cells]
        return None if left is None else rows.outside(*left)

    def _write(self, digit: int = 0) -> None:
        """Turn what is pending into digits, 2**digit times."""
        self._sums.add(self._slots.take(self._family), digit)
        self._n_pending = 0

    def take(self, n: int) -> Entries:
        """See :class:`FamilyAdder`."""
        self._write()
        return self._sums.take()


class PartialFamily(Family):
    """How many rows had a fraction in their weight: sums of all others are exact. Shape (1,)."""

    name = "partial"
    shape = (1,)
    zones = frozenset(Zone)

    def __init__(self, spec: SketchSpec) -> None:
        self._spec = spec

    def adders(self, kernel: Kernel) -> Callable[[], FamilyAdder]:
        """Adders that share nothing."""
        return lambda: _PartialAdder(1)

    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """No more than there are rows; and where there are none, weights add up to whole ones."""
        partial = to_integers(totals.dense[self.name], 2)[:, 0]
        fine = totals.dense["moments"][:, 4:6]
        is_whole = (fine[:, 0] == 0) & (fine[:, 1] % 2 ** (WEIGHT_BITS - 32) == 0)
        counts = totals.counts[:, 0]
        return np.asarray((partial >= 0) & (partial <= counts) & ((partial > 0) | is_whole))


class _PartialAdder(SlotSums):
    def add(self, rows: WeightedRows) -> None:
        """Count the rows at once."""
        if rows.shares is not None:
            runs = rows.runs
            self.reach(rows.n_slots)[runs.slots, 0] += runs.lengths
