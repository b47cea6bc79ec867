"""The two stages of every Spark job here: Arrow batches to rows of bytes, and their merge.

Uses the frame's own methods only, so that the same code runs through Spark Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from sketchshift.engines.plan_rows import partitions_to_sample
from sketchshift.engines.reading import Reading, cannot_read
from sketchshift.engines.travel import own_errors
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.sketch import Sketch, SketchTable
from sketchshift.sketch.keys import Key, taken

try:
    from pyspark import TaskContext
    from pyspark.errors import AnalysisException, PySparkException, PySparkTypeError
    from pyspark.sql import DataFrame, types
    from pyspark.sql import functions as sql
    from pyspark.sql.pandas.types import from_arrow_schema
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
    "restored",
    "select",
    "task_name",
]

MERGERS = 16
"""Tasks that merge what partitions give, before the driver does."""

Batches = Iterator[pa.RecordBatch]
Merge = Callable[[Iterator[bytes]], bytes | None]

ROW_BY_ROW = {
    "Filter",
    "Project",
    "Repartition",
    "RepartitionByExpression",
    "Sort",
    "SubqueryAlias",
    "View",
}
"""Steps of a plan of Spark's that leave each row the one of its file, or leave it out."""


def select(
    df: DataFrame, reading: Reading, *, files_seed: int | None = None
) -> tuple[DataFrame, pa.Table]:
    """The columns to read, numbered; and a table of no rows with their names and types.

    What is wrong with them is found before any partition is read. Numbered, since Spark passes
    no names with dots or backticks to Python, and takes names that differ in case for the same.
    With a seed, of some of the files only.
    """
    if not isinstance(df, DataFrame):
        raise cannot_read(df, "Spark", "Spark DataFrame")
    if df.isStreaming:
        msg = (
            "a stream has no end to wait for. Sketch its micro-batches: "
            "df.writeStream.foreachBatch(lambda batch, number: ...)."
        )
        raise DataError(msg)
    reading.check_weight_name("Spark frame")
    empty = _without_rows(df)
    names = reading.names(empty)
    assert names is not None
    frame = df if files_seed is None else _of_some_files(df, files_seed)
    numbered = frame.toDF(*map(str, range(empty.num_columns)))
    chosen = [str(empty.column_names.index(name)) for name in names]
    return numbered.select(*chosen), empty.select(names)


def _without_rows(df: DataFrame) -> pa.Table:
    try:
        return collect(df.limit(0))
    except PySparkTypeError as cause:
        msg = (
            f"Spark cannot hand all columns of this frame to Python ({cause}). Leave such columns "
            "out with df.select(...), or cast them."
        )
        raise DataError(msg) from cause


def _of_some_files(df: DataFrame, seed: int) -> DataFrame:
    """At most 64 of the files of a plain scan, spread over all; any other frame as it is."""
    files = sorted(df.inputFiles())
    chosen = [files[i] for i in partitions_to_sample(len(files), seed).tolist()]
    if len(chosen) == len(files):
        return df
    written = [*chosen, *(file.replace("file:///", "file:/", 1) for file in chosen)]  # both occur
    try:
        if not _is_plain_scan(df):
            return df
        some = df.where(sql.col("_metadata.file_path").isin(written))
        return df if some.isEmpty() else some
    except AnalysisException:  # what is not read as it lies in the files has no such column
        return df


def _is_plain_scan(df: DataFrame) -> bool:
    """Whether each row is a row of one file: joined ones may be of no file, or of two.

    Told by the text of Spark's plan, the one thing that classic and Connect both show. It is a
    chain of known steps down to one relation; a text of any other form is no plain scan.
    """
    explained = df.sparkSession.sql("EXPLAIN EXTENDED SELECT * FROM {df}", df=df)
    analyzed = explained.collect()[0][0].partition("== Analyzed Logical Plan ==")[2]
    tree = analyzed.partition("== Optimized Logical Plan ==")[0].partition("\nProject [")[2]
    lines = tree.strip().splitlines()[1:]
    steps = [line.strip().removeprefix("+- ").split(" ")[0] for line in lines]
    return steps[-1:] == ["Relation"] and ROW_BY_ROW.issuperset(steps[:-1])


def restored(batches: Batches, names: Sequence[str]) -> Batches:
    """Batches of numbered columns, with their names again and times in UTC."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([_in_utc(c) for c in batch.columns], names=list(names))


def _in_utc(column: Any) -> Any:
    """The same instants in UTC, as files have them: workers get them in the session's zone."""
    kind = column.type
    has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
    return column.cast(pa.timestamp(kind.unit, "UTC")) if has_zone else column


def fold(
    df: DataFrame,
    names: Sequence[str],
    read: Callable[[Batches], bytes | None],
    merge: Merge,
) -> list[bytes]:
    """What ``read`` makes of the partitions of a selected frame, merged into a few."""

    def rows(batches: Batches) -> Batches:
        part = read(restored(batches, names))
        yield pa.record_batch({"part": pa.array([part], pa.binary())})

    parts = df.mapInArrow(rows, "part binary")
    merger = (sql.spark_partition_id() % MERGERS).alias("merger")
    merged = parts.groupBy(merger).agg(aggregate_of(merge)("part").alias("part"))
    collected = collect(merged.select("part"))["part"].to_pylist()
    return [part for part in collected if part is not None]


def collect(df: DataFrame) -> pa.Table:
    """All rows, brought to the driver, where Spark gives times in UTC."""
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


def parts_schema(empty: pa.Table, keys: Sequence[Key]) -> types.StructType:
    """Columns of the sketches by key that a worker gives for a partition."""
    no_slices = SketchTable(pa.table(taken(empty, keys)), ()).to_arrow()
    return from_arrow_schema(no_slices.drop_columns("count").schema, prefer_timestamp_ntz=True)


def task_name() -> str:
    """The partition that this worker reads, for messages."""
    task = TaskContext.get()
    return "a partition" if task is None else f"partition {task.partitionId()}"
