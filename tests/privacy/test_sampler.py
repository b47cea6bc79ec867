"""The noise is what it should be.

OpenDP cannot be seeded: every test has new draws, and a threshold of p < 1e-9, so that a false
alarm is once in a thousand million runs.
"""

from __future__ import annotations

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

import sketchshift as ss
from sketchshift.privacy.mechanism import Budget, _draw

NEVER = 1e-9


def draws(scale: float, n: int) -> np.ndarray:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return _draw(dp.m.make_gaussian(*space, scale), np.zeros(n, dtype=np.int64))


def test_small_noise_has_the_probabilities_of_the_discrete_gaussian():
    """Proportional to e^{-x^2 / 18} at scale 3: chi-square over -12..12 and the rest."""
    x = draws(3.0, 100_000)
    values = np.arange(-60, 61)
    law = np.exp(-(values**2) / 18.0)
    law /= law.sum()
    inside = np.abs(values) <= 12
    expected = np.append(law[inside], law[~inside].sum()) * len(x)
    seen = [np.count_nonzero(x == v) for v in values[inside]]

    assert stats.chisquare([*seen, len(x) - sum(seen)], expected).pvalue > NEVER


def test_large_noise_is_gaussian_to_its_last_digits():
    """Kolmogorov and Smirnov for the shape; remainders by 8 for digits that floats lose."""
    x = draws(1e10, 20_000)

    assert stats.kstest(x / 1e10, "norm").pvalue > NEVER
    assert stats.chisquare(np.bincount(x % 8, minlength=8)).pvalue > NEVER


def test_the_noise_of_a_release_has_the_scale_its_charge_says():
    """The sum of squares over the scale is chi-square."""
    look = Budget(1.0, 1e-8).look(10**9, "release")
    noisy = look.draw(np.zeros(4001, dtype=np.int64))

    p = stats.chi2(4001).cdf(float(np.square(noisy / look.charge.scale).sum()))
    assert NEVER < p < 1.0 - NEVER


def test_coordinates_have_noise_of_their_own():
    x = draws(100.0, 20_000)

    assert abs(stats.pearsonr(x[:-1], x[1:])[0]) < 6.2 / np.sqrt(len(x))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-8), (1.0, 1e-6), (8.0, 1e-10)])
def test_opendp_agrees_with_the_epsilon_that_was_asked_for(epsilon, delta):
    """The scale is not larger than that needs, to one part in a million."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    charge = Budget(epsilon, delta).look(1000, "release").charge

    def epsilon_at(scale: float) -> float:
        gaussian = dp.m.make_gaussian(*space, scale)
        return dp.c.make_zCDP_to_approxDP(gaussian).map(1000.0).epsilon(delta)

    assert epsilon_at(charge.scale) <= epsilon < epsilon_at(charge.scale * (1.0 - 1e-6))


def test_an_epsilon_above_ten_is_warned_of(raw):
    with pytest.warns(ss.errors.PrivacyWarning, match="epsilon=20 promises little"):
        ss.privacy.release(raw, 20.0, 1e-8)
