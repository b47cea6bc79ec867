"""Slices of a cube straight from rows: a pass that holds a few thousand of them at a time.

Rows of a block are sorted by key, and each run of them is summed by the kernels into int64, which
become digits of a part (:mod:`sketchshift.sketch.cube_parts`) without an integer of Python between.
The sums are those that a sketch of the rows has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift.data import Block as Rows
from sketchshift.data import Source
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.kernels import (
    BITS,
    CELL_ROWS,
    LIMB_BITS,
    MOMENT_ROWS,
    SQUARE_BITS,
    Kernel,
    select_kernel,
)
from sketchshift.sketch.cells import FarPart
from sketchshift.sketch.cube_parts import Block, Entries, Layout, block_of, in_range, spread
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
HELD_BYTES = 2**28
"""Of sums that are in memory before they are written."""


def can_read(spec: SketchSpec, reading: Reading) -> bool:
    """Whether all rows weigh the same, and are summed on the processor column by column."""
    is_plain = spec.tilt is None and spec.origin is None and spec.axes is None
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
        for run in held.sort(block, list(columns.values())):
            if not held.add(*run):
                yield held.take()
                held.add(*run)
    if held.values:
        yield held.take()


class _Held:
    """Sums of up to C slices, in int64: limbs that a few calls of the kernels fill."""

    def __init__(
        self, layout: Layout, kernel: Kernel, source: Source, *, skip_invalid: bool
    ) -> None:
        spec = layout.spec
        self._layout, self._spec, self._kernel = layout, spec, kernel
        self._waves = WavePart(spec).adders(kernel)() if spec.sketch_size else None
        self._cells = None if spec.cells is None else kernel.cells(spec.cells.groups)
        self._far = None if spec.cells is None else FarPart(spec).adders(kernel)()
        self._adder = RowAdder(
            spec,
            kernel,
            make_accumulator(spec, kernel),
            columns=source.columns,
            skip_invalid=skip_invalid,
        )
        self._step = chunk_rows(spec, kernel)
        d = spec.n_features
        n_products = d * (d + 1) // 2 if spec.has_full_covariance else d
        n_sums = 2 * d + n_products if spec.has_moments else 0
        n_cells = 0 if spec.cells is None else spec.cells.n_cells
        a_slice = 8 * (2 * spec.sketch_size + 3 * n_sums + n_cells * (1 + 3 * d) + layout.width)
        self._capacity = max(1, min(8192, HELD_BYTES // a_slice))
        self._of_waves = np.zeros((self._capacity, 2, spec.sketch_size), np.int64)
        self._of_moments = np.zeros((self._capacity, 3, n_sums), np.int64)
        self._of_cells = np.zeros((self._capacity, n_cells, 1 + 3 * d), np.int64)
        self._counts = np.zeros(self._capacity, np.int64)
        self._of_far: dict[int, Any] = {}
        self._others: dict[int, Measure] = {}  # sums with rows that take another way
        self.values: dict[Value, int] = {}
        self._names: tuple[str, ...] = ()
        self._written: set[str] = set()

    def note_names(self, names: tuple[str, ...], written: set[str]) -> None:
        """Names of the keys, and of those that may be whole numbers in texts."""
        self._written = self._written & written if self._names else written
        self._names = names

    def sort(self, block: Rows, columns: Sequence[Any]) -> Iterator[tuple[Value, _Run]]:
        """The rows of a block by their key."""
        numbers, first = number_rows(columns)
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=len(first))).tolist()
        values = zip(*(column.take(pa.array(first)) for column in columns), strict=True)
        dtype = np.float32 if block.values.dtype == np.float32 else np.float64
        X = np.ascontiguousarray(block.values[order], dtype=dtype)
        if X.shape[1] != self._spec.n_features:
            self._adder.add(block)  # says so
        rows, norms = np.empty(X.shape), np.empty(len(X))
        self._spec.normalise(X, self._kernel, rows, norms)
        is_near = norms < self._spec.cell_reach**2  # False for NaN, too
        start = 0
        for value, end in zip(values, ends, strict=True):
            for first_row in range(start, end, self._step):
                own = slice(first_row, min(first_row + self._step, end))
                yield value, _Run(X[own], rows[own], bool(is_near[own].all()), block)
            start = end

    def add(self, value: Value, run: _Run) -> bool:
        """Add rows of one key; False if there is no room for them."""
        slot = self.values.get(value)
        if slot is None:
            if len(self.values) == self._capacity:
                return False
            slot = self.values[value] = len(self.values)
        rows = run.rows
        if not run.are_near or self._counts[slot] + len(rows) > min(MOMENT_ROWS, CELL_ROWS):
            self._add_apart(slot, run)
            return True
        weighted = WeightedRows(rows, rows, None, None, 0, Zone.NEAR)
        if self._waves is not None:
            self._waves.add(weighted, self._of_waves[slot])
        if self._spec.has_moments:
            unit, full = self._spec.moment_unit, self._spec.has_full_covariance
            self._of_moments[slot] += self._kernel.moments(rows, None, unit, full=full)
        if self._cells is not None:
            left = self._cells.add(rows, rows, None, self._of_cells[slot])
            if left is not None:
                self._add_far(slot, weighted.outside(*left))
        self._counts[slot] += len(rows)
        return True

    def _add_far(self, slot: int, rows: WeightedRows) -> None:
        """Add rows that are in no cell."""
        assert self._far is not None
        sums = FarPart(self._spec).zero()
        self._far.add(rows, sums)
        self._far.flush(sums)
        self._of_far[slot] = self._of_far[slot] + sums[0] if slot in self._of_far else sums[0]

    def _add_apart(self, slot: int, run: _Run) -> None:
        """Add rows that lie far out, are not finite, or are too many for int64."""
        try:
            self._adder.add(Rows(run.values, None, run.block.source))
        except DataError:
            self._adder.add(run.block)  # raises again, and counts rows as they lie there
            raise
        totals = self._adder.take()
        self._others[slot] = self._others[slot] + totals if slot in self._others else totals

    def take(self) -> tuple[Any, Block]:
        """All slices so far, by key; there are none afterwards."""
        groups, numbers = number_groups(key_table(list(self.values), self._names, self._written))
        order = np.argsort(numbers)
        sums = self._apart(order)
        n, dense = len(order), sums.dense
        for family in self._layout.dense:
            make = {"waves": self._wave_lanes, "moments": self._moment_lanes}.get(family.name)
            if make is not None:
                dense[:, self._layout.places[family.name]] += make(order).reshape(n, -1)
        sums.counts[:, 0] += self._counts[order]
        if self._cells is not None:
            own, before = self._cell_entries(order), sums.entries["cells"]
            sums.entries["cells"] = Entries(
                np.concatenate([before.names, own.names]),
                np.concatenate([before.digits, own.digits]),
            )
        block = in_range(self._layout, sums)
        self._forget(n)
        return groups, block

    def _apart(self, order: IntArray) -> Block:
        """What was summed apart, as digits: far rows, and whatever took another way."""
        zero = Measure.zero(self._spec)
        measures = [self._others.get(slot, zero) for slot in order.tolist()]
        for place, slot in enumerate(order.tolist()):
            if slot in self._of_far:
                measures[place] = measures[place].copy()
                measures[place].parts["far"][0] = (
                    measures[place].parts["far"][0] + self._of_far[slot]
                )
        some = [i for i, measure in enumerate(measures) if measure is not zero]
        return spread(
            self._layout, block_of(self._layout, [measures[i] for i in some]), some, len(order)
        )

    def _forget(self, n: int) -> None:
        for array in (self._of_waves, self._of_moments, self._of_cells, self._counts):
            array[:n] = 0
        self._of_far, self._others, self.values = {}, {}, {}

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

    def _cell_entries(self, order: IntArray) -> Entries:
        """Weight, sums and squares of the cells that have rows."""
        d = self._spec.n_features
        slots, cells = np.nonzero(self._of_cells[:, :, 0][order])
        found = self._of_cells[order[slots], cells]
        lanes = _lanes(found[:, : 1 + 2 * d], 4)
        lanes[:, 1 + d :, SQUARE_BITS // WORD :][..., :2] += _lanes(found[:, 1 + 2 * d :], 2)
        return Entries(np.column_stack([slots, cells]), lanes.reshape(len(slots), -1))


def _lanes(numbers: IntArray, n: int) -> IntArray:
    """Numbers of int64 as words (..., n), of which all but the second have 32 bits."""
    lanes = np.zeros((*numbers.shape, n), np.int64)
    lanes[..., 0], lanes[..., 1] = numbers & 2**WORD - 1, numbers >> WORD
    return lanes


@dataclass(frozen=True, eq=False)
class _Run:
    """Rows of one key within a block.

    Attributes
    ----------
    values, rows : arrays of shape (n, d)
        As they are, and normalised.
    are_near : bool
        Whether all may be in cells.
    block : Rows
        That they lie in.
    """

    values: RealArray
    rows: FloatArray
    are_near: bool
    block: Rows
