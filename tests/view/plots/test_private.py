"""Pictures of private sketches, which tell no moments."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

import sketchshift as ss
from sketchshift.decoders.problem import moments_of, spread_of
from sketchshift.view import plot_centroids, plot_means


@pytest.fixture(scope="module")
def private():
    """Two clusters of four columns, raw and released, with their exact moments."""
    labels = np.repeat([0, 1], [15_000, 5_000])
    X = np.random.default_rng(0).normal(size=(20_000, 4)) + np.outer(labels, [9.0, 0.0, 3.0, 0.0])
    halves = X[:15_000], X[15_000:]
    centroids = np.array([half.mean(axis=0) for half in halves])
    covariances = np.array([np.cov(half.T, bias=True) for half in halves])
    raw = ss.sketch(X, ss.privacy.plan_declared(center=[0] * 4, spread=6.0, n_clusters=2))
    found = (centroids, np.array([0.75, 0.25]), covariances, 0.0, ss.decoders.Outcome.COMPLETE, ())
    return raw, ss.privacy.release(raw, 1, 1e-8), ss.Decoding(*found)


def test_moments_are_those_of_the_clusters_and_without_them_of_the_plan(private):
    """The law of total covariance: exact clusters have the moments of the rows."""
    raw, released, decoding = private

    mean, covariance = moments_of(released, decoding)

    assert_allclose(mean, raw.mean, atol=1e-5)
    assert_allclose(covariance, raw.covariance, atol=1e-4)
    assert_allclose(spread_of(released, decoding)[1], raw.variance, atol=1e-4)
    planned_mean, variance = spread_of(released)
    assert_array_equal(planned_mean, 0.0)
    assert variance.sum() == pytest.approx(36.0)


@pytest.mark.parametrize("draw", [plot_centroids, plot_means])
def test_a_private_sketch_is_drawn_on_the_axes_of_a_raw_one(private, draw):
    raw, released, decoding = private

    one, other = (draw(sketch, decoding, Figure().subplots()) for sketch in (raw, released))

    assert one.get_xlabel() == other.get_xlabel()
    assert_allclose(one.get_xlim(), other.get_xlim(), rtol=1e-3)
    assert draw is plot_means or other.get_title().startswith("2 clusters of about ")
