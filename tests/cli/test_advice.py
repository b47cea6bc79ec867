"""What a command says beside its result: rows left out, notes, the choice of k, the next step."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.cli.output import Output
from sketchshift.features.plan import planned_clusters


def save(path, X, names="x,y"):
    np.savetxt(path, X, delimiter=",", header=names, comments="")


def step_of(result):
    """The command at the end of what is said."""
    return result.stdout.splitlines()[-1].removeprefix("Next: ")


def test_people_get_lines_and_the_next_step_and_programs_one_object(capsys):
    record = {"share": float("nan"), "name": "a\x1b"}
    for as_json in (False, True):
        out = Output(as_json)
        out.say("For people.")
        out.report(record, ["A line\x1b."], then=["inspect", "day 1.sketch"])

    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == ["For people.", "A line\\x1b.", "Next: sketchshift inspect 'day 1.sketch'"]
    assert json.loads(last) == {"share": None, "name": "a\x1b"}


def test_cluster_says_how_many_rows_it_left_out(folder, run):
    Path("gaps.csv").write_text(Path("points.csv").read_text() + "1,\n,2\n")
    run("sketch gaps.csv -k 2 --on-invalid skip -o kept.sketch")

    for line in ("gaps.csv --on-invalid skip", "kept.sketch"):
        words = "in 60 rows x 2 columns, 2 rows left out, decoded from"
        run.says(f"cluster {line} -k 2", words)


def test_steps_lead_from_the_clusters_to_a_page_and_to_labels(folder, run):
    page = step_of(run("cluster points.csv -k 2 --columns x,y"))
    labels = step_of(run("cluster points.csv -k 2 -o c.csv --plot c.png"))

    assert page == "sketchshift report points.csv -k 2 --columns x,y -o report.html"
    assert labels == "sketchshift assign points.csv --centroids c.csv -o labelled.csv"
    run(page)
    run(labels)


@pytest.mark.parametrize(("text", "k", "proposed"), [("", 1, 2), ("", 8, 8), ("few", 8, 3)])
def test_inspecting_proposes_as_many_clusters_as_the_sketch_can_serve(
    text, k, proposed, folder, run
):
    """And no more than there are rows; a sketch for one serves two, as m is at least 50."""
    if text:
        Path("points.csv").write_text("x,y\n1,2\n3,4\n5,7\n")
    run(f"sketch points.csv -k {k} -o s.sketch")

    step = step_of(run("inspect s.sketch"))

    assert step == f"sketchshift cluster s.sketch -k {proposed}"
    assert "inaccurate" not in run(step).stderr


@pytest.mark.parametrize(
    ("line", "ask"),
    [
        ("cluster s.sketch", ss.decode),
        ("report s.sketch -o r.html", lambda s, k: ss.decoders.decode_range(s, [3, k])),
    ],
)
def test_more_clusters_than_planned_for_are_noted_in_the_words_of_python(line, ask, folder, run):
    ss.sketch("points.csv", n_clusters=8, cells=False).save("s.sketch")
    note = (
        "this sketch is of the size for 8 clusters, and 10 may be inaccurate. Sketch the data "
        "again with n_clusters=10 (-k 10) and the usual size."
    )

    for k in (8, "auto"):
        assert run(f"{line} -k {k}").stderr == ""
    with pytest.warns(ss.errors.PlanWarning) as told:
        ask(ss.load("s.sketch"), 10)
    assert [str(each.message) for each in told] == [note]
    assert run(f"{line} -k 10").stderr == f"Note: {note}\n"


def test_a_spec_by_hand_is_not_said_to_be_planned(folder, run):
    X = np.random.default_rng(0).normal(size=(100, 3))

    assert planned_clusters(ss.load("week.sketch").spec) is None  # m = 40
    assert planned_clusters(ss.plan(X, 4, sketch_size=131)) is None
    assert planned_clusters(ss.plan(X, 4)) == 4
    assert run("cluster week.sketch -k 9").stderr == ""


def test_a_choice_at_the_edge_says_how_to_look_further(folder, run):
    turns = 2.0j * np.pi * np.repeat(np.arange(7) / 7, 100)
    places = 42.0 * np.exp(turns)[:, None].view(float)
    save("seven.csv", places + np.random.default_rng(0).normal(size=(700, 2)))
    for k in (7, 20):
        run(f"sketch seven.csv -k {k} -o {k}.sketch")

    edge = "More than 7 clusters were not looked at. To look further"
    for file in ("seven.csv", "20.sketch"):
        line = f"cluster {file} -k auto --max-clusters"
        run.says(f"{line} 7", f"{edge}:\n  sketchshift {line} 14\n")
    run.says("cluster 7.sketch -k auto", f"{edge}, sketch the data again with -k 14.")
    assert "not looked at" not in run.says("cluster 20.sketch -k auto", "Chose k = 7")


def test_rows_without_clusters_are_said_to_have_none_and_the_commands_can_be_pasted(folder, run):
    tails = np.random.default_rng(1).lognormal(size=(3_000, 2))
    save("tails.csv", tails, "the price,weight")

    text = run("cluster tails.csv -k auto --columns 'the price,weight' -o centroids.csv").stdout

    none = (
        r"no natural number of clusters up to 20: .* go on explaining more\. Here is k = (\d)\.\n"
    )
    shares = r"k = (\d+) explains \d+ % of the variance" + r", k = (\d+) explains \d+ %" * 2
    chosen, coarse, medium, fine = re.search(none + shares + r"\.\n", text).groups()
    assert chosen == medium
    assert text.startswith(f"{medium} clusters in 3,000 rows")
    for k in (coarse, fine):
        line = f"sketchshift cluster tails.csv --columns 'the price,weight' -k {k}"
        assert f"\n  {line}\n" in text
        assert run(line).stdout.startswith(f"{k} clusters in 3,000 rows x 2 columns")


def test_one_group_is_said_to_be_one(folder, run):
    save("one.csv", np.random.default_rng(1).normal(size=(3_000, 2)))

    words = "The rows are one group: up to 20 clusters would only cut it into pieces."
    text = run.says("cluster one.csv -k auto", words)

    line, k = re.search(r"\n  (sketchshift cluster one.csv -k (\d+))\n", text).groups()
    assert run(line).stdout.startswith(f"{k} clusters in ")


def test_few_distinct_rows_are_no_edge(folder, run):
    """There are no more clusters than distinct rows, and those were all looked at."""
    Path("three.csv").write_text("x,y\n" + "0,0\n3,3\n0,3\n" * 40)

    text = run.says("cluster three.csv -k auto", "Chose k = 3: the rows have 3 distinct values.")

    assert "not looked at" not in text


def test_a_rate_is_told_of_many_rows_only(folder, run, monkeypatch):
    line = "sketch points.csv --plan plan.json -o s.sketch"

    assert "rows/s" not in run(line).stdout
    assert run.facts(line)["rows_per_second"] > 0
    monkeypatch.setattr(sys.modules["sketchshift.cli.sketch"], "FEWEST_FOR_RATE", 60)
    run.says(line, " rows/s.")
