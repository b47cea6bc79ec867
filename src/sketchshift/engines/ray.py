"""Ray datasets: Arrow blocks in, one row of bytes out of each, merged by an aggregate.

A block is sketched by the task that read it, so that rows do not enter the object store; what
travels is one sketch for each block, or for each block and key.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sketchshift._validation import check_integer, check_number
from sketchshift.engines import Function, Merge
from sketchshift.engines.driver import (
    Driver,
    cannot_read,
    check_keys,
    check_slices,
    choose_partitions,
    merge_sketches,
    merge_tables,
    raise_own_errors,
    sketch_partition,
    table_from_bytes,
    table_of_partition,
    table_to_bytes,
)
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher, SketchTable
from sketchshift.sketch.reading import Planning, Reading
from sketchshift.sketch.slices import add_keys

if TYPE_CHECKING:
    import ray.data

__all__ = [
    "MergeBytes",
    "MergeSketches",
    "RayEngine",
    "SketchRows",
    "plan",
    "sketch",
    "sketch_by",
    "sketch_dataset",
]

try:
    import ray.data
    from ray.data.aggregate import AggregateFn, AggregateFnV2
    from ray.data.block import BlockAccessor
    from ray.data.dataset import MaterializedDataset
except ImportError as cause:
    msg = 'sketchshift.engines.ray needs Ray Data. Install it: pip install "sketchshift[ray]".'
    raise MissingDependencyError(msg) from cause


# Sketches as aggregates of Ray's, for ``Dataset.aggregate`` and ``groupby().aggregate``.

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
        super().__init__(merge_sketches, on=on, name=name)


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
        reading = Reading(spec, **options)
        reading.require_spec()

        def add(total: bytes, block: Any) -> bytes | None:
            table = BlockAccessor.for_block(block).to_arrow()
            return merge(total, sketch_partition(table, reading, where=WHERE))

        def merge(left: bytes, right: bytes) -> bytes | None:
            return merge_sketches(part for part in (left, right) if part)

        def finalize(total: bytes) -> bytes:
            return total or Sketcher(spec).sketch().to_bytes()  # of no rows

        super().__init__(
            init=lambda _: b"", merge=merge, accumulate_block=add, finalize=finalize, name=name
        )


# The engine: blocks to rows of bytes, and their merge.

MERGERS = 16
"""Tasks that merge sketches by key, unless ``num_partitions`` says otherwise."""

GPU_ROWS = 2**20
"""Rows that go to a GPU at a time, unless ``batch_size`` says otherwise."""


@dataclass(frozen=True)
class _Blocks:
    """The columns of a dataset that are read."""

    dataset: ray.data.Dataset
    reading: Reading


class RayEngine:
    """The engine of Ray.

    Parameters
    ----------
    num_gpus : float or None
        GPUs that each sketching task takes.
    batch_size : int or None
        Rows that a task sketches at a time; None takes whole blocks, or 2**20 rows for a GPU.
    num_partitions : int or None
        Tasks that merge sketches by key; None takes 16.
    **remote
        More for ``Dataset.map_batches``.
    """

    checks_collections = True

    def __init__(
        self,
        num_gpus: float | None = None,
        batch_size: int | None = None,
        num_partitions: int | None = None,
        **remote: Any,
    ) -> None:
        if num_gpus is not None:
            check_number("engines.ray", "num_gpus", num_gpus, low=0)
        if batch_size is not None:
            check_integer("engines.ray", "batch_size", batch_size, 1, 2**31)
        elif num_gpus:
            batch_size = GPU_ROWS
        self._n_mergers = MERGERS if num_partitions is None else num_partitions
        check_integer("engines.ray", "num_partitions", self._n_mergers, 1, 2**20)
        self._remote = {"num_gpus": num_gpus, "batch_size": batch_size, **remote}

    def partitions(
        self, collection: Any, reading: Reading, planning: Planning | None = None
    ) -> _Blocks:
        """The columns to read; for a plan, of some blocks of a dataset that lies in memory."""
        if not isinstance(collection, ray.data.Dataset):
            raise cannot_read(collection, "Ray", "ray.data.Dataset")
        reading.check_weight_name("Ray dataset")
        schema = collection.schema()
        if schema is None:
            raise DataError("the dataset has no rows and no columns. Check the path or the filter.")
        fields = dict(zip(schema.names, schema.types, strict=True))
        _refuse_tensors(fields, reading)
        known = {n: k if isinstance(k, pa.DataType) else pa.binary() for n, k in fields.items()}
        names = reading.column_names(pa.schema(known).empty_table())
        if planning is not None:
            collection = _some_blocks(collection, planning.seed)
        return _Blocks(collection.select_columns(names), reading)

    def map(self, function: Function, partitions: _Blocks) -> ray.data.Dataset:
        """A dataset with one row of bytes for each block."""
        reading = partitions.reading

        def read(block: pa.Table) -> pa.Table:
            part = function(block, reading, where=WHERE)
            return pa.table({"part": pa.array([part], pa.binary())})

        return self._map_blocks(partitions.dataset, read)

    def reduce(self, merge: Merge, results: ray.data.Dataset) -> bytes | None:
        """What an aggregate makes of all rows."""
        with raise_own_errors(ray.exceptions.RayError):
            merged = results.aggregate(MergeBytes(merge, on="part", name="part"))
        return None if merged is None else merged["part"]

    def tables_by_key(self, collection: Any, reading: Reading) -> list[SketchTable]:
        """The tables of the tasks that merge by key."""
        merged = self.merge_by_key(collection, reading)
        with raise_own_errors(ray.exceptions.RayError):
            blocks = [block for block in ray.get(merged.to_arrow_refs()) if block.num_rows]
        instead = ", or leave them in Ray with sketch_dataset"
        check_slices(sum(block.num_rows for block in blocks), reading, instead=instead)
        return [SketchTable.from_arrow(block) for block in blocks]

    def merge_by_key(self, dataset: ray.data.Dataset, reading: Reading) -> ray.data.Dataset:
        """One row for each key, of the tables that blocks give.

        Ray turns the values of a key into objects of Python, and cannot turn times back. So it
        groups by the number of the task that merges a key, and tables travel as bytes.
        """
        check_keys(reading)
        n_tasks, blocks = self._n_mergers, self.partitions(dataset, reading)

        def read(block: pa.Table) -> pa.Table:
            table = table_of_partition(block, reading, where=WHERE)
            tables = {} if table is None else _by_task(table, n_tasks)
            parts = pa.array(list(tables.values()), pa.binary())
            return pa.table({"task": pa.array(list(tables), pa.int64()), "table": parts})

        parts = self._map_blocks(blocks.dataset, read)
        groups = parts.groupby("task", num_partitions=n_tasks)
        merged = groups.aggregate(MergeBytes(merge_tables, on="table", name="table"))
        return merged.map_batches(_rows_of_tables, batch_size=None, batch_format="pyarrow")

    def _map_blocks(
        self, dataset: ray.data.Dataset, read: Callable[[pa.Table], pa.Table]
    ) -> ray.data.Dataset:
        """What ``read`` makes of the blocks, by tasks with the resources asked for."""
        return dataset.map_batches(read, batch_format="pyarrow", **self._remote)


def _some_blocks(dataset: ray.data.Dataset, seed: int) -> ray.data.Dataset:
    """Some blocks from all along a dataset that lies in memory; any other as it is."""
    if not isinstance(dataset, MaterializedDataset):
        return dataset
    blocks = dataset.to_arrow_refs()
    chosen = choose_partitions(len(blocks), seed)
    return ray.data.from_arrow_refs([blocks[i] for i in chosen.tolist()])


def _refuse_tensors(fields: dict[str, Any], reading: Reading) -> None:
    """Ray makes a column of tensors of an array of more than one dimension; vectors are read."""
    for name in reading.names or fields:
        kind = fields.get(name)
        if isinstance(kind, pa.BaseExtensionType) and len(getattr(kind, "shape", ())) > 1:
            msg = (
                f"column {name!r} holds tensors of shape {tuple(kind.shape)}, not numbers. Make "
                "each a vector: dataset.map_batches(lambda block: "
                f"{{{name!r}: block[{name!r}].reshape(len(block[{name!r}]), -1)}})."
            )
            raise DataError(msg)


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


def plan(
    dataset: ray.data.Dataset,
    n_clusters: int,
    *,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    standardize: bool = False,
    cells: bool = True,
    metric: str = "euclidean",
    on_invalid: str = "raise",
) -> SketchSpec:
    """A spec that suits a Ray dataset.

    Parameters
    ----------
    dataset : ray.data.Dataset
        Of a materialized one, at most 64 blocks are looked into, spread over all of them. Any
        other is read once, the chosen columns only: Ray cannot leave a reading task early. For
        files, :func:`sketchshift.plan` reads less, without Ray.
    n_clusters, sketch_size, seed, columns, standardize, cells, metric, on_invalid
        As in :func:`sketchshift.plan`.
    sample_weight : str or None
        Name of the column that holds the weights.

    Returns
    -------
    spec : SketchSpec
        Depends on the rows of each block, not on their order. Every row is equally likely to be
        among the 200,000 that the plan looks at, as many travel for each block.
    """
    planning = Planning(n_clusters, sketch_size, seed, standardize, cells, metric)
    reading = Reading(columns=columns, sample_weight=sample_weight, on_invalid=on_invalid)
    return Driver(RayEngine()).plan(dataset, reading, planning)


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
    reading = Reading(spec, columns, sample_weight, on_invalid, kernel)
    return Driver(RayEngine(num_gpus, **remote)).sketch(dataset, reading)


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
    reading = Reading(spec, columns, sample_weight, on_invalid, kernel, max_slices=max_slices)
    engine = RayEngine(num_gpus, num_partitions=num_partitions, **remote)
    return Driver(engine).sketch_by(dataset, add_keys(reading, by))


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
    reading = Reading(spec, columns, sample_weight, on_invalid, kernel, max_slices=max_slices)
    reading.require_spec()
    engine = RayEngine(num_gpus, num_partitions=num_partitions, **remote)
    return engine.merge_by_key(dataset, add_keys(reading, by))
