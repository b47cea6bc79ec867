"""Keys in one form, whichever library or file they come from.

A key is a column, or a time cut down to its day, month or another unit: ``"day(date)"``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sketchshift.data.labels import is_as_written
from sketchshift.errors import DataError

__all__ = ["Key", "columns_of", "numbered", "parse", "plain", "taken", "written"]

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")


@dataclass(frozen=True)
class Key:
    """A column of the key: its name, the column of the data, and the unit it is cut down to."""

    name: str
    column: str
    unit: str | None = None


def parse(by: Any) -> list[Key]:
    """The columns that ``by`` names; none where it holds labels.

    Parameters
    ----------
    by : str, sequence of str or array
        A name, or ``unit(name)`` for a column of times, which makes a key named after the unit.

    Returns
    -------
    keys : list of Key
        In the order given, with different names.
    """
    names = [by] if isinstance(by, str) else by
    if not (isinstance(names, Sequence) and all(isinstance(name, str) for name in names)):
        return []
    keys = []
    for name in names:
        found = re.fullmatch(rf"({'|'.join(UNITS)})\((.+)\)", name)
        keys.append(Key(found[1], found[2], found[1]) if found else Key(name, name))
    if not keys or len({key.name for key in keys}) < len(keys):
        msg = f"by must name one or more columns, each once. Got {list(names)} instead."
        raise DataError(msg)
    return keys


def columns_of(keys: Sequence[Key]) -> list[str]:
    """The columns of the data that keys are made of, each once."""
    return list(dict.fromkeys(key.column for key in keys))


def taken(columns: Any, keys: Sequence[Key]) -> dict[str, Any]:
    """The keys of some rows by name, from the columns of the data or from labels."""
    if not keys:
        return {name: plain(columns.column(name)) for name in columns.schema.names}
    return {key.name: _cut(plain(columns.column(key.column)), key) for key in keys}


def written(columns: Any, keys: Sequence[Key]) -> set[str]:
    """Names of those keys that come as a text file writes them: text, or numbers."""
    schema = columns.schema
    return {key.name for key in keys if is_as_written(schema.field(key.column))}


def numbered(column: Any) -> Any:
    """Texts as whole numbers, if all are written as Arrow would write the numbers."""
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    is_same = column.null_count < len(column) and numbers.cast(pa.string()).equals(column)
    return numbers if is_same else column


def plain(column: Any) -> Any:
    """One array, in which equal keys look equal: no dictionaries, one missing value."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind):
        column = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_nested(kind):
        raise DataError(f"a key cannot hold {kind}. Take a column of texts, numbers or dates.")
    return column


def _cut(column: Any, key: Key) -> Any:
    """Times cut down to a unit: dates, or times where the unit is shorter than a day."""
    if key.unit is None:
        return column
    if not pa.types.is_timestamp(column.type) and not pa.types.is_date(column.type):
        msg = (
            f"{key.unit}({key.column}) needs a column of dates or times, and {key.column!r} holds "
            f"{column.type}. Convert it first, or take the column as it is."
        )
        raise DataError(msg)
    cut = pc.floor_temporal(column, unit=key.unit)
    return cut if key.unit in ("hour", "minute") else _as_date(cut)


def _as_date(times: Any) -> Any:
    if pa.types.is_timestamp(times.type) and times.type.tz is not None:
        times = pc.local_timestamp(times)
    return times.cast(pa.date32())
