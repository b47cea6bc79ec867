"""Clusters of rows of many columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

import sketchshift as ss
from sketchshift.errors import DataError, InvalidRowsError

D = 60


def draw_rows(n, k, seed=0):
    rng = np.random.default_rng(seed)
    middles = 2.0 * np.random.default_rng(7).normal(size=(k, D))
    slopes = np.random.default_rng(8).normal(size=(k, 4, D))
    labels = rng.choice(k, size=n, p=np.arange(1, k + 1) / (k * (k + 1) / 2))
    rows = middles[labels] + np.einsum("ij,ijk->ik", rng.normal(size=(n, 4)), slopes[labels])
    return rows + rng.normal(size=(n, D))


def test_clusters_are_as_good_as_those_of_k_means_on_all_rows(rows, sketch):
    reference = KMeans(4, n_init=5, random_state=0).fit(rows).inertia_ / len(rows)

    decoding = ss.decode(sketch, 4)

    cost = ss.metrics.mse(rows, decoding.centroids)
    assert cost <= 1.01 * reference
    assert decoding.cost == pytest.approx(cost, rel=0.03)
    assert decoding.cost_bound >= cost
    assert decoding.is_good
    assert decoding.covariances is None


def test_a_number_is_chosen_by_the_decoder(sketch):
    assert 2 <= len(ss.decode(sketch, "auto").centroids) <= 4


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
def test_clusters_are_not_trusted_under_a_plan_that_saw_other_rows(rng):
    middles, labels = 4.0 * rng.normal(size=(8, 40)), rng.integers(8, size=3000)
    rows = middles[labels] + rng.normal(size=(3000, 40))

    for seen in (rows[labels < 2], 10.0 * rows):
        assert not ss.decode(ss.sketch(rows, ss.plan(seen, 8)), 8).is_good


def test_short_rows_are_predicted_by_their_directions_and_rows_of_zeros_are_refused(rows):
    model = ss.CompressiveKMeans(3, metric="cosine", random_state=0).fit(rows)

    assert (model.predict(1e-20 * rows) == model.predict(rows)).all()
    with pytest.raises(InvalidRowsError, match="row 1 has no direction"):
        model.predict(rows[:2] * [[1.0], [0.0]])


def test_private_plans_and_mixtures_say_what_to_do_with_many_columns(rows, sketch):
    assert ss.privacy.plan_public(rows, 3).axes is None
    with pytest.raises(DataError, match="cells=False"):
        ss.CompressiveGaussianMixture(3, spec=sketch.spec).fit(rows)


@pytest.fixture(scope="module")
def rows():
    return draw_rows(8000, 4)


@pytest.fixture(scope="module")
def sketch(rows):
    return ss.sketch(rows, n_clusters=4)
