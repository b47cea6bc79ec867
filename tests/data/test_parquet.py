from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sketchshift.data import open_source
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(size=(20, 3))
TABLE = pa.table({"a": X[:, 0], "b.c": X[:, 1], "b": X[:, 2], "t": ["text"] * 20})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE, path, row_group_size=6, compression="none", use_dictionary=False)
    return path


def test_rows_are_counted_and_columns_checked_without_reading(path):
    """Both are in the footer: every byte of data is overwritten here."""
    first = min(pq.read_metadata(path).row_group(0).column(j).data_page_offset for j in range(4))
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[first:-footer] = b"\xff" * (len(content) - footer - first)
    path.write_bytes(content)

    assert open_source(path, columns=["a"]).n_rows == 20
    with pytest.raises(DataError, match=r"x\.parquet has no column 'z'"):
        open_source(path, columns=["z"])
    with pytest.raises(DataError, match=r"'t' \(string\).*columns=\['a', 'b\.c', 'b'\]"):
        open_source(path)


def test_a_column_not_asked_for_is_not_touched(check_rows, path):
    """Projection reaches the reader: a broken neighbour does no harm."""
    column = pq.read_metadata(path).row_group(1).column(2)
    content = bytearray(path.read_bytes())
    begin = column.data_page_offset
    content[begin : begin + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)

    check_rows(path, X[:, :2], columns=["a", "b.c"])
    with pytest.raises(DataError, match=r"cannot read .*x\.parquet: it seems damaged"):
        list(open_source(path, columns=["b"]))


def test_batches_do_not_hold_row_groups(tmp_path):
    """One row group of 32 MB is read with a few MB of Arrow memory."""
    path = tmp_path / "big.parquet"
    numbers = np.random.default_rng(0).normal(size=2_000_000)
    table = pa.table({"a": numbers, "b": numbers})
    pq.write_table(table, path, row_group_size=2_000_000, compression="none", use_dictionary=False)
    del table
    before = pa.total_allocated_bytes()

    peak = max(pa.total_allocated_bytes() for _ in open_source(path, block_rows=10_000))

    assert peak - before < 12e6
