"""What a worker does with one partition, and how the sketches of partitions become one.

An engine cuts a collection into partitions, runs these functions where the partitions lie,
and moves the sketches that they return, whose size does not grow with the partition. Merging is
associative and commutative, so any tree of merges will do, and a partition that is read again
after a fault gives what it gave before. Knows no engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from sketchshift.engines.reading import Reading, check_spec
from sketchshift.errors import DataError
from sketchshift.sketch import Sketch, Sketcher, SketchTable
from sketchshift.sketch.one_pass import check_result
from sketchshift.sketch.slices import rows_of_block, slices_of

__all__ = [
    "blocks_of",
    "check_slices",
    "checked_sketch",
    "checked_table",
    "merge_sketches",
    "merge_tables",
    "naming",
    "sketch_partition",
    "sketch_partition_by",
]


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
