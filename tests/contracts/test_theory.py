"""Formulas of ``docs/theory.md`` that no other test has, against the code.

Elsewhere: the Gaussian kernel (features), the step of mean shift and the curvature (decoders),
characteristic functions (mixtures), the MMD and the trace of the noise (drift).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.objective import CorrelationFunction


def kernel(squares: np.ndarray, bandwidth: float) -> np.ndarray:
    """The kappa of the paper, of squared distances."""
    return np.exp(-squares / (2 * bandwidth**2))


def squared_norms(points: np.ndarray) -> np.ndarray:
    return (points**2).sum(axis=-1)


def test_the_correlation_function_is_the_kernel_density_with_a_known_variance():
    """E f_z = KDE; m Var f_z = V / 2 + mean kappa(2 x, x_i + x_l) / 2 - KDE^2.

    Over 400 draws of 20 frequencies, whose part of z is 1 / sqrt(400) of that of a sketch of
    their own: means within 4 standard errors; variances, whose own deviation is 7 %, within 4 of
    these. On a row, between rows and far from all.
    """
    X = np.random.default_rng(0).normal(size=(12, 2))
    places, m, bandwidth = np.array([X[0], [0.5, -0.5], [9.0, 0.0]]), 20, 0.8
    density = kernel(squared_norms(places[:, None] - X), bandwidth).mean(axis=1)
    sums = X[:, None] + X[None]
    mirrored = kernel(squared_norms(2 * places[:, None, None] - sums), bandwidth).mean(axis=(1, 2))
    V = kernel(squared_norms(X[:, None] - X[None]), bandwidth).mean()
    variance = (V / 2 + mirrored / 2 - density**2) / m

    s = ss.sketch(X, ss.SketchSpec(2, 400 * m, bandwidth))
    draws = zip(np.split(s.frequencies.turns, 400, axis=1), np.split(s.z, 400), strict=True)
    values = np.array([CorrelationFunction(turns, 20 * z)(places) for turns, z in draws])

    assert np.all(np.abs(values.mean(axis=0) - density) < 4 * np.sqrt(variance / 400))
    np.testing.assert_allclose(values.var(axis=0), variance, rtol=0.28)


def test_a_gaussian_cluster_is_a_hill_as_wide_as_cluster_and_kernel_together():
    """Appendix B, with the factor that it leaves in u: |I + Sigma / sigma^2|^(-1/2)."""
    m, bandwidth, c = 100_000, 0.4, np.array([0.3, -0.2])
    covariance = np.array([[0.25, 0.1], [0.1, 0.09]])
    turns = ss.SketchSpec(2, m, bandwidth).frequencies.turns
    places = c + np.random.default_rng(0).normal(size=(50, 2))

    z = Mixture(np.ones(1), c[None], covariance[None]).sketch(turns)
    values = CorrelationFunction(turns, z)(places)

    height = np.linalg.det(np.eye(2) + covariance / bandwidth**2) ** -0.5
    wide = np.linalg.inv(covariance + bandwidth**2 * np.eye(2))
    expected = height * np.exp(-0.5 * np.einsum("ni,ij,nj->n", places - c, wide, places - c))
    np.testing.assert_allclose(values, expected, atol=5 / np.sqrt(2 * m))  # a mean of m terms


@pytest.mark.parametrize("far_share", [0.0, 0.15])
def test_a_range_of_bandwidths_has_the_mean_of_their_gaussian_kernels(far_share):
    """Log-uniform within the range; the far ones log-uniform up to a hundred times beyond."""
    m, (low, high) = 100_000, (0.2, 3.0)
    spec = ss.SketchSpec(2, m, (low, high), far_share=far_share)
    distances = np.linspace(0.0, 8.0, 30)

    f = CorrelationFunction.of(ss.sketch(np.zeros((1, 2)), spec))
    values = f(np.column_stack([distances, np.zeros(30)]))

    near, far = np.geomspace(low, high, 10_001), np.geomspace(high, 100 * high, 10_001)
    means = [kernel(distances[:, None] ** 2, bandwidths).mean(axis=1) for bandwidths in (near, far)]
    expected = (1 - far_share) * means[0] + far_share * means[1]
    np.testing.assert_allclose(values, expected, atol=5 / np.sqrt(2 * m))


@given(seed=st.integers(0, 10_000), k=st.integers(1, 5), bandwidth=st.floats(0.1, 30.0))
def test_centroids_leave_no_more_of_a_sketch_than_their_error_in_k_means(seed, k, bandwidth):
    """The squared residual of any centroids, weighted by their shares, is at most MSE / sigma^2.

    Exactly so with the mean of omega omega^T over the frequencies at hand for I / sigma^2.
    """
    rng = np.random.default_rng(seed)
    X, C = rng.normal(size=(40, 3)), rng.normal(size=(k, 3))
    spec = ss.SketchSpec(3, 60, bandwidth, seed=seed)
    labels = ss.metrics.assign(X, C)
    omega = 2 * np.pi * spec.frequencies.turns.astype(float)

    shares = np.bincount(labels, minlength=k) / len(X)
    residual = ss.sketch(X, spec).z - Mixture(shares, C).sketch(spec.frequencies.turns)

    errors = squared_norms((X - C[labels]) @ omega).mean() / spec.sketch_size
    assert np.linalg.norm(residual) ** 2 <= errors * (1 + 1e-6) + 1e-9
