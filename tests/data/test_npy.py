from __future__ import annotations

import mmap

import numpy as np
import pytest

from sketchshift.data import open_source
from sketchshift.errors import DataError

X = np.random.default_rng(0).normal(scale=50, size=(20, 3))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.npy"


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f4", "f8", "g", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_file_gives_its_rows(gather, block_rows, path, dtype, order):
    array = np.abs(X).astype(dtype, order=order)
    np.save(path, array)

    values = gather(path, block_rows=block_rows)

    np.testing.assert_array_equal(values, array)
    assert open_source(path).n_rows == 20


def test_a_block_maps_its_own_rows_only(path):
    """Else the pages of the whole file would stay in memory."""
    np.save(path, np.zeros((100_000, 4)))

    for block in open_source(path, block_rows=1000):
        window = block.values
        while not isinstance(window, mmap.mmap):
            window = window.base
        assert len(window) <= 1000 * 4 * 8 + mmap.ALLOCATIONGRANULARITY
        assert not block.values.flags.writeable


def test_a_file_without_rows_yields_no_blocks(path):
    np.save(path, np.empty((0, 3)))

    assert list(open_source(path)) == []


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


@pytest.mark.parametrize("content", [b"", b"hello", b"\x93NUMPY\x01\x00"])
def test_a_damaged_file_is_named(path, content):
    path.write_bytes(content)

    with pytest.raises(DataError, match=r"cannot read .*x\.npy: it seems damaged"):
        open_source(path)


def test_a_truncated_file_is_named(path):
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:-8])

    with pytest.raises(DataError, match=r"cannot read .*x\.npy: it seems damaged"):
        open_source(path)


def test_names_cannot_be_asked_of_an_array_file(path):
    np.save(path, X)

    with pytest.raises(DataError, match=r"x\.npy has no column names.*slicing"):
        open_source(path, columns=["a"])
