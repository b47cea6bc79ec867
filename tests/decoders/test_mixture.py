"""Mixtures: their sketches against those of points drawn from them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sketchshift as ss
from sketchshift.decoders.mixture import Mixture

WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.0, 0.0], [1.5, -0.5], [-1.0, 2.0]])
COVARIANCES = np.array([[[0.2, 0.1], [0.1, 0.3]], [[0.05, 0.0], [0.0, 0.5]], np.zeros((2, 2))])


@pytest.fixture
def spec():
    return ss.SketchSpec(n_features=2, sketch_size=200, bandwidth=0.7)


def test_the_sketch_of_a_mixture_is_that_of_a_large_sample(spec, rng):
    """A is linear in the measure; a mean of N features of modulus 1 is off by 1 / sqrt(N)."""
    n = 100_000
    parts = [
        rng.multivariate_normal(mean, covariance, size=int(n * weight))
        for mean, covariance, weight in zip(MEANS, COVARIANCES, WEIGHTS, strict=True)
    ]

    z = Mixture(WEIGHTS, MEANS, COVARIANCES).sketch(spec.frequencies.turns)

    error = np.abs(z - ss.sketch(np.concatenate(parts), spec).z) * np.sqrt(200)
    assert error.max() < 5 / np.sqrt(n)


def test_zero_covariances_make_diracs(spec):
    """Whose sketch is that of rows with weights, but for float32; without any it is zero."""
    turns, diracs = spec.frequencies.turns, Mixture(WEIGHTS, MEANS)

    psi = Mixture(WEIGHTS, MEANS, np.zeros((3, 2, 2))).characteristic_functions(turns)

    assert_array_equal(psi, diracs.characteristic_functions(turns))
    z = ss.sketch(MEANS, spec, sample_weight=WEIGHTS).z
    assert_allclose(diracs.sketch(turns), z, atol=1e-6 / np.sqrt(200))
    assert not Mixture(WEIGHTS[:0], MEANS[:0]).sketch(turns).any()


@pytest.mark.parametrize(
    ("weights", "means", "covariances", "message"),
    [
        (WEIGHTS, MEANS[0], None, r"means .* shape \(k, d\). Got \(2,\)"),
        (WEIGHTS[:2], MEANS, None, r"weights of shape \(3,\). Got \(2,\)"),
        (WEIGHTS, MEANS, COVARIANCES[:, :1], r"shape \(3, 2, 2\). Got \(3, 1, 2\)"),
        (WEIGHTS * np.nan, MEANS, None, "weights of a Mixture must be finite"),
        (WEIGHTS, MEANS, None, r"shape \(2, m\). Got \(3, 10\)"),
    ],
)
def test_what_does_not_fit_together_is_refused(weights, means, covariances, message):
    with pytest.raises(ss.errors.SpecError, match=message):
        Mixture(weights, means, covariances).sketch(np.zeros((3, 10), dtype=np.float32))
