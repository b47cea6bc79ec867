"""The descent's derivatives and its prior, against finite differences and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime

import sketchshift as ss
from sketchshift.decoders.points import draw_places
from sketchshift.estimators.mixture_fit import Coordinates, MomentFit, prior

TYPES = ["full", "diag", "spherical"]


def spreads(kind, seed=0):
    """Spreads of three components in dimension 2."""
    rng = np.random.default_rng(seed)
    shape = {"full": (3, 2, 2), "diag": (3, 2), "spherical": (3,)}[kind]
    S = rng.uniform(0.5, 1.5, size=shape)
    return np.tril(S) if kind == "full" else S


def squared(S):
    return S @ S.swapaxes(1, 2) if S.ndim == 3 else S**2


@pytest.mark.parametrize("kind", TYPES)
def test_the_prior_has_the_derivatives_of_its_values_and_is_least_at_what_it_holds(kind):
    S, P = spreads(kind), squared(spreads(kind, seed=1))

    def total(x):
        return prior(x.reshape(S.shape), P)[0].sum()

    numeric = approx_fprime(S.ravel(), total, 1e-7).reshape(S.shape)
    numeric = np.tril(numeric) if kind == "full" else numeric
    assert_allclose(prior(S, P)[1], numeric, atol=1e-5)
    assert_allclose(prior(S, squared(S))[1], 0.0, atol=1e-9)


@pytest.fixture
def sketch(blobs):
    return ss.sketch(blobs, ss.plan(blobs, 3, sketch_size=100, standardize=True, cells=False))


@pytest.mark.parametrize("kind", TYPES)
def test_the_descent_follows_the_slope_of_its_objective(kind, sketch, rng):
    """Sines in float32 leave differences of about 1e-4 of the value."""
    decoding = ss.decode(sketch, 3)
    fit = MomentFit.of(sketch, decoding, Coordinates.of(sketch, decoding, kind))
    x = rng.uniform(0.5, 1.5, size=len(fit._units))

    value, gradient = fit.value_and_gradient(x)

    numeric = approx_fprime(x, lambda x: fit.value_and_gradient(x)[0], 1e-3)
    assert_allclose(gradient, numeric, atol=0.02 * np.abs(gradient).max())
    assert value > 0


def test_the_misfit_tells_a_mixture_from_other_data(blobs, sketch, rng):
    """In units of the noise: below 1 for three Gaussians, far above for squares."""
    squares = np.sign(blobs) * rng.uniform(1, 4, size=blobs.shape) ** 2
    other = ss.sketch(squares, ss.plan(squares, 1, cells=False))
    for s, k, low, high in ((sketch, 3, 0.0, 0.5), (other, 1, 5.0, np.inf)):
        decoding = ss.decode(s, k)
        fit = MomentFit.of(s, decoding, Coordinates.of(s, decoding, "full"))
        assert low < fit.descend(200)[1] < high


def test_points_stand_for_the_clusters_they_are_drawn_from(sketch):
    decoding = ss.decode(sketch, 3)
    coordinates = Coordinates.of(sketch, decoding, "full")
    clusters = coordinates.clusters(decoding)

    points = draw_places([clusters], 20_000, seed=0)

    mean = decoding.weights @ clusters.means
    rests = clusters.means - mean
    covariance = np.tensordot(decoding.weights, clusters.covariances, 1)
    covariance += (rests.T * decoding.weights) @ rests
    assert_allclose(clusters.moments[1], covariance, rtol=1e-12)
    assert_allclose(points.mean(axis=0), mean, atol=1e-3)
    assert_allclose(np.cov(points.T), covariance, atol=5e-3)
