"""What decoders climb: the correlation function against its definition and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from sketchshift.kernels import select_kernel


@pytest.fixture
def problem():
    """Points, turns, a residual, and e^{i theta} in float64."""
    rng = np.random.default_rng(0)
    turns = (rng.normal(size=(3, 700)) / (2 * np.pi * 0.7)).astype(np.float32)
    residual = rng.normal(size=700) + 1j * rng.normal(size=700)
    points = rng.normal(size=(1100, 3))
    return points, turns, residual, np.exp(2j * np.pi * (points @ turns.astype(float)))


def test_correlations_are_the_parts_of_a_product_with_the_conjugate(kernel, problem):
    """To 1e-12 in float64; float32 phases leave 2 pi 4 2**-24 = 1.5e-6, times |r|, times a few."""
    points, turns, residual, waves = problem

    found = kernel.correlate(points[:20], turns, residual)

    product, atol = np.conj(residual) * waves[:20], {"cpu": 1e-5, "reference": 1e-12}
    expected = [product.real, -product.imag]
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol[kernel.name])


def test_features_are_complex_exponentials(kernel, problem):
    points, turns, _, waves = problem

    # float32 phases of a few turns
    np.testing.assert_allclose(kernel.features(points, turns), waves / np.sqrt(700), atol=2e-7)


def test_values_are_those_of_the_definition_however_points_are_cut(kernel, problem, monkeypatch):
    """Definition 1 of the paper, Re <r, A delta_c>."""
    *given, residual, waves = problem
    whole = kernel.correlation(*given, residual)

    monkeypatch.setattr("sketchshift.kernels.host._BLOCK", 7 * 700)
    in_blocks = kernel.correlation(*given, residual)

    # a sum of 700 terms of size 1 / sqrt(700), each off by 1e-6
    expected = (waves @ np.conj(residual)).real / np.sqrt(700)
    np.testing.assert_allclose(whole[0], expected, atol=2e-5)
    for part, expected in zip(in_blocks, whole, strict=True):
        # a matrix product may round otherwise for another number of rows
        np.testing.assert_allclose(part, expected, atol=1e-4)


def test_gradients_and_hessians_agree_with_finite_differences(kernel, problem):
    points, turns, residual, _ = problem
    points, h = points[:20], 1e-4
    reference = select_kernel("reference")

    _, gradients = kernel.correlation(points, turns, residual)
    hessians = kernel.hessian(points, turns, residual)

    for k, step in enumerate(np.eye(3) * h):
        up, down = (reference.correlation(points + s, turns, residual) for s in (step, -step))
        values, slopes = ((a - b) / (2 * h) for a, b in zip(up, down, strict=True))
        np.testing.assert_allclose(gradients[:, k], values, atol=2e-4)
        np.testing.assert_allclose(hessians[:, k], slopes, atol=2e-3)
    np.testing.assert_allclose(hessians, hessians.swapaxes(1, 2), atol=1e-4)


def test_many_frequencies_are_summed_without_loss(kernel):
    """A point correlated with itself: f = 1 whatever m, though each term is float32."""
    point = np.array([[0.3]])
    for m in (100, 1_000_000):
        turns = np.random.default_rng(0).normal(size=(1, m)).astype(np.float32)

        values, _ = kernel.correlation(point, turns, kernel.features(point, turns)[0])

        np.testing.assert_allclose(values, 1.0, atol=1e-6)
