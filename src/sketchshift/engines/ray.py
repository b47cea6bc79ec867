"""Ray datasets: Arrow blocks in, one row of bytes out of each, merged by an aggregate.

A block is sketched by the task that read it, so that rows do not enter the object store; what
travels is one sketch for each block, or for each block and key.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sketchshift._validation import check_integer, check_number
from sketchshift.engines.driver import (
    Planning,
    Reading,
    cannot_read,
    check_slices,
    check_spec,
    checked_sketch,
    checked_table,
    keys_of,
    merge_plan_rows,
    merge_sketch_bytes,
    merge_table_bytes,
    merge_tables,
    own_errors,
    partitions_to_sample,
    plan_rows_of_partition,
    plan_spec,
    sketch_partition,
    sketch_partition_by,
    table_from_bytes,
    table_to_bytes,
)
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher, SketchTable

if TYPE_CHECKING:
    import ray.data

__all__ = [
    "WHERE",
    "MaterializedDataset",
    "MergeBytes",
    "MergeSketches",
    "SketchRows",
    "aggregated",
    "collected",
    "merged_by_key",
    "one_row",
    "plan",
    "ray",
    "select",
    "sketch",
    "sketch_by",
    "sketch_dataset",
    "spread_blocks",
]

# Sketches as aggregates of Ray's, for ``Dataset.aggregate`` and ``groupby().aggregate``.

try:
    import ray.data
    from ray.data.aggregate import AggregateFn, AggregateFnV2
    from ray.data.block import BlockAccessor
    from ray.data.dataset import MaterializedDataset
except ImportError as cause:
    msg = 'sketchshift.engines.ray needs Ray Data. Install it: pip install "sketchshift[ray]".'
    raise MissingDependencyError(msg) from cause


Merge = Callable[[Iterable[bytes]], bytes | None]
BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_null)
WHERE = "a block"
"""Name for messages: Ray does not number blocks."""


class MergeBytes(AggregateFnV2[bytes, bytes]):  # type: ignore[misc]
    """Adds up a column of bytes; missing ones are left out."""

    def __init__(self, merge: Merge, *, on: str, name: str) -> None:
        self._merge = merge
        super().__init__(name, lambda: b"", on=on, ignore_nulls=True)

    def aggregate_block(self, block: Any) -> bytes | None:
        """What the rows of one block add up to; None if there are none."""
        name = self.get_target_column()
        column = BlockAccessor.for_block(block).to_arrow().column(name)
        if not any(is_kind(column.type) for is_kind in BYTES):
            msg = f"column {name!r} holds {column.type}, not sketches as bytes. Name one that does."
            raise DataError(msg)
        return self._merge(part for part in column.to_pylist() if part)

    def combine(self, current_accumulator: bytes, new: bytes) -> bytes | None:
        """Two results as one."""
        return self._merge(part for part in (current_accumulator, new) if part)


class MergeSketches(MergeBytes):
    """The aggregate of stored sketches, for ``aggregate`` and ``groupby().aggregate``.

    Parameters
    ----------
    on : str, default="sketch"
        Column that holds sketches as bytes.
    name : str, default="sketch"
        Column of the result, again sketches as bytes.
    """

    def __init__(self, on: str = "sketch", *, name: str = "sketch") -> None:
        super().__init__(merge_sketch_bytes, on=on, name=name)


class SketchRows(AggregateFn):  # type: ignore[misc]
    """The aggregate of rows, for ``aggregate`` and ``groupby().aggregate``: beside others.

    ``sketch`` and ``sketch_by`` give the same bytes at less cost, since Ray sorts every block
    by the key before it aggregates. Not an ``AggregateFnV2``: that reads one column, and Ray
    drops the others before it groups.

    Parameters
    ----------
    spec : SketchSpec
        What is summed; it should name its columns, so that the key is not among them.
    name : str, default="sketch"
        Column of the result: sketches as bytes; of no rows, the sketch of none.
    **options
        ``columns``, ``sample_weight``, ``on_invalid`` and ``kernel``, as in :func:`sketch`.
    """

    def __init__(self, spec: SketchSpec, *, name: str = "sketch", **options: Any) -> None:
        reading = Reading(check_spec(spec), **options)

        def add(total: bytes, block: Any) -> bytes | None:
            table = BlockAccessor.for_block(block).to_arrow()
            return merge(total, sketch_partition(table, reading, where=WHERE).to_bytes())

        def merge(left: bytes, right: bytes) -> bytes | None:
            return merge_sketch_bytes(part for part in (left, right) if part)

        def finalize(total: bytes) -> bytes:
            return total or Sketcher(spec).sketch().to_bytes()  # of no rows

        super().__init__(
            init=lambda _: b"", merge=merge, accumulate_block=add, finalize=finalize, name=name
        )


# The two stages of every Ray job here: blocks to rows of bytes, and their merge.

MERGERS = 16
"""Tasks that merge sketches by key, unless ``num_partitions`` says otherwise."""

GPU_ROWS = 2**20
"""Rows that go to a GPU at a time, unless ``batch_size`` says otherwise."""


def select(dataset: ray.data.Dataset, reading: Reading) -> ray.data.Dataset:
    """The columns to read; what is wrong with them is found before any block is read."""
    if not isinstance(dataset, ray.data.Dataset):
        raise cannot_read(dataset, "Ray", "ray.data.Dataset")
    reading.check_weight_name("Ray dataset")
    schema = dataset.schema()
    if schema is None:
        raise DataError("the dataset has no rows and no columns. Check the path or the filter.")
    fields = dict(zip(schema.names, schema.types, strict=True))
    _refuse_tensors(fields, reading)
    known = {n: k if isinstance(k, pa.DataType) else pa.binary() for n, k in fields.items()}
    return dataset.select_columns(reading.names(pa.schema(known).empty_table()))


def _refuse_tensors(fields: dict[str, Any], reading: Reading) -> None:
    """Ray makes a column of tensors of an array of shape (n, d)."""
    of_spec = None if reading.spec is None else reading.spec.columns
    for name in reading.columns or of_spec or fields:
        kind = fields.get(name)
        if isinstance(kind, pa.BaseExtensionType) and hasattr(kind, "shape"):
            msg = (
                f"column {name!r} holds tensors of shape {tuple(kind.shape)}, not numbers. Give "
                "each number a column of its own: dataset.map_batches(lambda block: dict(zip("
                f"names, block[{name!r}].T)))."
            )
            raise DataError(msg)


def spread_blocks(dataset: ray.data.Dataset, seed: int) -> ray.data.Dataset:
    """Some blocks from all along a dataset that lies in memory; any other as it is."""
    if not isinstance(dataset, MaterializedDataset):
        return dataset
    blocks = dataset.to_arrow_refs()
    chosen = partitions_to_sample(len(blocks), seed)
    return ray.data.from_arrow_refs([blocks[i] for i in chosen.tolist()])


def aggregated(
    dataset: ray.data.Dataset,
    read: Callable[[pa.Table], pa.Table],
    merge: MergeBytes,
    **remote: Any,
) -> bytes | None:
    """What ``read`` makes of the blocks, merged into one."""
    with own_errors(ray.exceptions.RayError):
        merged = mapped(dataset, read, **remote).aggregate(merge)
    return None if merged is None else merged[merge.name]


def mapped(
    dataset: ray.data.Dataset,
    read: Callable[[pa.Table], pa.Table],
    *,
    num_gpus: float | None = None,
    batch_size: int | None = None,
    **remote: Any,
) -> ray.data.Dataset:
    """What ``read`` makes of the blocks, by tasks with the resources asked for."""
    if num_gpus is not None:
        check_number("engines.ray", "num_gpus", num_gpus, low=0)
    if batch_size is not None:
        check_integer("engines.ray", "batch_size", batch_size, 1, 2**31)
    elif num_gpus:
        batch_size = GPU_ROWS
    return dataset.map_batches(
        read, batch_size=batch_size, batch_format="pyarrow", num_gpus=num_gpus, **remote
    )


def collected(dataset: ray.data.Dataset) -> list[pa.Table]:
    """All blocks that have rows, brought here."""
    with own_errors(ray.exceptions.RayError):
        return [block for block in ray.get(dataset.to_arrow_refs()) if block.num_rows]


def merged_by_key(
    dataset: ray.data.Dataset,
    read: Callable[[pa.Table], SketchTable | None],
    num_partitions: int | None,
    **remote: Any,
) -> ray.data.Dataset:
    """One row for each key, of the tables that ``read`` makes of the blocks.

    Ray turns the values of a key into objects of Python, and cannot turn times back. So it groups
    by the number of the task that merges a key, and tables travel as bytes.
    """
    n_tasks = MERGERS if num_partitions is None else num_partitions
    check_integer("engines.ray", "num_partitions", n_tasks, 1, 2**20)

    def parts(block: pa.Table) -> pa.Table:
        table = read(block)
        tables = {} if table is None else _by_task(table, n_tasks)
        numbers = pa.array(list(tables), pa.int64())
        return pa.table({"task": numbers, "table": pa.array(list(tables.values()), pa.binary())})

    groups = mapped(dataset, parts, **remote).groupby("task", num_partitions=n_tasks)
    merged = groups.aggregate(MergeBytes(merge_table_bytes, on="table", name="table"))
    return merged.map_batches(_rows_of_tables, batch_size=None, batch_format="pyarrow")


def _by_task(table: SketchTable, n_tasks: int) -> dict[int, bytes]:
    """The slices that each task merges: equal keys go to the same, from whichever worker."""
    rows: dict[int, list[int]] = {}
    for row, (key, _) in enumerate(table):
        rows.setdefault(zlib.crc32(repr(key).encode()) % n_tasks, []).append(row)
    return {
        task: table_to_bytes(SketchTable(table.keys.take(at), tuple(table.sketches[i] for i in at)))
        for task, at in rows.items()
    }


def _rows_of_tables(block: pa.Table) -> pa.Table:
    first, *others = map(table_from_bytes, block.column("table").to_pylist())
    return sum(others, first).to_arrow()


def one_row(name: str, part: bytes | None) -> pa.Table:
    """What a block gives, as a block."""
    return pa.table({name: pa.array([part], pa.binary())})


def plan(
    dataset: ray.data.Dataset,
    n_clusters: int,
    *,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    standardize: bool = False,
    on_invalid: str = "raise",
) -> SketchSpec:
    """A spec that suits a Ray dataset.

    Parameters
    ----------
    dataset : ray.data.Dataset
        Of a materialized one, at most 64 blocks are looked into, spread over all of them. Any
        other is read once, the chosen columns only: Ray cannot leave a reading task early. For
        files, :func:`sketchshift.plan` reads less, without Ray.
    n_clusters, sketch_size, seed, columns, standardize, on_invalid
        As in :func:`sketchshift.plan`.
    sample_weight : str or None
        Name of the column that holds the weights.

    Returns
    -------
    spec : SketchSpec
        Depends on the rows of each block, not on their order. Every row is equally likely to be
        among the max(2000, 20 k) that the plan looks at, as many travel for each block.
    """
    planning = Planning(n_clusters, sketch_size, seed, standardize)
    reading = Reading(columns=columns, sample_weight=sample_weight, on_invalid=on_invalid)
    chosen = select(spread_blocks(dataset, seed), reading)

    def draw(block: pa.Table) -> pa.Table:
        return one_row("rows", plan_rows_of_partition(block, reading, planning, where=WHERE))

    merge = MergeBytes(partial(merge_plan_rows, planning=planning), on="rows", name="rows")
    return plan_spec(aggregated(chosen, draw, merge), planning)


def sketch(
    dataset: ray.data.Dataset,
    spec: SketchSpec,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    on_invalid: str = "raise",
    kernel: str = "auto",
    num_gpus: float | None = None,
    **remote: Any,
) -> Sketch:
    """Read a Ray dataset once, where its blocks lie, and give its sketch.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The workers need this package.
    spec : SketchSpec
        What is summed. If it names columns, only those are read.
    columns, on_invalid, kernel
        As in :func:`sketchshift.sketch`.
    sample_weight : str or None
        Name of the column that holds the weights.
    num_gpus : float or None
        GPUs that each sketching task takes. Such tasks run apart from the reading ones, on
        workers with a GPU, and blocks travel to them through the object store.
    **remote
        More for ``Dataset.map_batches``: ``batch_size`` (whole blocks, or 2**20 rows for a GPU),
        ``num_cpus``, ``concurrency``, ``memory``, ...

    Returns
    -------
    sketch : Sketch
        The bytes of :func:`sketchshift.sketch` of the same rows, however they are cut and
        whichever worker died on the way. Each block sends one sketch of 16 m + O(d^2) bytes.
    """
    reading = Reading(check_spec(spec), columns, sample_weight, on_invalid, kernel)
    chosen = select(dataset, reading)

    def read(block: pa.Table) -> pa.Table:
        return one_row("sketch", sketch_partition(block, reading, where=WHERE).to_bytes())

    whole = aggregated(chosen, read, MergeSketches(), num_gpus=num_gpus, **remote)
    result = Sketcher(spec).sketch() if whole is None else Sketch.from_bytes(whole)
    return checked_sketch(result, reading)


def sketch_by(
    dataset: ray.data.Dataset,
    by: str | Sequence[str],
    spec: SketchSpec,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    max_slices: int = 10_000,
    on_invalid: str = "raise",
    kernel: str = "auto",
    num_gpus: float | None = None,
    num_partitions: int | None = None,
    **remote: Any,
) -> SketchTable:
    """Read a Ray dataset once and give a sketch for each value of a key.

    Parameters
    ----------
    dataset, spec, columns, sample_weight, on_invalid, kernel, num_gpus, **remote
        As in :func:`sketch`.
    by : str or sequence of str
        Columns of the key, or times cut down to a unit, as in :func:`sketchshift.sketch_by`.
    max_slices : int, default=10_000
        More values than that are an error; for more, there is :func:`sketch_dataset`.
    num_partitions : int or None
        Tasks that merge; None takes 16. One holds the sketches that all blocks send for its keys.

    Returns
    -------
    table : SketchTable
        The table that :func:`sketchshift.sketch_by` gives for the same rows. Each block sends one
        sketch for each key that it has, and one for each key reaches the driver.
    """
    reading = Reading(
        check_spec(spec), columns, sample_weight, on_invalid, kernel, keys_of(by), max_slices
    )
    merged = _merged_by_key(dataset, reading, num_partitions, num_gpus=num_gpus, **remote)
    blocks = collected(merged)
    instead = ", or leave them in Ray with sketch_dataset"
    check_slices(sum(block.num_rows for block in blocks), reading, instead=instead)
    return checked_table(merge_tables(map(SketchTable.from_arrow, blocks)), reading)


def sketch_dataset(
    dataset: ray.data.Dataset,
    by: str | Sequence[str],
    spec: SketchSpec,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    max_slices: int = 10_000,
    on_invalid: str = "raise",
    kernel: str = "auto",
    num_gpus: float | None = None,
    num_partitions: int | None = None,
    **remote: Any,
) -> ray.data.Dataset:
    """The sketches of a dataset by key, left in Ray: to be written or aggregated further.

    Parameters
    ----------
    dataset, by, spec, columns, sample_weight, on_invalid, kernel
        As in :func:`sketch_by`.
    num_gpus, num_partitions, **remote
        As in :func:`sketch_by`.
    max_slices : int, default=10_000
        Most values of the key in one block: its worker holds a sketch for each.

    Returns
    -------
    sketches : ray.data.Dataset
        Columns of the key, ``count`` and ``sketch``, as
        :meth:`sketchshift.SketchTable.from_parquet` reads them. Computed when it is used.
    """
    reading = Reading(
        check_spec(spec), columns, sample_weight, on_invalid, kernel, keys_of(by), max_slices
    )
    return _merged_by_key(dataset, reading, num_partitions, num_gpus=num_gpus, **remote)


def _merged_by_key(
    dataset: ray.data.Dataset, reading: Reading, num_partitions: int | None, **remote: Any
) -> ray.data.Dataset:
    """One sketch for each key, of the sketches by key that blocks give."""

    def read(block: pa.Table) -> SketchTable | None:
        return sketch_partition_by(block, reading, where=WHERE)

    return merged_by_key(select(dataset, reading), read, num_partitions, **remote)
