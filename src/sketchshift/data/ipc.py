"""Arrow files: the file form (also called Feather) and the stream form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from sketchshift.data.batches import batch_blocks, fields_of, picked_blocks
from sketchshift.data.blocks import Access, Block, Piece, Source, reading
from sketchshift.data.columns import Choice, choose
from sketchshift.data.places import share_out, spread
from sketchshift.data.request import Request
from sketchshift.errors import DataError

__all__ = ["open_ipc"]

END_MARK_BYTES = 8  # a stream form may end with these, behind the last batch
MAGIC_BYTES = 8  # at the start of the file form, filled up


def open_ipc(path: Path, request: Request) -> Source:
    """Read an Arrow file in either form; which one it is, its first bytes say.

    Parameters
    ----------
    path : Path
        Feather version 1, deprecated since 2020, is refused.
    request : Request
        Other columns than those asked for are not decoded.

    Returns
    -------
    source : Source
        Memory: one block and the chosen columns of one record batch; uncompressed
        batches of the file form are mapped, so that not even those are copied.
    """
    where = str(path)
    with reading(where), path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"FEA1"):
        msg = f"cannot read {where}: it is Feather version 1. Rewrite it as Parquet or Arrow."
        raise DataError(msg)
    return (_open_file if magic == b"ARROW1" else _open_stream)(path, request)


def _open_file(path: Path, request: Request) -> Source:
    where = str(path)
    with (
        reading(where, pa.ArrowException),
        pa.memory_map(where) as file,
        pa.ipc.open_file(file) as reader,
    ):
        schema, n_batches = reader.schema, reader.num_record_batches
    choice = choose(fields_of(schema), request, where)
    d, rows = len(choice.columns), request.rows_for(len(choice.columns))

    def read_batches(numbers: range, first_row: int) -> Iterator[Block]:
        with reading(where, pa.ArrowException):
            options, n_read = _only(schema, choice), 0

            def batches() -> Iterator[Any]:
                nonlocal n_read
                for i in numbers:
                    n_read = i + 1
                    yield _batch(path, options, i)

            def done(_: int) -> float:
                return float(n_read / n_batches)

            yield from batch_blocks(
                batches(), choice, rows, source=where, done=done, first_row=first_row
            )

    def read() -> Iterator[Block]:
        return read_batches(range(n_batches), 0)

    def pieces() -> Iterator[Piece]:
        ends = [0, *_batch_ends(path)]
        if len(ends) != n_batches + 1:  # not written one after the other
            ends, numbers = [0, path.stat().st_size], [range(n_batches)]
        else:
            numbers = [range(i, i + 1) for i in range(n_batches)]
        for span, chosen in zip(pairwise(ends), numbers, strict=True):
            yield Piece(path, (span,), partial(read_batches, chosen))

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        with reading(where, pa.ArrowException):
            chosen = spread(n_places, n_batches, seed).tolist()
            yield from _read_across(path, choice, _only(schema, choice), chosen, n_rows, seed)

    n_bytes = path.stat().st_size
    return Source(choice.columns, d, None, read, Access.DISK, n_bytes, across, pieces)


def _batch_ends(path: Path) -> Iterator[int]:
    """Where the record batches of a file form end, from the heads of its messages."""
    with reading(str(path), pa.ArrowException), pa.memory_map(str(path)) as file:
        file.seek(MAGIC_BYTES)
        while True:
            try:
                message = pa.ipc.read_message(file)
            except EOFError:
                return
            if message.type == "record batch":
                yield file.tell()


def _read_across(
    path: Path, choice: Choice, options: Any, chosen: Sequence[int], n_rows: int, seed: int
) -> Iterator[Block]:
    """Rows all along the chosen record batches, as many as their sizes ask for."""
    sizes = [_batch(path, options, i).num_rows for i in chosen]
    for part, n, _ in share_out(sizes, n_rows, len(chosen), seed):
        i = chosen[part]
        where = f"record batch {i} of {path}"
        batches = [_batch(path, options, i)]
        positions = spread(n, sizes[part], seed + i)
        yield from picked_blocks(batches, positions, choice, source=where, first_row=0)


def _batch(path: Path, options: Any, i: int) -> Any:
    """Map the file anew for each batch, so that pages already read are given back."""
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file, options=options) as reader:
        return reader.get_batch(i)


def _open_stream(path: Path, request: Request) -> Source:
    where = str(path)
    with (
        reading(where, pa.ArrowException),
        pa.OSFile(where) as file,
        pa.ipc.open_stream(file) as reader,
    ):
        schema = reader.schema
    choice = choose(fields_of(schema), request, where)
    d, rows = len(choice.columns), request.rows_for(len(choice.columns))

    def read() -> Iterator[Block]:
        with reading(where, pa.ArrowException), pa.OSFile(where) as file:
            size = file.size()
            reader = pa.ipc.open_stream(file, options=_only(schema, choice))

            def done(_: int) -> float:
                return min(1.0, float((file.tell() + END_MARK_BYTES) / size))

            yield from batch_blocks(reader, choice, rows, source=where, done=done)

    return Source(choice.columns, d, None, read, Access.DISK, path.stat().st_size)


def _only(schema: Any, choice: Choice) -> Any:
    fields = sorted(schema.get_field_index(name) for name in choice.names)
    return pa.ipc.IpcReadOptions(included_fields=fields)
