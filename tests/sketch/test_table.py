from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.errors import (
    DataError,
    IncompatibleSketchesError,
    RemovalError,
    SketchFormatError,
)
from sketchshift.sketch.windows import RunningSums

SPEC = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=0.5)
RNG = np.random.default_rng(1)
X = RNG.normal(size=(600, 2))
DAYS = np.array([dt.date(2026, 1, 1 + i % 6) for i in range(600)])
SHOPS = np.array(["a", "b", "c"])[RNG.integers(0, 3, 600)]


@pytest.fixture(scope="module")
def table():
    data = pa.table({"day": DAYS, "shop": SHOPS, "x": X[:, 0], "y": X[:, 1]})
    return ss.sketch_by(data, by=["day", "shop"], spec=SPEC, columns=["x", "y"])


def test_any_slice_merges_into_the_sketch_of_its_rows(table):
    some = table.where("day >= '2026-01-03' AND shop <> 'b'")
    rows = (dt.date(2026, 1, 3) <= DAYS) & (SHOPS != "b")
    assert some.merge() == ss.sketch(X[rows], SPEC)


def test_slices_merge_by_some_columns_of_the_key(table):
    shops = table.merge_by("shop")
    assert shops.by == ("shop",)
    for shop, sketch in shops:
        assert sketch == ss.sketch(X[shop == SHOPS], SPEC)
    assert table.merge_by(["shop", "day"]).merge_by("day") == table.merge_by("day")


def test_equal_tables_make_equal_files(table, tmp_path):
    for name in ("a", "b"):
        table.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


EXPORTS = {
    "DuckDB's relation": duckdb.from_arrow,
    "DuckDB's reader": lambda arrow: duckdb.from_arrow(arrow).arrow(),
    "Polars": pl.from_arrow,
    "pandas": pa.Table.to_pandas,
    "pandas, sorted": lambda arrow: arrow.to_pandas().sort_values("shop"),
    "pandas with an index": lambda arrow: arrow.to_pandas().set_index("shop"),
    "batches": lambda arrow: arrow.to_reader(max_chunksize=5),
    "a batch": lambda arrow: arrow.combine_chunks().to_batches()[0],
    "dictionaries": lambda arrow: arrow.set_column(1, "shop", arrow["shop"].dictionary_encode()),
    "plans as texts": lambda arrow: arrow.set_column(3, "plan", arrow["plan"].cast("string")),
    "no counts": lambda arrow: arrow.drop_columns(["count"]),
}


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_whatever_exports_arrow_gives_the_table_back(export, table):
    arrow = table.to_arrow()

    assert ss.SketchTable.from_arrow(export(arrow)) == table
    some = ss.SketchTable.from_arrow(export(arrow), where="shop LIKE 'a%'")
    assert some == table.where("shop = 'a'")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"key": [1]}, "cannot read dict as a table of sketches. Pass an Arrow table"),
        (pl.LazyFrame({"key": [1]}), "cannot read LazyFrame .* Collect a lazy frame first"),
        (pl.Series("sketch", [b"a"]), "cannot read Series as a table of sketches: "),
        (
            pa.table([[1], [2], [b""]], names=["key", "key", "sketch"]),
            "more than one column 'key'. Select each once",
        ),
        (pa.table({"key": [1], "sketch": ["text"]}), "holds string, not bytes"),
        (pa.table({"key": [1], "sketch": [b""]}), "a column 'plan' of text.*Select it"),
        (
            pa.table({"plan": ["{}"], "sketch": [b""]}),
            "at least one column of keys.*Select the columns of the key",
        ),
    ],
)
def test_what_is_no_table_is_refused_with_a_sentence(data, words):
    with pytest.raises(DataError, match=words):
        ss.SketchTable.from_arrow(data)


@pytest.mark.filterwarnings("ignore:The clusters")
def test_the_page_on_slices_shows_code_that_runs(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "slices.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    flights = {
        "date": np.resize(np.arange("2001-01", "2001-07", dtype="datetime64[D]"), 600),
        "origin": np.resize(["SFO", "OAK", "ATL"], 600),
        "delay": X[:, 0],
        "distance": X[:, 1],
    }
    pq.write_table(pa.table(flights), tmp_path / "flights-3m.parquet")
    monkeypatch.chdir(tmp_path)

    names = {}
    for block in blocks:
        exec(block, names)

    table = names["table"]
    assert names["spring"] == table.where("month BETWEEN '2001-03-01' AND '2001-05-01'")
    assert names["airport"] == table.where("origin = 'SFO'")


def test_rows_with_equal_keys_are_added_up(table):
    arrow = table.to_arrow()

    assert ss.SketchTable.from_arrow(pa.concat_tables([arrow, arrow])) == table + table


@given(cuts=st.lists(st.integers(0, 600), max_size=4))
@settings(max_examples=15)
def test_tables_of_parts_add_up_to_the_table_of_the_whole(cuts):
    spans = [span for span in np.split(np.arange(600), sorted(cuts)) if len(span)]
    parts = [ss.sketch_by(X[span], by=SHOPS[span], spec=SPEC) for span in spans]

    assert sum(parts) == sum(reversed(parts)) == ss.sketch_by(X, by=SHOPS, spec=SPEC)


def test_a_slice_is_found_by_its_key(table):
    shops = table.merge_by("shop")
    assert shops["b"] == table.where("shop = 'b'").merge()
    with pytest.raises(KeyError, match="no slice 'z' by shop"):
        shops["z"]


def test_no_slice_left_says_so(table):
    empty = table.where("shop = 'z'")
    assert len(empty) == 0
    with pytest.raises(DataError, match="no slices to merge"):
        empty.merge()
    with pytest.raises(DataError, match="and so no spec"):
        empty.spec  # noqa: B018


def keyed(*keys):
    """Make a table of each array of keys; a sketch tells which table it is from."""
    return [
        ss.SketchTable.of(pa.table({"key": key}), (ss.sketch([[i, i]], SPEC),) * len(key))
        for i, key in enumerate(keys)
    ]


NOON = dt.datetime(2026, 1, 5, 12)
DAY, FAR = NOON.date(), dt.datetime(2926, 1, 5)
NEW_YORK, NANOSECONDS = pa.timestamp("us", "America/New_York"), pa.timestamp("ns", "UTC")
UNLIKE = {  # values and type of the keys of one table, then of the other
    "booleans and numbers": ([True], "bool", [5, 7], "int64"),
    "dates and times": ([DAY], "date32", [NOON], "timestamp[us]"),
    "times with a zone and without": ([NOON], NEW_YORK, [NOON], "timestamp[us]"),
    "two zones": ([NOON], NEW_YORK, [NOON], pa.timestamp("us", "UTC")),
    "texts and numbers": (["5"], "string", [5], "int64"),
    "texts and bytes": (["5"], "string", [b"5"], "binary"),
    "decimals and floats": ([Decimal("5.5")], pa.decimal128(5, 2), [5.5], "double"),
    "numbers that a float cannot hold": ([2**53 + 1], "int64", [0.5], "double"),
    "times that nanoseconds cannot reach": ([FAR], "timestamp[ms]", [NOON], "timestamp[ns]"),
}


@pytest.mark.parametrize("keys", UNLIKE.values(), ids=UNLIKE)
def test_tables_whose_keys_differ_in_type_do_not_add_up(keys):
    arrays = [pa.array(*keys[:2]), pa.array(*keys[2:])]
    words = "cannot add tables whose key 'key' holds {.type} in one and {.type} in the other"

    for pair in (arrays, arrays[::-1]):
        first, second = keyed(*pair)
        with pytest.raises(
            IncompatibleSketchesError, match=re.escape(words.format(*pair)) + ".*Convert"
        ):
            first + second


ALIKE = {  # as above, and the type of the keys of the sum
    "null": ([None], "null", ["a"], "string", "string"),
    "numbers that are all missing": ([None], "double", ["a"], "string", "string"),
    "all of both missing": ([None], "double", [None], "string", "double"),
    "widths of integers": ([5], "int32", [5, 7], "int64", "int64"),
    "integers without a sign": ([5], "uint8", [5, -7], "int64", "int64"),
    "floats and integers": ([0.5, 5.0], "double", [5, 7], "int64", "double"),
    "zeros with a sign": ([-0.0], "double", [0.0], "double", "double"),
    "widths of text": (["a"], "large_string", ["a", "b"], "string", "string"),
    "widths of bytes": ([b"a"], "large_binary", [b"a"], "binary", "binary"),
    "dictionaries": (["a"], pa.dictionary("int32", "string"), ["a", "b"], "string", "string"),
    "units of times": ([NOON], pa.timestamp("s", "UTC"), [NOON], NANOSECONDS, NANOSECONDS),
    "units of dates": ([DAY], "date64", [DAY], "date32", "date32"),
}


@pytest.mark.parametrize("case", ALIKE.values(), ids=ALIKE)
def test_types_that_hold_the_values_of_both_are_found_in_any_order(case):
    *keys, kind = case
    first, second = keyed(pa.array(*keys[:2]), pa.array(*keys[2:]))
    values = first.keys["key"].to_pylist() + second.keys["key"].to_pylist()

    both = first + second

    assert both == second + first
    assert both.keys.schema == pa.schema({"key": kind})
    assert both.keys["key"].to_pylist() == sorted(set(values), key=lambda v: (v is None, v))
    assert both.counts.sum() == len(values)


def test_any_tree_of_additions_gives_the_same_table():
    keys = [pa.nulls(1), pa.nulls(1, pa.float64()), pa.array([7], pa.int32()), pa.array([7.0])]
    tables = keyed(*keys)
    whole = sum(tables)

    for a, b, c, d in permutations(tables):
        assert (a + b) + (c + d) == whole
        assert a + (b + (c + d)) == whole


def test_tables_that_do_not_fit_are_refused(table):
    with pytest.raises(IncompatibleSketchesError, match="merge_by"):
        table + table.merge_by("shop")
    a, b = (ss.sketch_by(X, by=SHOPS, spec=spec) for spec in (SPEC, SPEC.prefix(10)))
    with pytest.raises(IncompatibleSketchesError, match="different plans"):
        a + b
    with pytest.raises(DataError, match="cannot merge by 'city'"):
        table.merge_by("city")
    for names in ([], ["shop", "shop"]):
        with pytest.raises(DataError, match="merge_by must name columns of the key, each once"):
            table.merge_by(names)


def test_a_missing_plan_or_that_of_another_table_is_named_by_its_row(table):
    arrow = table.to_arrow()
    plan = arrow["plan"][0].as_py()
    other = plan.replace('"size":20', '"size":21')
    for wrong, words in ((None, "the header is not JSON"), (other, "made with different plans")):
        plans = pa.array([plan, wrong, *[plan] * (len(table) - 2)])
        with pytest.raises(SketchFormatError, match=f"row 1 of the table: .*{words}"):
            ss.SketchTable.from_arrow(arrow.set_column(3, "plan", plans))


def test_a_damaged_sketch_is_named_by_its_row(table):
    arrow = table.to_arrow()
    data = arrow["sketch"].to_pylist()
    data[4] = data[4][:-1] + bytes([data[4][-1] ^ 1])
    with pytest.raises(SketchFormatError, match="row 4 of the table"):
        ss.SketchTable.from_arrow(arrow.set_column(4, "sketch", [data]))


def test_a_file_that_is_not_parquet_is_refused(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"no table")
    with pytest.raises(SketchFormatError, match=r"t.parquet: the first bytes are not those of"):
        ss.load(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 no table")
    with pytest.raises(DataError, match=r"cannot read .*t.parquet' as a Parquet file"):
        ss.load(tmp_path / "t.parquet")


def test_a_key_named_count_cannot_be_stored(tmp_path):
    table = ss.SketchTable.of(pa.table({"count": [1]}), (ss.sketch(X, SPEC),))
    with pytest.raises(DataError, match="Rename it"):
        table.save(tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()


def test_a_notebook_lists_the_first_and_the_last_slices():
    table = ss.sketch_by(np.repeat(X[:40], 2, axis=0), np.arange(80) // 4 + 100, SPEC)

    shown = re.findall(r"<td[^>]*>(1\d\d|\d+ more)<", table._repr_html_())

    assert shown == [*map(str, range(100, 111)), "6 more", "117", "118", "119"]


@pytest.fixture(scope="module")
def days():
    """Rows of 300 days, some without a day."""
    day = np.arange("2026-01-01", "2026-10-28", dtype="datetime64[D]")
    keys = pa.array(np.resize(day, 3 * len(X)), mask=np.arange(3 * len(X)) % 50 == 7)
    rows = np.vstack([X, X + 1.0, X - 1.0])
    data = pa.table({"day": keys, "x": rows[:, 0], "y": rows[:, 1]})
    return ss.sketch_by(data, "day", SPEC, columns=["x", "y"])


@pytest.mark.parametrize(
    ("start", "stop"),
    [
        (None, None),
        ("2026-01-05", "2026-09-30"),
        ("2026-03-01", "2026-03-09"),
        (None, "2026-02-02"),
    ],
)
def test_a_window_is_the_sketch_of_the_slices_in_it(days, start, stop):
    conditions = [f"day >= '{start}'"] * (start is not None) + [f"day < '{stop}'"] * (
        stop is not None
    )
    expected = days.where(" AND ".join(conditions)) if conditions else days

    assert days.window(start, stop) == expected.merge()


def test_a_window_without_slices_or_without_an_order_is_refused(days):
    with pytest.raises(DataError, match="no slices from 2031-01-01 on"):
        days.window("2031-01-01")
    for bound in ("soon", dt.datetime(2026, 1, 5, 12), 20_000, True, "\ud800"):
        with pytest.raises(DataError, match="is no value of 'day'"):
            days.window(None, bound)
    assert days.window(dt.date(2026, 10, 1)) == days.window(np.datetime64("2026-10-01"))
    texts = ss.sketch_by(X, np.resize(["a", "b"], len(X)), SPEC)
    with pytest.raises(DataError, match="dates, times or numbers, and 'key' holds string"):
        texts.window("a", "b")


@given(st.integers(-5, 310), st.integers(-5, 310))
@settings(max_examples=60)
def test_any_window_is_the_sketch_of_its_rows(days, first, last):
    begin = dt.date(2026, 1, 1)
    start, stop = (begin + dt.timedelta(n) for n in (first, last))
    expected = days.where(f"day >= '{start}' AND day < '{stop}'")
    if not len(expected):
        with pytest.raises(DataError, match="no slices from"):
            days.window(start, stop)
    else:
        assert days.window(start, stop) == expected.merge()


def test_sums_for_windows_take_less_than_a_tenth_of_the_table_whatever_its_slices_hold():
    rng = np.random.default_rng(0)
    rows = 4.0 * rng.normal(size=(8, 6))[rng.integers(8, size=24_000)] + rng.normal(
        size=(24_000, 6)
    )
    for n_slices in (200, 2400):  # with a few cells, and with a few rows
        table = ss.sketch_by(rows, np.arange(24_000) % n_slices, n_clusters=8)
        table.window(3, n_slices - 5)
        assert table._running.sums.n_bytes < table.totals.n_bytes / 10


class Ledger:
    """A table under late edits, and the rows that are in it."""

    def __init__(self, rng, n_hours):
        self.rng, self.n_hours = rng, n_hours
        self.rows, self.hours = rng.normal(size=(400, 2)), rng.integers(n_hours, size=400)
        self.table = ss.sketch_by(self.rows, self.hours, SPEC)

    def edit(self):
        if self.rng.random() < 0.5 or len(self.rows) < 100:
            rows = self.rng.normal(size=(self.rng.integers(1, 6), 2))
            last = self.n_hours if self.rng.random() < 0.7 else self.n_hours + 200
            hours = self.rng.integers(-3, last, size=len(rows))
            late = ss.sketch_by(rows, hours, SPEC)
            self.table = self.table + late if self.rng.random() < 0.5 else late + self.table
            self.rows = np.vstack([self.rows, rows])
            self.hours = np.append(self.hours, hours)
        else:
            gone = self.rng.random(len(self.rows)) < 0.02
            gone[0] = True
            self.table = self.table - ss.sketch_by(self.rows[gone], self.hours[gone], SPEC)
            self.rows, self.hours = self.rows[~gone], self.hours[~gone]

    def check(self):
        expected = ss.sketch_by(self.rows, self.hours, SPEC)
        assert self.table.to_bytes() == expected.to_bytes()
        first, last = sorted(self.rng.integers(-5, self.n_hours + 210, size=2).tolist())
        is_in = (self.hours >= first) & (self.hours < last)
        if is_in.any():
            assert self.table.window(first, last) == ss.sketch(self.rows[is_in], SPEC)


@pytest.mark.parametrize(
    ("seed", "n_edits"), [(0, 60), (1, 60), pytest.param(2, 1000, marks=pytest.mark.thorough)]
)
def test_late_edits_leave_the_bytes_of_a_pass_over_the_rows_and_renew_no_sums(
    seed, n_edits, monkeypatch
):
    ledger = Ledger(np.random.default_rng(seed), 150)
    ledger.table.window(0, 100)
    monkeypatch.setattr(RunningSums, "of", None)

    for i in range(n_edits):
        ledger.edit()
        if i % 4 == 3:
            ledger.check()

    gaps = np.diff(ledger.table._running.edges)
    assert gaps.max() <= 2 * ledger.table._running.size


def test_removals_that_rows_cannot_have_left_name_the_slice(table):
    shops = ss.sketch_by(X, by=SHOPS, spec=SPEC)
    few = ss.sketch_by(X[:3] + 9.0, by=np.array(["b"] * 3), spec=SPEC)

    for wrong, words in (
        (
            ss.sketch_by(X[:2], by=np.array(["a", "z"]), spec=SPEC),
            "cannot remove rows of z: there is no such",
        ),
        (few, "slice b: some of the rows to remove were never added"),
        (shops.where("key = 'c'") + shops, "slice c: cannot remove more than was added"),
    ):
        with pytest.raises(RemovalError, match=words):
            shops - wrong
    assert len(shops - shops) == 0
    assert len((shops - shops) - (shops - shops)) == 0
    with pytest.raises(RemovalError, match="there is no such slice"):
        (shops - shops) - shops
    assert (shops - shops) + few == few
    with pytest.raises(IncompatibleSketchesError, match="cannot subtract tables by"):
        table - shops


@pytest.mark.parametrize("ending", [".sketch", ".json", ".csv"])
def test_a_table_under_the_name_of_another_kind_is_refused_with_a_better_name(
    ending, table, tmp_path
):
    with pytest.raises(DataError, match=r"is saved as \*\.parquet.*Name it 'days\.parquet'"):
        table.save(tmp_path / f"days{ending}")
    with pytest.raises(DataError, match=r"is saved as \*\.sketch.*Name it 'day\.sketch'"):
        table.merge().save(tmp_path / "day.parquet")
    assert not list(tmp_path.iterdir())


def test_windows_tell_nanoseconds_and_refuse_what_has_no_place():
    nanoseconds = pa.array([i % 5 for i in range(60)], pa.timestamp("ns"))
    table = ss.sketch_by(np.zeros((60, 2)), nanoseconds, SPEC)
    keys = table.keys.column(0).to_pylist()

    assert table.window(keys[2], None).count == 36
    assert table.window(None, keys[3]).count == 36
    numbers = ss.sketch_by(np.zeros((4, 2)), np.arange(4) / 2, SPEC)
    assert numbers.window(0.5, 1.5).count == 2
    with pytest.raises(DataError, match="nan is no value of 'key'"):
        numbers.window(None, float("nan"))


def test_as_many_keys_as_sketches_are_needed():
    sketch = ss.sketch(np.eye(2), SPEC)
    with pytest.raises(DataError, match="there are 1 keys and 2 sketches"):
        ss.SketchTable.of(pa.table({"k": [1]}), [sketch, sketch])


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.date64(), pa.time32("s")], ids=str)
def test_keys_that_files_hold_in_other_types_are_loaded_as_they_were(kind, tmp_path):
    keys = pa.array([0, 86_400_000] if kind == pa.date64() else [0, 60]).cast(
        pa.int32() if kind.bit_width == 32 else pa.int64()
    )
    table = ss.sketch_by(np.eye(2), keys.cast(kind), SPEC)
    table.save(tmp_path / "t.parquet")
    assert ss.load(tmp_path / "t.parquet") == table


def test_slices_too_heavy_together_are_refused_whatever_their_waves():
    weights, X = np.full(100, 2.0**39.7 / 100), np.eye(2)[np.arange(100) % 2]
    days = [ss.sketch_by(X, np.full(100, day), SPEC, sample_weight=weights) for day in range(3)]
    table = sum(days)
    assert len(table) == 3
    for add_up in (table.merge, table.window):
        with pytest.raises(
            DataError, match=r"a total weight below 2\*\*40|are too large to be held"
        ):
            add_up()
