"""Hashes of rows: equal for equal rows, and random otherwise."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal

from sketchshift.data.sample import hash_rows


def test_rows_hash_alike_wherever_they_stand_and_whatever_their_dtype():
    X = np.random.default_rng(0).integers(-100, 100, size=(5000, 3))
    order = np.random.default_rng(1).permutation(5000)

    hashes = hash_rows(X, None, 0)

    for dtype in (np.int16, np.float32, np.float64):
        assert_array_equal(hash_rows(X.astype(dtype)[order], None, 0), hashes[order])
    assert_array_equal(hash_rows(np.asfortranarray(X), None, 0), hashes)
    assert_array_equal(hash_rows(X[7:8], None, 0), hashes[7:8])


def test_the_two_zeros_are_one_number():
    zeros = np.array([[0.0, 1.0], [-0.0, 1.0]])

    a, b = hash_rows(zeros, np.array([0.0, -0.0]), 3)

    assert a == b


def test_different_rows_have_different_hashes():
    """A grid is hard: its floats share most of their bits. Expected collisions: 2e-9 each."""
    grid = np.stack(np.meshgrid(np.arange(512), np.arange(512)), axis=-1).reshape(-1, 2)
    for scale in (1.0, 2.0**-10, 1e-3, 1e200):
        assert len(np.unique(hash_rows(scale * grid, None, 0))) == 512**2


def test_columns_weights_and_seed_all_matter():
    X = np.array([[1.0, 2.0]])
    others = [
        hash_rows(X[:, ::-1], None, 0),
        hash_rows(X, np.ones(1), 0),
        hash_rows(X, np.array([2.0]), 0),
        hash_rows(X, None, 1),
        hash_rows(X, None, 2**64 - 1),
        hash_rows(X, None, 0),
    ]

    assert len(np.unique(others)) == 6
