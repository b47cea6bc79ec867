"""How large the pages of a Parquet file are, before one of them is decoded.

A page is decompressed as a whole, to the size that its own header says; what the footer says of
it nobody checks. So the headers are walked, from page to page. They and the footer are structs of
Thrift's compact protocol, of which a few numbers matter. They are read here, since pyarrow's
objects for column chunks end the process when a footer is damaged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from sketchshift.errors import DataError

__all__ = ["Page", "pages_in"]

ROW_GROUPS, COLUMNS, DESCRIPTION = 4, 1, 3  # fields of a footer, a row group, a column chunk
PATH, STORED_CHUNK, FIRST_DATA, FIRST_DICTIONARY = 3, 7, 9, 11  # of a chunk's description
KIND, SIZE, STORED, DATA, DATA_2 = 1, 2, 3, 5, 8  # fields of a page header
N_VALUES, ENCODING, ENCODING_2 = 1, 2, 4  # fields of the header of a page of data
DICTIONARY, SHARED_PREFIXES = 2, 7  # a kind of page, and an encoding

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12  # types of Thrift
INTEGERS = (4, 5, 6)
DEEPEST = 16
LONGEST = 256  # bytes of a name; longer ones are read past


class Page(NamedTuple):
    """A page: its column, its size when decompressed, and what it takes a row when decoded."""

    column: str
    n_bytes: int
    n_bytes_a_row: float


def pages_in(file: BinaryIO) -> Iterator[Page]:
    """The pages of a Parquet file.

    Parameters
    ----------
    file : binary file
        From which is read here and there. What makes no sense is a :class:`DataError`.

    Yields
    ------
    page : Page
        A dictionary, or values that share what they begin with, may stand for all of its bytes
        in every row; other pages hold what they hold, mean over their values.
    """
    for chunk in _chunks(file):
        column = ".".join(part.decode(errors="replace") for part in _expect(chunk, PATH, list))
        at, dictionary = _expect(chunk, FIRST_DATA, int), chunk.get(FIRST_DICTIONARY, 0)
        at = dictionary if isinstance(dictionary, int) and 0 < dictionary < at else at
        end = at + _expect(chunk, STORED_CHUNK, int)
        while at < end:
            _go_to(file, at)
            header = _struct(file, 0)
            size, stored = (_expect(header, field, int) for field in (SIZE, STORED))
            if size < 0 or stored < 0:
                raise _damaged()
            yield Page(column, size, size / _n_values(header))
            at = file.tell() + stored


def _n_values(header: dict[int, Any]) -> int:
    """Values that share the bytes of a page; one, if each may take all of them."""
    first, second = (header.get(field) for field in (DATA, DATA_2))
    data, place = (first, ENCODING) if isinstance(first, dict) else (second, ENCODING_2)
    if header.get(KIND) == DICTIONARY or not isinstance(data, dict):
        return 1
    n_values = data.get(N_VALUES)
    if data.get(place) == SHARED_PREFIXES or not isinstance(n_values, int):
        return 1
    return max(1, n_values)


def _chunks(file: BinaryIO) -> Iterator[dict[int, Any]]:
    """Descriptions of the column chunks, from the footer."""
    end = file.seek(0, os.SEEK_END)
    if end < 12:
        raise _damaged()
    _go_to(file, end - 8)
    length = int.from_bytes(file.read(4), "little")
    _go_to(file, end - 8 - length)
    for group in _expect(_struct(file, 0), ROW_GROUPS, list):
        for chunk in _expect(group, COLUMNS, list):
            yield _expect(chunk, DESCRIPTION, dict)


def _go_to(file: BinaryIO, place: int) -> None:
    if place < 0:
        raise _damaged()
    file.seek(place)


def _expect(struct: Any, field: int, kind: type) -> Any:
    if not isinstance(struct, dict) or not isinstance(struct.get(field), kind):
        raise _damaged()
    return struct[field]


def _damaged() -> DataError:
    return DataError("it seems damaged or incomplete (its footer or a page makes no sense).")


def _struct(file: BinaryIO, depth: int) -> dict[int, Any]:
    """The fields of a struct by their numbers: integers, structs, short bytes, and lists."""
    fields, number = {}, 0
    while head := _byte(file):
        number = number + (head >> 4) if head >> 4 else _signed(file)
        fields[number] = _value(file, head & 15, depth + 1)
    return fields


def _value(file: BinaryIO, kind: int, depth: int) -> Any:
    if depth > DEEPEST:
        raise _damaged()
    if kind in INTEGERS:
        return _signed(file)
    if kind == STRUCT:
        return _struct(file, depth)
    if kind in (LIST, SET):
        return _list(file, depth)
    if kind == BYTE:
        return _byte(file)
    if kind in (DOUBLE, BINARY):
        length = 8 if kind == DOUBLE else _varint(file)
        if length <= LONGEST:
            return file.read(length)
        file.seek(length, os.SEEK_CUR)
    elif kind not in (TRUE, FALSE):  # there are no maps here, and no other types
        raise _damaged()
    return b""


def _list(file: BinaryIO, depth: int) -> list[Any]:
    head = _byte(file)
    kind, n_items = head & 15, head >> 4 if head >> 4 < 15 else _varint(file)
    kind = BYTE if kind in (TRUE, FALSE) else kind  # only in a struct they have none
    return [_value(file, kind, depth + 1) for _ in range(n_items)]


def _byte(file: BinaryIO) -> int:
    byte = file.read(1)
    if not byte:
        raise _damaged()
    return byte[0]


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = _byte(file)
        value |= (byte & 127) << shift
        if byte < 128:
            return value
    raise _damaged()


def _signed(file: BinaryIO) -> int:
    value = _varint(file)
    return (value >> 1) ^ -(value & 1)
