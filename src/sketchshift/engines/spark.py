"""Spark frames, classic and Connect: Arrow batches in, one row of bytes out of each partition.

Rows never leave the executor that reads them. What is shuffled is one sketch for each partition,
or for each partition and key; a few merged ones, or one for each key, reach the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from sketchshift.engines.partitions import (
    PlanRows,
    plan_rows_of_partition,
    plan_spec,
    sketch_partition,
    sketch_partition_by,
    thinned,
)
from sketchshift.engines.spark_stages import (
    Batches,
    aggregate_of,
    collect,
    count_of,
    fold,
    in_larger_batches,
    parts_schema,
    quoted,
    renamed,
    select,
    task_name,
)
from sketchshift.engines.travel import merge_plan_bytes, merge_sketch_bytes
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher, SketchTable
from sketchshift.sketch.one_pass import check_result
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
        Of one that reads files, at most 64 of these are read, spread over all of them; any other
        is read once, the chosen columns only.
    n_clusters : int
        Number k of clusters, or the largest one that will be asked for.
    sketch_size, seed, columns, standardize, on_invalid
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
    options: dict[str, Any] = {"columns": columns, "sample_weight": sample_weight}
    chosen, names = select(df, default_columns=None, files_seed=seed, **options)

    def draw(batches: Batches) -> bytes | None:
        rows = plan_rows_of_partition(
            thinned(batches),
            n_clusters,
            seed=seed,
            where=task_name(),
            on_invalid=on_invalid,
            **options,
        )
        return None if rows is None else rows.to_bytes()

    merge = partial(merge_plan_bytes, n_clusters=n_clusters)
    rows = merge(fold(chosen, names, draw, merge))
    return plan_spec(
        None if rows is None else PlanRows.from_bytes(rows),
        n_clusters,
        sketch_size=sketch_size,
        seed=seed,
        standardize=standardize,
    )


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
    columns : sequence of str or None
        Columns to read, by name; None takes the spec's, or all.
    sample_weight : str or None
        Name of the column that holds the weights.
    on_invalid : {"raise", "skip"}
        What to do with rows that hold NaN or infinity.
    kernel : {"auto", "cpu", "cuda", "reference"}
        Where the sums are computed.

    Returns
    -------
    sketch : Sketch
        The bytes of :func:`sketchshift.sketch` of the same rows, however they are cut and
        whichever task was tried again. Each partition sends one sketch, and 16 at most reach
        the driver.
    """
    options: dict[str, Any] = {"columns": columns, "sample_weight": sample_weight}
    chosen, names = select(df, default_columns=spec.columns, **options)

    def read(batches: Batches) -> bytes:
        part = sketch_partition(
            batches, spec, where=task_name(), on_invalid=on_invalid, kernel=kernel, **options
        )
        return part.to_bytes()

    parts = [Sketch.from_bytes(part) for part in fold(chosen, names, read, merge_sketch_bytes)]
    result = sum(parts, Sketcher(spec).sketch())
    check_result(result, is_weighted=sample_weight is not None)
    return result


def sketch_by(
    df: DataFrame,
    spec: SketchSpec,
    by: str | Sequence[str],
    *,
    max_slices: int = 10_000,
    **options: Any,
) -> SketchTable:
    """Read a Spark frame once and give a sketch for each value of a key.

    Parameters
    ----------
    df, spec
        As in :func:`sketch`.
    by : str or sequence of str
        Columns of the key.
    max_slices : int, default=10_000
        More values than that are an error; for more, there is :func:`sketch_frame`.
    **options
        ``columns``, ``sample_weight``, ``on_invalid`` and ``kernel``, as in :func:`sketch`.

    Returns
    -------
    table : SketchTable
        The table that :func:`sketchshift.sketch_by` gives for the same rows. One sketch for each
        key reaches the driver.
    """
    frame = sketch_frame(df, spec, by, max_slices=max_slices, **options)
    collected = collect(frame.limit(max_slices + 1))
    if collected.num_rows > max_slices:
        msg = (
            f"there are more than {max_slices:,} slices by {by}, and each is a sketch. Take a "
            "coarser key, allow more with max_slices, or leave them in Spark with sketch_frame."
        )
        raise DataError(msg)
    if not collected.num_rows:
        raise DataError("there are no rows to sketch. Check the path or the filter.")
    table = SketchTable.from_arrow(collected)
    check_result(table.merge(), is_weighted=options.get("sample_weight") is not None)
    return table


def sketch_frame(
    df: DataFrame,
    spec: SketchSpec,
    by: str | Sequence[str],
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
    df, spec, columns, sample_weight, on_invalid, kernel
        As in :func:`sketch`.
    by : str or sequence of str
        Columns of the key.
    max_slices : int, default=10_000
        Most values of the key in one partition: its worker holds a sketch for each.

    Returns
    -------
    frame : DataFrame
        Columns of the key, ``count`` and ``sketch``, as
        :meth:`sketchshift.SketchTable.from_parquet` reads them. Computed when it is used.
    """
    by = [by] if isinstance(by, str) else list(by)
    options: dict[str, Any] = {"columns": columns, "sample_weight": sample_weight}
    chosen, names = select(df, default_columns=spec.columns, by=by, **options)

    def read(batches: Batches) -> Batches:
        table = sketch_partition_by(
            in_larger_batches(renamed(batches, names), rows_of_block(spec)),
            by,
            spec,
            where=task_name(),
            max_slices=max_slices,
            on_invalid=on_invalid,
            kernel=kernel,
            **options,
        )
        if table is not None:
            yield from table.to_arrow().drop_columns("count").to_batches()

    parts = chosen.mapInArrow(read, parts_schema(chosen.schema, by))
    keys = [quoted(name) for name in by]
    merged = parts.groupBy(*keys).agg(aggregate_of(merge_sketch_bytes)("sketch").alias("sketch"))
    return merged.select(*keys, count_of()("sketch").alias("count"), "sketch")


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
    session.udf.register("sketch_merge_agg", aggregate_of(merge_sketch_bytes))
    session.udf.register("sketch_count", count_of())
