from __future__ import annotations

import numpy as np
import pytest

from sketchshift.data import open_source
from sketchshift.errors import DataError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.npy"


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.arange(3.0), r"x\.npy of shape \(3,\).*reshape\(-1, 1\)"),
        (np.array([[{}]], dtype=object), r"x\.npy of dtype object"),
        (np.array([["a"]]), r"x\.npy of dtype <U1"),
        (np.array([[1j]]), r"x\.npy of dtype complex128"),
    ],
)
def test_arrays_that_are_not_rows_of_numbers_are_refused(path, array, message):
    np.save(path, array)

    with pytest.raises(DataError, match=message):
        open_source(path)
