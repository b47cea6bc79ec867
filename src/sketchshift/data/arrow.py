"""Arrow tables, record batches, streams and datasets.

Takes anything made of record batches, also through the Arrow C interface (DuckDB,
Ibis, ...). Tables are cut without a copy; streams are consumed batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from sketchshift.data.batches import batch_blocks, fields_of, share_of
from sketchshift.data.blocks import Access, Block, Source, once, reading
from sketchshift.data.columns import Choice, choose
from sketchshift.data.request import Request
from sketchshift.errors import DataError

__all__ = ["open_arrow"]

BATCHES_AHEAD = 2  # a dataset scan reads this far ahead; Arrow's own default is 16


def open_arrow(data: Any, request: Request) -> Source:
    """Read Arrow data, whole or streamed.

    Parameters
    ----------
    data : Table, RecordBatch, RecordBatchReader, Dataset, or Arrow C stream or array
        Streams are taken one batch at a time and can be read once.
    request : Request
        Weights as an array are accepted for tables and record batches only.

    Returns
    -------
    source : Source
        Each block is a new array of shape (n, d).
    """
    if isinstance(data, pa.Table | pa.RecordBatch):
        return _open_table(data, request)
    if _is_dataset(data):
        return _open_dataset(data, request)
    try:
        if isinstance(data, pa.RecordBatchReader):
            return _open_stream(data, request)
        if hasattr(data, "__arrow_c_stream__"):
            return _open_stream(pa.RecordBatchReader.from_stream(data), request)
        if hasattr(data, "__arrow_c_array__"):
            return _open_table(pa.record_batch(data), request)
    except pa.ArrowException as cause:
        msg = f"cannot read {type(data).__name__} as a table of Arrow columns: {cause}"
        raise DataError(msg) from cause
    msg = (
        f"cannot read pyarrow's {type(data).__name__} as rows and columns. "
        "Pass a Table, RecordBatch, RecordBatchReader or Dataset."
    )
    raise DataError(msg)


def _open_table(table: Any, request: Request) -> Source:
    choice = choose(fields_of(table.schema), request, "the table")
    weights = request.weights_of(table.num_rows, "the table")
    labels = request.labels_of(table.num_rows, "the table")
    d, rows = len(choice.columns), request.rows_for(len(choice.columns))

    def read() -> Iterator[Block]:
        whole = isinstance(table, pa.RecordBatch)
        batches = [table] if whole else table.select(choice.names).to_batches(max_chunksize=rows)
        done = share_of(table.num_rows)
        blocks = batch_blocks(batches, choice, rows, source="table", done=done, weights=weights)
        return blocks if labels is None else _labelled(blocks, labels)

    return Source(choice.columns, d, table.num_rows, read)


def _labelled(blocks: Iterator[Block], labels: Callable[[slice], Any]) -> Iterator[Block]:
    for block in blocks:
        span = slice(block.first_row, block.first_row + len(block.values))
        yield replace(block, keys=labels(span))


def _open_stream(reader: Any, request: Request) -> Source:
    request.refuse_weight_array("an Arrow stream")
    choice = choose(fields_of(reader.schema), request, "the stream")
    d = len(choice.columns)
    read = once(_named("the stream", reader, choice, request.rows_for(d)), "an Arrow stream")
    return Source(choice.columns, d, None, read, Access.ONCE)


def _open_dataset(dataset: Any, request: Request) -> Source:
    request.refuse_weight_array("a dataset")
    choice = choose(fields_of(dataset.schema), request, "the dataset")
    d, rows = len(choice.columns), request.rows_for(len(choice.columns))

    def read() -> Iterator[Block]:
        batches = dataset.to_batches(
            columns=choice.names,
            batch_size=rows,
            batch_readahead=BATCHES_AHEAD,
            fragment_readahead=1,
        )
        return _named("dataset", batches, choice, rows)

    return Source(choice.columns, d, None, read, Access.DISK)


def _named(where: str, batches: Iterable[Any], choice: Choice, rows: int) -> Iterator[Block]:
    with reading(where, pa.ArrowException):
        yield from batch_blocks(batches, choice, rows, source=where.removeprefix("the "))


def _is_dataset(data: Any) -> bool:
    if type(data).__module__ != "pyarrow._dataset":
        return False
    import pyarrow.dataset as ds

    return isinstance(data, ds.Dataset)
