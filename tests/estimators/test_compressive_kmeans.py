"""Centroids and what hangs on them: labels, distances, scores, warnings."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.preprocessing import scale

import sketchshift as ss
from sketchshift.errors import SpecError

SPEC = ss.SketchSpec(3, 50, 1.0)


def test_an_estimator_is_plan_sketch_and_decode(blobs):
    X = np.vstack([blobs] * 4)
    km = ss.CompressiveKMeans(3, random_state=5).fit(X)

    spec = ss.plan(X, 3, seed=5)
    assert km.sketch_ == ss.sketch(X, spec)
    assert km.cluster_centers_.tobytes() == ss.decode(km.sketch_, 3, seed=5).centroids.tobytes()


def test_few_rows_get_more_frequencies_of_the_same_plan(blobs):
    spec = ss.plan(blobs, 3, seed=5)
    km = ss.CompressiveKMeans(3, random_state=5)
    m = spec.sketch_size

    assert km.fit(blobs).sketch_.spec == spec.replaced(
        waves=dataclasses.replace(spec.waves, size=4 * m)
    )
    assert km.sketch_.prefix(m) == ss.sketch(blobs, spec)
    assert clone(km).partial_fit(blobs).sketch_.spec == spec
    assert km.set_params(sketch_size=60).fit(blobs).sketch_.spec == spec


@pytest.mark.parametrize(
    ("load", "k"),
    [
        (load_wine, 5),
        pytest.param(load_iris, 3, marks=pytest.mark.thorough),
        pytest.param(load_diabetes, 5, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_small_tables_are_clustered_as_well_as_by_k_means(load, k):
    """Against the best of 20 starts of k-means, which one start misses by up to 10 %."""
    X = scale(load().data)
    least = KMeans(k, n_init=20, random_state=0).fit(X).inertia_

    errors = [ss.CompressiveKMeans(k, random_state=seed).fit(X).inertia_ for seed in range(3)]

    assert np.mean(errors) < 1.02 * least


def test_labels_inertia_and_weights_agree_with_scikit_learn(blobs):
    """On clusters far apart there is one answer, up to the sampling of the sketch."""
    km = ss.CompressiveKMeans(3, random_state=0).fit(blobs)

    exact = KMeans(3, n_init=3, random_state=0).fit(blobs)
    order = ss.metrics.match_centroids(km.cluster_centers_, exact.cluster_centers_)
    assert_allclose(km.cluster_centers_, exact.cluster_centers_[order], atol=0.05)
    assert_array_equal(order[km.labels_], exact.labels_)
    assert km.inertia_ == pytest.approx(exact.inertia_, rel=0.02)
    assert_allclose(km.weights_, np.bincount(km.labels_) / len(blobs), atol=0.01)


def test_another_decoder_can_be_given(blobs):
    spec = ss.SketchSpec(2, 200, bandwidth=0.5)
    decoder = ss.ClOmpr()

    km = ss.CompressiveKMeans(3, spec=spec, decoder=decoder, random_state=1).fit(blobs)

    expected = decoder(ss.sketch(blobs, spec), 3, seed=1)
    assert_array_equal(km.cluster_centers_, expected.centroids)
    assert km.n_iter_ == len(expected.trace)


def test_a_decoder_that_cannot_be_called_is_refused_before_any_row_is_read():
    with pytest.raises(SpecError, match=r"'decoder' parameter of .* Got 'foo' instead"):
        ss.CompressiveKMeans(3, decoder="foo").fit("no such file.csv")


def test_auto_is_left_to_the_decoder_and_the_plan_serves_twenty(blobs):
    asked = []

    def decoder(sketch, n_clusters, seed):
        asked.append(n_clusters)
        return ss.decode(sketch, 3, seed=seed)

    km = ss.CompressiveKMeans("auto", decoder=decoder, random_state=0).fit(blobs)

    assert asked == ["auto"]
    assert km.sketch_.spec == ss.plan(blobs, 20, cells=False)  # nobody knows what it reads
    assert km.n_clusters_ == 3


def test_fewer_centroids_than_asked_for_are_a_warning_with_the_outcome():
    km = ss.CompressiveKMeans(2, spec=ss.SketchSpec(2, 50, bandwidth=1.0))

    with pytest.warns(ConvergenceWarning, match="1 of 2 clusters were found. Nothing was left"):
        km.fit(np.tile([[1.0, 2.0]], (20, 1)))

    assert_allclose(km.cluster_centers_, [[1.0, 2.0]], atol=1e-4)
    assert km.get_feature_names_out().tolist() == ["compressivekmeans0"]


def test_a_random_state_draws_seeds_and_an_integer_is_the_seed(blobs):
    drawing, again = (
        ss.CompressiveKMeans(3, sketch_size=50, random_state=np.random.RandomState(0))
        for _ in range(2)
    )
    fixed = ss.CompressiveKMeans(3, sketch_size=50, random_state=np.int64(9))

    seeds = [km.fit(blobs).sketch_.spec.waves.seed for km in (drawing, drawing, again, fixed)]
    assert seeds[0] == seeds[2] != seeds[1]
    assert seeds[3] == 9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, "'n_clusters' parameter of CompressiveKMeans must be an integer from"),
        ({"n_clusters": "many"}, "must be \"auto\" or an integer from 1 to 100000. Got 'many'"),
        ({"n_clusters": 601}, "n_samples=600 rows are in, and n_clusters=601 is more"),
        ({"spec": "plan.json"}, "'spec' parameter of CompressiveKMeans must be a SketchSpec or No"),
        ({"standardize": 1}, "'standardize' parameter of CompressiveKMeans must be True or False"),
        ({"sketch_size": 0}, "'sketch_size' parameter .* must be an integer from 1"),
        ({"random_state": -1}, "-1 cannot be used to seed|Seed must be between"),
        ({"spec": SPEC, "sketch_size": 9}, "takes spec or sketch_size and st"),
        ({"spec": SPEC, "standardize": True}, "or pass them to ss.plan inst"),
        ({"spec": SPEC}, "array has 2 columns, and the spec has n_features=3"),
    ],
)
def test_parameters_that_cannot_be_used_are_named(blobs, parameters, message):
    with pytest.raises(ValueError, match=message):
        ss.CompressiveKMeans(**parameters).fit(blobs)


NAMES = ["cluster_centers_", "weights_", "labels_", "inertia_", "decoding_", "n_iter_"]
OF_MIXTURES = ["weights_", "means_", "covariances_", "converged_"]


@pytest.mark.parametrize(
    ("estimator", "names"),
    [(ss.CompressiveKMeans(), NAMES), (ss.CompressiveGaussianMixture(), OF_MIXTURES)],
)
def test_nothing_is_there_and_nothing_can_be_forgotten_before_a_fit(estimator, names):
    for name in names:
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(estimator, name)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        estimator.forget(np.zeros((5, 2)))


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array])
def test_labels_and_distances_are_those_that_clusters_were_found_by(as_rows, rng):
    """With scales of their own, a column of large numbers does not decide alone."""
    X = rng.normal(size=(1000, 2)) * [0.1, 1000.0]
    X[500:, 0] += 3.0
    km = ss.CompressiveKMeans(2, standardize=True, random_state=0).fit(as_rows(X))
    scale = km.sketch_.spec.rows.scale_vector

    assert km.sketch_ == ss.sketch(X, km.sketch_.spec)
    assert (km.labels_ == km.labels_[0]).tolist() == [True] * 500 + [False] * 500
    assert_array_equal(km.predict(as_rows(X)), km.labels_)
    expected = cdist(X / scale, km.cluster_centers_ / scale)
    assert_allclose(km.transform(as_rows(X)), expected, rtol=1e-6)
    assert km.transform(as_rows(X.astype(np.float32))).dtype == np.float32
    assert km.inertia_ == pytest.approx((expected.min(axis=1) ** 2).sum())
    assert km.score(as_rows(X)) == pytest.approx(-km.inertia_)
