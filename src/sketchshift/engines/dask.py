"""Dask frames, arrays and bags: one task for each partition, then a tree of merges.

The function is mapped by the collection itself, whose optimiser makes one task of it and of the
reading: rows neither wait in memory nor travel between workers. What travels is one sketch for
each partition, or some thousand rows of a few partitions for a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchshift._validation import check_integer
from sketchshift.engines import Function, Merge
from sketchshift.engines.driver import (
    cannot_read,
    choose_partitions,
)
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.sketch.reading import Planning, Reading

__all__ = ["DaskEngine"]

try:
    import dask
    import dask.array
    import dask.bag
    import dask.dataframe
except ImportError as cause:
    msg = 'sketchshift.engines.dask needs Dask. Install it: pip install "sketchshift[dask]".'
    raise MissingDependencyError(msg) from cause


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
        Most results that one task merges: of P partitions the tree has log P / log split_every
        levels.
    """

    checks_collections = True

    def __init__(self, split_every: int = 8) -> None:
        self._split_every = check_integer("engines.dask", "split_every", split_every, 2, 2**20)

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
        """The result of a tree of merges, a few at a time, by Dask's default client."""
        merged: bytes | None = self.merge_tree(merge, results).compute()
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
