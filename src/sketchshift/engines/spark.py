"""Spark frames, classic and Connect: Arrow batches in, one row of bytes out of each partition.

Rows never leave the executor that reads them. What is shuffled is one sketch for each partition,
or for each partition and key; a few merged ones, or one for each key, reach the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sketchshift._validation import parameter_error
from sketchshift.engines.partitions import (
    check_slices,
    checked_sketch,
    checked_table,
    sketch_partition,
    sketch_partition_by,
)
from sketchshift.engines.plan_rows import (
    Planning,
    merge_plan_rows,
    plan_rows_of_partition,
    plan_spec,
    thinned,
)
from sketchshift.engines.reading import Reading, check_spec, key_and_spec, keys_of
from sketchshift.engines.spark_stages import (
    Batches,
    aggregate_of,
    collect,
    count_of,
    fold,
    in_larger_batches,
    parts_schema,
    restored,
    select,
    task_name,
)
from sketchshift.engines.travel import merge_sketch_bytes
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher, SketchTable
from sketchshift.sketch.slices import rows_of_block

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["plan", "register", "sketch", "sketch_by", "sketch_frame"]


def plan(
    df: DataFrame,
    n_clusters: int,
    *,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    standardize: bool = False,
    on_invalid: str = "raise",
) -> SketchSpec:
    """A spec that suits a Spark frame, from rows all along it.

    Parameters
    ----------
    df : DataFrame
        Of a plain scan of files (filtered, projected, sorted or repartitioned), at most 64 files
        are read, spread over all of them; any other is read once, the chosen columns only.
    n_clusters, sketch_size, seed, columns, standardize, on_invalid
        As in :func:`sketchshift.plan`.
    sample_weight : str or None
        Name of the column that holds the weights.

    Returns
    -------
    spec : SketchSpec
        Depends on the seed and on how the rows lie in partitions. Of a partition of more than
        100 000 rows so many are taken, from all along it; each row taken is equally likely to be
        among the max(2000, 20 k) that the plan looks at.
    """
    planning = Planning(n_clusters, sketch_size, seed, standardize)
    reading = Reading(columns=columns, sample_weight=sample_weight, on_invalid=on_invalid)
    chosen, empty = select(df, reading, files_seed=seed)

    def draw(batches: Batches) -> bytes | None:
        return plan_rows_of_partition(thinned(batches), reading, planning, where=task_name())

    merge = partial(merge_plan_rows, planning=planning)
    return plan_spec(merge(fold(chosen, empty.column_names, draw, merge)), planning)


def sketch(
    df: DataFrame,
    spec: SketchSpec,
    columns: Sequence[str] | None = None,
    *,
    sample_weight: str | None = None,
    on_invalid: str = "raise",
    kernel: str = "auto",
) -> Sketch:
    """Read a Spark frame once, where its partitions lie, and give its sketch.

    Parameters
    ----------
    df : DataFrame
        Classic or Connect. The executors need this package.
    spec : SketchSpec
        What is summed. If it names columns, only those are read.
    columns, on_invalid, kernel
        As in :func:`sketchshift.sketch`.
    sample_weight : str or None
        Name of the column that holds the weights.

    Returns
    -------
    sketch : Sketch
        The bytes of :func:`sketchshift.sketch` of the same rows, however they are cut and
        whichever task was tried again. Each partition sends one sketch of 16 m + O(d^2) bytes,
        and 16 at most reach the driver.
    """
    reading = Reading(check_spec(spec), columns, sample_weight, on_invalid, kernel)
    chosen, empty = select(df, reading)

    def read(batches: Batches) -> bytes:
        return sketch_partition(batches, reading, where=task_name()).to_bytes()

    parts = fold(chosen, empty.column_names, read, merge_sketch_bytes)
    return checked_sketch(sum(map(Sketch.from_bytes, parts), Sketcher(spec).sketch()), reading)


def sketch_by(
    df: DataFrame,
    by: str | Sequence[str],
    spec: SketchSpec,
    columns: Sequence[str] | None = None,
    *,
    sample_weight: str | None = None,
    max_slices: int = 10_000,
    on_invalid: str = "raise",
    kernel: str = "auto",
) -> SketchTable:
    """Read a Spark frame once and give a sketch for each value of a key.

    Parameters
    ----------
    df, spec, columns, sample_weight, on_invalid, kernel
        As in :func:`sketch`.
    by : str or sequence of str
        Columns of the key, or times cut down to a unit, as in :func:`sketchshift.sketch_by`.
        Timestamps are cut in UTC, whatever the session's time zone; those without a zone
        (TIMESTAMP_NTZ) as they stand. ``by`` and ``spec`` may change places.
    max_slices : int, default=10_000
        More values than that are an error; for more, there is :func:`sketch_frame`.

    Returns
    -------
    table : SketchTable
        The table that :func:`sketchshift.sketch_by` gives for the same rows. Each partition sends
        one sketch for each key that it has, and one for each key reaches the driver.
    """
    by, spec = key_and_spec(by, spec)
    reading = Reading(
        check_spec(spec), columns, sample_weight, on_invalid, kernel, keys_of(by), max_slices
    )
    collected = collect(_merged_by_key(df, reading).limit(max_slices + 1))
    instead = ", or leave them in Spark with sketch_frame"
    check_slices(collected.num_rows, reading, instead=instead)
    table = SketchTable.from_arrow(collected) if collected.num_rows else None
    return checked_table(table, reading)


def sketch_frame(
    df: DataFrame,
    by: str | Sequence[str],
    spec: SketchSpec,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    max_slices: int = 10_000,
    on_invalid: str = "raise",
    kernel: str = "auto",
) -> DataFrame:
    """The sketches of a frame by key, left in Spark: to be written, joined or selected from.

    Parameters
    ----------
    df, by, spec, columns, sample_weight, on_invalid, kernel
        As in :func:`sketch_by`.
    max_slices : int, default=10_000
        Most values of the key in one partition: its worker holds a sketch for each.

    Returns
    -------
    frame : DataFrame
        Columns of the key, ``count`` and ``sketch``, as
        :meth:`sketchshift.SketchTable.from_parquet` reads them. Computed when it is used.
    """
    by, spec = key_and_spec(by, spec)
    reading = Reading(
        check_spec(spec), columns, sample_weight, on_invalid, kernel, keys_of(by), max_slices
    )
    return _merged_by_key(df, reading)


def _merged_by_key(df: DataFrame, reading: Reading) -> DataFrame:
    """One sketch for each key, of the sketches by key that partitions give."""
    chosen, empty = select(df, reading)
    names, n_rows = empty.column_names, rows_of_block(reading.spec)

    def read(batches: Batches) -> Batches:
        larger = in_larger_batches(restored(batches, names), n_rows)
        table = sketch_partition_by(larger, reading, where=task_name())
        if table is not None:
            yield from table.to_arrow().drop_columns("count").to_batches()

    keys = [str(i) for i in range(len(reading.keys))]  # numbered, as in select
    parts = chosen.mapInArrow(read, parts_schema(empty, reading.keys)).toDF(*keys, "sketch")
    merged = parts.groupBy(*keys).agg(aggregate_of(merge_sketch_bytes)("sketch").alias("sketch"))
    counted = merged.select(*keys, count_of()("sketch"), "sketch")
    return counted.toDF(*reading.key_names, "count", "sketch")


def register(session: SparkSession) -> None:
    """Make two functions over stored sketches known to SQL.

    ``sketch_merge_agg(sketch)`` is the sketch of all rows of a group, as bytes, and
    ``sketch_count(sketch)`` the number of rows in a sketch. Nulls are left out. As any aggregate
    in Python, ``sketch_merge_agg`` cannot stand beside Spark's own (``count(*)``) in one query.

    Parameters
    ----------
    session : SparkSession
        Classic or Connect.
    """
    if not hasattr(session, "udf"):  # classic and Connect have no class in common
        raise parameter_error("register", "session", "a SparkSession", session)
    session.udf.register("sketch_merge_agg", aggregate_of(merge_sketch_bytes))
    session.udf.register("sketch_count", count_of())
