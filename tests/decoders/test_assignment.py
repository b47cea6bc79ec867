"""Which cluster rows belong to, by the distances that the clusters were found by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine
from sklearn.preprocessing import normalize

import sketchshift as ss
from sketchshift.metrics import nearest_two


@pytest.fixture(scope="module")
def wine() -> pd.DataFrame:
    return load_wine(as_frame=True).data


@pytest.fixture(scope="module")
def decoding(wine) -> ss.Decoding:
    return ss.decode(ss.sketch(wine, n_clusters=3, standardize=True), 3)


def test_rows_belong_to_the_nearest_centroid_of_standardised_columns(wine, decoding):
    distances = cdist(wine / decoding.column_scale, decoding.centroids / decoding.column_scale)
    assignment = decoding.assign(wine)
    order = np.argsort(distances, axis=1)

    np.testing.assert_array_equal(assignment.labels, order[:, 0])
    np.testing.assert_array_equal(assignment.second, order[:, 1])
    nearest, other = np.sort(distances, axis=1)[:, :2].T
    np.testing.assert_allclose(assignment.distances, nearest)
    np.testing.assert_allclose(assignment.confidence, 1.0 - nearest / other, atol=1e-12)
    np.testing.assert_array_equal(decoding.predict(wine), assignment.labels)
    shares = np.bincount(assignment.labels) / len(wine)
    np.testing.assert_allclose(shares, decoding.weights, atol=0.02)


def test_a_decoding_is_assigned_by_its_scales_and_bare_centroids_are_not(wine, decoding):
    np.testing.assert_array_equal(ss.metrics.assign(wine, decoding), decoding.predict(wine))
    bare = ss.metrics.assign(wine.to_numpy(), decoding.centroids)
    np.testing.assert_array_equal(bare, cdist(wine, decoding.centroids).argmin(axis=1))
    assert np.mean(bare == decoding.predict(wine)) < 0.8


def test_rows_are_read_by_name_from_frames_and_files_in_any_order(wine, decoding, tmp_path):
    labels = decoding.predict(wine)
    other = wine[wine.columns[::-1]].assign(note="text")
    other.to_csv(tmp_path / "wine.csv", index=False)
    other.to_parquet(tmp_path / "wine.parquet", index=False)

    np.testing.assert_array_equal(decoding.predict(other), labels)
    np.testing.assert_array_equal(decoding.predict(wine.to_numpy()), labels)
    np.testing.assert_array_equal(decoding.predict(tmp_path / "wine.csv"), labels)
    np.testing.assert_array_equal(decoding.predict(str(tmp_path / "wine.parquet")), labels)


def test_rows_with_missing_values_belong_to_no_cluster(wine, decoding):
    holed = wine.copy()
    holed.iloc[3, 2], holed.iloc[7, 0] = np.nan, np.inf
    assignment, whole = decoding.assign(holed), decoding.predict(wine)

    assert assignment.labels[[3, 7]].tolist() == assignment.second[[3, 7]].tolist() == [-1, -1]
    assert np.isnan(assignment.distances[[3, 7]]).all()
    assert assignment.confidence[[3, 7]].tolist() == [0.0, 0.0]
    others = np.delete(np.arange(len(wine)), [3, 7])
    np.testing.assert_array_equal(assignment.labels[others], whole[others])
    assert len(decoding.predict(wine[:0])) == 0


def test_cosine_clusters_are_assigned_by_directions():
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(3), 200, axis=0) + 0.1 * rng.normal(size=(600, 3))
    X *= rng.lognormal(sigma=2.0, size=(600, 1))
    decoding = ss.decode(ss.sketch(X, n_clusters=3, metric="cosine"), 3)

    nearest = cdist(normalize(X), decoding.centroids).argmin(axis=1)
    np.testing.assert_array_equal(decoding.predict(X), nearest)
    assert len({tuple(set(labels)) for labels in nearest.reshape(3, 200)}) == 3


def test_one_cluster_is_certain_and_equal_ones_are_not():
    one = nearest_two(np.eye(2), [[0.0, 0.0]])
    assert (one.second.tolist(), one.confidence.tolist()) == ([-1, -1], [1.0, 1.0])
    equal = nearest_two(np.zeros((1, 2)), np.zeros((2, 2)))
    assert (equal.labels.tolist(), equal.confidence.tolist()) == ([0], [0.0])
    middle = nearest_two([[0.5], [0.0]], [[0.0], [1.0]])
    assert middle.confidence.tolist() == [0.0, 1.0]


def test_other_columns_and_no_clusters_are_refused_in_words(decoding):
    with pytest.raises(ss.errors.DataError, match="13"):
        decoding.predict(np.zeros((4, 3)))
    made = ss.Decoding(np.zeros((1, 2)), np.ones(1), None, 0.0, ss.decoders.Outcome.COMPLETE, ())
    with pytest.raises(
        ss.errors.DataError, match="the data has 3 columns, and the clusters have 2"
    ):
        made.predict(np.zeros((4, 3)))
    none = ss.Decoding(
        np.empty((0, 2)), np.empty(0), None, 1.0, ss.decoders.Outcome.FLAT_CORRELATION, ()
    )
    with pytest.raises(ss.errors.DataError, match="no clusters to assign rows to"):
        none.predict(np.zeros((4, 2)))
    assert (none.profile.lines(), none.to_arrow().num_rows) == ([], 0)


def test_a_decoding_draws_itself_where_it_knows_its_sketch(decoding):
    pytest.importorskip("matplotlib")
    assert decoding.plot().axes
    made = ss.Decoding(np.zeros((1, 2)), np.ones(1), None, 0.0, ss.decoders.Outcome.COMPLETE, ())
    with pytest.raises(ss.errors.DataError, match="decoding_figure"):
        made.plot()
