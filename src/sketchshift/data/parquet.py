"""Parquet files: only the chosen columns, a few pages at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sketchshift.data.batches import batch_blocks, fields_of, share_of
from sketchshift.data.blocks import Block, Source, reading
from sketchshift.data.columns import Choice, choose
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
    with reading(where, pa.ArrowException), _open(path) as file:
        fields, n = fields_of(file.schema_arrow), file.metadata.num_rows
    choice = choose(fields, request, where)
    d, rows = len(choice.columns), request.rows_for(len(choice.columns))
    return Source(choice.columns, d, n, lambda: _read(path, choice, rows, n))


def _open(path: Path) -> Any:
    """Without ``pre_buffer``, which holds whole row groups, and with buffered pages."""
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES)


def _read(path: Path, choice: Choice, rows: int, n: int) -> Iterator[Block]:
    where = str(path)
    with reading(where, pa.ArrowException), _open(path) as file:
        batches = file.iter_batches(batch_size=rows, columns=choice.names)
        yield from batch_blocks(batches, choice, rows, source=where, done=share_of(n))
