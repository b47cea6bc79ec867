"""Tasks on the partitions of Dask collections: map a function, merge results by a tree.

The function is mapped by the collection itself, whose optimiser makes one task of it and of the
reading: rows neither wait in memory nor travel between workers. Knows nothing of sketches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask
import dask.array
import dask.bag
import dask.dataframe
import numpy as np

from sketchshift._validation import check_integer
from sketchshift.data import open_source
from sketchshift.errors import DataError

__all__ = ["Reading", "compute", "map_partitions", "tree"]


@dataclass(frozen=True)
class Reading:
    """What is read of each partition.

    Parameters
    ----------
    columns, default_columns : sequence of str or None
        As in :func:`sketchshift.data.open_source`.
    weights : str, dask Array or None
        Name of the column of weights; for an array, the weights.
    keys : str, sequence of str or None
        Names of the columns of a key.
    """

    columns: Sequence[str] | None = None
    default_columns: Sequence[str] | None = None
    weights: Any = None
    keys: Any = None


def map_partitions(function: Callable[..., Any], collection: Any, reading: Reading) -> list[Any]:
    """One task for each partition, named by what it computes.

    Parameters
    ----------
    function : callable
        Called as ``function(partition, sample_weight=..., where=...)`` where the partition lies.
    collection : dask DataFrame, Array or Bag
        What is wrong with its columns is found now, before any partition is computed.
    reading : Reading
        Other columns of a frame are not read.

    Returns
    -------
    tasks : list of Delayed
        Their keys depend on the arguments alone.
    """
    if isinstance(collection, dask.array.Array):
        return _map_array(function, collection, reading)
    if reading.weights is not None and not isinstance(reading.weights, str):
        msg = (
            "sample_weight must be the name of a column for this collection. Got "
            f"{type(reading.weights).__name__} instead: assign it to the frame as a column."
        )
        raise DataError(msg)
    function = partial(function, sample_weight=reading.weights)
    if isinstance(collection, dask.bag.Bag):
        n = collection.npartitions
        numbers = dask.bag.from_sequence(range(n), npartitions=n)
        mapped = collection.map_partitions(_on_list, numbers, function=function)
    elif isinstance(collection, dask.dataframe.DataFrame):
        mapped = _chosen(collection, reading).map_partitions(
            _on_frame, function=function, meta=(None, object), enforce_metadata=False
        )
    else:
        msg = (
            f"cannot read a {type(collection).__name__} with Dask. Pass a dask DataFrame (of a "
            "Series, .to_frame()), Array or Bag; for other data there is sketchshift.sketch."
        )
        raise DataError(msg)
    return list(mapped.to_delayed())


def tree(tasks: list[Any], merge: Callable[..., Any], split_every: int) -> Any:
    """One task that merges all results, a few at a time.

    Parameters
    ----------
    tasks : list of Delayed
        At least one.
    merge : callable
        Gets a list of results.
    split_every : int
        Most results that are merged at a time.
    """
    check_integer("engines.dask", "split_every", split_every, 2, 2**20)
    task = dask.delayed(merge, pure=True)
    while len(tasks) > 1:
        tasks = [task(tasks[i : i + split_every]) for i in range(0, len(tasks), split_every)]
    return tasks[0]


def compute(task: Any, client: Any) -> Any:
    """The result of a task, from the client given or Dask's default."""
    return task.compute() if client is None else client.compute(task, sync=True)


def _chosen(frame: Any, reading: Reading) -> Any:
    """The columns that are read: Dask passes the choice on to the files."""
    source = open_source(
        frame._meta,
        columns=reading.columns,
        default_columns=reading.default_columns,
        weights=reading.weights,
        keys=reading.keys,
    )
    if source.columns is None:
        return frame
    keys = [reading.keys] if isinstance(reading.keys, str) else list(reading.keys or ())
    names = [*source.columns, *([reading.weights] if reading.weights else []), *keys]
    return frame[list(dict.fromkeys(names))]


def _map_array(function: Callable[..., Any], array: Any, reading: Reading) -> list[Any]:
    if reading.keys is not None:
        msg = "an array has no column to be the key. Make it a frame: .to_dask_dataframe(columns)."
        raise DataError(msg)
    empty = np.empty([0, *array.shape[1:]], dtype=array.dtype)
    open_source(empty, columns=reading.columns)  # refuses wrong shapes and dtypes
    aligned, weights = [array.rechunk({1: -1})], reading.weights
    if weights is not None:
        if not isinstance(weights, dask.array.Array) or weights.shape != array.shape[:1]:
            msg = (
                f"sample_weight must be a dask array of shape {array.shape[:1]} beside this array. "
                f"Got {weights!r} instead. Unknown lengths become known by .compute_chunk_sizes()."
            )
            raise DataError(msg)
        aligned.append(weights.rechunk(array.chunks[:1])[:, None])
    nothing = np.empty(0, dtype=object)
    mapped = dask.array.map_blocks(
        _on_array, *aligned, function=function, drop_axis=1, dtype=object, meta=nothing
    )
    return list(mapped.to_delayed().ravel())


def _on_frame(part: Any, *, function: Callable[..., Any], partition_info: Any = None) -> Any:
    return function(part, where=f"partition {partition_info['number']}")


def _on_list(part: Any, numbers: Any, *, function: Callable[..., Any]) -> Any:
    return function(list(part), where=f"partition {next(iter(numbers))}")


def _on_array(part: Any, *weights: Any, function: Callable[..., Any], block_id: Any = None) -> Any:
    given = weights[0][:, 0] if weights else None
    return function(part, sample_weight=given, where=f"partition {block_id[0]}")
