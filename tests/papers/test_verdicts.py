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
    load_figure,
)
from sketchshift_papers.pictures import PICTURES
from sketchshift_papers.verdicts import (
    asides,
    details,
    markdown,
    tally,
    verdict_facts,
)


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
    with pytest.raises(DataError, match="no entry statistics"):
        evaluate(check(value=1.0, statistics="median"), GOOD)
    with pytest.raises(DataError, match="cannot reduce by 'best'"):
        evaluate(check(reduce="best", threshold=1.0, value=1.0), GOOD)


# Medians, missed runs: one missed cluster of five decides a mean.

ONE_MISSED = rows("lucky", {0.1: [1.0, 1.1, 1.2, 1.0, 95.7], 0.2: [1.0, 1.0, 1.0, 1.4, 1.6]})


def test_a_median_passes_over_the_one_run_that_missed_a_cluster():
    """Means are (1 + 1.1 + 1.2 + 1 + 95.7) / 5 = 20 and 6 / 5; medians 1.1 and 1."""
    asked = {"of": {"decoder": "lucky"}, "op": "<=", "value": 1.15}

    by_means = evaluate(asked, ONE_MISSED)
    by_medians = evaluate(asked | {"statistic": "median"}, ONE_MISSED)

    assert (by_means.n_satisfied, by_medians.n_satisfied) == (0, 2)
    assert by_means.text.startswith("mean rse of lucky: 1.2 to 20,")
    assert by_medians.text.startswith("median rse of lucky: 1 to 1.1,")


def test_missed_runs_are_a_share_of_the_realizations():
    """One of five above 1.5 at both bandwidths."""
    asked = {"of": {"decoder": "lucky"}, "measure": "missed", "op": "<="}

    assert evaluate(asked | {"value": 0.2}, ONE_MISSED).share == 1.0
    assert evaluate(asked | {"value": 0.19}, ONE_MISSED).share == 0.0
    assert (
        "share of runs with rse > 1.5 of lucky: 0.2"
        in evaluate(asked | {"value": 0.2}, ONE_MISSED).text
    )


def test_a_run_without_a_number_is_missed():
    asked = {"of": {"decoder": "a"}, "measure": "missed", "op": ">=", "value": 1.0}

    assert evaluate(asked, rows("a", {0.1: math.nan})).share == 1.0


def test_reductions_of_medians_say_both():
    asked = {"of": {"decoder": "lucky"}, "statistic": "median", "reduce": "mean"}

    found = evaluate(asked | {"op": "within", "value": [1.05, 1.05]}, ONE_MISSED)

    assert found.share == 1.0
    assert found.text.startswith("mean of median rse of lucky: 1.05,")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"statistic": "mode"}, "no statistic 'mode'. Use mean or median"),
        ({"measure": "missed", "statistic": "median"}, "'missed' is a share already"),
    ],
)
def test_unknown_statistics_are_errors(entries, message):
    with pytest.raises(DataError, match=message):
        evaluate(check(value=1.0, **entries), GOOD)


# Causes and variants: where a claim is counted.


@pytest.mark.parametrize(
    ("outcome", "cause", "standing"),
    [
        (Outcome.HOLDS, None, "reproduced"),
        (Outcome.HOLDS, "data", "reproduced"),
        (Outcome.HOLDS, "baseline", "reproduced"),
        (Outcome.HOLDS, "not testable", "not testable"),
        (Outcome.PARTLY, None, "reproduced in part"),
        (Outcome.PARTLY, "data", "data unknown"),
        (Outcome.PARTLY, "baseline", "depends on the baseline"),
        (Outcome.FAILS, None, "not reproduced"),
        (Outcome.FAILS, "data", "data unknown"),
        (Outcome.FAILS, "baseline", "depends on the baseline"),
        (Outcome.FAILS, "not testable", "not testable"),
        (Outcome.UNMEASURED, "data", "not measured"),
        (Outcome.UNMEASURED, "not testable", "not testable"),
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
    claims = (Claim("0.1", "1", "Near.", (AT_MOST | {"statistic": "median"},)),)

    (claim,) = verdict_facts(tiny, judge(replace(tiny, claims=claims), RUNS), RUNS)["claims"]

    assert claim["verdict"] == "holds"
    assert asides(claim) == ["by means: does not hold here", "by medians: holds"]


def test_a_variant_stands_beside_the_verdict_and_never_replaces_it(facts):
    claim = facts["claims"][1]

    assert (claim["verdict"], claim["standing"]) == (
        "does not hold here",
        "depends on the baseline",
    )
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
    canvas = Canvas()
    runs = [row | {"decoder": "cl_ompr", "dataset": "separated", "m": 40} for row in found]
    grid = tiny.grids["quick"]
    PICTURES[kind](canvas, replace(tiny, contenders=tiny.contenders[1:]), grid, runs)
    return canvas.axes


def test_curves_show_means_medians_quartiles_and_missed_runs(tiny):
    """Of 1, 1.1, 1.2, 1, 95.7: mean 20, median 1.1, quartiles 1 and 1.2, one of five missed."""
    means, medians, missed = drawn(tiny, "curves", ONE_MISSED)

    assert means.lines[0].get_ydata() == pytest.approx([20.0, 1.2])
    assert medians.lines[0].get_ydata() == pytest.approx([1.1, 1.0])
    (bars,) = medians.collections
    assert [list(bar[:, 1]) for bar in bars.get_segments()] == [[1.0, 1.2], [1.0, 1.4]]
    assert missed.lines[0].get_ydata() == pytest.approx([0.2, 0.2])


def test_maps_print_the_median_where_it_is_another(tiny):
    found = [*ONE_MISSED, *rows("lucky", {0.5: [1.0, 1.02]})]

    texts = [text.get_text() for text in drawn(tiny, "maps", found)[0].texts]

    assert sorted(texts) == ["1.01", "1.20\n(1.00)", "20\n(1.10)"]


# Files: what is accepted, what is found.


def test_causes_and_variants_are_read_from_the_file(paper):
    more = 'cause = "baseline"\n[[claims.also]]\nname = "without step 5"\nchecks = [{ of = {} }]\n'
    with (paper / "fig0.toml").open("a", encoding="utf-8") as file:
        file.write('[[claims]]\nnumber = "0.3"\nsection = "0"\nsays = "x"\nchecks = []\n' + more)

    first, _, last = load_figure("fig0", paper).claims

    assert (first.cause, first.also) == (None, ())
    assert last.cause is Cause.BASELINE
    assert last.also == (Variant("without step 5", ({"of": {}},)),)


def test_an_unknown_cause_is_named_with_those_there_are(paper):
    text = (paper / "fig0.toml").read_text(encoding="utf-8")
    broken = text.replace('number = "0.2"', 'number = "0.2"\ncause = "bad luck"')
    (paper / "fig0.toml").write_text(broken, encoding="utf-8")

    with pytest.raises(DataError, match=r"0\.2 has the cause 'bad luck'\. Use one of 'data'"):
        load_figure("fig0", paper)


def test_any_file_of_a_folder_is_a_figure_and_numbers_count(tmp_path):
    with pytest.raises(DataError, match=r"has no \.toml files of figures"):
        figure_names(tmp_path)
    for name in ("noise", "fig10", "fig5b", "bandwidth", "fig5a"):
        (tmp_path / f"{name}.toml").touch()

    assert figure_names(tmp_path) == ["bandwidth", "fig5a", "fig5b", "fig10", "noise"]
