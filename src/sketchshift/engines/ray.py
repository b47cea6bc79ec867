"""Ray datasets: Arrow blocks in, one row of bytes out of each, merged by an aggregate.

A block is sketched by the task that read it, so that rows do not enter the object store; what
travels is one sketch for each block, or for each block and key.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sketchshift.engines.partitions import (
    check_slices,
    checked_sketch,
    checked_table,
    merge_tables,
    sketch_partition,
    sketch_partition_by,
)
from sketchshift.engines.plan_rows import (
    Planning,
    merge_plan_rows,
    plan_rows_of_partition,
    plan_spec,
)
from sketchshift.engines.ray_aggregates import WHERE, MergeBytes, MergeSketches, SketchRows
from sketchshift.engines.ray_stages import (
    aggregated,
    collected,
    merged_by_key,
    one_row,
    select,
    spread_blocks,
)
from sketchshift.engines.reading import Reading, check_spec, keys_of
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher, SketchTable

if TYPE_CHECKING:
    import ray.data

__all__ = ["MergeSketches", "SketchRows", "plan", "sketch", "sketch_by", "sketch_dataset"]


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
