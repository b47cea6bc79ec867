"""The door: one function that opens any kind of data.

Decides which opener answers; reads nothing itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sketchshift._text import listed
from sketchshift.data.files import open_files
from sketchshift.data.memory import as_array, open_array, open_sparse
from sketchshift.data.source import Access, Block, Request, Source, make_request, once
from sketchshift.errors import DataError

__all__ = ["is_table", "open_in_memory", "open_iterator", "open_source"]

# Which opener reads what lies in memory, without importing what is not needed.
#
# The library an object comes from is told by its type: a NumPy user never waits for
# pyarrow or narwhals to load.

ENGINES = {"dask": "dask", "distributed": "dask", "pyspark": "spark", "ray": "ray"}


def open_in_memory(data: Any, request: Request) -> Source | None:
    """Open an array, sparse matrix, frame or Arrow object; ``None`` for anything else."""
    if isinstance(data, np.ndarray):
        return open_array(data, request)
    if _is_sparse(data):
        return open_sparse(data, request)
    library = type(data).__module__.partition(".")[0]
    if library in ENGINES:
        msg = (
            f"cannot read a {library} collection here: it lies on many machines. "
            f"Use plan, sketch or sketch_by of sketchshift.engines.{ENGINES[library]}."
        )
        raise DataError(msg)
    if library != "pyarrow" and _is_frame(data):
        from sketchshift.data.frames import open_frame

        return open_frame(data, request)
    if library == "pyarrow" or _speaks_arrow(data):
        from sketchshift.data.arrow import open_arrow

        return open_arrow(data, request)
    if hasattr(data, "__array__") and not isinstance(data, type):
        return open_array(as_array(data), request)
    return None


def is_table(item: Any) -> bool:
    """Whether an item of a list is a block of rows rather than one row."""
    return getattr(item, "ndim", None) == 2 or hasattr(type(item), "columns") or _speaks_arrow(item)


def _is_sparse(data: Any) -> bool:
    scipy_sparse = sys.modules.get("scipy.sparse")  # who has such a matrix has imported it
    return scipy_sparse is not None and bool(scipy_sparse.issparse(data))


def _is_frame(data: Any) -> bool:
    if not (_speaks_arrow(data) or hasattr(type(data), "columns") or hasattr(data, "to_frame")):
        return False
    from sketchshift.data.frames import is_frame

    return is_frame(data)


def _speaks_arrow(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


# Iterators, generators and lists whose items are blocks of rows.
#
# Items are arrays, frames, tables or batches, and are taken one at a time. Arrays are copied, so
# that an iterator may fill the same one again. Every item must have the columns of the first.


def open_iterator(items: Iterable[Any], request: Request) -> Source:
    """Read an iterable of blocks; its first item is taken at once to know the columns.

    Parameters
    ----------
    items : iterable of arrays, frames, tables or record batches
        A list or tuple can be read again, anything else once.
    request : Request
        Applies to every item; weights must be a column name.

    Returns
    -------
    source : Source
        At most one item is held at a time. Items larger than a block are cut.
    """
    request.refuse_weight_array("an iterator of blocks")
    iterator = iter(items)
    try:
        first = next(iterator)
    except StopIteration:
        msg = "there are no rows: the iterator of blocks yielded nothing."
        raise DataError(msg) from None
    opened = replace(_open_item(first, 0, request), n_rows=None, n_bytes=None, across=None)

    if isinstance(items, Sequence):
        return replace(opened, read=lambda: _read(iter(items), opened, request))
    blocks = _read(chain([first], iterator), opened, request)
    return replace(opened, read=once(blocks, "an iterator of blocks"), access=Access.ONCE)


def _read(items: Iterator[Any], first: Source, request: Request) -> Iterator[Block]:
    for number, item in enumerate(items):
        opened = _open_item(item, number, request)
        _check_alike(first, opened, number)
        if opened.columns != first.columns:  # same names, other order
            opened = _open_item(item, number, replace(request, columns=first.columns))
        for block in opened:
            values = block.values.copy() if isinstance(item, np.ndarray) else block.values
            yield replace(block, values=values, source=f"block {number}", done=None)


def _open_item(item: Any, number: int, request: Request) -> Source:
    where = f"block {number} (counting from 0)"
    if isinstance(item, str | PathLike):
        msg = f"{where} is a path. To read files, pass a list of paths instead of an iterator."
        raise DataError(msg)
    try:
        opened = open_in_memory(item, request)
    except DataError as cause:
        msg = f"{where}: {cause}"
        raise DataError(msg) from cause
    if opened is None:
        msg = (
            f"{where} is of type {type(item).__name__}. Every block must be an array of "
            "shape (rows, columns), a data frame, or an Arrow table or batch."
        )
        raise DataError(msg)
    return opened


def _check_alike(first: Source, other: Source, number: int) -> None:
    if other.n_features != first.n_features:
        facts = f"has {other.n_features} columns, but block 0 has {first.n_features}"
    elif set(other.columns or ()) != set(first.columns or ()):
        facts = f"has {_names(other)}, but block 0 has {_names(first)}"
    else:
        return
    msg = f"ragged blocks: block {number} (counting from 0) {facts}. Give all the same columns."
    raise DataError(msg)


def _names(source: Source) -> str:
    return "no column names" if source.columns is None else f"columns {listed(source.columns)}"


def open_source(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    default_columns: Sequence[str] | None = None,
    weights: str | ArrayLike | None = None,
    block_rows: int | None = None,
    keys: Any = None,
) -> Source:
    """Open any data as a stream of blocks; rows are read when the result is iterated.

    Parameters
    ----------
    data : array, sparse matrix, frame, Arrow data, path(s) or iterable of blocks
        NumPy arrays and memory maps, nested lists, SciPy sparse, pandas, Polars and
        other frames, Arrow tables, streams and datasets (DuckDB results too); a path,
        folder or glob, or a list of them (.parquet, .csv, .tsv, .arrow, .feather,
        .ipc, .npy); or an iterable whose items are any of these but paths.
    columns : sequence of str, optional
        Names of the columns to deliver, in this order. Default: all but weights and keys.
    default_columns : sequence of str, optional
        Names to take when ``columns`` is None and the data has names; data without names
        is then read by position.
    weights : str or array of shape (N,), optional
        Column of weights, or the weights themselves where the length is known.
    block_rows : int, optional
        Most rows per block. Default: about 2 MiB of float64, 256 to 65536 rows.
    keys : str, sequence of str or array of shape (N,), optional
        Columns to deliver apart, of any type, as the keys of the rows; or the keys themselves
        where the length is known.

    Returns
    -------
    source : Source
        Its columns and dimension are known and checked. Iterating holds about one
        block in memory beside the data, for files about one block or row group.

    Raises
    ------
    DataError
        If this cannot be read as rows of numbers with the columns asked for.
    """
    request = make_request(columns, weights, block_rows, default_columns, keys)
    if isinstance(data, str | PathLike):
        return open_files([data], request)
    if isinstance(data, list | tuple):
        return _open_list(data, request)
    opened = open_in_memory(data, request)
    if opened is not None:
        return opened
    if isinstance(data, Iterable) and not isinstance(data, bytes | bytearray | Mapping | Set):
        return open_iterator(data, request)
    msg = (
        f"cannot read data of type {type(data).__name__}. Pass an array of shape "
        "(rows, columns), a sparse matrix, a data frame, an Arrow table, stream or dataset, "
        "a path, folder or glob (or a list of them), or an iterator of blocks."
    )
    raise DataError(msg)


def _open_list(data: Sequence[Any], request: Request) -> Source:
    if not data:
        msg = f"there are no rows: the {type(data).__name__} is empty."
        raise DataError(msg)
    are_paths = [isinstance(item, str | PathLike) for item in data]
    if all(are_paths):
        return open_files(data, request)
    if any(are_paths):
        msg = (
            f"cannot read a {type(data).__name__} that mixes paths and other data "
            f"(item {are_paths.index(True)} is a path). Pass paths only, or blocks only."
        )
        raise DataError(msg)
    if is_table(data[0]):
        return open_iterator(data, request)
    return open_array(as_array(data), request)
