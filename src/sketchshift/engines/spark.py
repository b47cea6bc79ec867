"""Spark frames, classic and Connect: Arrow batches in, one row of bytes out of each partition.

Rows never leave the executor that reads them. What is shuffled is one sketch for each partition,
or for each partition and key; a few merged ones reach the driver. Uses the frame's own methods
only, so that the same code runs through Spark Connect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

import sketchshift.errors
from sketchshift.data import open_source
from sketchshift.engines.partitions import (
    PlanRows,
    head,
    merge_plan_rows,
    plan_rows_of_partition,
    plan_spec,
    sketch_partition,
)
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher
from sketchshift.sketch.one_pass import check_result

try:
    import pyspark.errors
    from pyspark import TaskContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as sql
except ImportError as cause:
    msg = 'sketchshift.engines.spark needs Spark. Install it: pip install "sketchshift[spark]".'
    raise MissingDependencyError(msg) from cause

__all__ = ["plan", "register", "sketch"]

MERGERS = 16
"""Tasks that merge what partitions give, before the driver does."""

Merge = Callable[[Iterator[bytes]], bytes | None]


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
    """A spec that suits a Spark frame, from the first rows of each of its partitions.

    Parameters
    ----------
    df : DataFrame
        Of each partition the first 100 000 rows are read, and the reading stops.
    n_clusters : int
        Number k of clusters, or the largest one that will be asked for.
    sketch_size, seed, columns, standardize, on_invalid
        As in :func:`sketchshift.plan`.
    sample_weight : str or None
        Name of the column that holds the weights.

    Returns
    -------
    spec : SketchSpec
        Depends on the rows of each partition, not on their order as long as all are read.
        Every row read is equally likely to be among the max(2000, 20 k) that the plan looks at.
    """
    options: dict[str, Any] = {"columns": columns, "sample_weight": sample_weight}
    chosen = _select(df, default_columns=None, **options)

    def draw(batches: Iterator[pa.RecordBatch]) -> bytes | None:
        rows = plan_rows_of_partition(
            head(batches), n_clusters, seed=seed, where=_where(), on_invalid=on_invalid, **options
        )
        return None if rows is None else rows.to_bytes()

    merge = partial(_merged_rows, n_clusters=n_clusters)
    rows = merge(iter(_fold(chosen, draw, merge)))
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
    kernel : {"auto", "cpu", "reference"}
        Where the sums are computed.

    Returns
    -------
    sketch : Sketch
        The bytes of :func:`sketchshift.sketch` of the same rows, however they are cut and
        whichever task was tried again. Each partition sends one sketch, and 16 at most reach
        the driver.
    """
    options: dict[str, Any] = {"columns": columns, "sample_weight": sample_weight}
    chosen = _select(df, default_columns=spec.columns, **options)

    def read(batches: Iterator[pa.RecordBatch]) -> bytes:
        return sketch_partition(
            batches, spec, where=_where(), on_invalid=on_invalid, kernel=kernel, **options
        ).to_bytes()

    parts = [Sketch.from_bytes(part) for part in _fold(chosen, read, _merged_sketches)]
    result = sum(parts, Sketcher(spec).sketch())
    check_result(result, is_weighted=sample_weight is not None)
    return result


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
    session.udf.register("sketch_merge_agg", _aggregate(_merged_sketches))
    session.udf.register("sketch_count", sql.arrow_udf(_counts, "bigint"))


def _select(
    df: DataFrame,
    *,
    columns: Sequence[str] | None,
    default_columns: Sequence[str] | None,
    sample_weight: str | None,
) -> DataFrame:
    """The columns to read; what is wrong with them is found before any partition is read."""
    if not isinstance(df, DataFrame):
        msg = (
            f"cannot read a {type(df).__name__} with Spark. Pass a Spark DataFrame; for other "
            "data there is sketchshift.sketch."
        )
        raise DataError(msg)
    if sample_weight is not None and not isinstance(sample_weight, str):
        msg = (
            "sample_weight must be the name of a column for a Spark frame. Got "
            f"{type(sample_weight).__name__} instead: add it as a column."
        )
        raise DataError(msg)
    checked = open_source(
        df.limit(0).toArrow(),
        columns=columns,
        default_columns=default_columns,
        weights=sample_weight,
    )
    assert checked.columns is not None
    names = [*checked.columns, *([] if sample_weight is None else [sample_weight])]
    return df.select(*(_quoted(name) for name in names))


def _fold(
    df: DataFrame, read: Callable[[Iterator[pa.RecordBatch]], bytes | None], merge: Merge
) -> list[bytes]:
    """What ``read`` makes of the partitions, merged into a few."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"part": pa.array([read(batches)], pa.binary())})

    parts = df.mapInArrow(rows, "part binary")
    merger = sql.spark_partition_id() % MERGERS
    merged = parts.groupBy(merger.alias("merger")).agg(_aggregate(merge)("part").alias("part"))
    with _own_errors():
        collected = merged.select("part").toArrow()["part"].to_pylist()
    return [part for part in collected if part is not None]


def _aggregate(merge: Merge) -> Any:
    """An aggregate of Spark's that holds one batch at a time."""

    def aggregate(arrays: Iterator[pa.Array]) -> bytes | None:
        return merge(part.as_py() for array in arrays for part in array if part.is_valid)

    # Spark looks at the types themselves, and annotations are texts in this module.
    aggregate.__annotations__ = {"arrays": Iterator[pa.Array], "return": bytes}
    return sql.arrow_udf(aggregate, "binary")


def _merged_sketches(parts: Iterator[bytes]) -> bytes | None:
    first = next(parts, None)
    if first is None:
        return None
    return sum((Sketch.from_bytes(part) for part in parts), Sketch.from_bytes(first)).to_bytes()


def _merged_rows(parts: Iterator[bytes], *, n_clusters: int) -> bytes | None:
    merged: PlanRows | None = None
    for part in parts:
        merged = merge_plan_rows([merged, PlanRows.from_bytes(part)], n_clusters)
    return None if merged is None else merged.to_bytes()


def _counts(sketches: pa.Array) -> pa.Array:
    counts = [Sketch.from_bytes(s.as_py()).count if s.is_valid else None for s in sketches]
    return pa.array(counts, pa.int64())


_counts.__annotations__ = {"sketches": pa.Array, "return": pa.Array}


def _where() -> str:
    task = TaskContext.get()
    return "a partition" if task is None else f"partition {task.partitionId()}"


def _quoted(name: str) -> str:
    """A column's name as Spark reads it whatever stands in it."""
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _own_errors() -> Iterator[None]:
    """Raise what a worker raised, not Spark's report of it."""
    try:
        yield
    except pyspark.errors.PySparkException as report:
        pattern = r"sketchshift\.errors\.(\w+): (.*?)(?=\n\s*(?:SQLSTATE|\n)|\Z)"
        found = re.search(pattern, str(report), re.DOTALL)
        if found is None:
            raise
        raise getattr(sketchshift.errors, found[1])(found[2].strip()) from report
