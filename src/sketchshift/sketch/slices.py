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

from sketchshift._typing import IntArray
from sketchshift.data import Block, Source
from sketchshift.data.open import ask
from sketchshift.data.source import spans
from sketchshift.errors import DataError, SketchFormatError, SketchshiftError
from sketchshift.features import SketchSpec
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

__all__ = ["add_keys", "key_table", "read_slices", "sketch_by", "slices_of", "tables_of"]

ROWS_A_THREAD = 4096
"""Of a block, at least: fewer are summed before another thread would have begun."""


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
    max_slices: int = 10_000,
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
    max_slices : int, default=10_000
        More values than that are an error: a key such as a time to the second would fill the
        memory with sketches of a few rows.
    n_threads, on_invalid, kernel, progress, checkpoint
        As in :func:`sketchshift.sketch`.

    Returns
    -------
    table : SketchTable
        Its slices merge into ``ss.sketch(data, spec)``, bit for bit. O(N m d) time, O(m + d^2)
        memory for each slice and thread.

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
    reading = Reading(
        spec, columns, sample_weight, on_invalid, kernel, max_slices=max_slices, where=where
    )
    reading = add_keys(reading, by)
    data = ask(data, query)
    names = [by] if isinstance(by, str) else list(by) if reading.keys else None
    found: SketchTable = run_pass(
        "sketch_by", data, reading, planning, _Slices, n_threads, progress, checkpoint, by=names
    )
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


HELD_BYTES = 2**29
"""Of sums that :func:`tables_of` has in memory at a time, about."""


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
    most = max(1, HELD_BYTES // (8 * Layout.of(reading.require_spec()).width))
    for block in report_blocks(source, progress):
        for span in spans(len(block.values), most):
            slices = slices or _Slices(source, reading, n_threads)
            slices.add(iter([block.cut(span)]))
            if slices.n_keys > most:
                yield slices.table()
                slices = None
    if slices is not None:
        yield slices.table()


class _Slices:
    """The totals of all keys so far."""

    kind = "slices"

    def __init__(self, source: Source, reading: Reading, n_threads: int | None) -> None:
        self._sketcher, self._reading = sketcher_for(reading, n_threads), reading
        self._keys, self._numbers = reading.keys, KeyNumbers()
        self._new_adder = self._sketcher.adders(source)
        self._adders: list[RowAdder] = []
        self._pieces: list[tuple[IntArray, Totals]] = []  # numbers of keys, and their totals
        self._names = tuple(reading.key_names)  # none where they are labels
        self._written = set(self._names)  # those that came so in every block

    def add(self, blocks: Iterator[Block]) -> None:
        """Add all blocks; the rows of each are sorted by key and shared out among threads."""
        with ThreadPoolExecutor(self._sketcher.n_threads) as pool:
            pending: list[Future[None]] = []
            before = None
            for block in blocks:
                numbers = self._number(block)
                kind = np.uint16 if self.n_keys <= 2**16 else np.int64  # what sorts in less time
                order = np.argsort(numbers.astype(kind), kind="stable")
                _wait_for(pending, before, self._new_adder)
                pending, before = self._share(pool, block, order, numbers[order]), block
            _wait_for(pending, before, self._new_adder)

    @property
    def n_keys(self) -> int:
        """Number of slices so far."""
        return self._numbers.n

    def _number(self, block: Block) -> IntArray:
        """The number of the key of each row."""
        columns = read_keys(block.keys, self._keys)
        self._names = self._names or tuple(columns)
        self._written &= find_number_keys(block.keys, self._keys)
        numbers = self._numbers.number(list(columns.values()))
        self.check_many()
        return numbers

    def _share(
        self, pool: ThreadPoolExecutor, block: Block, order: IntArray, numbers: IntArray
    ) -> list[Future[None]]:
        """Let each thread add as many rows; a slice may lie with two of them."""
        n_parts = min(self._sketcher.n_threads, 1 + len(order) // ROWS_A_THREAD)
        while len(self._adders) < n_parts:
            self._adders.append(self._new_adder())
        parts = zip(np.array_split(order, n_parts), np.array_split(numbers, n_parts), strict=True)
        adders = zip(self._adders, parts, strict=False)
        return [pool.submit(adder.add, block, *part) for adder, part in adders]

    def table(self) -> SketchTable:
        """The slices, sorted by key."""
        keys = key_table(self._numbers, self._names, self._written)
        self._pieces += [adder.take() for adder in self._adders]
        pieces = [(totals, numbers) for numbers, totals in self._pieces]
        return from_pieces(keys, pieces, self._sketcher.spec)

    def result(self) -> SketchTable:
        """The slices, unless there are no rows, or weights that vanish in the integers."""
        table, is_weighted = self.table(), self._reading.is_weighted
        if is_weighted or self._sketcher.spec.recipe is not None or not table.counts.any():
            whole = table.merge() if len(table) else self._sketcher.sketch()
            check_result(whole, is_weighted=is_weighted)
        return table

    def freeze(self) -> tuple[dict[str, Any], bytes]:
        """The table of the slices so far, as a stream of Arrow; the pass goes on with it."""
        table = self.table()
        self._pieces = []
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
            self._pieces.append((self._numbers.number(columns), table.totals))

    def check_many(self) -> None:
        """Refuse more slices than allowed, with the value of a key as an example."""
        most = self._reading.max_slices
        if self._numbers.n <= most:
            return
        last = max(self._numbers.columns(), key=lambda typed: int(typed[0].max()))
        example = ", ".join(str(column[len(column) - 1]) for column in last[1])
        is_private = self._sketcher.spec.origin is not None
        such_as = "" if is_private else f" (such as {example})"
        msg = (
            f"there are more than {most:,} slices by {', '.join(self._names)}{such_as}"
            ", and each is a sketch. Take a coarser key, such as day(time), or allow more with "
            "max_slices."
        )
        raise DataError(msg)


def _wait_for(
    pending: Sequence[Future[None]], block: Block | None, new_adder: Callable[[], RowAdder]
) -> None:
    """Wait until all parts of a block are added; an error names the first bad row of the block."""
    wait(pending)
    for future in pending:
        try:
            future.result()
        except DataError:
            assert block is not None
            new_adder().add(block)  # raises, and counts rows as they lie there
            raise


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
            columns: list[Any] = [[] for _ in names]
        else:
            columns = typed[0][1] if len(typed) == 1 else _join_types(typed)
        return pa.table(
            {
                name: _key_array(column, name in written)
                for name, column in zip(names, columns, strict=True)
            }
        )
    except pa.ArrowException as cause:
        msg = (
            f"the keys {list(names)} have another type in some blocks or files ({cause}). Convert "
            "them to one type."
        )
        raise DataError(msg) from cause


def _join_types(typed: Sequence[tuple[IntArray, list[Any]]]) -> list[Any]:
    """Lists of scalars that keep their types, in the order of their numbers."""
    order = np.argsort(np.concatenate([numbers for numbers, _ in typed])).tolist()
    alike = zip(*(columns for _, columns in typed), strict=True)
    joined = ([scalar for part in parts for scalar in part] for parts in alike)
    return [[scalars[i] for i in order] for scalars in joined]


def _key_array(scalars: Any, may_be_numbers: bool) -> Any:
    """Values of one key, in one type.

    Where all of a file's keys are missing, they have no type of their own. Where numbers of one
    file stand beside the texts of another, all are texts, unless all of these are numbers, too.
    """
    if isinstance(scalars, pa.Array):
        is_text = pa.types.is_string(scalars.type)
        return parse_numbers(scalars) if may_be_numbers and is_text else scalars
    typed = [None if pa.types.is_null(scalar.type) else scalar for scalar in scalars]
    if not may_be_numbers or not any(pa.types.is_string(scalar.type) for scalar in scalars):
        return pa.array(typed)
    texts = [None if scalar is None else scalar.cast(pa.string()) for scalar in typed]
    return parse_numbers(pa.array(texts, pa.string()))
