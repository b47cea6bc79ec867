"""Text tables as people write them: CSV and TSV in any usual dialect, plain or compressed."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from sketchshift._paths import Place, map_ahead
from sketchshift.data.arrow import batch_blocks, fields_of
from sketchshift.data.dialect import (
    DAMAGE,
    PACKED,
    USUAL,
    WORDS,
    Dialect,
    Rows,
    TextTable,
    drop_missing,
    find_beginning,
    look_at,
    parse_numbers,
    unpack,
)
from sketchshift.data.sample import SEEKS, by_position, spread
from sketchshift.data.source import (
    Access,
    Block,
    Choice,
    Field,
    Piece,
    Request,
    Source,
    choose,
    mark_as_written,
    report_damage,
)
from sketchshift.errors import DataError, SetDialect

__all__ = ["open_delimited"]

LONGEST_LINE = 2**20  # bytes looked at for the end of a line
FETCHED_BYTES, N_AHEAD = 2**14, 16  # at a place, and places under way at a time
PIECE_BYTES = 2**24  # of text between two cuts
READ_BYTES = 2**20
TOO_SHORT = ("straddling object", "cannot infer number of columns")  # Arrow's words for that
NO_ROWS = "Empty CSV file"  # and for this
CELLS_TRIED = 100
Part = tuple[int, int]


def open_delimited(path: Place, request: Request) -> Source:
    """Read a text table: cells separated by commas, semicolons, tabs or bars.

    The first rows tell which columns hold numbers; those chosen are then read as float64
    throughout, whatever the first rows look like.

    Parameters
    ----------
    path : Path or RemotePath
        Plain or packed. Among numbers, empty cells and the usual words for a missing value (NA,
        nan, null, ?, -, none) become NaN; true and false become 1 and 0. Signs of
        thousands and of percent do not count. Blank lines are skipped. Of keys that are not dates,
        times or booleans, only the empty cell is missing.
    request : Request
        Other columns than those asked for are not converted. Its dialect says how the file is
        written, where that is not to be found out.

    Returns
    -------
    source : Source
        Memory: one block, and about 32 MiB of text that Arrow reads ahead. Columns without a name
        are called "column 0" and so on. The first one, if it has no name and numbers or names the
        rows, is left out unless it is asked for.
    """
    with report_damage(str(path), *DAMAGE):
        table, head, rows = _read_head(path, request)
    types = dict(zip(table.names, head.schema.types, strict=True))
    texts = {name for name, kind in types.items() if pa.types.is_string(kind)}
    typed = {
        name: kind
        for name, kind in types.items()
        if pa.types.is_temporal(kind) or pa.types.is_boolean(kind)
    }
    fields = [
        _field(field, cells, [row[i] for row in rows if i < len(row)], table.dialect)
        for i, (field, cells) in enumerate(zip(fields_of(head.schema), head, strict=True))
    ]
    takes_all = request.columns is None and request.beside == "nothing" and len(fields) > 1
    if takes_all and table.is_unnamed and _names_rows(head.column(0)):
        fields = fields[1:]
    choice = choose(fields, request, str(path))
    kinds = {
        name: pa.bool_() if types[name] == pa.bool_() else pa.float64() for name in choice.numeric
    }
    kinds |= {name: typed.get(name, pa.string()) for name in choice.as_written}
    signed = texts.intersection(choice.numeric)
    reader = _Reader(table, kinds, signed, choice, request.rows_for(choice.n_features))
    return Source(
        choice.labels,
        choice.n_features,
        None,
        reader.blocks,
        Access.DISK,
        path.stat().st_size,
        reader.across if table.has_lines else None,
        reader.pieces if table.has_lines else None,
    )


def _read_head(path: Place, request: Request) -> tuple[TextTable, Any, Rows]:
    """The table, its first rows with types as Arrow infers them, and some of them as written."""
    for table, rows in look_at(path, request.dialect or Dialect(), request.columns or ()):
        try:
            for batch, _ in _batches(table, {}, size=table.size):
                return table, batch, rows
        except pa.ArrowInvalid as cause:
            if any(words in str(cause) for words in TOO_SHORT):
                continue
            kinds = dict.fromkeys(table.names, pa.string())
            for _ in _Reader(table, kinds, (), Choice((), None), 0).read():
                pass  # this names what is wrong
            raise
        nothing = pa.schema([(name, pa.null()) for name in table.names])
        return table, pa.record_batch([pa.nulls(0)] * len(nothing), schema=nothing), rows
    raise AssertionError  # look_at does not end without a table


def _field(field: Field, cells: Any, written: Sequence[str], dialect: Dialect) -> Field:
    """A column of text counts as numbers when at least half of its first cells are.

    One that holds nothing but words for a missing value, other than the usual ones, is text.
    """
    if pa.types.is_null(cells.type) and not set(written) <= set(USUAL):
        return Field(field.name, "text", is_number=False)
    if not pa.types.is_string(cells.type):
        return field
    texts = [cell.decode(errors="replace") for cell in cells.cast(pa.binary()).to_pylist()]
    cells = drop_missing(pa.array(texts, pa.string()), dialect).drop_null()[:CELLS_TRIED]
    n_faults = pc.sum(parse_numbers(cells, dialect)[1], min_count=0).as_py()
    return Field(field.name, "text", 2 * n_faults <= len(cells))


def _names_rows(cells: Any) -> bool:
    """Whether a column is the index that pandas writes, or the names of rows of R."""
    is_name = pa.types.is_integer(cells.type) or pa.types.is_string(cells.type)
    return is_name and len(cells.unique()) == len(cells)


# How the rows of a text table are read.
#
# Arrow converts plain columns itself, and others are read as bytes and converted here. Where Arrow
# gives up, at a number that is written with signs or at a cell that is none, all columns are read
# as bytes from there on: then a message can name the row, the column and what was found there.


@dataclass(frozen=True)
class _Reader:
    """Reads columns of a table, each as the Arrow type it shall have, and ``choice`` of them.

    ``signed`` are the columns of numbers that Arrow cannot convert itself; a block has so many
    ``rows``.
    """

    table: TextTable
    types: Mapping[str, Any]
    signed: Collection[str]
    choice: Choice
    rows: int

    def blocks(self, part: Part | None = None, first_row: int = 0) -> Iterator[Block]:
        """Blocks of all rows, or of those in a range of bytes."""
        where = str(self.table.path)
        with report_damage(where, *DAMAGE):
            for batch, share in self.read(part, first_row):
                yield from batch_blocks(
                    [batch],
                    self.choice,
                    self.rows,
                    source=where,
                    done=lambda _, share=share: share,  # type: ignore[misc]
                    first_row=first_row,
                )
                first_row += batch.num_rows

    def across(self, n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        """As :class:`~sketchshift.data.Source` has it; up to 1000 seeks, whatever is asked for.

        A seek lands inside a line, or inside a quoted cell of several lines: what follows the next
        line end is parsed by itself, and left out if that fails. Where much fails, the file is
        read from start to end instead. Lines after long ones are a little more likely.
        """
        with report_damage(str(self.table.path), *DAMAGE):
            blocks = list(self._blocks_at_places(n_rows, seed))
            is_enough = 2 * sum(len(block.values) for block in blocks) >= n_rows
            yield from blocks if is_enough else by_position(self.blocks)(n_rows, n_places, seed)

    def _blocks_at_places(self, n_rows: int, seed: int) -> Iterator[Block]:
        path, body, run = self.table.path, self.table.body, -(-n_rows // SEEKS)
        length = max(path.stat().st_size - body, 0)

        def lines_at(place: int) -> bytes:
            with path.open("rb", FETCHED_BYTES) as file:
                return _lines(file, place, run)

        places = (body + spread(-(-n_rows // run), length, seed)).tolist()
        for place, text in zip(places, map_ahead(lines_at, places, path, N_AHEAD), strict=True):
            for as_bytes in (self.signed, self.types):
                try:
                    options = _options(self.table, self._kinds(as_bytes), len(text))
                    found = csv.read_csv(pa.BufferReader(text), *options).combine_chunks()
                    batches = [self._convert(batch, 0) for batch in found.to_batches()]
                except (pa.ArrowInvalid, DataError):  # no lines, or parts of lines
                    continue
                where = f"{path}, counted from byte {place},"
                yield from batch_blocks(batches, self.choice, run, source=where)
                break

    def pieces(self) -> Iterator[Piece]:
        """Ranges of bytes about 16 MiB apart that hold whole rows and, between them, all rows.

        Where quotes stand so that the end of a row cannot be told from the end of a line inside a
        cell, the rest of the file is one range.
        """
        path, delimiter = self.table.path, self.table.dialect.separator or ","
        size, start, first = path.stat().st_size, self.table.body, 0
        while start < size:
            with path.open("rb") as file:
                file.seek(start)
                text = file.read(PIECE_BYTES)
            n_cut = _last_row_end(text, delimiter) if start + len(text) < size else 0
            stop = start + n_cut if n_cut else size
            if text[: stop - start].strip(b"\r\n"):  # blank lines are no rows
                yield Piece(path, ((first, stop),), partial(self.blocks, (start, stop)))
                first = stop  # the header belongs to the first rows
            start = stop

    def read(self, part: Part | None = None, first_row: int = 0) -> Iterator[tuple[Any, float]]:
        """Record batches of all rows, or of those in a range of bytes, and the share read."""
        n_read, causes = 0, []
        ragged: list[Any] = []
        for as_bytes, faults in ((self.signed, None), (self.types, ragged)):
            n_seen = 0
            try:
                for batch, share in _batches(self.table, self._kinds(as_bytes), part, faults):
                    rows = batch.slice(min(max(n_read - n_seen, 0), batch.num_rows))
                    n_seen += batch.num_rows
                    if rows.num_rows:
                        yield self._convert(rows, first_row + n_seen - rows.num_rows), share
                        n_read = n_seen
            except pa.ArrowInvalid as cause:
                causes.append(cause)
            else:
                return
        if ragged:
            raise _ragged(self.table, ragged[0], first_row) from causes[0]
        msg = f"cannot read {self.table.path} as a text table ({causes[0]})."
        raise DataError(msg) from causes[0]

    def _kinds(self, as_bytes: Collection[str]) -> dict[str, Any]:
        return {n: pa.binary() if n in as_bytes else kind for n, kind in self.types.items()}

    def _convert(self, batch: Any, first_row: int) -> Any:
        """The batch with the types asked for; its first cell that has no such value is named."""
        columns, faults = [], []
        for i, (name, kind) in enumerate(self.types.items()):
            column, fault = _convert_cells(batch.column(name), kind, self.table.dialect)
            columns.append(column)
            if fault >= 0:
                faults.append((fault, i))
        if faults:
            row, i = min(faults)
            name, kind = list(self.types.items())[i]
            cell = batch.column(name)[row].cast(pa.binary()).as_py()
            raise _fault(f"{self.table.path}: column {name!r}", kind, first_row + row, cell)
        texts = [name for name, kind in self.types.items() if kind == pa.string()]
        rows = pa.record_batch(columns, names=list(self.types))
        return mark_as_written(rows, texts, self.table.dialect.decimal or ".")


def _lines(file: Any, offset: int, n: int) -> bytes:
    """Up to n whole lines behind a place, without those that quotes show to be in pieces.

    A line too long to be read ends them, also where it is the one that the place cuts.
    """
    file.seek(max(offset - 1, 0))  # a line that starts right here is whole
    if offset and len(file.readline(LONGEST_LINE)) == LONGEST_LINE:
        return b""
    read = (file.readline(LONGEST_LINE) for _ in range(2 * n + 8))
    lines = takewhile(lambda line: len(line) < LONGEST_LINE, read)
    whole = (line for line in lines if line.strip() and line.count(b'"') % 2 == 0)
    return b"".join(islice(whole, n))


def _last_row_end(text: bytes, delimiter: str) -> int:
    """Where the last whole row of some text ends, which begins with one; 0 if unknown.

    Quotes alternate: one opens a cell and the next one closes it, if each stands where it may,
    next to a delimiter, a line end or (a quote inside a cell) its twin.
    """
    signs = np.frombuffer(b"\n" + text + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(signs == ord('"'))
    edges = np.frombuffer(delimiter.encode() + b'\r\n"', dtype=np.uint8)
    beside = np.concatenate([signs[quotes[0::2] - 1], signs[quotes[1::2] + 1]])
    ends = np.flatnonzero(signs[:-1] == ord("\n"))
    ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return int(ends[-1]) if np.isin(beside, edges).all() else 0


def _batches(
    table: TextTable,
    kinds: Mapping[str, Any],
    part: Part | None = None,
    ragged: list[Any] | None = None,
    size: int = 0,
) -> Iterator[tuple[Any, float]]:
    """Record batches as Arrow reads them, and the share read.

    ``kinds`` empty: all columns, of inferred types. ``ragged`` gets what line is no row, and is
    None where that is not asked; ``size`` are the bytes of the only batch that will be taken.
    """
    stream, raw, total = unpack(
        table.path, "bits" if size else "through", None if part is None else part[1]
    )
    size = size or max(READ_BYTES, 2 * table.size)
    seen, stop = part or (table.body, total)
    if stream is raw:
        stream = raw.get_stream(seen, stop - seen)
    else:
        stream.read(seen)
    try:
        for batch in csv.open_csv(stream, *_options(table, kinds, size, ragged)):
            seen += size  # one batch is one chunk of text
            done = raw.tell() if table.path.suffix.lower() in PACKED else seen
            yield batch, min(1.0, done / total)
    except pa.ArrowInvalid as cause:
        if str(cause) != NO_ROWS:
            raise
    except UnicodeDecodeError as cause:
        fact = f"cannot read {table.path} as {table.dialect.encoding} ({cause}). "
        raise DataError(fact, "Say what it is: ", SetDialect("encoding"), ".") from cause


def _options(
    table: TextTable, kinds: Mapping[str, Any], size: int, ragged: list[Any] | None = None
) -> tuple[Any, Any, Any]:
    dialect = table.dialect
    read = csv.ReadOptions(
        block_size=max(size, 1),
        use_threads=ragged is None,  # else it does not know the numbers of rows
        column_names=table.names,
        encoding=dialect.encoding,
    )
    parse = csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True)
    if ragged is not None:

        def note(line: Any) -> str:
            ragged.append(line)
            return "error"

        parse.invalid_row_handler = note
    convert = csv.ConvertOptions(
        include_columns=list(kinds),
        column_types=kinds,
        null_values=[*WORDS, *dialect.missing],
        check_utf8=bool(kinds),
        decimal_point=dialect.decimal,
    )
    return read, parse, convert


def _convert_cells(column: Any, kind: Any, dialect: Dialect) -> tuple[Any, int]:
    """Cells as an Arrow type, and the first that has no value of it; -1 if all have."""
    if column.type == kind:
        return column, -1
    texts, fault = _cast(column, pa.string())
    if fault >= 0 or kind == pa.string():
        return texts, fault
    if kind == pa.float64():
        numbers, is_fault = parse_numbers(texts, dialect)
        return numbers, pc.index(is_fault, True).as_py()
    return _cast(drop_missing(texts, dialect), kind)


def _cast(column: Any, kind: Any) -> tuple[Any, int]:
    try:
        return column.cast(kind), -1
    except pa.ArrowInvalid:
        for i in range(len(column)):
            try:
                column[i : i + 1].cast(kind)
            except pa.ArrowInvalid:
                return column, i
        raise


def _fault(where: str, kind: Any, row: int, cell: bytes) -> DataError:
    """The exception for a cell that has no value of the type of its column."""
    place = f" in row {row} (data rows count from 0), "
    try:
        text = cell.decode()
    except UnicodeDecodeError:
        fact = f"{where} holds {cell!r}{place}which is not UTF-8. Say what the file is: "
        return DataError(fact, SetDialect("encoding", "cp1252"), ".")
    named = {pa.float64(): "a number", pa.bool_(): "true or false, as it did before"}
    wanted = named.get(kind, f"a key of type {kind}, as it did before")
    return DataError(
        f"{where} holds {text!r}{place}where it should hold {wanted}. Correct the cell, or choose "
        "other columns. If it means that there is no value, say so: ",
        SetDialect("missing", text),
        ".",
    )


def _ragged(table: TextTable, line: Any, first_row: int) -> DataError:
    """The exception for a line that has another number of cells than the first."""
    begin = find_beginning(table)
    if begin is not None:
        name = shlex.quote(str(table.path))
        return DataError(
            f"{table.path}: the first line has {line.expected_columns} cells, and the "
            f"table seems to begin at line {begin}. Leave out the lines above it, as in: "
            f"tail -n +{begin} {name} > table.csv"
        )
    return DataError(
        f"{table.path}: row {first_row + line.number - 1} (data rows count from 0) has "  # from 1
        f"{line.actual_columns} cells, but the first line has {line.expected_columns}: "
        f"{line.text[:80]!r}. Correct the line, or say what separates the cells: ",
        SetDialect("separator"),
        ".",
    )
