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
    PlanRows,
    plan_rows_of_partition,
    plan_spec,
    sketch_partition,
    sketch_partition_by,
)
from sketchshift.engines.ray_aggregates import WHERE, MergeBytes, MergeSketches, SketchRows
from sketchshift.engines.ray_stages import (
    aggregated,
    collected,
    mapped,
    one_row,
    select,
    spread_blocks,
    with_counts,
)
from sketchshift.engines.travel import merge_plan_bytes
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher, SketchTable
from sketchshift.sketch.one_pass import check_result

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
        other is read once, the chosen columns only: Ray cannot leave a reading task early. To
        read less, pass a dataset of some of the files.
    n_clusters : int
        Number k of clusters, or the largest one that will be asked for.
    sketch_size, seed, columns, standardize, on_invalid
        As in :func:`sketchshift.plan`.
    sample_weight : str or None
        Name of the column that holds the weights.

    Returns
    -------
    spec : SketchSpec
        Depends on the rows of each block, not on their order. Every row is equally likely to be
        among the max(2000, 20 k) that the plan looks at, as many travel for each block.
    """
    options: dict[str, Any] = {"columns": columns, "sample_weight": sample_weight}
    chosen = select(spread_blocks(dataset, seed), default_columns=None, **options)

    def draw(block: pa.Table) -> pa.Table:
        rows = plan_rows_of_partition(
            block, n_clusters, seed=seed, where=WHERE, on_invalid=on_invalid, **options
        )
        return one_row("rows", None if rows is None else rows.to_bytes())

    merge = MergeBytes(partial(merge_plan_bytes, n_clusters=n_clusters), on="rows", name="rows")
    rows = aggregated(chosen, draw, merge)
    return plan_spec(
        None if rows is None else PlanRows.from_bytes(rows),
        n_clusters,
        sketch_size=sketch_size,
        seed=seed,
        standardize=standardize,
    )


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
    columns : sequence of str or None
        Columns to read, by name; None takes the spec's, or all.
    sample_weight : str or None
        Name of the column that holds the weights.
    on_invalid : {"raise", "skip"}
        What to do with rows that hold NaN or infinity.
    kernel : str, default="auto"
        Where the sums are computed, as in :func:`sketchshift.sketch`.
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
        whichever worker died on the way.
    """
    options: dict[str, Any] = {"columns": columns, "sample_weight": sample_weight}
    chosen = select(dataset, default_columns=spec.columns, **options)

    def read(block: pa.Table) -> pa.Table:
        part = sketch_partition(
            block, spec, where=WHERE, on_invalid=on_invalid, kernel=kernel, **options
        )
        return one_row("sketch", part.to_bytes())

    whole = aggregated(chosen, read, MergeSketches(), num_gpus=num_gpus, **remote)
    result = Sketcher(spec).sketch() if whole is None else Sketch.from_bytes(whole)
    check_result(result, is_weighted=sample_weight is not None)
    return result


def sketch_by(
    dataset: ray.data.Dataset,
    by: str | Sequence[str],
    spec: SketchSpec,
    **options: Any,
) -> SketchTable:
    """Read a Ray dataset once and give a sketch for each value of a key.

    Parameters
    ----------
    dataset, by, spec
        As in :func:`sketch_dataset`.
    **options
        As in :func:`sketch_dataset`.

    Returns
    -------
    table : SketchTable
        The table that :func:`sketchshift.sketch_by` gives for the same rows. One sketch for each
        key reaches the driver.
    """
    merged = sketch_dataset(dataset, by, spec, **options)
    rows = collected(merged)
    if rows is None:
        raise DataError("there are no rows to sketch. Check the path or the filter.")
    table = SketchTable.from_arrow(rows)
    check_result(table.merge(), is_weighted=options.get("sample_weight") is not None)
    return table


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
    dataset, spec, columns, sample_weight, on_invalid, kernel, num_gpus, **remote
        As in :func:`sketch`.
    by : str or sequence of str
        Columns of the key.
    max_slices : int, default=10_000
        Most values of the key in one block: its worker holds a sketch for each.
    num_partitions : int or None
        Tasks that merge; None takes Ray's default, which is many.

    Returns
    -------
    sketches : ray.data.Dataset
        Columns of the key, ``count`` and ``sketch``, as
        :meth:`sketchshift.SketchTable.from_parquet` reads them.
    """
    names = [by] if isinstance(by, str) else list(by)
    options: dict[str, Any] = {"columns": columns, "sample_weight": sample_weight}
    chosen = select(dataset, default_columns=spec.columns, by=names, **options)

    def read(block: pa.Table) -> pa.Table:
        table = sketch_partition_by(
            block,
            names,
            spec,
            where=WHERE,
            max_slices=max_slices,
            on_invalid=on_invalid,
            kernel=kernel,
            **options,
        )
        if table is not None:
            return table.to_arrow()
        return block.slice(0, 0).select(names).append_column("sketch", pa.array([], pa.binary()))

    parts = mapped(chosen, read, num_gpus=num_gpus, **remote)
    merged = parts.groupby(names, num_partitions=num_partitions).aggregate(MergeSketches())
    return merged.map_batches(with_counts, batch_size=None, batch_format="pyarrow")
