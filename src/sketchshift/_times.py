"""Times as people write them, and the parts of a time that come round again.

A column of texts has one form: 2026-01-05, 05.01.2026 or 1/5/2026, each with or without a time of
day. The form is found from a sample and then holds for every cell. pyarrow is imported
on first use.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

import numpy as np

from sketchshift._typing import BoolArray, IntArray
from sketchshift.errors import DataError

__all__ = [
    "PERIODS",
    "WEEKDAYS",
    "as_times",
    "describe_keys",
    "find_form",
    "is_day_first",
    "is_time_column",
    "name_of",
    "part_of",
    "split_times",
    "tell_order",
]

PERIODS = {"hour": 24, "weekday": 7, "month": 12, "day_of_year": 366}
"""Parts of a time that come round again, and after how many steps."""

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
EPOCHS = ("s", "ms", "us", "ns")
MISSING = (
    "",
    "-",
    "--",
    "?",
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "NaT",
    "NULL",
    "null",
    "None",
    "none",
)

CELLS_TRIED, HOUR_US, DAY_US = 100, 3_600_000_000, 86_400_000_000
CLOCK = (
    r"(?:[ T]+(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r" ?(?P<half>[AaPp]\.?[Mm]\.?)? ?(?P<offset>Z|z|UTC|GMT|[-+][0-9]{2}:?[0-9]{2}|[-+][0-9]{2})?)?"
)
YEAR, NUMBER = "(?P<year>[0-9]{4})", "[0-9]{1,2}"
FORMS = {
    "year first": rf"{YEAR}[-/.](?P<month>{NUMBER})[-/.](?P<day>{NUMBER})",
    "numbers": (
        rf"(?P<first>{NUMBER})(?P<sign>[-/.])(?P<then>{NUMBER})[-/.](?P<year>[0-9]{{4}}|[0-9]{{2}})"
    ),
    "digits": "(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})",
}
"""Forms of a date; the last one, 20260105, is read where times are asked for, and never guessed."""


def as_times(
    column: Any,
    zone: str | None = None,
    day_first: bool | None = None,
    *,
    is_part: bool = False,
    epoch: str | None = None,
) -> Any:
    """A column of dates, times or texts as times.

    Parameters
    ----------
    column : Arrow array or chunked array of n dates, timestamps, times of day or texts
        Texts are dates in numbers, the year first or last, with or without a time of day, seconds,
        AM or PM, and an offset from UTC. Empty texts and words such as NA are missing. Fractions
        of seconds count down to microseconds. Times of day stay such: they have an hour alone.
    zone : str, optional
        In which the result is, such as "Europe/Paris". Times without an offset are then taken as
        UTC: if they were taken as times of that zone, naming it would change nothing.
    day_first : bool, optional
        Whether 5/1/2026 is the fifth of January. Default: it is if the first number of some cell
        is above 12. If no cell tells, the day is first before ``.`` and the month before ``/`` and
        ``-``, as :func:`tell_order` says.
    is_part : bool
        Whether the column is a block of a longer one. Then only the sign decides on the order: two
        blocks must not be read in two ways.
    epoch : {"s", "ms", "us", "ns"}, optional
        The column holds numbers that count these from 1970 on, in UTC; or texts of such numbers.

    Returns
    -------
    times : Arrow array of n timestamps
        With a zone if one was given, or if the column has one; UTC where texts have offsets.

    Raises
    ------
    DataError
        Names the first cell that is not written as the others are. O(n) time.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sketchshift._times import as_times
    >>> as_times(pa.array(["31/1/2026 1:45 PM", None]))[0].as_py()
    datetime.datetime(2026, 1, 31, 13, 45)
    """
    import pyarrow as pa

    column = _plain(column)
    kind = column.type
    if epoch is not None:
        times = _from_epoch(column, epoch)
    elif pa.types.is_timestamp(kind):
        times = column
    elif pa.types.is_date(kind):
        times = column.cast(pa.timestamp("s" if pa.types.is_date32(kind) else "ms"))
    elif pa.types.is_time(kind):
        return column
    elif pa.types.is_string(kind):
        times = _parse(column, day_first, is_part=is_part)
    elif pa.types.is_null(kind):
        times = column.cast(pa.timestamp("us"))
    else:
        hint = " If these count from 1970 on, say in which unit." if _is_number(kind) else ""
        raise DataError(f"a column of {kind} holds no dates or times.{hint}")
    return times if zone is None else _move(times, zone)


def is_time_column(column: Any) -> bool:
    """Whether a column holds dates or times, or texts whose first cells are such.

    Parameters
    ----------
    column : Arrow array or chunked array
        Of any type; numbers never count. Up to 100 cells are looked at.
    """
    import pyarrow as pa

    column = _plain(column)
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return True
    if not pa.types.is_string(column.type):
        return False
    cells = _filled(column)[:CELLS_TRIED]
    form = find_form(cells)
    if form is None or form == "digits":
        return False
    try:
        _parse(cells, None, is_part=False)
    except DataError:
        return False
    return True


def find_form(column: Any) -> str | None:
    """The form of a date that most of the first cells of a text column have; None if it has none.

    Parameters
    ----------
    column : Arrow array or chunked array of texts
        Up to 100 cells are looked at.
    """
    sample = _filled(_plain(column))[:CELLS_TRIED]
    strangers = {form: _match(sample, form).null_count for form in FORMS}
    best = min(strangers, key=lambda form: strangers[form])
    return best if 2 * strangers[best] < len(sample) else None


def split_times(column: Any) -> tuple[Any, Any]:
    """Texts that are dates or times apart from other texts, each read by itself.

    So what a cell is does not depend on those that happen to stand beside it.

    Parameters
    ----------
    column : Arrow array or chunked array of n texts
        Of any forms that :func:`as_times` reads. The day is first before ``.``, and the month
        before ``/`` and ``-``.

    Returns
    -------
    times : Arrow array of n timestamps
        In UTC, as times without an offset are taken. Null where a cell is no date.
    others : Arrow array of n texts
        The cells that are none. Null where a cell is a date, or missing.

    Raises
    ------
    DataError
        Names a cell that has the form of a date, and is none: 13/1/2026. O(n) time.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _plain(column)
    cells = _trim(column)
    stamps, is_time = np.zeros(len(cells), np.int64), np.zeros(len(cells), bool)
    for form in FORMS:
        parts = _match(cells, form)
        own, is_wrong, _ = _stamps(parts, form, _have_points(parts, form))
        fits = ~_nulls(parts)
        if form != "digits" and (fits & is_wrong).any():
            raise _no_time(column, int(np.argmax(fits & is_wrong)))
        is_new = fits & ~is_wrong & ~is_time
        stamps[is_new] = own[is_new]
        is_time |= is_new
    times = pa.array(stamps, pa.timestamp("us"), mask=~is_time)
    others = pc.if_else(pa.array(is_time | _nulls(cells)), None, column)
    return pc.assume_timezone(times, "UTC"), others


def tell_order(column: Any) -> str:
    """One sentence on which number of a date is taken for the day; "" where that is certain.

    Parameters
    ----------
    column : Arrow array or chunked array
        As :func:`as_times` takes it.
    """
    column = _plain(column)
    if is_day_first(column) is None:
        return ""
    order, is_certain = _find_order(_match(_filled(column), "numbers"))
    if is_certain:
        return ""
    first, other = ("day", "month") if order else ("month", "day")
    return (
        f"Dates such as {_filled(column)[0].as_py()} are read with the {first} before the {other}."
    )


def is_day_first(column: Any) -> bool | None:
    """Whether texts such as 5/1/2026 have the day first; None for others, where that is plain."""
    import pyarrow as pa

    column = _plain(column)
    if not pa.types.is_string(column.type) or find_form(column) != "numbers":
        return None
    return _find_order(_match(_filled(column), "numbers"))[0]


def part_of(times: Any, unit: str) -> Any:
    """A part of each time that comes round again.

    Parameters
    ----------
    times : Arrow array of n dates, timestamps or times of day
        Those with a zone are taken as clocks show them there. Times of day have an hour alone.
    unit : {"hour", "weekday", "month", "day_of_year"}
        Which part.

    Returns
    -------
    numbers : Arrow array of n int64
        Hours 0 to 23, weekdays 0 (Monday) to 6, months 1 to 12, days of the year 1 to 366.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_time(times.type):
        if unit != "hour":
            raise DataError(f"times of day have no {unit.replace('_', ' ')}. Take their hour.")
        return pc.divide(times.cast(pa.time64("us"), safe=False).cast(pa.int64()), HOUR_US)
    if pa.types.is_date(times.type):
        times = times.cast(pa.timestamp("ms"))
    parts = {
        "hour": pc.hour,
        "weekday": pc.day_of_week,
        "month": pc.month,
        "day_of_year": pc.day_of_year,
    }
    return parts[unit](times)


def name_of(unit: str, number: int) -> str:
    """A part of a time in words: ``"Monday"``, ``"January"``, ``"13:00"``, ``"day 60"``."""
    if unit == "weekday":
        return WEEKDAYS[number]
    if unit == "month":
        return MONTHS[number - 1]
    return f"{number:02d}:00" if unit == "hour" else f"day {number}"


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _plain(column: Any) -> Any:
    """One array, of short texts where it holds texts."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column


def _trim(column: Any) -> Any:
    """The cells without blanks around them; null where they hold nothing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(cells, pa.array(MISSING)), pa.scalar(None, pa.string()), cells)


def _filled(column: Any) -> Any:
    return _trim(column).drop_null()


def _match(cells: Any, form: str) -> Any:
    """The parts of the cells, as texts; null where a cell has another form."""
    import pyarrow.compute as pc

    return pc.extract_regex(cells, f"^{FORMS[form]}{CLOCK}$")


def _find_order(parts: Any) -> tuple[bool, bool]:
    """Whether the day comes first, and whether some cell shows it."""
    parts = parts.drop_null()
    first, then = (_numbers(parts, name) for name in ("first", "then"))
    if (first > 12).any() or (then > 12).any():
        return bool((first > 12).any()), True
    return _goes_by_sign(parts), False


def _goes_by_sign(parts: Any) -> bool:
    """Whether the day comes first, as it does where points stand between the numbers."""
    import pyarrow.compute as pc

    return bool(pc.all(pc.equal(pc.struct_field(parts, "sign"), ".")).as_py())


def _have_points(parts: Any, form: str) -> bool | BoolArray:
    """Which cells have points between their numbers."""
    import pyarrow.compute as pc

    if form != "numbers":
        return False
    found: BoolArray = pc.equal(_texts(parts, "sign"), ".").to_numpy(zero_copy_only=False)
    return found


def _parse(column: Any, day_first: bool | None, *, is_part: bool) -> Any:
    """Texts as timestamps; the first that is none is named."""
    import pyarrow as pa

    cells = _trim(column)
    form = find_form(cells)
    parts = _match(cells, form or "year first")
    if form == "numbers" and day_first is None:
        day_first = _goes_by_sign(parts) if is_part else _find_order(parts)[0]
    stamps, is_wrong, has_offset = _stamps(parts, form, bool(day_first))
    is_missing = _nulls(cells)
    wrong = np.flatnonzero((is_wrong | _nulls(parts)) & ~is_missing)
    if len(wrong):
        row = int(wrong[0])
        raise _no_time(column, row, "" if is_part else f" (row {row}, counted from 0)")
    times = pa.array(stamps, pa.int64(), mask=is_missing)
    return times.cast(pa.timestamp("us", "UTC" if has_offset else None))


def _no_time(column: Any, row: int, where: str = "") -> DataError:
    return DataError(
        f"{column[row].as_py()!r}{where} cannot be read as a date or time. Write all "
        "cells as in '2026-01-05 13:45', or leave this one empty."
    )


def _stamps(
    parts: Any, form: str | None, day_first: bool | BoolArray
) -> tuple[IntArray, BoolArray, bool]:
    """Microseconds since 1970, which cells name no time, and whether cells have offsets."""
    days, is_wrong = _days(parts, form, day_first)
    seconds, beyond, has_offset = _clock(parts)
    return days * DAY_US + seconds, is_wrong | beyond, has_offset


def _nulls(column: Any) -> BoolArray:
    found: BoolArray = column.is_null().to_numpy(zero_copy_only=False)
    return found


def _numbers(parts: Any, name: str) -> IntArray:
    """A part of all cells as whole numbers; 0 where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if parts.type.get_field_index(name) < 0:
        return np.zeros(len(parts), dtype=np.int64)
    texts = pc.fill_null(pc.struct_field(parts, name), "")
    texts = pc.if_else(pc.equal(texts, ""), "0", texts)
    numbers: IntArray = texts.cast(pa.int64()).to_numpy()
    return numbers


def _texts(parts: Any, name: str) -> Any:
    import pyarrow.compute as pc

    return pc.fill_null(pc.struct_field(parts, name), "")


def _days(parts: Any, form: str | None, day_first: bool | BoolArray) -> tuple[IntArray, BoolArray]:
    """Days since 1970, and which cells name a day that does not exist."""
    year, day = _numbers(parts, "year"), _numbers(parts, "day")
    if form == "numbers":
        first, then = _numbers(parts, "first"), _numbers(parts, "then")
        day, month = np.where(day_first, (first, then), (then, first))
        year = np.where(year < 69, year + 2000, np.where(year < 100, year + 1900, year))
    else:
        month = _numbers(parts, "month")
    is_wrong = (month < 1) | (month > 12) | (year < 1)
    months = (year - 1970) * 12 + np.where(is_wrong, 1, month) - 1
    start = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    end = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return start + day - 1, is_wrong | (day < 1) | (day > end - start)


def _clock(parts: Any) -> tuple[IntArray, BoolArray, bool]:
    """Microseconds since midnight UTC, which of them are wrong, and whether cells have offsets."""
    import pyarrow.compute as pc

    hour, minute, second = (_numbers(parts, name) for name in ("hour", "minute", "second"))
    half = pc.utf8_lower(pc.utf8_slice_codeunits(_texts(parts, "half"), 0, 1))
    is_12 = ~pc.equal(half, "").to_numpy(zero_copy_only=False)
    is_pm = pc.equal(half, "p").to_numpy(zero_copy_only=False)
    is_wrong = (hour > 23) | (minute > 59) | (second > 59) | (is_12 & ((hour < 1) | (hour > 12)))
    hour = np.where(is_12, hour % 12 + 12 * is_pm, hour)
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(_texts(parts, "fraction"), 6, "0"), 0, 6)
    micro = np.asarray(fraction.to_numpy(zero_copy_only=False), dtype=np.int64)
    offset = _texts(parts, "offset")
    has_offset = ~pc.equal(offset, "").to_numpy(zero_copy_only=False)
    digits = pc.replace_substring_regex(offset, "[^0-9]", "")
    digits = pc.utf8_rpad(digits, 4, "0").to_numpy(zero_copy_only=False).astype(np.int64)
    sign = np.where(pc.starts_with(offset, "-").to_numpy(zero_copy_only=False), -1, 1)
    minutes = hour * 60 + minute - sign * (digits // 100 * 60 + digits % 100)
    return (minutes * 60 + second) * 1_000_000 + micro, is_wrong, bool(has_offset.any())


def _from_epoch(column: Any, unit: str) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if unit not in EPOCHS:
        raise DataError(f"times count from 1970 on in {', '.join(EPOCHS)}. Got {unit!r} instead.")
    try:
        numbers = column.cast(pa.float64()) if pa.types.is_string(column.type) else column
        whole = pc.floor(numbers).cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        msg = (
            f"a column of {column.type} cannot be read as numbers that count from 1970 on: {cause}"
        )
        raise DataError(msg) from cause
    return whole.cast(pa.timestamp(unit, "UTC"))


def _move(times: Any, zone: str) -> Any:
    """The times in a zone; those without one are UTC."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.timestamp(times.type.unit, zone)
    try:
        pc.hour(pa.array([0], kind))  # looks the zone up
        utc = times if times.type.tz is not None else pc.assume_timezone(times, "UTC")
        return utc.cast(kind)
    except pa.ArrowException as cause:
        msg = f"{zone!r} is not the name of a time zone. Write it as in 'Europe/Paris' or 'UTC'."
        raise DataError(msg) from cause


# Keys of slices in words.


def describe_keys(column: str, keys: Iterable[Any]) -> list[str]:
    """Values of a column of the key for a person: months as ``"Jan 2013"``, days as days.

    Parameters
    ----------
    column : str
        Its name: keys cut down to a unit of time are named after it.
    keys : iterable
        Python's values. Text is left as it is.
    """
    return [_describe_key(column, key) for key in keys]


def _describe_key(unit: str, key: Any) -> str:
    if key is None:
        return "(missing)"
    if unit == "month_of_year" and key in range(1, 13):
        return MONTHS[key - 1][:3]
    if not isinstance(key, datetime.date):
        return str(key)
    month = f"{MONTHS[key.month - 1][:3]} {key.year}"
    if unit == "year":
        return str(key.year)
    if unit == "quarter":
        return f"Q{(key.month + 2) // 3} {key.year}"
    if unit == "month":
        return month
    day = f"{key.day} {month}"
    if unit == "week":
        return f"week of {day}"
    if not isinstance(key, datetime.datetime) or (unit == "day" and not key.hour):
        return day
    return f"{day}, {key.timetz()}"  # with its zone: an hour may come twice
