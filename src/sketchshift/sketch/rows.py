"""Rows to totals: normalise, check, weigh, add to each family."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sketchshift._text import column_in_words
from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift.data import Block
from sketchshift.data.source import not_finite
from sketchshift.errors import DataError, InvalidRowsError
from sketchshift.features import SketchSpec
from sketchshift.kernels import MOMENT_ROWS, Kernel, Runs
from sketchshift.sketch.cells import CellFamily, PartialFamily
from sketchshift.sketch.family import (
    FAMILIES,
    AdderFactories,
    Family,
    WeightedRows,
    Zone,
)
from sketchshift.sketch.moments import MomentFamily
from sketchshift.sketch.outliers import OutlierFamily
from sketchshift.sketch.totals import CAPACITY_BITS, Layout, Totals, check_capacity
from sketchshift.sketch.waves import WaveFamily

__all__ = [
    "RowAdder",
    "check_weights",
    "chunk_rows",
    "clip_rows",
    "make_adders",
]


# Families that few specs ask for are imported on first use.


def _waves(spec: SketchSpec) -> Family | None:
    return WaveFamily(spec) if spec.sketch_size else None


def _cells(spec: SketchSpec) -> Family | None:
    if spec.cells is None or spec.axes is None:
        return None if spec.cells is None else CellFamily(spec)
    from sketchshift.sketch.axis_cells import AxisCellFamily

    return AxisCellFamily(spec)


def _outliers(spec: SketchSpec) -> Family | None:
    return None if spec.cells is None else OutlierFamily(spec)


def _partial(spec: SketchSpec) -> Family | None:
    return None if spec.cells is None else PartialFamily(spec)


def _clipped(spec: SketchSpec) -> Family | None:
    if spec.cells is None or spec.rows.ball is None:
        return None
    from sketchshift.sketch.clipped import ClippedFamily

    return ClippedFamily(spec)


FAMILIES += [_waves, MomentFamily, _cells, _outliers, _partial, _clipped]


# Rows that cannot be sketched.


def _find_zones(
    block: Block,
    rows: FloatArray,
    squared_norms: FloatArray,
    spec: SketchSpec,
    columns: tuple[str, ...] | None,
    *,
    skip: bool,
) -> dict[Zone, IntArray]:
    """Indices of the rows of each zone, or an exception naming those that cannot be added.

    Rows beyond reach are refused where no family can hold them: leaving them out would change what
    the sketch means. Rows with NaN or infinity, in a value or as the weight, are left out when
    ``skip``.
    """
    is_finite = np.asarray(np.isfinite(block.values).all(axis=1))
    if spec.rows.metric == "cosine":
        is_finite &= np.isfinite(squared_norms)
    if block.weights is not None:
        is_finite &= np.isfinite(block.weights)
    is_within = is_finite & (squared_norms < spec.reach * spec.reach)
    is_near = is_within & (squared_norms < spec.cell_reach * spec.cell_reach)
    is_beyond = is_finite & ~is_within
    is_held = np.asarray(np.isfinite(rows).all(axis=1))
    is_held &= spec.cells is not None  # as outliers
    if not is_held[is_beyond].all():
        raise _too_far(block, rows, int(np.argmax(is_beyond & ~is_held)), spec, columns)
    if not skip and not is_finite.all():
        raise not_finite(block, is_finite, columns)
    zones = (is_near, is_within & ~is_near, is_beyond)
    return {zone: np.flatnonzero(there) for zone, there in zip(Zone, zones, strict=True)}


def _too_far(
    block: Block, rows: FloatArray, at: int, spec: SketchSpec, columns: tuple[str, ...] | None
) -> InvalidRowsError:
    """The exception that names a row that no family can hold."""
    k, norm = int(np.argmax(np.abs(rows[at]))), math.hypot(*rows[at].tolist())
    msg = (
        f"row {block.first_row + at} of {block.source} lies too far out: after "
        f"normalisation its norm is {norm:.4g}, mostly from {column_in_words(k, columns)}, "
        f"and this spec reaches {spec.reach:.4g}. Leave the row out if it is broken; otherwise "
        "plan on a sample that has such rows, or choose center and scale nearer to the data."
    )
    return InvalidRowsError(msg)


# From rows to integers.
#
# A weight w is split into its whole part and its fraction: a row of weight 2.5 adds its integers
# twice and once more those of weight 0.5. So whole weights are the same as repeated rows, bit for
# bit, and no product of a weight ever leaves the registers' range.

_TILE = 192  # rows that fill the kernels' tiles, whatever their height


def make_adders(spec: SketchSpec, kernel: Kernel) -> AdderFactories:
    """Return what makes the adders of all families, with the tables that threads share."""
    return {family.name: family.adders(kernel) for family in Layout.of(spec).families}


def chunk_rows(spec: SketchSpec, kernel: Kernel) -> int:
    """Return how many rows are summed at a time."""
    if spec.n_features > kernel.chunk:
        return 16  # of very wide rows a few
    return min(max(1, kernel.chunk // spec.n_features // _TILE) * _TILE, MOMENT_ROWS)


class RowAdder:
    """Adds blocks of rows to slices of its own; one for each thread.

    Parameters
    ----------
    spec : SketchSpec
        What is summed.
    kernel : Kernel
        Where it is summed.
    adders : AdderFactories
        What :func:`make_adders` gave for both; threads may share it.
    columns : tuple of str or None
        Names for messages.
    skip_invalid : bool
        Leave rows out, and count them, where a value or the weight is NaN or infinite, instead
        of refusing them.
    """

    def __init__(
        self,
        spec: SketchSpec,
        kernel: Kernel,
        adders: AdderFactories,
        *,
        columns: tuple[str, ...] | None = None,
        skip_invalid: bool = False,
    ) -> None:
        self._spec, self._kernel = spec, kernel
        self._columns, self._skip_invalid = columns, skip_invalid
        self._layout = Layout.of(spec)
        n_rows = chunk_rows(spec, kernel)
        self._rows, self._norms = kernel.empty((n_rows, spec.n_features)), kernel.empty((n_rows,))
        self._adders = {name: new_adder() for name, new_adder in adders.items()}
        families = self._layout.families
        self._takers = [[f.name for f in families if zone in f.zones] for zone in Zone]
        self._begin()

    def _begin(self) -> None:
        self._counts = np.zeros((0, 2), dtype=np.int64)  # rows added and left out, by slot
        self._weights = np.zeros(0)  # of weighted rows
        self._slots = np.zeros(0, dtype=np.int32)  # slot by number of a slice, -1 for none
        self._numbers = np.zeros(0, dtype=np.int64)  # of slices, by slot

    @property
    def n_bytes(self) -> int:
        """Memory of the sums so far."""
        return self._slots.nbytes + sum(adder.n_bytes for adder in self._adders.values())

    def take(self) -> tuple[IntArray, Totals]:
        """Return the numbers of the slices so far and what their rows add up to; begin anew."""
        numbers, n = self._numbers, len(self._numbers)
        parts: Any = {f.name: self._adders[f.name].take(n) for f in self._layout.families}
        dense = {f.name: parts[f.name] for f in self._layout.dense}
        entries = {f.name: parts[f.name] for f in self._layout.sparse}
        totals = Totals(self._layout, self._counts, dense, entries)
        self._begin()
        return numbers, totals

    def totals(self) -> Totals:
        """Return what all rows so far, which are of one slice, add up to; begin anew."""
        numbers, totals = self.take()
        return totals if len(numbers) else Totals.zero(self._layout)

    def add(
        self, block: Block, order: IntArray | None = None, slices: IntArray | None = None
    ) -> None:
        """Add the rows of a block; raises before anything of a bad chunk is added.

        Parameters
        ----------
        block : Block
            The rows.
        order, slices : int arrays of shape (n,), or None
            Which rows to add, and the number of the slice of each; those of one slice follow each
            other. None adds all rows to slice 0.
        """
        d = self._spec.n_features
        if block.values.shape[1] != d:
            msg = (
                f"{block.source} has {block.values.shape[1]} columns, and the spec has "
                f"n_features={d}. Select the columns, or make a spec for this data."
            )
            raise DataError(msg)
        if self._spec.rows.ball is not None and block.weights is not None:
            msg = (
                f"{block.source} comes with weights, and the spec is for private releases, where "
                "every row counts 1. Leave the weights out."
            )
            raise DataError(msg)
        n = len(block.values) if order is None else len(order)
        one = np.zeros(min(n, 1), dtype=np.int64)
        slots = self._slots_of(one).repeat(n) if slices is None else self._slots_of(slices)
        step = len(self._norms)
        dtype = np.float32 if block.values.dtype == np.float32 else np.float64
        for first in range(0, n, step):
            some: Any = slice(first, first + step)
            rows = some if order is None else order[some]
            # take gathers rows four times as fast, and copies a whole array that is not in C order
            is_gathered = order is not None and block.values.flags.c_contiguous
            own = block.values.take(rows, axis=0) if is_gathered else block.values[rows]
            X = np.ascontiguousarray(own, dtype=dtype)
            weights = None if block.weights is None else block.weights[rows]
            self._add_chunk(X, weights, slots[some], block, first)

    def _slots_of(self, slices: IntArray) -> IntArray:
        """Where the slices of rows are summed."""
        most = int(slices.max(initial=-1)) + 1
        if most > len(self._slots):
            more = np.full(most + most // 8 - len(self._slots), -1, dtype=np.int32)
            self._slots = np.concatenate([self._slots, more])
        firsts = Runs.of(slices).slots if most else slices
        new = firsts[self._slots[firsts] < 0]
        if len(new):
            self._slots[new] = np.arange(len(self._numbers), len(self._numbers) + len(new))
            self._numbers = np.append(self._numbers, new)
            self._counts = np.append(self._counts, np.zeros((len(new), 2), np.int64), axis=0)
            self._weights = np.append(self._weights, np.zeros(len(new)))
        found: IntArray = self._slots[slices].astype(np.int64)
        return found

    def _add_chunk(
        self,
        X: RealArray,
        weights: FloatArray | None,
        slots: IntArray,
        block: Block,
        first: int,
    ) -> None:
        spec = self._spec
        rows, squared_norms = self._rows[: len(X)], self._norms[: len(X)]
        spec.rows.normalise(X, self._kernel, rows, squared_norms)
        is_near = squared_norms < spec.cell_reach * spec.cell_reach  # False for NaN, too
        if spec.rows.ball is not None or weights is not None or not is_near.all():
            rows, squared_norms, is_near = map(self._kernel.on_host, (rows, squared_norms, is_near))
        if spec.rows.ball is not None:
            self._add_private(rows, squared_norms, slots, spec.rows.ball.radius)
            return
        if weights is not None:
            is_near &= np.isfinite(weights)
        zones = {Zone.NEAR: np.arange(len(X))}
        if not is_near.all():
            chunk = Block(X, weights, block.source, block.first_row + first)
            zones = _find_zones(
                chunk, rows, squared_norms, spec, self._columns, skip=self._skip_invalid
            )
        kept = np.sort(np.concatenate(list(zones.values())))
        if weights is not None:
            check_weights(weights[kept], kept, block.source, block.first_row + first)
            added = np.bincount(slots[kept], weights[kept], minlength=len(self._weights))
            heaviest = float((self._weights + added).max())
            check_capacity(heaviest, self._layout.capacity_bits)
            self._weights += added
        self._count(slots[kept], 0)
        if len(kept) < len(X):
            self._count(np.delete(slots, kept), 1)
        for zone, some in zones.items():
            if len(some) == len(X):
                self._add_weighted(rows, weights, slots, zone)
            elif len(some):
                of_some = None if weights is None else weights[some]
                self._add_weighted(rows[some], of_some, slots[some], zone)

    def _count(self, slots: IntArray, column: int) -> None:
        """Count rows, those of one slice beside each other."""
        if len(slots):
            runs = Runs.of(slots)
            self._counts[runs.slots, column] += runs.lengths

    def _add_weighted(
        self, rows: FloatArray, weights: FloatArray | None, slots: IntArray, zone: Zone
    ) -> None:
        """Add rows of one zone."""
        if weights is None:
            self._add(rows, slots, None, 0, zone)
            return
        for some, shares, digit in _digits(weights):
            self._add(rows[some], slots[some], shares, digit, zone)

    def _add_private(
        self, rows: FloatArray, squared_norms: FloatArray, slots: IntArray, radius: float
    ) -> None:
        """Add rows, each judged alone: no error and no number tells of one of them."""
        slots = slots[np.isfinite(squared_norms)]
        self._count(slots, 0)
        self._add(clip_rows(rows, squared_norms, radius), slots, None, 0, Zone.NEAR)

    def _add(
        self,
        rows: FloatArray,
        slots: IntArray,
        shares: FloatArray | None,
        digit: int,
        zone: Zone,
    ) -> None:
        """Add rows of weights ``shares`` (None: 1), 2**digit times."""
        if not len(rows):
            return
        axes, coordinates = self._spec.axes, rows
        if axes is not None and zone != Zone.BEYOND:
            coordinates = self._kernel.project(rows, axes.table)
        n_slots = len(self._numbers)
        weighted = WeightedRows(rows, coordinates, slots, shares, digit, zone, n_slots)
        for name in self._takers[zone]:
            left = self._adders[name].add(weighted)
            if left is not None:
                self._adders["outliers"].add(left)


def clip_rows(rows: FloatArray, squared_norms: FloatArray, radius: float) -> FloatArray:
    """Rows moved to the nearest point of a ball around 0; those that are not finite are dropped."""
    is_finite = np.isfinite(squared_norms)
    if not is_finite.all():
        rows, squared_norms = rows[is_finite], squared_norms[is_finite]
    outside = squared_norms > radius * radius
    if outside.any():
        rows = rows.copy()
        rows[outside] *= (radius / np.sqrt(squared_norms[outside]))[:, None]
    return rows


def check_weights(weights: FloatArray, rows: IntArray, source: str, first_row: int) -> None:
    """Refuse weights that are negative, not finite, or too large to be held."""
    is_bad = ~((weights >= 0) & (weights < 2.0**CAPACITY_BITS))
    if is_bad.any():
        at = int(np.argmax(is_bad))
        msg = (
            f"weights must be numbers from 0 to 2**{CAPACITY_BITS}: row {first_row + rows[at]} of "
            f"{source} has weight {weights[at]}. To take rows away, use `remove` or subtract."
        )
        raise InvalidRowsError(msg)


def _digits(weights: FloatArray) -> Iterator[tuple[IntArray, FloatArray | None, int]]:
    """Rows, their shares (None: 1) and the power of two they count: sums up to the weights."""
    whole = np.floor(weights)
    fractions = weights - whole
    partial = np.flatnonzero(fractions)
    yield partial, fractions[partial], 0
    digits = whole.astype(np.int64)
    for digit in range(int(digits.max(initial=0)).bit_length()):
        yield np.flatnonzero(digits >> digit & 1), None, digit
