"""Rows that come in parts and go again, exactly; both estimators share it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import sketchshift as ss
from sketchshift.errors import RemovalError, SpecError

ESTIMATORS = {
    "kmeans": ss.CompressiveKMeans(3, random_state=0),
    "mixture": ss.CompressiveGaussianMixture(3, covariance_type="diag", random_state=0),
}


@pytest.fixture(params=list(ESTIMATORS))
def estimator(request, blobs):
    """Each estimator, with a plan."""
    spec = ss.plan(blobs, 3, sketch_size=60)
    return clone(ESTIMATORS[request.param]).set_params(spec=spec)


def found(estimator):
    """The bytes of the result."""
    is_kmeans = isinstance(estimator, ss.CompressiveKMeans)
    return (estimator.cluster_centers_ if is_kmeans else estimator.covariances_).tobytes()


def test_forgetting_a_tenth_is_never_having_seen_it(estimator, blobs):
    """With one plan, sketch and result are equal bit for bit."""
    forgetful = clone(estimator).fit(blobs).forget(blobs[:60])
    ignorant = clone(estimator).fit(blobs[60:])

    assert forgetful.sketch_ == ignorant.sketch_
    assert found(forgetful) == found(ignorant)


def test_a_sketch_is_all_that_is_needed(estimator, blobs):
    whole = clone(estimator).fit(blobs)
    estimator.set_params(spec=None).fit_sketch(ss.Sketch.from_bytes(whole.sketch_.to_bytes()))

    assert found(estimator) == found(whole)
    assert estimator.n_features_in_ == 2


def test_weights_are_added_and_forgotten(estimator, blobs):
    weights = np.arange(len(blobs)) % 4 / 2
    odd = weights % 1 > 0

    forgetful = clone(estimator).partial_fit(blobs, sample_weight=weights)
    forgetful.forget(blobs[odd], sample_weight=weights[odd])

    kept = clone(estimator).partial_fit(blobs[~odd], sample_weight=weights[~odd])
    assert forgetful.sketch_ == kept.sketch_


def test_the_first_part_makes_the_plan_if_there_is_none(blobs):
    km = ss.CompressiveKMeans(3, sketch_size=80, standardize=True, random_state=2)

    km.partial_fit(blobs[:200]).partial_fit(blobs[200:])

    spec = ss.plan(blobs[:200], 3, sketch_size=80, standardize=True, seed=2)
    assert km.sketch_ == ss.sketch(blobs, spec)


def test_decoding_waits_until_somebody_looks(blobs):
    calls = []

    def decoder(sketch, n_clusters, seed):
        calls.append(sketch.count)
        return ss.decode(sketch, n_clusters, seed=seed)

    km = ss.CompressiveKMeans(3, sketch_size=50, decoder=decoder, random_state=0)
    km.partial_fit(blobs[:300]).partial_fit(blobs[300:]).forget(blobs[:100])
    assert calls == []

    _ = km.cluster_centers_, km.weights_, km.predict(blobs)
    assert calls == [500]


def test_fitting_starts_anew_and_adding_goes_on(estimator, blobs):
    estimator.fit(blobs).fit(blobs[:300])
    assert estimator.sketch_.count == 300

    estimator.partial_fit(blobs[300:])
    assert estimator.sketch_.count == 600


def test_labels_go_when_rows_come_or_go(blobs):
    km = ss.CompressiveKMeans(3, sketch_size=50, random_state=0).fit(blobs).forget(blobs[:10])

    assert not hasattr(km, "labels_")
    with pytest.raises(AttributeError, match=r"no inertia_: a sketch keeps no rows.*score\(X\)"):
        _ = km.inertia_


def test_more_than_is_in_cannot_be_forgotten_and_nothing_changes(estimator, blobs):
    estimator.partial_fit(blobs[:50])
    before = estimator.sketch_

    with pytest.raises(RemovalError, match="cannot remove more than was added"):
        estimator.forget(blobs)

    assert estimator.sketch_ == before


def test_only_sketches_are_fitted_as_sketches(estimator, blobs):
    with pytest.raises(SpecError, match=r"'sketch' parameter of .*fit_sketch must be a Sketch"):
        estimator.fit_sketch(blobs)
