"""Inside scikit-learn: pipelines, searches, routing, frames out, copies."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sketchshift as ss

SMALL = {"sketch_size": 60, "random_state": 0}


def test_a_pipeline_scales_clusters_and_measures(blobs):
    pipeline = make_pipeline(StandardScaler(), ss.CompressiveKMeans(3, **SMALL)).fit(blobs)

    scaled = StandardScaler().fit_transform(blobs)
    alone = ss.CompressiveKMeans(3, **SMALL).fit(scaled)
    for name in ("predict", "transform", "score"):
        found, expected = getattr(pipeline, name)(blobs), getattr(alone, name)(scaled)
        np.testing.assert_array_equal(found, expected)


def test_weights_are_routed_to_fit_and_score(blobs):
    weights = np.where(blobs[:, 1] > 3.0, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        km = ss.CompressiveKMeans(2, **SMALL)
        km.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(km).fit(blobs, sample_weight=weights)
        score = pipeline.score(blobs, sample_weight=weights)

    assert pipeline[-1].sketch_.total_weight == weights.sum()
    assert score > pipeline.score(blobs)


def test_distances_come_as_frames_if_asked_for(blobs):
    for output, frame in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        km = ss.CompressiveKMeans(3, **SMALL).set_output(transform=output)
        distances = km.fit_transform(frame(dict(zip("ab", blobs.T, strict=True))))
        assert isinstance(distances, frame)
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
