"""Spark frames, classic and Connect: Arrow batches in, one row of bytes out of each partition.

Rows never leave the executor that reads them. What is shuffled is one sketch for each partition,
or for each partition and key; a few merged ones, or one for each key, reach the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sketchshift._validation import parameter_error
from sketchshift.engines.driver import (
    Planning,
    Reading,
    cannot_read,
    check_slices,
    check_spec,
    checked_sketch,
    checked_table,
    key_and_spec,
    keys_of,
    merge_plan_rows,
    merge_sketch_bytes,
    own_errors,
    partitions_to_sample,
    plan_rows_of_partition,
    plan_spec,
    sketch_partition,
    sketch_partition_by,
    thinned,
)
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher, SketchTable
from sketchshift.sketch.keys import Key, read_keys
from sketchshift.sketch.slices import rows_of_block

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Batches",
    "aggregate_of",
    "collect",
    "count_of",
    "fold",
    "in_larger_batches",
    "parts_schema",
    "plan",
    "register",
    "restored",
    "select",
    "sketch",
    "sketch_by",
    "sketch_frame",
    "task_name",
]

# The two stages of every Spark job here: Arrow batches to rows of bytes, and their merge.
#
# Uses the frame's own methods only, so that the same code runs through Spark Connect.

try:
    from pyspark import TaskContext
    from pyspark.errors import AnalysisException, PySparkException, PySparkTypeError
    from pyspark.sql import DataFrame, types
    from pyspark.sql import functions as sql
    from pyspark.sql.pandas.types import from_arrow_schema
except ImportError as cause:
    msg = 'sketchshift.engines.spark needs Spark. Install it: pip install "sketchshift[spark]".'
    raise MissingDependencyError(msg) from cause


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
    no_slices = SketchTable(pa.table(read_keys(empty, keys)), ()).to_arrow()
    return from_arrow_schema(no_slices.drop_columns("count").schema, prefer_timestamp_ntz=True)


def task_name() -> str:
    """The partition that this worker reads, for messages."""
    task = TaskContext.get()
    return "a partition" if task is None else f"partition {task.partitionId()}"


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
