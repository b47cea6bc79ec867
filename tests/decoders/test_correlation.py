"""The correlation function: its derivatives, and the kernel density it tends to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import sketchshift as ss
from sketchshift.decoders.objective import CorrelationFunction


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    turns = (rng.normal(size=(3, 400)) / (2 * np.pi * 0.7)).astype(np.float32)
    residual = (rng.normal(size=400) + 1j * rng.normal(size=400)) / 20
    return rng.normal(size=(8, 3)), turns, residual


def f(C, turns, residual):
    """Definition 1 of the paper in float64."""
    phi = np.exp(2j * np.pi * (C @ turns.astype(float))) / np.sqrt(turns.shape[1])
    return (np.conj(residual) * phi).real.sum(axis=1)


def test_values_and_derivatives_are_those_of_the_definition(problem, central_differences):
    C, turns, residual = problem
    correlation = CorrelationFunction(turns, residual)

    def gradient(c, h=1e-3):
        return central_differences(lambda p: f(p, turns, residual), c, h)

    np.testing.assert_allclose(correlation(C), f(C, turns, residual), atol=1e-6)
    np.testing.assert_allclose(correlation.gradient(C), gradient(C, 1e-5), atol=5e-6)
    hessians = central_differences(gradient, C, 1e-3)
    np.testing.assert_allclose(correlation.hessian(C), hessians, atol=5e-5)  # fourth derivatives
    assert correlation.hessian(C[0]).shape == (1, 3, 3)
    weights = np.random.default_rng(2).uniform(0, 2, size=400)
    weighted = CorrelationFunction(turns, residual, frequency_weights=weights)
    scaled = CorrelationFunction(turns, weights * residual)
    np.testing.assert_array_equal(weighted.hessian(C), scaled.hessian(C))
    for found, expected in zip(
        weighted.value_and_gradient(C), scaled.value_and_gradient(C), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_the_correlation_function_is_the_kernel_density_with_a_known_variance():
    """E f_z = KDE; m Var f_z = V / 2 + mean kappa(2 x, x_i + x_l) / 2 - KDE^2.

    Over 400 draws of 20 frequencies, whose part of z is 1 / sqrt(400) of that of a sketch of
    their own: means within 4 standard errors; variances, whose own deviation is 7 %, within 4 of
    these. On a row, between rows and far from all.
    """

    def kernel(a, b):
        return np.exp(-cdist(a, b, "sqeuclidean") / (2 * 0.8**2))

    X = np.random.default_rng(0).normal(size=(12, 2))
    places = np.array([X[0], [0.5, -0.5], [9.0, 0.0]])
    density, sums = kernel(places, X).mean(axis=1), (X[:, None] + X).reshape(-1, 2)
    mirrored = kernel(2 * places, sums).mean(axis=1)
    variance = (kernel(X, X).mean() / 2 + mirrored / 2 - density**2) / 20

    s = ss.sketch(X, ss.SketchSpec(2, 8000, 0.8))
    draws = zip(np.split(s.frequencies.turns, 400, axis=1), np.split(s.z, 400), strict=True)
    values = np.array([CorrelationFunction(turns, 20 * z)(places) for turns, z in draws])

    assert np.all(np.abs(values.mean(axis=0) - density) < 4 * np.sqrt(variance / 400))
    np.testing.assert_allclose(values.var(axis=0), variance, rtol=0.28)


def test_a_sketch_is_searched_in_its_normalised_coordinates(X, spec):
    """The Dirac at row 0 has its maximum, 1, at x' = (x - center) / scale."""
    row = (X[0] - spec.center_vector) / spec.scale_vector

    value, gradient = CorrelationFunction.of(ss.sketch(X[:1], spec)).value_and_gradient(row)

    np.testing.assert_allclose(value, 1.0, atol=2e-5)
    np.testing.assert_allclose(gradient, 0.0, atol=2e-4)


def test_shapes_that_do_not_fit_are_refused(problem):
    C, turns, residual = problem
    correlation = CorrelationFunction(turns, residual)

    for make, message in (
        (lambda: CorrelationFunction(turns, residual[1:]), r"Got \(3, 400\) and \(399,\)"),
        (lambda: correlation(C[:, :2]), r"dimension 3, and the points have shape \(8, 2\)"),
        (lambda: correlation.hessian(C[None]), r"shape \(1, 8, 3\)"),
        (
            lambda: CorrelationFunction(turns, residual, frequency_weights=np.ones(399)),
            "frequency_weights must be 400 finite numbers",
        ),
    ):
        with pytest.raises((ss.errors.SpecError, ss.errors.DataError), match=message):
            make()
