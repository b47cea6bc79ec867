"""Tasks on the partitions of Dask collections: map a function, merge results by a tree.

The function is mapped by the collection itself, whose optimiser makes one task of it and of the
reading: rows neither wait in memory nor travel between workers. What the function makes of
them is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import dask
import dask.array
import dask.bag
import dask.dataframe
import distributed
import numpy as np

from sketchshift._validation import check_integer, parameter_error
from sketchshift.data.request import listed
from sketchshift.engines.partitions import naming
from sketchshift.engines.reading import Reading, cannot_read
from sketchshift.errors import DataError

__all__ = ["compute", "map_partitions", "tree"]


def map_partitions(function: Callable[..., Any], collection: Any, reading: Reading) -> list[Any]:
    """One task for each partition, named by what it computes.

    Parameters
    ----------
    function : callable
        Called as ``function(partition, reading, where=...)`` where the partition lies.
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
    reading.check_weight_name(f"Dask {type(collection).__name__}")
    options = {"function": function, "reading": reading}
    if isinstance(collection, dask.bag.Bag):
        n = collection.npartitions
        numbers = dask.bag.from_sequence(range(n), npartitions=n)
        mapped = collection.map_partitions(_on_list, numbers, **options)
    elif isinstance(collection, dask.dataframe.DataFrame):
        names = reading.names(collection._meta)
        chosen = collection if names is None else collection[names]  # passed on to the files
        options["reading"] = reading.by_name(collection._meta)
        mapped = chosen.map_partitions(
            _on_frame, **options, meta=(None, object), enforce_metadata=False
        )
    else:
        raise cannot_read(
            collection, "Dask", "dask DataFrame (of a Series, .to_frame()), Array or Bag"
        )
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
    if client is None:
        return task.compute()
    is_client = isinstance(client, distributed.Client)
    if not is_client or client.asynchronous or client.status != "running":
        must = "a synchronous distributed.Client that is open, or None"
        raise parameter_error("engines.dask", "client", must, client)
    return client.compute(task, sync=True)


def _map_array(function: Callable[..., Any], array: Any, reading: Reading) -> list[Any]:
    if reading.keys:
        msg = "an array has no column to be the key. Make it a frame: .to_dask_dataframe(columns)."
        raise DataError(msg)
    weights, reading = reading.sample_weight, replace(reading, sample_weight=None)
    reading.names(np.empty([0, *array.shape[1:]], dtype=array.dtype))  # refuses wrong shapes
    aligned = [array.rechunk({1: -1})]
    if weights is not None:
        if not isinstance(weights, dask.array.Array) or weights.shape != array.shape[:1]:
            msg = (
                f"sample_weight must be a dask array of shape {array.shape[:1]} beside this array. "
                f"Got {weights!r} instead. Unknown lengths become known by .compute_chunk_sizes()."
            )
            raise DataError(msg)
        aligned.append(weights.rechunk(array.chunks[:1])[:, None])
    nothing = np.empty(0, dtype=object)
    options = {"function": function, "reading": reading}
    mapped = dask.array.map_blocks(
        _on_array, *aligned, **options, drop_axis=1, dtype=object, meta=nothing
    )
    return list(mapped.to_delayed().ravel())


def _on_frame(
    part: Any, *, function: Callable[..., Any], reading: Reading, partition_info: Any = None
) -> Any:
    return function(part, reading, where=f"partition {partition_info['number']}")


def _on_list(part: Any, numbers: Any, *, function: Callable[..., Any], reading: Reading) -> Any:
    rows, where = list(part), f"partition {next(iter(numbers))}"
    if rows and isinstance(rows[0], Mapping):
        kind = type(rows[0]).__name__
        msg = f"{where}: cannot read a bag of {kind} as rows. Make it a frame: .to_dataframe()."
        raise DataError(msg)
    with naming(where):
        _refuse_names_without_order(rows[:1], reading)
    return function(rows, reading, where=where)


def _refuse_names_without_order(rows: list[Any], reading: Reading) -> None:
    """A bag has no schema, and its partitions do not see each other's columns."""
    spec = reading.spec
    if not rows or spec is None or spec.columns or reading.columns:  # a plan compares the names
        return
    found = reading.open(rows).columns
    if found is not None:
        msg = (
            f"columns {listed(found)} may stand in another order elsewhere in the bag, and the "
            "spec names none. Choose them with columns=[...], or name them in the spec."
        )
        raise DataError(msg)


def _on_array(
    part: Any,
    *weights: Any,
    function: Callable[..., Any],
    reading: Reading,
    block_id: Any = None,
) -> Any:
    given = weights[0][:, 0] if weights else None
    return function(part, replace(reading, sample_weight=given), where=f"partition {block_id[0]}")
