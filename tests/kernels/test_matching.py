"""The misfit of Gaussians: the fused kernel against the definition."""

from __future__ import annotations

import numpy as np
import pytest

from sketchshift.kernels import select_kernel

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
