from __future__ import annotations

import numpy as np
import pytest

from sketchshift.data import open_source
from sketchshift.errors import DataError


class Holder:
    """Has nothing but ``__array__``."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        if self.array is None:
            raise RuntimeError("the tensor lies elsewhere.")
        return self.array


@pytest.mark.parametrize(
    "data",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        [np.array([1, 2]), np.array([3, 4])],
        Holder(np.array([[1, 2], [3, 4]])),
    ],
)
def test_whatever_numpy_can_make_an_array_of_is_read(gather, block_rows, data):
    np.testing.assert_array_equal(gather(data, block_rows=block_rows), [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    "data", [None, 3, 2.5, b"bytes", bytearray(3), {"a": [1.0]}, {1, 2}, object(), np.ndarray]
)
def test_other_objects_are_refused_with_all_that_is_accepted(data):
    message = rf"type {type(data).__name__}\..*array.*sparse.*data frame.*Arrow.*path.*iterator"
    with pytest.raises(DataError, match=message):
        open_source(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "no rows: the list is empty"),
        ((), "no rows: the tuple is empty"),
        ([1, 2, 3], r"reshape\(-1, 1\)"),
        ([[1, 2], [3]], "rows of equal length"),
        ([["a", "b"]], "text by numbers"),
        ([[None, 1]], "dtype object"),
        (["x.npy", np.eye(2)], r"mixes paths and other data \(item 0 is a path\)"),
        (Holder(None), "from Holder: the tensor lies elsewhere"),
    ],
)
def test_lists_that_are_not_rows_say_what_to_do(data, message):
    with pytest.raises(DataError, match=message):
        open_source(data)


@pytest.mark.parametrize(
    ("module", "library"),
    [("dask.array.core", "dask"), ("pyspark.sql", "pyspark"), ("ray.data", "ray")],
)
def test_collections_on_many_machines_are_sent_to_functions_that_take_them(module, library):
    collection = type("Collection", (), {"__module__": module})()

    with pytest.raises(DataError, match=rf"a {library} collection here.*Use ss\.plan, ss\.sk"):
        open_source(collection)


def test_a_data_error_is_a_value_error():
    with pytest.raises(ValueError, match="NoneType"):
        open_source(None)
