"""Which cluster rows belong to, by the distances that the clusters were found by."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import sketchshift as ss
from sketchshift.errors import DataError
from sketchshift.metrics import nearest_two


def test_rows_belong_to_the_nearest_centroid_of_standardised_columns(wine, of_wine):
    distances = cdist(wine / of_wine.column_scale, of_wine.centroids / of_wine.column_scale)
    found = of_wine.assign(wine)
    order, (nearest, other, _) = np.argsort(distances, axis=1), np.sort(distances, axis=1).T

    assert_array_equal(np.transpose([found.labels, found.second]), order[:, :2])
    assert_allclose(found.distances, nearest)
    assert_allclose(found.confidence, 1.0 - nearest / other, atol=1e-12)
    for labels in (of_wine.predict(wine), ss.metrics.assign(wine, of_wine)):
        assert_array_equal(labels, found.labels)
    shares = np.bincount(found.labels) / len(wine)
    assert_allclose(shares, of_wine.weights, atol=0.02)


def test_rows_are_read_by_name_from_frames_and_files_in_any_order(wine, of_wine, tmp_path):
    other = wine[wine.columns[::-1]].assign(note="text")
    other.to_csv(tmp_path / "wine.csv", index=False)

    for data in (other, wine.to_numpy(), tmp_path / "wine.csv"):
        assert_array_equal(of_wine.predict(data), of_wine.predict(wine))


def test_rows_with_missing_values_belong_to_no_cluster(wine, of_wine):
    holed, holes = wine.copy(), [3, 7]
    holed.iloc[3, 2], holed.iloc[7, 0] = np.nan, np.inf
    found = of_wine.assign(holed)

    assert found.labels[holes].tolist() == found.second[holes].tolist() == [-1, -1]
    assert np.isnan(found.distances[holes]).all()
    assert found.confidence[holes].tolist() == [0.0, 0.0]
    others = np.delete(of_wine.predict(wine), holes)
    assert_array_equal(np.delete(found.labels, holes), others)
    assert len(of_wine.predict(wine[:0])) == 0


def test_one_cluster_is_certain_and_equal_ones_are_not():
    one = nearest_two(np.eye(2), [[0.0, 0.0]])
    assert (one.second.tolist(), one.confidence.tolist()) == ([-1, -1], [1.0, 1.0])
    equal = nearest_two(np.zeros((1, 2)), np.zeros((2, 2)))
    assert (equal.labels.tolist(), equal.confidence.tolist()) == ([0], [0.0])


def test_other_columns_and_no_clusters_are_refused_in_words(of_wine, made):
    none = made(np.empty((0, 2)))
    for given, message in (
        (of_wine, "13"),
        (made(np.zeros((1, 2))), "the data has 3 columns, and the clusters have 2"),
        (none, "no clusters to assign rows to"),
    ):
        with pytest.raises(DataError, match=message):
            given.predict(np.zeros((4, 3)))
    assert (none.profile.lines(), none.to_arrow().num_rows) == ([], 0)


def test_a_decoding_draws_itself_where_it_knows_its_sketch(of_wine, made):
    pytest.importorskip("matplotlib")
    assert of_wine.plot().axes
    with pytest.raises(DataError, match="decoding_figure"):
        made(np.zeros((1, 2))).plot()
