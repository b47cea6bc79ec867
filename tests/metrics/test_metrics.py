"""Errors of centroids against brute force and scikit-learn."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import sketchshift as ss
from sketchshift.metrics import assign, lloyd, match_centroids, mse, rse


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5000, 4)), rng.normal(size=(7, 4))


def brute_force(X, C):
    return ((X[:, None].astype(float) - C[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u2", "?"])
def test_mse_and_labels_agree_with_brute_force(problem, dtype):
    X, C = problem
    X = np.abs(10 * X).astype(dtype)

    error, labels = mse(X, C), assign(X, C)

    distances = brute_force(X, C)
    np.testing.assert_allclose(error, distances.min(axis=1).mean(), rtol=1e-12)
    np.testing.assert_array_equal(labels, distances.argmin(axis=1))
    assert labels.dtype == np.int64


def test_weights_count_rows_several_times(problem):
    X, C = problem
    counts = np.random.default_rng(1).integers(0, 4, size=len(X))

    weighted = mse(X, C, sample_weight=counts)

    np.testing.assert_allclose(weighted, mse(np.repeat(X, counts, axis=0), C), rtol=1e-12)


@pytest.mark.parametrize("blocks", [1, 100, 10_000_000])
def test_blocks_do_not_change_the_result(problem, blocks, monkeypatch):
    X, C = problem[0][:999], problem[1]
    expected, labels = mse(X, C), assign(X, C)

    monkeypatch.setattr("sketchshift.metrics._BLOCK", blocks)

    np.testing.assert_allclose(mse(X.tolist(), C.tolist()), expected, rtol=1e-13)
    np.testing.assert_array_equal(assign(X, C), labels)


def test_data_far_from_the_origin_costs_no_digits(problem):
    """|x|^2 - 2 <x, c> + |c|^2 at 1e6 would keep 4 digits of a distance of 1."""
    X, C = problem

    np.testing.assert_allclose(mse(X + 1e6, C + 1e6), mse(X, C), rtol=1e-9)
    np.testing.assert_array_equal(assign(X + 1e6, C + 1e6), assign(X, C))


def test_centroids_on_the_rows_have_no_error(problem):
    X, _ = problem

    assert mse(X[:50] + 1e8, X[:50] + 1e8) == 0.0


def test_of_equal_centroids_the_first_is_taken():
    np.testing.assert_array_equal(assign([[-2.0], [3.0]], [[1.0], [-1.0], [1.0], [-1.0]]), [1, 0])


def test_memory_does_not_grow_with_the_rows(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.random.default_rng(0).normal(size=(200_000, 10)))
    X, C = np.load(path, mmap_mode="r"), np.random.default_rng(1).normal(size=(50, 10))

    tracemalloc.start()
    error = mse(X, C)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 10e6  # the distances alone would be 80 MB
    part = slice(0, 200_000, 50)
    np.testing.assert_allclose(error, brute_force(X[part], C).min(axis=1).mean(), rtol=0.05)


def test_lloyd_is_as_good_as_itself_and_better_than_chance(problem):
    X, C = problem[0][:1000], problem[1]

    reference = lloyd(X, 7, seed=3)

    assert rse(X, reference, reference) == 1.0
    assert rse(X, C, reference) > 1.0
    assert rse(X, C, mse(X, reference)) == rse(X, C, reference)


def test_lloyd_finds_separate_clusters_and_repeats_itself():
    rng = np.random.default_rng(0)
    true = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    X = (true[:, None] + 0.1 * rng.normal(size=(3, 200, 2))).reshape(-1, 2)

    centroids = lloyd(X, 3)

    assert np.abs(centroids[match_centroids(true, centroids)] - true).max() < 0.05
    np.testing.assert_allclose(lloyd(X, 3), centroids, rtol=1e-12)
    assert centroids.dtype == np.float64


def test_more_runs_are_not_worse(problem):
    X = problem[0][:1000]

    assert mse(X, lloyd(X, 12, n_init=8)) <= mse(X, lloyd(X, 12, n_init=1)) * (1 + 1e-12)


@given(seed=st.integers(0, 1000), k=st.integers(1, 12), noise=st.sampled_from([0.0, 1e-3]))
def test_matching_undoes_a_permutation(seed, k, noise):
    rng = np.random.default_rng(seed)
    left = rng.permutation(4 * k)[:k, None] + rng.uniform(0, 0.1, size=(k, 3))
    permutation = rng.permutation(k)
    right = (left + noise * rng.normal(size=left.shape))[permutation]

    order = match_centroids(left, right)

    np.testing.assert_array_equal(permutation[order], np.arange(k))
    assert order.dtype == np.int64


def test_matching_minimises_the_total_not_each_distance():
    """1 is nearest to both of left, yet the sum is least when it goes to the second."""
    left, right = np.array([[0.0], [2.0]]), np.array([[1.0], [-3.0]])

    order = match_centroids(left, right)

    np.testing.assert_array_equal(order, [1, 0])
    costs = cdist(left, right, "sqeuclidean")
    assert costs[[0, 1], order].sum() < costs[[0, 1], [0, 1]].sum()


@pytest.mark.parametrize(
    ("X", "centroids", "message"),
    [
        (np.ones((3, 2)), np.ones((1, 3)), "data has 2 columns, and the centroids have 3"),
        (np.ones(3), np.ones((1, 3)), r"data must be .* Got shape \(3,\)"),
        (np.ones((0, 2)), np.ones((1, 2)), r"data must be .* Got shape \(0, 2\)"),
        ([["a"]], np.ones((1, 1)), "data must be an array of real numbers"),
        (1j * np.ones((3, 2)), np.ones((1, 2)), "dtype complex128"),
        (np.ones((3, 2)), np.ones((0, 2)), r"centroids must be .* Got shape \(0, 2\)"),
        (np.ones((3, 2)), np.ones(2), r"centroids must be .* Got shape \(2,\)"),
        (np.ones((3, 2)), [[1, 2], [np.nan, 0]], "finite. Number 1 holds NaN"),
        (np.array([[1.0], [np.nan]]), np.ones((1, 1)), "row 1 holds NaN"),
        (np.array([[np.inf], [0.0]]), np.ones((1, 1)), "row 0 holds NaN, infinity"),
        (np.array([[0.0], [1e200]]), np.ones((1, 1)), r"row 1 .* squares overflow"),
    ],
)
def test_what_has_no_error_is_refused(X, centroids, message):
    with pytest.raises(ss.errors.DataError, match=message):
        mse(X, centroids)
    with pytest.raises(ss.errors.DataError, match=message):
        assign(X, centroids)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"shape \(3,\), one a row. Got \(1,\)"),
        ([1.0, -1.0, 1.0], "at least 0"),
        ([0.0, 0.0, 0.0], "not 0 everywhere"),
        ([1.0, np.nan, 1.0], "must be finite"),
    ],
)
def test_weights_that_make_no_mean_are_refused(weights, message):
    with pytest.raises(ss.errors.DataError, match=message):
        mse(np.ones((3, 2)), np.ones((1, 2)), sample_weight=weights)


@pytest.mark.parametrize("reference", [0.0, -1.0, np.nan, np.inf, True, "a", None])
def test_a_reference_error_must_be_positive(problem, reference):
    X, C = problem

    with pytest.raises(ss.errors.SpecError, match="'reference' parameter of rse"):
        rse(X, C, reference)


def test_no_ratio_to_a_reference_without_error(problem):
    X, C = problem

    with pytest.raises(ss.errors.DataError, match="reference has an MSE of 0"):
        rse(X[:5], C, X[:5])


def test_lloyd_and_matching_refuse_what_they_cannot_use(problem):
    X, C = problem

    with pytest.raises(
        ss.errors.SpecError, match=r"'n_clusters' parameter of lloyd .* from 1 to 5000"
    ):
        lloyd(X, 5001)
    with pytest.raises(ss.errors.SpecError, match="'n_init' parameter of lloyd"):
        lloyd(X, 3, n_init=0)
    with pytest.raises(ss.errors.SpecError, match="'seed' parameter of lloyd"):
        lloyd(X, 3, seed=-1)
    with pytest.raises(ss.errors.DataError, match="lloyd needs finite rows"):
        lloyd(np.where(X > 3, np.nan, X), 3)
    with pytest.raises(ss.errors.DataError, match=r"Got shapes \(7, 4\) and \(6, 4\)"):
        match_centroids(C, C[1:])
