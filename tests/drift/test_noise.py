"""The noise of a sketch, against samples drawn again and again."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from drift_rates import FeatureTable

import sketchshift as ss
from sketchshift.drift.compare import Population
from sketchshift.drift.noise import NullLaw

PLAIN = ss.SketchSpec(2, 80, 1.0)


@pytest.mark.rates
@pytest.mark.parametrize("kind", ["plain", "planned"])
def test_the_mean_squared_distance_of_samples_is_the_trace_over_the_counts(blobs, kind):
    """200 pairs of samples: their mean has a deviation of 4 % at most, and the test takes 4."""
    spec = PLAIN if kind == "plain" else blobs.spec
    X, rng = blobs.rows(10_000), np.random.default_rng(1)  # not the stream that made the rows
    noise = Population.of(ss.sketch(X, spec), None, 0, "compare").noise
    weights, table = noise.eigenvalues * (1 / 300 + 1 / 500), FeatureTable.of(X, spec)

    a, b = (table.z(table.draw(n, 200, rng)) for n in (300, 500))

    squared = ((a - b) ** 2).sum(axis=1)
    assert weights.sum() == pytest.approx(squared.mean(), rel=0.16)
    assert (squared < NullLaw.of(weights).quantile(0.5)).mean() == pytest.approx(0.5, abs=0.15)


def test_the_trace_is_exact(blobs):
    """The features have length 1: their covariance has the trace 1 - |z|^2, times n / (n - 1)."""
    whole = blobs.sketch(50, PLAIN)
    noise = Population.of(whole, None, 0, "compare").noise

    expected = (1.0 - np.linalg.norm(whole.z) ** 2) * 50 / 49
    assert noise.eigenvalues.sum() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n", [50, 1000], ids=["fewer points than coordinates", "more"])
def test_eigenvalues_are_those_of_the_covariance_of_the_features(blobs, monkeypatch, n):
    """Whichever of the two matrices with these eigenvalues is smaller."""
    monkeypatch.setattr(sys.modules["sketchshift.drift.noise"], "POINTS", n)
    whole, m = blobs.sketch(3_000), blobs.spec.sketch_size
    noise = Population.of(whole, None, 0, "compare").noise

    features = np.exp(2j * np.pi * noise.points @ whole.frequencies.turns.astype(float))
    reals = np.hstack([features.real, features.imag]) / np.sqrt(m)
    expected = np.linalg.eigvalsh(np.cov(reals.T, aweights=noise.shares, bias=True))[::-1]
    found = noise.eigenvalues[::-1] / noise.eigenvalues.sum()
    assert len(found) == min(2 * m, len(noise.points))
    assert found[:20] == pytest.approx(expected[:20] / expected.sum(), rel=1e-3)


def test_laws_that_differ_in_size_and_shift_share_their_quantiles():
    law = NullLaw.of(np.array([2.0, 1.0, 0.5]))
    other = law.scaled(3.0, shift=-1.0)

    assert other.sum is law.sum
    assert other.quantile(0.01) == pytest.approx(3.0 * law.quantile(0.01) - 1.0, rel=1e-12)
    assert other.tail(other.quantile(0.01)) == pytest.approx(0.01, rel=1e-9)
    assert other.mean == pytest.approx(3.0 * 3.5 - 1.0)
