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
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from os import PathLike
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.csv import ConvertOptions

from sketchshift._paths import Place, arrow_file, parse_path
from sketchshift._validation import parameter_error
from sketchshift.data.source import DIALECT, report_damage
from sketchshift.errors import DataError

__all__ = [
    "DAMAGE",
    "USUAL",
    "WORDS",
    "Dialect",
    "TextTable",
    "describe",
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


def unpack(
    path: Place, way: Literal["bits", "through"] = "through", stop: int | None = None
) -> tuple[Any, Any, int]:
    """The text as a stream of Arrow, the raw file below it, and the bytes of that to be read."""
    raw, end = arrow_file(path, way, stop), _packing_of(path)
    if end in ARROW_UNPACKS:
        return pa.CompressedInputStream(raw, ARROW_UNPACKS[end]), raw, raw.size()
    if end == ".xz":
        return pa.PythonFile(lzma.LZMAFile(raw), "r"), raw, raw.size()
    if end == ".zip":
        archive = zipfile.ZipFile(raw)
        member = _only_member(path, archive)
        return pa.PythonFile(archive.open(member), "r"), raw, raw.tell() + member.compress_size
    return raw, raw, raw.size()


def _packing_of(path: Place) -> str:
    """The end of a name that says how the text is packed; "" if it is not."""
    end = path.suffix.lower()
    return end if end in (*ARROW_UNPACKS, *PYTHON_UNPACKS) else ""


def _only_member(path: Place, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        msg = f"cannot read {path}: it holds {len(members)} files, not one. Unpack it first."
        raise DataError(msg)
    return members[0]


# How numbers are written: signs between thousands, of decimals, of percent.

SPACES, QUOTES = " \u00a0\u2009\u202f", "'\u2019"
GROUPING = {",": ",", ".": ".", " ": SPACES, "'": QUOTES}
"""Signs between thousands, and how each of them may be written."""

AROUND_NUMBERS = (("^\u2212", "-"), (r"\s*%$", ""))
"""Patterns of what stands around a number, and what is left of it."""

USUAL = ConvertOptions().null_values
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
        Between groups of three digits; "" for none. It settles which is the decimal sign where a
        file shows only numbers such as 1,234. Groups by the other signs are read, too.
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
            return next(look_at(parse_path(path), given or DIALECT.get() or cls(), ())).dialect

    @property
    def words(self) -> str:
        """What differs from a plain table (commas, decimal points, UTF-8), as half a sentence."""
        thousands = {" ": "spaces"}.get(self.thousands or "", f"{self.thousands!r}")
        separator = {"\t": "tabs", " ": "spaces"}.get(self.separator or ",", f"{self.separator!r}")
        facts = {
            f"separated by {separator}": self.separator not in (None, ","),
            "decimal comma": self.decimal == ",",
            f"thousands marked by {thousands}": bool(self.thousands),
            f"encoded in {self.encoding}": self.encoding not in (None, "utf-8"),
            "without a line of column names": self.header is False,
        }
        return ", ".join(fact for fact, is_so in facts.items() if is_so)


@contextmanager
def text_dialect(
    *,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
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
        Of numbers with a fraction.
    thousands : {",", ".", " ", "'", ""}, optional
        Between groups of three digits.
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
    dialect = Dialect(separator, decimal, thousands, encoding, tuple(missing), header)
    token = DIALECT.set(dialect)
    try:
        yield
    finally:
        DIALECT.reset(token)


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
        As in ``"sales.csv: separated by ';', decimal comma, encoded in cp1252."``
    """
    found = Dialect.sniff(path, dialect)
    if found.separator == _customary(parse_path(path)):
        found = replace(found, separator=None)
    return f"{parse_path(path).name}: {found.words}." if found.words else ""


def _is_separator(sign: str) -> bool:
    return isinstance(sign, str) and len(sign) == 1 and sign.isascii() and sign not in '"\r\n'


def _is_encoding(name: str) -> bool:
    """Return whether Python decodes text by this name; ``base64`` and the like make no text."""
    try:
        return "a,1\n".encode(name).decode(name) == "a,1\n"
    except (LookupError, TypeError, UnicodeError):
        return False


def _customary(path: Place) -> str:
    """The separator that the name of a file promises."""
    name = path.name.lower().removesuffix(_packing_of(path))
    return "\t" if name.endswith((".tsv", ".tab")) else ","


def parse_numbers(column: Any, dialect: Dialect) -> tuple[Any, Any]:
    """The numbers that the cells of a text column show.

    Parameters
    ----------
    column : Arrow array of n texts
        A percent sign behind a number does not change it: ``12 %`` is 12.
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
    cells = drop_missing(column, dialect)
    if dialect.decimal == ".":
        try:  # few columns have signs
            return cells.cast(pa.float64()), pa.repeat(False, len(cells))
        except pa.ArrowInvalid:
            pass
    decimal = dialect.decimal or "."
    grouped, plain = _number_patterns(decimal)
    digits = _strip_signs(cells)
    signs = "".join(forms for sign, forms in GROUPING.items() if sign != decimal)
    without = pc.replace_substring_regex(digits, f"[{signs}]", "")
    digits = pc.if_else(pc.match_substring_regex(digits, grouped), without, digits)
    is_number = pc.match_substring_regex(digits, plain)
    nothing = pa.nulls(len(digits), digits.type)
    numbers = pc.if_else(is_number, pc.replace_substring(digits, decimal, "."), nothing)
    return numbers.cast(pa.float64()), pc.and_kleene(pc.is_valid(digits), pc.invert(is_number))


def drop_missing(column: Any, dialect: Dialect) -> Any:
    """The cells without blanks around them; words for a missing value are null."""
    cells = pc.utf8_trim_whitespace(column)
    words = "|".join(map(re.escape, (*WORDS, *dialect.missing)))  # an array of them asks for pandas
    is_missing = pc.match_substring_regex(cells, f"^(?:{words})$")
    return pc.if_else(is_missing, pa.nulls(len(cells), cells.type), cells)


def _strip_signs(cells: Any) -> Any:
    """Texts with a minus of ASCII, and without a percent sign."""
    for pattern, text in AROUND_NUMBERS:
        cells = pc.replace_substring_regex(cells, pattern, text)
    return cells


@cache
def _number_patterns(decimal: str) -> tuple[str, str]:
    """Of a number with its thousands in groups, by one sign alone; and of a number without."""
    sets = [f"[{one}]" for sign in GROUPING if sign != decimal for one in GROUPING[sign]]
    groups = "|".join(rf"[1-9][0-9]{{0,2}}(?:{one}[0-9]{{2,3}})*{one}[0-9]{{3}}" for one in sets)
    power = r"(?:[eE][-+]?[0-9]+)?"
    mark = re.escape(decimal)
    grouped = rf"^[-+]?(?:{groups})(?:{mark}[0-9]*)?{power}$"
    plain = rf"^[-+]?(?:[0-9]+(?:{mark}[0-9]*)?|{mark}[0-9]+){power}$|^(?i:[-+]?inf(?:inity)?)$"
    return grouped, plain


# What a file is like, told from its first part.

HEAD_BYTES = (2**16, 2**20, 2**24)  # a larger one is tried when a line does not fit
ROWS_SNIFFED = 200
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
class TextTable:
    """A text table that was looked at.

    ``body`` is the number of bytes before the first row, unpacked; ``names`` are those of all
    columns, and ``is_named`` says which of them stand in the file. ``first_line`` is None where
    lines cannot be told by their bytes; ``size`` are the bytes that were looked at.
    """

    path: Place
    dialect: Dialect
    names: tuple[str, ...]
    is_named: tuple[bool, ...]
    body: int
    first_line: bytes | None
    size: int

    @property
    def is_plain(self) -> bool:
        """Whether the text is not packed."""
        return not _packing_of(self.path)


def look_at(path: Place, given: Dialect, asked: Sequence[str]) -> Iterator[TextTable]:
    """What the first part of a file tells, then what larger parts of it do: lines may be long."""
    for size in HEAD_BYTES:
        head = bytes(unpack(path, "bits")[0].read(size))
        table = _sniff(path, head, given, asked, size=size, is_whole=len(head) < size)
        if table is not None:
            yield table
    raise DataError(f"cannot read {path} as a text table: a line of it does not end.")


def _sniff(
    path: Place, head: bytes, given: Dialect, asked: Sequence[str], *, is_whole: bool, size: int
) -> TextTable | None:
    """What the first bytes tell; None if they hold no whole line."""
    found, before = _find_encoding(path, head)
    encoding = _normal(given.encoding or found, found)
    is_bytewise = encoding.startswith(ONE_BYTE_SIGNS)
    errors = "surrogateescape" if is_bytewise else "replace"
    as_read = codecs.getincrementaldecoder(encoding)(errors).decode(head[before:])
    text = re.sub("[\udc80-\udcff]", "\ufffd", as_read)  # what is not of this encoding
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
    first_line = as_read[:n_signs].encode(encoding, errors)
    return TextTable(
        path,
        Dialect(separator, decimal, thousands, encoding, given.missing, has_names),
        names,
        tuple(bool(has_names and name) for name in first),
        before + len(first_line) * has_names,
        first_line if is_bytewise and not _packing_of(path) else None,
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


def _find_encoding(path: Place, head: bytes) -> tuple[str, int]:
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


def _texts_across(path: Place) -> Iterator[bytes]:
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
    """The sign that cuts most lines into as many cells as the first, and most into numbers.

    Spaces are taken only where they cut all lines into numbers.
    """

    def score(sign: str) -> tuple[float, int]:
        first, rows, _ = _split(text, sign, is_whole=is_whole)
        if len(first) < 2:
            return 0.0, 0
        fits = [row for row in rows if len(row) == len(first)]
        n_numbers = sum(_is_number(cell) for row in fits for cell in row)
        if sign == " " and n_numbers < len(rows or first) * len(first):
            return 0.0, 0  # words
        return (len(fits) / len(rows) if rows else 0.5), n_numbers

    scores = {sign: score(sign) for sign in (customary, ",", ";", "\t", "|", " ")}
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
        rows = (row for row in csv.reader(lines(), delimiter=separator) if row)
        first = next(rows, [])
        n_signs = n_read
        others = list(islice(rows, ROWS_SNIFFED))
    except csv.Error:  # a cell of more than 128 KiB
        return [], [], len(text)
    if not is_whole and n_read == len(text):
        others = others[:-1]  # cut off
    return first, others, n_signs


def find_beginning(table: TextTable) -> int | None:
    """The line, counted from 1, at which a table begins below lines of notes, if there are any.

    There most of the lines have one number of cells, and more than the first line has.
    """
    dialect, lengths, begins = table.dialect, [], []
    head = unpack(table.path)[0].read(HEAD_BYTES[0]).decode(dialect.encoding or "utf-8", "replace")
    lines = csv.reader(io.StringIO(head, newline=""), delimiter=dialect.separator or ",")
    n_before = 0
    try:
        for row in islice(lines, ROWS_SNIFFED):
            lengths.append(len(row))
            begins.append(n_before + 1)
            n_before = lines.line_num
    except csv.Error:
        return None
    if not lengths:
        return None
    usual = max(set(lengths), key=lengths.count)
    is_table = usual > lengths[0] and 2 * lengths.count(usual) > len(lengths)
    return begins[lengths.index(usual)] if is_table else None


def _is_number(cell: str) -> bool:
    try:
        float(cell.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def _has_names(first: Sequence[str], rows: Sequence[Sequence[str]], asked: Sequence[str]) -> bool:
    """Whether the first line has names: not if it has numbers above numbers, and no new word.

    0, 1, 2 ... are the names that pandas gives. A word that stands further down in the same
    column is no name of it, and a number that comes twice names nothing.
    """
    numbers = [i for i, cell in enumerate(first) if _is_number(cell)]
    if not numbers or (asked and set(asked) <= set(first)):
        return True
    if len(numbers) > 1 and [first[i] for i in numbers] == [str(i) for i in range(len(numbers))]:
        return True
    if len({first[i] for i in numbers}) < len(numbers):
        return False
    for i, cell in enumerate(first):
        below = [row[i].strip() for row in rows if i < len(row)]
        if i in numbers and 2 * sum(_is_number(x) or x in WORDS for x in below) < len(below):
            return True
        if i not in numbers and cell not in WORDS and cell.strip() not in below:
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
    for cells in _columns_with_signs(rows):
        seen = [found for text in cells if (found := _read_signs(text)) is not None]
        if 2 * (len(seen) + sum(text in WORDS for text in cells)) < len(cells):
            continue  # text
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


def _columns_with_signs(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The cells of columns that may show a sign in a number, without those around it."""
    whole = [row for row in rows if len(row) == len(rows[0])]
    columns = [
        [cell.strip() for cell in column if cell.strip()] for column in zip(*whole, strict=True)
    ]
    signs = set(",.'\u2019" + SPACES)
    columns = [cells for cells in columns if any(not signs.isdisjoint(cell) for cell in cells)]
    return [[_strip_cell(cell).lstrip("+-") for cell in cells] for cells in columns]


def _strip_cell(cell: str) -> str:
    """As :func:`_strip_signs`, one text at a time: most have nothing around the number."""
    if not cell.isascii() or not cell.replace(".", "").isdigit():
        for pattern, text in AROUND_NUMBERS:
            cell = re.sub(pattern, text, cell)
    return cell


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
