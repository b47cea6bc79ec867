"""How large the pages of a Parquet file are, before one of them is decoded.

A page is decompressed as a whole, to the size that its own header says; what the footer says of
it nobody checks. So the headers are walked, from page to page: structs of Thrift's compact
protocol, of which two numbers matter and the rest is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from sketchshift.errors import DataError

__all__ = ["page_sizes"]

DECOMPRESSED, STORED = 2, 3  # numbers of the fields of a page header
BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 3, 7, 8, 9, 10, 12  # types of Thrift
INTEGERS = (4, 5, 6)
DEEPEST = 16


def page_sizes(file: BinaryIO, chunk: Any) -> Iterator[int]:
    """Bytes of each page of a column chunk, decompressed.

    Parameters
    ----------
    file : binary file
        Where the chunk lies.
    chunk : pyarrow.parquet.ColumnChunkMetaData
        Says where it begins and ends.

    Yields
    ------
    size : int
        Of the header, not of the values: those of a dictionary may be many more.
    """
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    end = at + chunk.total_compressed_size
    while at < end:
        file.seek(at)
        sizes = dict(_integers(file))
        size, stored = sizes.get(DECOMPRESSED, -1), sizes.get(STORED, -1)
        if size < 0 or stored < 0:
            raise _damaged()
        yield size
        at = file.tell() + stored


def _damaged() -> DataError:
    return DataError("it seems damaged or incomplete (a page without its sizes).")


def _integers(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Numbers and values of the fields of a struct that are integers; reads all of it."""
    number = 0
    while head := _byte(file):
        number = number + (head >> 4) if head >> 4 else _signed(file)
        kind = head & 15
        if kind in INTEGERS:
            yield number, _signed(file)
        else:
            _skip(file, kind, 0, in_list=False)


def _skip(file: BinaryIO, kind: int, depth: int, *, in_list: bool) -> None:
    """Read past a value; of a boolean, only lists have a byte of its own."""
    if depth > DEEPEST:
        raise _damaged()
    if kind in INTEGERS:
        _varint(file)
    elif kind == BYTE or (kind in (1, 2) and in_list):
        _byte(file)
    elif kind in (DOUBLE, BINARY):
        file.seek(8 if kind == DOUBLE else _varint(file), os.SEEK_CUR)
    elif kind in (LIST, SET):
        head = _byte(file)
        for _ in range(head >> 4 if head >> 4 < 15 else _varint(file)):
            _skip(file, head & 15, depth + 1, in_list=True)
    elif kind == STRUCT:
        while head := _byte(file):
            if not head >> 4:
                _varint(file)
            _skip(file, head & 15, depth + 1, in_list=False)
    elif kind not in (1, 2):  # a page header holds no map, and there are no other types
        raise _damaged()


def _byte(file: BinaryIO) -> int:
    byte = file.read(1)
    if not byte:
        raise _damaged()
    return byte[0]


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 64, 7):
        byte = _byte(file)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise _damaged()


def _signed(file: BinaryIO) -> int:
    value = _varint(file)
    return (value >> 1) ^ -(value & 1)
