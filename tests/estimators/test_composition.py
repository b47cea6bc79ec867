"""Inside scikit-learn, beside its own checks: routing, and frames out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.pipeline import make_pipeline

import sketchshift as ss

SMALL = {"sketch_size": 60, "random_state": 0}


def test_weights_are_routed_to_fit_and_score(blobs):
    weights = np.where(blobs[:, 1] > 3.0, 0.0, 2.0)
    with sklearn.config_context(enable_metadata_routing=True):
        km = ss.CompressiveKMeans(2, **SMALL)
        km.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(km).fit(blobs, sample_weight=weights)
        score = pipeline.score(blobs, sample_weight=weights)

    assert pipeline[-1].sketch_.total_weight == weights.sum()
    assert score == pytest.approx(2.0 * pipeline.score(blobs[weights > 0.0]), rel=1e-12)


def test_distances_come_as_frames_if_asked_for(blobs):
    for output, frame in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        km = ss.CompressiveKMeans(3, **SMALL).set_output(transform=output)
        distances = km.fit_transform(frame(dict(zip("ab", blobs.T, strict=True))))
        assert isinstance(distances, frame)
        assert list(distances.columns) == [f"compressivekmeans{i}" for i in range(3)]
