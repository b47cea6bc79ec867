from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sketchshift.data import open_source
from sketchshift.data.sample import draw_part, draw_rows, in_one_order, merge_parts


def drawn(rows, n_rows, seed=0, weights=None):
    return draw_part(open_source(rows, weights=weights), n_rows, seed=seed, keep=lambda _: None)


def assert_equal(left, right):
    for a, b in zip(astuple(left), astuple(right), strict=True):
        assert_array_equal(a, b)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(5000, 2))


def test_a_sample_of_a_part_has_its_rows_and_weights_in_any_order(X):
    shuffled = np.random.default_rng(1).permutation(X)

    sample = drawn(X, 500, weights=X[:, 0] * 2)

    assert_equal(sample, drawn(shuffled, 500, weights=shuffled[:, 0] * 2))
    assert not np.array_equal(drawn(X, 500).values, drawn(X, 500, seed=1).values)
    assert_array_equal(sample.weights, sample.values[:, 0] * 2)
    assert len(set(sample.values[:, 0]) & set(X[:, 0])) == 500


@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 300), max_size=5), seed=st.integers(0, 9))
def test_samples_merge_in_any_order_and_any_number_of_times(cuts, seed):
    X = np.random.default_rng(seed).integers(0, 9, size=(300, 2)).astype(float)
    parts = [drawn(part, 40, seed) for part in np.split(X, sorted(cuts))]

    all_at_once = merge_parts(parts, 40)
    one_by_one = parts[-1]
    for part in parts[-2::-1]:
        one_by_one = merge_parts([part, one_by_one], 40)

    assert_array_equal(all_at_once.keys, one_by_one.keys)
    assert sorted(map(tuple, all_at_once.values)) == sorted(map(tuple, one_by_one.values))
    assert_array_equal(all_at_once.lower, X.min(axis=0))
    assert_array_equal(all_at_once.upper, X.max(axis=0))


def test_a_row_of_a_small_part_is_as_likely_as_one_of_a_large_part(X):
    """A hypergeometric number of rows comes from the small part, within five sd."""
    small, large = X[:500], X[500:]

    sample = merge_parts([drawn(small, 1000), drawn(large, 1000)], 1000)

    n_small = np.isin(sample.values[:, 0], small[:, 0]).sum()
    assert abs(n_small - 100) < 5 * np.sqrt(1000 * 0.1 * 0.9)


def test_all_rows_in_one_order_are_those_drawn_from_memory(X):
    parts = [drawn(part, 300, seed=3) for part in np.split(X[:250], [0, 10, 200])]

    sample = in_one_order(merge_parts(parts, 300), seed=3)

    whole = draw_rows(open_source(X[:250]), 300, seed=3, keep=lambda _: None)
    assert_equal(sample, whole)
