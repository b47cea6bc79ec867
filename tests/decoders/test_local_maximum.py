"""Three ways to climb, against mean shift with the data at hand and the paper's formula."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.decoders.objective import Box, CorrelationFunction
from sketchshift.decoders.paper.climb import Discretized, GradientAscent, SketchedMeanShift

BOX = Box([-3, -3], [3, 3])


def mean_shift(X, C, bandwidth, n_steps):
    """The mean shift of Fukunaga and Hostetler, on the data itself."""
    for _ in range(n_steps):
        kernel = np.exp(-((C[:, None] - X[None]) ** 2).sum(axis=2) / (2 * bandwidth**2))
        C = kernel @ X / kernel.sum(axis=1, keepdims=True)
    return C


@pytest.fixture(scope="module")
def clusters():
    rng = np.random.default_rng(0)
    centres = np.array([(-1.0, -1.0), (1.2, -0.8), (0.0, 1.0)])
    X = centres[rng.integers(0, 3, 300)] + 0.2 * rng.normal(size=(300, 2))
    f = CorrelationFunction.of(ss.sketch(X, ss.SketchSpec(2, 100_000, bandwidth=0.5)))
    starts = X[:40] + 0.3 * rng.normal(size=(40, 2))
    return X, f, starts[f(starts) > 0.1]


def test_steps_and_modes_are_those_of_mean_shift(clusters):
    """With the step sigma^2: on average 0.3 long, and off by 0.005.

    Each entry of the gradient is off by 1 / (sigma sqrt(2 m)), and the step is sigma^2 times
    that over f: sigma / (sqrt(m) f) in the plane. Measured for five seeds of the frequencies:
    0.4 to 0.6 of that on average, 0.7 to 1.7 at most.
    """
    X, f, starts = clusters
    exact = mean_shift(X, starts, 0.5, 1)

    found, _ = SketchedMeanShift(max_iterations=1)(f, starts, BOX, 0.5)

    assert len(starts) > 30
    assert np.linalg.norm(exact - starts, axis=1).mean() > 0.25
    error = np.linalg.norm(found - exact, axis=1) * f(starts) / (0.5 / np.sqrt(100_000))
    assert np.sqrt(np.mean(error**2)) < 0.75
    assert error.max() < 2
    modes, _ = SketchedMeanShift(tolerance=1e-5)(f, starts, BOX, 0.5)
    assert_allclose(modes, mean_shift(X, starts, 0.5, 500), atol=0.02)


def test_a_plain_step_is_the_papers_formula_also_where_it_goes_down(figure1):
    f, box = CorrelationFunction.of(figure1.sketch(20, 0.1)), figure1.domain
    starts = box.sample(200, 0)

    places, values = SketchedMeanShift(max_iterations=1, backtracking=False)(f, starts, box, 0.1)

    height, gradient = f.value_and_gradient(starts)
    expected = box.project(starts + 0.01 * gradient / np.abs(height)[:, None])
    moved = np.linalg.norm(expected - starts, axis=1) > 1e-4
    assert_allclose(places[moved], expected[moved])
    assert (values < height).any()


@pytest.mark.parametrize("climb", [SketchedMeanShift(), GradientAscent(), Discretized()])
def test_climbs_stay_in_the_domain_and_never_go_down(figure1, climb):
    f = CorrelationFunction.of(figure1.sketch(30, 0.1))
    box = Box([-0.3, -0.2], [0.4, 0.3])
    starts = box.sample(100, seed=1)

    places, values = climb(f, starts, box, 0.1)

    assert box.contains(places).all()
    assert (values >= f(starts)).all()
    assert_allclose(values, f(places), atol=1e-6)
    assert (places == starts).all() == isinstance(climb, Discretized)
