"""Text tables as people write them: CSV and TSV in any usual dialect, plain or compressed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from typing import IO, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from sketchshift._paths import Place, map_ahead
from sketchshift.data.arrow import batch_blocks, fields_of
from sketchshift.data.dialect import (
    DAMAGE,
    USUAL,
    WORDS,
    Dialect,
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
    Across,
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

# Places in a text table: lines from all along the file, and cuts between two rows.
#
# A seek lands inside a line, or inside a quoted cell of several lines: what follows the next
# line end is parsed by itself, and left out if that fails. Where much fails, the file is read
# from start to end instead.

LONGEST_LINE = 2**20  # bytes looked at for the end of a line
PIECE_BYTES, MOST_BYTES = 2**24, 2**26  # of text between two cuts; looked at for a cut
FETCHED_BYTES, N_AHEAD = 2**14, 16  # at a place, and places under way at a time
QUOTE = ord('"')


def _lines_across(
    table: TextTable,
    choice: Choice,
    read_lines: Callable[[bytes], Any],
    read: Callable[[], Iterable[Block]],
) -> Across:
    """Rows of a text file that can be sought in.

    Parameters
    ----------
    table : TextTable
        Not compressed.
    choice : Choice
        Columns to stack, and the column of weights.
    read_lines : callable
        Makes a batch of the bytes of some lines, or None if they cannot be read.
    read : callable
        Starts a pass over the whole file, if all else fails.

    Returns
    -------
    across : callable
        As :class:`~sketchshift.data.Source` has it; up to 1000 seeks, however many places
        are asked for. Lines that follow long ones are a little more likely to be drawn.
    """

    def across(n_rows: int, n_places: int, seed: int) -> Iterator[Block]:
        with report_damage(str(table.path), *DAMAGE):
            blocks = list(_read_across(table, choice, read_lines, n_rows, seed))
            if 2 * sum(len(block.values) for block in blocks) >= n_rows:
                yield from blocks
            else:
                yield from by_position(read)(n_rows, n_places, seed)

    return across


def _read_across(
    table: TextTable, choice: Choice, read_lines: Callable[[bytes], Any], n_rows: int, seed: int
) -> Iterator[Block]:
    run = -(-n_rows // SEEKS)
    size = table.path.stat().st_size - table.body
    places = table.body + spread(-(-n_rows // run), max(size, 0), seed)

    def lines_at(place: int) -> tuple[int, bytes]:
        with table.path.open("rb", FETCHED_BYTES) as file:
            return place, _lines(file, place, run)

    for place, lines in map_ahead(lines_at, places.tolist(), table.path, N_AHEAD):
        batch = read_lines(lines)
        if batch is not None:  # else the middle of a quoted cell, most likely
            where = f"{table.path}, counted from byte {place},"
            yield from batch_blocks([batch], choice, run, source=where)


def _row_ranges(table: TextTable) -> Iterator[tuple[int, int]]:
    """Ranges of bytes that hold whole rows and, between them, all rows.

    Yields
    ------
    start, stop : int
        About 16 MiB apart. Where quotes stand so that the end of a row cannot be told from the
        end of a line inside a cell, the rest of the file is one range.
    """
    size, delimiter = table.path.stat().st_size, table.dialect.separator or ","
    with table.path.open("rb") as file:
        file.seek(start := table.body)
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


def _can_be_cut(table: TextTable) -> bool:
    r"""Whether the first line is one, and ends in \n or \r\n, not in a lone \r."""
    line = table.first_line
    if line is None or b"\r" in line.strip(b"\r\n"):
        return False
    return _last_row_end(line, table.dialect.separator or ",") == len(line)


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


def _lines(file: IO[bytes], offset: int, n: int) -> bytes:
    """Up to n whole lines behind a place, without those that quotes show to be in pieces.

    A line too long to be read ends them, also where it is the one that the place cuts.
    """
    if offset:
        file.seek(offset - 1)  # a line that starts right here is whole
        if len(file.readline(LONGEST_LINE)) == LONGEST_LINE:
            return b""
    read = (file.readline(LONGEST_LINE) for _ in range(2 * n + 8))
    lines = takewhile(lambda line: len(line) < LONGEST_LINE, read)
    whole = (line for line in lines if line.strip() and line.count(b'"') % 2 == 0)
    return b"".join(islice(whole, n))


# How the rows of a text table are read.
#
# Arrow converts plain columns itself, and others are read as text and converted here. Where Arrow
# gives up, at a number that is written with signs or at a cell that is none, all columns are read
# as bytes from there on: then a message can name the row, the column and what was found there.

READ_BYTES = 2**20
TOO_SHORT = ("straddling object", "cannot infer number of columns")  # Arrow's words for that
CELLS_TRIED = 100
NO_ROWS = "Empty CSV file"  # and for this


@dataclass(frozen=True)
class _Reader:
    """Reads columns of a table, each as the Arrow type it shall have.

    ``signed`` are the columns of numbers that Arrow cannot convert itself.
    """

    table: TextTable
    types: Mapping[str, Any]
    signed: frozenset[str] = frozenset()

    def read(
        self, part: tuple[int, int] | None = None, first_row: int = 0
    ) -> Iterator[tuple[Any, float]]:
        """Record batches of all rows, or of those in a range of bytes, and the share read."""
        n_read = 0
        try:
            for batch, done in self._batches(self._fast_types(), part):
                yield self._convert(batch, first_row + n_read), done
                n_read += batch.num_rows
        except pa.ArrowInvalid as cause:
            yield from self._read_carefully(part, first_row, n_read, cause)

    def read_lines(self, text: bytes) -> Any:
        """A record batch of a few lines; None if they cannot be read."""
        for kinds in (self._fast_types(), self._careful_types()):
            try:
                rows = csv.read_csv(pa.BufferReader(text), *self._options(kinds, len(text)))
                return self._convert(rows.combine_chunks().to_batches()[0], 0)
            except (pa.ArrowInvalid, DataError, IndexError):  # no lines, or parts of lines
                continue
        return None

    def read_head(self) -> tuple[Any, Any]:
        """The first rows with types as Arrow infers them, and as bytes; None if there are none."""
        as_bytes = dict.fromkeys(self.table.names, pa.binary())
        size = self.table.size
        inferred = next((batch for batch, _ in self._batches({}, size=size)), None)
        written = (batch for batch, _ in self._batches(as_bytes, size=size, takes_all=True))
        return inferred, next(written, None)

    def explain(self, cause: Exception) -> DataError:
        """What is wrong with a file that Arrow cannot even cut into rows."""
        try:
            for _ in self._read_carefully(None, 0, 0, cause):
                pass
        except DataError as fault:
            return fault
        return DataError(f"cannot read {self.table.path} as a text table ({cause}).")

    def _read_carefully(
        self, part: tuple[int, int] | None, first_row: int, n_skipped: int, cause: Exception
    ) -> Iterator[tuple[Any, float]]:
        """Batches from a row on, with every cell looked at here; raises what names a fault."""
        ragged: list[Any] = []

        def note(line: Any) -> str:
            ragged.append(line)
            return "error"

        n_read = 0
        try:
            for batch, done in self._batches(self._careful_types(), part, note):
                known = min(max(n_skipped - n_read, 0), batch.num_rows)
                if known < batch.num_rows:
                    yield self._convert(batch.slice(known), first_row + n_read + known), done
                n_read += batch.num_rows
        except pa.ArrowInvalid:
            if ragged:
                raise self._ragged(ragged[0], first_row) from cause
            msg = f"cannot read {self.table.path} as a text table ({cause})."
            raise DataError(msg) from cause

    def _batches(
        self,
        kinds: Mapping[str, Any],
        part: tuple[int, int] | None = None,
        note: Callable[[Any], str] | None = None,
        *,
        size: int | None = None,
        takes_all: bool = False,
    ) -> Iterator[tuple[Any, float]]:
        way: Literal["bits", "through"] = "through" if size is None else "bits"
        stream, raw, total = unpack(self.table.path, way, None if part is None else part[1])
        size = size or max(READ_BYTES, 2 * self.table.size)
        start, stop = part or (self.table.body, total)
        if stream is raw:
            stream = raw.get_stream(start, stop - start)
        else:
            stream.read(start)
        seen = start
        options = self._options(kinds, size, note, takes_all=takes_all)
        try:
            for batch in csv.open_csv(stream, *options):
                seen += size  # one batch is one chunk of text
                done = seen if self.table.is_plain else raw.tell()
                yield batch, min(1.0, done / total)
        except pa.ArrowInvalid as cause:
            if str(cause) != NO_ROWS:
                raise
        except UnicodeDecodeError as cause:
            fact = f"cannot read {self.table.path} as {self.table.dialect.encoding} ({cause}). "
            raise DataError(fact, "Say what it is: ", SetDialect("encoding"), ".") from cause

    def _options(
        self,
        kinds: Mapping[str, Any],
        size: int,
        note: Callable[[Any], str] | None = None,
        *,
        takes_all: bool = False,
    ) -> tuple[Any, Any, Any]:
        dialect = self.table.dialect
        read = csv.ReadOptions(
            block_size=max(size, 1),
            use_threads=note is None,
            column_names=list(self.table.names),
            encoding=dialect.encoding,
        )
        parse = csv.ParseOptions(
            delimiter=dialect.separator, newlines_in_values=True, invalid_row_handler=note
        )
        convert = csv.ConvertOptions(
            include_columns=[] if takes_all else list(kinds),
            column_types=dict(kinds),
            null_values=[*WORDS, *dialect.missing],
            strings_can_be_null=not kinds,
            check_utf8=bool(kinds),
            decimal_point=dialect.decimal,
        )
        return read, parse, convert

    def _fast_types(self) -> dict[str, Any]:
        return {
            name: pa.string() if name in self.signed else kind for name, kind in self.types.items()
        }

    def _careful_types(self) -> dict[str, Any]:
        return dict.fromkeys(self.types, pa.binary())

    def _convert(self, batch: Any, first_row: int) -> Any:
        """The batch with the types asked for; its first cell that has no such value is named."""
        columns, faults = [], []
        for i, (name, kind) in enumerate(self.types.items()):
            column, fault = batch.column(name), None
            if column.type != kind:
                column, fault = _convert_cells(column, kind, self.table.dialect)
            columns.append(column)
            if fault is not None:
                faults.append((fault, i, name))
        if faults:
            row, _, name = min(faults)
            cell = batch.column(name)[row].cast(pa.binary()).as_py()
            raise self._fault(name, first_row + row, cell)
        texts = [name for name, kind in self.types.items() if kind == pa.string()]
        rows = pa.record_batch(columns, names=list(self.types))
        return mark_as_written(rows, texts, self.table.dialect.decimal or ".")

    def _fault(self, name: str, row: int, cell: bytes) -> DataError:
        where = f"{self.table.path}: column {name!r} holds "
        place = f" in row {row} (data rows count from 0), "
        try:
            text = cell.decode()
        except UnicodeDecodeError:
            fact = f"{where}{cell!r}{place}which is not UTF-8. Say what the file is: "
            return DataError(fact, SetDialect("encoding", "cp1252"), ".")
        kind = self.types[name]
        named = {pa.float64(): "a number", pa.bool_(): "true or false, as it did before"}
        wanted = named.get(kind, f"a key of type {kind}, as it did before")
        return DataError(
            f"{where}{text!r}{place}where it should hold {wanted}. Correct the cell, or choose "
            "other columns. If it means that there is no value, say so: ",
            SetDialect("missing", text),
            ".",
        )

    def _ragged(self, line: Any, first_row: int) -> DataError:
        row = first_row + line.number - 1  # Arrow counts from 1
        begin = find_beginning(self.table)
        if begin is not None:
            name = shlex.quote(str(self.table.path))
            return DataError(
                f"{self.table.path}: the first line has {line.expected_columns} cells, and the "
                f"table seems to begin at line {begin}. Leave out the lines above it, as in: "
                f"tail -n +{begin} {name} > table.csv"
            )
        return DataError(
            f"{self.table.path}: row {row} (data rows count from 0) has {line.actual_columns} "
            f"cells, but the first line has {line.expected_columns}: {line.text[:80]!r}. Correct "
            "the line, or say what separates the cells: ",
            SetDialect("separator"),
            ".",
        )


def _convert_cells(column: Any, kind: Any, dialect: Dialect) -> tuple[Any, int | None]:
    """Cells as an Arrow type, and the first that has no value of it."""
    if pa.types.is_binary(column.type):
        column, fault = _cast(column, pa.string())
        if fault is not None or kind == pa.string():
            return column, fault
    if kind == pa.float64():
        numbers, is_fault = parse_numbers(column, dialect)
        first = pc.index(is_fault, True).as_py()
        return numbers, None if first < 0 else first
    return _cast(drop_missing(column, dialect), kind)


def _cast(column: Any, kind: Any) -> tuple[Any, int | None]:
    """The column as this type, and the first cell that cannot be cast, found by bisection."""
    try:
        return column.cast(kind), None
    except pa.ArrowInvalid:
        good, bad = 0, len(column)
    while bad - good > 1:
        middle = (good + bad) // 2
        is_good = _cast(column[good:middle], kind)[1] is None
        good, bad = (middle, bad) if is_good else (good, middle)
    return column, good


# How a text table is opened.
#
# The first rows tell which columns hold numbers; those chosen are then read as float64
# throughout, whatever the first rows look like.


def open_delimited(path: Place, request: Request) -> Source:
    """Read a text table: cells separated by commas, semicolons, tabs or bars.

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
    where = str(path)
    with report_damage(where, *DAMAGE):
        table, head, written = _read_head(path, request)
    fields = [
        _field(field, inferred, cells, table.dialect)
        for field, inferred, cells in zip(fields_of(head.schema), head, written, strict=True)
    ]
    takes_all = request.columns is None and request.beside == "nothing" and len(fields) > 1
    if takes_all and _names_rows(table, head, written):
        fields = fields[1:]
    choice = choose(fields, request, where)
    kinds = dict(zip(head.schema.names, head.schema.types, strict=True))
    types = {name: _read_as(kinds[name]) for name in choice.numeric}
    types |= {name: _key_type(kinds[name]) for name in choice.as_written}
    signed = frozenset(name for name in choice.numeric if pa.types.is_string(kinds[name]))
    reader = _Reader(table, types, signed)
    rows = request.rows_for(choice.n_features)

    def read(part: tuple[int, int] | None = None, first_row: int = 0) -> Iterator[Block]:
        return _read_blocks(reader, choice, rows, part, first_row)

    def pieces() -> Iterator[Piece]:
        first = 0  # the header belongs to the first rows
        for part in _row_ranges(table):
            yield Piece(path, ((first, part[1]),), partial(read, part))
            first = part[1]

    is_sought = table.first_line is not None and table.first_line.endswith(b"\n")
    across = _lines_across(table, choice, reader.read_lines, read) if is_sought else None
    cut = pieces if _can_be_cut(table) else None
    d, n_bytes = choice.n_features, path.stat().st_size
    return Source(choice.labels, d, None, read, Access.DISK, n_bytes, across, cut)


def _read_blocks(
    reader: _Reader, choice: Choice, rows: int, part: tuple[int, int] | None, first_row: int
) -> Iterator[Block]:
    share = 0.0

    def batches() -> Iterator[Any]:
        nonlocal share
        for batch, done in reader.read(part, first_row):
            share = done
            yield batch

    where = str(reader.table.path)
    with report_damage(where, *DAMAGE):
        yield from batch_blocks(
            batches(), choice, rows, source=where, done=lambda _: share, first_row=first_row
        )


def _read_head(path: Place, request: Request) -> tuple[TextTable, Any, Any]:
    """The table, its first rows with types as Arrow infers them, and the same as bytes."""
    given, asked = request.dialect or Dialect(), request.columns or ()
    for table in look_at(path, given, asked):
        reader = _Reader(table, dict.fromkeys(table.names, pa.string()))
        try:
            inferred, written = reader.read_head()
        except pa.ArrowInvalid as cause:
            fault = cause
            if any(words in str(cause) for words in TOO_SHORT):
                continue
            break
        if inferred is None:
            nothing = pa.schema([(name, pa.null()) for name in table.names])
            inferred = written = pa.record_batch([pa.nulls(0)] * len(table.names), schema=nothing)
        return table, inferred, written
    raise reader.explain(fault) from fault


def _field(field: Field, inferred: Any, written: Any, dialect: Dialect) -> Field:
    """A column of text counts as numbers when at least half of its first cells are.

    One that holds nothing but words for a missing value, other than the usual ones, is text.
    """
    if pa.types.is_null(inferred.type) and not set(map(_text, written.to_pylist())) <= set(USUAL):
        return Field(field.name, "text", is_number=False)
    if not pa.types.is_string(inferred.type):
        return field
    texts, fault = _cast(written, pa.string())
    if fault is not None:
        texts = pa.array(list(map(_text, written.to_pylist())), pa.string())
    cells = drop_missing(texts, dialect).drop_null()
    _, is_fault = parse_numbers(cells[:CELLS_TRIED], dialect)
    return Field(field.name, "text", 2 * pc.sum(is_fault).as_py() <= len(is_fault))


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "replace")


def _names_rows(table: TextTable, head: Any, written: Any) -> bool:
    """Whether the first column is the index that pandas writes, or the names of rows of R."""
    kind, cells = head.column(0).type, written.column(0)
    is_name = pa.types.is_integer(kind) or pa.types.is_string(kind)
    is_unnamed = bool(table.dialect.header) and not table.is_named[0]
    return is_unnamed and is_name and len(cells.unique()) == len(cells)


def _read_as(inferred: Any) -> Any:
    return pa.bool_() if pa.types.is_boolean(inferred) else pa.float64()


def _key_type(inferred: Any) -> Any:
    """Dates, times and booleans as such, all else as it is written: 01234 is not 1234."""
    is_typed = pa.types.is_temporal(inferred) or pa.types.is_boolean(inferred)
    return inferred if is_typed else pa.string()
