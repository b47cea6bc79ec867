from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from numpy.testing import assert_array_equal

from sketchshift.data import open_source
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(size=(20, 3))
TABLE = pa.table({"a": X[:, 0], "t": ["text"] * 20, "b": X[:, 1], "c": X[:, 2]})


def test_blocks_outlive_the_map_they_came_from(tmp_path):
    pyarrow.feather.write_feather(TABLE, tmp_path / "x.arrow", "uncompressed", chunksize=9)

    blocks = [block.values for block in open_source(tmp_path, columns=["a"], block_rows=2)]

    assert_array_equal(np.concatenate(blocks)[:, 0], X[:, 0])


def test_the_first_version_of_feather_is_refused(tmp_path):
    (tmp_path / "x.feather").write_bytes(b"FEA1" + b"\0" * 20)

    with pytest.raises(DataError, match=r"x\.feather: it is Feather version 1"):
        open_source(tmp_path)
