"""How a text table is written: its separator, its encoding, the signs in its numbers.

People write tables in many ways. The first part of a file tells which, and what it does not tell
can be said: :class:`Dialect`.
"""

from __future__ import annotations

import codecs
import csv
import io
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions

from sketchshift._paths import Place, arrow_file
from sketchshift._validation import parameter_error
from sketchshift.data.source import DIALECT
from sketchshift.errors import DataError

__all__ = [
    "DAMAGE",
    "USUAL",
    "WORDS",
    "Dialect",
    "TextTable",
    "drop_missing",
    "find_beginning",
    "look_at",
    "parse_numbers",
    "text_dialect",
    "unpack",
]

# Files, and the text in them.
#
# Arrow unpacks most of the packed ones itself, and faster; the others go through Python's own
# streams. None of them is closed here: Arrow reads ahead in a thread, which must not find its
# file closed. They go when the last reference does.

ARROW_UNPACKS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
PACKED = (*ARROW_UNPACKS, ".xz", ".zip")
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


def unpack(
    path: Place, way: Literal["bits", "through"] = "through", stop: int | None = None
) -> tuple[Any, Any, int]:
    """The text as a stream of Arrow, the raw file below it, and the bytes of that to be read."""
    raw, end = arrow_file(path, way, stop), path.suffix.lower()
    if end in ARROW_UNPACKS:
        return pa.CompressedInputStream(raw, ARROW_UNPACKS[end]), raw, raw.size()
    if end == ".xz":
        return pa.PythonFile(lzma.LZMAFile(raw), "r"), raw, raw.size()
    if end != ".zip":
        return raw, raw, raw.size()
    archive = zipfile.ZipFile(raw)
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        msg = f"cannot read {path}: it holds {len(members)} files, not one. Unpack it first."
        raise DataError(msg)
    text = archive.open(members[0])
    return pa.PythonFile(text, "r"), raw, raw.tell() + members[0].compress_size


# How numbers are written: signs between thousands, of decimals, of percent.

GROUPING = ",. \u00a0\u2009\u202f'\u2019"
"""Signs between thousands."""

USUAL = ConvertOptions().null_values
WORDS = (
    *USUAL,
    *("-", "--", "---", "?", ".", "..", "none", "None", "NONE", "nil", "<NA>", "NaT", "N.A.", "na"),
    *("n.a.", "missing", "Missing", "unknown", "Unknown", "#VALUE!", "#DIV/0!", "#REF!", "#NUM!"),
    *("#NAME?", "#NULL!"),
)
"""What stands for a missing value where the rest of the column are numbers, dates or booleans."""

SEPARATOR = r'[^"\r\n\u0080-\U0010ffff]'


@dataclass(frozen=True)
class Dialect:
    r"""How a text table is written; what is None is found out from the first part of the file.

    Parameters
    ----------
    separator : {",", ";", "\t", "|"} or another sign, optional
        Between the cells of a line.
    decimal : {".", ","}, optional
        Of numbers with a fraction. It settles what a number such as 1,234 is: thousands may be
        grouped by any other sign.
    encoding : str, optional
        As Python names it: "utf-8", "utf-16", "cp1252", "latin-1".
    missing : sequence of str
        Words that mean a missing value in columns of numbers, dates and booleans, beside the
        usual ones.
    header : bool, optional
        Whether the first line has the names of the columns.

    Examples
    --------
    >>> from sketchshift.data.dialect import Dialect
    >>> Dialect(separator=";", decimal=",").decimal
    ','
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing: Sequence[str] = ()
    header: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what no table can be read with."""
        words, sign = self.missing, self.separator
        object.__setattr__(self, "missing", (words,) if isinstance(words, str) else tuple(words))
        if sign is not None and not (isinstance(sign, str) and re.fullmatch(SEPARATOR, sign)):
            raise parameter_error("Dialect", "separator", "one sign, as in ';'", sign)
        if self.decimal not in (None, ".", ","):
            raise parameter_error("Dialect", "decimal", "'.' or ','", self.decimal)
        if self.encoding is not None and not _is_encoding(self.encoding):
            must = "an encoding that Python knows, as in 'cp1252'"
            raise parameter_error("Dialect", "encoding", must, self.encoding)


@contextmanager
def text_dialect(
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    missing: Sequence[str] = (),
    header: bool | None = None,
) -> Iterator[None]:
    """Say how the text files are written that are read inside of a ``with``.

    Parameters
    ----------
    separator : str, optional
        Between the cells of a line. Default of this and the others: found out from each file.
    decimal : {".", ","}, optional
        Of numbers with a fraction. It settles what a number such as 1,234 is: thousands may be
        grouped by any other sign.
    encoding : str, optional
        As Python names it: "utf-8", "cp1252".
    missing : sequence of str
        Words that mean a missing value, beside the usual ones.
    header : bool, optional
        Whether the first line has the names of the columns.

    Examples
    --------
    >>> import sketchshift as ss
    >>> with ss.data.text_dialect(separator=";", decimal=","):
    ...     pass  # ss.sketch("sales.csv", n_clusters=5)
    """
    token = DIALECT.set(Dialect(separator, decimal, encoding, missing, header))
    try:
        yield
    finally:
        DIALECT.reset(token)


def _is_encoding(name: str) -> bool:
    """Return whether Python decodes text by this name; ``base64`` and the like make no text."""
    try:
        return "a,1\n".encode(name).decode(name) == "a,1\n"
    except (LookupError, TypeError, UnicodeError):
        return False


def parse_numbers(column: Any, dialect: Dialect) -> tuple[Any, Any]:
    """The numbers that the cells of a text column show.

    Parameters
    ----------
    column : Arrow array of n texts
        A percent sign behind a number does not change it: ``12 %`` is 12.
    dialect : Dialect
        Its decimal sign and words for a missing value.

    Returns
    -------
    numbers : Arrow array of n float64
        What Python's ``float`` gives for the digits: the nearest float. Words that mean a missing
        value, and cells that are no numbers, are null.
    is_fault : Arrow array of n booleans
        Which cells are no numbers; may be null for missing values.
    """
    cells, decimal = drop_missing(column, dialect), dialect.decimal or "."
    if decimal == ".":
        try:  # few columns have signs
            return cells.cast(pa.float64()), pa.repeat(False, len(cells))
        except pa.ArrowInvalid:
            pass
    cells = pc.replace_substring_regex(cells, "^\u2212", "-")
    cells = pc.replace_substring_regex(cells, r"\s*%$", "")
    is_number = pc.match_substring_regex(cells, _number_pattern(decimal))
    cells = pc.if_else(is_number, cells, None)
    cells = pc.replace_substring_regex(cells, f"[{GROUPING.replace(decimal, '')}]", "")
    numbers = pc.replace_substring(cells, decimal, ".").cast(pa.float64())
    return numbers, pc.invert(is_number)


def drop_missing(column: Any, dialect: Dialect) -> Any:
    """The cells without blanks around them; words for a missing value are null."""
    cells = pc.utf8_trim_whitespace(column)
    words = "|".join(map(re.escape, (*WORDS, *dialect.missing)))  # an array of them asks for pandas
    return pc.if_else(pc.match_substring_regex(cells, f"^(?:{words})$"), None, cells)


@cache
def _number_pattern(decimal: str) -> str:
    """Of a number, its thousands in groups by one sign alone or in none."""
    groups = "|".join(
        rf"[1-9][0-9]{{0,2}}(?:[{sign}][0-9]{{2,3}})*[{sign}][0-9]{{3}}"
        for sign in GROUPING.replace(decimal, "")
    )
    digits = rf"(?:{groups}|[0-9]+)(?:[{decimal}][0-9]*)?|[{decimal}][0-9]+"
    return rf"^[-+]?(?:(?:{digits})(?:[eE][-+]?[0-9]+)?|(?i:inf(?:inity)?))$"


# What a file is like, told from its first part.

HEAD_BYTES = (2**16, 2**20, 2**24)  # a larger one is tried when a line does not fit
ROWS_SNIFFED = 200
PLACES_SNIFFED = 16  # all along a file, for its encoding
MARKS = {  # the longer ones first: UTF-32 begins as UTF-16 does
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF8: "utf-8",
}
ONE_BYTE_SIGNS = ("utf-8", "ascii", "iso8859", "cp125", "koi8", "mac")
"""Encodings in which separators, quotes and ends of lines are bytes that mean nothing else."""

Rows: TypeAlias = Sequence[Sequence[str]]


@dataclass(frozen=True)
class TextTable:
    """A text table that was looked at.

    ``body`` is the number of bytes before the first row, unpacked; ``names`` are those of all
    columns. ``is_unnamed`` says whether the first column alone has no name in the line of names,
    ``has_lines`` whether lines can be told by their bytes; ``size`` are the bytes looked at.
    """

    path: Place
    dialect: Dialect
    names: Sequence[str]
    is_unnamed: bool
    body: int
    has_lines: bool
    size: int


def look_at(path: Place, given: Dialect, asked: Sequence[str]) -> Iterator[tuple[TextTable, Rows]]:
    """Results of the first part of a file, then of larger parts: lines may be long.

    Yields the table and its first rows.
    """
    for size in HEAD_BYTES:
        head = bytes(unpack(path, "bits")[0].read(size))
        found = _sniff(path, head, given, asked, size)
        if found is not None:
            yield found
    raise DataError(f"cannot read {path} as a text table: a line of it does not end.")


def _sniff(
    path: Place, head: bytes, given: Dialect, asked: Sequence[str], size: int
) -> tuple[TextTable, Rows] | None:
    """What the first bytes tell; None if they hold no whole line."""
    is_whole = len(head) < size
    encoding, before = _find_encoding(path, head, given.encoding)
    is_bytewise = encoding.startswith(ONE_BYTE_SIGNS)
    errors = "surrogateescape" if is_bytewise else "replace"
    text = codecs.getincrementaldecoder(encoding)(errors).decode(head[before:])
    if not text.strip("\r\n"):
        if is_whole:
            raise DataError(f"cannot read {path} as a text table: it is empty.")
        return None
    lines = list(io.StringIO(text, newline=""))
    clean = [re.sub("[\udc80-\udcff]", "\ufffd", line) for line in lines]  # not of this encoding
    is_by_tabs = re.search(r"\.(tsv|tab)(\.(gz|bz2|zst|xz|zip))?$", path.name.lower())
    signs = given.separator or ("\t,;| " if is_by_tabs else ",;\t| ")
    splits = {sign: _split(clean, sign, is_whole=is_whole) for sign in signs}
    separator = max(signs, key=lambda sign: _score(sign, *splits[sign][:2]))  # first of equals
    first, rows, n_lines = splits[separator]
    if n_lines == len(lines) and not is_whole:
        return None
    has_names = _has_names(first, rows, asked) if given.header is None else given.header
    rows = rows if has_names else [first, *rows]
    decimal = given.decimal or _find_decimal(rows, separator)
    line = "".join(lines[:n_lines])
    names = [name if has_names and name else f"column {i}" for i, name in enumerate(first)]
    table = TextTable(
        path,
        Dialect(separator, decimal, encoding, given.missing, has_names),
        names,
        has_names and not all(first[:1]),
        before + len(line.encode(encoding, errors)) * has_names,
        is_bytewise
        and path.suffix.lower() not in PACKED
        and line.endswith("\n")
        and "\r" not in line.strip("\r\n"),
        size,
    )
    return table, rows


def _find_encoding(path: Place, head: bytes, given: str | None) -> tuple[str, int]:
    """The encoding in Python's own spelling, and the length of the mark that says so."""
    mark = next(filter(head.startswith, MARKS), b"")
    found = MARKS.get(mark, "utf-8")
    name = codecs.lookup(given or (found if mark else _guess_encoding(path, head))).name
    if name in ("utf-8-sig", "ascii"):
        name = "utf-8"
    if name in ("utf-16", "utf-32"):  # which of them it is, the mark says
        name = found if found.startswith(name) else f"{name}-le"
    return name, len(mark)


def _guess_encoding(path: Place, head: bytes) -> str:
    """UTF-8, unless more letters beyond ASCII cannot be read as that than can."""
    text, size = head, path.stat().st_size
    step = max(size // PLACES_SNIFFED, HEAD_BYTES[0])
    if path.suffix.lower() not in PACKED:
        with path.open("rb") as file:
            for place in range(step, size, step):
                file.seek(place)
                text += b"\n" + file.read(2**12).strip(bytes(range(128, 256)))  # whole letters
    letters = re.findall("[^\x00-\x7f]", text.decode("utf-8", "surrogateescape"))
    if 2 * sum("\udc80" <= letter <= "\udcff" for letter in letters) <= len(letters):
        return "utf-8"
    try:
        text.decode("cp1252")
    except UnicodeDecodeError:
        return "iso8859-1"  # has a letter for every byte
    return "cp1252"


def _split(
    lines: Sequence[str], separator: str, *, is_whole: bool
) -> tuple[Sequence[str], Rows, int]:
    """The first row, the rows that follow it, and the number of lines up to the end of the first.

    The last line may be cut off, where they are not the whole file.
    """
    reader = csv.reader(lines, delimiter=separator)
    rows = filter(None, reader)
    try:
        first, n_lines = next(rows, []), reader.line_num
        others = list(islice(rows, ROWS_SNIFFED))
    except csv.Error:  # a cell of more than 128 KiB
        return [], [], len(lines)
    is_cut = not is_whole and reader.line_num == len(lines)
    return first, others[:-1] if is_cut else others, n_lines


def _score(sign: str, first: Sequence[str], rows: Rows) -> tuple[float, int]:
    """How many lines a sign cuts into as many cells as the first, and into how many numbers.

    Spaces count only where they cut all lines into numbers.
    """
    if len(first) < 2:
        return 0.0, 0
    fits = [row for row in rows if len(row) == len(first)]
    n_numbers = sum(_is_number(cell) for row in fits for cell in row)
    if sign == " " and n_numbers < len(rows or first) * len(first):
        return 0.0, 0  # words
    return (len(fits) / len(rows) if rows else 0.5), n_numbers


def find_beginning(table: TextTable) -> int | None:
    """The line, counted from 1, at which a table begins below lines of notes, if there are any.

    There most of the lines have one number of cells, and more than the first line has.
    """
    dialect = table.dialect
    head = unpack(table.path)[0].read(HEAD_BYTES[0]).decode(dialect.encoding or "utf-8", "replace")
    rows = csv.reader(io.StringIO(head, newline=""), delimiter=dialect.separator or ",")
    ends = [(len(row), rows.line_num) for row in islice(rows, ROWS_SNIFFED)]
    lengths = [length for length, _ in ends]
    usual = max(lengths, key=lengths.count)
    is_table = usual > lengths[0] and 2 * lengths.count(usual) > len(lengths)
    return ends[lengths.index(usual) - 1][1] + 1 if is_table else None


def _is_number(cell: str) -> bool:
    try:
        float(cell.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def _has_names(first: Sequence[str], rows: Rows, asked: Sequence[str]) -> bool:
    """Whether the first line has names: not if it has numbers above numbers, and no new word.

    0, 1, 2 ... are the names that pandas gives. A word that stands further down in the same
    column is no name of it, and a number that comes twice names nothing.
    """
    numbers = [cell for cell in first if _is_number(cell)]
    if not numbers or (asked and set(asked) <= set(first)):
        return True
    if len(numbers) > 1 and numbers == [str(i) for i in range(len(numbers))]:
        return True
    if len(set(numbers)) < len(numbers):
        return False
    for i, cell in enumerate(first):
        below = [row[i].strip() for row in rows if i < len(row)]
        is_name = cell not in WORDS and cell.strip() not in below
        if cell in numbers:
            is_name = 2 * sum(_is_number(x) or x in WORDS for x in below) < len(below)
        if is_name:
            return True
    return not first[0] and [row[0] for row in rows] == [str(i) for i in range(len(rows))]


def _find_decimal(rows: Rows, separator: str) -> str:
    """The decimal sign: each column of numbers votes for the one that makes more cells numbers.

    What could be both, as in 1,234, has a sign of thousands, unless cells are separated by ; as
    they are where the comma is the decimal sign.
    """
    whole = [row for row in rows if len(row) == len(rows[0])]
    cells = [cell for column in zip(*whole, strict=True) for cell in column]
    if not any("," in cell or cell.count(".") > 1 for cell in cells):
        return "."
    column = pa.array(cells, pa.string())
    is_fault = [parse_numbers(column, Dialect(decimal=sign))[1].fill_null(False) for sign in ".,"]
    points, commas = (np.asarray(fault).reshape(-1, len(whole)).sum(axis=1) for fault in is_fault)
    votes = np.sign(points - commas)[2 * np.minimum(points, commas) <= len(whole)]
    has_groups = pc.any(pc.and_not(pc.match_substring(column, ","), is_fault[0])).as_py()
    is_likely = separator == ";" and has_groups and not votes.any()
    return "," if votes.sum() > 0 or is_likely else "."
