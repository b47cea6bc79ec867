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


def gaussian(scale: float):
    dp.enable_features("contrib")
    return dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), scale
    )


def draws(scale: float, n: int) -> np.ndarray:
    return _draw(gaussian(scale), np.zeros(n, dtype=np.int64))


def test_small_noise_has_the_probabilities_of_the_discrete_gaussian():
    """Proportional to e^{-x^2 / 18} at scale 3: chi-square over -12..12 and the rest."""
    x = draws(3.0, 50_000)
    values = np.arange(-12, 13)
    law = np.exp(-(values**2) / 18.0) / np.exp(-(np.arange(-60, 61) ** 2) / 18.0).sum()
    seen = np.count_nonzero(x[:, None] == values, axis=0)
    expected = np.append(law, 1.0 - law.sum()) * len(x)

    assert stats.chisquare([*seen, len(x) - seen.sum()], expected).pvalue > NEVER


def test_large_noise_is_gaussian_to_its_last_digits_and_new_at_each_place():
    """Kolmogorov and Smirnov for the shape; remainders by 8 for digits that floats lose."""
    x = draws(1e10, 20_000)

    assert stats.kstest(x / 1e10, "norm").pvalue > NEVER
    assert stats.chisquare(np.bincount(x % 8, minlength=8)).pvalue > NEVER
    assert abs(stats.pearsonr(x[:-1], x[1:])[0]) < 6.2 / np.sqrt(len(x))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-8), (1.0, 1e-6), (8.0, 1e-10)])
def test_opendp_agrees_with_the_epsilon_that_was_asked_for(epsilon, delta):
    """The scale is not larger than that needs, to one part in a million."""
    scale = Budget(epsilon, delta).look(1000, "release").charge.scale

    low, high = (
        dp.c.make_zCDP_to_approxDP(gaussian(each)).map(1000.0).epsilon(delta)
        for each in (scale, scale * (1.0 - 1e-6))
    )
    assert low <= epsilon < high


def test_an_epsilon_above_ten_is_warned_of(raw):
    with pytest.warns(ss.errors.PrivacyWarning, match="epsilon=20 promises little"):
        ss.privacy.release(raw, 20.0, 1e-8)
