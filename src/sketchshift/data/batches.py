"""The one way from Arrow to NumPy: record batches become blocks.

Takes a stream of record batches from ``arrow``, ``parquet``, ``ipc`` or ``delimited``.
Nulls become NaN; booleans, decimals and dictionary-encoded numbers become numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift.data.blocks import Block, spans
from sketchshift.data.columns import Choice, Field
from sketchshift.data.decimals import floats_of

__all__ = ["batch_blocks", "fields_of", "holds_numbers", "picked_blocks", "share_of", "stack"]


def batch_blocks(
    batches: Iterable[Any],
    choice: Choice,
    rows: int,
    *,
    source: str,
    done: Callable[[int], float | None] = lambda _: None,
    weights: FloatArray | None = None,
    first_row: int = 0,
) -> Iterator[Block]:
    """Blocks of at most ``rows`` rows from a stream of record batches.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Taken one at a time.
    choice : Choice
        Columns to stack, and the column of weights.
    rows : int
        A larger batch is cut; a smaller one becomes a block of its own.
    source : str
        Name for messages.
    done : callable
        Share of the input read, given the number of rows read.
    weights : array, optional
        Weights of all rows, where they do not come as a column.
    first_row : int
        Number of the stream's first row within ``source``.

    Yields
    ------
    block : Block
        One new array of shape (n, d): no more than one batch and one block in memory.
    """
    first = first_row
    for batch in batches:
        for span in spans(batch.num_rows, rows):
            piece = batch.slice(span.start, span.stop - span.start)
            after = first + piece.num_rows
            w = None if weights is None else weights[first:after]
            if choice.weights is not None:
                w = _to_numpy(piece.column(choice.weights)).astype(np.float64, copy=False)
            values = stack([piece.column(name) for name in choice.columns])
            keys = piece.select(list(choice.keys)) if choice.keys else None
            yield Block(values, w, source, first, done(after), keys)
            first = after


def picked_blocks(
    batches: Iterable[Any], positions: IntArray, choice: Choice, *, source: str, first_row: int
) -> Iterator[Block]:
    """Single rows from a stream of record batches, as far as that has to be read.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Taken one at a time, up to the last position.
    positions : array of int
        Rows to pick, ascending, counted from the start of the stream.
    choice : Choice
        Columns to stack, and the column of weights.
    source : str
        Name for messages.
    first_row : int
        Number of the stream's first row within ``source``.

    Yields
    ------
    block : Block
        One row.
    """
    first = 0
    for batch in batches:
        until = np.searchsorted(positions, first + batch.num_rows)
        here, positions = positions[:until] - first, positions[until:]
        picked = batch.take(pa.array(here))
        for block in batch_blocks([picked], choice, max(len(here), 1), source=source):
            for i, row in enumerate(here):
                weights = None if block.weights is None else block.weights[i : i + 1]
                at = first_row + first + int(row)
                yield Block(block.values[i : i + 1], weights, source, at)
        first += batch.num_rows
        if not len(positions):
            return


def stack(columns: Sequence[Any]) -> RealArray:
    """Arrow columns side by side as one array of shape (n, d)."""
    arrays = [_to_numpy(column) for column in columns]
    values = np.empty((len(arrays[0]), len(arrays)), np.result_type(*arrays))
    for j, array in enumerate(arrays):
        values[:, j] = array
    return values


def fields_of(schema: Any) -> list[Field]:
    """The columns of an Arrow schema."""
    return [Field(field.name, str(field.type), holds_numbers(field.type)) for field in schema]


def holds_numbers(kind: Any) -> bool:
    """Whether values of an Arrow type can be read as real numbers."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return holds_numbers(kind.value_type)
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    )


def share_of(total: int) -> Callable[[int], float]:
    """Share of ``total`` rows, as ``batch_blocks`` asks for it."""
    return lambda rows: rows / total


def _to_numpy(column: Any) -> RealArray:
    """One Arrow column as a NumPy vector; nulls make integers and booleans float64."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    kind = column.type
    has_missing_bits = pa.types.is_boolean(kind) and column.null_count
    if pa.types.is_decimal(kind):
        return floats_of(column)
    if pa.types.is_null(kind) or has_missing_bits:
        column = column.cast(pa.float64())
    if isinstance(column, pa.ChunkedArray):
        return np.asarray(column.to_numpy())
    return np.asarray(column.to_numpy(zero_copy_only=False))
