"""Dask frames, arrays and bags: one task for each partition, then a tree of merges.

What travels is one sketch for each partition, or some thousand rows of a few partitions for a
plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sketchshift._validation import check_integer
from sketchshift.engines.partitions import (
    merge_plan_rows,
    merge_sketches,
    partitions_to_sample,
    plan_rows_of_partition,
    plan_spec,
    sketch_partition,
    sketch_partition_by,
)
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.sketch import Sketch
from sketchshift.sketch.one_pass import check_result
from sketchshift.sketch.table import SketchTable

try:
    from sketchshift.engines.dask_tasks import Reading, compute, map_partitions, tree
except ImportError as cause:
    msg = 'sketchshift.engines.dask needs Dask. Install it: pip install "sketchshift[dask]".'
    raise MissingDependencyError(msg) from cause

__all__ = ["plan", "sketch", "sketch_by"]

SPLIT_EVERY = 8


def plan(
    collection: Any,
    n_clusters: int,
    *,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    sample_weight: Any = None,
    standardize: bool = False,
    on_invalid: str = "raise",
    split_every: int = SPLIT_EVERY,
    client: Any = None,
) -> SketchSpec:
    """A spec that suits a Dask collection, from rows of up to 64 of its partitions.

    Parameters
    ----------
    collection : dask DataFrame, Array or Bag
        As in :func:`sketch`. At most 64 partitions, spread over all of them, are computed.
    n_clusters : int
        Number k of clusters, or the largest one that will be asked for.
    sketch_size, seed, columns, standardize, on_invalid
        As in :func:`sketchshift.plan`.
    sample_weight, split_every, client
        As in :func:`sketch`.

    Returns
    -------
    spec : SketchSpec
        Depends on the seed and on the rows of each partition, not on their order. It is that of
        :func:`sketchshift.plan` if there are no more rows than a plan looks at. max(2000, 20 k)
        rows travel for each partition looked into.
    """
    check_integer("plan", "n_clusters", n_clusters, 1, MAX_CLUSTERS)
    check_integer("plan", "seed", seed, 0, 2**64 - 1)
    draw = partial(
        plan_rows_of_partition,
        n_clusters=n_clusters,
        seed=seed,
        columns=columns,
        on_invalid=on_invalid,
    )
    tasks = map_partitions(draw, collection, Reading(columns, weights=sample_weight))
    chosen = [tasks[i] for i in partitions_to_sample(len(tasks), seed)]
    rows = compute(
        tree(chosen, partial(merge_plan_rows, n_clusters=n_clusters), split_every), client
    )
    return plan_spec(rows, n_clusters, sketch_size=sketch_size, seed=seed, standardize=standardize)


def sketch(
    collection: Any,
    spec: SketchSpec,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: Any = None,
    on_invalid: str = "raise",
    kernel: str = "auto",
    split_every: int = SPLIT_EVERY,
    client: Any = None,
) -> Sketch:
    """Read a Dask collection once, where its partitions lie, and give its sketch.

    Parameters
    ----------
    collection : dask DataFrame, Array or Bag
        An array has shape (n, d), n may be unknown. A bag holds rows of numbers, or blocks of
        rows: arrays, frames or Arrow tables.
    spec : SketchSpec
        What is summed. If it names columns, only those of a frame are read.
    columns : sequence of str or None
        Columns to read, by name; None takes the spec's, or all.
    sample_weight : str, dask Array of shape (n,) or None
        Name of the column that holds the weights; for an array, the weights.
    on_invalid, kernel
        As in :func:`sketchshift.sketch`.
    split_every : int, default=8
        Sketches that one task merges: with P partitions the tree has log P / log split_every
        levels.
    client : distributed.Client or None
        Where to compute; None takes Dask's default.

    Returns
    -------
    sketch : Sketch
        The bytes of :func:`sketchshift.sketch` of the same rows, however they are cut and
        whichever worker failed on the way. Each partition is read by one task on one thread,
        and sends one sketch of 16 m + O(d^2) bytes.

    Examples
    --------
    >>> import dask.array as da, sketchshift as ss
    >>> from sketchshift.engines import dask
    >>> X = da.linspace(0, 1, 2000, chunks=500).reshape(1000, 2)
    >>> spec = dask.plan(X, n_clusters=3)
    >>> dask.sketch(X, spec) == ss.sketch(X.compute(), spec)
    True
    """
    read = partial(
        sketch_partition, spec=spec, columns=columns, on_invalid=on_invalid, kernel=kernel
    )
    tasks = map_partitions(read, collection, Reading(columns, spec.columns, sample_weight))
    result: Sketch = compute(tree(tasks, merge_sketches, split_every), client)
    check_result(result, is_weighted=sample_weight is not None)
    return result


def sketch_by(
    collection: Any,
    by: str | Sequence[str],
    spec: SketchSpec,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    max_slices: int = 10_000,
    on_invalid: str = "raise",
    kernel: str = "auto",
    split_every: int = SPLIT_EVERY,
    client: Any = None,
) -> SketchTable:
    """Read a Dask collection once and give a sketch for each value of a key.

    Parameters
    ----------
    collection : dask DataFrame or Bag of frames or tables
        As in :func:`sketch`. Nothing is shuffled: rows of a key may lie in all partitions.
    by : str or sequence of str
        Columns of the key, of any type.
    spec, columns, sample_weight, on_invalid, kernel, split_every, client
        As in :func:`sketch`.
    max_slices : int, default=10_000
        More values of the key than that are an error.

    Returns
    -------
    table : SketchTable
        The table that :func:`sketchshift.sketch_by` gives for the same rows. Each partition sends
        one sketch for each key that it has.
    """
    read = partial(
        sketch_partition_by,
        by=by,
        spec=spec,
        columns=columns,
        max_slices=max_slices,
        on_invalid=on_invalid,
        kernel=kernel,
    )
    reading = Reading(columns, spec.columns, sample_weight, by)
    tasks = map_partitions(read, collection, reading)
    merge = partial(_merge_tables, max_slices=max_slices)
    table: SketchTable | None = compute(tree(tasks, merge, split_every), client)
    if table is None:
        raise DataError("there are no rows to sketch. Check the path or the filter.")
    check_result(table.merge(), is_weighted=sample_weight is not None)
    return table


def _merge_tables(tables: Sequence[SketchTable | None], max_slices: int) -> SketchTable | None:
    """The sketches by key of several partitions together."""
    present = [table for table in tables if table is not None]
    if not present:
        return None
    merged: SketchTable = sum(present[1:], present[0])
    if len(merged) > max_slices:
        msg = (
            f"there are more than {max_slices} slices by {', '.join(merged.by)}, and each is a "
            "sketch. Take a coarser key, a day rather than a second, or raise max_slices."
        )
        raise DataError(msg)
    return merged
