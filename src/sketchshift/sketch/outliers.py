"""Outliers: rows that are in no cell.

Their largest offset, its column, its sign and its power of two make a cell of their own, a shell
around the nearest center, or around 0 for rows beyond the reach of cells: as many as there are rows
for.

Symbols
-------
d, p      columns, axes
u         rows that were added, a whole weight counted as often as it says
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import CELL_WEIGHT_BITS, Kernel
from sketchshift.sketch.cells import CellSums, are_sums, none_of
from sketchshift.sketch.digits import lanes_of, to_integers
from sketchshift.sketch.family import Family, FamilyAdder, WeightedRows, Zone
from sketchshift.sketch.totals import AnyTotals, Entries, EntrySums, Totals, to_digits

__all__ = ["NOWHERE", "OutlierFamily", "OutlierKey", "Outliers"]

_FAR_BITS = 40  # an offset is below 2**_FAR_BITS steps of its cell
_HALF_BITS = _FAR_BITS // 2  # of each of the limbs that squares are summed in
_FEW_COLUMNS = 30  # up to here, shells are told apart by column and sign
_CLOSE = 1.0 + 1e-9
NOWHERE = -1
"""Instead of a center, of rows beyond the reach of cells."""

OutlierKey: TypeAlias = tuple[int, int, int, int, int]
"""Zone, nearest center, whether the largest offset is negative, its power of two, its column."""


class Outliers(NamedTuple):
    """Rows in no cell: in shells around centers, beyond these, and beyond the reach of waves."""

    shells: CellSums
    outer: CellSums
    beyond: CellSums


class OutlierFamily(Family):
    """Rows that are in no cell: entries of 1 + 2 d integers by :data:`OutlierKey`.

    Offsets e are from the nearest center, or from 0 for rows beyond the reach of cells. A row whose
    largest e_c (of equal ones the first) has f 2**p as its size, with 1/2 <= f < 1, adds to the
    cell of its zone, its center, the sign of e_c, p and c: its weight, its offsets and their
    squares in steps of 2**(p - 40). Where a spec has axes, p is that of the length of e, sign and
    column are 0, and squares are those of the length and along each axis.
    """

    name = "outliers"
    n_digits = 4
    id_width = 5
    zones = frozenset({Zone.OUTER, Zone.BEYOND})

    def __init__(self, spec: SketchSpec) -> None:
        assert spec.cells is not None
        self._d, self._cells = spec.n_features, spec.cells
        self.axes = None if spec.axes is None else spec.axes.table
        self.n_squares = self._d if self.axes is None else 1 + len(self.axes)
        self.shape = (1 + self._d + self.n_squares,)

    @property
    def _origins(self) -> FloatArray:
        """What offsets are from: the centers, then 0, shape (J + 1, d)."""
        return np.vstack([self._cells.table.astype(np.float64), np.zeros(self._d)])

    def integers(self, totals: Totals, i: int = 0) -> dict[OutlierKey, Any]:
        """The integers of each entry of slice i by its key, in the order of these."""
        own = totals[i].entries[self.name]
        keys = map(tuple, own.names[:, 1:].tolist())
        return dict(zip(keys, to_integers(own.digits, self.n_digits), strict=True))

    def decode(self, totals: AnyTotals) -> Outliers:
        """What the integers of a single slice say of the rows of each zone."""
        assert isinstance(totals, Totals)
        own = totals.entries[self.name]
        steps = np.ldexp(1.0, own.names[:, 4].astype(np.int32) - _FAR_BITS)
        digits = own.digits.reshape(-1, self.n_integers, self.n_digits)
        origins = self._origins[own.names[:, 2]]
        sums = CellSums.of(digits, origins, steps, CELL_WEIGHT_BITS, self.axes)
        if not len(own):
            return Outliers(sums, sums, sums)
        is_outer, is_shell = own.names[:, 1] == Zone.OUTER, own.names[:, 2] != NOWHERE
        return Outliers(sums[is_outer & is_shell], sums[is_outer & ~is_shell], sums[~is_outer])

    def find_shells(self, totals: Totals, places: FloatArray, centers: IntArray) -> IntArray:
        """Number of the shell that each place is in, as :meth:`decode` has them; -1 for none.

        Parameters
        ----------
        totals : Totals
            Of one slice.
        places : array of shape (n, d)
            In normalised coordinates.
        centers : int array of shape (n,)
            The nearest one of each.
        """
        own = totals.entries[self.name].names
        is_shell = (own[:, 1] == Zone.OUTER) & (own[:, 2] != NOWHERE)
        shells = map(tuple, own[is_shell, 2:].tolist())
        numbers = {key: i for i, key in enumerate(shells)}
        is_wide = self.axes is not None
        keys = _shell_keys(places - self._origins[centers], centers, is_wide=is_wide)
        return np.array([numbers.get(tuple(key), -1) for key in keys.tolist()], dtype=np.int64)

    def adders(self, kernel: Kernel) -> Callable[[], FamilyAdder]:
        """Adders that share the origins."""
        origins = self._origins
        return lambda: _OutlierAdder(self, kernel, origins)

    def lanes(self, sums: IntArray) -> IntArray:
        """Sums of rows, with squares in three limbs, as digits that are not in their range."""
        ends = 1 + self._d + self.n_squares * np.arange(3)
        narrow, low, middle, high = np.split(sums, ends, axis=1)
        squares = [(low, 0), (middle, _HALF_BITS + 1), (high, 2 * _HALF_BITS)]
        parts = lanes_of([(narrow, 0)], self.n_digits), lanes_of(squares, self.n_digits)
        return np.concatenate(parts, axis=1)

    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """As sums of rows, in each entry."""
        owners, numbers = totals.entry_floats(self.name)
        if self.axes is None:
            are_rows = are_sums(numbers, u[owners], _FAR_BITS)
        else:
            are_rows = _are_axis_sums(numbers, self._d, u[owners])
        return none_of(totals, owners, ~are_rows)

    @property
    def groups(self) -> tuple[int, ...]:
        """Weights, sums, squares."""
        return 1, self._d, self.n_squares

    def are_names(self, names: IntArray) -> BoolArray:
        """Zones, centers, signs, powers of two of finite numbers, and columns."""
        zone, center, sign, power, column = names[:, 1:].T
        is_center = (center >= 0) & (center < self._cells.n_cells) & (zone == Zone.OUTER)
        found = ((center == NOWHERE) | is_center) & np.isin(zone, [*self.zones])
        found &= (power > -1100) & (power <= 1024) & (sign >= 0) & (sign < 2)
        return np.asarray(found & (column >= 0) & (column < self._d))


def _are_axis_sums(numbers: FloatArray, d: int, u: FloatArray) -> BoolArray:
    """Whether weights, sums and squares (E, 1 + d + 1 + p) of rows can be such."""
    n, sums, squares = numbers[:, 0], numbers[:, 1 : 1 + d], numbers[:, 1 + d :]
    mass = (np.floor(n * 2.0**-CELL_WEIGHT_BITS) + u + 1) * _CLOSE
    sound = (n >= 0) & (squares >= 0).all(axis=1)
    sound &= (squares <= (mass * 2.0 ** (2 * _FAR_BITS + 1))[:, None]).all(axis=1)
    shrunk = np.maximum(np.abs(sums) - u[:, None], 0)
    sound &= (shrunk**2).sum(axis=1) <= mass * 2 * (squares[:, 0] + u * d)
    return np.asarray(sound)


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


class _OutlierAdder:
    """Sums of rows by slice and key."""

    def __init__(self, family: OutlierFamily, kernel: Kernel, origins: FloatArray) -> None:
        self._kernel, self._origins, self._axes = kernel, origins, family.axes
        self._family, self._sums = family, EntrySums(family)

    @property
    def n_bytes(self) -> int:
        """See :class:`FamilyAdder`."""
        return self._sums.n_bytes

    def add(self, rows: WeightedRows) -> None:
        """Add rows at once."""
        values = self._kernel.on_host(rows.values)
        centers = np.full(len(values), NOWHERE) if rows.cells is None else rows.cells
        offsets = values - self._origins[centers]
        keys = _shell_keys(offsets, centers, is_wide=self._axes is not None)
        steps = np.ldexp(offsets, (_FAR_BITS - keys[:, 2])[:, None])
        along = None if self._axes is None else self._kernel.project(steps, self._axes)
        added = _far_integers(steps, along, rows.shares)
        zones = np.full(len(keys), int(rows.zone))
        digits = to_digits(added, np.arange(len(added)), self._family)
        self._sums.add(Entries(np.column_stack([rows.slots, zones, keys]), digits), rows.digit)

    def take(self, n: int) -> Entries:
        """See :class:`FamilyAdder`."""
        return self._sums.take()


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
