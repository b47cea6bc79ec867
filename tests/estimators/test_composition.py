"""Inside scikit-learn: pipelines, searches, routing, frames out, copies."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sketchshift as ss

SMALL = {"sketch_size": 60, "random_state": 0}


def test_a_pipeline_scales_clusters_and_measures(blobs):
    pipeline = make_pipeline(StandardScaler(), ss.CompressiveKMeans(3, **SMALL)).fit(blobs)

    scaled = StandardScaler().fit_transform(blobs)
    alone = ss.CompressiveKMeans(3, **SMALL).fit(scaled)
    np.testing.assert_array_equal(pipeline.predict(blobs), alone.labels_)
    np.testing.assert_array_equal(pipeline.transform(blobs), alone.transform(scaled))
    assert pipeline.score(blobs) == alone.score(scaled)


def test_a_search_finds_the_number_of_components(blobs):
    """Held-out likelihood is highest for three Gaussians, or hardly lower."""
    mixture = ss.CompressiveGaussianMixture(covariance_type="spherical", **SMALL)

    search = GridSearchCV(mixture, {"n_components": [2, 3]}, cv=2).fit(blobs)

    assert search.best_params_ == {"n_components": 3}


def test_weights_are_routed_to_fit_and_score(blobs):
    weights = np.where(blobs[:, 1] > 3.0, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        km = ss.CompressiveKMeans(2, **SMALL)
        km.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, km).fit(blobs, sample_weight=weights)
        score = pipeline.score(blobs, sample_weight=weights)

    found = pipeline[-1].sketch_
    assert found.total_weight == weights.sum()
    assert score > pipeline.score(blobs)


@pytest.mark.parametrize(("output", "type_"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_distances_come_as_frames_if_asked_for(blobs, output, type_):
    km = ss.CompressiveKMeans(3, **SMALL).set_output(transform=output)

    distances = km.fit_transform(type_(dict(zip("ab", blobs.T, strict=True))))

    assert isinstance(distances, type_)
    assert list(distances.columns) == [f"compressivekmeans{i}" for i in range(3)]


@pytest.mark.parametrize(
    "estimator",
    [ss.CompressiveKMeans(3, **SMALL), ss.CompressiveGaussianMixture(3, **SMALL)],
    ids=["kmeans", "mixture"],
)
def test_a_copy_predicts_and_forgets_like_the_original(estimator, blobs):
    fitted = clone(estimator).fit(blobs)

    copy = pickle.loads(pickle.dumps(fitted))

    np.testing.assert_array_equal(copy.predict(blobs), fitted.predict(blobs))
    assert copy.forget(blobs[:100]).sketch_ == fitted.forget(blobs[:100]).sketch_


def test_a_clone_keeps_plan_and_decoder(blobs):
    spec, decoder = ss.plan(blobs, 3), ss.SketchAndShift(refine=True)

    copy = clone(ss.CompressiveKMeans(3, spec=spec, decoder=decoder))

    assert copy.spec == spec
    assert copy.decoder == decoder
