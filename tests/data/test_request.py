from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sketchshift.data import open_source
from sketchshift.data.source import Request, listed, make_request
from sketchshift.errors import DataError


def test_a_block_is_about_two_mebibytes_within_bounds_unless_its_rows_are_given():
    sizes = {1: 65536, 8: 32768, 9: 29127, 2048: 256, 10**6: 256}

    assert {d: Request().rows_for(d) for d in sizes} == sizes
    assert make_request(None, None, np.int64(7)).rows_for(10**6) == 7


WEIGHTS = "sample_weight must be a column name or a 1-d array"
REFUSED = [
    *((None, None, rows, r"block_rows must be a positive .*\. Got") for rows in (0, -1, 2.5, "7")),
    ("height", None, None, r"columns=\['height'\]"),
    ([], None, None, "empty list"),
    (["a", 3], None, None, "Got 3 instead"),
    (["a", "b", "a"], None, None, "names 'a' more than once"),
    *((None, weights, None, WEIGHTS) for weights in (np.ones((2, 2)), ["a", "b"], 3.0)),
    *((None, weights, None, WEIGHTS) for weights in ([1j], [[1], [2, 3]])),
]


def test_wrong_columns_weights_and_numbers_of_rows_are_refused():
    for columns, weights, rows, message in REFUSED:
        with pytest.raises(DataError, match=message):
            make_request(columns, weights, rows)


def test_long_lists_of_names_are_cut():
    assert listed([f"c{i}" for i in range(23)]).endswith("'c19' and 3 more")


def test_a_text_column_that_the_spec_names_is_to_be_converted():
    frame = pd.DataFrame({"a": ["x"], "b": [1.0]})

    with pytest.raises(DataError, match="The spec needs it: convert it to numbers"):
        open_source(frame, default_columns=["a", "b"])
