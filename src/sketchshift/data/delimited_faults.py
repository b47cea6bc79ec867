"""Which cell or line of a text table is at fault.

Reached only after Arrow gave up on a file: it is read once more with the wanted columns
as text, so that the message can name the row, the column and what was found there.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sketchshift.data.delimited_reader import delimiter_of, first_text, open_text
from sketchshift.errors import DataError

__all__ = ["explain", "other_encoding", "other_separator", "parses"]

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
