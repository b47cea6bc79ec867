"""What decoders climb: the correlation function against finite differences and the KDE."""

from __future__ import annotations

import numpy as np
import pytest

from sketchshift.kernels import select_kernel


@pytest.fixture(params=["cpu", "reference"])
def kernel(request):
    return select_kernel(request.param)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    turns = (rng.normal(size=(3, 700)) / (2 * np.pi * 0.7)).astype(np.float32)
    residual = rng.normal(size=700) + 1j * rng.normal(size=700)
    return rng.normal(size=(1100, 3)), turns, residual


def f(points, turns, residual):
    """Definition 1 of the paper, Re <r, A delta_c>, in float64."""
    phi = np.exp(2j * np.pi * (points @ turns.astype(float))) / np.sqrt(turns.shape[1])
    return (np.conj(residual) * phi).real.sum(axis=1)


def test_features_are_complex_exponentials(kernel, problem):
    points, turns, _ = problem

    phi = kernel.features(points, turns)

    expected = np.exp(2j * np.pi * (points @ turns.astype(float))) / np.sqrt(700)
    np.testing.assert_allclose(phi, expected, atol=2e-7)  # float32 phases of a few turns


def test_values_are_those_of_the_definition(kernel, problem):
    points, turns, residual = problem

    values, _ = kernel.correlation(points, turns, residual)

    # a sum of 700 terms of size 1 / sqrt(700), each off by 1e-6
    np.testing.assert_allclose(values, f(points, turns, residual), atol=2e-5)


def test_gradients_agree_with_finite_differences(kernel, problem):
    points, turns, residual = problem
    points, h = points[:20], 1e-5

    _, gradients = kernel.correlation(points, turns, residual)

    for k, step in enumerate(np.eye(3) * h):
        up, down = f(points + step, turns, residual), f(points - step, turns, residual)
        np.testing.assert_allclose(gradients[:, k], (up - down) / (2 * h), atol=2e-4)


def test_hessians_agree_with_finite_differences(kernel, problem):
    points, turns, residual = problem
    points, h = points[:5], 1e-4
    reference = select_kernel("reference")

    hessians = kernel.hessian(points, turns, residual)

    for k, step in enumerate(np.eye(3) * h):
        (_, up), (_, down) = (
            reference.correlation(points + s, turns, residual) for s in (step, -step)
        )
        np.testing.assert_allclose(hessians[:, k], (up - down) / (2 * h), atol=2e-3)
    np.testing.assert_allclose(hessians, hessians.swapaxes(1, 2), atol=1e-4)


def test_many_frequencies_give_the_kernel_density(kernel):
    """f_z(c) tends to the mean of exp(-|c - x|^2 / (2 sigma^2)), error 1 / sqrt(2 m): 5 sigma."""
    rng = np.random.default_rng(1)
    X, m = rng.normal(size=(50, 2)), 40_000
    turns = (rng.normal(size=(2, m)) / (2 * np.pi * 0.8)).astype(np.float32)
    z = kernel.features(X, turns).mean(axis=0)

    values, _ = kernel.correlation(X, turns, z)

    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    density = np.exp(-distances / (2 * 0.8**2)).mean(axis=1)
    np.testing.assert_allclose(values, density, atol=5 / np.sqrt(2 * m))


def test_blocks_of_points_do_not_change_the_result(kernel, problem, monkeypatch):
    points, turns, residual = problem
    whole = kernel.correlation(points, turns, residual)

    monkeypatch.setattr("sketchshift.kernels.host._BLOCK", 7 * 700)

    # a matrix product may round otherwise for another number of rows
    for of_blocks, value in zip(kernel.correlation(points, turns, residual), whole, strict=True):
        np.testing.assert_allclose(of_blocks, value, atol=1e-4)


@pytest.mark.parametrize("m", [100, 10_000, 1_000_000])
def test_many_frequencies_are_summed_without_loss(kernel, m):
    """A point correlated with itself: f = 1 whatever m, though each term is float32."""
    turns = np.random.default_rng(0).normal(size=(1, m)).astype(np.float32)
    point = np.array([[0.3]])
    z = kernel.features(point, turns)[0]

    values, _ = kernel.correlation(point, turns, z)

    np.testing.assert_allclose(values, 1.0, atol=1e-6)
