"""Dask frames, arrays and bags: one task for each partition, then a tree of merges.

The function is mapped by the collection itself, whose optimiser makes one task of it and of the
reading: rows neither wait in memory nor travel between workers. What travels is one sketch for
each partition, or some thousand rows of a few partitions for a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchshift._validation import check_integer, parameter_error
from sketchshift.engines import Function, Merge
from sketchshift.engines.driver import (
    Driver,
    cannot_read,
    choose_partitions,
)
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, SketchTable
from sketchshift.sketch.reading import Planning, Reading
from sketchshift.sketch.slices import add_keys

__all__ = ["DaskEngine", "plan", "sketch", "sketch_by"]

try:
    import dask
    import dask.array
    import dask.bag
    import dask.dataframe
    import distributed
except ImportError as cause:
    msg = 'sketchshift.engines.dask needs Dask. Install it: pip install "sketchshift[dask]".'
    raise MissingDependencyError(msg) from cause

SPLIT_EVERY = 8


@dataclass(frozen=True)
class _Partitions:
    """A collection, what maps a function over it, and the numbers of the partitions to compute."""

    map: Callable[[Function], list[Any]]
    seed: int | None = None


class DaskEngine:
    """The engine of Dask.

    Parameters
    ----------
    split_every : int, default=8
        Most results that one task merges.
    client : distributed.Client or None
        Where to compute; None takes Dask's default.
    """

    checks_collections = True

    def __init__(self, split_every: int = SPLIT_EVERY, client: Any = None) -> None:
        self._split_every = check_integer("engines.dask", "split_every", split_every, 2, 2**20)
        self._client = client

    def partitions(
        self, collection: Any, reading: Reading, planning: Planning | None = None
    ) -> _Partitions:
        """The partitions of a frame, array or bag; for a plan, 64 at most.

        Other columns of a frame than those of the reading are not read.
        """
        seed = None if planning is None else planning.seed
        return _Partitions(_mapper_of(collection, reading), seed)

    def map(self, function: Function, partitions: _Partitions) -> list[Any]:
        """One task for each partition, whose key depends on what it computes alone."""
        tasks = partitions.map(function)
        if partitions.seed is None:
            return tasks
        return [tasks[i] for i in choose_partitions(len(tasks), partitions.seed)]

    def reduce(self, merge: Merge, results: list[Any]) -> bytes | None:
        """The result of a tree of merges, a few at a time."""
        task, client = self.merge_tree(merge, results), self._client
        is_client = isinstance(client, distributed.Client)
        if is_client and not client.asynchronous and client.status == "running":
            merged: bytes | None = client.compute(task, sync=True)
        elif client is None:
            merged = task.compute()
        else:
            must = "a synchronous distributed.Client that is open, or None"
            raise parameter_error("engines.dask", "client", must, client)
        return merged

    def merge_tree(self, merge: Merge, tasks: list[Any]) -> Any:
        """One task that merges all results, a few at a time; there is at least one."""
        task, n = dask.delayed(merge, pure=True), self._split_every
        while len(tasks) > 1:
            tasks = [task(tasks[i : i + n]) for i in range(0, len(tasks), n)]
        return tasks[0]


def _mapper_of(collection: Any, reading: Reading) -> Callable[[Function], list[Any]]:
    """What makes tasks of a function; what is wrong with the columns is found now."""
    if isinstance(collection, dask.array.Array):
        return _map_array(collection, reading)
    reading.check_weight_name(f"Dask {type(collection).__name__}")
    if isinstance(collection, dask.bag.Bag):
        return _map_bag(collection, reading)
    if isinstance(collection, dask.dataframe.DataFrame):
        return _map_frame(collection, reading)
    raise cannot_read(collection, "Dask", "dask DataFrame (of a Series, .to_frame()), Array or Bag")


def _map_frame(frame: Any, reading: Reading) -> Callable[[Function], list[Any]]:
    names = reading.column_names(frame._meta)
    chosen = frame if names is None else frame[names]  # passed on to the files
    named = reading.by_name(frame._meta)

    def tasks(function: Function) -> list[Any]:
        options = {"function": function, "reading": named}
        no_meta = {"meta": (None, object), "enforce_metadata": False}
        return list(chosen.map_partitions(_on_frame, **options, **no_meta).to_delayed())

    return tasks


def _map_bag(bag: Any, reading: Reading) -> Callable[[Function], list[Any]]:
    n = bag.npartitions
    numbers = dask.bag.from_sequence(range(n), npartitions=n)

    def tasks(function: Function) -> list[Any]:
        options = {"function": function, "reading": reading}
        return list(bag.map_partitions(_on_list, numbers, **options).to_delayed())

    return tasks


def _map_array(array: Any, reading: Reading) -> Callable[[Function], list[Any]]:
    if reading.keys:
        msg = "an array has no column to be the key. Make it a frame: .to_dask_dataframe(columns)."
        raise DataError(msg)
    weights, bare = reading.sample_weight, replace(reading, sample_weight=None)
    bare.open(np.empty([0, *array.shape[1:]], dtype=array.dtype))  # refuses wrong shapes
    aligned = [array.rechunk({1: -1})]
    if weights is not None:
        if not isinstance(weights, dask.array.Array) or weights.shape != array.shape[:1]:
            msg = (
                f"sample_weight must be a dask array of shape {array.shape[:1]} beside this array. "
                f"Got {weights!r} instead. Unknown lengths become known by .compute_chunk_sizes()."
            )
            raise DataError(msg)
        aligned.append(weights.rechunk(array.chunks[:1])[:, None])

    def tasks(function: Function) -> list[Any]:
        options = {"function": function, "reading": bare, "drop_axis": 1, "dtype": object}
        nothing = np.empty(0, dtype=object)
        mapped = dask.array.map_blocks(_on_array, *aligned, **options, meta=nothing)
        return list(mapped.to_delayed().ravel())

    return tasks


def _on_frame(
    part: Any, *, function: Function, reading: Reading, partition_info: Any = None
) -> Any:
    return function(part, reading, where=f"partition {partition_info['number']}")


def _on_list(part: Any, numbers: Any, *, function: Function, reading: Reading) -> Any:
    rows, where = list(part), f"partition {next(iter(numbers))}"
    if rows and isinstance(rows[0], Mapping):
        kind = type(rows[0]).__name__
        msg = f"{where}: cannot read a bag of {kind} as rows. Make it a frame: .to_dataframe()."
        raise DataError(msg)
    return function(rows, replace(reading, has_schema=False), where=where)


def _on_array(
    part: Any,
    *weights: Any,
    function: Function,
    reading: Reading,
    block_id: Any = None,
) -> Any:
    given = weights[0][:, 0] if weights else None
    return function(part, replace(reading, sample_weight=given), where=f"partition {block_id[0]}")


def plan(
    collection: Any,
    n_clusters: int,
    *,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    sample_weight: Any = None,
    standardize: bool = False,
    cells: bool = True,
    metric: str = "euclidean",
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
    sketch_size, seed, columns, standardize, cells, metric, on_invalid
        As in :func:`sketchshift.plan`.
    sample_weight, split_every, client
        As in :func:`sketch`.

    Returns
    -------
    spec : SketchSpec
        Depends on the seed and on the rows of each partition, not on their order. It is that of
        :func:`sketchshift.plan` if there are no more rows than a plan looks at. 200,000
        rows at most travel for each partition looked into.
    """
    planning = Planning(n_clusters, sketch_size, seed, standardize, cells, metric)
    reading = Reading(columns=columns, sample_weight=sample_weight, on_invalid=on_invalid)
    return Driver(DaskEngine(split_every, client)).plan(collection, reading, planning)


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
    reading = Reading(spec, columns, sample_weight, on_invalid, kernel)
    return Driver(DaskEngine(split_every, client)).sketch(collection, reading)


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
    reading = Reading(spec, columns, sample_weight, on_invalid, kernel, max_slices=max_slices)
    return Driver(DaskEngine(split_every, client)).sketch_by(collection, add_keys(reading, by))
