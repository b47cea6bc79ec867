"""Parquet files: only the chosen columns, a few pages at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sketchshift.data.batches import batch_blocks, fields_of, picked_blocks, share_of
from sketchshift.data.blocks import Access, Block, Piece, Source, reading
from sketchshift.data.columns import Choice, choose
from sketchshift.data.places import share_out, spread
from sketchshift.data.request import Request

__all__ = ["open_parquet"]

BUFFER_BYTES = 2**20
FOOTER_MARK_BYTES = 8  # behind the footer: its length, and the format's mark


def open_parquet(path: Path, request: Request) -> Source:
    """Read a Parquet file.

    Parameters
    ----------
    path : Path
        Its footer is read at once, for the columns and the number of rows.
    request : Request
        Other columns than those asked for are not touched.

    Returns
    -------
    source : Source
        Memory: one block, and one buffer of 1 MiB or one page per column read,
        however large the row groups are.
    """
    where = str(path)
    with reading(where, pa.ArrowException, UnicodeDecodeError), _open(path) as file:
        fields, footer = fields_of(file.schema_arrow), file.metadata
    choice = choose(fields, request, where)
    d, rows = len(choice.columns), request.rows_for(len(choice.columns))
    n, sizes = footer.num_rows, _group_sizes(footer)

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        return _read_across(path, choice, sizes, share_out(sizes, n_rows, n_places, seed), seed)

    def read() -> Iterator[Block]:
        return _read(path, choice, rows, n, None, 0)

    def pieces() -> Iterator[Piece]:
        for group in range(len(sizes)):
            ranges = _ranges(path, footer, group, choice)
            yield Piece(path, ranges, partial(_read, path, choice, rows, n, [group]))

    n_bytes = path.stat().st_size
    return Source(choice.columns, d, n, read, Access.DISK, n_bytes, across, pieces)


def _open(path: Path) -> Any:
    """Without ``pre_buffer``, which holds whole row groups, and with buffered pages."""
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES)


def _read(
    path: Path, choice: Choice, rows: int, n: int, groups: list[int] | None, first_row: int
) -> Iterator[Block]:
    """Blocks of some row groups, or of all; ``first_row`` rows lie before them."""
    where = str(path)
    with reading(where, pa.ArrowException), _open(path) as file:
        batches = file.iter_batches(batch_size=rows, row_groups=groups, columns=choice.names)
        done = share_of(n)
        yield from batch_blocks(batches, choice, rows, source=where, done=done, first_row=first_row)


def _ranges(path: Path, footer: Any, group: int, choice: Choice) -> tuple[tuple[int, int], ...]:
    """Bytes of the chosen columns of a row group; with the first one, the footer."""
    chunks = [footer.row_group(group).column(i) for i in range(footer.num_columns)]
    chunks = [chunk for chunk in chunks if chunk.path_in_schema in choice.names] or chunks
    starts = [
        min(c.data_page_offset, c.dictionary_page_offset or c.data_page_offset) for c in chunks
    ]
    ranges = [(s, s + c.total_compressed_size) for s, c in zip(starts, chunks, strict=True)]
    if group == 0:
        size = path.stat().st_size
        ranges.append((size - footer.serialized_size - FOOTER_MARK_BYTES, size))
    return tuple(ranges)


def _group_sizes(footer: Any) -> list[int]:
    return [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]


def _read_across(
    path: Path,
    choice: Choice,
    sizes: Sequence[int],
    shares: Iterable[tuple[int, int, int]],
    seed: int,
) -> Iterator[Block]:
    """Rows all along the row groups chosen; a group is decoded up to its last row picked."""
    where = str(path)
    with reading(where, pa.ArrowException), _open(path) as file:
        for group, n_rows, _ in shares:
            positions = spread(n_rows, sizes[group], seed + group)
            batches = file.iter_batches(row_groups=[group], columns=choice.names)
            first = sum(sizes[:group])
            yield from picked_blocks(batches, positions, choice, source=where, first_row=first)
