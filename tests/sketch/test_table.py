from __future__ import annotations

import dataclasses
import datetime as dt
import pickle
import re
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.errors import DataError, IncompatibleSketchesError, SketchFormatError

SPEC = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=0.5)
RNG = np.random.default_rng(1)
X = RNG.normal(size=(600, 2))
DAYS = np.array([dt.date(2026, 1, 1 + i % 6) for i in range(600)])
SHOPS = np.array(["a", "b", "c"])[RNG.integers(0, 3, 600)]


@pytest.fixture(scope="module")
def table() -> ss.SketchTable:
    data = pa.table({"day": DAYS, "shop": SHOPS, "x": X[:, 0], "y": X[:, 1]})
    return ss.sketch_by(data, by=["day", "shop"], spec=SPEC, columns=["x", "y"])


def test_any_slice_merges_into_the_sketch_of_its_rows(table: ss.SketchTable) -> None:
    some = table.where("day >= '2026-01-03' AND shop <> 'b'")
    rows = (dt.date(2026, 1, 3) <= DAYS) & (SHOPS != "b")
    assert some.merge() == ss.sketch(X[rows], SPEC)


def test_slices_merge_by_some_columns_of_the_key(table: ss.SketchTable) -> None:
    shops = table.merge_by("shop")
    assert shops.by == ("shop",)
    for shop, sketch in shops:
        assert sketch == ss.sketch(X[shop == SHOPS], SPEC)
    assert table.merge_by(["shop", "day"]).merge_by("day") == table.merge_by("day")


def test_parquet_gives_the_table_back(table: ss.SketchTable, tmp_path: Path) -> None:
    table.to_parquet(tmp_path / "t.parquet")
    assert ss.SketchTable.from_parquet(tmp_path / "t.parquet") == table
    condition = "shop = 'a'"
    some = ss.SketchTable.from_parquet(tmp_path / "t.parquet", where=condition)
    assert some == table.where(condition)


def test_equal_tables_make_equal_files(table: ss.SketchTable, tmp_path: Path) -> None:
    for name in ("a", "b"):
        table.to_parquet(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_duckdb_and_polars_read_keys_counts_and_sketches(
    table: ss.SketchTable, tmp_path: Path
) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "t.parquet"
    table.to_parquet(path)
    sql = f"SELECT sketch FROM '{path}' WHERE shop = 'a' AND day = DATE '2026-01-02'"
    ((data,),) = duckdb.sql(sql).fetchall()
    assert ss.Sketch.from_bytes(data) == table[dt.date(2026, 1, 2), "a"]
    assert pl.read_parquet(path)["count"].sum() == 600


def through_duckdb(arrow: pa.Table) -> Any:
    return pytest.importorskip("duckdb").from_arrow(arrow)


EXPORTS = {
    "DuckDB's relation": through_duckdb,
    "DuckDB's reader": lambda arrow: through_duckdb(arrow).arrow(),
    "Polars": pl.from_arrow,
    "pandas": pa.Table.to_pandas,
    "pandas, sorted": lambda arrow: arrow.to_pandas().sort_values("shop"),
    "pandas with an index": lambda arrow: arrow.to_pandas().set_index("shop"),
    "batches": lambda arrow: arrow.to_reader(max_chunksize=5),
    "a batch": lambda arrow: arrow.combine_chunks().to_batches()[0],
    "dictionaries": lambda arrow: arrow.set_column(1, "shop", arrow["shop"].dictionary_encode()),
    "no counts": lambda arrow: arrow.drop_columns(["count"]),
}


@pytest.mark.parametrize("export", EXPORTS)
def test_whatever_exports_arrow_gives_the_table_back(export: str, table: ss.SketchTable) -> None:
    arrow = table.to_arrow()

    assert ss.SketchTable.from_arrow(EXPORTS[export](arrow)) == table
    some = ss.SketchTable.from_arrow(EXPORTS[export](arrow), where="shop LIKE 'a%'")
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
    ],
)
def test_what_is_no_table_is_refused_with_a_sentence(data: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        ss.SketchTable.from_arrow(data)


@pytest.mark.filterwarnings("ignore:The clusters")
def test_the_page_on_slices_shows_code_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb")
    page = (Path(__file__).parents[2] / "docs" / "slices.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    dates = [dt.date(2001, 1, 1) + dt.timedelta(days=i % 181) for i in range(600)]
    origins = np.array(["SFO", "OAK", "ATL"])[RNG.integers(0, 3, 600)]
    flights = pa.table({"date": dates, "origin": origins, "delay": X[:, 0], "distance": X[:, 1]})
    pq.write_table(flights, tmp_path / "flights-3m.parquet")
    monkeypatch.chdir(tmp_path)

    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)

    table = names["table"]
    months = "month >= '2001-03-01' AND month <= '2001-05-01'"
    assert names["spring"] == table.where(months)
    assert names["airport"] == table.where("origin = 'SFO'")


def test_rows_with_equal_keys_are_added_up(table: ss.SketchTable) -> None:
    arrow = table.to_arrow()
    twice = ss.SketchTable.from_arrow(pa.concat_tables([arrow, arrow.slice(0, 3)]))
    assert len(twice) == len(table)
    assert twice.sketches[0] == table.sketches[0] + table.sketches[0]
    assert twice.sketches[5] == table.sketches[5]


@given(cuts=st.lists(st.integers(0, 600), min_size=1, max_size=4))
@settings(max_examples=15, deadline=None)
def test_tables_of_parts_add_up_to_the_table_of_the_whole(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), 600]
    spans = [slice(a, b) for a, b in pairwise(bounds) if a < b]
    parts = [ss.sketch_by(X[span], by=SHOPS[span], spec=SPEC) for span in spans]
    assert sum(parts) == ss.sketch_by(X, by=SHOPS, spec=SPEC)
    assert sum(reversed(parts)) == sum(parts)


def test_a_table_can_be_pickled(table: ss.SketchTable) -> None:
    assert pickle.loads(pickle.dumps(table)) == table


def test_a_slice_is_found_by_its_key(table: ss.SketchTable) -> None:
    shops = table.merge_by("shop")
    assert shops["b"].count == int((SHOPS == "b").sum())
    with pytest.raises(KeyError, match="no slice 'z' by shop"):
        shops["z"]


def test_no_slice_left_says_so(table: ss.SketchTable) -> None:
    empty = table.where("shop = 'z'")
    assert len(empty) == 0
    with pytest.raises(DataError, match="no slices to merge"):
        empty.merge()
    with pytest.raises(DataError, match="and so no spec"):
        empty.spec  # noqa: B018


def keyed(*keys: pa.Array) -> list[ss.SketchTable]:
    """Tables with such keys; a sketch tells which table it is from."""
    rows = [np.full((1, 2), float(i)) for i in range(len(keys))]
    return [
        ss.SketchTable(pa.table({"key": key}), (ss.sketch(row, SPEC),) * len(key))
        for key, row in zip(keys, rows, strict=True)
    ]


NOON = dt.datetime(2026, 1, 5, 12)
UNLIKE = {
    "booleans and numbers": (pa.array([True]), pa.array([5, 7])),
    "dates and times": (pa.array([NOON.date()]), pa.array([NOON], pa.timestamp("us"))),
    "times with a zone and without": (
        pa.array([NOON], pa.timestamp("us", "America/New_York")),
        pa.array([NOON], pa.timestamp("us")),
    ),
    "two zones": (
        pa.array([NOON], pa.timestamp("us", "America/New_York")),
        pa.array([NOON], pa.timestamp("us", "UTC")),
    ),
    "texts and numbers": (pa.array(["5"]), pa.array([5])),
    "texts and bytes": (pa.array(["5"]), pa.array([b"5"])),
    "decimals and floats": (pa.array([5.5]).cast(pa.decimal128(5, 2)), pa.array([5.5])),
    "numbers that a float cannot hold": (pa.array([2**53 + 1]), pa.array([0.5])),
    "times that nanoseconds cannot reach": (
        pa.array([dt.datetime(2926, 1, 5)], pa.timestamp("s")),
        pa.array([NOON], pa.timestamp("ns")),
    ),
}


@pytest.mark.parametrize("keys", UNLIKE.values(), ids=UNLIKE)
def test_tables_whose_keys_differ_in_type_do_not_add_up(keys: tuple[pa.Array, pa.Array]) -> None:
    first, second = keyed(*keys)
    sentence = r"cannot add tables whose key 'key' holds {} in one and {} in the other.*Convert"
    words = [re.escape(str(key.type)) for key in keys]

    with pytest.raises(IncompatibleSketchesError, match=sentence.format(*words)):
        first + second
    with pytest.raises(IncompatibleSketchesError, match=sentence.format(*words[::-1])):
        second + first


ALIKE = {
    "null": (pa.nulls(1), pa.array(["a"]), pa.string()),
    "numbers that are all missing": (pa.nulls(1, pa.float64()), pa.array(["a"]), pa.string()),
    "all of both missing": (pa.nulls(1, pa.float64()), pa.nulls(1, pa.string()), pa.float64()),
    "widths of integers": (pa.array([5], pa.int32()), pa.array([5, 7]), pa.int64()),
    "integers without a sign": (pa.array([5], pa.uint8()), pa.array([5, -7]), pa.int64()),
    "floats and integers": (pa.array([0.5, 5.0]), pa.array([5, 7]), pa.float64()),
    "zeros with a sign": (pa.array([-0.0]), pa.array([0.0]), pa.float64()),
    "widths of text": (pa.array(["a"], pa.large_string()), pa.array(["a", "b"]), pa.string()),
    "widths of bytes": (pa.array([b"a"], pa.large_binary()), pa.array([b"a"]), pa.binary()),
    "dictionaries": (pa.array(["a"]).dictionary_encode(), pa.array(["a", "b"]), pa.string()),
    "units of times": (
        pa.array([NOON], pa.timestamp("s", "UTC")),
        pa.array([NOON], pa.timestamp("ns", "UTC")),
        pa.timestamp("ns", "UTC"),
    ),
    "units of dates": (pa.array([NOON.date()], pa.date64()), pa.array([NOON.date()]), pa.date64()),
}


@pytest.mark.parametrize("case", ALIKE.values(), ids=ALIKE)
def test_types_that_hold_the_values_of_both_are_found_in_any_order(
    case: tuple[pa.Array, pa.Array, pa.DataType],
) -> None:
    *keys, kind = case
    first, second = keyed(*keys)

    both = first + second

    assert both == second + first
    assert both.keys.schema.types == [kind]
    values = [value for key in keys for value in key.to_pylist()]
    assert both.keys["key"].to_pylist() == sorted(set(values), key=lambda v: (v is None, v))
    assert both.counts.sum() == len(values)


def test_any_tree_of_additions_gives_the_same_table() -> None:
    keys = [pa.nulls(1), pa.nulls(1, pa.float64()), pa.array([7], pa.int32()), pa.array([7.0])]
    tables = keyed(*keys)
    whole = sum(tables)

    for a, b, c, d in permutations(tables):
        assert (a + b) + (c + d) == whole
        assert a + (b + (c + d)) == whole


def test_tables_that_do_not_fit_are_refused(table: ss.SketchTable) -> None:
    with pytest.raises(IncompatibleSketchesError, match="merge_by"):
        table + table.merge_by("shop")
    other = ss.sketch_by(X, by=SHOPS, spec=SPEC.prefix(10))
    with pytest.raises(IncompatibleSketchesError, match="different plans"):
        table.merge_by("shop") + ss.SketchTable(other.keys.rename_columns(["shop"]), other.sketches)
    with pytest.raises(DataError, match="cannot merge by 'city'"):
        table.merge_by("city")
    for names in ([], ["shop", "shop"]):
        with pytest.raises(DataError, match="merge_by must name columns of the key, each once"):
            table.merge_by(names)


def test_a_table_without_sketches_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "data.parquet")
    with pytest.raises(DataError, match=r"data.parquet: a table of sketches has a column 'sketch'"):
        ss.SketchTable.from_parquet(tmp_path / "data.parquet")
    for arrow, words in (
        (pa.table({"key": [1], "sketch": ["text"]}), "holds string, not bytes"),
        (pa.table({"sketch": [b""]}), "at least one column of keys.*Select the columns of the key"),
    ):
        with pytest.raises(DataError, match=words):
            ss.SketchTable.from_arrow(arrow)


def test_a_damaged_sketch_is_named_by_its_row(table: ss.SketchTable) -> None:
    arrow = table.to_arrow()
    data = arrow.column("sketch").to_pylist()
    data[4] = data[4][:-1] + bytes([data[4][-1] ^ 1])
    broken = arrow.set_column(3, "sketch", pa.array(data, pa.binary()))
    with pytest.raises(SketchFormatError, match="row 4 of the table"):
        ss.SketchTable.from_arrow(broken)


def test_a_file_that_is_not_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"no table")
    with pytest.raises(DataError, match=r"cannot read .*t.parquet' as a Parquet file"):
        ss.SketchTable.from_parquet(tmp_path / "t.parquet")


def test_a_key_named_count_cannot_be_stored(tmp_path: Path) -> None:
    rows = ss.sketch(np.ones((1, 2)), dataclasses.replace(SPEC, columns=None))
    table = ss.SketchTable(pa.table({"count": [1]}), (rows,))
    with pytest.raises(DataError, match="Rename it"):
        table.to_parquet(tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()
