"""Times are cut in their zone: the oracle is Python's own calendar, with zoneinfo."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sketchshift as ss
from sketchshift.errors import DataError
from sketchshift.sketch.keys import parse, read_keys

SPEC = ss.SketchSpec(n_features=1, sketch_size=10, bandwidth=1.0, columns=["x"])
YEARS = {
    "Europe/Berlin": 2024,
    "America/New_York": 2024,
    "America/Sao_Paulo": 2018,  # midnight of 4 November is skipped
    "America/Havana": 2024,  # midnight of 3 November comes twice
    "Asia/Kathmandu": 2024,  # +05:45
    "Australia/Lord_Howe": 2024,  # clocks are set by half an hour
    "Asia/Tehran": 2011,
    "UTC": 2024,
}
DATES: dict[str, Callable[[dt.datetime], dt.date]] = {
    "year": lambda t: dt.date(t.year, 1, 1),
    "quarter": lambda t: dt.date(t.year, (t.month - 1) // 3 * 3 + 1, 1),
    "month": lambda t: dt.date(t.year, t.month, 1),
    "week": lambda t: t.date() - dt.timedelta(days=t.weekday()),
    "day": lambda t: t.date(),
}
TIMES: dict[str, Callable[[dt.datetime], dt.datetime]] = {  # Python keeps which of two it is
    "hour": lambda t: t.replace(minute=0, second=0),
    "minute": lambda t: t.replace(second=0),
}


def year_of(zone: str) -> tuple[pa.Array, list[dt.datetime]]:
    """A year in steps of 20 minutes, as Arrow and as Python have it, and a missing time."""
    start = int(dt.datetime(YEARS[zone], 1, 1, 0, 0, 13, tzinfo=dt.UTC).timestamp())
    seconds = range(start, start + 366 * 86_400, 1200)
    column = pa.array([*seconds, None], pa.int64()).cast(pa.timestamp("s", zone))
    return column, [dt.datetime.fromtimestamp(second, ZoneInfo(zone)) for second in seconds]


def cut(column: Any, unit: str) -> Any:
    return read_keys(pa.table({"t": column}), parse(f"{unit}(t)"))[unit]


@pytest.mark.parametrize("zone", YEARS)
def test_every_unit_is_cut_in_its_zone_as_python_does(zone: str) -> None:
    column, times = year_of(zone)

    for unit, first_day in DATES.items():
        assert cut(column, unit).equals(pa.array([*map(first_day, times), None], pa.date32()))
    for unit, start in TIMES.items():
        starts = [1000 * int(start(time).timestamp()) for time in times]
        expected = pa.array([*starts, None], pa.int64()).cast(pa.timestamp("ms", column.type.tz))
        assert cut(column, unit).equals(expected)


def test_an_hour_that_comes_twice_makes_two_slices() -> None:
    times = pd.date_range("2024-10-27 00:00", periods=6, freq="30min", tz="UTC")
    frame = pd.DataFrame({"t": times.tz_convert("Europe/Berlin"), "x": np.arange(6.0)})

    table = ss.sketch_by(frame, "hour(t)", SPEC)

    starts = [str(key) for key, _ in table]
    nights = ["02:00:00+02:00", "02:00:00+01:00", "03:00:00+01:00"]
    assert starts == [f"2024-10-27 {night}" for night in nights]
    assert table.counts.tolist() == [2, 2, 2]
    assert table.where("hour = '2024-10-27 02:00+01:00'").merge() == table.sketches[1]
    with pytest.raises(DataError, match=r"clocks show it twice, '2026-10-25 02:00\+01:00'"):
        table.where("hour = '2024-10-27 02:00'")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            pa.array([1, 2**63], pa.uint64()),
            r"uint64 holds whole numbers beyond 2\*\*63 - 1.*to text",
        ),
        (pa.array([b"a" * 16] * 2, pa.uuid()), r"a key cannot hold extension<arrow.uuid>"),
        (pa.array([[1], [2]]), "a key cannot hold list"),
    ],
)
def test_keys_that_no_table_holds_are_refused(keys: pa.Array, words: str) -> None:
    with pytest.raises(DataError, match=words):
        ss.sketch_by(pa.table({"key": keys, "x": [0.0, 1.0]}), "key", SPEC)


def test_small_whole_numbers_are_signed() -> None:
    keys = pa.array([1], pa.uint64())
    few = ss.sketch_by(pa.table({"key": keys, "x": [0.0]}), "key", SPEC)

    assert few.keys.schema.types == [pa.int64()]


def test_zeros_of_both_signs_are_one_key() -> None:
    table = ss.sketch_by(pa.table({"key": [0.0, -0.0], "x": [0.0, 1.0]}), "key", SPEC)

    assert table.counts.tolist() == [2]


def test_parts_of_a_time_that_come_round_again_are_keys_in_their_order() -> None:
    times = pd.date_range("2026-01-05", periods=14, freq="31h")
    frame = pd.DataFrame({"t": times, "x": np.arange(14.0)})
    days = [calendar.day_name[i] for i in range(7) if i in times.day_of_week]

    by_day = ss.sketch_by(frame, "weekday(t)", SPEC)
    by_hour = ss.sketch_by(frame, "hour_of_day(t)", SPEC)

    counts = times.day_name().value_counts()
    assert [(day, s.count) for day, s in by_day] == [(day, counts[day]) for day in days]
    assert [key for key, _ in by_hour] == sorted(set(times.hour))
    assert [key for key, _ in ss.sketch_by(frame, "month_of_year(t)", SPEC)] == [1]
    weekend = by_day.where("weekday IN ('Saturday', 'Sunday')")
    assert weekend.merge().count == (times.day_of_week >= 5).sum()
    assert [day for day, _ in weekend + by_day] == days
    with pytest.raises(DataError, match=r"no order here\. Name them: weekday IN \('Saturday'"):
        by_day.where("weekday >= 'Friday'")


@pytest.mark.parametrize("has_zone", [True, False])
def test_days_are_cut_in_the_zone_that_is_named(has_zone: bool) -> None:
    zone = ZoneInfo("Europe/Paris")
    column, times = year_of("UTC")
    if not has_zone:
        column = pc.local_timestamp(column)
    (key,) = parse("day(t, 'Europe/Paris')")

    found = read_keys(pa.table({"t": column}), [key])["day"]

    assert found.to_pylist() == [*(time.astimezone(zone).date() for time in times), None]


def test_a_zone_that_does_not_exist_is_refused_before_anything_is_read() -> None:
    with pytest.raises(DataError, match=r"'Europe/Pris' is not the name of a time zone"):
        parse("day(t, 'Europe/Pris')")


@pytest.mark.parametrize(
    ("by", "texts"),
    [
        ("day(t)", ["2026-01-05", "2026-01-06 13:00"]),
        ("day(t)", ["05.01.2026", "06.01.2026"]),
        ("day(t)", ["1/5/2026", "1/6/2026"]),
        ("day(t, 'day first')", ["5/1/2026", "6/1/2026"]),
        ("day(t, 'Europe/Paris', 'day first')", ["4/1/2026 23:30", "5/1/2026 23:30"]),
        ("day(t, 'epoch seconds')", ["1767571200", "1767657600"]),
    ],
)
def test_texts_that_hold_dates_are_cut(by: str, texts: list[str]) -> None:
    table = ss.sketch_by(pa.table({"t": texts, "x": [0.0, 1.0]}), by, SPEC)

    assert [key for key, _ in table] == [dt.date(2026, 1, 5), dt.date(2026, 1, 6)]


def test_times_of_day_have_an_hour() -> None:
    data = pa.table({"t": [dt.time(5, 10), dt.time(5, 50), dt.time(23)], "x": [0.0, 1.0, 2.0]})

    table = ss.sketch_by(data, "hour_of_day(t)", SPEC)

    assert {key: part.count for key, part in table} == {5: 2, 23: 1}
    with pytest.raises(DataError, match=r"weekday\(t\) needs a column of dates"):
        ss.sketch_by(data, "weekday(t)", SPEC)
