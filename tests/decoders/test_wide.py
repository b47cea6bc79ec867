"""Clusters of rows of many columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

import sketchshift as ss

D = 60


def draw_rows(n: int, k: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    middles = 2.0 * np.random.default_rng(7).normal(size=(k, D))
    slopes = np.random.default_rng(8).normal(size=(k, 4, D))
    labels = rng.choice(k, size=n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    rows = middles[labels] + np.einsum("ij,ijk->ik", rng.normal(size=(n, 4)), slopes[labels])
    return rows + rng.normal(size=(n, D))


@pytest.mark.parametrize("k", [3, 12])
def test_clusters_are_as_good_as_those_of_k_means_on_all_rows(k):
    rows = draw_rows(12_000, k)
    reference = KMeans(k, n_init=5, random_state=0).fit(rows).cluster_centers_

    decoding = ss.decode(ss.sketch(rows, n_clusters=k), k)

    cost = ss.metrics.mse(rows, decoding.centroids)
    assert cost <= 1.01 * ss.metrics.mse(rows, reference)
    assert decoding.cost == pytest.approx(cost, rel=0.03)
    assert decoding.cost_bound >= cost
    assert decoding.is_good
    assert decoding.covariances is None


@pytest.mark.filterwarnings("ignore::sketchshift.errors.PlanWarning")
def test_a_plan_that_saw_half_of_the_space_is_far_better_than_its_own_clusters():
    rows, k = draw_rows(12_000, 6), 6
    first = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][0]
    spec = ss.plan(rows[rows @ first < np.median(rows @ first)], n_clusters=k)
    reference = ss.metrics.mse(rows, KMeans(k, n_init=5, random_state=0).fit(rows).cluster_centers_)
    pilot = spec.cells.groups.middles * spec.scale + spec.center_vector

    decoding = ss.decode(ss.sketch(rows, spec), k)

    assert ss.metrics.mse(rows, pilot) >= 1.3 * reference
    assert ss.metrics.mse(rows, decoding.centroids) <= 1.1 * reference


def test_fewer_clusters_than_planned_and_a_number_chosen_by_the_decoder():
    rows = draw_rows(8000, 4)
    sketch = ss.sketch(rows, n_clusters=10)
    reference = KMeans(4, n_init=5, random_state=0).fit(rows).cluster_centers_

    assert ss.metrics.mse(rows, ss.decode(sketch, 4).centroids) <= 1.02 * ss.metrics.mse(
        rows, reference
    )
    assert 2 <= len(ss.decode(sketch, "auto").centroids) <= 10


def test_equal_rows_and_few_distinct_rows_are_found_exactly():
    rows = np.repeat(draw_rows(3, 3), [50, 30, 20], axis=0)
    spec = ss.plan(draw_rows(3000, 3), n_clusters=3)

    one = ss.decode(ss.sketch(rows[:50], spec), 3)
    three = ss.decode(ss.sketch(rows, spec), 3)

    np.testing.assert_allclose(one.centroids, rows[:1], atol=2e-2)
    np.testing.assert_allclose(three.centroids, rows[[0, 50, 80]], atol=2e-2)
    np.testing.assert_allclose(three.weights, [0.5, 0.3, 0.2])


def test_shares_of_another_slice_are_those_of_its_rows():
    rows, k = draw_rows(12_000, 4), 4
    spec = ss.plan(rows, n_clusters=k)
    decoding = ss.decode(ss.sketch(rows, spec), k)
    labels = ss.metrics.assign(rows, decoding.centroids)
    part = rows[(labels != 1) | (np.arange(len(rows)) % 4 == 0)]
    expected = np.bincount(ss.metrics.assign(part, decoding.centroids), minlength=k) / len(part)

    np.testing.assert_allclose(
        ss.decoders.shares(decoding, ss.sketch(part, spec)), expected, atol=0.01
    )


def test_the_bound_holds_for_tight_rows_far_from_the_plan():
    rng = np.random.default_rng(1)
    for d, away, size in ((31, 1000.0, 1e-3), (40, 10.0, 1e-6), (100, 1e6, 1.0), (40, 30.0, 0.1)):
        plan = ss.plan(rng.normal(size=(500, d)), 3)
        rows = away * rng.normal(size=d) + size * rng.normal(size=(200, d))
        for weights in (None, rng.random(200)):
            sketch = ss.sketch(rows, plan, sample_weight=weights)
            for centroids in (rows.mean(axis=0, keepdims=True), rows[:3]):
                cost = ss.metrics.mse(rows, centroids, sample_weight=weights)
                assert ss.certify(sketch, centroids).cost_bound >= cost * (1.0 - 1e-12)


@pytest.mark.filterwarnings("ignore::sketchshift.errors.PlanWarning")
def test_clusters_are_not_trusted_under_a_plan_that_saw_other_rows():
    rng = np.random.default_rng(0)
    middles, labels = 4.0 * rng.normal(size=(8, 40)), rng.integers(8, size=3000)
    rows = middles[labels] + rng.normal(size=(3000, 40))

    for seen in (rows[labels < 2], 10.0 * rows, 0.01 * rows, rows[:12]):
        assert not ss.decode(ss.sketch(rows, ss.plan(seen, 8)), 8).is_good
    assert ss.decode(ss.sketch(rows, ss.plan(rows[::2], 8)), 8).is_good


@pytest.mark.filterwarnings("ignore::sketchshift.errors.PlanWarning")
@pytest.mark.parametrize(("n", "k"), [(12, 4), (30, 10), (50, 40), (200, 60)])
def test_few_rows_give_as_many_different_clusters_as_asked_for(n, k):
    rows = draw_rows(n, 3)

    decoding = ss.decode(ss.sketch(rows, n_clusters=k), k)

    assert len(np.unique(decoding.centroids, axis=0)) == k


def test_equal_rows_are_one_cluster_when_the_decoder_chooses():
    spec = ss.plan(draw_rows(2000, 3), n_clusters=3)
    rows = np.repeat(draw_rows(2, 2), 20, axis=0)

    assert len(ss.decode(ss.sketch(rows[:20], spec), "auto").centroids) == 1
    assert len(ss.decode(ss.sketch(rows, spec), "auto").centroids) == 2


def test_halves_of_one_sample_have_the_same_clusters_to_a_comparison():
    rows = draw_rows(6000, 4)
    spec = ss.plan(rows, n_clusters=4)

    found = ss.compare(ss.sketch(rows[::2], spec), ss.sketch(rows[1::2], spec), n_clusters=4)

    assert not found.drifted
    assert {cluster.verdict for cluster in found.clusters} == {"same"}


def test_short_rows_are_predicted_by_their_directions_and_rows_of_zeros_are_refused():
    rows = draw_rows(1000, 3)
    model = ss.CompressiveKMeans(3, metric="cosine", random_state=0).fit(rows)

    assert (model.predict(1e-20 * rows) == model.predict(rows)).all()
    with pytest.raises(ss.errors.InvalidRowsError, match="row 1 has no direction"):
        model.predict(np.vstack([rows[:1], np.zeros((1, D))]))


def test_private_plans_and_mixtures_say_what_to_do_with_many_columns():
    rows = draw_rows(1000, 3)

    assert ss.privacy.plan_public(rows, 3).axes is None
    with pytest.raises(ss.errors.DataError, match="cells=False"):
        ss.CompressiveGaussianMixture(3, spec=ss.plan(rows, 3)).fit(rows)
