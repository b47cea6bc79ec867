"""The two stages of every Spark job here: Arrow batches to rows of bytes, and their merge.

Uses the frame's own methods only, so that the same code runs through Spark Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from sketchshift.data import open_source
from sketchshift.engines.partitions import partitions_to_sample
from sketchshift.engines.travel import own_errors
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.sketch import Sketch

try:
    from pyspark import TaskContext
    from pyspark.errors import AnalysisException, PySparkException
    from pyspark.sql import DataFrame, types
    from pyspark.sql import functions as sql
except ImportError as cause:
    msg = 'sketchshift.engines.spark needs Spark. Install it: pip install "sketchshift[spark]".'
    raise MissingDependencyError(msg) from cause

__all__ = [
    "Batches",
    "aggregate_of",
    "collect",
    "count_of",
    "fold",
    "in_larger_batches",
    "parts_schema",
    "quoted",
    "renamed",
    "select",
    "task_name",
]

MERGERS = 16
"""Tasks that merge what partitions give, before the driver does."""

Batches = Iterator[pa.RecordBatch]
Merge = Callable[[Iterator[bytes]], bytes | None]


def select(
    df: DataFrame,
    *,
    columns: Sequence[str] | None,
    default_columns: Sequence[str] | None,
    sample_weight: str | None,
    by: Sequence[str] = (),
    files_seed: int | None = None,
) -> tuple[DataFrame, list[str]]:
    """The columns to read, numbered, and their names.

    What is wrong with them is found before any partition is read. Numbered, since Spark passes
    no names with dots or backticks to Python. With a seed, of some of the files only.
    """
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
        keys=by or None,
    )
    assert checked.columns is not None
    weights = [] if sample_weight is None else [sample_weight]
    names = list(dict.fromkeys([*by, *checked.columns, *weights]))
    numbered = (sql.col(quoted(name)).alias(str(i)) for i, name in enumerate(names))
    return (df if files_seed is None else _of_some_files(df, files_seed)).select(*numbered), names


def _of_some_files(df: DataFrame, seed: int) -> DataFrame:
    """At most 64 of the files that a frame reads, spread over all; any other frame as it is."""
    files = sorted(df.inputFiles())
    chosen = [files[i] for i in partitions_to_sample(len(files), seed).tolist()]
    if len(chosen) == len(files):
        return df
    written = [*chosen, *(file.replace("file:///", "file:/", 1) for file in chosen)]  # both occur
    try:
        some = df.where(sql.col("_metadata.file_path").isin(written))
        return df if some.isEmpty() else some
    except AnalysisException:  # what is not read as it lies in the files has no such column
        return df


def renamed(batches: Batches, names: Sequence[str]) -> Batches:
    """Batches of numbered columns, with their names again."""
    return (pa.RecordBatch.from_arrays(batch.columns, names=list(names)) for batch in batches)


def fold(
    df: DataFrame,
    names: Sequence[str],
    read: Callable[[Batches], bytes | None],
    merge: Merge,
) -> list[bytes]:
    """What ``read`` makes of the partitions of a selected frame, merged into a few."""

    def rows(batches: Batches) -> Batches:
        part = read(renamed(batches, names))
        yield pa.record_batch({"part": pa.array([part], pa.binary())})

    parts = df.mapInArrow(rows, "part binary")
    merger = (sql.spark_partition_id() % MERGERS).alias("merger")
    merged = parts.groupBy(merger).agg(aggregate_of(merge)("part").alias("part"))
    collected = collect(merged.select("part"))["part"].to_pylist()
    return [part for part in collected if part is not None]


def collect(df: DataFrame) -> pa.Table:
    """All rows, brought to the driver."""
    with own_errors(PySparkException):
        return df.toArrow()


def aggregate_of(merge: Merge) -> Any:
    """An aggregate of Spark's over a column of bytes; it holds one batch at a time."""

    def aggregate(arrays: Iterator[pa.Array]) -> bytes | None:
        return merge(part.as_py() for array in arrays for part in array if part.is_valid)

    # Spark looks at the types themselves, and annotations are texts in this module.
    aggregate.__annotations__ = {"arrays": Iterator[pa.Array], "return": bytes}
    return sql.arrow_udf(aggregate, "binary")


def count_of() -> Any:
    """A function of Spark's from sketches to their numbers of rows."""

    def counts(sketches: pa.Array) -> pa.Array:
        found = [Sketch.from_bytes(s.as_py()).count if s.is_valid else None for s in sketches]
        return pa.array(found, pa.int64())

    counts.__annotations__ = {"sketches": pa.Array, "return": pa.Array}
    return sql.arrow_udf(counts, "bigint")


def in_larger_batches(batches: Batches, n_rows: int) -> Iterator[pa.Table]:
    """Batches joined until they have ``n_rows``: rows with one key lie closer together."""
    joined: list[pa.RecordBatch] = []
    for batch in batches:
        joined.append(batch)
        if sum(part.num_rows for part in joined) >= n_rows:
            yield pa.Table.from_batches(joined)
            joined = []
    if joined:
        yield pa.Table.from_batches(joined)


def parts_schema(schema: types.StructType, names: Sequence[str]) -> types.StructType:
    """Keys as they leave a worker, which widens numbers, and sketches beside them."""
    fields = types.StructType()
    for name, field in zip(names, schema, strict=False):  # keys come first
        kind = field.dataType
        if isinstance(kind, types.IntegralType):
            kind = types.LongType()
        elif isinstance(kind, types.FractionalType) and not isinstance(kind, types.DecimalType):
            kind = types.DoubleType()
        fields = fields.add(name, kind)
    return fields.add("sketch", types.BinaryType())


def task_name() -> str:
    """The partition that this worker reads, for messages."""
    task = TaskContext.get()
    return "a partition" if task is None else f"partition {task.partitionId()}"


def quoted(name: str) -> str:
    """A column's name as Spark reads it whatever stands in it."""
    return "`" + name.replace("`", "``") + "`"
