"""Dask frames, arrays and bags: one task for each partition, then a tree of merges.

Reading a partition and sketching it are one task, so that rows never wait in memory nor travel
between workers; what travels is one sketch for each partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sketchshift._validation import check_integer
from sketchshift.data import open_source
from sketchshift.engines.partitions import (
    merge_plan_rows,
    merge_sketches,
    partitions_to_sample,
    plan_rows_of_partition,
    plan_spec,
    sketch_partition,
)
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.features.plan import MAX_CLUSTERS
from sketchshift.sketch import Sketch
from sketchshift.sketch.one_pass import check_result

try:
    import dask
    import dask.array
    import dask.bag
    import dask.dataframe
except ImportError as cause:
    msg = 'sketchshift.engines.dask needs Dask. Install it: pip install "sketchshift[dask]".'
    raise MissingDependencyError(msg) from cause

__all__ = ["plan", "sketch"]

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
        Depends on the seed and on the rows of each partition, not on their order. The plan is
        that of :func:`sketchshift.plan` if there are no more rows than it looks at. max(2000,
        20 k) rows travel for each partition looked into.
    """
    check_integer("plan", "n_clusters", n_clusters, 1, MAX_CLUSTERS)
    check_integer("plan", "seed", seed, 0, 2**64 - 1)
    parts = _partitions(collection, columns, None, sample_weight)
    draw = partial(
        plan_rows_of_partition,
        n_clusters=n_clusters,
        seed=seed,
        columns=columns,
        on_invalid=on_invalid,
    )
    chosen = partitions_to_sample(len(parts), seed)
    drawn = [_apply(draw, i, *parts[i]) for i in chosen.tolist()]
    merge = partial(merge_plan_rows, n_clusters=n_clusters)
    rows = _compute(_tree(drawn, merge, split_every), client)
    return plan_spec(rows, n_clusters, sketch_size=sketch_size, seed=seed, standardize=standardize)


def sketch(
    collection: Any,
    spec: SketchSpec,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: Any = None,
    on_invalid: str = "raise",
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
    on_invalid : {"raise", "skip"}
        What to do with rows that hold NaN or infinity.
    split_every : int, default=8
        Sketches that one task merges: with P partitions the tree has log P / log split_every
        levels.
    client : distributed.Client or None
        Where to compute; None takes Dask's default.

    Returns
    -------
    sketch : Sketch
        The bytes of :func:`sketchshift.sketch` of the same rows, however they are cut and whichever
        worker failed on the way. Each partition sends one sketch of 16 m + O(d^2) bytes.

    Examples
    --------
    >>> import dask.array as da, sketchshift as ss
    >>> from sketchshift.engines import dask
    >>> X = da.linspace(0, 1, 2000, chunks=500).reshape(1000, 2)
    >>> spec = dask.plan(X, n_clusters=3)
    >>> dask.sketch(X, spec) == ss.sketch(X.compute(), spec)
    True
    """
    parts = _partitions(collection, columns, spec.columns, sample_weight)
    read = partial(sketch_partition, spec=spec, columns=columns, on_invalid=on_invalid)
    sketches = [_apply(read, i, *part) for i, part in enumerate(parts)]
    result: Sketch = _compute(_tree(sketches, merge_sketches, split_every), client)
    check_result(result, is_weighted=sample_weight is not None)
    return result


Part = tuple[Any, Any]
"""A partition, and its weights: an array to come, the name of a column, or None."""


def _partitions(
    collection: Any,
    columns: Sequence[str] | None,
    default_columns: Sequence[str] | None,
    weights: Any,
) -> list[Part]:
    """The partitions; what is wrong with the columns is found before any is computed."""
    if isinstance(collection, dask.array.Array):
        return _array_partitions(collection, columns, weights)
    if weights is not None and not isinstance(weights, str):
        msg = (
            "sample_weight must be the name of a column for this collection. Got "
            f"{type(weights).__name__} instead: assign it to the frame as a column."
        )
        raise DataError(msg)
    if isinstance(collection, dask.bag.Bag):
        return [(part, weights) for part in collection.to_delayed()]
    if not isinstance(collection, dask.dataframe.DataFrame):
        msg = (
            f"cannot read a {type(collection).__name__} with Dask. Pass a dask DataFrame (of a "
            "Series, .to_frame()), Array or Bag; for other data there is sketchshift.sketch."
        )
        raise DataError(msg)
    checked = open_source(
        collection._meta, columns=columns, default_columns=default_columns, weights=weights
    )
    if checked.columns is not None:  # Dask passes the choice on to the files
        names = [*checked.columns, *([] if weights is None else [weights])]
        collection = collection[names]
    return [(part, weights) for part in collection.to_delayed()]


def _array_partitions(array: Any, columns: Sequence[str] | None, weights: Any) -> list[Part]:
    empty = np.empty([0, *array.shape[1:]], dtype=array.dtype)
    open_source(empty, columns=columns)  # refuses wrong shapes and dtypes
    whole_rows = array.rechunk({1: -1})
    parts = whole_rows.to_delayed().ravel().tolist()
    if weights is None:
        return [(part, None) for part in parts]
    if not isinstance(weights, dask.array.Array) or weights.shape != array.shape[:1]:
        msg = (
            f"sample_weight must be a dask array of shape {array.shape[:1]} beside this array. Got "
            f"{weights!r} instead."
        )
        raise DataError(msg)
    cut_alike = weights.rechunk((whole_rows.chunks[0],))
    return list(zip(parts, cut_alike.to_delayed().tolist(), strict=True))


def _apply(function: Callable[..., Any], number: int, part: Any, weights: Any) -> Any:
    """One task. It is pure: the same partition and spec have the same key."""
    task = dask.delayed(function, pure=True)
    return task(part, sample_weight=weights, where=f"partition {number}")


def _tree(parts: list[Any], merge: Callable[..., Any], split_every: int) -> Any:
    """Merge a few results at a time, until there is one."""
    check_integer("sketch", "split_every", split_every, 2, 2**20)
    task = dask.delayed(merge, pure=True)
    while len(parts) > 1:
        parts = [task(parts[i : i + split_every]) for i in range(0, len(parts), split_every)]
    return parts[0]


def _compute(result: Any, client: Any) -> Any:
    with dask.config.set({"optimization.fuse.delayed": True}):
        (result,) = dask.optimize(result)
    return result.compute() if client is None else client.compute(result, sync=True)
