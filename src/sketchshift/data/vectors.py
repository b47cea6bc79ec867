"""Columns of vectors: Arrow lists of numbers become rows, without a loop over them.

Takes fixed-size lists, lists and list views of any size of offset, and tensors of one dimension;
hands out arrays of shape (n, d). Lists that are missing, or have another length, are errors that
name the row, or rows of NaN.

Symbols
-------
n, d      lists, numbers in each
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sketchshift._text import counted
from sketchshift._typing import BoolArray, IntArray, RealArray
from sketchshift.errors import DataError, InvalidRowsError

__all__ = ["as_indices", "find_width", "item_type", "unpack", "width_of"]

SHOWN = 5  # rows named in a message


def item_type(kind: Any) -> Any:
    """The Arrow type of the numbers of a vector; None for a type of anything else."""
    if isinstance(kind, pa.BaseExtensionType):
        is_flat = len(getattr(kind, "shape", ())) == 1
        return item_type(kind.storage_type) if is_flat else None
    return kind.value_type if any(is_list(kind) for is_list in LISTS) else None


LISTS: tuple[Callable[[Any], bool], ...] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def width_of(kind: Any) -> int:
    """Length of the vectors of an Arrow type of lists; 0 if it leaves that open."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return int(kind.list_size) if pa.types.is_fixed_size_list(kind) else 0


def find_width(column: Any) -> int:
    """The length that most lists of a column have, without empty ones; 0 if there are no others.

    Parameters
    ----------
    column : Arrow array or chunked array of lists
        Some rows of the data: a short list that comes first must not decide.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    lengths = np.concatenate([np.empty(0, np.int64), *(_extents(c)[1] for c in chunks)])
    found, times = np.unique(lengths[lengths > 0], return_counts=True)
    return int(found[times.argmax()]) if len(found) else 0


def unpack(
    column: Any,
    d: int,
    to_numpy: Callable[[Any], RealArray],
    *,
    name: str,
    where: str,
    rows: Sequence[int] | IntArray,
    skip_invalid: bool = False,
) -> RealArray:
    """Lists of numbers as rows.

    Parameters
    ----------
    column : Arrow array of n lists
        May be a slice of a longer one.
    d : int
        Length that the lists must have.
    to_numpy : callable
        Makes a NumPy vector of an Arrow array of numbers; nulls become NaN.
    name, where : str
        Of the column and of the data, for messages.
    rows : sequence of n int
        Where the lists lie in the data, for messages.
    skip_invalid : bool
        Whether lists that are missing, or have another length, become NaN.

    Returns
    -------
    values : array of shape (n, d)
        A view of the column's own memory where all lists are there and follow each other.
    """
    try:
        values, lengths, starts = _extents(column)
    except pa.ArrowException as cause:
        raise _damaged(where, name) from cause
    is_good = lengths == d
    if not skip_invalid and not is_good.all():
        raise _not_vectors(lengths, d, name, where, rows)
    good = starts[is_good]
    if len(good) and (good.min() < 0 or good.max() > len(values) - d):
        raise _damaged(where, name)
    if is_good.all() and (np.diff(starts) == d).all():
        first = int(starts[0]) if len(starts) else 0
        return to_numpy(values.slice(first, len(starts) * d)).reshape(len(starts), d)
    return _gather(values, good, is_good, d, to_numpy)


def _damaged(where: str, name: str) -> DataError:
    return DataError(f"cannot read {where}: the lists of column {name!r} are damaged.")


def _gather(
    values: Any, starts: IntArray, is_good: BoolArray, d: int, to_numpy: Callable[[Any], RealArray]
) -> RealArray:
    """The good lists, wherever each begins, in rows of their own; NaN in all others."""
    at = (starts[:, None] + np.arange(d)).ravel()
    found = to_numpy(values.take(as_indices(at)))
    kind = found.dtype if is_good.all() else np.result_type(found, np.float16)
    rows = np.full((len(is_good), d), np.nan if kind.kind == "f" else 0, dtype=kind)
    rows[is_good] = found.reshape(len(starts), d)
    return rows


def as_indices(positions: IntArray) -> Any:
    """Positions as an Arrow array; ``pa.array`` would import pandas, where that is installed."""
    return pa.Array.from_buffers(pa.int64(), len(positions), [None, pa.py_buffer(positions)])


def _extents(column: Any) -> tuple[Any, IntArray, IntArray]:
    """The numbers behind all lists, the length of each, and where it begins; -1 for a null."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    column.validate()  # that its buffers are as long as they should be: no other check is made
    n, kind = len(column), column.type
    if pa.types.is_fixed_size_list(kind):
        lengths = np.full(n, kind.list_size)
        starts = (column.offset + np.arange(n)) * kind.list_size
    elif pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        starts, lengths = (np.from_dlpack(part) for part in (column.offsets, column.sizes))
    else:
        ends = np.from_dlpack(column.offsets).astype(np.int64)
        starts, lengths = ends[:-1], np.diff(ends)
    lengths = lengths.astype(np.int64)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return column.values, lengths, starts.astype(np.int64)


def _not_vectors(
    lengths: IntArray, d: int, name: str, where: str, rows: Sequence[int] | IntArray
) -> InvalidRowsError:
    bad = np.flatnonzero(lengths != d)
    row, n = rows[bad[0]], int(lengths[bad[0]])
    place = f"row {row} of {where}, column {name!r}"
    fault = f"there is no vector in {place}"
    if n >= 0:
        fault = f"the vector in {place}, has {counted(n, 'number')}, and others have {d}"
    named = ", ".join(str(rows[i]) for i in bad[:SHOWN])
    more = f" and {len(bad) - SHOWN} more near them" if len(bad) > SHOWN else ""
    msg = (
        f"{fault} (rows without one of {counted(d, 'number')}: {named}{more}; the first row is 0). "
        'Clean the data, or leave such rows out with on_invalid="skip" (--on-invalid skip).'
    )
    return InvalidRowsError(msg)
