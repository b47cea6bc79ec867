"""Values in the names of folders: keys and conditions, as pyarrow and DuckDB find them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import sketchshift as ss

SPEC = ss.SketchSpec(2, 16, bandwidth=1.0, columns=("x", "y"))
KEYS = pa.schema({"day": pa.string(), "month": pa.int64(), "shop": pa.string()})


def write_events(folder, formats=("parquet",)):
    """Files in folders of days, months and shops; the table that they are."""
    rng, n = np.random.default_rng(0), 40
    columns = {
        "x": rng.normal(size=n),
        "y": rng.normal(size=n),
        "day": rng.choice(["2026-01-01", "2026-01-02"], n),
        "month": rng.choice([1, 2, 10], n),
        "shop": pa.array(["A b", "7", None, "x/y:z", "ö"] * (n // 5)),
    }
    table = pa.table(columns)
    levels = ds.partitioning(KEYS, flavor="hive")
    for i, name in enumerate(formats):
        part = table[i * n // len(formats) : (i + 1) * n // len(formats)]
        ds.write_dataset(
            part,
            folder,
            format=name,
            partitioning=levels,
            basename_template=f"{{i}}.{name}",
            existing_data_behavior="overwrite_or_ignore",
        )
    return table


def test_folders_are_what_other_readers_find(tmp_path):
    """Of dates, DuckDB makes dates and pyarrow text; here they are text, as in text files."""
    duckdb = pytest.importorskip("duckdb")
    folder = tmp_path / "events"
    write_events(folder)
    query = f"FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
    by_duckdb = duckdb.sql(f"SELECT * REPLACE (day::VARCHAR AS day) {query}").to_arrow_table()
    by_arrow = ds.dataset(folder, partitioning="hive").to_table()

    for by in (["day", "month"], ["month", "shop"]):
        found = ss.sketch_by(folder, by, SPEC)
        assert found == ss.sketch_by(by_arrow, by, SPEC)
        assert found == ss.sketch_by(by_duckdb, by, SPEC)
    for where in ("month >= 2", "month = 10 AND day > '2026-01-01'", "shop = 'A b'"):
        rows = duckdb.sql(f"SELECT x, y {query} WHERE {where}").to_arrow_table()
        assert len(rows)
        assert ss.sketch(folder, SPEC, where=where) == ss.sketch(rows, SPEC)


def test_folders_of_every_format_are_keys_and_conditions_on_them_choose_rows(tmp_path):
    """The folders were written by pyarrow."""
    folder = tmp_path / "events"
    table = write_events(folder, ("parquet", "csv", "arrow"))
    for by in ("shop", ["shop", "month"], ["month(day)", "shop"]):
        assert ss.sketch_by(folder, by, SPEC) == ss.sketch_by(table, by, SPEC, columns=["x", "y"])
    for where in ("shop IS NULL", "day <> '2026-01-02' AND x > 0 OR month IN (1, 10)"):
        expected = ss.sketch(table, SPEC, where=where)
        assert 0 < expected.count < len(table)
        assert ss.sketch(folder, SPEC, where=where) == expected
        assert ss.sketch(f"{folder}/day=*", SPEC, where=where) == expected
        assert ss.sketch_by(folder, "month", SPEC, where=where).merge() == expected
    given = {"n_clusters": 2, "columns": ["x", "y"], "standardize": True}
    october = table.filter(ds.field("month") == 10)
    assert ss.plan(folder, where="month = 10", **given).rows == ss.plan(october, **given).rows


def test_a_column_of_the_file_comes_before_the_name_of_its_folder(tmp_path):
    """As in tables of lakes."""
    table = pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0], "day": ["mo", "tu"]})
    (tmp_path / "day=1").mkdir()
    pq.write_table(table, tmp_path / "day=1" / "a.parquet")

    assert ss.sketch_by(tmp_path, "day", SPEC) == ss.sketch_by(table, "day", SPEC)
    assert ss.sketch(tmp_path, SPEC, where="day = 'tu'").count == 1


def test_what_folders_cannot_be_is_said(tmp_path):
    write_events(tmp_path / "events")

    for asked in ({"columns": ["x", "month"]}, {"columns": ["x"], "sample_weight": "month"}):
        with pytest.raises(
            ss.errors.DataError, match=r"'month': it stands in the names of folders alone"
        ):
            ss.plan(tmp_path / "events", 2, **asked)
    with pytest.raises(ss.errors.DataError, match=r"no column 'dya'\. Did you mean 'day'\?"):
        ss.sketch_by(tmp_path / "events", "dya", SPEC)
    pq.write_table(pa.table({"x": [1.0], "y": [2.0]}), tmp_path / "events" / "no level.parquet")
    with pytest.raises(ss.errors.DataError, match=r"no level\.parquet has no column 'day'"):
        ss.sketch_by(tmp_path / "events", "day", SPEC)


def test_values_of_a_followed_folder_are_text_whatever_comes(tmp_path):
    """The first that come are whole numbers, and a sketch of these alone has them so."""

    def put(value):
        folder = tmp_path / "in" / f"shop={value}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"x": [1.0, 2.0], "y": [3.0, 4.0]}), folder / "a.parquet")

    def follow(name, **options):
        return ss.live.follow(tmp_path / "in", tmp_path / name, **options)

    put("1")
    put("10")
    assert ss.sketch_by(tmp_path / "in", "shop", SPEC).keys["shop"].to_pylist() == [1, 10]
    follow("cube", spec=SPEC, by="shop")
    follow("some", spec=SPEC, by="shop", where="shop >= 2")
    put("2")
    assert follow("cube").table().keys["shop"].to_pylist() == ["1", "10", "2"]
    assert follow("some").table().keys["shop"].to_pylist() == ["10", "2"]
    put("B7")
    (tmp_path / "in" / "shop=10" / "a.parquet").unlink()
    assert follow("cube").table() == ss.sketch_by(tmp_path / "in", "shop", SPEC)
    with pytest.raises(ss.errors.DataError, match="'B7', which is no number"):
        follow("some")


def test_files_whose_folders_cannot_meet_a_condition_are_left_after_a_block(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 2))
    taken = Counter()

    def open_slowly(path, request):
        for part in np.split(X, 10):
            taken[path.parent.name] += 1
            yield pa.table({"x": part[:, 0], "y": part[:, 1]})

    ss.data.register_format(".slow", open_slowly)
    for month in range(3):
        (tmp_path / f"month={month}").mkdir()
        (tmp_path / f"month={month}" / "a.slow").touch()

    for where, rows, n_most in (
        ("month = 1", X, 2),
        ("(month > 0 AND x < 0 AND month <> 2)", X[X[:, 0] < 0], 2),
        ("month = 1 OR x > 100", X, 11),
    ):
        taken.clear()
        assert ss.sketch(tmp_path, SPEC, where=where) == ss.sketch(rows, SPEC)
        assert taken["month=1"] == 11  # one tells the columns
        assert max(taken["month=0"], taken["month=2"]) == n_most
