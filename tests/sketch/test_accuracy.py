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


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-6), ("float64", 1e-7)])
@pytest.mark.parametrize("d", [10, 200])
def test_mean_features_agree_with_float64(d, precision, tolerance):
    """Rounding of single rows is unbiased, so the mean of 1e5 is better than any one of them."""
    X = np.random.default_rng(0).normal(size=(100_000, d))
    spec = ss.SketchSpec(d, 64, bandwidth=np.sqrt(d) / 3, precision=precision)

    z = ss.sketch(X, spec).z * np.sqrt(64)

    assert np.abs(z - mean_features(X, spec)).max() < tolerance


def test_structured_features_agree_with_float64():
    X = np.random.default_rng(0).normal(size=(20_000, 100))
    spec = ss.SketchSpec(100, 200, bandwidth=3.0, structured=True)

    z = ss.sketch(X, spec).z * np.sqrt(200)

    # the frequencies written out are themselves rounded to float32: 1e-7 of a phase of 10
    assert np.abs(z - mean_features(X, spec)).max() < 1e-6


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 2e-5), ("float64", 1e-7)])
def test_phases_of_ten_thousand_radians_stay_accurate(precision, tolerance):
    """Uncentred data: <omega, x> near 1e4, where a float32 phase is off by about 1e-3 a row.

    The errors of single rows average out only in part: 1e-3 / sqrt(1e5) is 3e-6.
    """
    rng = np.random.default_rng(0)
    X = 3e3 + rng.normal(size=(100_000, 10))
    spec = ss.SketchSpec(10, 64, bandwidth=1.0, precision=precision)

    z = ss.sketch(X, spec).z * 8

    phases = 2 * np.pi * np.abs(X[:100] @ spec.frequencies.turns)
    assert np.median(phases) > 5e3
    assert np.abs(z - mean_features(X, spec)).max() < tolerance


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
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


def test_moments_with_weights_match_their_definition():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(5000, 3)) * [1, 2, 3] + 1, rng.gamma(1.0, size=5000)

    s = ss.sketch(X, ss.SketchSpec(3, 20, bandwidth=1.0, center=(1, 1, 1)), sample_weight=w)

    np.testing.assert_allclose(s.mean, np.average(X, axis=0, weights=w), atol=1e-6)
    np.testing.assert_allclose(s.covariance, np.cov(X.T, aweights=w, bias=True), atol=1e-5)
    np.testing.assert_allclose(s.total_weight, w.sum(), rtol=1e-7)


def test_a_translation_turns_the_phases():
    """A (X + t) = e^{i <omega, t>} A X: a law of characteristic functions."""
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(5000, 2)), np.array([0.25, -1.5])
    spec = ss.SketchSpec(2, 100, bandwidth=0.5)

    turned = ss.sketch(X, spec).z * np.exp(2j * np.pi * (t @ spec.frequencies.turns))

    np.testing.assert_allclose(ss.sketch(X + t, spec).z, turned, atol=1e-7)


def test_the_sketch_of_a_gaussian_is_its_characteristic_function():
    """|z_j - e^{-|omega|^2 / 2} / sqrt(m)| is of order 1 / sqrt(N m): 6 sigma, seed fixed."""
    X = np.random.default_rng(0).normal(size=(200_000, 2))
    spec = ss.SketchSpec(2, 100, bandwidth=1.0)

    z = ss.sketch(X, spec).z

    squares = (2 * np.pi * spec.frequencies.turns.astype(float)) ** 2
    expected = np.exp(-squares.sum(axis=0) / 2) / 10
    assert np.abs(z - expected).max() < 6 / np.sqrt(200_000 * 100)


def test_beyond_64_columns_the_variances_alone_are_kept():
    X = np.random.default_rng(0).normal(size=(500, 65))

    s = ss.sketch(X, ss.SketchSpec(65, 10, bandwidth=5.0))

    covariance = s.covariance
    np.testing.assert_array_equal(np.diag(covariance), s.variance)
    np.testing.assert_allclose(np.diag(covariance), X.var(axis=0), atol=1e-6)
    assert np.isnan(covariance[0, 1])
