"""The numbers of a plan, against the formula worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

import sketchshift as ss
from sketchshift.errors import DataError, PlanWarning, ScaleHint, SpecError
from sketchshift.features.plan import plan_rows


def by_hand(X, k):
    """r0 and the bandwidths, with rq, which weighs far rows by up to 64, and rw of a k-means."""
    n, d = X.shape
    r0 = math.sqrt(X.var(axis=0).sum())
    Y = (X - X.mean(axis=0)) / r0
    t = np.minimum(64.0, 0.5 + 0.5 * (Y**2).sum(axis=1))
    rq = math.sqrt((t @ (Y - t @ Y / t.sum()) ** 2).sum() / t.sum())
    rw = math.sqrt(ss.metrics.mse(Y, ss.metrics.lloyd(Y, k)) * n / (n - k))
    return r0, 0.3 * rw * math.sqrt(rq), 0.8 * k ** (-1 / d) * rq


@pytest.mark.parametrize(("d", "k"), [(2, 5), (8, 4)])
def test_a_plan_is_the_formula(d, k):
    """Another k-means ends within a few percent; all else agrees to the six digits kept."""
    X = np.random.default_rng(d).standard_t(4, size=(500, d)) * 3.0 + 7.0

    spec = plan_rows(X, k, cells=False, seed=9)

    r0, low, high = by_hand(X, k)
    assert spec.rows.scale == pytest.approx(r0, rel=1e-5)
    assert_allclose(spec.rows.center, X.mean(axis=0), atol=1e-5 * r0)
    assert spec.bandwidths[0] == pytest.approx(low, rel=0.05)
    assert spec.bandwidths[1] == pytest.approx(max(high, 3 * spec.bandwidths[0]), rel=1e-5)
    assert (spec.waves.beyond, spec.waves.seed) == (0.15, 9)
    assert spec.sketch_size == 10 * k * d


def test_waves_alone_are_planned_like_waves_beside_cells_with_a_warning_of_rows_far_out(rng):
    """Two sets: with ten sentinels, and with a heavy tail."""
    sentinels = np.vstack([rng.normal(size=(1_990, 2)), np.full((10, 2), 9999.0)])
    for rows in (sentinels, rng.standard_t(2.5, size=(5_000, 3))):
        with pytest.warns(PlanWarning, match=r"waves alone lose clusters .* Plan with cells"):
            waves = plan_rows(rows, 3, cells=False)

        both = plan_rows(rows, 3)
        assert both.replaced(cells=None, waves=waves.waves) == waves
        assert replace(both.waves, size=waves.sketch_size) == waves.waves


def test_waves_alone_are_planned_without_a_warning_for_usual_rows(rng):
    """Warnings are errors here."""
    from sklearn import datasets

    usual = [load().data for load in (datasets.load_iris, datasets.load_breast_cancer)]
    for rows in (*usual, rng.uniform(size=(1_000, 1)), rng.exponential(size=(1_000, 2))):
        assert plan_rows(rows, 3, cells=False, standardize=True).cells is None


def test_constant_columns_are_standardised_like_columns_of_deviation_one(rng):
    varying = rng.normal(scale=5.0, size=(300, 2))
    X = np.column_stack([varying, np.full(300, 0.1)])

    scale = plan_rows(X, 3, standardize=True).rows.scale

    assert_allclose(scale, [*varying.std(axis=0) * 2**0.5, 2**0.5], rtol=1e-5)


def test_whole_weights_count_as_repeated_rows(rng):
    X, weights = rng.normal(size=(400, 2)), rng.integers(1, 4, 400)

    weighted = plan_rows(X, 5, weights=weights.astype(float))
    repeated = plan_rows(np.repeat(X, weights, axis=0), 5)

    assert_allclose(weighted.rows.center, repeated.rows.center, atol=1e-5)
    assert weighted.rows.scale == pytest.approx(repeated.rows.scale, rel=1e-5)
    assert_allclose(weighted.bandwidths, repeated.bandwidths, rtol=0.03)


def test_the_number_of_threads_changes_nothing(rng):
    X = rng.normal(size=(2000, 20))

    specs = []
    for n_threads in (1, 4):
        with threadpool_limits(n_threads):
            specs.append(plan_rows(X, 30).to_json())

    assert len(set(specs)) == 1


def test_the_sketch_size_is_ten_numbers_a_cluster_and_column(rng):
    for k, d, m in ((10, 3, 300), (1, 1, 50), (2, 2, 50), (6, 1, 60)):
        X = rng.normal(size=(100, d))

        assert plan_rows(X, k, cells=False).sketch_size == m
        assert plan_rows(X, k, sketch_size=77, cells=False).sketch_size == 77
        both = plan_rows(X, k)
        assert 0 <= 2 * (m - both.sketch_size) - both.cells.n_cells * (1 + 2 * d) < 2


def test_columns_of_very_different_spread_are_pointed_out(rng):
    X = rng.normal(size=(200, 3))
    for spread, words in (
        (150.0, r"'pay' varies by 1\d\d and column 'age' by"),
        (2e15, "identifier"),
    ):
        with pytest.warns(ScaleHint, match=words):
            plan_rows(X * [1.0, spread, 20.0], 2, columns=["age", "pay", "size"])


def test_there_is_no_hint_where_there_is_no_difference(rng):
    """Ninetyfold, a constant column, and columns standardised anyway. Warnings are errors here."""
    X = rng.normal(size=(2000, 2))

    plan_rows(X * [1.0, 90.0], 2)
    plan_rows(X * [1000.0, 0.0] + 0.1, 2)
    plan_rows(X * [1.0, 1e6], 2, standardize=True)


FEW = [
    [[3.0, -4.0]],
    [[0.0, 0.0]],
    [[1.0, 2.0], [1.0, 2.0], [5.0, -1.0]],
    [[1e100, 0.0], [0.0, 1e100], [0.0, 0.0]],
    [[1e9, 5.0], [1e9 + 1, 5.0], [1e9 + 2, 5.0]],
]


@pytest.mark.parametrize("standardize", [False, True])
def test_very_few_rows_give_a_spec_that_can_be_used(standardize):
    for rows in FEW:
        spec = plan_rows(np.array(rows), 5, standardize=standardize)

        assert 0 < spec.bandwidths[0] < spec.bandwidths[1] < 10
        assert ss.sketch(np.array(rows), spec).count == len(rows)


def test_equal_rows_give_a_spec_and_a_warning():
    for value in (0.0, 0.1, -1e12):
        X = np.full((50, 3), value)

        with pytest.warns(PlanWarning, match="all 50 rows of the sample are equal"):
            spec = plan_rows(X, 4)

        s = ss.sketch(X, spec)
        assert s.count == 50
        assert_allclose(s.mean, value, rtol=1e-5)


def test_numbers_that_no_spec_can_hold_are_refused_with_the_column(rng):
    X = rng.normal(size=(20, 2))

    with pytest.raises(DataError, match=r"large as 1e\+300 in column 'b'.*Divide"):
        plan_rows(np.vstack([X, [0.0, 1e300]]), 2, columns=["a", "b"])
    with pytest.raises(DataError, match=r"vary by .*e-20\d at most.*Multiply"):
        plan_rows(1e-200 * X, 2)


def test_more_clusters_than_rows_can_be_planned_for(rng):
    """Smaller clusters ask for smaller bandwidths, also where the sample cannot show them."""
    X = rng.normal(size=(60, 2))

    lows = [plan_rows(X, k).bandwidths[0] for k in (10, 30, 60, 240)]

    assert lows == sorted(lows, reverse=True)
    assert lows[3] == pytest.approx(lows[2] / 2, rel=1e-4)  # k^(-1/d) from 60 to 240, d = 2


def test_points_without_any_spread_get_the_bandwidth_of_their_distances():
    """Five points, each many times: a bandwidth of zero would see nothing else."""
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 6.0]])

    low, high = plan_rows(np.repeat(points, 100, axis=0), 5).bandwidths

    assert 0.02 < low < high < 1.0  # in units of r0, about 3.7: the points are 0.27 apart


def test_the_integers_reach_the_rows_that_are_known(rng):
    """Heavy tails: bounds of the whole data lift the lowest bandwidth until they are reached."""
    X = rng.standard_cauchy(size=(20_000, 2))
    bounds = (X.min(axis=0), X.max(axis=0))

    spec = plan_rows(X[:2000], 10, bounds=bounds)

    assert ss.sketch(X, spec).count == len(X)
    assert spec.bandwidths[1] >= 3 * spec.bandwidths[0] * (1 - 1e-5)


def test_one_absurd_bound_does_not_spoil_the_plan(rng):
    X = rng.normal(size=(2000, 2))
    plain = plan_rows(X, 10).bandwidths

    low, high = plan_rows(X, 10, bounds=(X.min(axis=0), np.array([1e300, 0.0]))).bandwidths

    assert high == plain[1]
    assert low <= high / 3 * (1 + 1e-5)


def test_parameters_are_checked(X):
    for parameters, words in (
        ({"n_clusters": 0}, "'n_clusters' parameter of plan must be an integer from 1 to 100000"),
        ({"n_clusters": 2.5}, "'n_clusters'"),
        ({"n_clusters": 2, "standardize": "yes"}, "'standardize' parameter of plan must be True"),
        ({"n_clusters": 2, "sketch_size": 0}, "'sketch_size'"),
        ({"n_clusters": 2, "seed": -1}, "'seed'"),
    ):
        with pytest.raises(SpecError, match=words):
            plan_rows(X, **parameters)


def test_frequencies_are_structured_from_64_columns_on(rng):
    X = rng.normal(size=(100, 100))
    for d in (63, 64, 100):
        assert plan_rows(X[:, :d], 2, cells=False).waves.structured == (d >= 64)
