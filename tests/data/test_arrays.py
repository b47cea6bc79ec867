from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from sketchshift.data import open_source
from sketchshift.errors import DataError

DTYPES = ["?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", "g", ">f8", ">i4"]


def table(n=20, d=3, seed=0):
    return np.random.default_rng(seed).normal(scale=5, size=(n, d))


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_of_any_real_dtype_is_read_as_it_is(gather, block_rows, dtype):
    X = np.abs(table()).astype(dtype)

    values = gather(X, block_rows=block_rows)

    np.testing.assert_array_equal(values, X)
    assert values.dtype == X.dtype.newbyteorder("=")


@pytest.mark.parametrize(
    "X", [np.asfortranarray(table()), table(40)[::2], table(20, 6)[:, ::2], table()[::-1]]
)
def test_memory_order_does_not_matter(gather, block_rows, X):
    np.testing.assert_array_equal(gather(X, block_rows=block_rows), X)


def test_a_memory_map_is_not_copied(tmp_path, gather):
    np.save(tmp_path / "x.npy", table())
    X = np.load(tmp_path / "x.npy", mmap_mode="r")

    assert all(np.shares_memory(block.values, X) for block in open_source(X, block_rows=7))
    np.testing.assert_array_equal(gather(X), table())


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "?"])
def test_masked_entries_become_nan(gather, block_rows, dtype):
    X = np.ma.masked_array(np.ones((9, 2), dtype), mask=np.eye(9, 2))

    values = gather(X, block_rows=block_rows)

    np.testing.assert_array_equal(values, np.where(np.eye(9, 2), np.nan, 1))
    assert values.dtype == ("f4" if dtype == "f4" else "f8")


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("is_matrix", [True, False])
def test_sparse_formats_give_the_dense_rows(gather, kind, is_matrix):
    dense = scipy.sparse.random_array((20, 5), density=0.3, rng=0).toarray()
    make = getattr(scipy.sparse, f"{kind}_{'matrix' if is_matrix else 'array'}")

    np.testing.assert_array_equal(gather(make(dense), block_rows=7), dense)


def test_a_sparse_matrix_is_made_dense_one_block_at_a_time():
    """All of it dense would take 80 TB."""
    huge = scipy.sparse.coo_array(([2.0], ([1], [3])), shape=(10**6, 10**7))

    block = next(iter(open_source(huge, block_rows=2)))

    assert block.values.shape == (2, 10**7)
    assert block.values[1, 3] == block.values.sum() == 2


@pytest.mark.parametrize("X", [table(), scipy.sparse.csr_array(table())])
def test_weights_come_along_as_float64(gather, block_rows, X):
    values, weights = gather(X, weights=np.arange(20), block_rows=block_rows)

    np.testing.assert_array_equal(weights, np.arange(20))
    assert len(values) == 20


@pytest.mark.parametrize("X", [table(), scipy.sparse.csr_array(table())])
def test_as_many_weights_as_rows_are_needed(X):
    with pytest.raises(DataError, match=r"sample_weight has 19 entries but .* has 20 rows"):
        open_source(X, weights=np.ones(19))


def test_an_array_without_rows_yields_no_blocks():
    source = open_source(np.empty((0, 3)))

    assert (source.n_rows, source.n_features, list(source)) == (0, 3, [])


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ((4,), r"reshape\(-1, 1\)"),
        ((4, 0), "no columns"),
        ((), "single value"),
        ((4, 2, 2), r"3 dimensions.*reshape\(len\(X\), -1\)"),
    ],
)
def test_shapes_that_are_not_rows_and_columns_are_refused(shape, advice):
    with pytest.raises(DataError, match=advice):
        open_source(np.zeros(shape))


@pytest.mark.parametrize(
    ("dtype", "advice"),
    [
        ("c16", r"complex128.*X\.real, X\.imag"),
        ("O", r"object.*X\.astype\(float\)"),
        ("U3", "text by numbers"),
        ("S3", "text by numbers"),
        ("M8[s]", r"datetime64.*X\.astype\('int64'\)"),
        ("m8[s]", "durations"),
        ([("a", "f8")], "structured_to_unstructured"),
    ],
)
def test_dtypes_that_are_not_real_numbers_are_refused(dtype, advice):
    with pytest.raises(DataError, match=advice):
        open_source(np.zeros((2, 2), dtype))


def test_complex_sparse_and_sparse_vectors_are_refused():
    with pytest.raises(DataError, match=r"sparse matrix of dtype complex128"):
        open_source(scipy.sparse.csr_array(np.eye(2) * 1j))
    with pytest.raises(DataError, match=r"sparse matrix of shape \(3,\)"):
        open_source(scipy.sparse.coo_array(np.arange(3)))


@pytest.mark.parametrize("X", [table(), scipy.sparse.csr_array(table())])
def test_names_cannot_be_asked_of_an_array(X):
    with pytest.raises(DataError, match=r"\['a'\] by name.*X\[:, \[0, 3\]\]"):
        open_source(X, columns=["a"])
    with pytest.raises(DataError, match=r"sample_weight=.w. names a column.*as an array"):
        open_source(X, weights="w")
