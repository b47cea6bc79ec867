"""Spark frames, classic and Connect: Arrow batches in, one row of bytes out of each partition.

Rows never leave the executor that reads them. What is shuffled is one sketch for each partition,
or for each partition and key; a few merged ones, or one for each key, reach the driver. Uses the
frame's own methods only, so that the same code runs through Spark Connect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sketchshift._validation import parameter_error
from sketchshift.engines import Function, Merge
from sketchshift.engines.driver import (
    cannot_read,
    check_keys,
    choose_partitions,
    raise_own_errors,
    table_of_partition,
    thin_out,
)
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, SketchTable
from sketchshift.sketch.file import plan_text
from sketchshift.sketch.keys import Key, read_keys
from sketchshift.sketch.reading import Planning, Reading
from sketchshift.sketch.slices import add_keys
from sketchshift.sketch.totals import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkEngine", "register", "sketch_frame"]

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


@dataclass(frozen=True)
class _Partitions:
    """The columns of a frame that are read, numbered; and a table of no rows with their names."""

    frame: DataFrame
    empty: pa.Table
    reading: Reading
    is_sample: bool = False


class SparkEngine:
    """The engine of Spark."""

    checks_collections = True

    def partitions(
        self, collection: Any, reading: Reading, planning: Planning | None = None
    ) -> _Partitions:
        """The columns to read; for a plan, of some of the files only.

        What is wrong with them is found before any partition is read. Numbered, since Spark passes
        no names with dots or backticks to Python, and takes names that differ in case for the same.
        """
        _check_frame(collection)
        reading.check_weight_name("Spark frame")
        empty = _without_rows(collection)
        names = reading.column_names(empty)
        assert names is not None
        frame = collection if planning is None else _of_some_files(collection, planning.seed)
        numbered = frame.toDF(*map(str, range(empty.num_columns)))
        chosen = [str(empty.column_names.index(name)) for name in names]
        selected = numbered.select(*chosen)
        return _Partitions(selected, empty.select(names), reading, planning is not None)

    def map(self, function: Function, partitions: _Partitions) -> DataFrame:
        """A frame with one row of bytes for each partition."""
        names, reading = partitions.empty.column_names, partitions.reading
        is_sample = partitions.is_sample

        def read(batches: Batches) -> Batches:
            named = _restore_names(batches, names)
            rows = thin_out(named) if is_sample else _join_batches(named, reading.block_rows)
            part = function(rows, reading, where=_task_name())
            yield pa.record_batch({"part": pa.array([part], pa.binary())})

        return partitions.frame.mapInArrow(read, "part binary")

    def reduce(self, merge: Merge, results: DataFrame) -> bytes | None:
        """The parts merged into 16 at most by the executors, and these into one here."""
        merger = (sql.spark_partition_id() % MERGERS).alias("merger")
        merged = results.groupBy(merger).agg(_aggregate_of(merge)("part").alias("part"))
        return merge(_collect(merged.select("part"))["part"].to_pylist())


def _check_frame(df: Any) -> None:
    if not isinstance(df, DataFrame):
        raise cannot_read(df, "Spark", "Spark DataFrame")
    if df.isStreaming:
        msg = (
            "a stream has no end to wait for. Sketch its micro-batches: "
            "df.writeStream.foreachBatch(lambda batch, number: ...)."
        )
        raise DataError(msg)


def _without_rows(df: DataFrame) -> pa.Table:
    try:
        return _collect(df.limit(0))
    except PySparkTypeError as cause:
        msg = (
            f"Spark cannot hand all columns of this frame to Python ({cause}). Leave such columns "
            "out with df.select(...), or cast them."
        )
        raise DataError(msg) from cause


def _of_some_files(df: DataFrame, seed: int) -> DataFrame:
    """At most 64 of the files of a plain scan, spread over all; any other frame as it is."""
    files = sorted(df.inputFiles())
    chosen = [files[i] for i in choose_partitions(len(files), seed).tolist()]
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


def _restore_names(batches: Batches, names: Sequence[str]) -> Batches:
    """Batches of numbered columns, with their names again and times in UTC."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([_in_utc(c) for c in batch.columns], names=list(names))


def _in_utc(column: Any) -> Any:
    """The same instants in UTC, as files have them: workers get them in the session's zone."""
    kind = column.type
    has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
    return column.cast(pa.timestamp(kind.unit, "UTC")) if has_zone else column


def _collect(df: DataFrame) -> pa.Table:
    """All rows, brought to the driver, where Spark gives times in UTC."""
    with raise_own_errors(PySparkException):
        return df.toArrow()


def _aggregate_of(merge: Merge) -> Any:
    """An aggregate of Spark's over the results of partitions; it holds one batch at a time."""

    def aggregate(arrays: Iterator[pa.Array]) -> bytes | None:
        return merge(part.as_py() for array in arrays for part in array if part.is_valid)

    # Spark looks at the types themselves, and annotations are texts in this module.
    aggregate.__annotations__ = {"arrays": Iterator[pa.Array], "return": bytes}
    return sql.arrow_udf(aggregate, "binary")


def _slices(plans: pa.Array, sketches: pa.Array) -> SketchTable:
    """The rows of a table of sketches, by their numbers; those that are null are left out."""
    rows = pa.table({"row": range(len(sketches)), "plan": plans, "sketch": sketches})
    return SketchTable.from_arrow(rows.filter(sketches.is_valid()))


def _merge_agg(finish: Callable[[Sketch], bytes]) -> Any:
    """An aggregate of Spark's over the columns ``plan`` and ``sketch``; holds one batch at a time.

    Parameters
    ----------
    finish : callable
        What becomes of the sum.
    """

    def aggregate(batches: Iterator[tuple[pa.Array, pa.Array]]) -> bytes | None:
        tables = (_slices(*batch) for batch in batches)
        parts = [table.merge() for table in tables if len(table)]
        return finish(sum(parts[1:], parts[0])) if parts else None

    hints = {"batches": Iterator[tuple[pa.Array, pa.Array]], "return": bytes}
    aggregate.__annotations__ = hints
    return sql.arrow_udf(aggregate, "binary")


def _slice_of(sketch: Sketch) -> bytes:
    """A sketch as the column ``sketch`` of a table has it."""
    row = SketchTable.of(pa.table({"row": [0]}), [sketch]).to_arrow()["sketch"][0]
    return bytes(row.as_py())


def _slice_counts() -> Any:
    """A function of Spark's from plans and slices to their numbers of rows."""

    def counts(plans: pa.Array, sketches: pa.Array) -> pa.Array:
        return pa.array(_slices(plans, sketches).counts)

    counts.__annotations__ = {"plans": pa.Array, "sketches": pa.Array, "return": pa.Array}
    return sql.arrow_udf(counts, "bigint")


def _count_of() -> Any:
    """A function of Spark's from sketches to their numbers of rows."""

    def counts(sketches: pa.Array) -> pa.Array:
        found = [Sketch.from_bytes(s.as_py()).count if s.is_valid else None for s in sketches]
        return pa.array(found, pa.int64())

    counts.__annotations__ = {"sketches": pa.Array, "return": pa.Array}
    return sql.arrow_udf(counts, "bigint")


def _join_batches(batches: Batches, n_rows: int | None) -> Iterator[pa.Table]:
    """Batches joined until they have ``n_rows``: rows with one key lie closer together."""
    n_rows = n_rows or 1
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= n_rows:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _schema_of_parts(empty: pa.Table, keys: Sequence[Key]) -> types.StructType:
    """Columns of the sketches by key that a worker gives for a partition."""
    no_slices = SketchTable(pa.table(read_keys(empty, keys)), None).to_arrow()
    schema = no_slices.drop_columns(["count", "plan"]).schema
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def _task_name() -> str:
    """The partition that this worker reads, for messages."""
    task = TaskContext.get()
    return "a partition" if task is None else f"partition {task.partitionId()}"


def sketch_frame(
    df: DataFrame,
    by: str | Sequence[str],
    spec: SketchSpec,
    **options: Any,
) -> DataFrame:
    """The sketches of a frame by key, left in Spark: to be written, joined or selected from.

    Parameters
    ----------
    df : DataFrame
        Classic or Connect. The executors need this package.
    by, spec
        As in :func:`sketchshift.sketch_by`.
    **options
        ``columns``, ``sample_weight``, ``on_invalid`` and ``kernel``, as in
        :func:`sketchshift.sketch_by`.

    Returns
    -------
    frame : DataFrame
        Columns of the key, ``count``, ``plan`` and ``sketch``, as :func:`sketchshift.load` reads
        them. Computed when it is used.
    """
    reading = add_keys(Reading(spec, **options), by)
    reading.require_spec()
    check_keys(reading)
    partitions = SparkEngine().partitions(df, reading)
    names = partitions.empty.column_names

    def read(batches: Batches) -> Batches:
        larger = _join_batches(_restore_names(batches, names), reading.block_rows)
        table = table_of_partition(larger, reading, where=_task_name())
        if table is not None:
            yield from table.to_arrow().drop_columns(["count", "plan"]).to_batches()

    keys = [str(i) for i in range(len(reading.keys))]  # numbered, as all columns are
    schema = _schema_of_parts(partitions.empty, reading.keys)
    parts = partitions.frame.mapInArrow(read, schema).toDF(*keys, "sketch")
    plan = sql.lit(plan_text(spec.fingerprint, Layout.of(spec)).decode())
    merged = parts.groupBy(*keys).agg(_merge_agg(_slice_of)(plan, "sketch").alias("sketch"))
    counted = merged.select(*keys, _slice_counts()(plan, "sketch"), plan, "sketch")
    return counted.toDF(*reading.key_names, "count", "plan", "sketch")


def register(session: SparkSession) -> None:
    """Make two functions over stored sketches known to SQL.

    ``sketch_merge_agg(plan, sketch)`` is the sketch of all rows of a group, as bytes that
    :meth:`sketchshift.Sketch.from_bytes` reads, and ``sketch_count`` the number of rows in such.
    Nulls are left out. As any aggregate in Python, ``sketch_merge_agg`` cannot stand beside Spark's
    own (``count(*)``) in one query.

    Parameters
    ----------
    session : SparkSession
        Classic or Connect.
    """
    if not hasattr(session, "udf"):  # classic and Connect have no class in common
        raise parameter_error("register", "session", "a SparkSession", session)
    session.udf.register("sketch_merge_agg", _merge_agg(Sketch.to_bytes))
    session.udf.register("sketch_count", _count_of())
