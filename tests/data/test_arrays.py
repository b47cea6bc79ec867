from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from sketchshift.data import open_source
from sketchshift.errors import DataError


def test_masked_entries_become_nan(gather):
    for dtype in ("f4", "f8", "i4", "?"):
        X = np.ma.masked_array(np.ones((9, 2), dtype), mask=np.eye(9, 2))

        values = gather(X)

        assert_array_equal(values, np.where(np.eye(9, 2), np.nan, 1))
        assert values.dtype == ("f4" if dtype == "f4" else "f8")


def test_sparse_formats_give_the_dense_rows(gather, check_rows):
    dense = scipy.sparse.random_array((20, 5), density=0.3, rng=0).toarray()
    for kind in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia"):
        for make in (f"{kind}_matrix", f"{kind}_array"):
            check_rows(getattr(scipy.sparse, make)(dense), dense)
    assert_array_equal(gather(scipy.sparse.csr_array(dense), weights=np.arange(20))[1], range(20))


def test_a_sparse_matrix_is_made_dense_one_block_at_a_time():
    """All of it dense would take 80 TB."""
    huge = scipy.sparse.coo_array(([2.0], ([1], [3])), shape=(10**6, 10**7))

    block = next(iter(open_source(huge, block_rows=2)))

    assert block.values.shape == (2, 10**7)
    assert block.values[1, 3] == block.values.sum() == 2


SHAPES = [
    ((4,), r"reshape\(-1, 1\)"),
    ((4, 0), "no columns"),
    ((), "single value"),
    ((4, 2, 2), r"3 dimensions.*reshape\(len\(X\), -1\)"),
]
DTYPES = [
    ("c16", r"complex128.*X\.real, X\.imag"),
    ("O", r"object.*X\.astype\(float\)"),
    ("U3", "text by numbers"),
    ("S3", "text by numbers"),
    ("M8[s]", r"datetime64.*X\.astype\('int64'\)"),
    ("m8[s]", "durations"),
    ([("a", "f8")], "structured_to_unstructured"),
]


def test_arrays_that_are_not_rows_of_numbers_are_refused(tmp_path):
    """Nor are such files."""
    arrays = [(np.zeros(shape), advice) for shape, advice in SHAPES]
    arrays += [(np.zeros((2, 2), dtype), advice) for dtype, advice in DTYPES]
    for X, advice in (
        *arrays,
        (scipy.sparse.csr_array(np.eye(2) * 1j), "sparse matrix of dtype complex128"),
        (scipy.sparse.coo_array(np.arange(3)), r"sparse matrix of shape \(3,\)"),
    ):
        with pytest.raises(DataError, match=advice):
            open_source(X)
    for X, _ in arrays:
        np.save(tmp_path / "x.npy", X)
        with pytest.raises(DataError, match=r"cannot read .*x\.npy.* (of shape|of dtype|as)"):
            open_source(tmp_path / "x.npy")
