"""Shares of known clusters in other sketches, against counts of the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

import sketchshift as ss
from sketchshift.decoders.shares import ClusterSketches, shares
from sketchshift.errors import DataError, IncompatibleSketchesError, SpecError

CORNERS = np.array([[0.0, 0.0], [7.0, 0.0], [0.0, 7.0]])
PLAIN = ss.SketchSpec(2, 200, 1.5, center=(2.0, 2.0))


def rows(counts, seed=0):
    rng = np.random.default_rng(seed)
    X = np.repeat(CORNERS, counts, axis=0)
    return X + rng.normal(size=X.shape)


@pytest.fixture(scope="module", params=["plain", "waves", "cells"])
def whole(request):
    X = rows([5_000, 3_000, 2_000])
    has_cells = request.param == "cells"
    spec = PLAIN if request.param == "plain" else ss.plan(X, n_clusters=3, cells=has_cells)
    return ss.sketch(X, spec)


@pytest.fixture(scope="module")
def decoding(whole):
    return ss.decode(whole, n_clusters=3)


def test_shares_are_those_of_the_rows(whole, decoding):
    """Clusters 7 deviations apart have no rows between them, so that counts are shares."""
    order = cdist(decoding.centroids, CORNERS).argmin(axis=1)  # the decoding's is by weight
    for counts in ((500, 300, 200), (100, 0, 900), (0, 1_000, 0)):
        part = ss.sketch(rows(counts, seed=1), whole.spec)

        found = shares(decoding, part, reference=whole)

        assert (found >= 0).all()
        assert found.sum() == pytest.approx(1.0)
        assert_allclose(found, np.array(counts)[order] / 1000, atol=0.02)
    same = shares(decoding, whole, reference=whole)
    other = replace(decoding, weights=same[::-1])
    assert_allclose(same, decoding.weights, atol=1e-6)
    assert_array_equal(shares(decoding, whole), shares(other, whole))


def test_points_without_covariances_have_the_shares_of_their_rows(made):
    """A sketch of repeated points is exactly a mixture of them: only float32 is in the way."""
    part = ss.sketch(np.repeat(CORNERS, [10, 60, 30], axis=0), PLAIN)

    assert_allclose(shares(made(CORNERS), part), [0.1, 0.6, 0.3], atol=1e-4)
    assert shares(made(CORNERS[:0]), part).shape == (0,)


def test_the_response_is_the_derivative_of_the_shares(whole, decoding, rng):
    """Against finite differences, in a random direction."""
    clusters = ClusterSketches.of(decoding, whole.spec)
    real, imaginary = 1e-4 * rng.normal(size=(2, len(whole.z)))
    dz = real + 1j * imaginary

    found = clusters.response((dz[None] @ clusters.sketches.conj().T).real)[0]

    both = clusters.shares(clusters.z + dz), clusters.shares(clusters.z - dz)
    assert_allclose(found, (both[0] - both[1]) / 2, atol=2e-6)
    assert found.sum() == pytest.approx(0.0, abs=1e-12)
    assert_allclose(clusters.shares(0.0 * dz), 1 / 3)  # where no cluster explains any


@pytest.mark.filterwarnings("ignore:The clusters")
def test_cells_count_rows_where_clusters_touch_and_shares_err_as_counts_do(rng):
    """Thirty slices of rows that no gap divides: deviations are those of counted rows."""
    X = rng.normal(size=(30_000, 3))
    whole = ss.sketch(X, n_clusters=4)
    decoding = ss.decode(whole, n_clusters=4)
    labels = ss.metrics.assign(X, decoding.centroids)
    assert_allclose(shares(decoding, whole), np.bincount(labels) / 30_000, atol=0.02)

    parts = X.reshape(30, 1000, 3)
    found = [shares(decoding, ss.sketch(part, whole.spec), reference=whole) for part in parts]
    exact = [np.bincount(part, minlength=4) / 1000 for part in labels.reshape(30, 1000)]

    assert np.abs(np.array(found) - exact).mean() < 0.01
    ratio = np.std(found, axis=0) / np.sqrt(decoding.weights * (1 - decoding.weights) / 1000)
    assert np.abs(ratio - 1.0).max() < 0.4


def test_shares_of_far_rows_are_those_of_the_nearest_cluster():
    X, far = rows([500, 300, 200]), np.array([[1e6, 0.0]])
    whole = ss.sketch(X, n_clusters=3)
    decoding = ss.decode(whole, n_clusters=3)

    found = shares(decoding, ss.sketch(np.vstack([X, *[far] * 1000]), whole.spec))

    assert found[ss.metrics.assign(far, decoding.centroids)[0]] > 0.5


def test_what_cannot_be_compared_is_refused(whole, decoding):
    other = ss.sketch(rows([5, 5, 5]), whole.spec.replaced(waves=replace(whole.spec.waves, seed=7)))
    wide = ss.sketch(np.zeros((5, 3)), ss.SketchSpec(3, 20, 1.0))

    with pytest.raises(IncompatibleSketchesError, match="made with different plans"):
        shares(decoding, whole, reference=other)
    with pytest.raises(SpecError, match="must be a Decoding of the sketch's 3 columns"):
        shares(decoding, wide)
    with pytest.raises(DataError, match="no shares in a sketch of 0 rows"):
        shares(decoding, whole - whole)
