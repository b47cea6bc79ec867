"""Arrow, from memory and from files: record batches become blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sketchshift._paths import Place, RemotePath, arrow_file
from sketchshift._typing import BoolArray, FloatArray, IntArray, RealArray
from sketchshift.data.sample import share_out, spread
from sketchshift.data.source import (
    Access,
    Block,
    Choice,
    Field,
    Piece,
    Request,
    Source,
    choose,
    read_once,
    report_damage,
    spans,
)
from sketchshift.data.vectors import as_indices, find_width, item_type, unpack, width_of
from sketchshift.errors import DataError

__all__ = [
    "batch_blocks",
    "fields_of",
    "floats_of",
    "give_width",
    "holds_numbers",
    "open_arrow",
    "open_ipc",
    "open_parquet",
    "pick_blocks",
    "share_of",
    "stack",
    "values_of",
]

# Arrow's decimals as the floats nearest to them.
#
# Arrow's own cast rounds more than once: of six digits, every third number comes out one unit of
# the last place off, and is then not the number that the same digits in a text file are.

LARGEST_WHOLE = 2**53  # float64 holds every whole number up to it
LARGEST_POWER = 22  # and every power of ten up to 10**22


def floats_of(column: Any) -> FloatArray:
    """Decimals as ``float(decimal.Decimal)`` gives them, in float64; nulls become NaN.

    Parameters
    ----------
    column : Arrow array or chunked array
        Of any decimal type.

    Returns
    -------
    values : array of shape (n,)
        Digits and powers of ten that are floats themselves make one division, which is rounded
        once; others go through text, which takes some ten times longer.
    """
    if isinstance(column, pa.ChunkedArray):
        return np.concatenate([floats_of(chunk) for chunk in column.chunks] or [np.empty(0)])
    if len(column) == column.null_count:
        return np.full(len(column), np.nan)
    digits, is_short = _digits(column)
    scale = column.type.scale
    is_short &= abs(scale) <= LARGEST_POWER
    power = 10.0 ** min(abs(scale), LARGEST_POWER)
    values: FloatArray = digits / power if scale >= 0 else digits * power
    if column.null_count:
        is_missing = column.is_null().to_numpy(zero_copy_only=False)
        values[is_missing], is_short = np.nan, is_short | is_missing
    if not is_short.all():
        rest = column.filter(pa.array(~is_short))
        values[~is_short] = rest.cast(pa.string()).cast(pa.float64()).to_numpy()
    return values


def _digits(column: Any) -> tuple[IntArray, BoolArray]:
    """The whole numbers behind the decimals, and which of them float64 holds as they are."""
    width = column.type.bit_width
    kind: type[np.int32 | np.int64] = np.int32 if width == 32 else np.int64
    words = np.frombuffer(column.buffers()[1], kind).reshape(-1, max(1, width // 64))
    words = words[column.offset : column.offset + len(column)]
    lowest = words[:, 0].astype(np.int64, copy=False)
    is_short = (lowest <= LARGEST_WHOLE) & (lowest >= -LARGEST_WHOLE)
    for higher in words[:, 1:].T:  # of small numbers, they repeat the sign
        is_short &= higher == lowest >> 63
    return lowest, is_short


# The one way from Arrow to NumPy: record batches become blocks.
#
# Takes a stream of record batches, from memory or from any kind of file.
# Nulls become NaN; booleans, decimals and dictionary-encoded numbers become numbers.


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
                w = _weights_of(piece, choice)
            values = values_of(piece, choice, source, range(first, after))
            keys = piece.select(list(choice.keys)) if choice.keys else None
            yield Block(values, w, source, first, done(after), keys)
            first = after


def values_of(batch: Any, choice: Choice, source: str, rows: Sequence[int] | IntArray) -> RealArray:
    """The chosen columns side by side, what a recipe makes of them, or the vectors of one."""
    if choice.width is None:
        columns = [batch.column(name) for name in choice.columns]
        numbers = stack(columns) if columns else np.empty((batch.num_rows, 0))
        return numbers if choice.recipe is None else choice.recipe.encode(numbers, batch)
    name = choice.columns[0]
    return unpack(
        batch.column(name),
        choice.width,
        _to_numpy,
        name=name,
        where=source,
        rows=rows,
        skip_invalid=choice.skip_invalid,
    )


def _weights_of(batch: Any, choice: Choice) -> FloatArray:
    return _to_numpy(batch.column(choice.weights)).astype(np.float64, copy=False)


def give_width(choice: Choice, batches: Iterable[Any], request: Request) -> Choice:
    """The choice, with the length of its vectors where their type does not say it.

    Parameters
    ----------
    choice : Choice
        Of columns, or of one column of vectors.
    batches : iterable of RecordBatch
        Some with that column; taken until one has a vector.
    request : Request
        Says what the length is if none has.
    """
    if choice.width != 0:
        return choice
    widths = (find_width(batch.column(choice.columns[0])) for batch in batches)
    return replace(choice, width=next(filter(None, widths), request.n_features or 0))


def pick_blocks(
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
        Those of one batch, with their positions.
    """
    first = 0
    for batch in batches:
        until = np.searchsorted(positions, first + batch.num_rows)
        here, positions = positions[:until] - first, positions[until:]
        picked = batch.take(as_indices(here))
        if len(here):
            rows = first_row + first + here
            values = values_of(picked, choice, source, rows)
            weights = None if choice.weights is None else _weights_of(picked, choice)
            keys = picked.select(list(choice.keys)) if choice.keys else None
            yield Block(values, weights, source, int(rows[0]), keys=keys, rows=rows)
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
    return [
        Field(field.name, str(field.type), holds_numbers(field.type), _width_of(field.type))
        for field in schema
    ]


def _width_of(kind: Any) -> int | None:
    """Numbers in each row of a column of vectors; None for any other column."""
    if not (pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType)):
        return None
    item = item_type(kind)
    return None if item is None or not holds_numbers(item) else width_of(kind)


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
    has_bits = pa.types.is_boolean(kind)
    if pa.types.is_decimal(kind):
        return floats_of(column)
    if pa.types.is_null(kind) or (has_bits and column.null_count):
        column = column.cast(pa.float64())
    if isinstance(column, pa.ChunkedArray):
        return np.asarray(column.to_numpy())
    if pa.types.is_primitive(column.type) and not column.null_count and not has_bits:
        return np.from_dlpack(column)  # ``to_numpy`` imports pandas, where that is installed
    return np.asarray(column.to_numpy(zero_copy_only=False))


# Arrow tables, record batches, streams and datasets.
#
# Takes anything made of record batches, also through the Arrow C interface (DuckDB,
# Ibis, ...). Tables are cut without a copy; streams are consumed batch by batch.

ROWS_SHOWN = 1024  # vectors whose length is looked at, at a time
BATCHES_AHEAD = 2  # a dataset scan reads this far ahead; Arrow's own default is 16


def open_arrow(data: Any, request: Request) -> Source:
    """Read Arrow data, whole or streamed.

    Parameters
    ----------
    data : Table, RecordBatch, RecordBatchReader, Dataset, or Arrow C stream or array
        An array of lists is a table of this column.
        Also datasets of other libraries that derive from Arrow's, as Lance's do. Streams are
        taken one batch at a time and can be read once.
    request : Request
        Weights as an array are accepted for tables and record batches only.

    Returns
    -------
    source : Source
        Each block is a new array of shape (n, d).
    """
    if isinstance(data, pa.Array | pa.ChunkedArray) and _width_of(data.type) is not None:
        data = pa.table({"vectors": data})
    if isinstance(data, pa.Table | pa.RecordBatch):
        return _open_table(data, request)
    if _is_dataset(data):
        return _open_dataset(data, request)
    try:
        if isinstance(data, pa.RecordBatchReader):
            return _open_stream_in_memory(data, request)
        if hasattr(data, "__arrow_c_stream__"):
            return _open_stream_in_memory(pa.RecordBatchReader.from_stream(data), request)
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

    def batches(rows: int) -> Iterator[Any]:
        is_one = isinstance(table, pa.RecordBatch)
        parts = [table] if is_one else table.select(choice.names).to_batches(max_chunksize=rows)
        yield from parts

    with report_damage("the table", pa.ArrowException):
        choice = give_width(choice, batches(ROWS_SHOWN), request)
    d, rows = choice.n_features, request.rows_for(choice.n_features)

    def read() -> Iterator[Block]:
        done = share_of(table.num_rows)
        blocks = batch_blocks(
            batches(rows), choice, rows, source="table", done=done, weights=weights
        )
        return blocks if labels is None else _attach_labels(blocks, labels)

    return Source(choice.labels, d, table.num_rows, read, vector=choice.vector)


def _attach_labels(blocks: Iterator[Block], labels: Callable[[slice], Any]) -> Iterator[Block]:
    for block in blocks:
        span = slice(block.first_row, block.first_row + len(block.values))
        yield replace(block, keys=labels(span))


def _open_stream_in_memory(reader: Any, request: Request) -> Source:
    request.refuse_weight_array("an Arrow stream")
    choice = choose(fields_of(reader.schema), request, "the stream")
    taken: list[Any] = []

    def take() -> Iterator[Any]:
        for batch in reader:
            taken.append(batch)
            yield batch

    with report_damage("the stream", pa.ArrowException):
        choice = give_width(choice, take(), request)
    d = choice.n_features
    batches = chain(taken, reader)
    blocks = _name_stream("the stream", batches, choice, request.rows_for(d))
    read = read_once(blocks, "an Arrow stream")
    return Source(choice.labels, d, None, read, Access.ONCE, vector=choice.vector)


def _open_dataset(dataset: Any, request: Request) -> Source:
    request.refuse_weight_array("a dataset")
    choice = choose(fields_of(dataset.schema), request, "the dataset")

    def batches(names: list[str], rows: int) -> Iterator[Any]:
        options = {"batch_readahead": BATCHES_AHEAD, "fragment_readahead": 1}
        yield from dataset.to_batches(columns=names, batch_size=rows, **options)

    with report_damage("the dataset", pa.ArrowException):
        choice = give_width(choice, batches(list(choice.columns), ROWS_SHOWN), request)
    d, rows = choice.n_features, request.rows_for(choice.n_features)

    def read() -> Iterator[Block]:
        return _name_stream("dataset", batches(choice.names, rows), choice, rows)

    return Source(choice.labels, d, None, read, Access.DISK, vector=choice.vector)


def _name_stream(where: str, batches: Iterable[Any], choice: Choice, rows: int) -> Iterator[Block]:
    with report_damage(where, pa.ArrowException):
        yield from batch_blocks(batches, choice, rows, source=where.removeprefix("the "))


def _is_dataset(data: Any) -> bool:
    if not any(kind.__module__ == "pyarrow._dataset" for kind in type(data).__mro__):
        return False
    import pyarrow.dataset as ds

    return isinstance(data, ds.Dataset)


# Arrow files: the file form (also called Feather) and the stream form.

END_MARK_BYTES = 8  # a stream form may end with these, behind the last batch
MAGIC_BYTES = 8  # at the start of the file form, filled up


def open_ipc(path: Place, request: Request) -> Source:
    """Read an Arrow file in either form; which one it is, its first bytes say.

    Parameters
    ----------
    path : Path or RemotePath
        Feather version 1, deprecated since 2020, is refused.
    request : Request
        Other columns than those asked for are not decoded.

    Returns
    -------
    source : Source
        Memory: one block and the chosen columns of one record batch; uncompressed
        batches of the file form are mapped, so that not even those are copied. Of a store the
        buffers of the chosen columns are fetched.
    """
    where = str(path)
    with report_damage(where), path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"FEA1"):
        msg = f"cannot read {where}: it is Feather version 1. Rewrite it as Parquet or Arrow."
        raise DataError(msg)
    return (_open_ipc_file if magic == b"ARROW1" else _open_stream_file)(path, request)


def _open_ipc_file(path: Place, request: Request) -> Source:
    where = str(path)
    with (
        report_damage(where, pa.ArrowException),
        _map(path) as file,
        pa.ipc.open_file(file) as reader,
    ):
        schema, n_batches = reader.schema, reader.num_record_batches
    choice = choose(fields_of(schema), request, where)
    with report_damage(where, pa.ArrowException):
        shown = _batches(path, _only(schema, choice), range(n_batches))
        choice = give_width(choice, shown, request)
    d, rows = choice.n_features, request.rows_for(choice.n_features)

    def read_batches(numbers: range, first_row: int) -> Iterator[Block]:
        with report_damage(where, pa.ArrowException):
            options, n_read = _only(schema, choice), 0

            def batches() -> Iterator[Any]:
                nonlocal n_read
                taken = _batches(path, options, numbers)
                for i in numbers:
                    n_read = i + 1
                    yield next(taken)

            def done(_: int) -> float:
                return float(n_read / n_batches)

            yield from batch_blocks(
                batches(), choice, rows, source=where, done=done, first_row=first_row
            )

    def read() -> Iterator[Block]:
        return read_batches(range(n_batches), 0)

    def pieces() -> Iterator[Piece]:
        ends = [0, *([] if isinstance(path, RemotePath) else _batch_ends(path))]
        if len(ends) != n_batches + 1:  # not one after the other, or costly to find
            ends, numbers = [0, path.stat().st_size], [range(n_batches)]
        else:
            numbers = [range(i, i + 1) for i in range(n_batches)]
        for span, chosen in zip(pairwise(ends), numbers, strict=True):
            yield Piece(path, (span,), partial(read_batches, chosen))

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        with report_damage(where, pa.ArrowException):
            chosen = spread(n_places, n_batches, seed).tolist()
            yield from _read_batches_across(
                path, choice, _only(schema, choice), chosen, n_rows, seed
            )

    n_bytes = path.stat().st_size
    cost = n_bytes // max(n_batches, 1) if isinstance(path, RemotePath) else None
    of_file = (Access.DISK, n_bytes, across, pieces, choice.vector, cost)
    return Source(choice.labels, d, None, read, *of_file)


def _batch_ends(path: Path) -> Iterator[int]:
    """Where the record batches of a file form end, from the heads of its messages."""
    with report_damage(str(path), pa.ArrowException), pa.memory_map(str(path)) as file:
        file.seek(MAGIC_BYTES)
        while True:
            try:
                message = pa.ipc.read_message(file)
            except EOFError:
                return
            if message.type == "record batch":
                yield file.tell()


def _read_batches_across(
    path: Place, choice: Choice, options: Any, chosen: Sequence[int], n_rows: int, seed: int
) -> Iterator[Block]:
    """Rows all along the chosen record batches, as many as their sizes ask for."""
    sizes = [batch.num_rows for batch in _batches(path, options, chosen)]
    shares = list(share_out(sizes, n_rows, len(chosen), seed))
    taken = _batches(path, options, [chosen[part] for part, _, _ in shares])
    for part, n, _ in shares:
        i = chosen[part]
        where = f"record batch {i} of {path}"
        positions = spread(n, sizes[part], seed + i)
        yield from pick_blocks([next(taken)], positions, choice, source=where, first_row=0)


def _batches(path: Place, options: Any, numbers: Sequence[int]) -> Iterator[Any]:
    if isinstance(path, RemotePath):
        with pa.ipc.open_file(arrow_file(path), options=options) as reader:
            yield from map(reader.get_batch, numbers)
        return
    for i in numbers:
        yield _batch(path, options, i)


def _batch(path: Path, options: Any, i: int) -> Any:
    """Map the file anew for each batch, so that pages already read are given back."""
    with _map(path) as file, pa.ipc.open_file(file, options=options) as reader:
        return reader.get_batch(i)


def _map(path: Place) -> Any:
    return arrow_file(path) if isinstance(path, RemotePath) else pa.memory_map(str(path))


def _open_stream_file(path: Place, request: Request) -> Source:
    where = str(path)
    with (
        report_damage(where, pa.ArrowException),
        arrow_file(path, "bits") as file,
        pa.ipc.open_stream(file) as reader,
    ):
        schema = reader.schema
        choice = give_width(choose(fields_of(schema), request, where), reader, request)
    d, rows = choice.n_features, request.rows_for(choice.n_features)

    def read() -> Iterator[Block]:
        with report_damage(where, pa.ArrowException), arrow_file(path, "through") as file:
            size = file.size()
            reader = pa.ipc.open_stream(file, options=_only(schema, choice))

            def done(_: int) -> float:
                return min(1.0, float((file.tell() + END_MARK_BYTES) / size))

            yield from batch_blocks(reader, choice, rows, source=where, done=done)

    n_bytes = path.stat().st_size
    return Source(choice.labels, d, None, read, Access.DISK, n_bytes, vector=choice.vector)


def _only(schema: Any, choice: Choice) -> Any:
    fields = sorted(schema.get_field_index(name) for name in choice.names)
    return pa.ipc.IpcReadOptions(included_fields=fields)


# Parquet files: only the chosen columns, a few pages at a time.

BUFFER_BYTES = 2**20
FETCHED_BYTES, LEAST_FETCHED, MOST_FETCHED = 2**26, 2**18, 2**23  # in all; for each column
FOOTER_MARK_BYTES = 8  # behind the footer: its length, and the format's mark


def open_parquet(path: Place, request: Request) -> Source:
    """Read a Parquet file.

    Parameters
    ----------
    path : Path or RemotePath
        Its footer is read at once, for the columns and the number of rows.
    request : Request
        Other columns than those asked for are not touched.

    Returns
    -------
    source : Source
        Memory: one block, and one buffer of 1 MiB or one page per column read,
        however large the row groups are; of a store buffers of 64 MiB in all, or 256 KiB each.
    """
    where = str(path)
    with (
        report_damage(where, pa.ArrowException, UnicodeDecodeError),
        _open_parquet_file(path) as file,
    ):
        fields, footer = fields_of(file.schema_arrow), file.metadata
        choice = choose(fields, request, where)
        shown = file.iter_batches(ROWS_SHOWN, columns=list(choice.columns))
        choice = give_width(choice, shown, request)
    d, rows = choice.n_features, request.rows_for(choice.n_features)
    n, sizes = footer.num_rows, _group_sizes(footer)

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        shares = share_out(sizes, n_rows, n_places, seed)
        return _read_groups_across(path, choice, rows, sizes, shares, seed)

    def read() -> Iterator[Block]:
        return _read_parquet(path, choice, rows, n, None, 0)

    def pieces() -> Iterator[Piece]:
        for group in range(len(sizes)):
            ranges = _group_ranges(path, footer, group, choice)
            yield Piece(path, ranges, partial(_read_parquet, path, choice, rows, n, [group]))

    n_bytes, cost = path.stat().st_size, None
    if isinstance(path, RemotePath):
        ranges = (_group_ranges(path, footer, group, choice) for group in range(len(sizes)))
        cost = sum(stop - start for start, stop in chain(*ranges)) // max(len(sizes), 1)
    of_file = (Access.DISK, n_bytes, across, pieces, choice.vector, cost)
    return Source(choice.labels, d, n, read, *of_file)


def _open_parquet_file(path: Place, n_columns: int = 1) -> Any:
    """Without ``pre_buffer``, which holds whole row groups, and with buffered pages."""
    if isinstance(path, RemotePath):
        return pq.ParquetFile(arrow_file(path), pre_buffer=False, buffer_size=fetched(n_columns))
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES)


def fetched(n_columns: int) -> int:
    """Bytes of a column that are fetched at a time: a request takes long, whatever its size."""
    return min(max(FETCHED_BYTES // max(n_columns, 1), LEAST_FETCHED), MOST_FETCHED)


def _read_parquet(
    path: Place, choice: Choice, rows: int, n: int, groups: list[int] | None, first_row: int
) -> Iterator[Block]:
    """Blocks of some row groups, or of all; ``first_row`` rows lie before them."""
    where = str(path)
    with (
        report_damage(where, pa.ArrowException),
        _open_parquet_file(path, len(choice.names)) as file,
    ):
        batches = file.iter_batches(batch_size=rows, row_groups=groups, columns=choice.names)
        done = share_of(n)
        yield from batch_blocks(batches, choice, rows, source=where, done=done, first_row=first_row)


def _group_ranges(
    path: Place, footer: Any, group: int, choice: Choice
) -> tuple[tuple[int, int], ...]:
    """Bytes of the chosen columns of a row group; with the first one, the footer."""
    chunks = [footer.row_group(group).column(i) for i in range(footer.num_columns)]
    vector = f"{choice.vector}."  # its numbers lie in a column of that name, dot, and more
    chunks = [
        chunk
        for chunk in chunks
        if chunk.path_in_schema in choice.names or chunk.path_in_schema.startswith(vector)
    ] or chunks
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


def _read_groups_across(
    path: Place,
    choice: Choice,
    rows: int,
    sizes: Sequence[int],
    shares: Iterable[tuple[int, int, int]],
    seed: int,
) -> Iterator[Block]:
    """Rows all along the row groups chosen; a group is decoded up to its last row picked."""
    where = str(path)
    with (
        report_damage(where, pa.ArrowException),
        _open_parquet_file(path, len(choice.names)) as file,
    ):
        for group, n_rows, _ in shares:
            positions = spread(n_rows, sizes[group], seed + group)
            batches = file.iter_batches(rows, row_groups=[group], columns=choice.names)
            first = sum(sizes[:group])
            yield from pick_blocks(batches, positions, choice, source=where, first_row=first)
