"""Verdicts on tables made by hand."""

from __future__ import annotations

import math

import pytest

from sketchshift.errors import DataError
from sketchshift_papers.claims import Evidence, Outcome, evaluate, markdown, outcome_of


def rows(decoder: str, values: dict, L: int | None = None, m: int = 100) -> list[dict]:
    """Runs at bandwidths, one value a realization."""
    return [
        {"dataset": "x", "d": 2, "decoder": decoder, "m": m, "sigma": sigma, "L": L, "rse": value}
        for sigma, found in values.items()
        for value in (found if isinstance(found, list) else [found])
    ]


GOOD = rows("good", {0.1: [1.0, 1.2], 0.2: 1.0, 0.5: 4.0}, L=10)
BAD = rows("bad", {0.1: 9.0, 0.2: 5.0, 0.5: 1.0})


def check(op="<=", **entries):
    return {"of": {"decoder": "good"}, "op": op} | entries


def test_a_value_is_compared_at_every_point_with_the_mean_over_realizations():
    found = evaluate(check(value=1.1), GOOD)

    assert (found.n_satisfied, found.n_compared) == (2, 3)
    assert "1 to 4" in found.text


def test_a_range_of_bandwidths_includes_its_ends():
    of = {"decoder": "good", "sigma": {"from": 0.1, "to": 0.2}}

    assert evaluate(check(of=of, value=1.1), GOOD).share == 1.0
    assert evaluate(check(of={"decoder": "good", "sigma": [0.5]}, value=1.1), GOOD).share == 0.0


@pytest.mark.parametrize(
    ("reduce", "value"), [("min", 1.0), ("max", 4.0), ("count", 2.0), ("largest", 0.2)]
)
def test_reductions_over_the_bandwidths(reduce, value):
    wanted = {"reduce": reduce, "threshold": 1.2, "value": [value, value]}

    assert evaluate(check("within", **wanted), GOOD).share == 1.0


def test_two_decoders_are_compared_bandwidth_by_bandwidth():
    """Although only one of them has starts."""
    found = evaluate(check("<", other={"decoder": "bad"}), GOOD + BAD)

    assert (found.n_satisfied, found.n_compared) == (2, 3)


def test_two_numbers_of_starts_are_compared_at_the_same_sketch_size():
    few = rows("a", {0.1: 4.0}, 10, 100) + rows("a", {0.1: 2.0}, 10, 200)
    many = rows("a", {0.1: 3.0}, 90, 100) + rows("a", {0.1: 3.0}, 90, 200)
    sides = {"of": {"decoder": "a", "L": 10}, "other": {"decoder": "a", "L": 90}}

    assert evaluate(check(">", **sides), few + many).share == 0.5
    assert evaluate(check("within", factor=1.4, **sides), few + many).share == 0.5


def test_a_trend_must_not_go_back():
    def along(*values):
        runs = [row for i, v in enumerate(values) for row in rows("a", {0.1: v}, L=10**i)]
        asked = {"of": {"decoder": "a"}, "along": "L", "trend": "fall"}
        return [evaluate(asked | {"slack": slack}, runs).share for slack in (0.0, 0.2)]

    assert along(3.0, 2.0, 1.0) == [1.0, 1.0]
    assert along(3.0, 1.0, 1.1) == [0.0, 1.0]
    assert along(1.0, 1.0, 1.0) == [0.0, 0.0]


def test_the_range_of_bandwidths_may_grow_along_an_axis():
    runs = rows("a", {0.1: 2.0, 0.2: 1.0}, m=100) + rows("a", {0.1: 1.0, 0.2: 1.0}, m=200)
    asked = {"of": {"decoder": "a"}, "reduce": "count", "threshold": 1.2, "along": "m"}

    assert evaluate(asked | {"trend": "rise"}, runs).share == 1.0
    assert evaluate(asked | {"trend": "fall"}, runs).share == 0.0


def test_a_bandwidth_that_is_never_reached_satisfies_nothing():
    sides = {"reduce": "smallest", "threshold": 0.5, "other": {"decoder": "bad"}}

    assert evaluate(check("<", **sides), GOOD + BAD).share == 0.0


def test_what_was_not_run_is_not_judged():
    found = evaluate(check(of={"decoder": "nobody"}, value=1.0), GOOD)

    assert math.isnan(found.share)
    assert found.text == "no runs with nobody"
    assert outcome_of([found, Evidence(1, 1, "")]) is Outcome.UNMEASURED


@pytest.mark.parametrize(
    ("shares", "outcome"),
    [
        ([(3, 3), (1, 1)], Outcome.HOLDS),
        ([(3, 3), (0, 1)], Outcome.PARTLY),
        ([(2, 3)], Outcome.PARTLY),
        ([(1, 3), (0, 1)], Outcome.FAILS),
    ],
)
def test_a_claim_holds_only_with_all_its_comparisons(shares, outcome):
    assert outcome_of([Evidence(n, of, "") for n, of in shares]) is outcome


def test_unknown_words_are_errors():
    with pytest.raises(DataError, match="cannot compare by '='"):
        evaluate(check("=", value=1.0), GOOD)
    with pytest.raises(DataError, match="cannot reduce by 'best'"):
        evaluate(check(reduce="best", threshold=1.0, value=1.0), GOOD)


def test_markdown_has_a_line_for_every_claim():
    claim = {"number": "1", "section": "3", "says": "a|b", "verdict": "holds", "note": "So."}
    facts = {"figure": "fig0", "title": "t", "runs": 2, "realizations": 1, "commits": ["0.1"]}
    lines = markdown(facts | {"claims": [claim | {"evidence": ["x", "y"]}]})

    assert "| 1 | 3 | a\\|b | **holds** | x; y. So. |" in lines
