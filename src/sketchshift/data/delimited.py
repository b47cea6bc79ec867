"""Text tables: CSV and TSV, plain or gzipped.

The first rows tell which columns hold numbers; those chosen are then read as float64
throughout, whatever the first rows look like. When that fails, ``delimited_faults``
says where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from sketchshift.data.batches import batch_blocks, fields_of
from sketchshift.data.blocks import Access, Block, Piece, Source, reading
from sketchshift.data.columns import Choice, Field, choose
from sketchshift.data.delimited_faults import explain, other_encoding, other_separator, parses
from sketchshift.data.delimited_places import can_be_cut, lines_across, row_ranges
from sketchshift.data.delimited_reader import delimiter_of, is_gzipped, open_text
from sketchshift.data.labels import as_written
from sketchshift.data.request import Request, listed
from sketchshift.errors import DataError

__all__ = ["open_delimited"]

READ_BYTES = 2**20
SNIFF_BYTES = (2**16, 2**20, 2**24)  # a larger one is tried when a line does not fit
TOO_SHORT = ("straddling object", "cannot infer number of columns")  # Arrow's words for that
CELLS_TRIED = 100


def open_delimited(path: Path, request: Request) -> Source:
    """Read a CSV or TSV file with a header line.

    Parameters
    ----------
    path : Path
        Empty cells and the usual spellings of a missing value (NA, nan, null) become
        NaN; true and false become 1 and 0. Blank lines are skipped. Of keys that are not
        dates, times or booleans, only the empty cell is missing.
    request : Request
        Other columns than those asked for are not converted.

    Returns
    -------
    source : Source
        Memory: one block, and about 32 MiB of text that Arrow reads ahead.
    """
    where = str(path)
    with reading(where, pa.ArrowException):
        if fault := other_encoding(path):
            raise fault
        head, sniffed = _head(path)
    fields = [
        _field(field, column)
        for field, column in zip(fields_of(head.schema), head.columns, strict=True)
    ]
    _check_header(fields, request, where)
    if len(fields) == 1 and not fields[0].is_number and (fault := other_separator(path)):
        raise fault
    choice = choose(fields, request, where)
    types = {name: _read_as(head.schema.field(name).type) for name in choice.numeric}
    types |= {k: _key_type(head.schema.field(k).type) for k in choice.keys if k not in types}
    d, size = len(choice.columns), max(READ_BYTES, 2 * sniffed)
    rows = request.rows_for(d)

    def read() -> Iterator[Block]:
        return _read(path, choice, types, size, rows)

    def read_part(part: tuple[int, int], first_row: int) -> Iterator[Block]:
        return _read(path, choice, types, size, rows, part, head.schema.names, first_row)

    def pieces() -> Iterator[Piece]:
        first = 0  # the header belongs to the first rows
        for part in row_ranges(path, delimiter):
            yield Piece(path, ((first, part[1]),), partial(read_part, part))
            first = part[1]

    n_bytes, delimiter = path.stat().st_size, delimiter_of(path)
    is_sought = not is_gzipped(path)
    across = lines_across(path, choice, types, read) if is_sought else None
    cut = pieces if is_sought and can_be_cut(path, delimiter) else None
    return Source(choice.columns, d, None, read, Access.DISK, n_bytes, across, cut)


def _read(
    path: Path,
    choice: Choice,
    types: Mapping[str, Any],
    size: int,
    rows: int,
    part: tuple[int, int] | None = None,
    names: Sequence[str] | None = None,
    first_row: int = 0,
) -> Iterator[Block]:
    """Blocks of all of a file, or of a part of it whose columns have these names."""
    seen = 0 if part is None else part[0]

    def batches() -> Iterator[Any]:
        nonlocal seen
        for batch in reader:
            seen += size  # one batch is one chunk of text
            yield as_written(batch, [name for name, kind in types.items() if kind == pa.string()])

    def done(_: int) -> float:
        return min(1.0, float((raw.tell() if is_gzipped(path) else seen) / raw.size()))

    with reading(str(path), pa.ArrowException):
        try:
            reader, raw = open_text(path, size, types, text_as_written=True, part=part, names=names)
            yield from batch_blocks(
                batches(), choice, rows, source=str(path), done=done, first_row=first_row
            )
        except pa.ArrowInvalid as cause:
            raise explain(path, size, types, cause) from cause


def _head(path: Path) -> tuple[Any, int]:
    """The first rows with types as Arrow infers them, and the bytes this took."""
    for size in SNIFF_BYTES:
        try:
            reader, _ = open_text(path, size, {})
            _ = reader.schema.names
            return next(iter(reader), reader.schema.empty_table()), size
        except UnicodeDecodeError as cause:
            msg = f"cannot read {path}: its header is not UTF-8. Convert the file first."
            raise DataError(msg) from cause
        except pa.ArrowInvalid as cause:
            fault = cause
            if not any(words in str(cause) for words in TOO_SHORT):
                break
    raise explain(path, size, {}, fault) from fault


def _field(field: Field, column: Any) -> Field:
    """A column of text counts as numbers when at least half of its first cells are."""
    if not pa.types.is_string(column.type):
        return field
    cells = column.drop_null()[:CELLS_TRIED]
    numbers = sum(parses(cells[i : i + 1], pa.float64()) for i in range(len(cells)))
    return Field(field.name, "text", 2 * numbers >= len(cells))


def _read_as(inferred: Any) -> Any:
    return pa.bool_() if pa.types.is_boolean(inferred) else pa.float64()


def _key_type(inferred: Any) -> Any:
    """Dates, times and booleans as such, all else as it is written: 01234 is not 1234."""
    is_typed = pa.types.is_temporal(inferred) or pa.types.is_boolean(inferred)
    return inferred if is_typed else pa.string()


def _check_header(fields: Sequence[Field], request: Request, where: str) -> None:
    names = [field.name for field in fields]
    meant = request.columns is not None and set(request.columns) <= set(names)
    if all(_is_number(name) for name in names) and not meant:
        msg = (
            f"{where} seems to have no header row: its first line is {listed(names)}. "
            "Add a line of column names, or list these in columns=[...] if they are names."
        )
        raise DataError(msg)
    if request.columns is None and "" in names:
        numeric = listed([field.name for field in fields if field.is_number and field.name])
        msg = (
            f"{where}: column {names.index('')} (counting from 0) has no name; is it the index "
            f"that pandas writes? Choose columns=[{numeric or '...'}], or write the file with "
            "index=False."
        )
        raise DataError(msg)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
