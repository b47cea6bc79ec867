"""The turnkey decoder: as good as k-means, on any sketch, whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.errors import InvalidRowsError, PlanWarning

MIDDLES = [[0.0, 0.0], [6.0, 0.0], [0.0, 8.0], [9.0, 9.0]]
CLOUDS = np.repeat(MIDDLES, [400, 300, 200, 100], axis=0) + np.random.default_rng(0).normal(
    size=(1000, 2)
)


def test_planted_clusters_are_found_with_their_shares_and_covariances():
    decoding = ss.decode(ss.sketch(CLOUDS, n_clusters=4), 4)

    assert decoding.outcome is ss.decoders.Outcome.COMPLETE
    assert_allclose(decoding.weights, [0.4, 0.3, 0.2, 0.1], atol=0.01)
    assert_allclose(decoding.centroids, MIDDLES, atol=0.3)
    assert_allclose(decoding.covariances, [np.eye(2)] * 4, atol=0.35)
    assert ss.metrics.rse(CLOUDS, decoding.centroids, ss.metrics.lloyd(CLOUDS, 4)) < 1.01


def test_clusters_have_the_mean_and_the_covariance_of_the_rows():
    """Exact moments: what lies within the clusters and between them adds up to the total.

    Of all covariances waves know; cells know the variances, and so the trace.
    """
    sketch = ss.sketch(CLOUDS, n_clusters=4, cells=False)

    d = ss.decode(sketch, 4)

    assert_allclose(d.weights @ d.centroids, CLOUDS.mean(axis=0), atol=1e-9)
    rests = d.centroids - d.weights @ d.centroids
    total = np.einsum("k,kij->ij", d.weights, d.covariances) + (rests.T * d.weights) @ rests
    assert_allclose(total, np.cov(CLOUDS.T, bias=True), rtol=1e-6)


def test_several_numbers_of_clusters_come_from_one_fit():
    sketch, rounds = ss.sketch(CLOUDS, n_clusters=6, cells=False), []

    three, six, one = ss.decoders.decode_range(sketch, [3, 6, 1], progress=rounds.append)

    assert [len(d.centroids) for d in (three, six, one)] == [3, 6, 1]
    assert six.centroids.tobytes() == ss.decode(sketch, 6).centroids.tobytes()
    assert_allclose(one.centroids[0], CLOUDS.mean(axis=0), atol=1e-9)
    assert [r.index for r in rounds] == list(range(1, rounds[-1].total + 1))
    with pytest.raises(ss.errors.SpecError, match="at least one integer"):
        ss.decoders.decode_range(sketch, [])


@pytest.mark.parametrize("n", [1, 3])
def test_rows_with_fewer_distinct_values_than_clusters_give_these_values(n):
    values, counts = np.array([[0.0, 0.0], [1.0, 1.0], [5.0, 2.0]]), np.array([100, 50, 25])
    X = np.repeat(values, counts, axis=0)

    for spec in (ss.plan(X, 7), ss.SketchSpec(2, 200, 1.0)):
        sketch = ss.sketch(X[: counts[:n].sum()], spec)
        for k, outcome in ((7, "EMPTY_RESIDUAL"), ("auto", "COMPLETE")):
            decoding = ss.decode(sketch, k)
            assert_allclose(decoding.centroids, values[:n], atol=1e-4)
            assert_allclose(decoding.weights, counts[:n] / sketch.count, atol=1e-4)
            assert decoding.outcome.name == outcome
        assert decoding.curve.criterion == "distinct points"
        assert decoding.curve.n_clusters.tolist() == [1, 2, 3][:n]


@pytest.mark.parametrize(
    "X",
    [
        CLOUDS * [1, 0] + [0, 5],  # a constant column
        np.outer(CLOUDS[:, 0], [1.0, 2.0, 3.0]),  # a line
        CLOUDS + 1e9,
        np.vstack([CLOUDS, [1e6, 1e6]]),  # an outlier
    ],
)
def test_hostile_data_is_decoded_into_finite_centroids_within_its_range(X):
    decoding = ss.decode(ss.sketch(X, n_clusters=2), 2)

    margin = 0.05 * np.ptp(X, axis=0) + 1e-6 * np.abs(X).max(axis=0)
    box = ss.decoders.Box(X.min(axis=0) - margin, X.max(axis=0) + margin)
    assert box.contains(decoding.centroids).all()
    assert decoding.weights.sum() == pytest.approx(1.0)


def test_waves_alone_are_decoded_with_a_warning_where_rows_lie_far_beyond_the_plan():
    """Cells hold such rows; a few faults change the variance out of all proportion."""
    spec = ss.plan(CLOUDS, 4, cells=False)
    rows = np.vstack([CLOUDS, [[1e3, 1e3]] * 3])

    with pytest.warns(PlanWarning, match=r"times the variance of those that the plan"):
        ss.decode(ss.sketch(rows, spec), 4)
    with pytest.raises(InvalidRowsError, match=r"row 3 .* too far out"):
        ss.sketch(1e6 * rows, spec)
