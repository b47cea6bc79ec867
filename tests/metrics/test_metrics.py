"""Errors of centroids against brute force and scikit-learn."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from sketchshift.errors import DataError, SpecError
from sketchshift.metrics import assign, lloyd, match_centroids, mse, rse


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5000, 4)), rng.normal(size=(7, 4))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u2", "?"])
def test_mse_and_labels_agree_with_brute_force(problem, dtype):
    X, C = problem
    X = np.abs(10 * X).astype(dtype)

    error, labels = mse(X, C), assign(X, C)

    distances = cdist(X.astype(float), C, "sqeuclidean")
    assert_allclose(error, distances.min(axis=1).mean(), rtol=1e-12)
    assert_array_equal(labels, distances.argmin(axis=1))
    assert labels.dtype == np.int64


def test_weights_count_rows_several_times(problem):
    X, C = problem
    counts = np.random.default_rng(1).integers(0, 4, size=len(X))

    weighted = mse(X, C, sample_weight=counts)

    assert_allclose(weighted, mse(np.repeat(X, counts, axis=0), C), rtol=1e-12)


@pytest.mark.parametrize("blocks", [1, 100, 10_000_000])
def test_blocks_do_not_change_the_result(problem, blocks, monkeypatch):
    X, C = problem[0][:999], problem[1]
    expected, labels = mse(X, C), assign(X, C)

    monkeypatch.setattr("sketchshift.metrics._BLOCK", blocks)

    assert_allclose(mse(X.tolist(), C.tolist()), expected, rtol=1e-13)
    assert_array_equal(assign(X, C), labels)


def test_data_far_from_the_origin_costs_no_digits(problem):
    """|x|^2 - 2 <x, c> + |c|^2 at 1e6 would keep 4 digits of a distance of 1."""
    X, C = problem

    assert_allclose(mse(X + 1e6, C + 1e6), mse(X, C), rtol=1e-9)
    assert_array_equal(assign(X + 1e6, C + 1e6), assign(X, C))


def test_of_equal_centroids_the_first_is_taken():
    assert_array_equal(assign([[-2.0], [3.0]], [[1.0], [-1.0], [1.0], [-1.0]]), [1, 0])


def test_memory_does_not_grow_with_the_rows(tmp_path):
    path, C = tmp_path / "rows.npy", np.random.default_rng(1).normal(size=(50, 10))
    np.save(path, np.random.default_rng(0).normal(size=(200_000, 10)))
    X = np.load(path, mmap_mode="r")

    tracemalloc.start()
    mse(X, C)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 10e6  # the distances alone would be 80 MB


def test_lloyd_is_the_k_means_that_ratios_are_of(problem):
    X, C = problem[0][:1000], problem[1]

    reference = lloyd(X, 7, seed=3)

    assert_allclose(lloyd(X, 7, seed=3), reference, rtol=1e-12)
    assert reference.dtype == np.float64
    assert rse(X, reference, reference) == 1.0
    assert rse(X, C, mse(X, reference)) == rse(X, C, reference) > 1.0
    assert mse(X, lloyd(X, 12, n_init=8)) <= mse(X, lloyd(X, 12, n_init=1)) * (1 + 1e-12)


@given(seed=st.integers(0, 1000), k=st.integers(1, 12))
def test_matching_has_the_least_total(seed, k):
    """That of SciPy's assignment: not each distance is the least."""
    left, right = np.random.default_rng(seed).normal(size=(2, k, 3))
    costs = cdist(left, right, "sqeuclidean")

    order = match_centroids(left, right)

    assert sorted(order) == list(range(k))
    assert order.dtype == np.int64
    best = costs[linear_sum_assignment(costs)].sum()
    assert costs[np.arange(k), order].sum() == pytest.approx(best)


@pytest.mark.parametrize(
    ("X", "centroids", "message"),
    [
        (np.ones((3, 2)), np.ones((1, 3)), "data has 2 columns, and the centroids have 3"),
        (np.ones(3), np.ones((1, 3)), r"data must be .* Got shape \(3,\)"),
        (np.ones((0, 2)), np.ones((1, 2)), r"data must be .* Got shape \(0, 2\)"),
        ([["a"]], np.ones((1, 1)), "data must be an array of real numbers"),
        (1j * np.ones((3, 2)), np.ones((1, 2)), "dtype complex128"),
        (np.ones((3, 2)), np.ones((0, 2)), r"centroids must be .* Got shape \(0, 2\)"),
        (np.ones((3, 2)), [[1, 2], [np.nan, 0]], "finite. Number 1 holds NaN"),
        ([[1.0], [np.nan]], np.ones((1, 1)), "row 1 holds NaN"),
        ([[0.0], [1e200]], np.ones((1, 1)), r"row 1 .* squares overflow"),
    ],
)
def test_what_has_no_error_is_refused(X, centroids, message):
    for function in (mse, assign):
        with pytest.raises(DataError, match=message):
            function(X, centroids)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"shape \(3,\), one a row. Got \(1,\)"),
        ([1.0, -1.0, 1.0], "at least 0"),
        ([0.0, 0.0, 0.0], "not 0 everywhere"),
        ([1.0, np.nan, 1.0], "must be finite"),
    ],
)
def test_weights_that_weigh_nothing_are_refused(problem, weights, message):
    X, C = problem

    with pytest.raises(DataError, match=message):
        mse(X[:3], C, sample_weight=weights)


def test_what_cannot_be_used_is_refused(problem):
    X, C = problem

    for reference in (0.0, -1.0, np.nan, np.inf, True, "a"):
        with pytest.raises(SpecError, match="'reference' parameter of rse"):
            rse(X, C, reference)
    for make, message in (
        (lambda: rse(X[:5], C, X[:5]), "reference has an MSE of 0"),
        (lambda: lloyd(X, 5001), "'n_clusters' parameter of lloyd .* from 1 to 5000"),
        (lambda: lloyd(X, 3, n_init=0), "'n_init' parameter of lloyd"),
        (lambda: lloyd(X, 3, seed=-1), "'seed' parameter of lloyd"),
        (lambda: lloyd(np.where(X > 3, np.nan, X), 3), "lloyd needs finite rows"),
        (lambda: match_centroids(C, C[1:]), r"Got shapes \(7, 4\) and \(6, 4\)"),
    ):
        with pytest.raises((DataError, SpecError), match=message):
            make()
