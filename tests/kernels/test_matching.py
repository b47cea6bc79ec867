"""The misfit of Gaussians: the fused kernel against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from sketchshift.kernels import select_kernel
from sketchshift.kernels.reference import moment_penalty

# components, frequencies, dimension: below and above a tile, a panel and a block of panels
SHAPES = [(1, 1, 1), (3, 31, 2), (4, 32, 5), (9, 300, 3), (30, 1000, 10), (5, 100, 70)]


def draw(T, m, d):
    rng = np.random.default_rng(0)
    turns = (rng.normal(size=(d, m)) / (2 * np.pi)).astype(np.float32)
    z = np.exp(1j * rng.normal(size=m))
    alpha, C = rng.dirichlet(np.ones(T)), rng.normal(size=(T, d))
    return turns, z, rng.uniform(0.0, 2.0, size=m) / m, (alpha, C, rng.uniform(0, 0.5, (T, d)))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("is_dirac", [True, False], ids=["diracs", "gaussians"])
def test_the_cpu_kernel_agrees_with_the_reference(shape, is_dirac):
    turns, z, weights, (alpha, C, variances) = draw(*shape)
    variances = None if is_dirac else variances

    value, sums = select_kernel("cpu").matcher(turns, z, weights)(alpha, C, variances)

    expected = select_kernel("reference").matcher(turns, z, weights)(alpha, C, variances)
    assert value == pytest.approx(expected[0], rel=1e-6)
    assert sums.shape == (shape[0], 1 + 2 * shape[2])
    # phases of a few turns in float32, and sums of m terms of size 1 / m
    np.testing.assert_allclose(sums, expected[1], atol=3e-6)


def test_envelopes_fall_to_nothing_without_harm():
    """Spreads far beyond any frequency: all that is left is z itself."""
    turns, z, weights, (alpha, C, variances) = draw(8, 200, 3)

    value, sums = select_kernel("cpu").matcher(turns, z, weights)(alpha, C, variances * 1e12)

    assert value == pytest.approx(weights.sum(), rel=1e-6)
    assert np.isfinite(sums).all()
    assert np.abs(sums).max() < 1e-15


def test_a_matcher_may_be_asked_for_other_numbers_of_components():
    turns, z, weights, (alpha, C, variances) = draw(12, 100, 2)
    matcher = select_kernel("cpu").matcher(turns, z, weights)

    first = matcher(alpha, C, variances)
    matcher(alpha[:3], C[:3], variances[:3])
    again = matcher(alpha, C, variances)

    assert first[0] == again[0]
    assert np.array_equal(first[1], again[1])


def two_clouds(kernel, d=3, m=400):
    """A matcher for the sketch of two Gaussians, their moments, and a start of eight atoms."""
    rng = np.random.default_rng(3)
    turns = (rng.normal(size=(d, m)) / (2 * np.pi)).astype(np.float32)
    omega = 2 * np.pi * turns.astype(float)
    centers = np.array([np.full(d, 2.0), np.full(d, -1.0)])
    psi = np.exp(1j * (centers @ omega) - 0.5 * 0.09 * (omega**2).sum(axis=0))
    mean = np.array([1 / 3, 2 / 3]) @ centers
    covariance = 0.09 * np.eye(d) + (2 / 9) * np.outer(*[centers[0] - centers[1]] * 2)
    matcher = select_kernel(kernel).matcher(
        turns, np.array([1 / 3, 2 / 3]) @ psi, np.full(m, 1 / m)
    )
    start = np.full(8, 1 / 8), mean + rng.normal(size=(8, d)), np.ones((8, d))
    return matcher, start, {"mean": mean, "covariance": covariance, "strength": 0.01}


@pytest.mark.parametrize("known", ["full", "diagonal"])
def test_the_compiled_descent_gets_as_low_as_that_of_scipy(known):
    reached = {}
    for kernel in ("cpu", "reference"):
        matcher, start, moments = two_clouds(kernel)
        if known == "diagonal":
            moments["covariance"][~np.eye(3, dtype=bool)] = np.nan
        reached[kernel], alpha, C, S = matcher.descend(*start, **moments, iterations=300)
        assert (alpha >= 0).all()
        assert (S >= 0).all()
        misfit, _ = matcher(alpha, C, S**2)
        assert misfit <= reached[kernel] * (1 + 1e-6) + 1e-9  # the penalty is not negative

    assert reached["cpu"] <= 2 * reached["reference"] + 1e-7


def test_a_descent_finds_the_two_clouds():
    matcher, start, moments = two_clouds("cpu")

    _, alpha, C, _ = matcher.descend(*start, **moments, iterations=300)

    is_first = C[:, 0] > 0.5
    assert alpha[is_first].sum() == pytest.approx(1 / 3, abs=1e-3)
    np.testing.assert_allclose(alpha[is_first] @ C[is_first] * 3, 2.0, atol=0.01)


def test_a_descent_never_goes_up_and_is_the_same_each_time():
    matcher, start, moments = two_clouds("cpu")

    values = [matcher.descend(*start, **moments, iterations=n)[0] for n in (1, 5, 20, 80, 80)]

    assert values == sorted(values, reverse=True)
    assert values[-1] == values[-2]


@pytest.mark.parametrize("kernel", ["cpu", "reference"])
def test_a_descent_stops_as_soon_as_it_is_at_the_floor(kernel):
    """It ends below the floor, and a step before it was still above."""
    matcher, start, moments = two_clouds(kernel)
    whole = [matcher.descend(*start, **moments, iterations=n)[0] for n in range(1, 30)]
    floor = 0.5 * (whole[9] + whole[10])

    value, *_ = matcher.descend(*start, **moments, iterations=300, floor=floor)

    assert value <= floor
    assert value == pytest.approx(next(v for v in whole if v <= floor), rel=1e-6)


def test_the_penalty_has_the_gradient_of_finite_differences():
    rng = np.random.default_rng(1)
    alpha, C, S = rng.dirichlet(np.ones(4)) * 1.1, rng.normal(size=(4, 3)), rng.uniform(size=(4, 3))
    mean, covariance = rng.normal(size=3), np.diag(rng.uniform(1, 2, size=3))

    _, *gradients = moment_penalty(alpha, C, S, mean, covariance)

    for i, gradient in enumerate(gradients):
        for place in np.ndindex(gradient.shape):
            values = []
            for step in (1e-6, -1e-6):
                variables = [alpha.copy(), C.copy(), S.copy()]
                variables[i][place] += step
                values.append(moment_penalty(*variables, mean, covariance)[0])
            assert gradient[place] == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-6)
