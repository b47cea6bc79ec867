"""How large the pages of a Parquet file are, before one of them is decoded.

A page is decompressed as a whole, to the size that its own header says; what the footer says of
it nobody checks. So the headers are walked, from page to page: structs of Thrift's compact
protocol, of which a few numbers matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from sketchshift.errors import DataError

__all__ = ["Page", "pages_of"]

KIND, SIZE, STORED, DATA, DATA_2 = 1, 2, 3, 5, 8  # fields of a page header
N_VALUES, ENCODING, ENCODING_2 = 1, 2, 4  # fields of the header of a page of data
DICTIONARY, SHARED_PREFIXES = 2, 7  # a kind of page, and an encoding

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12  # types of Thrift
INTEGERS = (4, 5, 6)
DEEPEST = 16


class Page(NamedTuple):
    """Bytes of a page when decompressed, and what it takes a row, at most, when decoded."""

    n_bytes: int
    n_bytes_a_row: float


def pages_of(file: BinaryIO, chunk: Any) -> Iterator[Page]:
    """The pages of a column chunk.

    Parameters
    ----------
    file : binary file
        Where the chunk lies.
    chunk : pyarrow.parquet.ColumnChunkMetaData
        Says where it begins and ends.

    Yields
    ------
    page : Page
        A dictionary, or values that share what they begin with, may stand for all of its bytes
        in every row; other pages hold what they hold, mean over their values.
    """
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < at:
        at = chunk.dictionary_page_offset
    end = at + chunk.total_compressed_size
    while at < end:
        file.seek(at)
        header = _struct(file, 0)
        size, stored = header.get(SIZE, -1), header.get(STORED, -1)
        if size < 0 or stored < 0:
            raise _damaged()
        data, second = header.get(DATA, {}), header.get(DATA_2, {})
        encoding = data.get(ENCODING, second.get(ENCODING_2))
        n_values = data.get(N_VALUES, second.get(N_VALUES, 0))
        is_shared = header.get(KIND) == DICTIONARY or encoding == SHARED_PREFIXES
        yield Page(size, size if is_shared else size / max(1, n_values))
        at = file.tell() + stored


def _damaged() -> DataError:
    return DataError("it seems damaged or incomplete (the header of a page makes no sense).")


def _struct(file: BinaryIO, depth: int) -> dict[int, Any]:
    """The fields of a struct by their numbers: integers and structs; others are read past."""
    if depth > DEEPEST:
        raise _damaged()
    fields, number = {}, 0
    while head := _byte(file):
        number = number + (head >> 4) if head >> 4 else _signed(file)
        value = _value(file, head & 15, depth)
        if value is not None:
            fields[number] = value
    return fields


def _value(file: BinaryIO, kind: int, depth: int) -> Any:
    if kind in INTEGERS:
        return _signed(file)
    if kind == STRUCT:
        return _struct(file, depth + 1)
    if kind in (DOUBLE, BINARY):
        file.seek(8 if kind == DOUBLE else _varint(file), os.SEEK_CUR)
    elif kind == BYTE:
        _byte(file)
    elif kind in (LIST, SET):
        head = _byte(file)
        kind, n_items = head & 15, head >> 4 if head >> 4 < 15 else _varint(file)
        for _ in range(n_items):
            _value(file, BYTE if kind in (TRUE, FALSE) else kind, depth + 1)
    elif kind not in (TRUE, FALSE):  # a page header holds no map, and there are no other types
        raise _damaged()
    return None


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
