"""Weighted sums of chi-squares, against SciPy's law of one and against draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from sketchshift.drift.noise import NullLaw


def tail(x, weights):
    return NullLaw.of(weights).tail(x)


def quantile(p, weights):
    return NullLaw.of(weights).quantile(p)


@pytest.mark.parametrize(("degrees", "tolerance"), [(1, 0.14), (5, 0.025), (200, 2e-4)])
def test_equal_weights_give_the_chi_square_law_far_into_the_tail(degrees, tolerance):
    """The error is relative to p: a p-value of 1e-30 has its first digit right."""
    for p in (0.9, 0.5, 0.1, 0.01, 1e-6, 1e-30):
        x = 2.5 * chi2.isf(p, degrees)
        assert tail(x, np.full(degrees, 2.5)) == pytest.approx(p, rel=tolerance)


def test_unequal_weights_agree_with_draws(rng):
    """A million draws: three deviations of the share are 0.0003 at p = 0.01."""
    weights = np.array([1.0, 0.5, 0.25, 0.1, 0.1, 0.01])
    draws = rng.chisquare(1, size=(1_000_000, 6)) @ weights

    for p in (0.1, 0.01):
        assert (draws > quantile(p, weights)).mean() == pytest.approx(p, rel=0.03)


@given(
    weights=st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=30).map(np.array),
    p=st.floats(1e-9, 0.95),
)
def test_the_quantile_is_the_inverse_of_the_tail_whatever_the_unit(weights, p):
    found = quantile(p, weights)

    assert tail(found, weights) == pytest.approx(p, rel=1e-6)
    assert tail(4.0 * found, 4.0 * weights) == pytest.approx(p, rel=1e-6)


def test_the_formula_has_no_hole_at_the_mean():
    """There it is 0 / 0; beside it, the law is smooth."""
    weights = np.array([1.0, 0.5, 0.2])
    values = [tail(1.7 * (1 + e), weights) for e in (-1e-3, -1e-7, 0.0, 1e-7, 1e-3)]

    assert np.ptp(values) < 1e-3
    assert values == sorted(values, reverse=True)


def test_nothing_that_varies_never_exceeds_anything():
    assert tail(1e-9, np.zeros(3)) == 0.0
    assert tail(0.0, np.zeros(3)) == 1.0
    assert quantile(0.01, np.zeros(3)) == 0.0
