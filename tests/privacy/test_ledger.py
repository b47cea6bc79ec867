"""Costs add up, and never to less than they should."""

from __future__ import annotations

import math
import sys
from contextlib import redirect_stderr
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchshift.errors import PrivacyError, SpecError
from sketchshift.features import Charge
from sketchshift.privacy import Ledger
from sketchshift.privacy.mechanism import epsilon_of, rho_of

DELTA = 1e-8


def charge(name, rho):
    scale = math.sqrt(0.5 / rho)
    return Charge(name * 32, "release", rho, DELTA, 1.0, scale, "add_remove", 1, "test")


A, B, C = charge("a", 0.1), charge("b", 0.2), charge("c", 0.4)
ONE, TWO, THREE = Ledger.of([A]), Ledger.of([B]), Ledger.of([C])


@pytest.mark.parametrize(("n", "epsilon"), [(1, 3.0), (2, 0.1), (16, 1.0)])
def test_the_sum_is_never_below_the_exact_cost_and_close_to_it(n, epsilon):
    """Google's dp-accounting, privacy loss distributions of n Gaussians: the exact value."""
    with redirect_stderr(sys.__stderr__):  # absl, which it loads, keeps a stream and closes it
        dp_accounting = pytest.importorskip("dp_accounting")
        from dp_accounting.pld import PLDAccountant

    rho = rho_of(epsilon, DELTA)
    event = dp_accounting.GaussianDpEvent(math.sqrt(0.5 / rho))
    exact = PLDAccountant().compose(event, n).get_epsilon(DELTA)

    ours = Ledger.of(charge(f"{i:x}", rho) for i in range(n)).epsilon(DELTA)

    assert exact <= ours * (1.0 + 1e-4)  # its grid rounds up
    assert ours <= 1.08 * exact


@pytest.mark.parametrize(
    ("ledger", "rho"),
    [
        (ONE + Ledger.of([B, A]), 0.3),  # the same charge counts once
        (ONE.beside(TWO), 0.2),  # of disjoint parts the dearest counts
        ((THREE + ONE).beside(THREE + TWO), 0.6),  # and what they share, beside each
        (ONE.beside(TWO) + ONE, 0.3),  # the people of b have then paid a as well
    ],
)
def test_charges_of_the_same_people_add_up(ledger, rho):
    assert ledger.rho == pytest.approx(rho)
    assert ledger.epsilon() == pytest.approx(epsilon_of(rho, DELTA))


def test_a_ledger_is_written_as_its_charges_by_id_and_the_places_of_each_part():
    later = replace(B, delta=1e-6)
    ledger = Ledger.of([C, A]).beside(Ledger.of([C, later])).beside(THREE)

    assert ledger.to_dict() == {
        "charges": [asdict(each) for each in (A, later, C)],
        "parts": [[0, 2], [1, 2]],
    }
    assert ledger.delta == 1e-6


CHARGES = st.lists(st.sampled_from([A, B, C, charge("d", 0.8)]), min_size=1, max_size=3)
LEDGERS = st.one_of(
    CHARGES.map(Ledger.of),
    st.tuples(CHARGES, CHARGES).map(lambda two: Ledger.of(two[0]).beside(Ledger.of(two[1]))),
)


@settings(deadline=None)
@given(LEDGERS, LEDGERS, LEDGERS)
def test_ledgers_add_in_any_order_and_are_written_and_read(a, b, c):
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a.beside(b).rho == max(a.rho, b.rho)
    assert Ledger.from_dict(c.to_dict()) + a == c + a
    assert max(a.rho, b.rho) <= (a + b).rho <= a.rho + b.rho + 1e-12


@pytest.mark.parametrize("promise", [{"adjacency": "replace_one"}, {"rows_per_person": 2}])
def test_different_promises_do_not_add_up(promise):
    with pytest.raises(PrivacyError, match=r"promise different things .*one adjacency"):
        ONE + Ledger.of([replace(B, **promise)])


@pytest.mark.parametrize(
    "content",
    [{}, {"parts": []}, {"parts": [[]]}, {"parts": [[0], []]}, {"parts": [[1]]}, {"parts": 4}],
)
def test_anything_else_is_not_a_ledger(content):
    with pytest.raises(SpecError, match="ledger"):
        Ledger.from_dict({"charges": [asdict(A)]} | content)


def test_a_delta_that_is_none_is_refused():
    for delta in (0.0, 1.0, -1.0, math.nan, "small"):
        with pytest.raises(SpecError, match="'delta' parameter of Ledger"):
            ONE.epsilon(delta)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("rho", 1e-20, 1e5),
        ("delta", 1e-30, 1e-2),
        ("sensitivity", 2.0**-20, 2.0**100),
        ("scale", 2.0**-20, 2.0**100),
        ("rows_per_person", 1, 2**31),
    ],
)
def test_a_charge_has_numbers_that_something_can_be_made_of(name, low, high):
    for number in (low, high):
        assert getattr(replace(A, **{name: number}), name) == number
    for number in (0.99 * low, 1.01 * high, 10**400, math.nan, "1", None, True, []):
        with pytest.raises(SpecError, match=f"'{name}' parameter of Charge"):
            replace(A, **{name: number})
