"""Slices of a cube straight from rows: a pass that holds a few thousand of them at a time.

Rows of a block are sorted by key, and each run of them is summed by the kernels into int64, which
become digits (:mod:`sketchshift.live.cube_digits`) without an integer of Python between. The sums
are those that a sketch of the rows has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from sketchshift._typing import BoolArray, FloatArray, IntArray, RealArray
from sketchshift.data import Block as Rows
from sketchshift.data import Source
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.kernels import (
    BITS,
    CELL_WEIGHT_BITS,
    LIMB_BITS,
    MOMENT_ROWS,
    SQUARE_BITS,
    Kernel,
    select_kernel,
)
from sketchshift.live.cube_digits import (
    Block,
    Entries,
    Layout,
    block_of,
    far_entries,
    in_range,
    join_entries,
    merge_entries,
    spread,
)
from sketchshift.sketch.cells import FarPart
from sketchshift.sketch.keys import find_number_keys, number_groups, number_rows, read_keys
from sketchshift.sketch.measure import (
    WEIGHT_BITS,
    Measure,
    RowAdder,
    WavePart,
    WeightedRows,
    Zone,
    chunk_rows,
    make_accumulator,
)
from sketchshift.sketch.reading import Reading
from sketchshift.sketch.slices import Value, key_table

__all__ = ["can_read", "read_blocks"]

WORD = 32
HELD_BYTES, MOST_SLICES = 2**29, 8192
"""Of sums that are in memory before they are written."""


def can_read(spec: SketchSpec, reading: Reading) -> bool:
    """Whether all rows weigh the same, and are summed on the processor column by column."""
    is_plain = spec.origin is None and spec.axes is None
    return is_plain and reading.sample_weight is None and reading.kernel in ("auto", "cpu")


def read_blocks(
    source: Source, blocks: Iterator[Rows], reading: Reading, layout: Layout
) -> Iterator[tuple[Any, Block]]:
    """The slices of all rows, as many at a time as memory is set aside for.

    Parameters
    ----------
    source : Source
        Opened by the reading.
    blocks : iterator of blocks
        Its own.
    reading : Reading
        With keys; :func:`can_read` it.
    layout : Layout
        Of its spec.

    Yields
    ------
    keys : Arrow table of n rows
        Ascending, each once. Keys that come again later are in a later table, too.
    slices : Block
        Their sums.
    """
    kernel = select_kernel(reading.kernel)
    held = _Held(layout, kernel, source, skip_invalid=reading.on_invalid == "skip")
    for block in blocks:
        columns = read_keys(block.keys, reading.keys)
        held.note_names(tuple(columns), find_number_keys(block.keys, reading.keys))
        yield from held.add(block, list(columns.values()))
    if held.values:
        yield held.take()


class _Held:
    """Sums of up to C slices, in int64: limbs that a few calls of the kernels fill."""

    def __init__(
        self, layout: Layout, kernel: Kernel, source: Source, *, skip_invalid: bool
    ) -> None:
        spec = layout.spec
        self._layout, self._spec, self._kernel = layout, spec, kernel
        self._accumulate = WavePart(spec).accumulator(kernel) if spec.sketch_size else None
        self._cells = None if spec.cells is None else _CellRows(layout, kernel)
        self._adder = RowAdder(
            spec,
            kernel,
            make_accumulator(spec, kernel),
            columns=source.columns,
            skip_invalid=skip_invalid,
        )
        d = spec.n_features
        n_products = d * (d + 1) // 2 if spec.has_full_covariance else d
        n_sums = 2 * d + n_products if spec.has_moments else 0
        a_slice = 8 * (2 * spec.sketch_size + 3 * n_sums + 4 * layout.width)
        self._capacity = max(1, min(MOST_SLICES, HELD_BYTES // a_slice))
        self._of_waves = np.zeros((self._capacity, 2, spec.sketch_size), np.int64)
        self._of_moments = np.zeros((self._capacity, 3, n_sums), np.int64)
        self._counts = np.zeros(self._capacity, np.int64)
        self._others: dict[int, Measure] = {}  # sums of rows that take another way
        self.values: dict[Value, int] = {}
        self._names: tuple[str, ...] = ()
        self._written: set[str] = set()

    def note_names(self, names: tuple[str, ...], written: set[str]) -> None:
        """Names of the keys, and of those that may be whole numbers in texts."""
        self._written = self._written & written if self._names else written
        self._names = names

    def add(self, block: Rows, columns: Sequence[Any]) -> Iterator[tuple[Any, Block]]:
        """Add the rows of a block; the slices so far, where there is no room for more."""
        run = _SortedRows.of(block, columns, self._spec, self._kernel)
        if run.values.shape[1] != self._spec.n_features:
            self._adder.add(block)  # says so
        slots = np.full(len(run.rows), -1)
        first = 0
        for value, start, end in run.spans:
            slot = self._slot(value)
            if slot is None:
                self._add_cells(run, slots, first, start)
                yield self.take()
                first, slot = start, self._slot(value)
            assert slot is not None
            fits = self._counts[slot] + end - start <= MOMENT_ROWS
            if self._spec.landmarks is None and fits and run.is_near[start:end].all():
                slots[start:end] = slot
                self._add_run(run, slot, start, end)
            else:
                self._add_apart(slot, run.values[start:end], block)
        self._add_cells(run, slots, first, len(slots))

    def _slot(self, value: Value) -> int | None:
        """Where the slice of a key is summed; None if there is no room for a new one."""
        slot = self.values.get(value)
        if slot is None and len(self.values) < self._capacity:
            slot = self.values[value] = len(self.values)
        return slot

    def _add_run(self, run: _SortedRows, slot: int, start: int, end: int) -> None:
        """Add rows of one key to waves and moments."""
        if self._accumulate is not None:
            self._accumulate(run.narrow[start:end], run.ones[start:end], self._of_waves[slot])
        if self._spec.has_moments:
            unit, full = self._spec.moment_unit, self._spec.has_full_covariance
            rows = run.rows[start:end]
            self._of_moments[slot] += self._kernel.moments(rows, None, unit, full=full)
        self._counts[slot] += end - start

    def _add_cells(self, run: _SortedRows, slots: IntArray, first: int, last: int) -> None:
        """Add the rows of a span that have a slot to their cells, or to far rows."""
        own = first + np.flatnonzero(slots[first:last] >= 0)
        if self._cells is not None and len(own):
            self._cells.add(run.rows[own], slots[own])

    def _add_apart(self, slot: int, values: RealArray, block: Rows) -> None:
        """Add rows that lie far out, are not finite, are too many for int64, or have landmarks."""
        try:
            self._adder.add(Rows(values, None, block.source))
        except DataError:
            self._adder.add(block)  # raises again, and counts rows as they lie there
            raise
        totals = self._adder.take()
        self._others[slot] = self._others[slot] + totals if slot in self._others else totals

    def take(self) -> tuple[Any, Block]:
        """All slices so far, by key; there are none afterwards."""
        groups, numbers = number_groups(key_table(list(self.values), self._names, self._written))
        order = np.argsort(numbers)
        some = list(self._others)
        apart = block_of(self._layout, [self._others[slot] for slot in some])
        sums = spread(self._layout, apart, numbers[some].tolist(), len(order))
        for name, make in (("waves", self._wave_lanes), ("moments", self._moment_lanes)):
            if name in self._layout.places:
                sums.dense[:, self._layout.places[name]] += make(order).reshape(len(order), -1)
        sums.counts[:, 0] += self._counts[order]
        if self._cells is not None:
            for name, entries in self._cells.take(numbers).items():
                sums.entries[name] = join_entries([sums.entries[name], entries])
        for array in (self._of_waves, self._of_moments, self._counts):
            array[: len(order)] = 0
        self._others, self.values = {}, {}
        return groups, in_range(self._layout, sums)

    def _wave_lanes(self, order: IntArray) -> IntArray:
        return _lanes(self._of_waves[order].reshape(len(order), -1), 2)

    def _moment_lanes(self, order: IntArray) -> IntArray:
        """Weight, fine weight, sums, rests, no partial rests, products."""
        counts, d = self._counts[order], self._spec.n_features
        weights = np.zeros((len(order), 2, 4), np.int64)
        weights[:, 0, :2] = _lanes(counts << BITS, 2)
        weights[:, 1, 1] = counts << WEIGHT_BITS - WORD
        if not self._spec.has_moments:
            return weights
        low, middle, high = np.moveaxis(self._of_moments[order], 1, 0)
        lanes = _lanes(low, 4)
        lanes[..., :2] += _lanes(middle, 2) << LIMB_BITS
        lanes[..., 1:3] += _lanes(high, 2) << 2 * LIMB_BITS - WORD
        none = np.zeros((len(order), d, 4), np.int64)
        return np.concatenate([weights, lanes[:, : 2 * d], none, lanes[:, 2 * d :]], axis=1)


class _CellRows:
    """Cells and far rows of many slices: those that have rows alone."""

    def __init__(self, layout: Layout, kernel: Kernel) -> None:
        spec = layout.spec
        assert spec.cells is not None
        self._layout, self._spec, self._groups = layout, spec, spec.cells.groups
        self._accumulate, self._far = kernel.cells(self._groups), FarPart(spec).adders(kernel)()
        self._pieces: list[Entries] = []
        self._of_far: dict[int, Any] = {}

    def add(self, rows: FloatArray, slots: IntArray) -> None:
        """Add normalised rows (n, d) to the slices in some slots (n,).

        What a row of weight 1 adds to its cell is what ``kernels.contract.CellAccumulator`` says.
        """
        labels, squares = self._accumulate.nearest(rows.astype(np.float32))
        is_out = squares > np.float32(self._groups.limit)
        for slot in np.unique(slots[is_out]).tolist():
            self._add_far(slot, rows, np.flatnonzero(is_out & (slots == slot)), labels)
        rows, slots, labels = rows[~is_out], slots[~is_out], labels[~is_out]
        offsets = rows - self._groups.centers[labels]
        steps = np.rint(offsets * self._groups.per_unit).astype(np.int64)
        products = steps.view(np.uint64) ** 2  # below 2**64
        low, high = products & np.uint64(2**SQUARE_BITS - 1), products >> np.uint64(SQUARE_BITS)
        weights = np.full((len(rows), 1), 2**CELL_WEIGHT_BITS)
        limbs = np.hstack([weights, steps, low.view(np.int64), high.view(np.int64)])
        if len(limbs):
            self._pieces.append(merge_entries(np.column_stack([slots, labels]), limbs))

    def _add_far(self, slot: int, rows: FloatArray, some: IntArray, labels: IntArray) -> None:
        """Add rows of one slot that are in no cell."""
        every = WeightedRows(rows, rows, None, 0, Zone.NEAR)
        sums = FarPart(self._spec).zero()
        self._far.add(every.outside(some, labels[some]), sums)
        self._far.flush(sums)
        self._of_far[slot] = self._of_far[slot] + sums[0] if slot in self._of_far else sums[0]

    def take(self, numbers: IntArray) -> dict[str, Entries]:
        """Entries of all so far, of the slices with these numbers by slot; none afterwards."""
        found = {}
        if self._pieces:
            d = self._spec.n_features
            joined = join_entries([piece.renumbered(numbers) for piece in self._pieces])
            lanes = _lanes(joined.digits[:, : 1 + 2 * d], 4)
            lanes[:, 1 + d :, SQUARE_BITS // WORD :][..., :2] += _lanes(
                joined.digits[:, 1 + 2 * d :], 2
            )
            found["cells"] = Entries(joined.names, lanes.reshape(len(lanes), -1))
        if self._of_far:
            far = {int(numbers[slot]): sums for slot, sums in self._of_far.items()}
            found["far"] = far_entries(self._layout, far)
        self._pieces, self._of_far = [], {}
        return found


def _lanes(numbers: IntArray, n: int) -> IntArray:
    """Numbers of int64 as words (..., n), of which all but the second have 32 bits."""
    lanes = np.zeros((*numbers.shape, n), np.int64)
    np.bitwise_and(numbers, 2**WORD - 1, out=lanes[..., 0])
    np.right_shift(numbers, WORD, out=lanes[..., 1])
    return lanes


@dataclass(frozen=True, eq=False)
class _SortedRows:
    """The rows of a block, those of one key after each other.

    Attributes
    ----------
    values, rows, narrow : arrays of shape (n, d)
        As they are, normalised, and so in the precision of the spec.
    ones : float32 array of shape (n,)
        Their weights.
    is_near : bool array of shape (n,)
        Whether they may be in cells.
    spans : list of tuple
        Values of keys, with the first and the last row; long runs are cut.
    """

    values: RealArray
    rows: FloatArray
    narrow: RealArray
    ones: RealArray
    is_near: BoolArray
    spans: list[tuple[Value, int, int]]

    @classmethod
    def of(
        cls, block: Rows, columns: Sequence[Any], spec: SketchSpec, kernel: Kernel
    ) -> _SortedRows:
        """Sort a block by its keys, and normalise it."""
        numbers, first = number_rows(columns)
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=len(first))).tolist()
        keys = zip(*(column.take(pa.array(first)) for column in columns), strict=True)
        step = chunk_rows(spec, kernel)
        spans = [
            (key, start, min(start + step, end))
            for key, (begin, end) in zip(keys, pairwise([0, *ends]), strict=True)
            for start in range(begin, end, step)
        ]
        dtype = np.float32 if block.values.dtype == np.float32 else np.float64
        X = np.ascontiguousarray(block.values[order], dtype=dtype)
        rows, norms = np.empty(X.shape), np.empty(len(X))
        if X.shape[1] == spec.n_features:
            spec.normalise(X, kernel, rows, norms)
        is_near = norms < spec.cell_reach**2  # False for NaN, too
        with np.errstate(over="ignore", invalid="ignore"):  # of rows that are not near
            narrow = rows.astype(spec.precision)
        return cls(X, rows, narrow, np.ones(len(X), np.float32), is_near, spans)
