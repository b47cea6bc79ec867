"""Dask frames, arrays and bags: one task for each partition, then a tree of merges.

What travels is one sketch for each partition, or some thousand rows of a few partitions for a
plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sketchshift.engines.partitions import (
    check_slices,
    checked_sketch,
    checked_table,
    merge_sketches,
    merge_tables,
    sketch_partition,
    sketch_partition_by,
)
from sketchshift.engines.plan_rows import (
    Planning,
    merge_plan_rows,
    partitions_to_sample,
    plan_rows_of_partition,
    plan_spec,
)
from sketchshift.engines.reading import Reading, check_spec, keys_of
from sketchshift.errors import MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, SketchTable

try:
    from sketchshift.engines.dask_tasks import compute, map_partitions, tree
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
    planning = Planning(n_clusters, sketch_size, seed, standardize)
    reading = Reading(columns=columns, sample_weight=sample_weight, on_invalid=on_invalid)
    draw = partial(plan_rows_of_partition, planning=planning)
    tasks = map_partitions(draw, collection, reading)
    chosen = [tasks[i] for i in partitions_to_sample(len(tasks), seed)]
    merge = partial(merge_plan_rows, planning=planning)
    return plan_spec(compute(tree(chosen, merge, split_every), client), planning)


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
        rows: arrays, frames or Arrow tables. If these have names of columns, the spec or
        ``columns`` must say their order.
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
    reading = Reading(check_spec(spec), columns, sample_weight, on_invalid, kernel)
    tasks = map_partitions(sketch_partition, collection, reading)
    return checked_sketch(compute(tree(tasks, merge_sketches, split_every), client), reading)


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
        Columns of the key, or times cut down to a unit, as in :func:`sketchshift.sketch_by`.
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
    reading = Reading(
        check_spec(spec), columns, sample_weight, on_invalid, kernel, keys_of(by), max_slices
    )
    tasks = map_partitions(sketch_partition_by, collection, reading)
    merge = partial(_merge_tables, reading=reading)
    return checked_table(compute(tree(tasks, merge, split_every), client), reading)


def _merge_tables(tables: Sequence[SketchTable | None], reading: Reading) -> SketchTable | None:
    """The sketches by key of several partitions together, if they are not too many."""
    merged = merge_tables(tables)
    check_slices(0 if merged is None else len(merged), reading)
    return merged
