"""Text tables as people write them: CSV and TSV in any usual dialect, plain or compressed."""

from __future__ import annotations

import codecs
import csv as plain_csv
import io
import lzma
import re
import zipfile
import zlib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice, takewhile
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from sketchshift._validation import parameter_error
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
from sketchshift.errors import DataError, SetDialect

__all__ = ["Dialect", "describe", "open_delimited"]

# Files, and the text in them.
#
# Arrow unpacks most of the packed ones itself, and faster; the others go through Python's own
# streams. None of them is closed here: Arrow reads ahead in a thread, which must not find its
# file closed. They go when the last reference does.

ARROW_UNPACKS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
PYTHON_UNPACKS = (".xz", ".zip")
DAMAGE = (
    pa.ArrowException,
    EOFError,
    lzma.LZMAError,
    zlib.error,
    zipfile.BadZipFile,
    NotImplementedError,  # packed in a way that Python does not know
    RuntimeError,  # a zip file with a password
    UnicodeError,
)


def unpack(path: Path) -> tuple[Any, Any]:
    """The text as a stream of Arrow, and the raw file below it, which may be the same."""
    raw, end = pa.OSFile(str(path)), _packing_of(path)
    if end in ARROW_UNPACKS:
        return pa.CompressedInputStream(raw, ARROW_UNPACKS[end]), raw
    if end == ".xz":
        return pa.PythonFile(lzma.LZMAFile(raw), "r"), raw
    if end == ".zip":
        return pa.PythonFile(_only_member(path, zipfile.ZipFile(raw)), "r"), raw
    return raw, raw


def _packing_of(path: Path) -> str:
    """The end of a name that says how the text is packed; "" if it is not."""
    end = path.suffix.lower()
    return end if end in (*ARROW_UNPACKS, *PYTHON_UNPACKS) else ""


def _only_member(path: Path, archive: zipfile.ZipFile) -> IO[bytes]:
    names = [name for name in archive.namelist() if not name.endswith("/")]
    if len(names) != 1:
        msg = (
            f"cannot read {path}: it holds {len(names)} files, and one is needed. Unpack it first."
        )
        raise DataError(msg)
    return archive.open(names[0])


# How numbers are written: signs between thousands, of decimals, of currencies, of percent.

SYMBOLS = "$€£¥₹₽₩₪₺₫₴₦₱฿¢"
CODES = (
    "EUR|USD|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|RUB|UAH|TRY|ILS|"
    "BRL|MXN|ARS|CLP|COP|ZAR|NGN|KES|EGP|AED|SAR|SGD|HKD|TWD|KRW|THB|IDR|MYR|PHP|VND|PKR|"
    r"kr|zł|Kč|Ft|lei|Fr\.|Rs\.?"
)
CURRENCY = rf"(?:(?:US|CA|AU|NZ|HK|R|C|A|S)?[{SYMBOLS}]|{CODES})"
SPACES, QUOTES = " \u00a0\u2009\u202f", "'\u2019"
GROUPING = {",": ",", ".": ".", " ": SPACES, "'": QUOTES}
"""Signs between thousands, and how each of them may be written."""

USUAL = csv.ConvertOptions().null_values
WORDS = (
    *USUAL,
    *("-", "--", "---", "?", ".", "..", "none", "None", "NONE", "nil", "<NA>", "NaT", "N.A.", "na"),
    *("n.a.", "missing", "Missing", "unknown", "Unknown", "#VALUE!", "#DIV/0!", "#REF!", "#NUM!"),
    *("#NAME?", "#NULL!"),
)
"""What stands for a missing value where the rest of the column are numbers, dates or booleans."""


@dataclass(frozen=True)
class Dialect:
    r"""How a text table is written; what is None is found out from the first part of the file.

    Parameters
    ----------
    separator : {",", ";", "\t", "|"} or another sign, optional
        Between the cells of a line.
    decimal : {".", ","}, optional
        Of numbers with a fraction.
    thousands : {",", ".", " ", "'"}, optional
        Between groups of three digits; "" for none. If none is found in the first part of the
        file, every one of them that is not the decimal sign is accepted further on.
    encoding : str, optional
        As Python names it: "utf-8", "utf-16", "cp1252", "latin-1".
    missing : sequence of str
        Words that mean a missing value in columns of numbers, dates and booleans, beside the
        usual ones.
    header : bool, optional
        Whether the first line has the names of the columns.

    Examples
    --------
    >>> from sketchshift.data.text_files import Dialect
    >>> Dialect(separator=";", decimal=",").words
    "separated by ';', decimal comma"
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    missing: tuple[str, ...] = ()
    header: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what no table can be read with."""
        words = (self.missing,) if isinstance(self.missing, str) else tuple(self.missing)
        object.__setattr__(self, "missing", words)
        if self.separator is not None and not _is_separator(self.separator):
            raise parameter_error("Dialect", "separator", "one sign, as in ';'", self.separator)
        if self.decimal not in (None, ".", ","):
            raise parameter_error("Dialect", "decimal", "'.' or ','", self.decimal)
        is_twice = self.thousands is not None and self.thousands == self.decimal
        if is_twice or self.thousands not in (None, "", *GROUPING):
            must = "'', ',', '.', ' ' or \"'\", and not the decimal sign"
            raise parameter_error("Dialect", "thousands", must, self.thousands)
        if self.encoding is not None and not _is_encoding(self.encoding):
            must = "an encoding that Python knows, as in 'cp1252'"
            raise parameter_error("Dialect", "encoding", must, self.encoding)

    @classmethod
    def sniff(cls, path: str | PathLike[str], given: Dialect | None = None) -> Dialect:
        """The dialect of a file, complete, where ``given`` does not say it already.

        Parameters
        ----------
        path : path
            Of a text table, packed or not. Its first 64 KiB are looked at, and a little of text
            from all along it for the encoding.
        given : Dialect, optional
            What is known.
        """
        with report_damage(str(path), *DAMAGE):
            return next(_look_at(Path(path), given or cls(), ())).dialect

    @property
    def words(self) -> str:
        """What differs from a plain table (commas, decimal points, UTF-8), as half a sentence."""
        thousands = {" ": "spaces", "'": "apostrophes"}.get(self.thousands or "", self.thousands)
        separator = {"\t": "tabs", " ": "spaces"}.get(self.separator or ",", f"{self.separator!r}")
        facts = {
            f"separated by {separator}": self.separator not in (None, ","),
            "decimal comma": self.decimal == ",",
            f"thousands marked by {thousands}": bool(self.thousands),
            f"{self.encoding}": self.encoding not in (None, "utf-8"),
            "no line of column names": self.header is False,
        }
        return ", ".join(fact for fact, is_so in facts.items() if is_so)


def describe(path: str | PathLike[str], dialect: Dialect | None = None) -> str:
    """One sentence on how a text table is read; "" for a plain one.

    Parameters
    ----------
    path : path
        Of the file.
    dialect : Dialect, optional
        What was asked for.

    Returns
    -------
    sentence : str
        As in ``"sales.csv is read as separated by ';', decimal comma, cp1252."``
    """
    found = Dialect.sniff(path, dialect)
    if found.separator == _customary(Path(path)):
        found = replace(found, separator=None)
    return f"{Path(path).name} is read as {found.words}." if found.words else ""


def _is_separator(sign: str) -> bool:
    return isinstance(sign, str) and len(sign) == 1 and sign.isascii() and sign not in '"\r\n'


def _is_encoding(name: str) -> bool:
    try:
        codecs.lookup(name)
    except (LookupError, TypeError):
        return False
    return True


def _customary(path: Path) -> str:
    """The separator that the name of a file promises."""
    name = path.name.lower().removesuffix(_packing_of(path))
    return "\t" if name.endswith((".tsv", ".tab")) else ","


def parse_numbers(column: Any, dialect: Dialect) -> tuple[Any, Any]:
    """The numbers that the cells of a text column show.

    Parameters
    ----------
    column : Arrow array of n texts
        Signs of currencies and percent around a number do not change it: ``12 %`` is 12. A
        number in parentheses is negative.
    dialect : Dialect
        Complete.

    Returns
    -------
    numbers : Arrow array of n float64
        What Python's ``float`` gives for the digits: the nearest float. Words that mean a missing
        value, and cells that are no numbers, are null.
    is_fault : Arrow array of n booleans
        Which cells are no numbers.
    """
    cells = _drop_missing(column, dialect)
    if dialect.decimal == ".":
        try:  # few columns have signs
            return cells.cast(pa.float64()), pa.repeat(False, len(cells))
        except pa.ArrowInvalid:
            pass
    decimal = dialect.decimal or "."
    grouped, plain = _number_patterns(decimal, dialect.thousands)
    digits = _strip_signs(cells)
    without = pc.replace_substring_regex(digits, _any_of(dialect.thousands, decimal), "")
    digits = pc.if_else(pc.match_substring_regex(digits, grouped), without, digits)
    is_number = pc.match_substring_regex(digits, plain)
    numbers = pc.if_else(is_number, pc.replace_substring(digits, decimal, "."), None)
    return numbers.cast(pa.float64()), pc.fill_null(pc.invert(is_number), False)


def _drop_missing(column: Any, dialect: Dialect) -> Any:
    """The cells without blanks around them; words for a missing value are null."""
    cells = pc.utf8_trim_whitespace(column)
    words = pa.array([*WORDS, *dialect.missing], cells.type)
    return pc.if_else(pc.is_in(cells, words), pa.scalar(None, cells.type), cells)


def _strip_signs(cells: Any) -> Any:
    """Texts without currencies, percent signs and parentheses around the number."""
    for pattern, text in (
        (r"^\(\s*([^-+()]+?)\s*\)$", r"-\1"),
        ("^(\u2212)", "-"),
        (rf"^([-+]?)\s*(?:{CURRENCY})\s*", r"\1"),
        (rf"\s*(?:{CURRENCY}|%)$", ""),
        (r"^([-+])\s+", r"\1"),
    ):
        cells = pc.replace_substring_regex(cells, pattern, text)
    return cells


def _any_of(thousands: str | None, decimal: str) -> str:
    """A pattern for the signs between thousands."""
    chosen = [thousands] if thousands else [sign for sign in GROUPING if sign != decimal]
    return f"[{''.join(GROUPING[sign] for sign in chosen)}]"


@cache
def _number_patterns(decimal: str, thousands: str | None) -> tuple[str, str]:
    """Of a number with its thousands in groups, by one sign alone; and of a number without."""
    chosen = [thousands] if thousands else [sign for sign in GROUPING if sign != decimal]
    sets = [f"[{one}]" for sign in chosen for one in GROUPING[sign]]
    groups = "|".join(rf"[1-9][0-9]{{0,2}}(?:{one}[0-9]{{2,3}})*{one}[0-9]{{3}}" for one in sets)
    power = r"(?:[eE][-+]?[0-9]+)?"
    mark = re.escape(decimal)
    grouped = rf"^[-+]?(?:{groups})(?:{mark}[0-9]*)?{power}$"
    plain = rf"^[-+]?(?:[0-9]+(?:{mark}[0-9]*)?|{mark}[0-9]+){power}$|^(?i:[-+]?inf(?:inity)?)$"
    return grouped, plain


# What a file is like, told from its first part.

HEAD_BYTES = (2**16, 2**20, 2**24)  # a larger one is tried when a line does not fit
ROWS_SNIFFED, CELLS_TRIED = 200, 100
PLACES_SNIFFED = 16  # all along a file, for its encoding
MARKS = {  # the longer ones first: UTF-32 begins as UTF-16 does
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    BOM_UTF8: "utf-8",
}
ONE_BYTE_SIGNS = ("utf-8", "ascii", "iso8859", "cp125", "koi8", "mac")
"""Encodings in which separators, quotes and ends of lines are bytes that mean nothing else."""

GROUPED = re.compile(
    rf"[1-9]\d{{0,2}}(?:([,.{SPACES}{QUOTES}])\d{{3}})(?:\1\d{{3}})*(?:([.,])\d*)?"
)
BROKEN = re.compile(r"\d*([.,])\d*")


@dataclass(frozen=True)
class _Table:
    """A text table that was looked at.

    ``body`` is the number of bytes before the first row, unpacked; ``names`` are those of all
    columns, and ``is_named`` says which of them stand in the file; ``is_cut`` whether rows can be
    told by their bytes; ``size`` the bytes to read at a time.
    """

    path: Path
    dialect: Dialect
    names: tuple[str, ...]
    is_named: tuple[bool, ...]
    body: int
    is_cut: bool
    size: int

    @property
    def is_plain(self) -> bool:
        """Whether the text is not packed."""
        return not _packing_of(self.path)

    @property
    def is_sought(self) -> bool:
        """Whether lines can be found from any place."""
        return self.is_plain and (self.dialect.encoding or "").startswith(ONE_BYTE_SIGNS)


def _look_at(path: Path, given: Dialect, asked: Sequence[str]) -> Iterator[_Table]:
    """What the first part of a file tells, then what larger parts of it do: lines may be long."""
    for size in HEAD_BYTES:
        head = bytes(unpack(path)[0].read(size))
        table = _sniff(path, head, given, asked, size=size, is_whole=len(head) < size)
        if table is not None:
            yield table
    raise DataError(f"cannot read {path} as a text table: a line of it does not end.")


def _sniff(
    path: Path, head: bytes, given: Dialect, asked: Sequence[str], *, is_whole: bool, size: int
) -> _Table | None:
    """What the first bytes tell; None if they hold no whole line."""
    found, before = _find_encoding(path, head)
    encoding = _normal(given.encoding or found, found)
    is_bytewise = encoding.startswith(ONE_BYTE_SIGNS)
    errors = "surrogateescape" if is_bytewise else "replace"
    text = codecs.getincrementaldecoder(encoding)(errors).decode(head[before:])
    if not text.strip("\r\n"):
        if is_whole:
            raise DataError(f"cannot read {path} as a text table: it is empty.")
        return None
    separator = given.separator or _find_separator(text, _customary(path), is_whole=is_whole)
    first, rows, n_signs = _split(text, separator, is_whole=is_whole)
    if n_signs == len(text) and not is_whole:
        return None
    has_names = _has_names(first, rows, asked) if given.header is None else given.header
    rows = rows if has_names else [first, *rows]
    decimal, thousands = _find_number_signs(rows, separator, given)
    names = tuple(name if has_names and name else f"column {i}" for i, name in enumerate(first))
    header = text[:n_signs].encode(encoding, errors) if is_bytewise else b""
    n_bytes = len(text[:n_signs].encode(encoding, errors))
    return _Table(
        path,
        Dialect(separator, decimal, thousands, encoding, given.missing, has_names),
        names,
        tuple(bool(has_names and name) for name in first),
        before + n_bytes * has_names,
        is_bytewise and not _packing_of(path) and _is_whole_row(header, separator),
        size,
    )


def _normal(encoding: str, found: str) -> str:
    """The name of an encoding in Python's own spelling; which UTF-16 it is, the mark says."""
    name = codecs.lookup(encoding).name
    if name in ("utf-8-sig", "ascii"):
        return "utf-8"
    if name in ("utf-16", "utf-32"):
        return found if found.startswith(name) else f"{name}-le"
    return name


def _find_encoding(path: Path, head: bytes) -> tuple[str, int]:
    """The encoding, and the length of the mark that says so.

    Without a mark it is UTF-8 if more letters beyond ASCII can be read as that than cannot.
    """
    mark = next((mark for mark in MARKS if head.startswith(mark)), None)
    if mark is not None:
        return MARKS[mark], len(mark)
    texts = [head] if _packing_of(path) else [head, *_texts_across(path)]
    n_good = n_bad = 0
    for text in texts:
        beyond = re.findall("[^\x00-\x7f]", text.decode("utf-8", "surrogateescape"))
        n_bad += sum("\udc80" <= letter <= "\udcff" for letter in beyond)
        n_good += sum(not "\udc80" <= letter <= "\udcff" for letter in beyond)
    if n_bad <= n_good:
        return "utf-8", 0
    try:
        b"".join(texts).decode("cp1252")
    except UnicodeDecodeError:
        return "iso8859-1", 0  # has a letter for every byte
    return "cp1252", 0


def _texts_across(path: Path) -> Iterator[bytes]:
    """A little text from places all along a file, beyond its head, between signs of ASCII."""
    size = path.stat().st_size
    with path.open("rb") as file:
        for place in range(1, PLACES_SNIFFED + 1):
            offset = HEAD_BYTES[0] + place * (size - 2 * HEAD_BYTES[0]) // PLACES_SNIFFED
            if size > 2 * HEAD_BYTES[0]:
                file.seek(offset)
                yield (
                    file.read(2**12)
                    .lstrip(bytes(range(0x80, 0xC0)))
                    .rstrip(bytes(range(0x80, 256)))
                )


def _find_separator(text: str, customary: str, *, is_whole: bool) -> str:
    """The sign that cuts most lines into as many cells as the first, and most into numbers."""

    def score(sign: str) -> tuple[float, int]:
        first, rows, _ = _split(text, sign, is_whole=is_whole)
        if len(first) < 2:
            return 0.0, 0
        fits = [row for row in rows if len(row) == len(first)]
        n_numbers = sum(_is_number(cell) for row in fits for cell in row)
        return (len(fits) / len(rows) if rows else 0.5), n_numbers

    scores = {sign: score(sign) for sign in (customary, ",", ";", "\t", "|")}
    best = max(scores, key=lambda sign: scores[sign])  # the first of equals
    return best if scores[best][0] > 0 else customary


def _split(text: str, separator: str, *, is_whole: bool) -> tuple[list[str], list[list[str]], int]:
    """The first line, the lines that follow it, and the number of signs of the first."""
    n_read = 0

    def lines() -> Iterator[str]:
        nonlocal n_read
        for line in io.StringIO(text, newline=""):
            n_read += len(line)
            yield line

    try:
        rows = (row for row in plain_csv.reader(lines(), delimiter=separator) if row)
        first = next(rows, [])
        n_signs = n_read
        others = list(islice(rows, ROWS_SNIFFED))
    except plain_csv.Error:  # a cell of more than 128 KiB
        return [], [], len(text)
    if not is_whole and n_read == len(text):
        others = others[:-1]  # cut off
    return first, others, n_signs


def _is_number(cell: str) -> bool:
    try:
        float(cell.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def _has_names(first: Sequence[str], rows: Sequence[Sequence[str]], asked: Sequence[str]) -> bool:
    """Whether the first line has names: not if it has numbers above numbers, and no new word.

    0, 1, 2 ... are the names that pandas gives. A word that stands further down in the same
    column is no name of it.
    """
    numbers = [i for i, cell in enumerate(first) if _is_number(cell)]
    if not numbers or (asked and set(asked) <= set(first)):
        return True
    if len(numbers) > 1 and [first[i] for i in numbers] == [str(i) for i in range(len(numbers))]:
        return True
    for i, cell in enumerate(first):
        below = [row[i].strip() for row in rows if i < len(row)]
        if i in numbers and 2 * sum(_is_number(x) or x in WORDS for x in below) < len(below):
            return True
        if i not in numbers and cell and cell.strip() not in below:
            return True
    return not first[0] and [row[0] for row in rows] == [str(i) for i in range(len(rows))]


def _find_number_signs(
    rows: Sequence[Sequence[str]], separator: str, given: Dialect
) -> tuple[str, str]:
    """The decimal sign and the one between thousands ("" if there is none).

    Each column of numbers has a vote. What could be both, as in 1,234, is a sign of thousands,
    unless cells are separated by ; as they are where the comma is the decimal sign.
    """
    votes: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    unsure: Counter[str] = Counter()
    for column in zip(*(row for row in rows if len(row) == len(rows[0])), strict=True):
        cells = [cell for cell in pc.utf8_trim_whitespace(pa.array(column)).to_pylist() if cell]
        if not any(sign in cell for cell in cells for sign in ",.'\u2019" + SPACES):
            continue
        bodies = [text.lstrip("+-") for text in _strip_signs(pa.array(cells)).to_pylist()]
        seen = [found for text in bodies if (found := _read_signs(text)) is not None]
        n_words = sum(cell in WORDS for cell in cells)
        if 2 * (len(seen) + n_words) < len(cells):
            continue
        decimals = {decimal for decimal, _, _ in seen if decimal}
        votes.update(decimals if len(decimals) == 1 else ())
        groups.update({group for _, group, _ in seen if group})
        unsure.update({both for _, _, both in seen if both})
    is_likely = votes[","] > votes["."] or (not votes and separator == ";" and unsure[","])
    other = {",": ".", ".": ","}.get(given.thousands or "")
    decimal = given.decimal or other or ("," if is_likely else ".")
    if given.thousands is not None:
        return decimal, given.thousands
    groups.update(unsure)
    del groups[decimal]
    return decimal, max(groups, key=lambda sign: groups[sign], default="")


def _read_signs(text: str) -> tuple[str, str, str] | None:
    """Decimal sign, sign of thousands, and a sign that may be either; None if no number."""
    if found := GROUPED.fullmatch(text):
        group = next(sign for sign, forms in GROUPING.items() if found[1] in forms)
        if found[2] and found[2] != group:
            return found[2], group, ""
        if found[2] is None and (group not in ",." or text.count(group) > 1):
            return {",": ".", ".": ","}.get(group, ""), group, ""
        return ("", "", group) if found[2] is None else None
    if found := BROKEN.fullmatch(text):
        return found[1], "", ""
    return ("", "", "") if _is_number(text) else None


# Places in a text table: lines from all along the file, and cuts between two rows.
#
# A seek lands inside a line, or inside a quoted cell of several lines: what follows the next
# line end is parsed by itself, and left out if that fails. Where much fails, the file is read
# from start to end instead.

LONGEST_LINE = 2**20  # bytes looked at for the end of a line
PIECE_BYTES, MOST_BYTES = 2**24, 2**26  # of text between two cuts; looked at for a cut
QUOTE = ord('"')


def _lines_across(
    table: _Table,
    choice: Choice,
    read_lines: Callable[[bytes], Any],
    read: Callable[[], Iterable[Block]],
) -> Across:
    """Rows of a text file that can be sought in.

    Parameters
    ----------
    table : _Table
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
    table: _Table, choice: Choice, read_lines: Callable[[bytes], Any], n_rows: int, seed: int
) -> Iterator[Block]:
    run = -(-n_rows // SEEKS)
    with table.path.open("rb") as file:
        size = table.path.stat().st_size - table.body
        for offset in spread(-(-n_rows // run), max(size, 0), seed).tolist():
            place = table.body + offset
            batch = read_lines(_lines(file, place, run))
            if batch is not None:  # else the middle of a quoted cell, most likely
                where = f"{table.path}, counted from byte {place},"
                yield from batch_blocks([batch], choice, run, source=where)


def _row_ranges(table: _Table) -> Iterator[tuple[int, int]]:
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


def _is_whole_row(line: bytes, delimiter: str) -> bool:
    r"""Whether the first line is one, and ends in \n or \r\n, not in a lone \r."""
    is_one_line = b"\r" not in line.strip(b"\r\n")
    return is_one_line and _last_row_end(line, delimiter) == len(line)


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
NO_ROWS = "Empty CSV file"  # and for this


@dataclass(frozen=True)
class _Reader:
    """Reads columns of a table, each as the Arrow type it shall have.

    ``signed`` are the columns of numbers that Arrow cannot convert itself.
    """

    table: _Table
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
        stream, raw = unpack(self.table.path)
        size, total = size or max(READ_BYTES, 2 * self.table.size), raw.size()
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
            raise DataError(fact, "Say what it is with ", SetDialect("encoding"), ".") from cause

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
        return mark_as_written(pa.record_batch(columns, names=list(self.types)), texts)

    def _fault(self, name: str, row: int, cell: bytes) -> DataError:
        where = f"{self.table.path}: column {name!r} holds "
        place = f" in row {row} (data rows count from 0), "
        try:
            text = cell.decode()
        except UnicodeDecodeError:
            fact = f"{where}{cell!r}{place}which is not UTF-8. Say what the file is with "
            return DataError(fact, SetDialect("encoding", "cp1252"), ".")
        kind = self.types[name]
        named = {pa.float64(): "a number", pa.bool_(): "true or false, as it did before"}
        wanted = named.get(kind, f"a key of type {kind}, as it did before")
        return DataError(
            f"{where}{text!r}{place}where it should hold {wanted}. Correct the cell, or choose "
            "other columns. If it means that there is no value, say so with ",
            SetDialect("missing", text),
            ".",
        )

    def _ragged(self, line: Any, first_row: int) -> DataError:
        row = first_row + line.number - 1  # Arrow counts from 1
        return DataError(
            f"{self.table.path}: row {row} (data rows count from 0) has {line.actual_columns} "
            f"cells, but the first line has {line.expected_columns}: {line.text[:80]!r}. Correct "
            "the line, or say what separates the cells with ",
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
    return _cast(_drop_missing(column, dialect), kind)


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


def open_delimited(path: Path, request: Request) -> Source:
    """Read a text table: cells separated by commas, semicolons, tabs or bars.

    Parameters
    ----------
    path : Path
        Plain or packed. Among numbers, empty cells and the usual words for a missing value (NA,
        nan, null, ?, -, none) become NaN; true and false become 1 and 0. Signs of thousands,
        currencies and percent do not count. Blank lines are skipped. Of keys that are not dates,
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
    if request.columns is None and len(fields) > 1 and _names_rows(table, head, written):
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

    across = _lines_across(table, choice, reader.read_lines, read) if table.is_sought else None
    cut = pieces if table.is_cut else None
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


def _read_head(path: Path, request: Request) -> tuple[_Table, Any, Any]:
    """The table, its first rows with types as Arrow infers them, and the same as bytes."""
    given, asked = request.dialect or Dialect(), request.columns or ()
    for table in _look_at(path, given, asked):
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
    if pa.types.is_null(inferred.type) and not set(_texts(written)) <= set(USUAL):
        return Field(field.name, "text", is_number=False)
    if not pa.types.is_string(inferred.type):
        return field
    cells = _drop_missing(pa.array(_texts(written), pa.string()), dialect).drop_null()
    _, is_fault = parse_numbers(cells[:CELLS_TRIED], dialect)
    return Field(field.name, "text", 2 * pc.sum(is_fault).as_py() <= len(is_fault))


def _texts(written: Any) -> list[str]:
    return [cell.decode("utf-8", "replace") for cell in written.to_pylist()]


def _names_rows(table: _Table, head: Any, written: Any) -> bool:
    """Whether the first column is the index that pandas writes, or the names of rows of R."""
    kind, cells = head.column(0).type, written.column(0)
    is_name = pa.types.is_integer(kind) or pa.types.is_string(kind)
    return not table.is_named[0] and is_name and len(cells.unique()) == len(cells)


def _read_as(inferred: Any) -> Any:
    return pa.bool_() if pa.types.is_boolean(inferred) else pa.float64()


def _key_type(inferred: Any) -> Any:
    """Dates, times and booleans as such, all else as it is written: 01234 is not 1234."""
    is_typed = pa.types.is_temporal(inferred) or pa.types.is_boolean(inferred)
    return inferred if is_typed else pa.string()
