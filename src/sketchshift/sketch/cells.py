"""Cells as parts of a measure: rows by their nearest center, and rows beyond all reach.

Symbols
-------
d, J      columns, cells
n, S, Q   weight, sums of offsets, sums of their squares of one cell, in their steps
u         rows that were added, a whole weight counted as often as it says
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from sketchshift._typing import BoolArray, Float32Array, FloatArray, IntArray
from sketchshift.features import Axes, SketchSpec
from sketchshift.kernels import (
    BITS,
    CELL_BITS,
    CELL_ROWS,
    CELL_WEIGHT_BITS,
    SQUARE_BITS,
    WIDE_CELL_BITS,
    CellAccumulator,
    Kernel,
)
from sketchshift.sketch.measure import (
    CELL_PARTS,
    WEIGHT_BITS,
    Integers,
    Measure,
    Moments,
    Part,
    PartAdder,
    WeightedRows,
    WideArray,
    Zone,
    wide_from_bytes,
    wide_to_bytes,
)

__all__ = [
    "CellPart",
    "CellSums",
    "ClippedPart",
    "FarKey",
    "FarPart",
    "FarSums",
    "NoisyCells",
    "PartialPart",
    "WideCellPart",
    "cell_part",
]

_CANCELLED = 1e-12
_STEP_BITS = CELL_BITS + 12  # an offset within reach is below 2**_STEP_BITS steps


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
        integers: WideArray,
        centers: FloatArray,
        steps: FloatArray,
        axes: Float32Array | None = None,
    ) -> CellSums:
        """From integers (J, 1 + 2 d) in steps (J,), around centers (J, d).

        Sums and squares are divided by the weight, and the squares of the former subtracted, in
        integers: each number is rounded once. With axes, see :meth:`of_wide`.
        """
        if axes is not None:
            return cls.of_wide(integers, centers, axes, steps, CELL_WEIGHT_BITS)
        d, one = centers.shape[1], 2**CELL_WEIGHT_BITS
        n, S, Q = integers[:, 0], integers[:, 1 : 1 + d], integers[:, 1 + d :]
        weight = np.maximum(n, 1)[:, None]  # sums of no rows are 0
        offsets = (S * one / weight).astype(np.float64) * steps[:, None]
        squares = ((Q * weight - S * S * one) * one / weight**2).astype(np.float64)
        step = steps[:, None]
        with np.errstate(over="ignore"):  # of rows beyond 1e154
            variances = np.maximum(squares, 0.0) * step * step
            raw = Q.astype(np.float64) * step * step
        sums = S.astype(np.float64) * step
        weights = (n / one).astype(np.float64)
        return cls(weights, centers + offsets, variances, steps, centers, sums, raw)

    @classmethod
    def of_wide(
        cls,
        integers: Integers,
        centers: FloatArray,
        axes: Float32Array,
        steps: FloatArray,
        bits: int,
    ) -> CellSums:
        """From integers (J, 2 + d + p) in steps (J,), around centers (J, d), along axes (p, d).

        A row of weight 1 has 2**bits of it. The sum of all variances is exact, as in :meth:`of`.
        """
        d, step, one = centers.shape[1], steps[:, None], 2**bits
        n, S, Q = integers[:, 0].astype(object), integers[:, 1 : 1 + d], integers[:, 1 + d]
        weight = np.maximum(n, 1)
        total = (Q.astype(object) * weight - _sums_of_squares(S) * one) * one / weight**2
        numbers = integers.astype(np.float64)
        weights = (n / one).astype(np.float64)
        heavy = np.where(weights > 0.0, weights, np.inf)[:, None]
        sums, raw = numbers[:, 1 : 1 + d] * step, numbers[:, 1 + d :] * step**2
        offsets = sums / heavy
        squares = np.square(offsets @ axes.T.astype(np.float64))
        along = np.maximum(raw[:, 1:] / heavy - squares, 0.0)
        along[along <= _CANCELLED * raw[:, 1:] / heavy] = 0.0  # of equal rows, rounding is left
        share = np.full((1, d), 1.0 / d)
        spread = np.maximum(total.astype(np.float64), 0.0)[:, None] * step**2 * share
        return cls(
            weights, centers + offsets, spread, steps, centers, sums, raw[:, :1] * share, along
        )

    @classmethod
    def none(cls, d: int) -> CellSums:
        """Of no cells."""
        return cls.of(np.zeros((0, 1 + 2 * d), dtype=object), np.zeros((0, d)), np.zeros(0))


def _sums_of_squares(integers: Integers) -> WideArray:
    """Of each row (J, d), as Python's integers; int64 below 2**47 are split in two."""
    if integers.dtype == object:
        return np.asarray((integers * integers).sum(axis=1))
    high, low = integers >> 24, integers & 2**24 - 1
    limbs = [(high * high).sum(axis=1), (high * low).sum(axis=1), (low * low).sum(axis=1)]
    squared, mixed, rest = (limb.astype(object) for limb in limbs)
    return np.asarray((squared << 48) + (mixed << 25) + rest)


class WideCellPart(Part):
    """The same where a spec has axes: int64 of shape (J, 2 + d + p).

    Weight, offsets of 16 bits, squared length and squared coordinates of the rows nearest to each
    center.
    """

    name = "cells"
    zones = frozenset({Zone.NEAR})

    def __init__(self, spec: SketchSpec) -> None:
        assert spec.cells is not None
        assert spec.axes is not None
        self._spec, self._axes = spec, spec.axes.table
        self._centers = replace(spec.cells.groups, axes=self._axes)
        self.shape = (spec.cells.n_cells, self._centers.width)

    def sums(self, integers: Integers) -> CellSums:
        """What the integers say of the rows."""
        centers = self._centers.centers.astype(np.float64)
        steps = np.full(len(centers), 1.0 / self._centers.per_unit)
        return CellSums.of_wide(integers, centers, self._axes, steps, BITS)

    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """Adders that share the kernel's table of centers."""
        accumulate = kernel.cells(self._centers)
        return lambda: _WideCellAdder(kernel, accumulate, self.shape)

    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """Weights that add up to that of the rows; sums within reach; Cauchy and Schwarz."""
        d = self._spec.n_features
        n, sums, squares = integers[:, 0], integers[:, 1 : 1 + d], integers[:, 1 + d :]
        outer = measure.parts["far"][0].weight(Zone.OUTER) >> CELL_WEIGHT_BITS - BITS
        total = Moments.of(measure.parts["moments"], self._spec).fine_weight
        one = 2 ** (WEIGHT_BITS - BITS)
        if abs((int(n.sum()) + outer) * one - total) > 2 * u * one:
            return False
        if n.min() < 0 or squares.min() < 0:
            return False
        mass = n * 2.0**-BITS + u + 1.0
        if (squares[:, 0] > mass * 2.0 ** (2 * WIDE_CELL_BITS + 1)).any():
            return False
        # in steps, a row of partial weight is off by half of one in each column
        lengths = np.sqrt(np.square(sums.astype(np.float64)).sum(axis=1))
        shrunk = np.maximum(lengths - u * math.sqrt(d), 0.0)
        return not bool((shrunk**2 > 1.001 * mass * (squares[:, 0] + 2.0 * u * d)).any())

    def to_bytes(self, integers: Integers) -> bytes:
        """Weights, sums, squares: of each the width of its integers, then these."""
        return b"".join(_narrow_to_bytes(part) for part in self._split(integers))

    def from_bytes(self, data: memoryview) -> tuple[Integers, int]:
        """See :class:`Part`."""
        integers, at = self.zero(), 0
        for part in self._split(integers):
            read, n_read = _narrow_from_bytes(data[at:], part.size)
            part[:] = read.reshape(part.shape)
            at += n_read
        return integers, at

    def _split(self, integers: Integers) -> tuple[Integers, Integers, Integers]:
        d = self._spec.n_features
        return integers[:, :1], integers[:, 1 : 1 + d], integers[:, 1 + d :]


def _narrow_to_bytes(integers: IntArray) -> bytes:
    """A byte that says how many an int64 takes, the fewest that do; then all of them."""
    largest = max(abs(int(integers.max(initial=0))), abs(int(integers.min(initial=0)) + 1))
    width = largest.bit_length() // 8 + 1
    octets = np.ascontiguousarray(integers, dtype="<i8").view(np.uint8).reshape(-1, 8)
    return bytes([width]) + octets[:, :width].tobytes()


def _narrow_from_bytes(data: memoryview, n: int) -> tuple[IntArray, int]:
    """What :func:`_narrow_to_bytes` gave of n integers, and how many bytes that are."""
    width = data[0] if len(data) else 0
    end = 1 + width * n
    if not 1 <= width <= 8 or len(data) < end:
        raise ValueError("the integers of the cells are cut off.")
    octets = np.zeros((n, 8), dtype=np.uint8)
    octets[:, 8 - width :] = np.frombuffer(data[1:end], dtype=np.uint8).reshape(n, width)
    return octets.view("<i8")[:, 0] >> 8 * (8 - width), end  # the shift brings the sign


class _WideCellAdder:
    """Sums of many calls where the kernel computes, that come to the integers in the end."""

    def __init__(self, kernel: Kernel, accumulate: CellAccumulator, shape: tuple[int, ...]) -> None:
        self._kernel, self._accumulate = kernel, accumulate
        self._pending, self._has_pending = kernel.zeros(shape), False

    def add(self, rows: WeightedRows, integers: Integers) -> WeightedRows | None:
        """Add rows to what is pending; those that are in no cell are left."""
        if rows.digit:
            self.flush(integers)
        left = self._accumulate.add(rows.values, rows.coordinates, rows.shares, self._pending)
        self._has_pending = True
        if rows.digit:
            self.flush(integers, rows.digit)
        return None if left is None else rows.outside(*left)

    def flush(self, integers: Integers, digit: int = 0) -> None:
        """Add all that is pending to the integers, 2**digit times."""
        if self._has_pending:
            integers += self._kernel.on_host(self._pending) << digit
            self._pending[:] = 0
            self._has_pending = False


def cell_part(spec: SketchSpec) -> CellPart | WideCellPart:
    """The part of a spec with cells that holds them."""
    return CellPart(spec) if spec.axes is None else WideCellPart(spec)


class CellPart(Part):
    """Weight, offsets and squared offsets of the rows nearest to each center: (J, 1 + 2 d)."""

    name = "cells"
    is_wide = True
    zones = frozenset({Zone.NEAR})

    def __init__(self, spec: SketchSpec) -> None:
        assert spec.cells is not None
        self._cells, self._spec = spec.cells, spec
        self.shape = (spec.cells.n_cells, 1 + 2 * spec.n_features)

    def sums(self, integers: Integers) -> CellSums:
        """What the integers say of the rows."""
        steps = np.full(self.shape[0], self._cells.unit * 2.0**-CELL_BITS)
        return CellSums.of(integers, self._cells.table.astype(np.float64), steps)

    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """Adders that share the kernel's table of centers."""
        groups = self._cells.groups
        if self._spec.origin is not None:  # rows of releases are all in cells
            groups = replace(groups, limit=math.inf)
        accumulate = kernel.cells(groups)
        return lambda: _CellAdder(accumulate, self.shape)

    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """Weights that add up to that of the rows; sums within reach; Cauchy and Schwarz."""
        total = Moments.of(measure.parts["moments"], self._spec).fine_weight
        n, one = integers[:, 0], 2 ** (WEIGHT_BITS - CELL_WEIGHT_BITS)
        outer = measure.parts["far"][0].weight(Zone.OUTER)
        if abs((int(n.sum()) + outer) * one - total) > u * one:
            return False
        return _are_sums(n, integers[:, 1:], u, _STEP_BITS)

    def to_bytes(self, integers: Integers) -> bytes:
        """A byte that says how many an integer takes, the fewest that do; then the integers."""
        width = _width_of(integers)
        return bytes([width]) + wide_to_bytes(integers, width)

    def from_bytes(self, data: memoryview) -> tuple[Integers, int]:
        """See :class:`Part`."""
        width = data[0] if len(data) else 0
        n = 1 + width * math.prod(self.shape)
        if not 1 <= width <= 16 or len(data) < n:
            raise ValueError("the integers of the cells are cut off.")
        return wide_from_bytes(data[1:n], width).reshape(self.shape), n


def _width_of(*arrays: WideArray) -> int:
    """Bytes of a two's complement integer, the fewest that do for all."""
    bits = (int(n).bit_length() for integers in arrays for n in integers.ravel())
    return max(bits) // 8 + 1


def _are_sums(n: WideArray, sums: WideArray, u: int, step_bits: int) -> bool:
    """Whether weights, sums and squares of rows can be such, rounding of weights included."""
    d = sums.shape[1] // 2
    S, Q = sums[:, :d], sums[:, d:]
    if n.min() < 0 or Q.min() < 0:
        return False
    # in steps: weights are rounded to 2**-CELL_WEIGHT_BITS, sums and squares to one step each
    mass = (n[:, None] >> CELL_WEIGHT_BITS) + u + 1
    if (abs(S) > mass << step_bits).any() or (mass << 2 * step_bits < Q).any():
        return False
    shrunk = np.maximum(abs(S) - 2 * u, 0)
    return not bool((shrunk**2 << CELL_WEIGHT_BITS > (n[:, None] + u) * (2 * Q + 2 * u)).any())


class _CellAdder:
    """Sums of many calls in int64, that are added to the wide integers in time."""

    def __init__(self, accumulate: CellAccumulator, shape: tuple[int, ...]) -> None:
        J, width = shape
        self._accumulate, self._d = accumulate, (width - 1) // 2
        self._pending, self._n_pending = np.zeros((J, 1 + 3 * self._d), dtype=np.int64), 0

    def add(self, rows: WeightedRows, integers: Integers) -> WeightedRows | None:
        """Add rows to what is pending; those that are in no cell are left."""
        if rows.digit or self._n_pending + len(rows.values) > CELL_ROWS:
            self.flush(integers)
        values = rows.values
        left = self._accumulate.add(values, values, rows.shares, self._pending)
        self._n_pending += len(rows.values)
        if rows.digit:
            self.flush(integers, rows.digit)
        return None if left is None else rows.outside(*left)

    def flush(self, integers: Integers, digit: int = 0) -> None:
        """Add all that is pending to the wide integers, 2**digit times."""
        d, some = self._d, np.flatnonzero(self._pending.any(axis=1))
        totals = self._pending[some].astype(object)
        narrow, low, high = np.split(totals, [1 + d, 1 + 2 * d], axis=1)
        integers[some] += np.hstack([narrow, low + (high << SQUARE_BITS)]) << digit
        self._pending[:] = 0
        self._n_pending = 0


# Rows that are in no cell. Their largest offset, its column, its sign and its power of two make a
# cell of their own, a shell around the nearest center, or around 0 for rows beyond the reach of
# cells: as many as there are rows for.

_FAR_BITS = 40  # an offset is below 2**_FAR_BITS steps of its cell
_HALF_BITS = _FAR_BITS // 2  # of each of the limbs that squares are summed in
_FAR_ROWS = 2**21  # whose sums fit int64
_KEY = struct.Struct("<BiBiI")  # as FarKey
_FEW_COLUMNS = 30  # up to here, shells are told apart by column and sign
NOWHERE = -1
"""Instead of a center, of rows beyond the reach of cells."""

FarKey = tuple[int, int, int, int, int]
"""Zone, nearest center, whether the largest offset is negative, its power of two, its column."""


class FarSums:
    """Integers (1 + 2 d) by key: a value that adds and subtracts, and never changes.

    Parameters
    ----------
    rows : dict of FarKey to object array
        Those that are not all 0.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: Mapping[FarKey, WideArray]) -> None:
        self.rows = {key: rows[key] for key in sorted(rows) if rows[key].any()}

    def __add__(self, other: FarSums) -> FarSums:
        rows = dict(self.rows)
        for key, integers in other.rows.items():
            rows[key] = rows[key] + integers if key in rows else integers
        return FarSums(rows)

    def __rmul__(self, times: int) -> FarSums:
        return FarSums({key: times * integers for key, integers in self.rows.items()})

    def __bool__(self) -> bool:
        return bool(self.rows)

    def weight(self, zone: Zone) -> int:
        """Total weight of the rows of a zone, in steps of 2**-CELL_WEIGHT_BITS."""
        return sum(int(integers[0]) for key, integers in self.rows.items() if key[0] == zone)


class FarPart(Part):
    """Rows that are in no cell: one :class:`FarSums`.

    Offsets e are from the nearest center, or from 0 for rows beyond the reach of cells. A row whose
    largest e_c (of equal ones the first) has f 2**p as its size, with 1/2 <= f < 1, adds to the
    cell of its zone, its center, the sign of e_c, p and c: its weight, its offsets and their
    squares in steps of 2**(p - 40). Where a spec has axes, p is that of the length of e, sign and
    column are 0, and squares are those of the length and along each axis.
    """

    name = "far"
    shape = (1,)
    is_wide = True
    zones = frozenset({Zone.OUTER, Zone.BEYOND})

    def __init__(self, spec: SketchSpec) -> None:
        assert spec.cells is not None
        self._d, self._cells = spec.n_features, spec.cells
        self._axes = None if spec.axes is None else spec.axes.table
        self._n_squares = self._d if self._axes is None else 1 + len(self._axes)

    @property
    def width(self) -> int:
        """Number of integers of a cell."""
        return 1 + self._d + self._n_squares

    def zero(self) -> Integers:
        """No cells."""
        return _alone(FarSums({}))

    @property
    def _origins(self) -> FloatArray:
        """What offsets are from: the centers, then 0, shape (J + 1, d)."""
        return np.vstack([self._cells.table.astype(np.float64), np.zeros(self._d)])

    def sums(self, integers: Integers, zone: Zone, *, are_shells: bool = False) -> CellSums:
        """What the integers say of the rows of a zone, for each cell: shells, or all others."""
        rows = {
            key: row
            for key, row in integers[0].rows.items()
            if key[0] == zone and (key[1] != NOWHERE) == are_shells
        }
        table = np.empty((len(rows), self.width), dtype=object)
        for i, row in enumerate(rows.values()):
            table[i] = row
        steps = np.array([math.ldexp(1.0, power - _FAR_BITS) for *_, power, _ in rows])
        origins = self._origins[[center for _, center, *_ in rows]]
        return CellSums.of(table, origins.reshape(-1, self._d), steps, self._axes)

    def find_shells(self, integers: Integers, places: FloatArray, centers: IntArray) -> IntArray:
        """Number of the shell that each place is in, as :meth:`sums` has them; -1 for none.

        Parameters
        ----------
        integers : array
            Of this part.
        places : array of shape (n, d)
            In normalised coordinates.
        centers : int array of shape (n,)
            The nearest one of each.
        """
        shells = [key[1:] for key in integers[0].rows if key[0] == Zone.OUTER]
        numbers = {key: i for i, key in enumerate(k for k in shells if k[0] != NOWHERE)}
        is_wide = self._axes is not None
        keys = _shell_keys(places - self._origins[centers], centers, is_wide=is_wide)
        return np.array([numbers.get(tuple(key), -1) for key in keys.tolist()], dtype=np.int64)

    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """Adders that share the origins."""
        origins = self._origins
        return lambda: _FarAdder(kernel, origins, self._axes)

    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """As sums of rows, in each cell."""
        d, rows = self._d, integers[0].rows.values()
        if self._axes is None:
            return all(_are_sums(row[None, 0], row[None, 1:], u, _FAR_BITS) for row in rows)
        return all(_are_wide_sums(row[0], row[1 : 1 + d], row[1 + d :], u) for row in rows)

    def to_bytes(self, integers: Integers) -> bytes:
        """The number of cells (4 bytes), the width of integers (1), and by key: key, integers."""
        rows = integers[0].rows
        width = _width_of(*rows.values()) if rows else 1
        words = [len(rows).to_bytes(4, "little"), bytes([width])]
        for key, row in rows.items():
            words += [_KEY.pack(*key), wide_to_bytes(row, width)]
        return b"".join(words)

    def from_bytes(self, data: memoryview) -> tuple[Integers, int]:
        """See :class:`Part`."""
        n_cells, width = int.from_bytes(data[:4], "little"), data[4] if len(data) > 4 else 0
        size = _KEY.size + width * self.width
        end = 5 + n_cells * size
        if not 1 <= width <= 16 or len(data) < end:
            raise ValueError("the integers of far rows are cut off.")
        rows = {}
        for at in range(5, end, size):
            key = _KEY.unpack(data[at : at + _KEY.size])
            if not self._is_key(key):
                raise ValueError(f"there are no far rows with the key {key}.")
            rows[key] = wide_from_bytes(data[at + _KEY.size : at + size], width)
        return _alone(FarSums(rows)), end

    def _is_key(self, key: FarKey) -> bool:
        zone, center, is_negative, power, column = key
        is_power = -1100 < power <= 1024  # of a finite number
        is_center = center == NOWHERE or (0 <= center < self._cells.n_cells and zone == Zone.OUTER)
        return (
            zone in self.zones and is_center and is_negative < 2 and is_power and column < self._d
        )


def _alone(sums: FarSums) -> Integers:
    integers = np.empty(1, dtype=object)
    integers[0] = sums
    return integers


def _are_wide_sums(n: int, sums: WideArray, squares: WideArray, u: int) -> bool:
    """Whether weight, sums (d,) and squares (1 + p,) of rows can be such, as far as is cheap."""
    mass, d = (n >> CELL_WEIGHT_BITS) + u + 1, len(sums)
    if n < 0 or squares.min() < 0 or (squares > mass << 2 * _FAR_BITS + 1).any():
        return False
    shrunk = np.maximum(abs(sums) - u, 0)
    return bool((shrunk**2).sum() <= mass * 2 * (squares[0] + u * d))


def _lengths(offsets: FloatArray) -> tuple[FloatArray, IntArray]:
    """Lengths f of rows (n, d) and powers p, that is f 2**p with f below 1: columns in order."""
    powers = np.frexp(np.abs(offsets).max(axis=1))[1]
    squares = np.zeros(len(offsets))
    for column in np.ldexp(offsets, -powers[:, None]).T:
        squares += column * column
    lengths, more = np.frexp(np.sqrt(squares))
    return lengths, (powers + more).astype(np.int64)


def _shell_keys(offsets: FloatArray, centers: IntArray, *, is_wide: bool) -> IntArray:
    """Keys of rows without their zone, shape (n, 4): see :data:`FarKey`.

    Of many columns the power alone counts: there would be too many shells.
    """
    if is_wide:
        none = np.zeros_like(centers)
        return np.column_stack([centers, none, _lengths(offsets)[1], none])
    columns = np.abs(offsets).argmax(axis=1)
    largest = offsets[np.arange(len(offsets)), columns]
    powers = np.frexp(largest)[1].astype(np.int64)
    if offsets.shape[1] > _FEW_COLUMNS:
        return np.column_stack([centers, np.zeros_like(centers), powers, np.zeros_like(centers)])
    return np.column_stack([centers, largest < 0.0, powers, columns])


class _FarAdder:
    """Sums of many rows in int64 by key, that are added to the wide integers in time."""

    def __init__(self, kernel: Kernel, origins: FloatArray, axes: Float32Array | None) -> None:
        self._kernel, self._origins, self._axes = kernel, origins, axes
        self._slots: dict[FarKey, int] = {}
        self._d = origins.shape[1]
        self._n_squares = self._d if axes is None else 1 + len(axes)
        self._pending = np.zeros((16, 1 + self._d + 3 * self._n_squares), dtype=np.int64)
        self._n_pending = 0
        # lower limbs of all columns are added up where there are axes
        self._most = _FAR_ROWS if axes is None else max(1, 2 * _FAR_ROWS // self._d)

    def add(self, rows: WeightedRows, integers: Integers) -> None:
        """Add rows to what is pending; at once where they count more than once."""
        values = self._kernel.on_host(rows.values)
        if rows.digit or self._n_pending + len(values) > self._most:
            self.flush(integers)
        centers = np.full(len(values), NOWHERE) if rows.cells is None else rows.cells
        offsets = values - self._origins[centers]
        keys = _shell_keys(offsets, centers, is_wide=self._axes is not None)
        found, which = np.unique(keys, axis=0, return_inverse=True)
        slots = np.array([self._slot((int(rows.zone), *key)) for key in found.tolist()])
        steps = np.ldexp(offsets, (_FAR_BITS - keys[:, 2])[:, None])
        along = None if self._axes is None else self._kernel.project(steps, self._axes)
        added = _far_integers(steps, along, rows.shares)
        np.add.at(self._pending, slots[which.ravel()], added)
        self._n_pending += len(values)
        if rows.digit:
            self.flush(integers, rows.digit)

    def _slot(self, key: FarKey) -> int:
        """Where a key has its sums; there is room for twice as many when there is none."""
        slot = self._slots.setdefault(key, len(self._slots))
        if slot == len(self._pending):
            self._pending = np.vstack([self._pending, np.zeros_like(self._pending)])
        return slot

    def flush(self, integers: Integers, digit: int = 0) -> None:
        """Add all that is pending to the sums, 2**digit times."""
        if not self._n_pending:
            return
        ends = 1 + self._d + self._n_squares * np.arange(3)
        pending = self._pending[: len(self._slots)].astype(object)
        narrow, low, middle, high = np.split(pending, ends, axis=1)
        squares = low + (middle << _HALF_BITS + 1) + (high << 2 * _HALF_BITS)
        wide = np.hstack([narrow, squares]) << digit
        integers[0] = integers[0] + FarSums({key: wide[i] for key, i in self._slots.items()})
        self._slots, self._n_pending = {}, 0
        self._pending[:] = 0


def _far_integers(
    steps: FloatArray, along: FloatArray | None, shares: FloatArray | None
) -> IntArray:
    """What rows add to their cells: weight, sums (d,), squares in three limbs.

    Squares are those of the columns; with coordinates ``along`` axes, their sum and those of these.
    """
    f = np.ones(len(steps)) if shares is None else shares
    weights = np.rint(f * 2.0**CELL_WEIGHT_BITS).astype(np.int64)
    sums = np.rint(f[:, None] * steps).astype(np.int64)
    limbs = _square_limbs(np.sqrt(f)[:, None] * steps)
    if along is not None:
        of_axes = _square_limbs(np.sqrt(f)[:, None] * along)
        pairs = zip(limbs, of_axes, strict=True)
        limbs = [np.column_stack([limb.sum(axis=1), other]) for limb, other in pairs]
    return np.hstack([weights[:, None], sums, *limbs])


def _square_limbs(numbers: FloatArray) -> list[IntArray]:
    roots = np.rint(numbers).astype(np.int64)
    high, low = roots >> _HALF_BITS, roots & 2**_HALF_BITS - 1
    return [low * low, high * low, high * high]


class PartialPart(Part):
    """How many rows had a fraction in their weight: sums of all others are exact. Shape (1,)."""

    name = "partial"
    shape = (1,)
    zones = frozenset(Zone)

    def __init__(self, spec: SketchSpec) -> None:
        self._spec = spec

    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """Adders that share nothing."""
        return _PartialAdder

    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """No more than there are rows; and where there are none, weights add up to whole ones."""
        fine = Moments.of(measure.parts["moments"], self._spec).fine_weight
        is_whole = fine % 2**WEIGHT_BITS == 0
        return bool(0 <= integers[0] <= measure.count and (integers[0] > 0 or is_whole))


class _PartialAdder:
    def add(self, rows: WeightedRows, integers: Integers) -> None:
        """Count the rows at once."""
        if rows.shares is not None:
            integers[0] += len(rows.values)

    def flush(self, integers: Integers) -> None:
        """Nothing is ever pending."""


# Cells of private releases: a row adds a bounded amount to its cell, whatever the row.


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


class ClippedPart(Part):
    """Count, offsets and squared length of these, of the rows of each cell: int64, (J, 2 + d).

    With r the radius of the cell of a row and e = (x' - c) / r, divided by its length if that is
    above 1, a row adds 2**22, the integers nearest to 2**22 e_k, and that nearest to 2**21 |e|^2.
    The radius is the distance to the nearest other center, or at most the diameter of the ball that
    all rows are in.
    """

    name = "clipped"
    zones = frozenset({Zone.NEAR})

    def __init__(self, spec: SketchSpec) -> None:
        assert spec.cells is not None
        assert spec.origin is not None
        self._cells, self._diameter = spec.cells, 2.0 * spec.origin.radius
        self.shape = (spec.cells.n_cells, 2 + spec.n_features)
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

    def noisy(self, integers: IntArray, factor: int, scale: float) -> NoisyCells:
        """What integers say that were multiplied by a factor before noise of this scale came."""
        one, r = factor * 2.0**BITS, self.radii
        numbers, std = integers / one, np.full(len(r), scale / one)
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

    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """Adders that share the kernel's table of centers."""
        accumulate = kernel.cells(self._cells.groups)
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

    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """Counts are those of the cells, and bound all else."""
        n, one = integers[:, 0], 2 ** (CELL_WEIGHT_BITS - BITS)
        if not (n.astype(object) * one == measure.parts["cells"][:, 0]).all():
            return False
        offsets, squares = integers[:, 1:-1], integers[:, -1]
        rounding = (n >> BITS)[:, None]
        is_within = (np.abs(offsets) <= n[:, None] + rounding).all()
        return bool(is_within and (squares >= 0).all() and (2 * squares <= n).all())


class _ClippedAdder:
    def __init__(self, accumulate: CellAccumulator, part: ClippedPart) -> None:
        self._accumulate, self._part = accumulate, part

    def add(self, rows: WeightedRows, integers: Integers) -> None:
        """Add rows at once: sums of so few of them are exact in float64."""
        labels, _ = self._accumulate.nearest(rows.values.astype(np.float32))
        J = len(integers)
        for k, column in enumerate(self._part.clip(rows.values, labels).T):
            integers[:, k] += np.bincount(labels, column, minlength=J).astype(np.int64)

    def flush(self, integers: Integers) -> None:
        """Nothing is ever pending."""


def _clipped(spec: SketchSpec) -> Part | None:
    return None if spec.origin is None else ClippedPart(spec)


CELL_PARTS += [cell_part, FarPart, PartialPart, _clipped]
