"""The turnkey decoder: as good as k-means, on any sketch, whatever the data."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import sketchshift as ss
from sketchshift.decoders import gaussians

RNG = np.random.default_rng(0)
CLOUDS = np.repeat([[0.0, 0.0], [6.0, 0.0], [0.0, 8.0], [9.0, 9.0]], [400, 300, 200, 100], axis=0)
CLOUDS = CLOUDS + RNG.normal(size=CLOUDS.shape)


def test_planted_clusters_are_found_with_their_shares_and_covariances():
    decoding = ss.decode(ss.sketch(CLOUDS, n_clusters=4), 4)

    assert decoding.outcome is ss.decoders.Outcome.COMPLETE
    np.testing.assert_allclose(decoding.weights, [0.4, 0.3, 0.2, 0.1], atol=0.01)
    expected = [[0, 0], [6, 0], [0, 8], [9, 9]]
    np.testing.assert_allclose(decoding.centroids, expected, atol=0.3)
    np.testing.assert_allclose(
        decoding.covariances, np.broadcast_to(np.eye(2), (4, 2, 2)), atol=0.35
    )
    assert ss.metrics.rse(CLOUDS, decoding.centroids, ss.metrics.lloyd(CLOUDS, 4)) < 1.01


def test_clusters_have_the_mean_and_the_covariance_of_the_rows():
    """Exact moments: what lies within the clusters and between them adds up to the total.

    Of all covariances waves know; cells know the variances, and so the trace.
    """
    sketch = ss.sketch(CLOUDS, n_clusters=4, cells=False)

    d = ss.decode(sketch, 4)

    np.testing.assert_allclose(d.weights @ d.centroids, CLOUDS.mean(axis=0), atol=1e-9)
    rests = d.centroids - d.weights @ d.centroids
    total = np.einsum("k,kij->ij", d.weights, d.covariances) + (rests.T * d.weights) @ rests
    np.testing.assert_allclose(total, np.cov(CLOUDS.T, bias=True), rtol=1e-6)


def test_real_data_is_clustered_as_well_as_by_k_means(spectral_mnist):
    X, _ = spectral_mnist

    decoding = ss.decode(ss.sketch(X, n_clusters=10), 10)

    assert ss.metrics.rse(X, decoding.centroids, ss.metrics.lloyd(X, 10)) < 1.02


def test_the_order_of_the_rows_does_not_matter(spectral_mnist):
    X, y = (part[:20_000] for part in spectral_mnist)
    orders = [np.argsort(y, kind="stable"), np.random.default_rng(1).permutation(len(X))]

    found = [ss.decode(ss.sketch(X[order], n_clusters=10), 10).centroids for order in orders]

    assert found[0].tobytes() == found[1].tobytes()


def test_the_same_bytes_with_any_number_of_threads(monkeypatch):
    sketch = ss.sketch(CLOUDS, n_clusters=4)
    found = []
    for n_threads in (1, 5):
        monkeypatch.setattr(gaussians, "processors", lambda n=n_threads: n)
        with threadpool_limits(n_threads):
            found.append(ss.decode(sketch, 4, seed=3).centroids.tobytes())

    assert found[0] == found[1]


DECODE = """
import sys, sketchshift as ss
print(ss.decode(ss.load(sys.argv[1]), 5).centroids.tobytes().hex())
"""


def test_a_fresh_process_gives_the_same_bytes_whatever_openmp_is_told(tmp_path):
    """Libraries that are loaded on the way are limited to one thread as well."""
    X = np.random.default_rng(0).normal(size=(30_000, 4)) ** 3
    ss.sketch(X, n_clusters=8).save(tmp_path / "rows.sketch")
    found = [
        subprocess.run(
            [sys.executable, "-c", DECODE, tmp_path / "rows.sketch"],
            env=os.environ | {"OMP_NUM_THREADS": n_threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for n_threads in ("1", "2")
    ]

    assert found[0] == found[1]


@pytest.mark.parametrize("bandwidth", [0.15, 0.3, 0.5])
def test_plain_sketches_of_one_bandwidth_are_decoded_too(bandwidth):
    """A paper's sketch: one bandwidth, given as a share of the data's radius."""
    radius = float(np.sqrt(CLOUDS.var(axis=0).sum()))
    spec = ss.SketchSpec(n_features=2, sketch_size=200, bandwidth=bandwidth * radius)

    decoding = ss.decode(ss.sketch(CLOUDS, spec), 4)

    assert ss.metrics.rse(CLOUDS, decoding.centroids, ss.metrics.lloyd(CLOUDS, 4)) < 1.05


def test_several_numbers_of_clusters_come_from_one_fit():
    sketch, rounds = ss.sketch(CLOUDS, n_clusters=6, cells=False), []

    three, six, one = ss.decoders.decode_range(sketch, [3, 6, 1], progress=rounds.append)

    assert [len(d.centroids) for d in (three, six, one)] == [3, 6, 1]
    assert six.centroids.tobytes() == ss.decode(sketch, 6).centroids.tobytes()
    np.testing.assert_allclose(one.centroids[0], CLOUDS.mean(axis=0), atol=1e-9)
    assert [r.index for r in rounds] == list(range(1, len(rounds) + 1))
    assert rounds[-1].index == rounds[-1].total


def test_no_number_of_clusters_is_an_error():
    with pytest.raises(ss.errors.SpecError, match="at least one integer"):
        ss.decoders.decode_range(ss.sketch(CLOUDS, n_clusters=3), [])


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_rows_with_fewer_distinct_values_than_clusters_give_these_values(k):
    values = np.array([[0.0, 0.0], [1.0, 1.0], [5.0, 2.0]])
    X = np.repeat(values, [100, 50, 25], axis=0)

    decoding = ss.decode(ss.sketch(X, n_clusters=7), k)

    n = min(k, 3)
    assert decoding.centroids.shape == (n, 2)
    assert decoding.outcome is (
        ss.decoders.Outcome.COMPLETE if k <= 3 else ss.decoders.Outcome.EMPTY_RESIDUAL
    )
    if k > 3:
        np.testing.assert_allclose(decoding.centroids, values, atol=1e-4)
        np.testing.assert_allclose(decoding.weights, np.array([4, 2, 1]) / 7, atol=1e-4)


@pytest.mark.parametrize("k", [1, 3])
def test_equal_rows_are_one_cluster(k):
    with pytest.warns(ss.errors.PlanWarning, match="all 50 rows"):
        sketch = ss.sketch(np.full((50, 2), 3.25), n_clusters=k)

    decoding = ss.decode(sketch, k)

    np.testing.assert_allclose(decoding.centroids, [[3.25, 3.25]])
    assert decoding.trust.is_good
    assert decoding.outcome is (
        ss.decoders.Outcome.COMPLETE if k == 1 else ss.decoders.Outcome.EMPTY_RESIDUAL
    )


HOSTILE = {
    "a constant column": CLOUDS * [1, 0] + [0, 5],
    "integers": np.random.default_rng(0).integers(0, 10, size=(500, 3)),
    "two rows": CLOUDS[:2],
    "a line": np.outer(CLOUDS[:, 0], [1.0, 2.0, 3.0]),
    "far from the origin": CLOUDS + 1e9,
    "one column": CLOUDS[:, :1],
    "an outlier": np.vstack([CLOUDS, [1e6, 1e6]]),
}


@pytest.mark.parametrize("X", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_data_is_decoded_into_finite_centroids_within_its_range(X):
    decoding = ss.decode(ss.sketch(X, n_clusters=2), 2)

    assert np.isfinite(decoding.centroids).all()
    margin = 0.05 * np.ptp(X, axis=0) + 1e-6 * np.abs(X).max(axis=0)
    assert (decoding.centroids >= X.min(axis=0) - margin).all()
    assert (decoding.centroids <= X.max(axis=0) + margin).all()
    assert decoding.weights.sum() == pytest.approx(1.0)


def test_an_outlier_that_the_sample_did_not_hold_is_named():
    """A plan made from rows without it reaches some thousand radii."""
    spec = ss.plan(CLOUDS, 2, cells=False)

    with pytest.raises(ss.errors.InvalidRowsError, match=r"row 1000 .* too far out"):
        ss.sketch(np.vstack([CLOUDS, [1e9, 1e9]]), spec)


def test_an_empty_sketch_is_refused():
    spec = ss.plan(CLOUDS, 2)

    with pytest.raises(ss.errors.DataError, match="nothing to decode"):
        ss.decode(ss.Sketcher(spec).sketch(), 2)


def test_waves_alone_are_decoded_with_a_warning_where_rows_lie_far_beyond_the_plan():
    """Cells hold such rows; a few faults change the variance out of all proportion."""
    spec = ss.plan(CLOUDS, 4, cells=False)
    faults = np.full((3, 2), 1e3)

    with pytest.warns(ss.errors.PlanWarning, match=r"times the variance of those that the plan"):
        ss.decode(ss.sketch(np.vstack([CLOUDS, faults]), spec), 4)

    assert ss.decode(ss.sketch(CLOUDS, spec), 4).outcome is ss.decoders.Outcome.COMPLETE
