"""Places in a text table: lines from all along the file, and cuts between two rows.

A seek lands inside a line, or inside a quoted cell of several lines: what follows the next
line end is parsed by itself, and left out if that fails. Where much fails, the file is read
from start to end instead.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from sketchshift.data.batches import batch_blocks
from sketchshift.data.blocks import Across, Block, reading
from sketchshift.data.columns import Choice
from sketchshift.data.delimited_reader import parse_text
from sketchshift.data.places import SEEKS, by_position, spread

__all__ = ["can_be_cut", "lines_across", "row_ranges"]

LONGEST_LINE = 2**20  # bytes looked at for the end of a line
PIECE_BYTES, MOST_BYTES = 2**24, 2**26  # of text between two cuts; looked at for a cut
QUOTE = ord('"')


def lines_across(
    path: Path, choice: Choice, types: Mapping[str, Any], read: Callable[[], Iterable[Block]]
) -> Across:
    """Rows of a text file that can be sought in.

    Parameters
    ----------
    path : Path
        Not compressed.
    choice : Choice
        Columns to stack, and the column of weights.
    types : mapping
        Arrow types of the columns to convert.
    read : callable
        Starts a pass over the whole file, if all else fails.

    Returns
    -------
    across : callable
        As :class:`~sketchshift.data.Source` has it; up to 1000 seeks, however many places
        are asked for. Lines that follow long ones are a little more likely to be drawn.
    """

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        with reading(str(path), pa.ArrowException):
            blocks = list(_read_across(path, choice, types, n_rows, seed))
            if 2 * sum(len(block.values) for block in blocks) >= n_rows:
                yield from blocks
            else:
                yield from by_position(read)(n_rows, n_places, seed)

    return across


def _read_across(
    path: Path, choice: Choice, types: Mapping[str, Any], n_rows: int, seed: int
) -> Iterator[Block]:
    run = -(-n_rows // SEEKS)
    with path.open("rb") as file:
        header = _header(file)
        if not header.endswith(b"\n"):  # no line feeds to look for
            return
        body, size = file.tell(), path.stat().st_size
        for offset in spread(-(-n_rows // run), max(size - body, 0), seed).tolist():
            text = _lines(file, body + offset, run)
            try:
                table = parse_text(path, header + text, types)
            except pa.ArrowInvalid:  # the middle of a quoted cell, most likely
                continue
            where = f"{path}, counted from byte {body + offset},"
            yield from batch_blocks(table.to_batches(), choice, run, source=where)


def can_be_cut(path: Path, delimiter: str) -> bool:
    """Whether the header ends where a line does, and lines end as they do today."""
    with path.open("rb") as file:
        header = _header(file).removeprefix(BOM_UTF8)
    is_one_line = b"\r" not in header.rstrip(b"\r\n")
    return is_one_line and _last_row_end(header, delimiter) == len(header)


def row_ranges(path: Path, delimiter: str) -> Iterator[tuple[int, int]]:
    """Ranges of bytes that hold whole rows and, between them, all rows.

    Parameters
    ----------
    path : Path
        Not compressed; :func:`can_be_cut`.
    delimiter : str
        What separates the cells.

    Yields
    ------
    start, stop : int
        About 16 MiB apart. Where quotes stand so that the end of a row cannot be told from the
        end of a line inside a cell, the rest of the file is one range.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        _header(file)
        start = file.tell()
        while start < size:
            text, cut = file.read(PIECE_BYTES), None
            while start + len(text) < size and (cut := _last_row_end(text, delimiter)) is None:
                if len(text) >= MOST_BYTES:
                    break
                text += file.read(len(text))
            stop = size if cut is None else start + cut
            if text[:cut].strip(b"\r\n"):  # blank lines are no rows
                yield start, stop
            file.seek(start := stop)


def _last_row_end(text: bytes, delimiter: str) -> int | None:
    """Where the last whole row of some text ends, which begins with one; None if unknown.

    Quotes alternate: one opens a cell and the next one closes it, if each stands where it may,
    next to a delimiter, a line end or (a quote inside a cell) its twin.
    """
    signs = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(signs == QUOTE)
    edges = np.frombuffer(delimiter.encode() + b'\r\n"', dtype=np.uint8)
    opens, closes = quotes[0::2], quotes[1::2]
    before, after = signs[opens[opens > 0] - 1], signs[closes[closes < len(text) - 1] + 1]
    if not (np.isin(before, edges).all() and np.isin(after, edges).all()):
        return None
    end = text.rfind(b"\n")
    while end >= 0:
        n_before = int(np.searchsorted(quotes, end))
        if n_before % 2 == 0:
            return end + 1
        end = text.rfind(b"\n", 0, int(quotes[n_before - 1]))
    return None


def _header(file: IO[bytes]) -> bytes:
    """The first line that is not blank, or lines where a name in quotes goes on.

    The file stands behind it.
    """
    header = file.readline(LONGEST_LINE)
    while header and not header.removeprefix(BOM_UTF8).strip(b"\r\n"):
        header = file.readline(LONGEST_LINE)
    while header.count(b'"') % 2 and len(header) < LONGEST_LINE:
        line = file.readline(LONGEST_LINE)
        if not line:
            break
        header += line
    return header


def _lines(file: IO[bytes], offset: int, n: int) -> bytes:
    """Up to n whole lines behind a place, without those that quotes show to be in pieces.

    A line too long to be read, be it the one cut by the place, ends them.
    """
    file.seek(offset - 1)  # a line that starts right here is whole
    if len(file.readline(LONGEST_LINE)) == LONGEST_LINE:
        return b""
    read = (file.readline(LONGEST_LINE) for _ in range(2 * n + 8))
    lines = takewhile(lambda line: len(line) < LONGEST_LINE, read)
    whole = (line for line in lines if line.strip() and line.count(b'"') % 2 == 0)
    return b"".join(islice(whole, n))
