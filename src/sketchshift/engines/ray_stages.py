"""The two stages of every Ray job here: blocks to rows of bytes, and their merge."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from sketchshift._validation import check_integer, check_number
from sketchshift.engines.plan_rows import partitions_to_sample
from sketchshift.engines.ray_aggregates import MaterializedDataset, MergeBytes, ray
from sketchshift.engines.reading import Reading, cannot_read
from sketchshift.engines.travel import (
    merge_table_bytes,
    own_errors,
    table_from_bytes,
    table_to_bytes,
)
from sketchshift.errors import DataError
from sketchshift.sketch import SketchTable

__all__ = ["aggregated", "collected", "merged_by_key", "one_row", "select", "spread_blocks"]

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
