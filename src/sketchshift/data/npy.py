"""Arrays saved by ``np.save``, mapped one window at a time.

A map of the whole file would count as resident memory page by page as it is read;
a window is dropped with its block. Pickled objects are never loaded.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from sketchshift._typing import RealArray
from sketchshift.data.arrays import check_dtype, check_shape, native
from sketchshift.data.blocks import Access, Source, Take, reading, sliced
from sketchshift.data.places import across_slices
from sketchshift.data.request import Request
from sketchshift.errors import DataError

__all__ = ["open_npy"]


def open_npy(path: Path, request: Request) -> Source:
    """Read a ``.npy`` file.

    Parameters
    ----------
    path : Path
        A two-dimensional array of real numbers.
    request : Request
        Columns cannot be asked for by name.

    Returns
    -------
    source : Source
        Blocks are read-only maps of their own rows. A file in Fortran order is mapped
        whole, since a row lies all over it.
    """
    where = str(path)
    whole = _map(path)
    n, d = check_shape(whole.shape, where)
    check_dtype(whole.dtype, where)
    request.refuse_names(where)
    take = _windows(path, whole) if whole.flags.c_contiguous else _slices(path)
    read = partial(sliced, take, n, request.rows_for(d), source=where)
    across = across_slices(take, n, source=where)
    return Source(None, d, n, read, Access.DISK, whole.nbytes, across)


def _map(path: Path) -> np.memmap[tuple[int, ...], np.dtype[np.generic]]:
    with reading(str(path), EOFError, ValueError):
        try:
            return np.lib.format.open_memmap(path, mode="r")
        except ValueError as cause:
            if "Python objects" not in str(cause):
                raise
            msg = f"cannot read {path} of dtype object. Save numbers: X.astype(float)."
    raise DataError(msg)


def _windows(path: Path, whole: np.memmap[tuple[int, ...], np.dtype[np.generic]]) -> Take:
    """Rows by opening the file for them alone; keeps no map itself."""
    dtype, d, begin = whole.dtype, whole.shape[1], whole.offset

    def take(span: slice) -> RealArray:
        offset = begin + span.start * d * dtype.itemsize
        shape = (span.stop - span.start, d)
        with reading(str(path), ValueError):
            return native(np.memmap(path, dtype, mode="r", offset=offset, shape=shape))

    return take


def _slices(path: Path) -> Take:
    return lambda span: native(_map(path)[span])
