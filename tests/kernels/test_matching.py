"""The misfit of Gaussians: the fused kernel against the definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from sketchshift.kernels.reference import moment_penalty

# components, frequencies, dimension: below and above a tile, a panel and a block of panels
SHAPES = [(1, 1, 1), (3, 31, 2), (4, 32, 5), (9, 300, 3), (30, 1000, 10), (5, 100, 70)]


@pytest.mark.parametrize("is_dirac", [True, False], ids=["diracs", "gaussians"])
def test_the_cpu_kernel_agrees_with_the_reference(cpu, reference, is_dirac):
    """Whatever number of components it was asked for before."""
    for T, m, d in SHAPES:
        rng = np.random.default_rng(0)
        turns = (rng.normal(size=(d, m)) / (2 * np.pi)).astype(np.float32)
        problem = turns, np.exp(1j * rng.normal(size=m)), rng.uniform(0.0, 2.0, size=m) / m
        C, variances = rng.normal(size=(T, d)), rng.uniform(0, 0.5, (T, d))
        given = rng.dirichlet(np.ones(T)), C, None if is_dirac else variances
        matcher = cpu.matcher(*problem)

        first = matcher(*given)
        matcher(*(each if each is None else each[:1] for each in given))
        value, sums = matcher(*given)

        expected = reference.matcher(*problem)(*given)
        assert value == first[0] == pytest.approx(expected[0], rel=1e-6)
        np.testing.assert_array_equal(sums, first[1])
        # phases of a few turns in float32, and sums of m terms of size 1 / m
        np.testing.assert_allclose(sums, expected[1], atol=3e-6, strict=True)


def two_clouds(kernel):
    """A matcher for the sketch of two Gaussians, their moments, and a start of eight atoms."""
    rng, d, m = np.random.default_rng(3), 3, 400
    turns = (rng.normal(size=(d, m)) / (2 * np.pi)).astype(np.float32)
    omega = 2 * np.pi * turns.astype(float)
    there = np.exp(1j * omega.sum(axis=0))  # shares 1 / 3 at (2, 2, 2) and 2 / 3 at (-1, -1, -1)
    z = (there**2 + 2 / there) / 3 * np.exp(-0.5 * 0.09 * (omega**2).sum(axis=0))
    start = np.full(8, 1 / 8), rng.normal(size=(8, d)), np.ones((8, d))
    moments = {"mean": np.zeros(d), "covariance": 0.09 * np.eye(d) + 2.0, "strength": 0.01}
    return kernel.matcher(turns, z, np.full(m, 1 / m)), start, moments


@pytest.mark.parametrize("known", ["full", "diagonal"])
def test_the_compiled_descent_gets_as_low_as_that_of_scipy(cpu, reference, known):
    reached = []
    for kernel in (cpu, reference):
        matcher, start, moments = two_clouds(kernel)
        if known == "diagonal":
            moments["covariance"][~np.eye(3, dtype=bool)] = np.nan
        value, alpha, C, S = matcher.descend(*start, **moments, iterations=300)
        assert min(alpha.min(), S.min()) >= 0
        misfit, _ = matcher(alpha, C, S**2)
        assert misfit <= value * (1 + 1e-6) + 1e-9  # the penalty is not negative
        reached.append(value)

    assert reached[0] <= 2 * reached[1] + 1e-7


def test_a_descent_stops_as_soon_as_it_is_at_the_floor(kernel):
    """It ends below the floor, and a step before it was still above."""
    matcher, start, moments = two_clouds(kernel)
    whole = [matcher.descend(*start, **moments, iterations=n)[0] for n in (10, 11)]
    floor = 0.5 * sum(whole)

    value, *_ = matcher.descend(*start, **moments, iterations=300, floor=floor)

    assert whole[0] > floor >= value == pytest.approx(whole[1], rel=1e-6)


def test_the_penalty_has_the_gradient_of_finite_differences():
    rng = np.random.default_rng(1)
    at = np.concatenate(
        [rng.dirichlet(np.ones(4)) * 1.1, rng.normal(size=12), rng.uniform(size=12)]
    )
    moments = rng.normal(size=3), np.diag(rng.uniform(1, 2, size=3))

    def penalty(numbers):
        alpha, C, S = np.split(numbers, [4, 16])
        value, *gradients = moment_penalty(alpha, C.reshape(4, 3), S.reshape(4, 3), *moments)
        return value, np.concatenate([gradient.ravel() for gradient in gradients])

    expected = approx_fprime(at, lambda numbers: penalty(numbers)[0], 1e-8)
    np.testing.assert_allclose(penalty(at)[1], expected, rtol=0, atol=1e-6)
