from __future__ import annotations

import mmap

import numpy as np
import pytest

from sketchshift.data import open_source
from sketchshift.errors import DataError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.npy"


def test_a_block_maps_its_own_rows_only(path):
    """Else the pages of the whole file would stay in memory."""
    np.save(path, np.zeros((100_000, 4)))

    for block in open_source(path, block_rows=1000):
        window = block.values
        while not isinstance(window, mmap.mmap):
            window = window.base
        assert len(window) <= 1000 * 4 * 8 + mmap.ALLOCATIONGRANULARITY
        assert not block.values.flags.writeable


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


def test_a_damaged_file_is_named(path):
    np.save(path, np.eye(9))
    for content in (b"", b"hello", b"\x93NUMPY\x01\x00", path.read_bytes()[:-8]):
        path.write_bytes(content)

        with pytest.raises(DataError, match=r"cannot read .*x\.npy: it seems damaged"):
            open_source(path)


def test_names_cannot_be_asked_of_an_array_file(path):
    np.save(path, np.eye(9))

    with pytest.raises(DataError, match=r"x\.npy has no column names.*slicing"):
        open_source(path, columns=["a"])
