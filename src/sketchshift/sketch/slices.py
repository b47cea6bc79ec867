"""One pass over data that makes a sketch for each value of a key.

Rows of a block are sorted by key and shared out among threads, whose adders sum runs of rows into
their slices. Equal rows with equal keys give equal bytes, however they were cut or ordered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sketchshift._text import size_in_words
from sketchshift._typing import IntArray
from sketchshift.data import Block, Source
from sketchshift.data.open import ask
from sketchshift.data.source import spans
from sketchshift.errors import DataError, SketchFormatError, SketchshiftError
from sketchshift.features import SketchSpec
from sketchshift.kernels import Runs
from sketchshift.kernels.memory import free_memory
from sketchshift.recipe import Recipe
from sketchshift.sketch.checkpoint import check_same_plan
from sketchshift.sketch.keys import (
    KeyNumbers,
    find_number_keys,
    parse,
    parse_numbers,
    read_keys,
)
from sketchshift.sketch.reading import Planning, Reading
from sketchshift.sketch.rows import RowAdder
from sketchshift.sketch.sketcher import (
    Progress,
    check_result,
    report_blocks,
    run_pass,
    sketcher_for,
)
from sketchshift.sketch.table import SketchTable, from_pieces
from sketchshift.sketch.totals import Layout, Totals

__all__ = [
    "add_keys",
    "check_room",
    "key_table",
    "read_slices",
    "sketch_by",
    "slices_of",
    "tables_of",
]

ROWS_A_THREAD = 4096
"""Of a block, at least: fewer are summed before another thread would have begun."""

COARSER = (
    "Take a coarser key, such as day(time), or a smaller sketch_size; or add the rows to a cube "
    "(ss.live.Cube, sketchshift follow), which needs 1 GB for any number of slices."
)
MADE_OF = 2.0
"""Memory until slices are a table, in sizes of the table, at most: most of it is there twice."""


def sketch_by(
    data: Any,
    by: Any,
    spec: SketchSpec | None = None,
    *,
    n_clusters: int | None = None,
    sketch_size: int | None = None,
    seed: int | None = None,
    standardize: bool | str | None = None,
    cells: bool | None = None,
    metric: str | None = None,
    columns: Sequence[str] | Recipe | None = None,
    query: str | None = None,
    where: str | None = None,
    sample_weight: Any = None,
    n_threads: int | None = None,
    on_invalid: str = "raise",
    kernel: str = "auto",
    progress: Progress | bool | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> SketchTable:
    """Read data once and give a sketch for each value of a key.

    Parameters
    ----------
    data : array, sparse matrix, frame, Arrow data, path(s) or iterator of blocks
        See :func:`sketchshift.sketch`. Of a collection of Dask, Spark or Ray, ``by`` must name
        columns.
    by : str, sequence of str or array of shape (n,)
        Columns of the key, of any type (texts, numbers, dates), or times cut down to a unit:
        ``"day(date)"``, also year, quarter, month, week, hour and minute; or one label for
        each row, where the data lies in memory. Missing keys make a slice of their own. Keys in
        text files are whole numbers if all are written as such, else text: 01234 is not 1234.
    spec, n_clusters, sketch_size, seed, standardize, cells, metric
        As in :func:`sketchshift.sketch`.
    columns, query, where, sample_weight
        As in :func:`sketchshift.sketch`. A column of the key is sketched only if the spec or
        ``columns`` names it.
    n_threads, on_invalid, kernel, progress, checkpoint
        As in :func:`sketchshift.sketch`.

    Returns
    -------
    table : SketchTable
        Its slices merge into ``ss.sketch(data, spec)``, bit for bit. O(N m d) time. Memory is
        that of a block and up to twice that of the table: O(m + d^2) for each slice, and O(d)
        for each of its cells. Slices that would not fit in what this process may use are an
        error before the memory is taken.

    Examples
    --------
    >>> import pyarrow as pa, sketchshift as ss
    >>> data = pa.table({"day": [1, 1, 2], "x": [0.0, 0.1, 5.0], "y": [1.0, 1.1, 0.0]})
    >>> spec = ss.SketchSpec(n_features=2, sketch_size=50, bandwidth=1.0, columns=["x", "y"])
    >>> table = ss.sketch_by(data, by="day", spec=spec)
    >>> table.counts.tolist()
    [2, 1]
    """
    if by is None:
        msg = "say how to cut the rows: by is the name of a column, or a label for each row."
        raise DataError(msg)
    options = {"sketch_size": sketch_size, "seed": seed, "standardize": standardize}
    planning = Planning.instead_of(spec, n_clusters, **options, cells=cells, metric=metric)
    reading = Reading(spec, columns, sample_weight, on_invalid, kernel, where=where)
    reading = add_keys(reading, by)
    data = ask(data, query)
    names = [by] if isinstance(by, str) else list(by) if reading.keys else None
    try:
        found: SketchTable = run_pass(
            "sketch_by", data, reading, planning, _Slices, n_threads, progress, checkpoint, by=names
        )
    except MemoryError as cause:  # where others took what was free
        raise DataError(f"the slices do not fit in memory. {COARSER}") from cause
    return found


def add_keys(reading: Reading, by: Any) -> Reading:
    """The reading with the columns of a key, or with labels where ``by`` names no columns."""
    keys = parse(by)
    return replace(reading, keys=keys, labels=None if keys else by)


def slices_of(source: Source, reading: Reading) -> SketchTable:
    """The slices of data that is open already, on one thread; there may be none.

    Parameters
    ----------
    source : Source
        Opened by the reading.
    reading : Reading
        With a spec, and keys or labels.

    Returns
    -------
    table : SketchTable
        A slice may have no rows but invalid ones.
    """
    slices = _Slices(source, reading, n_threads=1)
    slices.add(iter(source))
    return slices.table()


FROZEN = 1024
"""Slices that are written to a checkpoint at a time."""

HELD_BYTES = 2**29
"""Of sums that :func:`tables_of` has in memory at a time, about; less where memory is short."""


def tables_of(
    source: Source, reading: Reading, n_threads: int | None, progress: Progress | None
) -> Iterator[SketchTable]:
    """Sketch rows by key, as many slices at a time as memory is set aside for.

    Parameters
    ----------
    source : Source
        Opened by the reading.
    reading : Reading
        With a spec and keys.
    n_threads, progress
        As in :func:`sketchshift.sketch`.

    Yields
    ------
    table : SketchTable
        Keys that come again later are in a later table, too.
    """
    slices = None
    held = min(HELD_BYTES, free_memory() / 8.0)
    most = max(1, int(held / (8 * Layout.of(reading.require_spec()).width)))
    for block in report_blocks(source, progress):
        for span in spans(len(block.values), most):
            slices = slices or _Slices(source, reading, n_threads)
            slices.add(iter([block.cut(span)]))
            if slices.numbers.n > most:
                yield slices.table()
                slices = None
    if slices is not None:
        yield slices.table()


class _Slices:
    """The totals of all keys so far."""

    kind = "slices"

    def __init__(self, source: Source, reading: Reading, n_threads: int | None) -> None:
        self._sketcher, self._reading = sketcher_for(reading, n_threads), reading
        self._keys, self.numbers = reading.keys, KeyNumbers()
        self._new_adder = self._sketcher.adders(source)
        self._adders: list[RowAdder] = []
        self._pieces: list[tuple[IntArray, Totals]] = []  # numbers of keys, and their totals
        self._names = tuple(reading.key_names)  # none where they are labels
        self._written = set(self._names)  # those that came so in every block
        self._granted = 0.0  # bytes that need no question

    def add(self, blocks: Iterator[Block]) -> None:
        """Add all blocks; the rows of each are sorted by key and shared out among threads."""
        with ThreadPoolExecutor(self._sketcher.n_threads) as pool:
            pending: list[Future[None]] = []
            before = None
            for block in blocks:
                n_before = self.numbers.n
                parts = self._share(self._number(block))
                _wait_for(pending, before, self._new_adder)
                self._check_room(self.numbers.n - n_before, len(block.values))
                adders = zip(self._adders, parts, strict=True)
                pending = [pool.submit(adder.add, block, *part) for adder, part in adders]
                before = block
            _wait_for(pending, before, self._new_adder)

    def _number(self, block: Block) -> IntArray:
        """The number of the key of each row."""
        columns = read_keys(block.keys, self._keys)
        self._names = self._names or tuple(columns)
        self._written &= find_number_keys(block.keys, self._keys)
        return self.numbers.number(list(columns.values()))

    def _share(self, numbers: IntArray) -> list[tuple[IntArray, IntArray]]:
        """Rows for each thread, sorted by key, and their keys.

        A slice lies with one thread, always the same, so that it is in memory once. Rows of large
        slices are shared out among all.
        """
        order = _sort(numbers, self.numbers.n)
        numbers = numbers[order]
        wanted = min(self._sketcher.n_threads, 1 + len(order) // ROWS_A_THREAD)
        while len(self._adders) < wanted:
            self._adders.append(self._new_adder())
        n = len(self._adders)
        if n == 1:
            return [(order, numbers)]
        runs = Runs.of(numbers)
        threads = np.where(runs.lengths < ROWS_A_THREAD, runs.slots % n, n).astype(np.uint16)
        of_rows = np.repeat(threads, runs.lengths)
        for thread, some in enumerate(np.array_split(np.flatnonzero(of_rows == n), n)):
            of_rows[some] = thread
        parts = (np.flatnonzero(of_rows == thread) for thread in range(n))
        return [(order[part], numbers[part]) for part in parts]

    def table(self) -> SketchTable:
        """The slices, sorted by key; begins anew."""
        keys = key_table(self.numbers, self._names, self._written)
        pieces, self._pieces = [*self._pieces, *(adder.take() for adder in self._adders)], []
        return from_pieces(keys, pieces, self._sketcher.spec)

    def result(self) -> SketchTable:
        """The slices, unless there are no rows, or weights that vanish in the integers."""
        table, is_weighted = self.table(), self._reading.is_weighted
        if is_weighted or self._sketcher.spec.rows.recipe is not None or not table.counts.any():
            whole = table.merge() if len(table) else self._sketcher.sketch()
            check_result(whole, is_weighted=is_weighted)
        return table

    def freeze(self) -> tuple[dict[str, Any], bytes]:
        """The table of the slices so far, as a stream of Arrow; the pass goes on with it."""
        table = self.table()
        self._take_over(table)
        return {"written": sorted(self._written)}, table.to_bytes()

    def thaw(self, state: dict[str, Any], integers: bytes) -> None:
        """Go on from slices of the same spec."""
        with _refuse_damage():
            self._written &= set(state["written"])
            table = _read_table(integers, self._names)
        if len(table):
            check_same_plan(table.spec, self._sketcher.spec)
        self._take_over(table)

    def _take_over(self, table: SketchTable) -> None:
        if table.totals is not None and len(table):
            columns = [column.combine_chunks() for column in table.keys.columns]
            self._pieces.append((self.numbers.number(columns), table.totals))

    def _check_room(self, n_new: int, n_rows: int) -> None:
        """Refuse a block whose slices would not fit in memory, before its rows are added."""
        spec, layout = self._sketcher.spec, Layout.of(self._sketcher.spec)
        n_cells = 0 if spec.cells is None else spec.cells.n_cells
        held = sum(adder.n_bytes for adder in self._adders)
        held += sum(totals.n_bytes for _, totals in self._pieces)
        more = layout.bytes_of(n_new, min(n_rows, self.numbers.n * n_cells))
        needed, example = MADE_OF * (held + more), None if spec.rows.ball else self.numbers.last
        if needed > self._granted:  # to ask takes as long as to add a hundred rows
            most = check_room(self.numbers.n, self._names, needed, held, example)
            self._granted = most / 2.0


def check_room(
    n: int,
    names: Sequence[str],
    needed: float,
    held: float = 0.0,
    example: Callable[[], str] | None = None,
    fix: str = COARSER,
) -> float:
    """Refuse slices that would not fit in the memory that this process may use.

    Parameters
    ----------
    n : int
        Slices.
    names : sequence of str
        Columns of their key.
    needed, held : float
        Bytes that they take until they are a table, and those of them that are taken already.
    example : callable or None
        Gives a value of the key; None where messages must not show one.
    fix : str
        What to do instead.

    Returns
    -------
    most : float
        Bytes that slices may take.
    """
    most = held + free_memory()
    if needed <= most:
        return most
    such_as = "" if example is None else f" (such as {example()})"
    msg = (
        f"{n:,} slices by {', '.join(names)}{such_as} need {size_in_words(int(needed))} of memory, "
        f"{size_in_words(int(needed / n))} each, and there are {size_in_words(int(most))} that "
        f"this process may use. {fix}"
    )
    raise DataError(msg)


def _sort(numbers: IntArray, n: int) -> IntArray:
    """A stable order of numbers below n: by their halves, which sort in linear time."""
    order: IntArray = np.argsort(numbers.astype(np.uint16), kind="stable")
    if n > 2**16:
        order = order[np.argsort((numbers[order] >> 16).astype(np.uint16), kind="stable")]
    return order


def _wait_for(
    pending: Sequence[Future[None]], block: Block | None, new_adder: Callable[[], RowAdder]
) -> None:
    """Wait until all parts of a block are added; an error names the first bad row of the block."""
    wait(pending)
    for future in pending:
        if block is not None and isinstance(future.exception(), DataError):
            new_adder().add(block)  # raises, and counts rows as they lie there
        future.result()


@contextmanager
def _refuse_damage() -> Iterator[None]:
    """Say of a checkpoint that is not as it was frozen that it is damaged."""
    try:
        yield
    except SketchshiftError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as cause:
        raise SketchFormatError(f"the slices of the checkpoint are damaged ({cause}).") from cause


def read_slices(position: dict[str, Any], integers: bytes) -> SketchTable:
    """The slices that a checkpoint holds, of the rows that were read so far."""
    with _refuse_damage():
        names = tuple(key.name for key in parse(position["reading"]["by"]))
        return _read_table(integers, names)


def _read_table(integers: bytes, names: tuple[str, ...]) -> SketchTable:
    table = SketchTable.from_bytes(integers)
    if table.by != names:
        raise ValueError(f"keys of {list(table.by)}")
    return table


def key_table(numbers: KeyNumbers, names: Sequence[str], written: Set[str]) -> Any:
    """An Arrow table of keys; those in ``written`` are whole numbers if all texts are."""
    typed = numbers.columns()
    try:
        if not typed:  # no block came
            return pa.table({name: [] for name in names})
        order = pa.array(np.argsort(np.concatenate([own for own, _ in typed])))
        alike = zip(*(columns for _, columns in typed), strict=True)
        columns = [_join(parts, n in written) for n, parts in zip(names, alike, strict=True)]
        return pa.table(columns, names=list(names)).take(order)
    except pa.ArrowException as cause:
        msg = (
            f"the keys {list(names)} have another type in some blocks or files ({cause}). Convert "
            "them to one type."
        )
        raise DataError(msg) from cause


def _join(parts: Sequence[Any], may_be_numbers: bool) -> Any:
    """Values of one key, in one type; those of a part that are all missing have none.

    Where numbers of one file stand beside the texts of another, all are texts, unless all of these
    are numbers, too.
    """
    are_parsed = may_be_numbers and any(pa.types.is_string(part.type) for part in parts)
    if are_parsed:
        parts = [part.cast(pa.string()) for part in parts]
    tables = [pa.table({"key": part}) for part in parts]
    joined = pa.concat_tables(tables, promote_options="default").column(0)
    return parse_numbers(joined) if are_parsed else joined
