"""Files of tables: small ones that would fill the memory, and ones that say what is not so."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift.errors import DataError, SketchFormatError
from sketchshift.sketch import stored

SPEC = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=0.5)
X = np.random.default_rng(1).normal(size=(60, 2))
NAMES = ["count", "plan", "sketch"]
KEYS = np.repeat(["a", "b", "c"], [10, 20, 30])

# VmHWM and not ru_maxrss, in which the memory of the process that started this one may be left
MEASURE = """
import re, sys
from sketchshift.cli.main import main
import click
try:
    main(sys.argv[1:], standalone_mode=False)
except (SystemExit, click.ClickException, Exception) as error:
    print(type(error).__name__, error, file=sys.stderr)
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
"""


@pytest.fixture(scope="module")
def table():
    return ss.sketch_by(X, by=KEYS, spec=SPEC)


def megabytes(*arguments):
    """Peak resident memory of a command in a process of its own, and what it said."""
    words = [sys.executable, "-c", MEASURE, *map(str, arguments)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return int(done.stdout.splitlines()[-1]) / 1000, done.stdout + done.stderr


def row_of(sketch):
    """Plan and slice of a sketch, as a row of a table has them."""
    (row,) = ss.SketchTable.of(pa.table({"key": [0]}), [sketch]).to_arrow().to_pylist()
    return row["plan"], row["sketch"]


def repeated(value, n):
    """Make a column that takes the room of one value in a file."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([value]))


@pytest.fixture(scope="module")
def bomb(tmp_path_factory):
    """One sketch, 20,000 times: a dictionary page and a number a row."""
    path, n = tmp_path_factory.mktemp("bomb") / "bomb.parquet", 20_000
    plan, data = row_of(ss.sketch(X, ss.SketchSpec(2, 4000, 0.5)))
    rows = {"day": np.arange(n), "plan": repeated(plan, n), "sketch": repeated(data, n)}
    rows = pa.table(rows)
    pq.write_table(rows, path, store_schema=False)
    assert path.stat().st_size < 200_000
    return path


@pytest.mark.thorough
def test_a_small_file_of_many_copies_is_inspected_and_merged_in_little_memory(bomb, tmp_path):
    """It was 4.1 GB."""
    plain, _ = megabytes("inspect", "--help")

    for words, answer in (
        (["inspect", bomb, "--json"], '"n_slices": 20000'),
        (["merge", bomb, "-o", tmp_path / "all.sketch"], "1,200,000 rows"),
    ):
        peak, said = megabytes(*words)
        assert answer in said
        assert peak < plain + 300


def varint(value, length=None):
    """Thrift's compact integer, prolonged by groups of no bits to a length."""
    groups = [2 * value >> 7 * i & 127 for i in range(length or -(-(2 * value).bit_length() // 7))]
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])


@pytest.mark.thorough
def test_a_file_whose_footer_understates_its_sizes_is_read_in_little_memory(tmp_path):
    """A sketch of 0.6 MB, 1,000 times; the footer says that all of them have 8 bytes."""
    path, n = tmp_path / "t.parquet", 1000
    plan, data = row_of(ss.sketch(X, ss.SketchSpec(2, 40_000, 0.5)))
    rows = {"day": np.arange(n), "plan": repeated(plan, n), "sketch": repeated(data, n)}
    rows = pa.table(rows)
    pq.write_table(rows, path, store_schema=False)
    stated = varint(pq.read_metadata(path).row_group(0).total_byte_size)
    path.write_bytes(path.read_bytes().replace(stated, varint(8, len(stated))))
    assert pq.read_metadata(path).row_group(0).total_byte_size == 8
    plain, _ = megabytes("inspect", "--help")

    peak, said = megabytes("inspect", path, "--json")

    assert f'"n_slices": {n}' in said
    assert peak < plain + 300


def test_more_than_is_allowed_is_refused_with_its_size(bomb):
    """1.3 GB of sketches, if all were held."""
    words = r"bomb.parquet: .* about 1,28\d,\d{3},\d{3} bytes, and at most 10,000,000 bytes"
    with pytest.raises(DataError, match=words + ".*where, --where.*max_bytes"):
        ss.load(bomb, max_bytes=10_000_000)
    some = ss.load(bomb, where="day < 5")
    assert len(some) == 5


def test_the_argument_allows_more_and_less(table, tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pq.write_table(table.to_arrow(), path, use_dictionary=False, row_group_size=1)
    footer = pq.read_metadata(path)
    n_bytes = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))

    assert ss.load(path, max_bytes=n_bytes) == table
    one = ss.load(path, where="key = 'a'", max_bytes=n_bytes // 2)
    assert one == table.where("key = 'a'")
    with pytest.raises(ss.errors.SpecError, match="max_bytes"):
        ss.load(path, max_bytes=-1)
    # whole sketches are written one by one: the footer says what all of them take
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    for most in (n_bytes // 2, n_bytes - 1):
        with pytest.raises(DataError, match=rf"at most {most:,} bytes are held"):
            ss.load(path, max_bytes=most)


def test_a_key_that_would_fill_the_memory_is_refused(table, tmp_path, monkeypatch):
    """A text of a megabyte, written once, for each of 100 rows."""
    plan, data = row_of(table.sketches[0])
    columns = {"text": b"x" * 2**20, "plan": plan, "sketch": data}
    rows = pa.table({name: repeated(value, 100) for name, value in columns.items()})
    pq.write_table(rows, tmp_path / "t.parquet", store_schema=False)
    monkeypatch.setattr(stored, "MOST_BYTES", 20_000_000)

    with pytest.raises(DataError, match="and at most 20,000,000 bytes are held"):
        stored.summarise_file(tmp_path / "t.parquet")


@pytest.mark.parametrize("codec", ["none", "zstd", "brotli"])
def test_a_large_row_group_is_refused_before_it_is_read(codec, tmp_path, monkeypatch):
    rows = pa.table({"key": [1], "plan": ["{}"], "sketch": [b"\0" * 3_000_000]})
    pq.write_table(rows, tmp_path / "t.parquet", compression=codec, use_dictionary=False)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    monkeypatch.setattr(stored, "MOST_BYTES", 1_000_000)

    with pytest.raises(DataError, match=r"a row group of 3,000,1\d\d bytes, and at most 1,0"):
        ss.load(tmp_path / "t.parquet", where="key = 2", max_bytes=1)


def test_more_rows_than_sketches_could_be_held_are_refused(tmp_path):
    """Missing ones take no room in a file."""
    n = 5_000_000
    columns = {"plan": pa.nulls(n, pa.string()), "sketch": pa.nulls(n, pa.binary())}
    rows = pa.table({"key": np.zeros(n, np.int8)} | columns)
    pq.write_table(rows, tmp_path / "t.parquet")

    with pytest.raises(DataError, match=r"5,000,000 rows, and at most 4,194,304 are read"):
        ss.load(tmp_path / "t.parquet", where="key = 2")


def test_nested_keys_are_refused_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", None)
    rows = pa.table({"key": [{"a": 1}], "plan": ["{}"], "sketch": [b""]})
    pq.write_table(rows, tmp_path / "t.parquet")

    with pytest.raises(DataError, match="a key cannot hold"):
        ss.load(tmp_path / "t.parquet")


FORGED = {
    "more": [10, 2000, 30],
    "fewer": [10, 2, 30],
    "missing": [10, None, 30],
    "a fraction": [10.0, 20.5, 30.0],
}


@pytest.mark.parametrize("where", [None, "count > 15", "count < 15", "key = 'b'"])
@pytest.mark.parametrize("counts", FORGED.values(), ids=FORGED)
def test_counts_that_differ_from_the_sketches_are_refused(counts, where, table):
    forged = table.to_arrow().set_column(1, "count", pa.array(counts))

    with pytest.raises(
        SketchFormatError,
        match=r"row \d of the table: its count is .*, and its sketch has \d+ rows",
    ):
        ss.SketchTable.from_arrow(forged, where=where)


@pytest.mark.parametrize("counts", [["10", "20", "30"], [None] * 3, [[1], [], []]])
def test_counts_that_are_no_numbers_are_refused(counts, table):
    forged = table.to_arrow().set_column(1, "count", pa.array(counts))

    with pytest.raises(DataError, match=r"column 'count' holds .* Leave it out|cannot hold list"):
        ss.SketchTable.from_arrow(forged)


BEYOND = {
    "a day of the year 12000": pa.array([3_700_000] * 3, "date32"),
    "a time of that year": pa.array([2**48] * 3, "timestamp[s]"),
    "bytes that are no text": pa.array([b"\xff"] * 3).cast("string", safe=False),
}


@pytest.mark.parametrize("keys", BEYOND.values(), ids=BEYOND)
def test_keys_that_python_has_no_value_for_are_refused(keys, table, tmp_path):
    arrow = table.to_arrow().set_column(0, "key", keys)
    pq.write_table(arrow, tmp_path / "t.parquet")

    for read in (ss.load, stored.summarise_file):
        with pytest.raises(DataError, match="the key 'key' holds a value that Python cannot hold"):
            read(tmp_path / "t.parquet")


def test_a_name_that_the_table_needs_is_no_key(table):
    with pytest.raises(DataError, match="a key cannot be named '__row__'"):
        ss.SketchTable.from_arrow(table.to_arrow().rename_columns(["__row__", *NAMES]))


@pytest.mark.parametrize("name", [".a", "[0]", "a.b", "0", "row", "row_list", "__order__"])
def test_odd_names_are_keys(name, table):
    """Arrow takes some of them for paths into nested columns."""
    odd = table.to_arrow().rename_columns([name, *NAMES])
    data = pa.table({name: KEYS, "x": X[:, 0], "y": X[:, 1]})

    assert ss.SketchTable.from_arrow(odd, where=f"\"{name}\" = 'b'").sketches == (table["b"],)
    assert ss.sketch_by(data, name, SPEC)["b"] == table["b"]


@pytest.mark.parametrize("number", range(200))
def test_a_damaged_footer_is_read_or_refused(number, table, tmp_path):
    """Some of them end the process, if pyarrow is asked for a column chunk."""
    rng, path = np.random.default_rng(number), tmp_path / "t.parquet"
    table.save(path)
    data = bytearray(path.read_bytes())
    for _ in range(3):
        data[rng.integers(len(data) - 2000, len(data))] = rng.integers(256)
    path.write_bytes(data)

    for read in (ss.load, stored.summarise_file):
        try:
            read(path)
        except (DataError, SketchFormatError) as error:
            assert "t.parquet" in str(error)  # noqa: PT017


def test_counts_that_sql_made_wider_are_read(table):
    arrow = table.to_arrow()

    for kind in (pa.int32(), pa.uint64(), pa.float64(), pa.decimal128(38, 0)):
        wider = arrow.set_column(1, "count", arrow["count"].cast(kind))
        assert ss.SketchTable.from_arrow(wider, where="count > 15") == table.where("count > 15")


def test_a_condition_on_counts_needs_no_column_of_them_and_no_rows(table):
    arrow = table.to_arrow().drop_columns(["count"])

    assert ss.SketchTable.from_arrow(arrow, where="count > 15") == table.where("count > 15")
    assert len(ss.SketchTable.from_arrow(arrow.slice(0, 0), where="key = 'a'")) == 0
    with pytest.raises(DataError, match="Did you mean 'count'"):
        ss.SketchTable.from_arrow(arrow.slice(0, 0), where="coutn > 15")


OPTIONS = {
    "pages of version 2": {"data_page_version": "2.0"},
    "a row a page": {"data_page_size": 1},
    "row groups of one": {"row_group_size": 1},
    "checksums": {"write_page_checksum": True},
    "an index of pages": {"write_page_index": True},
    "shared prefixes": {"use_dictionary": False, "column_encoding": {"sketch": "DELTA_BYTE_ARRAY"}},
}
WRITERS = {name: partial(pq.write_table, **options) for name, options in OPTIONS.items()} | {
    "Polars": lambda rows, path: pl.from_arrow(rows).write_parquet(path),
    "pandas": lambda rows, path: rows.to_pandas().to_parquet(path),
    "DuckDB": lambda rows, path: duckdb.from_arrow(rows).write_parquet(str(path)),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_files_of_other_writers_are_read(write, table, tmp_path):
    write(table.to_arrow(), tmp_path / "t.parquet")

    assert ss.load(tmp_path / "t.parquet") == table


def test_files_of_two_plans_in_a_folder_are_refused_and_so_are_keys_in_names_of_folders(tmp_path):
    for seed in (0, 1):
        spec = ss.SketchSpec(2, 10, 1.0, seed=seed)
        (tmp_path / "a").mkdir(exist_ok=True)
        ss.sketch_by(X[:40], np.arange(40) % 2, spec).save(tmp_path / "a" / f"{seed}.parquet")
    with pytest.raises(SketchFormatError, match="made with different plans"):
        ss.load(tmp_path / "a")

    (tmp_path / "b" / "shop=1").mkdir(parents=True)
    ss.sketch_by(X[:40], np.arange(40) % 2, SPEC).save(tmp_path / "b" / "shop=1" / "0.parquet")
    with pytest.raises(DataError, match=r"'shop=1/0\.parquet' is named after a key"):
        ss.load(tmp_path / "b")
    (tmp_path / "c").mkdir()
    with pytest.raises(DataError, match="the folder has no Parquet files"):
        ss.load(tmp_path / "c")
