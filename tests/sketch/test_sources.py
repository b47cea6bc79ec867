"""One dataset, every form it can have, the same bytes: tests/data has the forms one by one."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import sketchshift as ss

SPEC = ss.SketchSpec(3, 40, bandwidth=1.0, columns=("height", "weight", "age"))
VALUES = np.random.default_rng(0).normal(size=(5000, 3))
WEIGHTS = np.linspace(0, 2, 5000)
TABLE = pa.table(
    dict(zip(("height", "weight", "age"), VALUES.T, strict=True))
    | {"name": ["x"] * 5000, "w": WEIGHTS}
).select(["name", "w", "age", "weight", "height"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    (folder / "parts").mkdir()
    for i in range(2):
        part = TABLE.slice(2500 * i, 2500)
        pq.write_table(part, folder / "parts" / f"part-{i}.parquet", row_group_size=700)
    with pa.CompressedOutputStream(str(folder / "all.csv.gz"), "gzip") as file:
        pa.csv.write_csv(TABLE, file)
    return folder


NAMED = {
    "pandas": lambda folder: TABLE.to_pandas(),
    "polars, batch by batch": lambda folder: pl.scan_parquet(
        folder / "parts" / "*.parquet"
    ).collect_batches(chunk_size=500),
    "arrow reader": lambda folder: TABLE.to_reader(max_chunksize=99),
    "duckdb": lambda folder: duckdb.connect().sql(
        f"SELECT age, w, height, weight FROM '{folder}/parts/*.parquet' ORDER BY age"
    ),
    "duckdb batches": lambda folder: duckdb.sql(f"FROM '{folder}/parts/*.parquet'").to_arrow_reader(
        999
    ),
    "parquet folder": lambda folder: folder / "parts",
    "csv.gz": lambda folder: folder / "all.csv.gz",
}


@pytest.mark.parametrize("kind", NAMED)
def test_every_source_of_the_same_named_rows_gives_the_same_bytes(kind, folder):
    expected = ss.sketch(VALUES, SPEC, sample_weight=WEIGHTS)

    assert ss.sketch(NAMED[kind](folder), SPEC) == ss.sketch(VALUES, SPEC)
    assert ss.sketch(NAMED[kind](folder), SPEC, sample_weight="w") == expected


@pytest.mark.parametrize(
    "data",
    [VALUES.tolist(), pd.DataFrame(VALUES), (VALUES[i : i + 9] for i in range(0, 5000, 9))],
    ids=["nested lists", "pandas without names", "generator"],
)
def test_rows_without_names_are_taken_in_their_order(data):
    assert ss.sketch(data, SPEC) == ss.sketch(VALUES, SPEC)


def test_a_missing_value_in_a_file_is_named_by_file_column_and_row(tmp_path):
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table(dict.fromkeys(SPEC.rows.names, pa.array([1.0, 2.0, None]))), path)

    with pytest.raises(
        ss.errors.InvalidRowsError, match=r"row 2 of .*events\.parquet has nan in column 'height'"
    ):
        ss.sketch(path, SPEC)
