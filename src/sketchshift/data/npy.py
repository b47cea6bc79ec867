"""Arrays saved by ``np.save``, mapped one window at a time.

A map of the whole file would count as resident memory page by page as it is read;
a window is dropped with its block. Pickled objects are never loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from sketchshift._paths import Place, RemotePath, map_ahead
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

__all__ = ["MappedArray", "open_mapped", "open_npy"]

PIECE_BYTES = 2**24


def open_npy(path: Place, request: Request) -> Source:
    """Read a ``.npy`` file.

    Parameters
    ----------
    path : Path or RemotePath
        A two-dimensional array of real numbers.
    request : Request
        Columns cannot be asked for by name.

    Returns
    -------
    source : Source
        Blocks are read-only maps of their own rows; of a store, their bytes. A file in Fortran
        order is mapped whole, since a row lies all over it; in a store it is refused.
    """
    where = str(path)
    shape, dtype, offset, is_in_rows = _look_at(path)
    check_shape(shape, where)
    check_dtype(dtype, where)
    request.refuse_names(where)
    take = None if is_in_rows else _slices(path)
    return open_mapped(MappedArray(path, dtype, shape, offset), request, take)


@dataclass(frozen=True)
class MappedArray:
    """Rows that follow each other in a file.

    Parameters
    ----------
    path : Path or RemotePath
        The file.
    dtype : dtype
        Of the numbers as they lie there.
    shape : tuple of two int
        Rows and columns.
    offset : int
        Where the first row begins, in bytes.
    convert : callable
        Makes numbers of a window of the file.
    """

    path: Place
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    convert: Callable[[RealArray], RealArray] = native

    @property
    def width(self) -> int:
        """Bytes of a row."""
        return int(self.shape[1] * self.dtype.itemsize)

    def __getitem__(self, span: slice) -> RealArray:
        """Some rows, by opening the file for them alone; no map is kept."""
        offset = self.offset + span.start * self.width
        shape = (span.stop - span.start, self.shape[1])
        with report_damage(str(self.path), ValueError):
            window: Any
            if isinstance(self.path, RemotePath):
                data = self.path.read_range(offset, offset + shape[0] * self.width)
                window = np.frombuffer(data, self.dtype).reshape(shape)
            else:
                window = np.memmap(self.path, self.dtype, "r", offset, shape)
            return np.require(self.convert(window), requirements="A")  # rows may begin anywhere


def open_mapped(array: MappedArray, request: Request, take: Take | None = None) -> Source:
    """Read rows of a file, one window at a time.

    Parameters
    ----------
    array : MappedArray
        Of real numbers.
    request : Request
        Its columns are not looked at.
    take : callable, optional
        Gives a slice of the rows where these do not follow each other.
    """
    (n, d), where, rows = array.shape, str(array.path), request.rows_for(array.shape[1])
    pieces = partial(_pieces, array, rows) if take is None else None
    take = array.__getitem__ if take is None else take
    ahead = partial(map_ahead, file=array.path)
    read = partial(cut_blocks, take, n, rows, source=where, ahead=ahead)
    across = across_slices(take, n, source=where, ahead=ahead)
    return Source(None, d, n, read, Access.DISK, n * array.width, across, pieces)


def _pieces(array: MappedArray, rows: int) -> Iterator[Piece]:
    """Rows of about 16 MiB at a time; what lies before them belongs to the first ones."""
    n, width, path = array.shape[0], array.width, array.path

    def read(span: slice, first_row: int) -> Iterator[Block]:
        parts = [
            slice(span.start + part.start, span.start + part.stop)
            for part in spans(span.stop - span.start, rows)
        ]
        for part, values in zip(parts, map_ahead(array.__getitem__, parts, path), strict=True):
            yield Block(values, None, str(path), part.start, part.stop / n)

    for span in spans(n, max(1, PIECE_BYTES // width)):
        begin = array.offset + span.start * width if span.start else 0
        yield Piece(path, ((begin, array.offset + span.stop * width),), partial(read, span))


def _look_at(path: Place) -> tuple[tuple[int, ...], np.dtype[Any], int, bool]:
    """Shape and type of an array, where it begins, and whether its rows follow each other."""
    if not isinstance(path, RemotePath):
        whole = _map(path)
        return whole.shape, whole.dtype, whole.offset, whole.flags.c_contiguous
    with report_damage(str(path), EOFError, ValueError), path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0}
        read_header = readers.get(version, np.lib.format.read_array_header_2_0)
        shape, is_fortran, dtype = read_header(file)
        offset, n_bytes = file.tell(), path.stat().st_size
        if dtype.hasobject:
            raise _objects(path)
        if n_bytes < offset + prod(shape) * dtype.itemsize:
            raise ValueError(f"{n_bytes} bytes are too few for an array of shape {shape}")
    return shape, dtype, offset, not is_fortran or min(shape, default=0) <= 1


def _map(path: Path) -> np.memmap[tuple[int, ...], np.dtype[np.generic]]:
    with report_damage(str(path), EOFError, ValueError):
        try:
            return np.lib.format.open_memmap(path, mode="r")
        except ValueError as cause:
            if "Python objects" not in str(cause):
                raise
    raise _objects(path)


def _objects(path: Place) -> DataError:
    return DataError(f"cannot read {path} of dtype object. Save numbers: X.astype(float).")


def _slices(path: Place) -> Take:
    if isinstance(path, RemotePath):
        msg = (
            f"cannot read {path}: its columns follow each other, so that a row lies all over it. "
            "Save it by rows: np.save(path, np.ascontiguousarray(X))."
        )
        raise DataError(msg)
    return lambda span: native(_map(path)[span])
