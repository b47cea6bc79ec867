"""Rho and epsilon, against OpenDP and against the plain bound."""

from __future__ import annotations

import itertools
import math

import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchshift.privacy.mechanism import Budget, epsilon_of, rho_of

RHOS = st.floats(1e-8, 50.0)
DELTAS = st.floats(1e-12, 1e-3)


def opendp_epsilon(scale, sensitivity, delta):
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    gaussian = dp.m.make_gaussian(*space, scale)
    return dp.c.make_zCDP_to_approxDP(gaussian).map(sensitivity).epsilon(delta)


@settings(deadline=None, max_examples=50)
@given(RHOS, DELTAS)
def test_epsilon_is_that_of_opendp(rho, delta):
    expected = opendp_epsilon(math.sqrt(0.5 / rho), 1.0, delta)
    assert epsilon_of(rho, delta) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-8), (1.0, 1e-6), (8.0, 1e-10)])
def test_the_scale_is_the_least_for_which_opendp_agrees_with_the_epsilon(epsilon, delta):
    """To one part in a million."""
    scale = Budget(epsilon, delta).look(1000, "release").charge.scale

    low, high = (opendp_epsilon(scale * less, 1000.0, delta) for less in (1.0, 1.0 - 1e-6))
    assert low <= epsilon < high


@settings(deadline=None, max_examples=50)
@given(st.floats(1e-3, 50.0), DELTAS)
def test_rho_is_the_largest_that_epsilon_allows(epsilon, delta):
    rho = rho_of(epsilon, delta)

    assert epsilon_of(rho, delta) <= epsilon
    assert epsilon_of(rho * (1.0 + 1e-6), delta) > epsilon


def test_any_cost_has_an_epsilon():
    assert epsilon_of(0.0, 1e-8) == 0.0
    for rho, delta in itertools.product([1e-300, 1e-20, 1e5, 1e300], [1e-300, 1e-30, 0.99]):
        assert 0.0 <= epsilon_of(rho, delta) < math.inf
