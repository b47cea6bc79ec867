"""Verdicts on tables made by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from matplotlib.figure import Figure as Canvas

from sketchshift.errors import DataError
from sketchshift_papers.claims import (
    Evidence,
    Outcome,
    evaluate,
    judge,
    outcome_of,
    standing_of,
)
from sketchshift_papers.definition import (
    Cause,
    Claim,
    Variant,
    figure_names,
)
from sketchshift_papers.pictures import PICTURES
from sketchshift_papers.verdicts import (
    asides,
    details,
    markdown,
    tally,
    verdict_facts,
)


def rows(decoder, values, L=None, m=100):
    """Runs at bandwidths, one value a realization."""
    return [
        {"dataset": "x", "d": 2, "decoder": decoder, "m": m, "sigma": sigma, "L": L, "rse": value}
        for sigma, found in values.items()
        for value in (found if isinstance(found, list) else [found])
    ]


def along(decoder, *values):
    return [row for i, value in enumerate(values) for row in rows(decoder, {0.1: value}, L=10**i)]


# One missed cluster of five decides a mean: means are 20 and 1.2, medians 1.1 and 1.
ONE_MISSED = rows("lucky", {0.1: [1.0, 1.1, 1.2, 1.0, 95.7], 0.2: [1.0, 1.0, 1.0, 1.4, 1.6]})
MADE = [
    *rows("good", {0.1: [1.0, 1.2], 0.2: 1.0, 0.5: 4.0}, L=10),
    *rows("bad", {0.1: 9.0, 0.2: 5.0, 0.5: 1.0}),
    *ONE_MISSED,
    *rows("starts", {0.1: 4.0}, 10, 100),
    *rows("starts", {0.1: 2.0}, 10, 200),
    *rows("starts", {0.1: 3.0}, 90, 100),
    *rows("starts", {0.1: 3.0}, 90, 200),
    *rows("wider", {0.1: 2.0, 0.2: 1.0}, m=100),
    *rows("wider", {0.1: 1.0, 0.2: 1.0}, m=200),
    *rows("no number", {0.1: math.nan}),
    *along("falls back", 3.0, 1.0, 1.1),
    *along("stays", 1.0, 1.0, 1.0),
]
FEW, MANY = ({"decoder": "starts", "L": L} for L in (10, 90))
FALL = {"along": "L", "trend": "fall"}
COUNT = {"reduce": "count", "threshold": 1.2}
MISSED = {"measure": "missed", "op": "<="}
MEDIAN = {"statistic": "median"}
BAD = {"decoder": "bad"}


@pytest.mark.parametrize(
    ("of", "asked", "expected"),
    [
        ("good", {"op": "<=", "value": 1.1}, (2, 3)),
        (
            {"decoder": "good", "sigma": {"from": 0.1, "to": 0.2}},
            {"op": "<=", "value": 1.1},
            (2, 2),
        ),
        ({"decoder": "good", "sigma": [0.5]}, {"op": "<=", "value": 1.1}, (0, 1)),
        ("good", {"reduce": "max", "op": "within", "value": [4.0, 4.0]}, (1, 1)),
        ("good", COUNT | {"reduce": "largest", "op": "within", "value": [0.2, 0.2]}, (1, 1)),
        ("good", {"reduce": "smallest", "threshold": 0.5, "op": "<", "other": BAD}, (0, 1)),
        ("good", {"op": "<", "other": BAD}, (2, 3)),
        (FEW, {"op": ">", "other": MANY}, (1, 2)),
        (FEW, {"op": "within", "factor": 1.4, "other": MANY}, (1, 2)),
        ("falls back", FALL, (0, 1)),
        ("falls back", FALL | {"slack": 0.2}, (1, 1)),
        ("stays", FALL | {"slack": 0.2}, (0, 1)),
        ("wider", COUNT | {"along": "m", "trend": "rise"}, (1, 1)),
        ("lucky", {"op": "<=", "value": 1.15}, (0, 2)),
        ("lucky", {"op": "<=", "value": 1.15} | MEDIAN, (2, 2)),
        ("lucky", MISSED | {"value": 0.2}, (2, 2)),
        ("lucky", MISSED | {"value": 0.19}, (0, 2)),
        ("no number", MISSED | {"op": ">=", "value": 1.0}, (1, 1)),
        ("nobody", {"op": "<=", "value": 1.0}, (0, 0)),
    ],
)
def test_comparisons_that_come_out_as_claimed_are_counted(of, asked, expected):
    found = evaluate({"of": {"decoder": of} if isinstance(of, str) else of} | asked, MADE)

    assert (found.n_satisfied, found.n_compared) == expected


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({}, "mean rse of lucky: 1.2 to 20, wanted <= 0.2 (0 of 2)"),
        (MEDIAN | {"reduce": "mean"}, "mean of median rse of lucky: 1.05, wanted <= 0.2 (no)"),
        (MISSED, "share of runs with rse > 1.5 of lucky: 0.2 to 0.2, wanted <= 0.2 (2 of 2)"),
        ({"of": {"decoder": "nobody"}}, "no runs with nobody"),
    ],
)
def test_evidence_says_what_was_averaged_and_wanted(asked, text):
    check = {"of": {"decoder": "lucky"}, "op": "<=", "value": 0.2}

    assert evaluate(check | asked, MADE).text == text


@pytest.mark.parametrize(
    ("shares", "outcome"),
    [
        ([(3, 3), (1, 1)], Outcome.HOLDS),
        ([(3, 3), (0, 1)], Outcome.PARTLY),
        ([(2, 3)], Outcome.PARTLY),
        ([(1, 3), (0, 1)], Outcome.FAILS),
        ([(0, 0), (1, 1)], Outcome.UNMEASURED),
    ],
)
def test_a_claim_holds_only_with_all_its_comparisons(shares, outcome):
    assert outcome_of([Evidence(n, of, "") for n, of in shares]) is outcome


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"op": "="}, "cannot compare by '='"),
        ({"statistics": "median"}, "no entry statistics"),
        ({"reduce": "best", "threshold": 1.0}, "cannot reduce by 'best'"),
        (MISSED | MEDIAN, "'missed' is a share already"),
    ],
)
def test_unknown_words_are_errors(entries, message):
    with pytest.raises(DataError, match=message):
        evaluate({"of": {"decoder": "good"}, "op": "<=", "value": 1.0} | entries, MADE)


# Causes and variants: where a claim is counted.


@pytest.mark.parametrize(
    ("outcome", "cause", "standing"),
    [
        (Outcome.HOLDS, "data", "reproduced"),
        (Outcome.HOLDS, "not testable", "not testable"),
        (Outcome.PARTLY, "data", "data unknown"),
        (Outcome.FAILS, None, "not reproduced"),
        (Outcome.UNMEASURED, "data", "not measured"),
    ],
)
def test_a_cause_counts_only_where_a_claim_falls_short(outcome, cause, standing):
    assert standing_of(outcome, None if cause is None else Cause(cause)) == standing


RUNS = [
    row | {"seed": 0, "version": "1", "commit": "c"}
    for row in [
        *ONE_MISSED,
        *rows("cl_ompr", {0.1: 1.0, 0.2: 1.0}),
        *rows("without", {0.1: 30.0, 0.2: 2.0}),
    ]
]
FAR = {"op": ">", "value": 1.5}
AT_MOST = {"of": {"decoder": "lucky"}, "op": "<=", "value": 1.15}
CLAIMS = (
    Claim("0.1", "1", "Lucky is near.", (AT_MOST,), note="One run missed."),
    Claim(
        "0.2",
        "1",
        "CL-OMPR is far.",
        ({"of": {"decoder": "cl_ompr"}} | FAR,),
        cause=Cause.BASELINE,
        also=(Variant("without step 5", ({"of": {"decoder": "without"}} | FAR,)),),
    ),
    Claim("0.3", "1", "One is 1.", (AT_MOST | {"value": 99.0},), cause=Cause.DATA),
    Claim("0.4", "2", "It takes a second.", (), cause=Cause.NOT_TESTABLE),
    Claim("0.5", "2", "Mostly near.", (AT_MOST | {"measure": "missed", "value": 0.2},)),
    Claim("0.6", "2", "Near|far.", (AT_MOST | {"value": 5.0},), cause=Cause.DATA),
)


@pytest.fixture
def facts(tiny):
    figure = replace(tiny, claims=CLAIMS)
    return verdict_facts(figure, judge(figure, RUNS), RUNS)


def test_a_claim_about_errors_is_judged_by_means_and_by_medians(facts):
    by = [{s: found["verdict"] for s, found in c["by"].items()} for c in facts["claims"]]

    assert by[0] == {"mean": "does not hold here", "median": "holds"}
    assert by[3] == by[4] == {}  # nothing measured; a share of runs
    assert facts["claims"][0]["verdict"] == "does not hold here"
    assert "by medians: holds" in asides(facts["claims"][0])
    assert any(text.startswith("By medians: median rse") for text in details(facts["claims"][0]))


def test_the_statistic_of_the_file_is_the_verdict_and_the_other_stands_beside_it(tiny):
    claims = (Claim("0.1", "1", "Near.", (AT_MOST | MEDIAN,)),)

    (claim,) = verdict_facts(tiny, judge(replace(tiny, claims=claims), RUNS), RUNS)["claims"]

    assert claim["verdict"] == "holds"
    assert asides(claim) == ["by means: does not hold here", "by medians: holds"]


def test_a_variant_stands_beside_the_verdict_and_never_replaces_it(facts):
    claim = facts["claims"][1]

    assert claim["verdict"] == "does not hold here"
    assert claim["standing"] == "depends on the baseline"
    assert [(v["name"], v["verdict"]) for v in claim["also"]] == [("without step 5", "holds")]
    assert asides(claim)[-1] == "without step 5: holds (by medians: holds)"
    assert details(claim)[-1].startswith("Without step 5: mean rse of without: 2 to 30, wanted >")


def test_the_tally_is_split_by_cause(facts):
    """0.1 fails, 0.2 is the baseline's, 0.3 and 0.5 hold, 0.4 is not testable, 0.6 partly."""
    assert tally(facts["claims"]) == (
        "6 claims. Reproduced: 2; data unknown: 1 (1 in part); "
        "depends on the baseline: 1; not testable: 1; not reproduced: 1."
    )


def test_every_claim_has_its_paragraph(facts):
    lines = markdown(facts)

    assert len([line for line in lines if line.startswith("- 0.")]) == len(CLAIMS)
    assert "- 0.4 **not testable**: It takes a second. (2)" in lines
    last = lines[lines.index("- 0.6 **holds partly**: Near|far. (2)") + 1 :]
    assert last[:2] == ["  - data unknown", "  - by medians: holds"]


# Pictures: what stands in them.


def drawn(tiny, kind, found):
    """The panels of a picture, and its numbers."""
    canvas, figure = Canvas(), replace(tiny, contenders=tiny.contenders[1:])
    runs = [row | {"decoder": "cl_ompr", "dataset": "separated", "m": 40} for row in found]
    PICTURES[kind](canvas, figure, tiny.grids["quick"], runs)
    return canvas.axes


def test_curves_show_means_medians_quartiles_and_missed_runs(tiny):
    """Of 1, 1.1, 1.2, 1, 95.7: mean 20, median 1.1, quartiles 1 and 1.2, one of five missed."""
    means, medians, missed = drawn(tiny, "curves", ONE_MISSED)

    assert means.lines[0].get_ydata() == pytest.approx([20.0, 1.2])
    assert medians.lines[0].get_ydata() == pytest.approx([1.1, 1.0])
    (bars,) = medians.collections
    assert [list(bar[:, 1]) for bar in bars.get_segments()] == [[1.0, 1.2], [1.0, 1.4]]
    assert missed.lines[0].get_ydata() == pytest.approx([0.2, 0.2])


def test_a_folder_without_figures_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"has no \.toml files of figures"):
        figure_names(tmp_path)
