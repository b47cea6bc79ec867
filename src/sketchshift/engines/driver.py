"""The one driver of all engines: plans and sketches from partitions, ``map`` and ``reduce``.

What a worker does with one partition is here, and how the results of partitions become one. They
travel as bytes, whose size does not grow with the partition. Merging is associative and
commutative, so any tree of merges will do, and a partition that is read again after a fault gives
what it gave before. Knows no engine.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

import sketchshift.errors
from sketchshift._typing import IntArray
from sketchshift.data.sample import PLACES, PartSample, in_one_order, merge_parts, spread
from sketchshift.engines import Engine
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher, SketchTable
from sketchshift.sketch.plan import draw_sample, plan_sample
from sketchshift.sketch.reading import Planning, Reading
from sketchshift.sketch.sketcher import check_result, sketcher_for
from sketchshift.sketch.slices import check_room, slices_of

__all__ = [
    "Driver",
    "cannot_read",
    "check_keys",
    "choose_partitions",
    "merge_plan_rows",
    "merge_sketches",
    "merge_tables",
    "plan_rows_of_partition",
    "raise_own_errors",
    "sketch_partition",
    "sketch_partition_by",
    "table_of_partition",
    "thin_out",
]


class Driver:
    """Plans and sketches of collections, by an engine.

    Parameters
    ----------
    engine : Engine
        Finds partitions, maps a function over them, and reduces the results.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._checks_itself = getattr(engine, "checks_collections", False)

    def plan(self, collection: Any, reading: Reading, planning: Planning) -> SketchSpec:
        """A spec that suits a collection; 200,000 rows at most travel for each partition."""
        if reading.labels is not None:
            check_keys(reading)
        reading = self._guard(collection, reading)
        draw = partial(plan_rows_of_partition, planning=planning)
        merge = partial(merge_plan_rows, planning=planning)
        partitions = self._engine.partitions(collection, reading, planning)
        rows = self._engine.reduce(merge, self._engine.map(draw, partitions))
        if rows is None:
            raise DataError("there are no rows to plan on. Check the path or the filter.")
        drawn = _Drawn.from_bytes(rows)
        sample = in_one_order(drawn.sample, seed=planning.seed)
        return plan_sample(sample, planning, drawn.columns, reading.recipe)

    def sketch(self, collection: Any, reading: Reading) -> Sketch:
        """The sketch of a collection; one sketch travels for each partition."""
        spec, reading = reading.require_spec(), self._guard(collection, reading)
        result = self._read(sketch_partition, merge_sketches, collection, reading)
        whole = Sketcher(spec).sketch() if result is None else Sketch.from_bytes(result)
        check_result(whole, is_weighted=reading.is_weighted)
        return whole

    def sketch_by(self, collection: Any, reading: Reading) -> SketchTable:
        """A sketch for each value of a key; for each partition and key, one travels."""
        reading.require_spec()
        check_keys(reading)
        reading = self._guard(collection, reading)
        result = self._read(sketch_partition_by, merge_tables, collection, reading)
        if result is None:
            raise DataError("there are no rows to sketch. Check the path or the filter.")
        table = SketchTable.from_bytes(result)
        check_result(table.merge(), is_weighted=reading.is_weighted)
        return table

    def _guard(self, collection: Any, reading: Reading) -> Reading:
        """Refuse weights that no partition could find; let each partition look at its columns."""
        if self._checks_itself:
            return reading
        reading.check_weight_name(type(collection).__name__)
        return replace(reading, has_schema=False)

    def _read(self, function: Any, merge: Any, collection: Any, reading: Reading) -> bytes | None:
        partitions = self._engine.partitions(collection, reading)
        return self._engine.reduce(merge, self._engine.map(function, partitions))


def check_keys(reading: Reading) -> None:
    """Refuse labels of rows in place of columns of the key."""
    if not reading.keys:
        msg = (
            "by must be the name of a column, or a list of names: labels from here do not reach "
            f"rows on other machines. Got {type(reading.labels).__name__} instead."
        )
        raise DataError(msg)


def cannot_read(collection: Any, engine: str, wanted: str) -> DataError:
    """The exception for what is no collection of the engine's."""
    msg = (
        f"cannot read a {type(collection).__name__} with {engine}. Pass a {wanted}; for other data "
        "there is sketchshift.sketch."
    )
    return DataError(msg)


# What a worker does with one partition.


def sketch_partition(partition: Any, reading: Reading, *, where: str) -> bytes:
    """The sketch of one partition, on one thread: the engine decides how many run at a time.

    A task that is run again after a fault gives the same bytes: nothing is kept between tasks, and
    an engine merges one result of each partition.

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
    sketch : bytes
        O(n m d) time; memory beside the partition does not grow with it.
    """
    sketcher = sketcher_for(reading, n_threads=1)
    with name_partition(where):
        blocks = _blocks_of(partition)
        if blocks is not None:
            source = reading.open(blocks)
            reading.check_order(source)
            sketcher.update(source)
    return sketcher.sketch().to_bytes()


def sketch_partition_by(partition: Any, reading: Reading, *, where: str) -> bytes | None:
    """The table of :func:`table_of_partition`, as bytes."""
    table = table_of_partition(partition, reading, where=where)
    return None if table is None else table.to_bytes()


def table_of_partition(partition: Any, reading: Reading, *, where: str) -> SketchTable | None:
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
    with name_partition(where):
        blocks = _blocks_of(partition)
        if blocks is None:
            return None
        source = reading.open(blocks)
        reading.check_order(source)
        table = slices_of(source, reading)
    return table if len(table) else None


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
        As many as a plan looks at, at most. None for a list without blocks, whose columns are
        unknown, and for lists in place of rows that have no length.
    """
    with name_partition(where):
        blocks = _blocks_of(partition)
        if blocks is None:
            return None
        source = reading.open(blocks)
        if not source.n_features:
            return None
        sample = draw_sample(source, planning, reading.on_invalid)
    return _Drawn(source.columns, sample).to_bytes()


def _blocks_of(partition: Any) -> Any:
    """The partition as ``data`` reads it; None for a list or iterator that has no blocks."""
    if isinstance(partition, list | tuple):
        return partition or None
    if not isinstance(partition, Iterator) or hasattr(partition, "__arrow_c_stream__"):
        return partition
    first = next(partition, None)
    return None if first is None else chain([first], partition)


@contextmanager
def name_partition(where: str) -> Iterator[None]:
    """Rows are counted within a partition, so a message must name it."""
    try:
        yield
    except DataError as error:
        raise type(error)(f"{where}: {error}") from None


# Fewer rows than all, for a plan.

THINNED_ROWS = 100_000
"""Rows of a partition that a plan draws from, where a partition is a stream of batches."""


def choose_partitions(n_partitions: int, seed: int) -> IntArray:
    """Numbers of the partitions that a plan looks into: 64 at most, from all along."""
    return spread(PLACES, n_partitions, seed)


def thin_out(batches: Iterator[Any]) -> list[Any]:
    """Some batches from all along a partition: 100 000 rows and a batch more, at most."""
    held: list[Any] = []
    stride = 1
    for number, batch in enumerate(batches):
        if number % stride == 0:
            held.append(batch)
        if len(held) > 1 and sum(batch.num_rows for batch in held) > THINNED_ROWS:
            held, stride = held[::2], 2 * stride
    return held


# How results of partitions become one.


def merge_sketches(parts: Iterable[bytes | None]) -> bytes | None:
    """The sketch of several parts together; None if there are no parts.

    Parameters
    ----------
    parts : iterable of bytes or None
        Sketches, taken one at a time.
    """
    merged: Sketch | None = None
    for part in parts:
        if part is not None:
            sketch = Sketch.from_bytes(part)
            merged = sketch if merged is None else merged + sketch
    return None if merged is None else merged.to_bytes()


def merge_tables(parts: Iterable[bytes | None]) -> bytes | None:
    """The table of several parts together; None if there are no parts.

    Parameters
    ----------
    parts : iterable of bytes or None
        Of :meth:`SketchTable.to_bytes`, taken one at a time.
    """
    merged: SketchTable | None = None
    for part in parts:
        if part is None:
            continue
        table = SketchTable.from_bytes(part)
        if merged is not None:
            held = merged.n_bytes + table.n_bytes
            check_room(len(merged) + len(table), table.by, 3.0 * held, held)
            table = merged + table
        merged = table
    return None if merged is None else merged.to_bytes()


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
        d = self.sample.values.shape[1]
        merged = merge_parts([self.sample, other.sample], planning.n_rows(d))
        return _Drawn(self.columns, merged)

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


# Errors of workers, for engines that report them as text.

RAISED = re.compile(r"sketchshift\.errors\.(\w+): (.*?)(?=\n\s*(?:SQLSTATE|\n)|\Z)", re.DOTALL)
MISSING = re.compile(r"No module named '(sketchshift|numpy|scipy|sklearn|pyarrow|narwhals)\b")


@contextmanager
def raise_own_errors(report: type[Exception]) -> Iterator[None]:
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
