"""One dataset, every form it can have, the same bytes."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse

import sketchshift as ss

COLUMNS = ("height", "weight", "age")
SPEC = ss.SketchSpec(3, 40, bandwidth=1.0, columns=COLUMNS)


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(5000, 3))


@pytest.fixture(scope="module")
def table(values) -> pa.Table:
    named = dict(zip(COLUMNS, values.T, strict=True))
    names = {"name": ["x"] * len(values), "w": weights_of(values)}
    return pa.table(names | {c: named[c] for c in reversed(COLUMNS)})


def weights_of(values) -> np.ndarray:
    return np.linspace(0, 2, len(values))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table, values):
    folder = tmp_path_factory.mktemp("files")
    half = table.slice(0, 2500), table.slice(2500)
    (folder / "parts").mkdir()
    for i, part in enumerate(half):
        pa.parquet.write_table(part, folder / "parts" / f"part-{i}.parquet", row_group_size=700)
    pa.parquet.write_table(table, folder / "all.parquet")
    pa.csv.write_csv(table, folder / "all.csv")
    with pa.CompressedOutputStream(str(folder / "all.csv.gz"), "gzip") as file:
        pa.csv.write_csv(table, file)
    pa.feather.write_feather(table, folder / "all.arrow", compression="zstd")
    np.save(folder / "all.npy", values)
    return folder


IN_MEMORY = {
    "memmap": lambda values, table, folder: np.load(folder / "all.npy", mmap_mode="r"),
    "nested lists": lambda values, table, folder: values.tolist(),
    "csr": lambda values, table, folder: scipy.sparse.csr_array(values),
    "csc": lambda values, table, folder: scipy.sparse.csc_matrix(values),
    "pandas": lambda values, table, folder: table.to_pandas(),
    "pandas without names": lambda values, table, folder: pd.DataFrame(values),
    "polars": lambda values, table, folder: pl.from_arrow(table),
    "arrow table": lambda values, table, folder: table,
    "arrow reader": lambda values, table, folder: table.to_reader(max_chunksize=99),
    "duckdb": lambda values, table, folder: duckdb.sql(f"from '{folder}/parts/*.parquet'"),
    "duckdb query": lambda values, table, folder: duckdb.connect().sql(
        f"select age, w, height, weight from '{folder}/all.parquet' where age = age order by age"
    ),
    "duckdb batches": lambda values, table, folder: duckdb.sql(
        f"from '{folder}/all.parquet'"
    ).to_arrow_reader(999),
    "polars, streamed": lambda values, table, folder: pl.scan_parquet(
        folder / "parts" / "*.parquet"
    ).collect(engine="streaming"),
    "polars, batch by batch": lambda values, table, folder: pl.scan_parquet(
        folder / "parts" / "*.parquet"
    ).collect_batches(chunk_size=500),
    "batches": lambda values, table, folder: iter(table.to_batches(max_chunksize=77)),
    "generator": lambda values, table, folder: (values[i : i + 9] for i in range(0, 5000, 9)),
    "parquet": lambda values, table, folder: folder / "all.parquet",
    "parquet folder": lambda values, table, folder: folder / "parts",
    "parquet glob": lambda values, table, folder: str(folder / "parts" / "part-*.parquet"),
    "list of paths": lambda values, table, folder: sorted((folder / "parts").iterdir()),
    "csv": lambda values, table, folder: folder / "all.csv",
    "csv.gz": lambda values, table, folder: folder / "all.csv.gz",
    "arrow file": lambda values, table, folder: folder / "all.arrow",
    "npy": lambda values, table, folder: folder / "all.npy",
}


WITHOUT_NAMES = ("memmap", "nested lists", "csr", "csc", "pandas without names", "generator", "npy")


@pytest.mark.parametrize("kind", list(IN_MEMORY))
def test_every_source_of_the_same_rows_gives_the_same_bytes(kind, values, table, folder):
    data = IN_MEMORY[kind](values, table, folder)
    assert ss.sketch(data, SPEC).to_bytes() == ss.sketch(values, SPEC).to_bytes()

    if kind not in WITHOUT_NAMES:
        expected = ss.sketch(values, SPEC, sample_weight=weights_of(values))
        data = IN_MEMORY[kind](values, table, folder)
        assert ss.sketch(data, SPEC, sample_weight="w").to_bytes() == expected.to_bytes()


def test_a_missing_value_in_a_file_is_named_by_file_column_and_row(tmp_path):
    path = tmp_path / "events.parquet"
    column = pa.array([1.0, 2.0, None])
    pa.parquet.write_table(pa.table(dict.fromkeys(COLUMNS, column)), path)

    with pytest.raises(
        ss.errors.InvalidRowsError, match=r"row 2 of .*events\.parquet has nan in column 'height'"
    ):
        ss.sketch(path, SPEC)
