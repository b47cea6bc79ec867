"""Parquet files: only the chosen columns, a few pages at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sketchshift.data.batches import batch_blocks, fields_of, picked_blocks, share_of
from sketchshift.data.blocks import Access, Block, Source, reading
from sketchshift.data.columns import Choice, choose
from sketchshift.data.places import share_out, spread
from sketchshift.data.request import Request

__all__ = ["open_parquet"]

BUFFER_BYTES = 2**20


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
        return _read(path, choice, rows, n)

    return Source(choice.columns, d, n, read, Access.DISK, path.stat().st_size, across)


def _open(path: Path) -> Any:
    """Without ``pre_buffer``, which holds whole row groups, and with buffered pages."""
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES)


def _read(path: Path, choice: Choice, rows: int, n: int) -> Iterator[Block]:
    where = str(path)
    with reading(where, pa.ArrowException), _open(path) as file:
        batches = file.iter_batches(batch_size=rows, columns=choice.names)
        yield from batch_blocks(batches, choice, rows, source=where, done=share_of(n))


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
