"""One pass over data that makes a sketch for each value of a key.

Rows of a block are sorted by key, and each run of them goes through the adder that a plain
sketch uses. Equal rows with equal keys give equal bytes, however they were cut or ordered.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sketchshift._typing import IntArray
from sketchshift._validation import told_progress
from sketchshift.data import Block, Source
from sketchshift.data.open import ask
from sketchshift.errors import DataError, SketchFormatError, SketchshiftError
from sketchshift.features import SketchSpec
from sketchshift.recipe import Recipe
from sketchshift.sketch.checkpoint import check_same_plan, read_on
from sketchshift.sketch.keys import (
    Key,
    find_number_keys,
    number_rows,
    parse,
    parse_numbers,
    read_keys,
)
from sketchshift.sketch.measure import Measure, RowAdder
from sketchshift.sketch.reading import Planning, Reading, engine_of, refuse_options
from sketchshift.sketch.sketch import Sketch
from sketchshift.sketch.sketcher import (
    Progress,
    add_blocks,
    check_result,
    describe_reading,
    open_planned,
    plan_collection,
    report_blocks,
    sketcher_for,
)
from sketchshift.sketch.table import SketchTable, from_parts

__all__ = ["Value", "add_keys", "key_table", "read_slices", "sketch_by", "slices_of", "sums_of"]

Value = tuple[Any, ...]
"""Arrow scalars, one for each column of the key: they keep their type, and can be hashed."""


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
    reading = Reading(spec, columns, sample_weight, on_invalid, kernel, where=where)
    reading = replace(reading, max_slices=max_slices)
    reading = add_keys(reading, by)
    data = ask(data, query)
    engine = engine_of(data)
    if engine is not None:
        own = {"n_threads": n_threads, "progress": progress or None, "checkpoint": checkpoint}
        refuse_options("sketch_by", data, **own)
        return engine.sketch_by(data, plan_collection(engine, data, reading, planning))
    with told_progress("sketch_by", progress, "rows", "Reading rows") as advance:
        reading, source = open_planned(data, reading, planning)
        slices = _Slices(source, reading, n_threads)
        if checkpoint is None:
            slices.add(report_blocks(source, advance))
        else:
            names = [by] if isinstance(by, str) else list(by)
            read = describe_reading(source, reading, by=names)
            read_on(source, slices, checkpoint, read, advance)
    table = slices.table()
    whole = table.merge() if len(table) else sketcher_for(reading).sketch()
    check_result(whole, is_weighted=reading.is_weighted)
    return table


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


def sums_of(
    data: Any,
    reading: Reading,
    *,
    n_threads: int | None = None,
    progress: Progress | None = None,
) -> SketchTable | Sketch:
    """What rows add up to, by key where the reading has keys; there may be none.

    Parameters
    ----------
    data : anything that :func:`sketchshift.sketch` takes, but collections
        The rows.
    reading : Reading
        With a spec.
    n_threads, progress
        As in :func:`sketchshift.sketch`.
    """
    source = reading.open(data)
    if not reading.keys:
        return sketcher_for(reading, n_threads).update(source, progress=progress).sketch()
    slices = _Slices(source, reading, n_threads)
    slices.add(report_blocks(source, progress))
    return slices.table()


class _Slices:
    """The totals of all keys so far."""

    kind = "slices"

    def __init__(self, source: Source, reading: Reading, n_threads: int | None) -> None:
        self._sketcher, self._max_slices = sketcher_for(reading, n_threads), reading.max_slices
        adders = self._sketcher.adders(source)
        self._new_adder = partial(_SliceAdder, adders, reading.keys, self._check_many)
        self._totals: dict[Value, Measure] = {}
        self._names = tuple(reading.key_names)  # none where they are labels
        self._written = set(self._names)  # those that came so in every block

    def add(self, blocks: Iterator[Block]) -> None:
        """Add all blocks."""
        for adder in add_blocks(blocks, self._new_adder, self._sketcher.n_threads):
            self._names = self._names or adder.names
            self._written &= adder.written
            for value, totals in adder.totals.items():
                _add_to(self._totals, value, totals)
        self._check_many(self._totals, self._names)  # of all threads together

    def table(self) -> SketchTable:
        """The slices, sorted by key."""
        spec, fingerprint = self._sketcher.spec, self._sketcher.spec.fingerprint
        sketches = [Sketch(spec, fingerprint, totals) for totals in self._totals.values()]
        return from_parts(key_table(list(self._totals), self._names, self._written), sketches)

    def freeze(self) -> tuple[dict[str, Any], bytes]:
        """A stream of Arrow for each combination of types that keys have, one after the other."""
        groups: dict[tuple[Any, ...], list[Value]] = defaultdict(list)
        for value in self._totals:
            groups[tuple(part.type for part in value)].append(value)
        streams = [self._stream(values) for values in groups.values()]
        lengths = [len(stream) for stream in streams]
        return {"written": sorted(self._written), "lengths": lengths}, b"".join(streams)

    def _stream(self, values: Sequence[Value]) -> bytes:
        spec, fingerprint = self._sketcher.spec, self._sketcher.spec.fingerprint
        sketches = [Sketch(spec, fingerprint, self._totals[v]).to_bytes() for v in values]
        columns = [*(pa.array(column) for column in zip(*values, strict=True)), sketches]
        table = pa.table({str(i): column for i, column in enumerate(columns)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    def thaw(self, state: dict[str, Any], integers: bytes) -> None:
        """Go on from slices of the same spec."""
        with _refuse_damage():
            self._written &= set(state["written"])
            for *value, data in _thaw(state, integers, len(self._names)):
                begun = Sketch.from_bytes(data.as_py())
                check_same_plan(begun.spec, self._sketcher.spec)
                self._totals[tuple(value)] = begun._totals

    def _check_many(self, totals: dict[Value, Measure], names: Sequence[str]) -> None:
        """Refuse more slices than allowed, with the value of a key as an example."""
        if len(totals) <= self._max_slices:
            return
        example = ", ".join(str(part) for part in next(reversed(totals)))
        is_private = self._sketcher.spec.origin is not None
        such_as = "" if is_private else f" (such as {example})"
        msg = (
            f"there are more than {self._max_slices:,} slices by {', '.join(names)}{such_as}, and "
            "each is a sketch. Take a coarser key, such as day(time), or allow more with "
            "max_slices."
        )
        raise DataError(msg)


@contextmanager
def _refuse_damage() -> Iterator[None]:
    """Say of a checkpoint that is not as it was frozen that it is damaged."""
    try:
        yield
    except SketchshiftError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as cause:
        raise SketchFormatError(f"the slices of the checkpoint are damaged ({cause}).") from cause


def _thaw(state: dict[str, Any], integers: bytes, n_keys: int) -> Iterator[Any]:
    """The columns of the key and the bytes of the sketch of each slice."""
    for length in state["lengths"]:
        stream, integers = integers[:length], integers[length:]
        table = pa.ipc.open_stream(stream).read_all()
        if table.num_columns != n_keys + 1:
            raise ValueError(f"keys of {table.num_columns - 1} columns")
        yield from zip(*table.columns, strict=True)


def read_slices(position: dict[str, Any], state: dict[str, Any], integers: bytes) -> SketchTable:
    """The slices that a checkpoint holds.

    Parameters
    ----------
    position, state, integers
        As the checkpoint has them.

    Returns
    -------
    table : SketchTable
        Of the rows that were read so far.
    """
    totals = {}
    with _refuse_damage():
        names = tuple(key.name for key in parse(position["reading"]["by"]))
        for *value, data in _thaw(state, integers, len(names)):
            totals[tuple(value)] = Sketch.from_bytes(data.as_py())
        keys = key_table(list(totals), names, set(state["written"]))
    return from_parts(keys, list(totals.values()))


class _SliceAdder:
    """Adds the rows of a block to the totals of their keys; one for each thread."""

    def __init__(
        self,
        new_adder: Callable[[], RowAdder],
        keys: Sequence[Key],
        check_many: Callable[[dict[Value, Measure], Sequence[str]], None],
    ) -> None:
        self._adder, self._keys, self._check_many = new_adder(), keys, check_many
        self.totals: dict[Value, Measure] = {}
        self.names: tuple[str, ...] = ()
        self.written = {key.name for key in keys}  # those that came so in every block

    def add(self, block: Block) -> None:
        """Add the rows of a block; a bad row is named by its place in the block."""
        columns = read_keys(block.keys, self._keys)
        self.names = tuple(columns)
        self.written &= find_number_keys(block.keys, self._keys)
        for value, part in _split(block, list(columns.values())):
            try:
                self._adder.add(part)
            except DataError:
                self._adder.add(block)  # raises again, and counts rows as they lie there
                raise
            _add_to(self.totals, value, self._adder.take())
            self._check_many(self.totals, self.names)


def _add_to(sums: dict[Value, Measure], value: Value, totals: Measure) -> None:
    sums[value] = sums[value] + totals if value in sums else totals


def _split(block: Block, columns: Sequence[Any]) -> Iterator[tuple[Value, Block]]:
    """The rows of a block by the value of their key."""
    codes, values = _number_keys(columns)
    if len(values) == 1:
        yield values[0], block
        return
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(values)))
    for value, rows in zip(values, np.split(order, ends[:-1]), strict=True):
        weights = None if block.weights is None else block.weights[rows]
        yield value, Block(block.values[rows], weights, block.source, block.first_row)


def _number_keys(columns: Sequence[Any]) -> tuple[IntArray, list[Value]]:
    """A number for each row, and the value that each number means."""
    numbers, first = number_rows(columns)
    present = [column.take(pa.array(first)) for column in columns]
    return numbers, list(zip(*present, strict=True))


def key_table(values: Sequence[Value], names: Sequence[str], written: Set[str]) -> Any:
    """An Arrow table of keys; those in ``written`` are whole numbers if all texts are."""
    columns = zip(*values, strict=True) if values else ([] for _ in names)
    try:
        return pa.table(
            {
                name: _key_array(scalars, name in written)
                for name, scalars in zip(names, columns, strict=True)
            }
        )
    except pa.ArrowException as cause:
        msg = (
            f"the keys {list(names)} have another type in some blocks or files ({cause}). Convert "
            "them to one type."
        )
        raise DataError(msg) from cause


def _key_array(scalars: Sequence[Any], may_be_numbers: bool) -> Any:
    """Values of one key, in one type.

    Where all of a file's keys are missing, they have no type of their own. Where numbers of one
    file stand beside the texts of another, all are texts, unless all of these are numbers, too.
    """
    typed = [None if pa.types.is_null(scalar.type) else scalar for scalar in scalars]
    if not may_be_numbers or not any(pa.types.is_string(scalar.type) for scalar in scalars):
        return pa.array(typed)
    texts = [None if scalar is None else scalar.cast(pa.string()) for scalar in typed]
    return parse_numbers(pa.array(texts, pa.string()))
