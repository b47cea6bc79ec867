"""Arrays saved by ``np.save``, mapped one window at a time.

A map of the whole file would count as resident memory page by page as it is read;
a window is dropped with its block. Pickled objects are never loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from sketchshift._typing import RealArray
from sketchshift.data.memory import check_dtype, check_shape, native
from sketchshift.data.sample import across_slices
from sketchshift.data.source import (
    Access,
    Block,
    Piece,
    Request,
    Source,
    Take,
    cut_blocks,
    report_damage,
    spans,
)
from sketchshift.errors import DataError

__all__ = ["open_npy"]

PIECE_BYTES = 2**24


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
    rows = request.rows_for(d)
    read = partial(cut_blocks, take, n, rows, source=where)
    across = across_slices(take, n, source=where)
    pieces = partial(_pieces, path, whole, take, rows) if whole.flags.c_contiguous else None
    return Source(None, d, n, read, Access.DISK, whole.nbytes, across, pieces)


def _pieces(
    path: Path, whole: np.memmap[tuple[int, ...], np.dtype[np.generic]], take: Take, rows: int
) -> Iterator[Piece]:
    """Rows of about 16 MiB at a time; the header belongs to the first ones."""
    n, width = len(whole), whole.shape[1] * whole.dtype.itemsize

    def read(span: slice, first_row: int) -> Iterator[Block]:
        for part in spans(span.stop - span.start, rows):
            start, stop = span.start + part.start, span.start + part.stop
            yield Block(take(slice(start, stop)), None, str(path), start, stop / n)

    for span in spans(n, max(1, PIECE_BYTES // width)):
        begin = whole.offset + span.start * width if span.start else 0
        yield Piece(path, ((begin, whole.offset + span.stop * width),), partial(read, span))


def _map(path: Path) -> np.memmap[tuple[int, ...], np.dtype[np.generic]]:
    with report_damage(str(path), EOFError, ValueError):
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
        with report_damage(str(path), ValueError):
            return native(np.memmap(path, dtype, mode="r", offset=offset, shape=shape))

    return take


def _slices(path: Path) -> Take:
    return lambda span: native(_map(path)[span])
