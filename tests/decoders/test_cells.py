"""Sketches with cells: clusters as good as those of k-means, and a proof of what they cost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial import cKDTree
from sklearn.cluster import KMeans

import sketchshift as ss
from sketchshift.errors import DataError, PlanWarning, SpecError
from sketchshift.features import Rows
from sketchshift.features.cells import n_cells_for, plan_cells

RNG = np.random.default_rng(0)


def tails(n=20_000, d=4):
    return np.random.default_rng(1).standard_t(2.0, size=(n, d))


def blobs(n=20_000, k=6, d=4):
    rng = np.random.default_rng(2)
    centers = rng.normal(size=(k, d)) * 6.0
    return centers[rng.integers(0, k, n)] + rng.normal(size=(n, d))


@pytest.mark.parametrize("make", [blobs, tails])
def test_clusters_are_as_good_as_those_of_k_means_also_without_waves(make):
    X = make()
    spec, best = ss.plan(X, 6, cells=True), KMeans(6, n_init=5, random_state=0).fit(X).inertia_

    for one in (spec, spec.prefix(0)):
        centroids = ss.decode(ss.sketch(X, one), 6).centroids
        assert ss.metrics.mse(X, centroids) <= 1.02 * best / len(X)


def grid(side, rows, std=0.15):
    """Rows of side^2 clusters in the plane, one unit apart, and the means of these."""
    steps = np.arange(float(side))
    means = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    noise = np.random.default_rng(side).normal(size=(rows, side**2, 2))
    return (means + std * noise).reshape(-1, 2), means


def test_every_one_of_many_clusters_is_found():
    X, means = grid(side=25, rows=40)

    found = ss.decode(ss.sketch(X, n_clusters=625), 625).centroids

    assert cKDTree(found).query(means)[0].max() < 0.3
    assert ss.metrics.mse(X, found) < 1.01 * ss.metrics.mse(X, X.reshape(40, 625, 2).mean(axis=0))


def test_many_cells_have_a_center_in_each_of_many_clusters_and_are_no_more_than_asked_for():
    """A sample of one in fourteen rows, of which seeds were drawn, would hold 10,000 of 14,000."""
    X, means = grid(side=84, rows=20)

    cells = plan_cells(X / 84.0, 14_000)

    assert 13_500 < cells.n_cells <= 14_000
    assert cKDTree(84.0 * cells.table).query(means)[0].max() < 0.5
    assert cells.within * 84.0**2 < 2 * 0.15**2


def test_of_numbers_that_are_shared_cells_get_more_the_more_rows_there_are():
    numbers = [n_cells_for(m, n, 10, 10) for m, n in ((2000, 22), (2000, 2_000), (2000, 200_000))]
    assert numbers[0] <= 1 < 20 < numbers[1] < numbers[2]
    assert n_cells_for(400, 200_000, 10, 10) > 0.8 * 400 / 21  # few numbers: nearly all


@pytest.mark.parametrize("size", [1e3, 1e9, 1e300])
def test_a_far_row_is_told_of_and_changes_no_cluster(size):
    X = blobs()
    sketch = ss.sketch(X, n_clusters=6)
    far = ss.sketch(np.full((1, 4), size * float(sketch.spec.rows.scale)), sketch.spec)

    with pytest.warns(PlanWarning, match="Rows of weight 1 lie .* belong to no cluster"):
        found = ss.decode(sketch + far, 6)

    assert_allclose(found.centroids, ss.decode(sketch, 6).centroids, atol=1e-6)
    assert not found.is_good
    assert np.isfinite(found.cost)
    if size >= 1e9:
        assert "is proved. Rows of weight 1 lie" in str(found.trust)
        assert found.trust.score < 1e-9
        assert found.cost_bound > 1e10 > found.cost
    assert (found.cost_bound == np.inf) == (size == 1e300)


def test_clusters_of_rows_like_the_plans_are_trusted_and_others_are_not():
    X = blobs(k=8)
    unseen = ss.plan(X[X[:, 0] < np.quantile(X[:, 0], 0.2)], 8)

    found = ss.decode(ss.sketch(X, n_clusters=8), 8)
    with pytest.warns(PlanWarning, match="would tell more"):
        poor = ss.decode(ss.sketch(X, unseen), 8)

    assert (found.is_good, poor.is_good) == (True, False)
    assert 1.0 >= found.trust.score >= 1 / 1.15 > poor.trust.score > 0.0
    shares = (100.0 - 100.0 * c / X.var(axis=0).sum() for c in (found.cost, found.cost_bound))
    told = "The clusters explain {:.1f} % of the variance, and at least {:.1f} % is proved."
    assert str(found.trust) == told.format(*shares)


def random_case(seed):
    """Rows, weights, a sketch with cells of some of the rows, and centroids of anybody."""
    rng = np.random.default_rng(seed)
    n, d, k = (int(rng.integers(1, high)) for high in (200, 6, 6))
    size, middle = 10.0 ** rng.uniform(-6, 6), rng.normal(size=d) * 10.0 ** rng.uniform(-3, 6)
    X = middle + size * rng.standard_t(rng.choice([1, 2, 5]), size=(n, d))
    if rng.random() < 0.2:
        X = np.round(X / size) * size
    if rng.random() < 0.4:
        X[rng.random(n) < 0.3] *= 10.0 ** rng.uniform(0, 12)
    seen = X[: int(rng.integers(1, n + 1))]
    center = seen.mean(axis=0)
    width = max(float(np.sqrt(seen.var(axis=0).sum())), 1e-9 * float(np.abs(center).max()), 1e-9)
    scale = tuple((width * rng.uniform(0.2, 3, size=d)).tolist()) if rng.random() < 0.5 else width
    cells = plan_cells((seen - center) / np.array(scale), int(rng.integers(1, 30)), seed=seed % 97)
    spec = ss.SketchSpec.of(Rows(d, None, center.tolist(), scale), cells=cells)
    weights = rng.random(n) * 10.0 ** rng.uniform(-3, 3) if rng.random() < 0.5 else None
    noise = size * rng.normal(size=(k, d)) * rng.choice([0.0, 1e-9, 1.0])
    return X, weights, spec, X[rng.integers(0, n, k)] + noise


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1))
def test_no_cost_is_ever_above_its_bound(seed):
    """Nor where the sketch says that the rows are: nothing is left there but rounding."""
    X, weights, spec, centroids = random_case(seed)
    sketch = ss.sketch(X, spec, sample_weight=weights)
    cells = sketch.cells + sketch.outer + sketch.far
    told = spec.rows.center_vector + spec.rows.scale_vector * cells.means[cells.weights > 0.0]

    certificate = ss.certify(sketch, centroids)

    assert certificate.cost_bound >= cost(X, centroids, weights)
    assert certificate.weights.sum() == pytest.approx(1.0)
    assert certificate.bounds.sum() == pytest.approx(certificate.cost_bound)
    assert ss.certify(sketch, told).cost_bound >= cost(X, told, weights)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(st.integers(0, 2**32 - 1))
def test_no_cost_of_ten_thousand_is_ever_above_its_bound(seed):
    test_no_cost_is_ever_above_its_bound.hypothesis.inner_test(seed)


@pytest.mark.parametrize("seed", range(8))
def test_weights_that_add_up_to_the_number_of_rows_are_no_whole_weights(of_one_column, seed):
    """A weight f and another 2 - f look like two rows in every sum."""
    rng = np.random.default_rng(seed)
    weights = rng.random(4)
    weights = np.concatenate([weights, 2.0 - weights])
    X = 1e9 * (1.0 + rng.random((8, 1)) * 10.0 ** rng.uniform(-12, -1))
    sketch = ss.sketch(X, of_one_column, sample_weight=weights)
    centroids = (
        of_one_column.rows.center_vector + of_one_column.rows.scale_vector * sketch.far.means
    )

    assert ss.certify(sketch, centroids).cost_bound >= cost(X, centroids, weights)


def test_the_bound_is_tight_where_weights_are_whole_however_far_the_rows_are(of_one_column):
    X = np.append(RNG.normal(size=1000), [1e9, 1e9])[:, None]
    weights, centroids = np.arange(1002) % 3 + 1.0, [[0.0], [1e9]]
    whole = ss.sketch(X, of_one_column, sample_weight=weights)
    exact = cost(X[:1000], centroids, weights[:1000])

    assert whole.n_partial == 0
    assert exact * 0.99 < ss.certify(whole, centroids).cost_bound < 1.2 * exact


def test_rows_of_tiny_weight_are_not_forgotten_by_the_bound(of_one_column):
    X = np.array([[0.0], [0.0], [1e9]])
    sketch = ss.sketch(X, of_one_column, sample_weight=[1.0, 1.0, 1e-10])

    assert ss.certify(sketch, [[0.0]]).cost_bound >= 1e-10 * 1e18 / 2.1


@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_rows_that_are_all_far_are_decoded():
    X = blobs(2000)
    found = ss.decode(ss.sketch(X + 1e4, ss.plan(X, 6, cells=True)), 6)

    assert found.weights.sum() == pytest.approx(1.0)
    assert np.abs(found.centroids - 1e4).max() < 30.0
    assert found.cost_bound >= ss.metrics.mse(X + 1e4, found.centroids)


@pytest.mark.parametrize("use", [ss.ClOmpr(), lambda s, k: ss.compare(s, s)])
def test_what_needs_waves_says_so(use):
    sketch = ss.sketch(blobs(500), n_clusters=3, cells=True).prefix(0)

    with pytest.raises(DataError, match="this needs waves"):
        use(sketch, 2)


@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_a_comparison_tells_of_rows_that_no_wave_has_seen():
    X = blobs(3000)
    sketch = ss.sketch(X, n_clusters=6, cells=True)
    far = ss.sketch(X + 1e9 * (np.arange(3000) >= 2000)[:, None], sketch.spec)
    with pytest.warns(PlanWarning, match="rows of weight 1,000 lie beyond the reach"):
        ss.compare(sketch, far, n_clusters=3)


def test_a_sketch_without_rows_proves_nothing_and_centroids_are_checked():
    X = blobs(500)
    sketch = ss.sketch(X, n_clusters=3, cells=True)
    with pytest.raises(DataError, match="nothing to prove"):
        ss.certify(sketch - sketch, X[:3])
    for bad in (X[:3, :2], np.full((2, 4), np.nan), np.zeros((0, 4)), "ab"):
        with pytest.raises(SpecError, match="centroids"):
            ss.certify(sketch, bad)


def cost(X, centroids, weights=None):
    """The mean squared distance to the nearest centroid, in plain NumPy."""
    return np.average(np.square(X[:, None] - centroids).sum(axis=2).min(axis=1), weights=weights)


@pytest.fixture(scope="module")
def of_one_column():
    return ss.plan(RNG.normal(size=(3000, 1)), 2)
