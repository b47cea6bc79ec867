"""k-means of weighted points; scikit-learn's is the oracle."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans as Oracle
from threadpoolctl import threadpool_info, threadpool_limits

from sketchshift._kmeans import nearest, nearest_two, weighted_kmeans
from sketchshift._threads import one_blas_thread
from sketchshift.decoders.mixture import Points
from sketchshift.decoders.points import exchange_many


def cloud(seed):
    """Points, weights and a number of clusters, all of sizes that the seed decides."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(50, 2000)), int(rng.integers(1, 15))
    k = int(rng.integers(1, min(60, n // 3)))
    centers = 3.0 * rng.normal(size=(10, d))
    X = centers[rng.integers(10, size=n)] + rng.gamma(1.0, size=d) * rng.normal(size=(n, d))
    weights = np.ones(n)
    if seed % 2:
        weights = rng.gamma(0.5, size=n) * (rng.random(n) < 0.7)  # some are 0
    return X, weights, k


@pytest.mark.parametrize("seed", range(16))
def test_it_is_the_k_means_of_scikit_learn(seed):
    X, weights, k = cloud(seed)

    found = weighted_kmeans(X, weights, k, n_init=2, seed=seed)

    agrees(found, Oracle(k, n_init=2, random_state=seed), X, weights)


@pytest.mark.parametrize(("n", "k", "steps"), [(500, 7, 1), (500, 7, 300), (9_000, 600, 10)])
def test_it_begins_where_it_is_told_to(n, k, steps, rng):
    """Of many centroids a tree finds the nearest, as a product of matrices does of a few."""
    X, weights = rng.normal(size=(n, 2)), rng.gamma(0.5, size=n)

    found = weighted_kmeans(X, weights, k, starts=X[:k], max_iterations=steps)

    agrees(found, Oracle(k, init=X[:k], n_init=1, max_iter=steps), X, weights)


@pytest.mark.parametrize(("k", "d"), [(2, 3), (100, 2), (600, 2), (1_100, 3), (600, 20)])
def test_the_two_nearest_are_those_of_all_distances(k, d):
    rng = np.random.default_rng(k)
    X, centroids = rng.normal(size=(500, d)), rng.normal(size=(k, d))
    order = np.argsort(cdist(X, centroids), axis=1)

    assert_array_equal(nearest(X, centroids), order[:, 0])
    assert_array_equal(np.transpose(nearest_two(X, centroids)), order[:, :2])


def test_points_whose_squares_no_float_can_hold_have_some_centroid():
    labels = nearest(np.array([[1e200], [5.2]]), np.arange(600.0)[:, None])

    assert 0 <= labels[0] < 600
    assert labels[1] == 5


@pytest.mark.parametrize("seed", range(6))
def test_an_exchange_of_many_gains_at_least_what_it_says(seed):
    """All pairs at once: none spoils what another one gains."""
    X, weights, k = cloud(seed)
    centers = X[np.random.default_rng(seed).choice(len(X), k + 1, replace=False)]

    moved, gain = exchange_many(Points(X, weights), centers)

    before, after = (
        weights @ cdist(X, places, "sqeuclidean").min(axis=1) for places in (centers, moved)
    )
    assert gain >= 0.0
    assert after <= before - gain + 1e-9 * before
    assert (gain > 0.0) == (moved != centers).any()


def test_a_center_too_many_goes_where_one_is_missing():
    X = np.array([0.0, 0.1, 0.2, 0.3, 10.0, 10.1, 14.0, 14.1])[:, None]
    centers = np.array([[0.05], [0.26], [12.05]])

    moved, gain = exchange_many(Points(X, np.full(8, 0.125)), centers)

    loss = 0.125 * (0.15**2 + 0.25**2 - 0.06**2 - 0.04**2)  # of 0.2 and 0.3, which go to 0.05
    assert sorted(moved[:, 0]) == pytest.approx([0.05, 10.05, 14.05])
    assert gain == pytest.approx(0.5 * 2.0**2 - loss)


def test_a_start_without_points_near_it_becomes_a_cell():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    starts = np.array([[0.0], [1e6]])

    found = weighted_kmeans(X, np.ones(4), 2, starts=starts)

    assert sorted(found.centroids[:, 0]) == [0.5, 10.5]


def test_fewer_different_points_than_cells_cost_nothing():
    X = np.repeat([[0.0, 0.0], [3.0, 4.0]], 10, axis=0)

    centroids, labels, cost = weighted_kmeans(X, np.ones(20), 5, n_init=3)

    assert cost == 0.0
    assert_array_equal(centroids[labels], X)


def agrees(found, oracle, X, weights):
    with threadpool_limits(1):
        oracle.fit(X, sample_weight=weights)
    assert_allclose(found.centroids, oracle.cluster_centers_, rtol=1e-9, atol=1e-12)
    assert_array_equal(found.labels, oracle.labels_)
    assert found.cost == pytest.approx(oracle.inertia_, rel=1e-12)


def test_overlapping_calls_give_the_threads_of_blas_back():
    """The limit is that of the process: the last one out takes it back, whoever set it."""
    inside, first_is_out = Barrier(2), Event()

    def counts():
        return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]

    @one_blas_thread
    def second():
        inside.wait()
        first_is_out.wait()
        return counts()

    one_blas_thread(counts)()  # whoever came first, in whatever thread
    with threadpool_limits(2, user_api="blas"):
        with ThreadPoolExecutor(2) as pool:
            seen = pool.submit(second)
            pool.submit(one_blas_thread(inside.wait)).result()
            first_is_out.set()

        assert set(seen.result()) == {1}
        assert set(counts()) == {2}
