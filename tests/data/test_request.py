from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sketchshift.data import open_source
from sketchshift.data.source import Request, listed, make_request
from sketchshift.errors import DataError


@pytest.mark.parametrize(
    ("d", "rows"), [(1, 65536), (8, 32768), (9, 29127), (2048, 256), (10**6, 256)]
)
def test_a_block_is_about_two_mebibytes_within_bounds(d, rows):
    assert Request().rows_for(d) == rows


def test_the_number_of_rows_can_be_asked_for():
    assert make_request(None, None, np.int64(7)).rows_for(10**6) == 7


@pytest.mark.parametrize("rows", [0, -1, 2.5, "7"])
def test_a_number_of_rows_must_be_a_positive_integer(rows):
    with pytest.raises(DataError, match=r"block_rows must be a positive integer\. Got"):
        make_request(None, None, rows)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("height", r"columns=\['height'\]"),
        ([], "empty list"),
        (["a", 3], "Got 3 instead"),
        (["a", "b", "a"], "names 'a' more than once"),
    ],
)
def test_columns_must_be_distinct_names(columns, message):
    with pytest.raises(DataError, match=message):
        make_request(columns, None, None)


@pytest.mark.parametrize("weights", [np.ones((2, 2)), ["a", "b"], 3.0, [1j], [[1], [2, 3]]])
def test_weights_must_be_a_name_or_a_vector_of_numbers(weights):
    with pytest.raises(DataError, match="sample_weight must be a column name or a 1-d array"):
        make_request(None, weights, None)


def test_long_lists_of_names_are_cut():
    assert listed([f"c{i}" for i in range(23)]).endswith("'c19' and 3 more")


def test_a_text_column_that_the_spec_names_is_to_be_converted():
    frame = pd.DataFrame({"a": ["x"], "b": [1.0]})

    with pytest.raises(DataError, match="The spec needs it: convert it to numbers"):
        open_source(frame, default_columns=["a", "b"])
