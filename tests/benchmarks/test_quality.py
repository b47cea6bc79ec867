from __future__ import annotations

import numpy as np
import pytest
from quality import sketched
from quality.__main__ import main
from quality.conditions import CONDITIONS
from quality.found import Problem, centroid_index
from quality.runs import METHODS, OURS, REFERENCE
from quality.store import Store
from quality.tables import compared, losses, trust

SQUARE = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0], [9.0, 9.0]])
BYTES = 1000


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = SQUARE[rng.integers(4, size=4000)] + rng.normal(size=(4000, 2))
    return Problem(X, X, 4, 80, BYTES, seed=0)


def row(condition, dataset, method, mse, **facts):
    run = {"condition": condition, "dataset": dataset, "method": method, "seed": 0}
    return {**run, "mse": mse, "date": "2026-11-16", **facts}


def test_the_centroid_index_counts_missed_clusters_in_either_direction():
    """Franti, Rezaei and Zhao 2014: 0 is right; two centroids in one cluster miss another."""
    doubled = np.vstack([SQUARE[:3], SQUARE[0] + 0.1])

    assert centroid_index(SQUARE[::-1] + 0.1, SQUARE) == 0
    assert centroid_index(doubled, SQUARE) == 1
    assert centroid_index(SQUARE, doubled) == 1
    assert centroid_index(SQUARE[:1], SQUARE) == 3
    assert centroid_index(SQUARE, SQUARE[:1]) == 3


@pytest.mark.parametrize("name", ["means", "streamkm"])
def test_what_is_kept_fits_into_the_bytes(problem, name):
    found = METHODS[name].find(problem)

    assert BYTES - 12 < found.n_bytes <= BYTES
    assert centroid_index(found.centroids, SQUARE) == 0


def test_of_our_decodings_estimate_bound_trust_and_seconds_are_kept(problem):
    facts = sketched.ours(problem).facts

    assert facts["bound"] >= facts["estimate"] > 0.0
    assert facts["is_good"] is (facts["score"] * 1.15 >= 1.0)
    assert {"seconds_plan", "seconds_pass", "seconds_decode"} <= set(facts)
    assert "bound" not in sketched.waves(problem).facts


def test_errors_are_relative_to_the_best_of_the_references():
    rows = [row("default", "skin", REFERENCE, mse) for mse in (3.0, 2.0)]
    rows += [row("stale", "skin", OURS, 2.5), row("default", "uber", OURS, 1.0)]

    runs = compared(rows)

    ours = runs[runs.method == OURS]
    assert list(zip(ours.condition, ours.dataset, ours.rse, strict=True)) == [
        ("stale", "skin", 1.25)
    ]
    assert set(runs[runs.method == REFERENCE].condition) == {"default", "stale", "head", "4kd"}


def test_we_lose_where_a_rival_is_better_by_more_than_one_percent():
    rows = [row("default", name, REFERENCE, 1.0) for name in ("skin", "uber")]
    rows += [row("default", "skin", OURS, 1.03), row("default", "skin", "bico", 1.019)]
    rows += [row("default", "uber", OURS, 1.009), row("default", "uber", "bico", 1.0)]

    said = losses(compared(rows))

    assert said.splitlines()[0] == "1 of 2 places (a set under a condition)."
    assert said.splitlines()[-1] == (
        "| default plan | skin | 1.030 | BICO 1.019; k-means, many passes 1.000 |"
    )


def test_the_limit_of_trust_for_a_set_is_chosen_on_the_others():
    """By its own rows skin would be called good; by those of uber it is."""
    rows = [row("default", name, REFERENCE, 1.0) for name in ("skin", "uber")]
    good = {"estimate": 1.0, "bound": 1.1, "is_good": True}
    rows += [row("default", "skin", OURS, 1.2, score=0.9, **good)]
    rows += [row("default", "uber", OURS, 1.0, score=0.8, **good)]
    runs = compared(rows)

    lines = trust(runs[runs.method == OURS]).splitlines()[2:]

    assert lines == [
        "| as it is: good | 2 | 50.0% | 1.200 |",
        "| as it is: not good | 0 | - | - |",
        "| leave one set out: good | 1 | 0.0% | 1.200 |",
        "| leave one set out: not good | 1 | 100.0% | 1.000 |",
    ]


@pytest.mark.slow
def test_a_second_call_runs_nothing(tmp_path, capsys):
    words = ["--datasets", "digits", "--conditions", "wide", "--only", "pilot,mini-batch"]
    words += ["--seeds", "1", "--results", str(tmp_path)]
    main(words)
    runs, page = tmp_path / "quality" / "runs.jsonl", tmp_path / "quality.md"
    first = runs.read_text(), page.read_text()
    n_runs = 2 + CONDITIONS["wide"].n_references
    assert capsys.readouterr().err.count("wide digits") == n_runs

    main(words)

    assert (runs.read_text(), page.read_text()) == first
    errors = {row["method"]: row["mse"] for row in Store(tmp_path / "quality").rows}
    assert 0.99 < errors["pilot"] / errors[REFERENCE] < 1.05
