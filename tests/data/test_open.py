"""The same numbers, whatever they come in; and what is refused as no data."""

from __future__ import annotations

import mmap
from types import SimpleNamespace
from unittest.mock import Mock

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from safetensors.numpy import save_file

from sketchshift.data import open_source
from sketchshift.errors import DataError


def only(**methods):
    """Something that has these methods and nothing else."""
    return SimpleNamespace(**methods)


def named(X):
    return {f"x{j}": column.copy() for j, column in enumerate(X.T)}


def table(X):
    return pa.table(named(X))


def parts(X):
    return [X[:1], X[1:1], X[1:]]


def saved(save, path, *written):
    save(path, *written)
    return path


def save_arrow(path, rows, codec=None, new=pa.ipc.new_file):
    with new(path, rows.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as file:
        file.write_table(rows, max_chunksize=5)


def save_stream(path, rows, codec=None):
    save_arrow(path, rows, codec, pa.ipc.new_stream)


def save_text(path, rows, delimiter=","):
    with pa.output_stream(path) as file:
        pyarrow.csv.write_csv(rows, file, pyarrow.csv.WriteOptions(delimiter=delimiter))


def save_parquet(path, rows):
    pq.write_table(rows, path, row_group_size=5)


def save_tensor(path, X):
    save_file({"v": X.copy()}, path)


ARRAYS = {
    "list": lambda X, _: list(X),
    "tuple": lambda X, _: tuple(X),
    "rows": lambda X, _: X,
    "columns": lambda X, _: np.asfortranarray(X),
    "backwards": lambda X, _: X[::-1].copy()[::-1],
    "every second": lambda X, _: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "npy": lambda X, folder: saved(np.save, folder / "c.npy", X),
    "npy by columns": lambda X, folder: saved(np.save, folder / "f.npy", np.asfortranarray(X)),
    "iterator of arrays": lambda X, _: iter(parts(X)),
}
WAYS = ARRAYS | {
    "holder": lambda X, _: only(__array__=lambda dtype=None, copy=None: X),
    "pandas": lambda X, _: pd.DataFrame(named(X), index=range(5, 5 + len(X))),
    "polars": lambda X, _: pl.DataFrame(named(X)),
    "narwhals": lambda X, _: nw.from_native(pl.DataFrame(named(X))),
    "iterator of polars": lambda X, _: (pl.DataFrame(named(part)) for part in parts(X)),
    "table": lambda X, _: table(X),
    "chunks": lambda X, _: pa.concat_tables(map(table, parts(X))),
    "list of tables": lambda X, _: list(map(table, parts(X))),
    "iterator of batches": lambda X, _: (pa.record_batch(named(part)) for part in parts(X)),
    "reader": lambda X, _: table(X).to_reader(max_chunksize=9),
    "dataset": lambda X, folder: ds.dataset(saved(save_parquet, folder / "d.parquet", table(X))),
    "C stream": lambda X, _: only(__arrow_c_stream__=table(X).__arrow_c_stream__),
    "C array": lambda X, _: only(__arrow_c_array__=pa.record_batch(named(X)).__arrow_c_array__),
    "duckdb": lambda X, _: duckdb.from_arrow(table(X)),
    "parquet": lambda X, folder: saved(save_parquet, folder / "x.parquet", table(X)),
    "arrow": lambda X, folder: saved(save_arrow, folder / "x.arrow", table(X)),
    "safetensors": lambda X, folder: saved(save_tensor, folder / "x.safetensors", X),
}


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    n=st.integers(1, 30),
    d=st.integers(1, 4),
    dtype=st.sampled_from(["?", "i1", "u2", "i4", "i8", "u8", "f4", "f8", "f2", "g", ">f8", ">i4"]),
    block_rows=st.sampled_from([None, 1, 7]),
    seed=st.integers(0, 9),
)
def test_the_same_numbers_are_read_from_whatever_holds_them(
    gather, tmp_path_factory, n, d, dtype, block_rows, seed
):
    """Values and dtype. Halves, long doubles and other byte orders are NumPy's alone."""
    X = np.abs(np.random.default_rng(seed).normal(scale=5, size=(n, d))).astype(dtype)
    ways = ARRAYS if dtype in ("f2", "g", ">f8", ">i4") else WAYS

    for name, way in ways.items():
        data = way(X, tmp_path_factory.mktemp("way"))
        values = gather(data, block_rows=block_rows)

        assert_array_equal(values, X, err_msg=name)
        assert values.dtype == X.dtype.newbyteorder("="), name


def test_data_without_rows_yield_no_blocks(tmp_path):
    nothing = np.empty((0, 3))
    for name in ("rows", "npy", "pandas", "polars", "narwhals", "table", "parquet", "safetensors"):
        source = open_source(WAYS[name](nothing, tmp_path))

        assert (source.n_rows, source.n_features, list(source)) == (0, 3, []), name


BY_NAME = {name: way for name, way in WAYS.items() if name not in ARRAYS} | {
    "csv": lambda X, folder: saved(save_text, folder / "x.csv", table(X)),
    "CSV": lambda X, folder: saved(save_text, folder / "X.CSV", table(X)),
    "tsv.gz": lambda X, folder: saved(save_text, folder / "x.tsv.gz", table(X), "\t"),
    "feather": lambda X, folder: saved(save_arrow, folder / "x.feather", table(X), "lz4"),
    "ipc": lambda X, folder: saved(save_stream, folder / "x.ipc", table(X), "zstd"),
}
del BY_NAME["holder"], BY_NAME["safetensors"]


@pytest.mark.parametrize("name", BY_NAME)
def test_columns_and_weights_are_chosen_by_name(gather, tmp_path, name):
    X = np.random.default_rng(0).normal(size=(20, 3))

    values, weights = gather(BY_NAME[name](X, tmp_path), columns=["x2", "x0"], weights="x1")

    assert_array_equal(values, X[:, [2, 0]])
    assert_array_equal(weights, X[:, 1])
    with pytest.raises(DataError, match=r"has no column 'z'\..* It has 'x0', 'x1', 'x2'"):
        list(open_source(BY_NAME[name](X, tmp_path), columns=["z"]))


def test_names_cannot_be_asked_of_an_array(tmp_path):
    ways = [WAYS[name](np.eye(3), tmp_path) for name in ("rows", "npy", "safetensors")]
    for data in (*ways, scipy.sparse.csr_array(np.eye(3))):
        with pytest.raises(DataError, match=r"no column names|no tensor 'a'|\['a'\] by name"):
            open_source(data, columns=["a"])
        with pytest.raises(DataError, match=r"no column names|.w. names a column.*as an array"):
            open_source(data, weights="w")


def test_a_damaged_file_is_named(tmp_path):
    for name in ("npy", "parquet", "arrow", "ipc", "safetensors"):
        path = (WAYS | BY_NAME)[name](np.eye(9), tmp_path)
        good = path.read_bytes()
        for content in (
            b"",
            b"hello world",
            good[:8],
            good[: len(good) // 2],
            good[:8] + b"\0" * 50 + good[-8:],
        ):
            path.write_bytes(content)

            with pytest.raises(DataError, match=rf"cannot read .*{path.name}: it seems damaged"):
                list(open_source(path))


def test_a_block_maps_its_own_rows_only(tmp_path):
    """Else the pages of the whole file would stay in memory."""
    for name in ("npy", "safetensors"):
        for block in open_source(WAYS[name](np.zeros((9000, 4)), tmp_path), block_rows=1000):
            window = block.values
            while not isinstance(window, mmap.mmap):
                window = window.base
            assert len(window) <= 1000 * 4 * 8 + mmap.ALLOCATIONGRANULARITY


def test_weights_are_an_array_where_the_rows_are_counted_and_else_a_column(gather, tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 3))
    for name in ("rows", "pandas", "polars", "narwhals", "table", "chunks", "C array"):
        weights = gather(WAYS[name](X, tmp_path), weights=range(20))[1]
        assert_array_equal(weights, np.arange(20))
        with pytest.raises(DataError, match=r"sample_weight has 3 entries but .* has 20 rows"):
            open_source(WAYS[name](X, tmp_path), weights=[1, 2, 3])
    for name in ("reader", "C stream", "dataset", "duckdb", "iterator of arrays", "parquet"):
        with pytest.raises(DataError, match=r"sample_weight cannot be an array.*its name"):
            open_source(WAYS[name](X, tmp_path), weights=np.ones(20))


REFUSED = [
    *((data, rf"type {type(data).__name__}\..*array.*sparse.*data frame.*Arrow.*path.*iterator")
      for data in (None, 3, b"bytes", {"a": [1.0]}, {1, 2}, np.ndarray)),
    ([], "no rows: the list is empty"),
    ((), "no rows: the tuple is empty"),
    ([1, 2, 3], r"reshape\(-1, 1\)"),
    ([[1, 2], [3]], "rows of equal length"),
    ([["a", "b"]], "text by numbers"),
    ([[None, 1]], "dtype object"),
    (["x.npy", np.eye(2)], r"mixes paths and other data \(item 0 is a path\)"),
    (only(__array__=Mock(side_effect=RuntimeError("elsewhere"))), "from SimpleNamespace: elsewhere"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_objects_that_are_no_rows_are_refused_with_what_to_do(data, message):
    with pytest.raises(ValueError, match=message) as error:
        open_source(data)
    assert error.type is DataError


def test_collections_on_many_machines_are_sent_to_functions_that_take_them():
    for module in ("dask.array.core", "pyspark.sql", "ray.data"):
        collection = type("Collection", (), {"__module__": module})()

        with pytest.raises(
            DataError, match=r"a (dask|pyspark|ray) coll.*here.*Use ss\.plan, ss\.sk"
        ):
            open_source(collection)
