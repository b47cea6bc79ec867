"""Times as people write them: the oracle is Python's own strptime, and pandas for parts."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchshift._times import PERIODS, as_times, is_time_column, name_of, part_of, tell_order
from sketchshift.errors import DataError

FORMATS = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%f",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
    "%Y%m%d",
]


@settings(deadline=None)
@given(
    times=st.lists(st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)), min_size=1),
    form=st.sampled_from(FORMATS),
)
def test_dates_as_people_write_them_are_what_python_reads(times, form):
    texts = [time.strftime(form) for time in times]

    found = as_times(pa.array([*texts, None, " "]))

    assert found.to_pylist() == [*(dt.datetime.strptime(t, form) for t in texts), None, None]
    assert is_time_column(pa.array([*texts, None])) == (form != "%Y%m%d")


@pytest.mark.parametrize(
    ("texts", "first", "told"),
    [
        (["13/1/2026", "5/1/2026"], dt.datetime(2026, 1, 13), ""),
        (["1/13/2026", "5/1/2026"], dt.datetime(2026, 1, 13), ""),
        (["5/1/2026"], dt.datetime(2026, 5, 1), "5/1/2026 are read with the month before the day"),
        (["5.1.2026"], dt.datetime(2026, 1, 5), "5.1.2026 are read with the day before the month"),
        (["5-1-26"], dt.datetime(2026, 5, 1), "with the month before the day"),
        (["2026-01-05"], dt.datetime(2026, 1, 5), ""),
    ],
)
def test_which_number_is_the_day_is_decided_from_the_column_and_told(texts, first, told):
    column = pa.chunked_array([texts])

    assert as_times(column)[0].as_py() == first
    assert (told in tell_order(column)) if told else tell_order(column) == ""


def test_a_part_of_a_column_does_not_decide_on_the_order():
    """Else one block would be read with the day first and the next one with the month first."""
    assert as_times(pa.array(["5.1.2026"]), is_part=True)[0].as_py() == dt.datetime(2026, 1, 5)
    assert as_times(pa.array(["5/1/2026"]), is_part=True)[0].as_py() == dt.datetime(2026, 5, 1)
    with pytest.raises(DataError, match="'13/1/2026' cannot be read"):
        as_times(pa.array(["5/1/2026", "13/1/2026"]), is_part=True)
    found = as_times(pa.array(["5/1/2026", "13/1/2026"]), day_first=True, is_part=True)
    assert found.to_pylist() == [dt.datetime(2026, 1, 5), dt.datetime(2026, 1, 13)]


def test_offsets_are_taken_off():
    texts = ["2026-01-05T13:45:00Z", "2026-01-05 13:45+05:30", "2026-01-05 13:45:00 -0130"]

    found = as_times(pa.array(texts))

    assert found.type == pa.timestamp("us", "UTC")
    assert [time.strftime("%H:%M") for time in found.to_pylist()] == ["13:45", "08:15", "15:15"]


def test_times_without_a_zone_are_utc_where_one_is_named():
    found = as_times(pa.array(["2026-07-01 23:30", "2026-12-01 23:30"]), "Europe/Paris")

    assert [str(time) for time in found.to_pylist()] == [
        "2026-07-02 01:30:00+02:00",
        "2026-12-02 00:30:00+01:00",
    ]
    with pytest.raises(DataError, match=r"'Europe/Pris' is not the name of a time zone"):
        as_times(pa.array(["2026-07-01"]), "Europe/Pris")


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_numbers_count_from_1970_on_only_if_that_is_said(unit):
    numbers = pa.array([0, 86_400 * (1 if unit == "s" else 1000), None])

    found = as_times(numbers, epoch=unit)

    assert found.cast(pa.date32()).to_pylist() == [dt.date(1970, 1, 1), dt.date(1970, 1, 2), None]
    assert as_times(numbers.cast(pa.string()), epoch=unit).equals(found)
    assert not is_time_column(numbers)
    with pytest.raises(DataError, match="say in which unit"):
        as_times(numbers)


@pytest.mark.parametrize(
    "cell",
    ["2026-02-30", "2026-13-01", "2026-01-05 24:00", "2026-01-05 13:60", "soon", "12:30", "5"],
)
def test_a_cell_that_is_no_time_is_named(cell):
    column = pa.array(["2026-01-04", "2026-01-05 10:00", cell])

    with pytest.raises(DataError, match=rf"'{cell}' \(row 2, counted from 0\) cannot be read as"):
        as_times(column)
    assert not is_time_column(column)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["red", "blue"]),
        pa.array([1, 2]),
        pa.array(["12", "13"]),
        pa.array([""]),
        pa.nulls(2),
    ],
)
def test_what_holds_no_times_is_no_column_of_times(column):
    assert not is_time_column(column)


def test_words_for_nothing_are_missing():
    found = as_times(pa.array(["NA", "2026-01-05", "?", "None"]).dictionary_encode())

    assert found.to_pylist() == [None, dt.datetime(2026, 1, 5), None, None]


def test_parts_are_those_of_pandas():
    frame = pd.Series(
        pd.date_range("2024-01-01", periods=9000, freq="59min", tz="America/New_York")
    )
    times = pa.array(frame)

    expected = {
        "hour": frame.dt.hour,
        "weekday": frame.dt.day_of_week,
        "month": frame.dt.month,
        "day_of_year": frame.dt.day_of_year,
    }
    assert expected.keys() == PERIODS.keys()
    for unit, numbers in expected.items():
        assert part_of(times, unit).to_pylist() == numbers.tolist()


def test_parts_of_dates_have_names():
    monday = pa.array([dt.date(2026, 1, 5)])

    assert name_of("weekday", part_of(monday, "weekday")[0].as_py()) == "Monday"
    assert name_of("month", part_of(monday, "month")[0].as_py()) == "January"
    assert name_of("hour", 13) == "13:00"
    assert name_of("day_of_year", 60) == "day 60"
