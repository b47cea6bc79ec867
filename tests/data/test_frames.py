from __future__ import annotations

from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from sketchshift.data import open_source
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(size=(20, 3))


MAKERS = (pd.DataFrame, pl.DataFrame, lambda data: nw.from_native(pl.DataFrame(data)))


@pytest.mark.parametrize("make", MAKERS)
def test_booleans_and_integers_are_numbers_beside_floats(check_rows, make):
    data = {"f": X[:, 0], "i": np.arange(20), "b": np.arange(20) % 2 == 0}

    check_rows(make(data), np.stack(list(data.values()), axis=1))


COLUMNS = [
    *(pd.array([1, None, 3], dtype=dtype) for dtype in ("Int64", "UInt8", "Float32")),
    pd.array([1, None, 3], dtype="int64[pyarrow]"),
    *(pd.Categorical([1, None, 3], ordered=is_ordered) for is_ordered in (True, False)),
    pd.arrays.SparseArray([1, np.nan, 3]),
    *(np.array([1, np.nan, 3], dtype) for dtype in (np.float16, np.longdouble)),
]


def test_missing_values_of_every_pandas_dtype_become_nan(gather, check_rows):
    for column in COLUMNS:
        frame = pd.DataFrame({"x": column, "y": [1.0, 2.0, 3.0]})

        check_rows(frame, [[1, 1], [np.nan, 2], [3, 3]])
        assert_array_equal(gather(frame, weights="x")[1], [1, np.nan, 3])
    bits = pd.DataFrame({"x": pd.array([True, None, False], dtype="boolean")})
    check_rows(bits, [[1], [np.nan], [0]])


def test_missing_values_of_polars_become_nan(check_rows):
    frame = pl.DataFrame(
        {"i": [1, None], "b": [None, True], "f": [None, 2.0], "d": [Decimal("1.25"), None]}
    )

    check_rows(frame, [[1, np.nan, np.nan, 1.25], [np.nan, 1, 2, np.nan]])


def test_labels_that_are_not_text_count_as_no_names(check_rows):
    frame = pd.DataFrame(X)

    assert open_source(frame).columns is None
    check_rows(frame, X, block_rows=7)
    with pytest.raises(DataError, match=r"labels are not all text\) has no column names"):
        open_source(frame, columns=["0"])


TEXT = {"t": ["x"] * 20, "d": np.full(20, np.datetime64("2020-01-01", "us"))}
NO_NUMBERS = [
    [1, "x"],
    [1j, 2j],
    pd.Categorical(["u", "v"]),
    [Decimal(1), Decimal(2)],
    [["a"], ["b"]],
]
LAZY = pl.LazyFrame({"a": [1.0]})
REFUSED = [
    *((make({"a": X[:, 0]} | TEXT), r"'t' \(String\), 'd' \(Dat.*=\['a'") for make in MAKERS),
    *((pd.DataFrame({"x": x, "y": [1, 2]}), r"'x' \(.*columns=\['y'\]") for x in NO_NUMBERS),
    (pd.DataFrame(np.eye(2), columns=["a", "a"]), "unique column names"),
    (LAZY, r'\.collect\(engine="streaming"\)'),
    (nw.from_native(LAZY), r'\.collect\(engine="streaming"\)'),
    (pd.Series([1.0]), r"it is one column.*\.to_frame\(\)"),
    (pl.Series([1.0]), r"it is one column.*\.to_frame\(\)"),
    (pd.DataFrame(index=range(3)), "no columns to read"),
]


@pytest.mark.parametrize(("frame", "words"), REFUSED)
def test_what_is_no_table_of_numbers_is_refused(frame, words):
    with pytest.raises(DataError, match=words):
        open_source(frame)
