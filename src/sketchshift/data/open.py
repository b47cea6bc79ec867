"""The door: one function that opens any kind of data.

Decides which opener answers; reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from os import PathLike
from typing import Any

from numpy.typing import ArrayLike

from sketchshift.data.arrays import as_array, open_array
from sketchshift.data.blocks import Source
from sketchshift.data.files import open_files
from sketchshift.data.iterators import open_iterator
from sketchshift.data.memory import is_table, open_in_memory
from sketchshift.data.request import Request, make_request
from sketchshift.errors import DataError

__all__ = ["open_source"]


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
