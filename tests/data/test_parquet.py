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


def test_only_the_columns_asked_for_are_read(check_rows, path):
    """The data of all others are overwritten, and what is known at once stands in the footer."""
    content, footer = bytearray(path.read_bytes()), pq.read_metadata(path)
    for group in range(footer.num_row_groups):
        for j in (2, 3):
            column = footer.row_group(group).column(j)
            begin, size = column.data_page_offset, column.total_compressed_size
            content[begin : begin + size] = b"\xff" * size
    path.write_bytes(content)

    check_rows(path, X[:, [1, 0]], columns=["b.c", "a"])
    assert open_source(path, columns=["b"]).n_rows == 20
    with pytest.raises(DataError, match=r"x\.parquet has no column 'z'"):
        open_source(path, columns=["z"])
    with pytest.raises(DataError, match=r"'t' \(string\).*columns=\['a', 'b\.c', 'b'\]"):
        open_source(path)
    with pytest.raises(DataError, match=r"cannot read .*x\.parquet: it seems damaged"):
        list(open_source(path, columns=["b"]))
