"""Keys in one form, whichever library or file they come from.

A key is a column, a time cut down to its day, month or another unit (``"day(date)"``), or a part of
a time that comes round again (``"weekday(date)"``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sketchshift._times import WEEKDAYS, as_times, find_form, part_of
from sketchshift._typing import IntArray
from sketchshift.data.source import is_as_written
from sketchshift.errors import DataError, IncompatibleSketchesError

__all__ = [
    "Key",
    "KeyNumbers",
    "as_type",
    "encode_keys",
    "find_number_keys",
    "in_calendar_order",
    "normalise_column",
    "normalise_keys",
    "number_groups",
    "number_rows",
    "parse",
    "parse_numbers",
    "read_keys",
    "refuse_kind",
    "stack_keys",
    "to_stream",
]

RESERVED = {"count", "plan", "sketch", "__row__"}
"""Names of columns that tables of sketches have besides their keys."""

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
PARTS = {"hour_of_day": "hour", "weekday": "weekday", "month_of_year": "month"}
"""Parts of a time that come round again. Hours and months are numbers, for everybody counts them
alike; days of the week are names, for some begin with Sunday and some with 0."""

ORDERS = {"day first": True, "month first": False}
BINARIES = (pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
EPOCHS = {"epoch seconds": "s", "epoch milliseconds": "ms"}


@dataclass(frozen=True)
class Key:
    """A column of the key.

    Parameters
    ----------
    name, column : str
        Of the key, and of the column of the data that it is made of.
    unit : str, optional
        What a time is cut down to, or which part of it is taken.
    zone : str, optional
        Where days begin. Default: in the zone of the column, if it has one.
    day_first : bool, optional
        Whether 5/1/2026 is the fifth of January. Default: 5.1.2026 is, 5/1/2026 is not.
    epoch : str, optional
        The unit of numbers that count from 1970 on.
    """

    name: str
    column: str
    unit: str | None = None
    zone: str | None = None
    day_first: bool | None = None
    epoch: str | None = None


def parse(by: Any) -> list[Key]:
    """The columns that ``by`` names; none where it holds labels.

    Parameters
    ----------
    by : str, sequence of str or array
        A name, or ``unit(name)`` for a column of times, which makes a key named after the unit.
        Behind the name may stand, in quotes, a time zone, ``'day first'`` or ``'month first'`` for
        dates such as 5/1/2026, and ``'epoch seconds'`` or ``'epoch milliseconds'`` for numbers:
        ``"day(time, 'Europe/Paris')"``.

    Returns
    -------
    keys : list of Key
        In the order given, with different names.
    """
    names = [by] if isinstance(by, str) else by
    if not (isinstance(names, Sequence) and all(isinstance(name, str) for name in names)):
        return []
    own = RESERVED.intersection(names)
    if own:
        msg = f"a key cannot be named {min(own)!r}, as the table has such a column. Rename it."
        raise DataError(msg)
    keys = [_parse_one(name) for name in names]
    if not keys or len({key.name for key in keys}) < len(keys):
        msg = f"by must name one or more columns, each once. Got {list(names)} instead."
        raise DataError(msg)
    return keys


def _parse_one(name: str) -> Key:
    units = "|".join((*UNITS, *PARTS))
    found = re.fullmatch(rf"({units})\((.+?)((?:\s*,\s*(?:'[^']*'|\"[^\"]*\"))*)\s*\)", name)
    if found is None:
        return Key(name, name)
    key = Key(found[1], found[2].strip(), found[1])
    for word in re.findall(r"['\"]([^'\"]*)['\"]", found[3]):
        if word in ORDERS:
            key = replace(key, day_first=ORDERS[word])
        elif word in EPOCHS:
            key = replace(key, epoch=EPOCHS[word])
        else:
            as_times(pa.nulls(0), word)  # raises if there is no such zone
            key = replace(key, zone=word)
    return key


def read_keys(columns: Any, keys: Sequence[Key]) -> dict[str, Any]:
    """The keys of some rows by name, from the columns of the data or from labels."""
    if not keys:
        return {name: normalise_column(columns.column(name)) for name in columns.schema.names}
    return {key.name: _cut(normalise_column(columns.column(key.column)), key) for key in keys}


def find_number_keys(columns: Any, keys: Sequence[Key]) -> set[str]:
    """Names of the keys that may be whole numbers: integers, and texts of a text file."""
    fields = {key.name: columns.schema.field(key.column) for key in keys if key.unit is None}
    return {
        name
        for name, field in fields.items()
        if is_as_written(field) or pa.types.is_integer(field.type)
    }


def parse_numbers(column: Any) -> Any:
    """Texts as whole numbers, if all are written as Arrow would write the numbers."""
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    is_same = column.null_count < len(column) and numbers.cast(pa.string()).equals(column)
    return numbers if is_same else column


def normalise_column(column: Any) -> Any:
    """The column as one array of a common type, so that equal keys are equal values.

    Dictionaries are decoded, widths widened; NaN is missing, and -0.0 is 0.0.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_dictionary(kind):
        return normalise_column(column.cast(kind.value_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if any(is_binary(kind) for is_binary in BINARIES):
        return column.cast(pa.binary())
    if pa.types.is_integer(kind):
        return _as_whole_numbers(column)
    if pa.types.is_floating(kind):
        column = pc.add(column.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0
        return pc.if_else(pc.is_nan(column), None, column)
    refuse_kind(kind)
    same = STORED.get(kind) or (pa.timestamp("ms", kind.tz) if _in_seconds(kind) else kind)
    return column if same == kind else column.cast(same)


STORED = {pa.time32("s"): pa.time32("ms"), pa.date64(): pa.date32()}
"""Types that Parquet files do not hold, and those that they hold instead."""


def _in_seconds(kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "s")


def refuse_kind(kind: Any) -> None:
    """Refuse an Arrow type whose values are no keys."""
    has_no_order = pa.types.is_nested(kind) or pa.types.is_interval(kind)
    if has_no_order or isinstance(kind, pa.BaseExtensionType):
        raise DataError(f"a key cannot hold {kind}. Take a column of texts, numbers or dates.")


def normalise_keys(table: Any) -> Any:
    """All columns of an Arrow table as :func:`normalise_column` makes them."""
    return pa.table({name: normalise_column(table.column(name)) for name in table.column_names})


def encode_keys(keys: Any) -> dict[str, Any]:
    """Columns as dictionaries, in which a missing value is one, too, with narrow numbers."""
    found = {}
    for name, column in zip(keys.column_names, keys.columns, strict=True):
        own = column.combine_chunks()
        if not pa.types.is_dictionary(own.type):
            wide = own.dictionary_encode("encode")
            kind = pa.from_numpy_dtype(np.min_scalar_type(-len(wide.dictionary)))
            own = pa.DictionaryArray.from_arrays(wide.indices.cast(kind), wide.dictionary)
        found[name] = own
    return found


def to_stream(table: Any, compression: str | None = None) -> bytes:
    """A table as an Arrow stream."""
    options = pa.ipc.IpcWriteOptions(compression=compression)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write(table)
    return bytes(sink.getvalue())


def number_rows(columns: Sequence[Any]) -> tuple[IntArray, IntArray]:
    """Number the values of keys.

    Parameters
    ----------
    columns : sequence of Arrow arrays of n values
        At least one.

    Returns
    -------
    numbers : int array of shape (n,)
        The same for rows with equal values, from 0 on.
    first : int array
        The first row of each number.
    """
    numbers = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:  # one after the other: products of many sizes would overflow
        encoded = column.dictionary_encode("encode")
        codes = encoded.indices.to_numpy().astype(np.int64)
        if column is not columns[0]:
            pairs = pa.array(numbers * len(encoded.dictionary) + codes)
            codes = pairs.dictionary_encode().indices.to_numpy().astype(np.int64)
        numbers = codes
    # numbers go up in the order of the rows: a row with a new one is the first that has it
    return numbers, np.flatnonzero(np.diff(np.maximum.accumulate(numbers), prepend=-1))


class KeyNumbers:
    """Numbers the keys of all blocks of a pass, in the order in which they come."""

    def __init__(self) -> None:
        self._typed: dict[tuple[Any, ...], tuple[IntArray, list[Any]]] = {}
        self.n = 0

    def number(self, columns: Sequence[Any]) -> IntArray:
        """Return the number of each row.

        Parameters
        ----------
        columns : sequence of Arrow arrays of n values
            As :func:`normalise_column` makes them; their types may be others in each block.
        """
        types = tuple(column.type for column in columns)
        none = np.zeros(0, dtype=np.int64), [column.slice(0, 0) for column in columns]
        numbers, known = self._typed.get(types, none)
        joined = [pa.concat_arrays(pair) for pair in zip(known, columns, strict=True)]
        codes, first = number_rows(joined)  # those known come first, and are all different
        codes, n_new = codes[len(numbers) :], len(first) - len(numbers)
        if n_new or types not in self._typed:
            numbers = np.append(numbers, np.arange(self.n, self.n + n_new))
            self._typed[types] = numbers, [column.take(pa.array(first)) for column in joined]
            self.n += n_new
        return numbers[codes]

    def last(self) -> str:
        """The newest key."""
        _, columns = max(self._typed.values(), key=lambda typed: int(typed[0].max(initial=-1)))
        return ", ".join(str(column[len(column) - 1]) for column in columns)

    def columns(self) -> list[tuple[IntArray, list[Any]]]:
        """The keys so far: of each combination of types the numbers, and the columns."""
        return list(self._typed.values())


def number_groups(keys: Any) -> tuple[Any, IntArray]:
    """The different keys of a table in ascending order, missing ones last.

    Parameters
    ----------
    keys : Arrow table of n rows
        As :func:`normalise_keys` makes it.

    Returns
    -------
    groups : Arrow table
        The different keys. Days of the week follow each other as in the calendar.
    numbers : int array of shape (n,)
        Which of them each row has.
    """
    if not keys.num_rows:
        return keys, np.zeros(0, dtype=np.int64)
    numbers, first = number_rows([column.combine_chunks() for column in keys.columns])
    groups = keys.take(pa.array(first))
    names = [str(i) for i in range(keys.num_columns)]  # Arrow takes ".a" and "[0]" for paths
    places = [in_calendar_order(column.combine_chunks()) for column in groups.columns]
    order = pc.sort_indices(
        pa.table(dict(zip(names, places, strict=True))),
        sort_keys=[(name, "ascending") for name in names],
    )
    ranks = np.empty(len(first), dtype=np.int64)
    ranks[order.to_numpy()] = np.arange(len(first))
    return groups.take(order).combine_chunks(), ranks[numbers]


def stack_keys(above: Any, below: Any) -> Any:
    """The keys of two tables, the second below the first, in types that hold both exactly.

    Parameters
    ----------
    above, below : Arrow tables
        With the same names of columns.

    Returns
    -------
    keys : Arrow table
        Its types do not depend on the order of the two. Widths and units may differ, and a
        column without a value takes any type; other differences are refused.
    """
    columns = {}
    for name in above.column_names:
        pair = normalise_column(above.column(name)), normalise_column(below.column(name))
        try:
            kind = _common_type(*pair)
            columns[name] = pa.chunked_array([as_type(column, kind) for column in pair])
        except pa.ArrowException as cause:
            msg = (
                f"cannot add tables whose key {name!r} holds {pair[0].type} in one and "
                f"{pair[1].type} in the other: no type holds the values of both exactly. Convert "
                "the column to one type before sketching."
            )
            raise IncompatibleSketchesError(msg) from cause
    return pa.table(columns)


def _common_type(left: Any, right: Any) -> Any:
    kinds = {column.type for column in (left, right) if not _is_void(column)}
    if not kinds:  # any type will do, but the same in any order
        return min(left.type, right.type, key=lambda kind: (pa.types.is_null(kind), str(kind)))
    if len(kinds) > 1 and not any(all(map(is_alike, kinds)) for is_alike in FAMILIES):
        raise pa.ArrowTypeError("unlike types")
    schemas = [pa.schema({"key": kind}) for kind in kinds]
    return pa.unify_schemas(schemas, promote_options="permissive").field("key").type


def as_type(column: Any, kind: Any) -> Any:
    """A column in a type that holds it exactly; any type holds one without a value."""
    return pa.nulls(len(column), kind) if _is_void(column) else column.cast(kind)


def _is_void(column: Any) -> bool:
    return bool(column.null_count == len(column))


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


FAMILIES = (
    _is_number,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_timestamp,
    pa.types.is_duration,
)
"""Families of types in which a wider type may hold a narrower one; inexact casts are errors."""


def _as_whole_numbers(column: Any) -> Any:
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as cause:
        msg = (
            f"a key of type {column.type} holds whole numbers beyond 2**63 - 1, the largest here. "
            "Convert the column to text."
        )
        raise DataError(msg) from cause


def _cut(column: Any, key: Key) -> Any:
    """Times cut down to a unit: dates, or times where the unit is shorter than a day."""
    if key.unit is None:
        return column
    times = _times_of(column, key)
    if key.unit in PARTS:
        numbers = part_of(times, PARTS[key.unit])
        return pa.array(WEEKDAYS).take(numbers) if key.unit == "weekday" else numbers
    has_zone = times.type.tz is not None
    cut = pc.floor_temporal(pc.local_timestamp(times) if has_zone else times, unit=key.unit)
    if key.unit not in ("hour", "minute"):
        return cut.cast(pa.date32())
    return _in_zone(cut, times) if has_zone else cut


def _times_of(column: Any, key: Key) -> Any:
    kind = column.type
    can_be = [pa.types.is_timestamp, pa.types.is_date, pa.types.is_string, pa.types.is_null]
    can_be += [pa.types.is_time] if key.unit == "hour_of_day" else []
    if key.epoch is None and not any(is_so(kind) for is_so in can_be):
        counts = ", 'epoch seconds'" if pa.types.is_integer(kind) else ""
        hint = f" If it counts from 1970 on: {key.unit}({key.column}{counts})." if counts else ""
        msg = (
            f"{key.unit}({key.column}) needs a column of dates or times, and {key.column!r} holds "
            f"{kind}. Convert it first, or take the column as it is.{hint}"
        )
        raise DataError(msg)
    try:
        return as_times(column, key.zone, key.day_first, is_part=True, epoch=key.epoch)
    except DataError as cause:
        is_open = key.day_first is None and find_form(column) == "numbers"
        order = f"{key.unit}({key.column}, 'day first')"
        hint = f" If the day comes first, say so: {order}." if is_open else ""
        raise DataError(f"{key.unit}({key.column}): {cause}{hint}") from cause


def in_calendar_order(column: Any) -> Any:
    """What to sort a column of keys by: days of the week by their place in it."""
    if not pa.types.is_string(column.type) or _is_void(column):
        return column
    places = pc.index_in(column, pa.array(WEEKDAYS))
    return places if places.null_count == column.null_count else column


def _in_zone(cut: Any, times: Any) -> Any:
    """Local times as the last instants with that name up to the times that they were cut from.

    Where clocks are set back, an hour comes twice, and each of the two is a slice. One that
    begins while clocks are set forward begins when that is done.
    """
    first, last = (
        pc.assume_timezone(cut, times.type.tz, ambiguous=which, nonexistent="latest")
        for which in ("earliest", "latest")
    )
    return pc.if_else(pc.less_equal(last, times), last, first)
