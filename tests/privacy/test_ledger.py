"""Costs add up, and never to less than they should."""

from __future__ import annotations

import math
import sys
from contextlib import redirect_stderr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.features import Charge
from sketchshift.privacy import Ledger
from sketchshift.privacy.mechanism import rho_of

DELTA = 1e-8


def charge(name: str, rho: float, adjacency: str = "add_remove", rows: int = 1) -> Charge:
    scale = math.sqrt(0.5 / rho)
    return Charge(name * 32, "release", rho, DELTA, 1.0, scale, adjacency, rows, "test")


A, B, C = charge("a", 0.1), charge("b", 0.2), charge("c", 0.4)


@pytest.mark.parametrize(("n", "epsilon"), [(1, 3.0), (2, 0.1), (5, 3.0), (20, 0.1), (20, 1.0)])
def test_the_sum_is_never_below_the_exact_cost_and_close_to_it(n, epsilon):
    """Google's dp-accounting, privacy loss distributions of n Gaussians: the exact value."""
    with redirect_stderr(sys.__stderr__):  # absl, which it loads, keeps a stream and closes it
        dp_accounting = pytest.importorskip("dp_accounting")
        from dp_accounting.pld import PLDAccountant

    rho = rho_of(epsilon, DELTA)
    charges = [charge(f"{i:032x}"[-1], rho) for i in range(min(n, 16))]
    charges += [
        Charge(f"{i:032x}", "release", rho, DELTA, 1.0, math.sqrt(0.5 / rho), "add_remove", 1, "t")
        for i in range(16, n)
    ]
    event = dp_accounting.GaussianDpEvent(math.sqrt(0.5 / rho))
    exact = PLDAccountant().compose(event, n).get_epsilon(DELTA)

    ours = Ledger.of(charges).epsilon(DELTA)

    assert exact <= ours * (1.0 + 1e-4)  # its grid rounds up
    assert ours <= 1.08 * exact


def test_the_same_charge_counts_once():
    assert (Ledger.of([A]) + Ledger.of([A, B])).rho == pytest.approx(0.3)


def test_disjoint_parts_cost_as_much_as_the_dearest():
    assert Ledger.of([A]).beside(Ledger.of([B])).rho == pytest.approx(0.2)


def test_what_all_parts_share_is_paid_beside_each():
    """A plan made from all of the data, then releases of disjoint parts."""
    assert Ledger.of([C, A]).beside(Ledger.of([C, B])).rho == pytest.approx(0.6)


def test_a_dear_part_forgotten_would_come_back():
    """{a} beside {b}, and a again: the people of b have then paid a as well."""
    both = Ledger.of([A]).beside(Ledger.of([B]))

    assert (both + Ledger.of([A])).rho == pytest.approx(0.3)


CHARGES = st.lists(st.sampled_from([A, B, C, charge("d", 0.8)]), min_size=1, max_size=3)
LEDGERS = st.one_of(
    CHARGES.map(Ledger.of),
    st.tuples(CHARGES, CHARGES).map(lambda two: Ledger.of(two[0]).beside(Ledger.of(two[1]))),
)


@settings(deadline=None)
@given(LEDGERS, LEDGERS, LEDGERS)
def test_ledgers_add_in_any_order(a, b, c):
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a.beside(b).rho == max(a.rho, b.rho)
    assert max(a.rho, b.rho) <= (a + b).rho <= a.rho + b.rho + 1e-12


@given(LEDGERS)
def test_a_ledger_is_written_and_read(ledger):
    assert set(Ledger.from_dict(ledger.to_dict()).parts) == set(ledger.parts)


@pytest.mark.parametrize("other", [charge("b", 0.1, "replace_one"), charge("b", 0.1, rows=2)])
def test_different_promises_do_not_add_up(other):
    with pytest.raises(ss.errors.PrivacyError, match=r"promise different things .*one adjacency"):
        Ledger.of([A]) + Ledger.of([other])


@pytest.mark.parametrize(
    "content",
    [{}, {"charges": [], "parts": []}, {"charges": [], "parts": [[0]]}, {"charges": 3, "parts": 4}],
)
def test_anything_else_is_not_a_ledger(content):
    with pytest.raises(ss.errors.SpecError, match="ledger"):
        Ledger.from_dict(content)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan, math.inf, "small"])
def test_a_delta_that_is_none_is_refused(delta):
    with pytest.raises(ss.errors.SpecError, match=r"'delta' parameter of Ledger\.epsilon must be"):
        Ledger.of([A]).epsilon(delta)
