"""Columns of any kind become numbers: the same ones wherever they come from."""

from __future__ import annotations

import json
import math
from datetime import time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.data import open_source
from sketchshift.errors import DataError, SpecError
from sketchshift.recipe import MISSING, Category, Cycle, Frequency, Log, Number, Recipe, _log

N = 300


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    price = np.round(np.exp(rng.normal(5.0, 3.0, N)), 2)
    x = rng.normal(size=N)
    cuts = np.array(["fair", "good", "ideal"])[rng.integers(3, size=N)]
    times = np.datetime64("2026-01-05T00:00") + rng.integers(0, 60 * 24 * 30, N)
    columns = {
        "price": pa.array(price),
        "x": pa.array([None if i % 17 == 0 else v for i, v in enumerate(x.tolist())]),
        "cut": pa.array([None if i % 29 == 0 else v for i, v in enumerate(cuts.tolist())]),
        "when": pa.array(times.astype("datetime64[s]")),
    }
    return pa.table(columns)


RECIPE = Recipe(
    [
        Log("price", unit=0.1),
        Number("x", fill=0.25),
        Category("cut", ("fair", "good", "ideal", MISSING)),
        Frequency("cut", ("fair", "good"), (0.5, 0.25)),
        Cycle("when", "hour"),
        Cycle("when", "weekday"),
    ]
)


@pytest.fixture(scope="module")
def expected(table):
    """The same by pandas and NumPy's own functions."""
    frame = table.to_pandas()
    cuts = frame["cut"].fillna(MISSING).to_numpy()[:, None]
    turns = [frame["when"].dt.hour / 24, frame["when"].dt.day_of_week / 7]
    return np.column_stack(
        [
            np.log1p(frame["price"] / 0.1),
            frame["x"].fillna(0.25),
            cuts == ["fair", "good", "ideal", MISSING],
            frame["cut"].map({"fair": 0.5, "good": 0.25}).fillna(0.0),
            *(side(2 * np.pi * turn) for turn in turns for side in (np.cos, np.sin)),
        ]
    )


@pytest.fixture(scope="module")
def spec(table):
    return ss.plan(table, n_clusters=3, columns=RECIPE, standardize=True)


@pytest.fixture(scope="module")
def sources(table, tmp_path_factory):
    """The table in memory and in files."""
    import polars as pl
    from pyarrow import csv, parquet

    folder = tmp_path_factory.mktemp("recipe")
    parquet.write_table(table, folder / "t.parquet")
    csv.write_csv(table, folder / "t.csv")
    return {
        "table": table,
        "pandas": table.to_pandas().set_index(np.arange(1000, 1000 + N)),
        "polars": pl.from_arrow(table),
        "parquet": folder / "t.parquet",
        "csv": folder / "t.csv",
    }


def test_all_sources_give_the_numbers_of_other_libraries_and_the_same_bytes(
    table, spec, sources, expected
):
    """Of a sketch made here, on other days and of other files: plans carry the recipe."""
    again = ss.SketchSpec.from_json(spec.to_json())
    first = ss.sketch(table, spec)

    assert again == spec
    assert again.rows.recipe == RECIPE
    for kind, data in sources.items():
        source = open_source(data, columns=RECIPE)
        rows = np.concatenate([block.values for block in source])
        assert source.columns == RECIPE.names
        assert_allclose(rows, expected, rtol=1e-12, atol=1e-12, err_msg=kind)
        assert ss.sketch(data, again).to_bytes() == first.to_bytes(), kind
    assert ss.sketch(table.to_reader(), again) == first
    assert ss.sketch(table.slice(0, 100), spec) + ss.sketch(table.slice(100), spec) == first
    assert ss.sketch_by(table, "cut", spec).merge() == first


def test_columns_of_one_part_share_a_scale_and_each_part_has_variance_one(spec, expected):
    scaled = (
        (expected - expected.mean(axis=0)) / spec.rows.scale_vector * math.sqrt(len(RECIPE.parts))
    )

    totals = np.bincount(RECIPE.groups, scaled.var(axis=0))
    assert_allclose(totals, 1.0, rtol=1e-5)


@given(st.lists(st.floats(1.0, 1e300), min_size=1, max_size=50))
def test_logarithms_of_sums_and_products_are_those_of_the_library_of_mathematics(values):
    y = np.array(values)

    assert_allclose(_log(y), np.log(y), rtol=4e-16, atol=4e-16)


def test_logarithms_are_these_bits_on_every_processor():
    """Products and sums alone are the same everywhere: a change of them is a change of plans."""
    i = np.arange(1.0, 2001.0)
    y = 1.0 + i * i * i / 7.0
    bits = np.bitwise_xor.reduce(_log(y).view(np.uint64))

    assert hex(int(bits)) == "0x7ffdd9e4132aaec9"


@given(st.floats(-1e12, 1e12))
def test_a_logarithm_can_be_undone_and_keeps_the_order_of_numbers(value):
    part = Log("x", unit=0.01)
    encoded, more = part.encode(np.array([value, value + 1.0 + abs(value)]))[:, 0]

    assert part.natural(encoded) == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert encoded < more


HOURS = [
    pa.array(["5", " 7 ", None]),
    pa.array([5, 7, None]),
    pa.array(["2026-01-05 05:10", "2026-01-06 07:00", None]),
    pa.array(["2026-01-05 05:10", "2026-01-06 07:00", None]).dictionary_encode(),
    pa.array([time(5, 10), time(7), None]),
    pa.array([time(5, 10), time(7), None], pa.time32("s")),
    pa.array([Decimal("5.5"), Decimal("7"), None]),
    pa.array([5.0, 7.9, math.nan]),
    pa.array([5.0, 7.0, 1e300]),
]


def test_hours_come_as_numbers_text_or_times():
    part = Cycle("hour", "hour")
    for column in HOURS:
        encoded = part.encode(column)

        assert [part.natural(*row) for row in encoded[:2]] == pytest.approx([5.0, 7.0])
        assert np.isnan(encoded[2]).all()


def test_days_in_digits_are_days_as_numbers_and_as_text():
    part = Cycle("day", "weekday")

    numbers, texts = pa.array([20260105, 20260107]), pa.array(["20260105", "20260107"])

    assert [part.natural(*row) for row in part.encode(numbers)] == pytest.approx([0.0, 2.0])
    assert np.array_equal(part.encode(numbers), part.encode(texts))


def test_a_missing_time_counts_as_what_the_plan_says():
    part = Recipe.from_list(json.loads(json.dumps([CYCLE | {"fill": [0.25, -0.5]}]))).parts[0]

    encoded = part.encode(pa.array([6, None]))

    assert encoded.round(9).tolist() == [[0.0, 1.0], [0.25, -0.5]]


def test_an_infinite_number_on_a_log_scale_is_missing_without_a_warning():
    encoded = Log("x").encode(np.array([1.0, math.inf, -math.inf, math.nan]))

    assert np.isnan(encoded[:, 0]).tolist() == [False, True, True, True]


def test_rows_with_a_category_that_the_plan_has_not_seen_are_counted():
    recipe = Recipe([Number("x"), Category("c", ("a", "b"))])
    table = pa.table({"x": [0.0] * 8, "c": ["a", "b", "z", "z", "a", "b", "a", "b"]})

    values = recipe.encode(np.zeros((8, 1)), table)

    assert recipe.unseen(values.mean(axis=0)) == pytest.approx({"c": 0.25})
    assert recipe.unseen(values[:2].mean(axis=0)) == {}


def test_dates_with_the_day_first_are_read_so_in_every_block():
    """The order is found once, and travels in the recipe."""
    part = Cycle("day", "month", day_first=True)

    months = part.encode(pa.array(["03/02/2026", "04/02/2026"]))

    assert [part.natural(*row) for row in months] == pytest.approx([2.0, 2.0])


CYCLE = {
    "kind": "cycle",
    "column": "x",
    "unit": "hour",
    "day_first": None,
    "zone": None,
    "fill": None,
}


def test_a_recipe_that_cannot_be_is_refused():
    for content, words in (
        ([{"kind": "number"}], "with all of its fields"),
        ([{"kind": "magic", "column": "x"}], "of a kind among number, log"),
        ([{"kind": "log", "column": "x", "fill": None, "unit": -1.0}], "unit"),
        ([{"kind": "category", "column": "x", "values": ["a", "a"]}], "different texts"),
        ([CYCLE | {"unit": "moon"}], "one"),
        ([CYCLE | {"fill": [0.5]}], "a cosine and a sine"),
        ([], "a list of parts"),
        (7, "a list of objects"),
    ):
        with pytest.raises(SpecError, match=words):
            Recipe.from_list(content)


def test_what_a_recipe_cannot_make_numbers_of_is_refused(table):
    recipe = Recipe([Category("colour", ("a", "b"))])
    weekday, times = Cycle("at", "weekday"), pa.array([time(5, 10)])
    for make, words in (
        (lambda: Recipe([Number("x"), Log("x")]), "'x' twice"),
        (lambda: ss.plan(np.eye(4), n_clusters=1, columns=recipe), "no column names"),
        (lambda: ss.plan(table, n_clusters=2, columns=recipe), "has no column 'colour'"),
        (lambda: weekday.encode(times), "Take their hour"),
    ):
        with pytest.raises((DataError, SpecError), match=words):
            make()


def test_a_condition_on_any_column_chooses_rows(table, spec, sources):
    frame = table.to_pandas()
    meant = frame[(frame["price"] > 100) & (frame["cut"] == "good")]
    where = "price > 100 AND cut = 'good'"

    expected = ss.sketch(meant, spec)
    assert expected.count == len(meant) > 10
    for kind, data in sources.items():
        assert ss.sketch(data, spec, where=where) == expected, kind
    assert ss.sketch_by(table, "cut", spec, where=where).merge() == expected


@pytest.mark.engines
def test_engines_follow_a_recipe(table, spec):
    dask = pytest.importorskip("dask.dataframe")

    frame = dask.from_pandas(table.to_pandas(), npartitions=3)

    assert ss.sketch(frame, spec) == ss.sketch(table, spec)
