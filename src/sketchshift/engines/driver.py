"""What every engine shares: a pass over one partition, and how results become one."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

import sketchshift.errors
from sketchshift._typing import IntArray
from sketchshift._validation import check_choice, check_flag, check_integer, parameter_error
from sketchshift.data import Source, open_source
from sketchshift.data.sample import PLACES, PartSample, in_one_order, merge_parts, spread
from sketchshift.data.source import make_request
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.features.spec import MAX_SKETCH_SIZE
from sketchshift.sketch import Sketch, Sketcher, SketchTable
from sketchshift.sketch.keys import Key, columns_of, parse
from sketchshift.sketch.plan import draw_sample, plan_sample, sample_size
from sketchshift.sketch.sketcher import check_result, open_for
from sketchshift.sketch.slices import rows_of_block, slices_of

__all__ = [
    "Planning",
    "Reading",
    "blocks_of",
    "cannot_read",
    "check_slices",
    "check_spec",
    "checked_sketch",
    "checked_table",
    "key_and_spec",
    "keys_of",
    "merge_plan_rows",
    "merge_sketch_bytes",
    "merge_sketches",
    "merge_table_bytes",
    "merge_tables",
    "naming",
    "own_errors",
    "partitions_to_sample",
    "plan_rows_of_partition",
    "plan_spec",
    "sketch_partition",
    "sketch_partition_by",
    "table_from_bytes",
    "table_to_bytes",
    "thinned",
]

# What a pass reads of a collection, checked here before any partition is read there.
#
# One :class:`Reading` travels to all workers. Knows no engine.


@dataclass(frozen=True)
class Reading:
    """What is read of each row, and how.

    Parameters
    ----------
    spec : SketchSpec or None
        What is summed; None for a plan.
    columns : sequence of str or None
        Columns to read; None takes the spec's, or all.
    sample_weight : str, array or None
        Name of the column that holds the weights; beside an array, the weights.
    on_invalid, kernel : str
        As in :func:`sketchshift.sketch`. Whether there is such a kernel is for the workers to say.
    keys : sequence of Key
        The key, where sketches are made by key.
    max_slices : int
        As in :func:`sketchshift.sketch_by`.
    """

    spec: SketchSpec | None = None
    columns: Sequence[str] | None = None
    sample_weight: Any = None
    on_invalid: str = "raise"
    kernel: str = "auto"
    keys: Sequence[Key] = ()
    max_slices: int = 1

    def __post_init__(self) -> None:
        caller = "plan" if self.spec is None else "sketch"
        check_choice(caller, "on_invalid", self.on_invalid, ("raise", "skip"))
        make_request(self.columns, None, None)  # refuses what is no list of names
        check_integer("sketch_by", "max_slices", self.max_slices, 1, 2**30)

    @property
    def key_names(self) -> list[str]:
        """Names of the columns of the key, as a table of sketches has them."""
        return [key.name for key in self.keys]

    def open(self, data: Any, **opening: Any) -> Source:
        """The rows of a partition; ``opening`` is more for ``data.open_source``."""
        opening |= {"weights": self.sample_weight, "keys": columns_of(self.keys) or None}
        if self.spec is None:
            return open_source(data, columns=self.columns, **opening)
        return open_for(self.spec, data, self.columns, names=self.spec.columns, **opening)

    def names(self, empty: Any) -> list[str] | None:
        """The columns that are read, each once.

        Parameters
        ----------
        empty : array, frame or Arrow table of no rows
            With the columns of the collection. What is wrong with them is an error.

        Returns
        -------
        names : list of str or None
            None for data without names.
        """
        columns = self.open(empty).columns
        if columns is None:
            return None
        weights = [] if self.sample_weight is None else [self.sample_weight]
        return list(dict.fromkeys([*columns_of(self.keys), *columns, *weights]))

    def by_name(self, empty: Any) -> Reading:
        """The same reading with its columns named, for partitions that have them in other orders.

        Parameters
        ----------
        empty : array, frame or Arrow table of no rows
            As in :meth:`names`.
        """
        return replace(self, columns=self.open(empty).columns)

    def check_weight_name(self, collection: str) -> None:
        """Refuse weights that are not a column, for a collection that has no place for them."""
        if self.sample_weight is None or isinstance(self.sample_weight, str):
            return
        msg = (
            f"sample_weight must be the name of a column for a {collection}. Got "
            f"{type(self.sample_weight).__name__} instead: add it as a column."
        )
        raise DataError(msg)


def check_spec(spec: Any) -> SketchSpec:
    """The spec of a pass that needs one."""
    if not isinstance(spec, SketchSpec):
        raise parameter_error("sketch", "spec", "a SketchSpec", spec)
    return spec


def key_and_spec(by: Any, spec: Any) -> tuple[Any, Any]:
    """Both of them, in whichever order they were given."""
    return (spec, by) if isinstance(by, SketchSpec) else (by, spec)


def keys_of(by: Any) -> list[Key]:
    """The columns of a key, of which there must be one at least."""
    keys = parse(by)
    if not keys:
        msg = (
            "by must be the name of a column, or a list of names: labels from here do not reach "
            f"rows on other machines. Got {type(by).__name__} instead."
        )
        raise DataError(msg)
    return keys


def cannot_read(collection: Any, engine: str, wanted: str) -> DataError:
    """The exception for what is no collection of the engine's."""
    msg = (
        f"cannot read a {type(collection).__name__} with {engine}. Pass a {wanted}; for other data "
        "there is sketchshift.sketch."
    )
    return DataError(msg)


# What a worker does with one partition, and how the sketches of partitions become one.
#
# An engine cuts a collection into partitions, runs these functions where the partitions lie,
# and moves the sketches that they return, whose size does not grow with the partition. Merging is
# associative and commutative, so any tree of merges will do, and a partition that is read again
# after a fault gives what it gave before. Knows no engine.


def sketch_partition(partition: Any, reading: Reading, *, where: str) -> Sketch:
    """The sketch of one partition, on one thread: the engine decides how many run at a time.

    Parameters
    ----------
    partition : array, frame, Arrow data, or list or iterator of such blocks
        May be empty; then the sketch is that of no rows.
    reading : Reading
        With a spec.
    where : str
        Name of the partition for messages.

    Returns
    -------
    sketch : Sketch
        O(n m d) time; memory beside the partition does not grow with it.
    """
    sketcher = _sketcher_of(reading)
    with naming(where):
        blocks = blocks_of(partition)
        if blocks is not None:
            sketcher.update(reading.open(blocks))
    return sketcher.sketch()


def sketch_partition_by(partition: Any, reading: Reading, *, where: str) -> SketchTable | None:
    """The sketches of one partition by key, on one thread.

    Parameters
    ----------
    partition, where
        As in :func:`sketch_partition`.
    reading : Reading
        With a spec and keys.

    Returns
    -------
    table : SketchTable or None
        None for a partition without rows, whose keys may have no type. Memory grows with the
        number of keys.
    """
    sketcher = _sketcher_of(reading)
    with naming(where):
        blocks = blocks_of(partition)
        if blocks is None:
            return None
        source = reading.open(blocks, block_rows=rows_of_block(reading.spec))
        table = slices_of(source, sketcher, reading.keys, max_slices=reading.max_slices)
    return table if len(table) else None


def merge_sketches(sketches: Sequence[Sketch]) -> Sketch:
    """The sketch of several partitions together."""
    return sum(sketches[1:], sketches[0])


def merge_tables(tables: Iterable[SketchTable | None]) -> SketchTable | None:
    """The sketches by key of several partitions together; None if none has rows."""
    present = [table for table in tables if table is not None]
    return sum(present[1:], present[0]) if present else None


def checked_sketch(result: Sketch, reading: Reading) -> Sketch:
    """The sketch of all partitions, refused where ``ss.sketch`` would refuse it."""
    check_result(result, is_weighted=reading.sample_weight is not None)
    return result


def checked_table(table: SketchTable | None, reading: Reading) -> SketchTable:
    """The sketches of all partitions by key, refused where ``ss.sketch_by`` would refuse them."""
    if table is None:
        raise DataError("there are no rows to sketch. Check the path or the filter.")
    checked_sketch(table.merge(), reading)
    return table


def check_slices(n_slices: int, reading: Reading, *, instead: str = "") -> None:
    """Refuse more slices than allowed of all partitions, where each has few enough.

    Parameters
    ----------
    n_slices : int
        Of all partitions together, or of some.
    reading : Reading
        With keys.
    instead : str
        What else could be done, as the end of a sentence.
    """
    if n_slices > reading.max_slices:
        msg = (
            f"there are more than {reading.max_slices:,} slices by {', '.join(reading.key_names)}, "
            "and each is a sketch. Take a coarser key, such as day(time), or allow more with "
            f"max_slices{instead}."
        )
        raise DataError(msg)


def blocks_of(partition: Any) -> Any:
    """The partition as ``data`` reads it; None for a list or iterator that has no blocks."""
    if isinstance(partition, list | tuple):
        return partition or None
    if not isinstance(partition, Iterator) or hasattr(partition, "__arrow_c_stream__"):
        return partition
    first = next(partition, None)
    return None if first is None else chain([first], partition)


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Rows are counted within a partition, so a message must name it."""
    try:
        yield
    except DataError as error:
        raise type(error)(f"{where}: {error}") from None


def _sketcher_of(reading: Reading) -> Sketcher:
    return Sketcher(
        check_spec(reading.spec), n_threads=1, on_invalid=reading.on_invalid, kernel=reading.kernel
    )


# Rows for a plan: drawn where partitions lie, merged on the way, planned on here.
#
# They travel as bytes, some thousand rows of a partition, however many it has. Merging is
# associative and commutative. Knows no engine.

THINNED_ROWS = 100_000
"""Rows of a partition that a plan draws from, where a partition is a stream of batches."""


@dataclass(frozen=True)
class Planning:
    """The parameters of :func:`sketchshift.plan`, checked before any row is drawn."""

    n_clusters: int
    sketch_size: int | None = None
    seed: int = 0
    standardize: bool = False

    def __post_init__(self) -> None:
        check_integer("plan", "n_clusters", self.n_clusters, 1, MAX_CLUSTERS)
        check_integer("plan", "seed", self.seed, 0, 2**64 - 1)
        check_flag("plan", "standardize", self.standardize)
        if self.sketch_size is not None:
            check_integer("plan", "sketch_size", self.sketch_size, 1, MAX_SKETCH_SIZE)


def partitions_to_sample(n_partitions: int, seed: int) -> IntArray:
    """Numbers of the partitions that a plan looks into: 64 at most, from all along."""
    return spread(PLACES, n_partitions, seed)


def thinned(batches: Iterator[Any]) -> list[Any]:
    """Some batches from all along a partition: 100 000 rows and a batch more, at most."""
    kept: list[Any] = []
    stride = 1
    for number, batch in enumerate(batches):
        if number % stride == 0:
            kept.append(batch)
        if len(kept) > 1 and sum(batch.num_rows for batch in kept) > THINNED_ROWS:
            kept, stride = kept[::2], 2 * stride
    return kept


def plan_rows_of_partition(
    partition: Any, reading: Reading, planning: Planning, *, where: str
) -> bytes | None:
    """Draw rows of one partition, by a hash of what they hold.

    Parameters
    ----------
    partition : array, frame, Arrow table, or list of such blocks
        Is read twice; may be empty.
    reading : Reading
        Without a spec.
    planning : Planning
        Says how many rows, and has the seed.
    where : str
        Name of the partition for messages.

    Returns
    -------
    rows : bytes or None
        max(2000, 20 k) rows at most. None for a list without blocks, whose columns nobody knows.
    """
    with naming(where):
        blocks = blocks_of(partition)
        if blocks is None:
            return None
        source = reading.open(blocks)
        sample = draw_sample(
            source, planning.n_clusters, seed=planning.seed, on_invalid=reading.on_invalid
        )
    return _Drawn(source.columns, sample).to_bytes()


def merge_plan_rows(parts: Iterable[bytes | None], planning: Planning) -> bytes | None:
    """Of the rows of several partitions, those to draw from all of them.

    Parameters
    ----------
    parts : iterable of bytes or None
        Drawn with this planning, or merged from such; taken one at a time.
    planning : Planning
        Says how many rows.

    Returns
    -------
    rows : bytes or None
        The same in whichever order partitions are merged; None if there are none.
    """
    merged: _Drawn | None = None
    for part in parts:
        if part is not None:
            drawn = _Drawn.from_bytes(part)
            merged = drawn if merged is None else merged.with_rows_of(drawn, planning)
    return None if merged is None else merged.to_bytes()


def plan_spec(rows: bytes | None, planning: Planning) -> SketchSpec:
    """The spec that suits the rows drawn."""
    if rows is None:
        raise DataError("there are no rows to plan on. Check the path or the filter.")
    drawn = _Drawn.from_bytes(rows)
    return plan_sample(
        in_one_order(drawn.sample, seed=planning.seed),
        planning.n_clusters,
        columns=drawn.columns,
        sketch_size=planning.sketch_size,
        seed=planning.seed,
        standardize=planning.standardize,
    )


@dataclass(frozen=True)
class _Drawn:
    """Rows of some partitions, as many as a plan looks at or all there are; names of columns."""

    columns: tuple[str, ...] | None
    sample: PartSample

    def with_rows_of(self, other: _Drawn, planning: Planning) -> _Drawn:
        if self.columns != other.columns:
            msg = (
                f"partitions have different columns: {self.columns} and {other.columns}. "
                "Choose columns that all have with columns=[...]."
            )
            raise DataError(msg)
        n_rows = sample_size(planning.n_clusters)
        return _Drawn(self.columns, merge_parts([self.sample, other.sample], n_rows))

    def to_bytes(self) -> bytes:
        arrays = {name: array for name, array in vars(self.sample).items() if array is not None}
        if self.columns is not None:
            arrays["columns"] = np.array(self.columns)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> _Drawn:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {"weights": None, **file}
        columns = arrays.pop("columns", None)
        return cls(None if columns is None else tuple(columns.tolist()), PartSample(**arrays))


# What travels as bytes or text, for engines that move no objects: sketches, tables, errors.

RAISED = re.compile(r"sketchshift\.errors\.(\w+): (.*?)(?=\n\s*(?:SQLSTATE|\n)|\Z)", re.DOTALL)
MISSING = re.compile(r"No module named '(sketchshift|numpy|scipy|numba|pyarrow|narwhals)\b")


def merge_sketch_bytes(parts: Iterable[bytes]) -> bytes | None:
    """The sketch of several parts together; None if there are no parts.

    Parameters
    ----------
    parts : iterable of bytes
        Sketches, taken one at a time.
    """
    merged: Sketch | None = None
    for part in map(Sketch.from_bytes, parts):
        merged = part if merged is None else merged + part
    return None if merged is None else merged.to_bytes()


def merge_table_bytes(parts: Iterable[bytes]) -> bytes | None:
    """The table of several parts together; None if there are no parts.

    Parameters
    ----------
    parts : iterable of bytes
        Of :func:`table_to_bytes`, taken one at a time.
    """
    merged: SketchTable | None = None
    for part in map(table_from_bytes, parts):
        merged = part if merged is None else merged + part
    return None if merged is None else table_to_bytes(merged)


def table_to_bytes(table: SketchTable) -> bytes:
    """A table as a stream of Arrow, with the types of its keys."""
    rows, sink = table.to_arrow(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(sink.getvalue())


def table_from_bytes(data: bytes) -> SketchTable:
    """What :func:`table_to_bytes` wrote."""
    with pa.ipc.open_stream(data) as stream:
        return SketchTable.from_arrow(stream.read_all())


@contextmanager
def own_errors(report: type[Exception]) -> Iterator[None]:
    """Raise what a worker raised, not an engine's report of it.

    Parameters
    ----------
    report : type
        What the engine raises; its text holds the worker's traceback.
    """
    try:
        yield
    except report as error:
        text = str(error)
        missing, raised = MISSING.search(text), RAISED.search(text)
        if missing is not None:
            msg = (
                f"the workers have no {missing[1]}. Install sketchshift where they run, in the "
                "version of this process."
            )
            raise MissingDependencyError(msg) from error
        kind = None if raised is None else getattr(sketchshift.errors, raised[1], None)
        if raised is None or kind is None:
            raise
        raise kind(raised[2].strip()) from error
