"""The correlation function: its derivatives, and the kernel density it tends to."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.spatial.distance import cdist

import sketchshift as ss
from sketchshift.decoders.objective import CorrelationFunction
from sketchshift.errors import DataError, SpecError


@pytest.fixture
def problem(rng):
    """Points, frequencies, a residual, and a weight of each frequency."""
    turns = (rng.normal(size=(3, 400)) / (2 * np.pi * 0.7)).astype(np.float32)
    residual = (rng.normal(size=400) + 1j * rng.normal(size=400)) / 20
    return rng.normal(size=(8, 3)), turns, residual, rng.uniform(0, 2, size=400)


def test_values_and_derivatives_are_those_of_the_definition(problem, central_differences):
    """Definition 1 of the paper in float64, of a residual times the weights."""
    C, turns, residual, weights = problem
    correlation = CorrelationFunction(turns, residual, frequency_weights=weights)

    def f(c):
        phi = np.exp(2j * np.pi * (c @ turns.astype(float))) / np.sqrt(400)
        return (np.conj(weights * residual) * phi).real.sum(axis=1)

    def gradient(c, h=1e-3):
        return central_differences(f, c, h)

    assert_allclose(correlation(C), f(C), atol=1e-6)
    assert_allclose(correlation.gradient(C), gradient(C, 1e-5), atol=5e-6)
    hessians = central_differences(gradient, C, 1e-3)
    assert_allclose(correlation.hessian(C), hessians, atol=5e-5)  # fourth derivatives
    assert correlation.hessian(C[0]).shape == (1, 3, 3)


def test_the_correlation_function_is_the_kernel_density_but_for_the_noise_of_frequencies(rng):
    """E f_z = KDE: over 400 draws of 20 frequencies, means within 4 standard errors.

    Each draw's part of z is 1 / sqrt(400) of that of a sketch of its own. On a row, between rows
    and far from all.
    """
    X = rng.normal(size=(12, 2))
    places = np.array([X[0], [0.5, -0.5], [9.0, 0.0]])
    density = np.exp(-cdist(places, X, "sqeuclidean") / (2 * 0.8**2)).mean(axis=1)

    s = ss.sketch(X, ss.SketchSpec(2, 8000, 0.8))
    draws = zip(np.split(s.frequencies.turns, 400, axis=1), np.split(s.z, 400), strict=True)
    values = np.array([CorrelationFunction(turns, 20 * z)(places) for turns, z in draws])

    assert np.all(np.abs(values.mean(axis=0) - density) < 4 * stats.sem(values))


def test_a_sketch_is_searched_in_its_normalised_coordinates(X, spec):
    """The Dirac at row 0 has its maximum, 1, at x' = (x - center) / scale."""
    row = (X[0] - spec.rows.center_vector) / spec.rows.scale_vector

    value, gradient = CorrelationFunction.of(ss.sketch(X[:1], spec)).value_and_gradient(row)

    assert_allclose(value, 1.0, atol=2e-5)
    assert_allclose(gradient, 0.0, atol=2e-4)


def test_shapes_that_do_not_fit_are_refused(problem):
    C, turns, residual, weights = problem
    correlation = CorrelationFunction(turns, residual)

    for make, message in (
        (lambda: CorrelationFunction(turns, residual[1:]), r"Got \(3, 400\) and \(399,\)"),
        (lambda: correlation(C[:, :2]), r"dimension 3, and the points have shape \(8, 2\)"),
        (lambda: correlation.hessian(C[None]), r"shape \(1, 8, 3\)"),
        (
            lambda: CorrelationFunction(turns, residual, frequency_weights=weights[1:]),
            "frequency_weights must be 400 finite numbers",
        ),
    ):
        with pytest.raises((SpecError, DataError), match=message):
            make()
