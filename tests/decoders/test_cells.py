"""Sketches with cells: clusters as good as those of k-means, and a proof of what they cost."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import sketchshift as ss
from sketchshift.features.cells import n_cells_for, plan_cells

RNG = np.random.default_rng(0)


def tails(n=20_000, d=4):
    return np.random.default_rng(1).standard_t(2.0, size=(n, d))


def blobs(n=20_000, k=6, d=4):
    rng = np.random.default_rng(2)
    centers = rng.normal(size=(k, d)) * 6.0
    return centers[rng.integers(0, k, n)] + rng.normal(size=(n, d))


@cache
def reference(make, k):
    X = make()
    return float(KMeans(k, n_init=10, random_state=0).fit(X).inertia_) / len(X)


@pytest.mark.parametrize("make", [blobs, tails])
@pytest.mark.parametrize("seed", [0, 1])
def test_clusters_are_as_good_as_those_of_k_means(make, seed):
    X, k = make(), 6
    decoding = ss.decode(ss.sketch(X, ss.plan(X, k, seed=seed, cells=True)), k, seed=seed)

    assert ss.metrics.mse(X, decoding.centroids) <= 1.02 * reference(make, k)


def grid(side: int, rows: int, std: float = 0.15) -> tuple[np.ndarray, np.ndarray]:
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
    assert cells == plan_cells(X / 84.0, 14_000)


@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_waves_see_what_the_plan_has_not_seen():
    """The plan has seen one half of the clusters; cells alone would be far worse."""
    X, k = blobs(k=8), 8
    spec = ss.plan(X[X[:, 0] < np.median(X[:, 0])], k, cells=True)
    sketch, best = ss.sketch(X, spec), ss.metrics.mse(X, ss.metrics.lloyd(X, k))

    both = ss.metrics.mse(X, ss.decode(sketch, k).centroids) / best
    alone = ss.metrics.mse(X, ss.decode(sketch.prefix(0), k).centroids) / best

    assert both < 1.1
    assert both < alone


def test_numbers_are_shared_between_cells_and_waves():
    spec = ss.plan(blobs(), 6, cells=True)
    numbers = 2 * spec.sketch_size + spec.cells.n_cells * 9

    assert 2 * 10 * 6 * 4 - 1 <= numbers <= 2 * 10 * 6 * 4
    assert spec.cells.n_rows == 20_000
    assert n_cells_for(2000, 22, 10, 10) <= 1
    assert n_cells_for(2000, 200_000, 10, 10) > n_cells_for(2000, 2_000, 10, 10) > 20
    assert n_cells_for(400, 200_000, 10, 10) > 0.8 * 400 / 21  # few numbers: nearly all


@pytest.mark.parametrize("size", [1e3, 1e9, 1e155, 1e300])
def test_a_far_row_is_told_of_and_changes_no_cluster(size):
    X = blobs()
    spec = ss.plan(X, 6, cells=True)
    far = np.full((1, 4), size * float(spec.scale))
    without = ss.decode(ss.sketch(X, spec), 6)

    with pytest.warns(ss.errors.PlanWarning, match="Rows of weight 1 lie .* belong to no cluster"):
        found = ss.decode(ss.sketch(np.vstack([X, far]), spec), 6)

    np.testing.assert_allclose(found.centroids, without.centroids, atol=1e-6)
    assert not found.trust.is_good
    assert np.isfinite(found.cost)
    if size >= 1e9:
        assert "of all rows but a few, and at least " in str(found.trust)
        assert " is proved. Rows of weight 1 lie" in str(found.trust)
        assert found.trust.score < 1e-9
        assert found.cost_bound > 1e10 > found.cost
    assert (found.cost_bound == np.inf) == (size >= 1e155)


def test_many_far_rows_are_a_cluster():
    X = blobs()
    spec = ss.plan(X, 6, cells=True)
    far = np.array([1e5, 0.0, 0.0, 0.0]) + RNG.normal(size=(500, 4))

    with pytest.warns(
        ss.errors.PlanWarning, match="the size for 6 clusters, and 7 may be inaccurate"
    ):
        decoding = ss.decode(ss.sketch(np.vstack([X, far]), spec), 7)

    assert np.linalg.norm(decoding.centroids - far.mean(axis=0), axis=1).min() < 0.5


@pytest.mark.filterwarnings("ignore::sketchshift.errors.ScaleHint")
def test_the_estimated_cost_is_that_of_the_rows():
    for X in (blobs(), tails(), load_digits().data):
        decoding = ss.decode(ss.sketch(X, ss.plan(X, 6, cells=True)), 6)
        cost = ss.metrics.mse(X, decoding.centroids)

        assert decoding.cost == pytest.approx(cost, rel=0.02)
        assert cost <= decoding.cost_bound <= 1.3 * cost


def test_clusters_of_rows_like_the_plans_are_trusted_and_others_are_not():
    X = blobs(k=8)
    seen = ss.plan(X, 8, cells=True)
    unseen = ss.plan(X[X[:, 0] < np.quantile(X[:, 0], 0.2)], 8, cells=True)

    good = ss.decode(ss.sketch(X, seen), 8).trust
    with pytest.warns(ss.errors.PlanWarning) as told:
        poor = ss.decode(ss.sketch(X, unseen), 8).trust

    assert [str(warning.message) for warning in told] == [str(poor)]
    assert good.is_good
    assert 1.0 >= good.score >= 1 / 1.15 > poor.score > 0.0
    of_all = np.square(X - X.mean(axis=0)).sum(axis=1).mean()
    found = ss.decode(ss.sketch(X, seen), 8)
    about, proved = (100.0 * (1.0 - cost / of_all) for cost in (found.cost, found.cost_bound))
    told = f"The clusters explain {about:.1f} % of the variance, and at least {proved:.1f} % is"
    assert str(good) == f"{told} proved."
    assert not poor.is_good
    assert "would tell more" in str(poor)
    assert ss.decode(ss.sketch(X, n_clusters=8, cells=False), 8).trust is None


def test_clusters_are_trusted_where_far_rows_are_too_few_to_matter():
    X = blobs()
    spec = ss.plan(X, 6)
    weights = np.append(np.full(len(X), 1e6), 1.0)
    far = np.full((1, 4), 200.0 * float(spec.scale))
    found = ss.decode(ss.sketch(np.vstack([X, far]), spec, sample_weight=weights), 6)

    assert found.trust.is_good


def random_case(seed):
    """Rows, weights, a sketch with cells of some of the rows, and centroids of anybody."""
    rng = np.random.default_rng(seed)
    n, d, k = (int(rng.integers(1, high)) for high in (200, 6, 6))
    size, middle = 10.0 ** rng.uniform(-6, 6), rng.normal(size=d) * 10.0 ** rng.uniform(-3, 6)
    X = middle + size * rng.standard_t(rng.choice([1, 2, 5]), size=(n, d))
    if rng.random() < 0.2:
        X = np.round(X / size) * size
    seen = X[: int(rng.integers(1, n + 1))]
    center = seen.mean(axis=0)
    width = max(float(np.sqrt(seen.var(axis=0).sum())), 1e-9 * float(np.abs(center).max()), 1e-9)
    scale = tuple((width * rng.uniform(0.2, 3, size=d)).tolist()) if rng.random() < 0.5 else width
    cells = plan_cells((seen - center) / np.array(scale), int(rng.integers(1, 30)), seed=seed % 97)
    spec = ss.SketchSpec(d, 0, 0.5, center=center.tolist(), scale=scale, cells=cells)
    weights = rng.random(n) * 10.0 ** rng.uniform(-3, 3) if rng.random() < 0.5 else None
    noise = size * rng.normal(size=(k, d)) * rng.choice([0.0, 1e-9, 1.0])
    return X, weights, spec, X[rng.integers(0, n, k)] + noise


def check_bound(seed):
    X, weights, spec, centroids = random_case(seed)
    nearest = np.square(X[:, None] - centroids).sum(axis=2).min(axis=1)

    certificate = ss.certify(ss.sketch(X, spec, sample_weight=weights), centroids)

    assert certificate.cost_bound >= np.average(nearest, weights=weights)
    assert certificate.weights.sum() == pytest.approx(1.0)
    assert certificate.bounds.sum() == pytest.approx(certificate.cost_bound)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_cost_is_ever_above_its_bound(seed):
    check_bound(seed)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_cost_of_ten_thousand_is_ever_above_its_bound(seed):
    check_bound(seed)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_no_bound_is_broken_by_partial_weights_of_far_rows(seed):
    """Centroids stand where the sketch says that the rows are: nothing is left but rounding."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_t(2, size=(int(rng.integers(2, 40)), 2))
    rows[rng.random(len(rows)) < 0.3] *= 10.0 ** rng.uniform(0, 12)
    weights = rng.random(len(rows)) * 10.0 ** rng.uniform(-2, 2)
    spec = ss.plan(rng.normal(size=(200, 2)), 2, cells=True)
    sketch = ss.sketch(rows, spec, sample_weight=weights)
    cells = sketch.cells + sketch.outer + sketch.far
    centroids = spec.center_vector + spec.scale_vector * cells.means[cells.weights > 0.0]
    nearest = np.square(rows[:, None] - centroids).sum(axis=2).min(axis=1)

    assert ss.certify(sketch, centroids).cost_bound >= np.average(nearest, weights=weights)


@pytest.mark.parametrize("seed", range(8))
def test_weights_that_add_up_to_the_number_of_rows_are_no_whole_weights(seed):
    """A weight f and another 2 - f look like two rows in every sum."""
    rng = np.random.default_rng(seed)
    spec = ss.plan(RNG.normal(size=(3000, 1)), 2, cells=True)
    weights = rng.random(4)
    weights = np.concatenate([weights, 2.0 - weights])
    X = 1e9 * (1.0 + rng.random((8, 1)) * 10.0 ** rng.uniform(-12, -1))
    sketch = ss.sketch(X, spec, sample_weight=weights)
    centroids = spec.center_vector + spec.scale_vector * sketch.far.means
    nearest = np.square(X[:, None] - centroids).sum(axis=2).min(axis=1)

    assert ss.certify(sketch, centroids).cost_bound >= np.average(nearest, weights=weights)


def test_the_bound_is_tight_where_weights_are_whole_however_far_the_rows_are():
    spec = ss.plan(RNG.normal(size=(3000, 1)), 2)
    X = np.concatenate([RNG.normal(size=(1000, 1)), [[1e9], [1e9]]])
    whole = ss.sketch(X, spec, sample_weight=np.arange(1002) % 3 + 1.0)
    centroids = [[0.0], [1e9]]
    cost = np.average(np.square(X[:1000, 0]), weights=np.arange(1000) % 3 + 1.0)

    assert whole.n_partial == 0
    assert cost * 0.99 < ss.certify(whole, centroids).cost_bound < 1.2 * cost


def test_rows_of_tiny_weight_are_not_forgotten_by_the_bound():
    spec = ss.plan(RNG.normal(size=(3000, 1)), 2, cells=True)
    sketch = ss.sketch(np.array([[0.0], [0.0], [1e9]]), spec, sample_weight=[1.0, 1.0, 1e-10])

    assert ss.certify(sketch, [[0.0]]).cost_bound >= 1e-10 * 1e18 / 2.1


@pytest.mark.parametrize("k", [4, 10])
def test_rows_of_zeros_and_ones_are_decoded(k):
    X = RNG.integers(0, 2, (2000, 3)).astype(float)
    decoding = ss.decode(ss.sketch(X, ss.plan(X, k, cells=True)), k)

    assert len(decoding.centroids) == min(k, 8)
    assert decoding.cost == pytest.approx(ss.metrics.mse(X, decoding.centroids), abs=1e-6)
    assert decoding.trust.is_good


@pytest.mark.parametrize("away", [1e4, 1e9])
@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_rows_that_are_all_far_are_decoded(away):
    X = blobs(2000)
    found = ss.decode(ss.sketch(X + away, ss.plan(X, 6, cells=True)), 6)

    assert found.weights.sum() == pytest.approx(1.0)
    assert np.abs(found.centroids - away).max() < 30.0
    assert found.cost_bound >= ss.metrics.mse(X + away, found.centroids)


@pytest.mark.parametrize(
    "use",
    [
        lambda sketch: ss.decode(sketch, "auto"),
        lambda sketch: ss.ClOmpr()(sketch, 2),
        lambda sketch: ss.SketchAndShift()(sketch, 2),
        lambda sketch: ss.compare(sketch, sketch),
    ],
)
def test_what_needs_waves_says_so(use):
    X = blobs(500)
    sketch = ss.sketch(X, ss.plan(X, 3, cells=True)).prefix(0)
    with pytest.raises(ss.errors.DataError, match="this needs waves"):
        use(sketch)


@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_a_comparison_tells_of_rows_that_no_wave_has_seen():
    X = blobs(3000)
    spec = ss.plan(X, 6, cells=True)
    far = ss.sketch(np.vstack([X[:2000], X[2000:] + 1e9]), spec)
    with pytest.warns(ss.errors.PlanWarning, match="rows of weight 1,000 lie beyond the reach"):
        ss.compare(ss.sketch(X, spec), far, n_clusters=3)


def test_a_sketch_without_cells_proves_nothing_and_says_so():
    X = blobs(500)
    with pytest.raises(ss.errors.DataError, match="only sketches with cells prove anything"):
        ss.certify(ss.sketch(X, n_clusters=3, cells=False), X[:3])
    spec = ss.plan(X, 3, cells=True)
    with pytest.raises(ss.errors.DataError, match="nothing to prove"):
        ss.certify(ss.Sketcher(spec).sketch(), X[:3])
    for bad in (X[:3, :2], np.full((2, 4), np.nan), np.zeros((0, 4)), "ab"):
        with pytest.raises(ss.errors.SpecError, match="centroids"):
            ss.certify(ss.sketch(X, spec), bad)


def test_sketches_without_waves_decode_too():
    X = blobs()
    spec = ss.plan(X, 6, cells=True).prefix(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decoding = ss.decode(ss.sketch(X, spec), 6)

    assert ss.metrics.mse(X, decoding.centroids) <= 1.02 * reference(blobs, 6)


def wells(n=20_000, seed=0):
    """Production with zeros and six decades, and coordinates of which a few are 0, 0."""
    rng = np.random.default_rng(seed)
    production = np.exp(rng.normal(6.0, 2.5, size=(n, 2))) * (rng.random((n, 2)) < 0.6)
    places = np.array([47.5, -103.0]) + rng.normal(size=(n, 2)) * [0.6, 0.9]
    places[rng.random(n) < 0.001] = 0.0
    return np.column_stack([production, places])


@pytest.mark.parametrize(("seed", "kind"), [(0, "all"), (1, "half"), (2, "head")])
@pytest.mark.filterwarnings(
    "ignore::sketchshift.errors.PlanWarning", "ignore::sketchshift.errors.ScaleHint"
)
def test_no_centroid_lies_where_no_row_can_be(seed, kind):
    X = wells(seed=seed)
    seen = {"all": X, "half": X[X[:, 0] < np.median(X[:, 0])], "head": X[:200]}[kind]
    for standardize in (False, True):
        sketch = ss.sketch(X, ss.plan(seen, 10, seed=seed, standardize=standardize))
        centroids = ss.decode(sketch, 10, seed=seed).centroids

        assert (centroids[:, :2] >= 0.0).all()
        assert (centroids <= X.max(axis=0) + 1e-9 * np.ptp(X, axis=0)).all()


def test_standardised_clusters_are_judged_by_standardised_distances():
    """The second column says all, in numbers so small that distances of the data miss it."""
    rng = np.random.default_rng(0)
    groups = 9.0 * rng.integers(4, size=4_000)
    X = np.column_stack([1e4 * rng.normal(size=4_000), 1e-3 * (groups + rng.normal(size=4_000))])
    spec = ss.plan(X, 4, standardize=True)
    stale = ss.plan(X[groups == 0.0] * [1.0, 0.1], 4, standardize=True)

    good = ss.decode(ss.sketch(X, spec), 4)
    with pytest.warns(ss.errors.PlanWarning, match="seem to explain"):
        poor = ss.decode(ss.sketch(X, stale), 4)

    scaled = X / spec.scale_vector
    left = ss.metrics.mse(scaled, good.centroids / spec.scale_vector) / scaled.var(axis=0).sum()
    assert f"The clusters explain {100.0 * (1.0 - left):.0f} % of the variance" in str(good.trust)
    assert not poor.trust.is_good


@pytest.mark.filterwarnings("ignore::sketchshift.errors.ScaleHint")
@pytest.mark.parametrize("sentinel", [9_999_999_999.0, 2.0**31 - 1.0])
def test_clusters_are_not_trusted_where_sentinels_leave_nothing_but_rounding(sentinel):
    """The plan has seen them, and its steps are as wide as the clusters are."""
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(4, 3)) * 10)[rng.integers(4, size=20_000)] + rng.normal(size=(20_000, 3))
    X[:20, 1] = sentinel
    with pytest.warns(ss.errors.PlanWarning, match="seem to explain"):
        found = ss.decode(ss.sketch(X, n_clusters=5), 5)

    assert not found.is_good
    assert found.cost_bound >= ss.metrics.mse(X, found.centroids)


def test_clusters_are_not_trusted_where_a_light_shell_holds_most_of_their_cost():
    """Twelve of 100,000 rows in three places that the plan has not seen."""
    rng = np.random.default_rng(0)
    mid = rng.normal(size=(8, 2)) * 10
    rows = mid[rng.integers(8, size=120_000)] + 0.1 * rng.normal(size=(120_000, 2))
    spec, X = ss.plan(rows[:20_000], n_clusters=11), rows[20_000:]
    for i, y in enumerate((-60.0, 0.0, 60.0)):
        X[4 * i : 4 * i + 4] = [250.0, y]
    with pytest.warns(ss.errors.PlanWarning, match="seem to explain"):
        found = ss.decode(ss.sketch(X, spec), 11)

    assert not found.is_good


@pytest.mark.filterwarnings("ignore::sketchshift.errors.PlanWarning")
def test_rows_over_thirty_decades_are_decoded():
    rng = np.random.default_rng(69)
    spec = ss.plan(rng.normal(size=(60, 5)), n_clusters=3)
    X = rng.normal(size=(40, 5)) * 10.0 ** (30 * rng.random((40, 1)))

    assert np.isfinite(
        ss.decode(ss.sketch(X, spec, sample_weight=rng.random(40)), 3).centroids
    ).all()


def test_of_many_columns_shells_are_told_apart_by_their_power_alone():
    X = RNG.normal(size=(3000, 40))
    spec = ss.plan(X, 3)
    sketch = ss.sketch(np.vstack([X, 30.0 * RNG.normal(size=(500, 40))]), spec)
    J = spec.cells.n_cells

    assert sketch.cells.weights[J:].sum() == 500.0
    assert len(sketch.cells.weights) - J <= 4 * J
