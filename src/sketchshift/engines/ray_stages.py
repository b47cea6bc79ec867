"""The two stages of every Ray job here: blocks to rows of bytes, and their merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from sketchshift.data import open_source
from sketchshift.engines.partitions import partitions_to_sample
from sketchshift.engines.ray_aggregates import MaterializedDataset, MergeBytes, ray
from sketchshift.engines.travel import own_errors
from sketchshift.errors import DataError
from sketchshift.sketch import Sketch

__all__ = [
    "aggregated",
    "collected",
    "mapped",
    "one_row",
    "select",
    "spread_blocks",
    "with_counts",
]

GPU_ROWS = 2**20
"""Rows that go to a GPU at a time, unless ``batch_size`` says otherwise."""


def select(
    dataset: ray.data.Dataset,
    *,
    columns: Sequence[str] | None,
    default_columns: Sequence[str] | None,
    sample_weight: str | None,
    by: Sequence[str] = (),
) -> ray.data.Dataset:
    """The columns to read; what is wrong with them is found before any block is read."""
    if not isinstance(dataset, ray.data.Dataset):
        msg = (
            f"cannot read a {type(dataset).__name__} with Ray. Pass a ray.data.Dataset; for other "
            "data there is sketchshift.sketch."
        )
        raise DataError(msg)
    if sample_weight is not None and not isinstance(sample_weight, str):
        msg = (
            "sample_weight must be the name of a column for a Ray dataset. Got "
            f"{type(sample_weight).__name__} instead: add it as a column."
        )
        raise DataError(msg)
    schema = dataset.schema()
    if schema is None:
        raise DataError("the dataset has no rows and no columns. Check the path or the filter.")
    checked = open_source(
        _without_rows(schema),
        columns=columns,
        default_columns=default_columns,
        weights=sample_weight,
        keys=by or None,
    )
    assert checked.columns is not None
    names = [*by, *checked.columns, *([sample_weight] if sample_weight else [])]
    return dataset.select_columns(list(dict.fromkeys(names)))


def _without_rows(schema: ray.data.Schema) -> pa.Table:
    fields = zip(schema.names, schema.types, strict=True)
    known = [
        (name, kind if isinstance(kind, pa.DataType) else pa.binary()) for name, kind in fields
    ]
    return pa.schema(known).empty_table()


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
    if num_gpus and batch_size is None:
        batch_size = GPU_ROWS
    return dataset.map_batches(
        read, batch_size=batch_size, batch_format="pyarrow", num_gpus=num_gpus, **remote
    )


def collected(dataset: ray.data.Dataset) -> pa.Table | None:
    """All rows, brought here; None if there are none."""
    with own_errors(ray.exceptions.RayError):
        blocks = [block for block in ray.get(dataset.to_arrow_refs()) if block.num_rows]
    return pa.concat_tables(blocks, promote_options="permissive") if blocks else None


def with_counts(block: pa.Table) -> pa.Table:
    """A column ``count`` beside ``sketch``."""
    counts = [Sketch.from_bytes(sketch.as_py()).count for sketch in block.column("sketch")]
    return block.add_column(block.num_columns - 1, "count", pa.array(counts, pa.int64()))


def one_row(name: str, part: bytes | None) -> pa.Table:
    """What a block gives, as a block."""
    return pa.table({name: pa.array([part], pa.binary())})
