"""What a command says beside its result: rows left out, notes, the choice of k, the next step."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.cli.output import Output
from sketchshift.features.plan import planned_clusters


def save_groups(path: str, k: int, seed: int = 0) -> None:
    """A CSV of k groups of 100 rows, far from each other, on a circle."""
    rng = np.random.default_rng(seed)
    turns = 2.0 * np.pi * np.arange(k) / k
    X = rng.normal(size=(100 * k, 2)) + np.repeat(
        6.0 * k * np.column_stack([np.cos(turns), np.sin(turns)]), 100, axis=0
    )
    np.savetxt(path, X, delimiter=",", header="x,y", comments="")


def last_line(result) -> str:
    return result.stdout.splitlines()[-1]


def test_people_get_lines_and_the_next_step_and_programs_one_object(capsys):
    record = {"share": float("nan"), "name": "a\x1b"}
    for as_json in (False, True):
        out = Output(as_json)
        out.say("For people.")
        out.report(record, ["A line\x1b."], then=["inspect", "day 1.sketch"])

    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["For people.", "A line\\x1b.", "Next: sketchshift inspect 'day 1.sketch'"]
    assert json.loads(lines[3]) == {"share": None, "name": "a\x1b"}
    assert len(lines) == 4


def test_cluster_says_how_many_rows_it_left_out(folder, run):
    rows = (folder / "points.csv").read_text() + "1,\n,2\n"
    (folder / "gaps.csv").write_text(rows)

    skipped = run("cluster gaps.csv -k 2 --on-invalid skip")
    whole = run("cluster points.csv -k 2")
    run("sketch gaps.csv -k 2 --on-invalid skip -o kept.sketch")
    again = run("cluster kept.sketch -k 2")

    assert "in 60 rows x 2 columns, 2 rows left out, decoded from" in skipped.stdout
    assert "in 60 rows x 2 columns, 2 rows left out, decoded from" in again.stdout
    assert "left out" not in whole.stdout


def test_steps_lead_from_the_clusters_to_a_page_and_to_labels(folder, run):
    page = last_line(run("cluster points.csv -k 2 --columns x,y"))
    labels = last_line(run("cluster points.csv -k 2 -o c.csv --plot c.png"))

    assert page == "Next: sketchshift report points.csv -k 2 --columns x,y -o report.html"
    assert labels == "Next: sketchshift assign points.csv --centroids c.csv -o labelled.csv"
    run(page.removeprefix("Next: "))
    run(labels.removeprefix("Next: "))


@pytest.mark.parametrize("k", [1, 3, 8])
def test_inspecting_proposes_as_many_clusters_as_the_sketch_can_serve(k, folder, run):
    run(f"sketch points.csv -k {k} -o s.sketch")

    step = last_line(run("inspect s.sketch"))

    assert step == f"Next: sketchshift cluster s.sketch -k {max(k, 2)}"  # m is at least 50
    assert "inaccurate" not in run(step.removeprefix("Next: ")).stderr


def test_inspecting_proposes_no_more_clusters_than_rows(folder, run):
    (folder / "few.csv").write_text("x,y\n1,2\n3,4\n5,7\n")
    run("sketch few.csv -k 8 -o s.sketch")

    assert last_line(run("inspect s.sketch")) == "Next: sketchshift cluster s.sketch -k 3"


@pytest.mark.parametrize("line", ["cluster s.sketch", "report s.sketch -o r.html"])
def test_more_clusters_than_planned_for_are_noted(line, folder, run):
    ss.sketch("points.csv", n_clusters=8, cells=False).save("s.sketch")

    assert run(f"{line} -k 8").stderr == ""
    assert run(f"{line} -k auto").stderr == ""
    assert run(f"{line} -k 10").stderr == (
        "Note: this sketch is of the size for 8 clusters, and 10 may be inaccurate. Sketch the "
        "data again with n_clusters=10 (-k 10) and the usual size.\n"
    )


@pytest.mark.parametrize("ask", [ss.decode, lambda s, k: ss.decoders.decode_range(s, [3, k])])
def test_python_warns_of_more_clusters_in_the_same_words(ask, folder, run):
    ss.sketch("points.csv", n_clusters=8, cells=False).save("s.sketch")

    with pytest.warns(ss.errors.PlanWarning) as told:
        ask(ss.load("s.sketch"), 10)

    assert run("cluster s.sketch -k 10").stderr == f"Note: {told[0].message}\n"
    assert len(told) == 1


def test_a_spec_by_hand_is_not_said_to_be_planned(folder, run):
    by_hand = ss.SketchSpec(n_features=2, sketch_size=40, bandwidth=0.3)
    X = np.random.default_rng(0).normal(size=(100, 3))

    assert planned_clusters(by_hand) is None
    assert planned_clusters(ss.plan(X, 4, sketch_size=131)) is None
    assert planned_clusters(ss.plan(X, 4)) == 4
    assert run("cluster week.sketch -k 9").stderr == ""  # m = 40, by hand


def test_the_reason_of_the_choice_is_said(folder, run):
    save_groups("three.csv", 3)

    text = run("cluster three.csv -k auto --max-clusters 8").stdout

    assert "Chose k = 3 of 1 to 8: fewer clusters would mix groups, more would cut" in text
    assert "not looked at" not in text


def test_a_choice_at_the_edge_says_how_to_look_further(folder, run):
    save_groups("seven.csv", 7)

    data = run("cluster seven.csv -k auto --max-clusters 7").stdout
    run("sketch seven.csv -k 7 -o s.sketch")
    all_there_is = run("cluster s.sketch -k auto").stdout
    run("sketch seven.csv -k 20 -o large.sketch")
    less_than_there_is = run("cluster large.sketch -k auto --max-clusters 7").stdout

    edge = "More than 7 clusters were not looked at. To look further"
    assert f"{edge}:\n  sketchshift cluster seven.csv -k auto --max-clusters 14\n" in data
    assert f"{edge}, sketch the data again with -k 14." in all_there_is
    assert f"{edge}:\n  sketchshift cluster large.sketch -k auto --max-clusters 14\n" in (
        less_than_there_is
    )
    assert "not looked at" not in run("cluster large.sketch -k auto").stdout


def test_rows_without_clusters_are_said_to_have_none_and_the_commands_can_be_pasted(folder, run):
    rows = np.random.default_rng(1).lognormal(size=(3_000, 2))
    np.savetxt("tails.csv", rows, delimiter=",", header="the price,weight", comments="")

    text = run("cluster tails.csv -k auto --columns 'the price,weight' -o centroids.csv").stdout

    none = (
        r"no natural number of clusters up to 20: .* go on explaining more\. Here is k = (\d)\.\n"
    )
    shares = (
        r"k = (\d+) explains \d+ % of the variance" + 2 * r", k = (\d+) explains \d+ %" + r"\.\n"
    )
    chosen, coarse, medium, fine = re.search(none + shares, text).groups()
    assert chosen == medium
    assert text.startswith(f"{medium} clusters in 3,000 rows")
    for k in (coarse, fine):
        line = f"sketchshift cluster tails.csv --columns 'the price,weight' -k {k}"
        assert f"\n  {line}\n" in text
        assert run(line).stdout.startswith(f"{k} clusters in 3,000 rows x 2 columns")


def test_one_group_is_said_to_be_one(folder, run):
    rows = np.random.default_rng(1).normal(size=(3_000, 2))
    np.savetxt("one.csv", rows, delimiter=",", header="x,y", comments="")

    text = run("cluster one.csv -k auto").stdout

    assert "The rows are one group: up to 20 clusters would only cut it into pieces." in text
    pasted = re.search(r"\n  (sketchshift cluster one.csv -k (\d+))\n", text)
    assert run(pasted[1]).stdout.startswith(f"{pasted[2]} clusters in ")


def test_few_distinct_rows_are_no_edge(folder, run):
    """There are no more clusters than distinct rows, and those were all looked at."""
    (folder / "three.csv").write_text("x,y\n" + "0,0\n3,3\n0,3\n" * 40)

    text = run("cluster three.csv -k auto").stdout

    assert "Chose k = 3: the rows have 3 distinct values." in text
    assert "not looked at" not in text


def test_a_rate_is_told_of_many_rows_only(folder, run, monkeypatch):
    line = "sketch points.csv --plan plan.json -o s.sketch"

    assert "rows/s" not in run(line).stdout
    assert run.facts(line)["rows_per_second"] > 0
    monkeypatch.setattr(sys.modules["sketchshift.cli.sketch"], "FEWEST_FOR_RATE", 60)
    assert " rows/s." in run(line).stdout
