"""Against float64 NumPy: what the integers are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sketchshift as ss


def mean_features(X: np.ndarray, spec: ss.SketchSpec) -> np.ndarray:
    """Mean of exp(i <omega, x>) in float64, in blocks."""
    turns = spec.frequencies.turns.astype(np.float64)
    total = sum(np.exp(2j * np.pi * (part @ turns)).sum(axis=0) for part in np.array_split(X, 50))
    return total / len(X)


@pytest.mark.parametrize(
    ("d", "offset", "options", "tolerance"),
    [
        (10, 0.0, {}, 1e-6),
        (200, 0.0, {"precision": "float64", "bandwidth": 5.0}, 1e-7),
        # the frequencies written out are themselves rounded to float32: 1e-7 of a phase of 10
        (100, 0.0, {"structured": True, "bandwidth": 3.0}, 1e-6),
        # <omega, x> near 1e4, where a float32 phase is off by about 1e-3 a row
        (10, 3e3, {}, 2e-5),
        (10, 3e3, {"precision": "float64"}, 1e-7),
    ],
)
def test_mean_features_agree_with_float64(d, offset, options, tolerance):
    """Rounding of single rows is unbiased, so the mean of 1e5 is better than any one of them."""
    X = offset + np.random.default_rng(0).normal(size=(100_000, d))
    spec = ss.SketchSpec(d, 64, **{"bandwidth": 1.0} | options)

    z = ss.sketch(X, spec).z

    assert (z.shape, z.dtype) == ((64,), np.complex128)
    assert np.abs(z * 8 - mean_features(X, spec)).max() < tolerance


@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_mean_and_covariance_are_exact_however_far_the_data_lies(offset):
    """The variance of data at 1e5 +- 1: E[x^2] - E[x]^2 in floats would keep six digits."""
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0, 0, 0], [[1, 0.5, 0], [0.5, 2, 0], [0, 0, 0.01]], size=20_000)
    X += offset

    s = ss.sketch(X, ss.SketchSpec(3, 10, bandwidth=1.0))

    exact = [math.fsum(column) / len(X) for column in X.T]
    np.testing.assert_allclose(s.mean, exact, rtol=0, atol=1e-10)
    np.testing.assert_allclose(s.covariance, np.cov(X.T, bias=True), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(s.variance, np.diag(s.covariance))
    np.testing.assert_array_equal(s.moments[1], s.covariance)


def test_moments_and_waves_with_weights_match_their_definition():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(5000, 3)) * [1, 2, 3] + 1, rng.gamma(1.0, size=5000)
    spec = ss.SketchSpec(3, 20, bandwidth=1.0, center=(1, 1, 1))

    s = ss.sketch(X, spec, sample_weight=w)

    np.testing.assert_allclose(s.mean, np.average(X, axis=0, weights=w), atol=1e-6)
    np.testing.assert_allclose(s.covariance, np.cov(X.T, aweights=w, bias=True), atol=1e-5)
    np.testing.assert_allclose(s.total_weight, w.sum(), rtol=1e-7)
    features = np.exp(2j * np.pi * ((X - 1) @ spec.frequencies.turns.astype(float)))
    np.testing.assert_allclose(
        s.z * np.sqrt(20), np.average(features, axis=0, weights=w), atol=5e-6
    )
    assert f"weight {s.total_weight:.6g}" in repr(s)


def test_beyond_64_columns_the_variances_alone_are_kept():
    X = np.random.default_rng(0).normal(size=(500, 65))

    covariance = ss.sketch(X, ss.SketchSpec(65, 10, bandwidth=5.0)).covariance

    np.testing.assert_allclose(np.diag(covariance), X.var(axis=0), atol=1e-6)
    assert np.isnan(covariance[0, 1])
