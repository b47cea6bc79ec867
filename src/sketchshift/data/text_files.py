"""Text tables: CSV and TSV, plain or gzipped."""

from __future__ import annotations

import codecs
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from sketchshift._text import listed
from sketchshift.data.arrow import batch_blocks, fields_of
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
from sketchshift.errors import ChooseColumns, DataError

__all__ = [
    "can_be_cut",
    "delimiter_of",
    "explain",
    "first_text",
    "is_gzipped",
    "lines_across",
    "open_delimited",
    "open_text",
    "other_encoding",
    "other_separator",
    "parse_text",
    "parses",
    "row_ranges",
]

# How a text table is opened, in every pass over it.


def open_text(
    path: Path,
    size: int,
    types: Mapping[str, Any],
    on_ragged: Callable[[Any], str] | None = None,
    *,
    text_as_written: bool = False,
    part: tuple[int, int] | None = None,
    names: Sequence[str] | None = None,
) -> tuple[Any, Any]:
    """A reader of record batches, and the raw file below it.

    Text that is read as it is written must be UTF-8, and an empty cell is an empty text here:
    ``mark_as_written`` makes it a missing one. Of a ``part`` of the file, a range of bytes without
    the header, the columns have these ``names``.

    Neither is closed here: Arrow reads ahead in a thread, which must not find its file
    closed. Both go when the last reference does.
    """
    text, raw = _open(path)
    if part is not None:
        text = raw.get_stream(part[0], part[1] - part[0])
    read = csv.ReadOptions(block_size=size, use_threads=on_ragged is None, column_names=names)
    options = _options(path, types, on_ragged, text_as_written=text_as_written)
    return csv.open_csv(text, read, *options), raw


def first_text(path: Path, size: int) -> str:
    """The first bytes as text, whatever their encoding."""
    return str(_open(path)[0].read(size).decode("latin-1"))


def parse_text(path: Path, text: bytes, types: Mapping[str, Any]) -> Any:
    """A table of a few lines of the file at ``path``, the header among them."""
    read = csv.ReadOptions(block_size=max(len(text), 1), use_threads=False)
    return csv.read_csv(pa.BufferReader(text), read, *_options(path, types))


def _options(
    path: Path,
    types: Mapping[str, Any],
    on_ragged: Callable[[Any], str] | None = None,
    *,
    text_as_written: bool = False,
) -> tuple[Any, Any]:
    parse = csv.ParseOptions(
        delimiter=delimiter_of(path),
        newlines_in_values=True,
        invalid_row_handler=on_ragged,
    )
    convert = csv.ConvertOptions(
        include_columns=list(types),
        column_types=dict(types),
        strings_can_be_null=not text_as_written,
        check_utf8=text_as_written,
    )
    return parse, convert


def _open(path: Path) -> tuple[Any, Any]:
    """The text, unpacked, and the raw file below it."""
    raw = pa.OSFile(str(path))
    return pa.CompressedInputStream(raw, "gzip") if is_gzipped(path) else raw, raw


def delimiter_of(path: Path) -> str:
    """What separates the cells, going by the name of the file."""
    return "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","


def is_gzipped(path: Path) -> bool:
    """Whether the text has to be unpacked, going by the name of the file."""
    return path.name.lower().endswith(".gz")


# Places in a text table: lines from all along the file, and cuts between two rows.
#
# A seek lands inside a line, or inside a quoted cell of several lines: what follows the next
# line end is parsed by itself, and left out if that fails. Where much fails, the file is read
# from start to end instead.

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
        with report_damage(str(path), pa.ArrowException):
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
    r"""Whether the header is whole lines, and lines end in \n or \r\n, not in a lone \r."""
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

    The file is then read up to the end of it.
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

    A line too long to be read ends them, also where it is the one that the place cuts.
    """
    file.seek(offset - 1)  # a line that starts right here is whole
    if len(file.readline(LONGEST_LINE)) == LONGEST_LINE:
        return b""
    read = (file.readline(LONGEST_LINE) for _ in range(2 * n + 8))
    lines = takewhile(lambda line: len(line) < LONGEST_LINE, read)
    whole = (line for line in lines if line.strip() and line.count(b'"') % 2 == 0)
    return b"".join(islice(whole, n))


# What is wrong with a text table: its encoding, its separator, one line or one cell.
#
# ``explain`` is reached only after Arrow gave up on a file: it is read once more with the wanted
# columns as text, so that the message can name the row, the column and what was found there.

HEAD_BYTES = 2**16
MARKS = {  # the longer ones first: UTF-32 begins as UTF-16 does
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
SUFFIX = re.compile(r"\.[ct]sv((\.gz)?)$", re.IGNORECASE)


def explain(path: Path, size: int, types: Mapping[str, Any], cause: Exception) -> DataError:
    """Read again, wanted columns as text, up to the first cell or line at fault."""
    ragged: list[Any] = []

    def note(line: Any) -> str:
        ragged.append(line)
        return "error"

    first = 0
    try:
        reader, _ = open_text(path, size, dict.fromkeys(types, pa.string()), note)
        for batch in reader:
            faults = [
                (_first_fault(batch.column(name), kind), name) for name, kind in types.items()
            ]
            row, name = min(faults, default=(batch.num_rows, ""))
            if row < batch.num_rows:
                return _not_a_number(path, first + row, name, batch.column(name)[row], types[name])
            first += batch.num_rows
    except pa.ArrowInvalid:
        if ragged:
            return other_separator(path) or _ragged(path, ragged[0])
    return DataError(f"cannot read {path} as a text table ({cause}).")


def other_encoding(path: Path) -> DataError | None:
    """What to say of a file that starts with the byte-order mark of another encoding."""
    start = first_text(path, 4).encode("latin-1")
    found = next((name for mark, name in MARKS.items() if start.startswith(mark)), None)
    if found is None:
        return None
    return DataError(f"cannot read {path}: it is {found}, not UTF-8. Convert the file first.")


def other_separator(path: Path) -> DataError | None:
    """What to say of a file whose header has one cell, with the separator of others in it."""
    header, _, rows = first_text(path, HEAD_BYTES).lstrip("\r\n").partition("\n")
    own = delimiter_of(path)
    found = next((sign for sign in ";\t|," if sign in header), own)
    if own in header or found == own:
        return None
    if found in (",", "\t"):
        suffix = r".csv\1" if found == "," else r".tsv\1"
        remedy = f"Rename it to {SUFFIX.sub(suffix, str(path))!r}."
    else:
        decimal = ", decimal=','" if re.search(r"\d,\d", rows) else ""
        read = f"pd.read_csv({str(path)!r}, sep={found!r}{decimal})"
        remedy = f"Convert it: {read}.to_parquet({SUFFIX.sub('.parquet', str(path))!r})."
    signs = [repr(sign).replace(r"'\t'", "tabs") for sign in (found, own)]
    return DataError(f"{path} seems to be separated by {signs[0]}, not by {signs[1]}. {remedy}")


def parses(column: Any, kind: Any) -> bool:
    """Whether every cell of a text column can be read as this Arrow type."""
    try:
        pc.ascii_trim_whitespace(column).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _first_fault(column: Any, kind: Any) -> int:
    """Row of the first cell that is not of this kind, by bisection; else the length."""
    good, bad = 0, len(column)
    if parses(column, kind):
        return bad
    while bad - good > 1:
        middle = (good + bad) // 2
        if parses(column[good:middle], kind):
            good = middle
        else:
            bad = middle
    return good


def _not_a_number(path: Path, row: int, name: str, cell: Any, kind: Any) -> DataError:
    text = cell.cast(pa.binary()).as_py().decode("utf-8", "replace")
    named = {pa.float64(): "a number", pa.bool_(): "true or false, as it did before"}
    wanted = named.get(kind, f"a key of type {kind}, as it did before")
    return DataError(
        f"{path}: column {name!r} holds {text!r} in row {row} (data rows count from 0), "
        f"where it should hold {wanted}. Correct the cell, or choose other columns."
    )


def _ragged(path: Path, line: Any) -> DataError:
    row = line.number - 2  # Arrow counts the header as line 1
    return DataError(
        f"{path}: row {row} (data rows count from 0) has {line.actual_columns} cells, but the "
        f"header has {line.expected_columns}: {line.text[:80]!r}. Correct the line."
    )


# How a text table is opened.
#
# The first rows tell which columns hold numbers; those chosen are then read as float64
# throughout, whatever the first rows look like. When that fails, ``explain``
# says where.

READ_BYTES = 2**20
SNIFF_BYTES = (2**16, 2**20, 2**24)  # a larger one is tried when a line does not fit
TOO_SHORT = ("straddling object", "cannot infer number of columns")  # Arrow's words for that
CELLS_TRIED = 100


def open_delimited(path: Path, request: Request) -> Source:
    """Read a CSV or TSV file with a header line.

    Parameters
    ----------
    path : Path
        Empty cells and the usual spellings of a missing value (NA, nan, null) become
        NaN; true and false become 1 and 0. Blank lines are skipped. Of keys that are not
        dates, times or booleans, only the empty cell is missing.
    request : Request
        Other columns than those asked for are not converted.

    Returns
    -------
    source : Source
        Memory: one block, and about 32 MiB of text that Arrow reads ahead.
    """
    where = str(path)
    with report_damage(where, pa.ArrowException):
        if fault := other_encoding(path):
            raise fault
        head, sniffed = _head(path)
    fields = [
        _field(field, column)
        for field, column in zip(fields_of(head.schema), head.columns, strict=True)
    ]
    _check_header(fields, request, where)
    if len(fields) == 1 and not fields[0].is_number and (fault := other_separator(path)):
        raise fault
    choice = choose(fields, request, where)
    types = {name: _read_as(head.schema.field(name).type) for name in choice.numeric}
    types |= {name: _key_type(head.schema.field(name).type) for name in choice.as_written}
    d, size = len(choice.columns), max(READ_BYTES, 2 * sniffed)
    rows = request.rows_for(d)

    def read() -> Iterator[Block]:
        return _read(path, choice, types, size, rows)

    def read_part(part: tuple[int, int], first_row: int) -> Iterator[Block]:
        return _read(path, choice, types, size, rows, part, head.schema.names, first_row)

    def pieces() -> Iterator[Piece]:
        first = 0  # the header belongs to the first rows
        for part in row_ranges(path, delimiter):
            yield Piece(path, ((first, part[1]),), partial(read_part, part))
            first = part[1]

    n_bytes, delimiter = path.stat().st_size, delimiter_of(path)
    is_sought = not is_gzipped(path)
    across = lines_across(path, choice, types, read) if is_sought else None
    cut = pieces if is_sought and can_be_cut(path, delimiter) else None
    return Source(choice.columns, d, None, read, Access.DISK, n_bytes, across, cut)


def _read(
    path: Path,
    choice: Choice,
    types: Mapping[str, Any],
    size: int,
    rows: int,
    part: tuple[int, int] | None = None,
    names: Sequence[str] | None = None,
    first_row: int = 0,
) -> Iterator[Block]:
    """Blocks of all of a file, or of a part of it whose columns have these names."""
    seen = 0 if part is None else part[0]

    def batches() -> Iterator[Any]:
        nonlocal seen
        for batch in reader:
            seen += size  # one batch is one chunk of text
            yield mark_as_written(
                batch, [name for name, kind in types.items() if kind == pa.string()]
            )

    def done(_: int) -> float:
        return min(1.0, float((raw.tell() if is_gzipped(path) else seen) / raw.size()))

    with report_damage(str(path), pa.ArrowException):
        try:
            reader, raw = open_text(path, size, types, text_as_written=True, part=part, names=names)
            yield from batch_blocks(
                batches(), choice, rows, source=str(path), done=done, first_row=first_row
            )
        except pa.ArrowInvalid as cause:
            raise explain(path, size, types, cause) from cause


def _head(path: Path) -> tuple[Any, int]:
    """The first rows with types as Arrow infers them, and the bytes this took."""
    for size in SNIFF_BYTES:
        try:
            reader, _ = open_text(path, size, {})
            _ = reader.schema.names
            first = next(iter(reader), None)  # an empty table takes a while: Arrow asks for pandas
            return reader.schema.empty_table() if first is None else first, size
        except UnicodeDecodeError as cause:
            msg = f"cannot read {path}: its header is not UTF-8. Convert the file first."
            raise DataError(msg) from cause
        except pa.ArrowInvalid as cause:
            fault = cause
            if not any(words in str(cause) for words in TOO_SHORT):
                break
    raise explain(path, size, {}, fault) from fault


def _field(field: Field, column: Any) -> Field:
    """A column of text counts as numbers when at least half of its first cells are."""
    if not pa.types.is_string(column.type):
        return field
    cells = column.drop_null()[:CELLS_TRIED]
    numbers = sum(parses(cells[i : i + 1], pa.float64()) for i in range(len(cells)))
    return Field(field.name, "text", 2 * numbers >= len(cells))


def _read_as(inferred: Any) -> Any:
    return pa.bool_() if pa.types.is_boolean(inferred) else pa.float64()


def _key_type(inferred: Any) -> Any:
    """Dates, times and booleans as such, all else as it is written: 01234 is not 1234."""
    is_typed = pa.types.is_temporal(inferred) or pa.types.is_boolean(inferred)
    return inferred if is_typed else pa.string()


def _check_header(fields: Sequence[Field], request: Request, where: str) -> None:
    names = [field.name for field in fields]
    meant = request.columns is not None and set(request.columns) <= set(names)
    if all(_is_number(name) for name in names) and not meant:
        msg = (
            f"{where} seems to have no header row: its first line is {listed(names)}. "
            "Add a line of column names, or list these in "
        )
        raise DataError(msg, ChooseColumns(), " if they are names.")
    if request.columns is None and "" in names:
        numeric = tuple(field.name for field in fields if field.is_number and field.name)
        msg = (
            f"{where}: column {names.index('')} (counting from 0) has no name; is it the index "
            "that pandas writes? Choose "
        )
        raise DataError(msg, ChooseColumns(numeric), ", or write the file with index=False.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
