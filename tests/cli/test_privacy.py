"""From private rows to published clusters, on the command line."""

from __future__ import annotations

import re

import pytest

import sketchshift as ss
from sketchshift.privacy import mechanism

PROMISE = "--epsilon 1 --delta 1e-8"
BALL = "-k 2 --center 0,0 --radius 50"

pytestmark = pytest.mark.usefixtures("seeded_noise")


@pytest.fixture
def released(folder, run):
    run(f"release people.sketch {PROMISE} -o people.private.sketch")
    return folder / "people.private.sketch"


def test_from_private_rows_to_clusters(folder, run):
    """Plan with noise, sketch, release, cluster: the ledger has all of it."""
    plan = "plan people.csv --private -k 2 --center 0,0 --radius 50 --epsilon 1 --delta 1e-8"
    assert run.facts(f"{plan} -o private.json")["origin"]["kind"] == "private"
    run("sketch people.csv --plan private.json -o raw.sketch")
    released = run.facts(f"release raw.sketch {PROMISE} -o out.sketch")
    found = run.facts("cluster out.sketch -k 2")

    assert [c["purpose"].split(":")[0] for c in released["ledger"]["charges"]].count("plan") == 3
    assert released["epsilon"] == pytest.approx(1.4405, abs=2e-3)
    assert len(found["clusters"]) == 2
    assert found["epsilon"] == released["epsilon"]


def test_a_release_says_what_it_promises(folder, run):
    text = run(f"release people.sketch {PROMISE} -o people.private.sketch").stdout

    assert "epsilon 1.0 at delta 1e-08; about " in text
    assert text.endswith("Next: sketchshift inspect people.private.sketch\n")


def test_inspect_shows_the_promise_and_nothing_of_the_rows(released, run):
    text = run("inspect people.private.sketch").stdout
    facts = run.facts("inspect people.private.sketch")

    assert "epsilon 1.0 at delta 1e-08" in text
    assert "add_remove, 1 row a person" in text
    assert "kind declared, radius 20" in text
    assert facts["kind"] == "private sketch"
    assert facts["statement"] in text
    assert not {"statistics", "left_out"} & set(facts)


def test_cluster_draws_a_private_sketch(released, run, folder):
    text = run("cluster people.private.sketch -k 2 -o c.csv --plot c.png").stdout

    assert "2 clusters in about 2," in text or "2 clusters in about 3," in text
    assert (folder / "c.png").stat().st_size > 10_000


def test_private_sketches_are_merged_with_their_ledgers(released, run, folder):
    run(f"release people.sketch {PROMISE} -o again.private.sketch")
    both = "merge people.private.sketch again.private.sketch -o both.sketch"

    assert run.facts(both)["epsilon"] == pytest.approx(1.4405, abs=1e-3)


def test_raw_and_private_sketches_are_not_merged(released, run):
    message = run.error("merge people.private.sketch people.sketch -o both.sketch")

    assert "give away what the private one hides" in message


def test_an_account_refuses_what_its_budget_does_not_cover(folder, run):
    line = f"release people.sketch {PROMISE} --account people.json"

    text = run(f"{line} --budget 1.2 -o one.sketch").stdout
    message = run.error(f"{line} -o two.sketch")

    assert "Spent epsilon 1 of 1.2 at delta 1e-08 of people.json." in text
    assert "the budget is too small" in message
    assert not (folder / "two.sketch").exists()


def test_plans_are_charged_to_an_account_until_its_budget_is_spent(folder, run):
    """Five plans of 0.9 with a budget of 1: the first is made, and the release is refused."""
    line = f"plan people.csv --private {BALL} --epsilon 0.9 --delta 1e-8"

    text = run(f"{line} --account people.json --budget 1 -o plan0.json").stdout
    refused = [run.error(f"{line} --account people.json -o plan{i}.json") for i in range(1, 5)]
    run("sketch people.csv --plan plan0.json -o raw.sketch")
    message = run.error(f"release raw.sketch {PROMISE} --account people.json -o out.sketch")

    assert "Spent epsilon 0.9 of 1 at delta 1e-08 of people.json." in text
    assert all("the budget is too small" in said for said in [*refused, message])
    assert [path.name for path in folder.glob("plan?.json")] == ["plan0.json"]
    assert ss.privacy.Account("people.json").spent == pytest.approx(0.9, abs=1e-3)


def test_a_plan_tells_what_is_spent(folder, run):
    line = f"plan people.csv --private {BALL} --epsilon 0.9 --delta 1e-8"

    spent = run.facts(f"{line} --account people.json --budget 1 -o private.json")["spent"]
    assert spent == pytest.approx(0.9, abs=1e-3)
    assert run.facts(f"{line} -o other.json")["spent"] is None


@pytest.mark.parametrize("content", ['{"charges": {}}', "[" * 100_000, "", "\0"])
def test_a_damaged_account_is_said(folder, run, content):
    (folder / "people.json").write_text(content)

    message = run.error(f"release people.sketch {PROMISE} --account people.json -o o.sketch")
    assert "is not an account" in message
    assert not (folder / "o.sketch").exists()


def test_a_refused_release_says_what_it_has_cost(folder, run):
    line = "release people.sketch --epsilon 0.005 --delta 1e-8 -o out.sketch"

    assert "epsilon 0.005 at delta 1e-08 by the charge" in run.error(line)
    assert "epsilon 0.005 at delta 1e-08 in " in run.error(f"{line} --account a.json --budget 1")
    assert ss.privacy.Account(folder / "a.json").spent == pytest.approx(0.005, abs=1e-4)


def test_a_release_that_cannot_be_made_opens_no_account(folder, run):
    (folder / "broken.sketch").write_bytes(b"SKETCHSH")
    run.error(f"release broken.sketch {PROMISE} --account a.json --budget 1 -o out.sketch")

    assert not (folder / "a.json").exists()


def test_a_spec_that_may_not_be_published_is_refused(folder, run):
    assert "may tell of private rows" in run.error(f"release week.sketch {PROMISE} -o out.sketch")


def test_few_rows_are_a_note(folder, run, monkeypatch):
    monkeypatch.setattr(mechanism, "_draw", lambda measurement, vector: vector.copy())

    result = run("release people.sketch --epsilon 0.05 --delta 1e-8 -o out.sketch --force")

    assert result.stderr.startswith("Note: about ")


def test_a_raw_sketch_is_not_subtracted_from_a_private_one(released, run):
    message = run.error("merge people.private.sketch --minus people.sketch -o rest.sketch")

    assert "cannot subtract a raw sketch and a private one" in message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("plan people.csv -k 2 --center 0,0 -o p.json", "without --private takes no --center"),
        ("plan people.csv --private --drift -o p.json", "needs --center, --radius, --epsilon"),
        ("plan --private -k 2 --center 0,0 -o p.json", "without DATA needs --spread"),
        ("plan --private -k 2 --center 0,0 --spread 2 --epsilon 1 -o p.json", "takes no --epsilon"),
        ("plan people.csv --private --public --scale none -k 2 -o p.json", "takes no --scale"),
        ("plan people.csv --private -k 2 --center 0,0 -o p.json", "needs --radius, --epsilon"),
        ("plan people.csv --private --public -k 2 --epsilon 1 -o p.json", "takes no --epsilon"),
        ("plan people.csv --private --public -k 2 --account a -o p.json", "takes no --account"),
        (
            f"plan people.csv --private {BALL} {PROMISE} --budget 3 -o p.json",
            "--budget belongs to an",
        ),
        (f"release people.sketch {PROMISE} --account a.json --budget 3 -o a.json", "also an input"),
        (
            f"plan people.csv --private {BALL} {PROMISE} --account a.json -o a.json",
            "also an input",
        ),
        (f"release people.sketch {PROMISE} -o o.sketch --budget 3", "--budget belongs to an"),
        ("release people.sketch --epsilon 1 -o o.sketch", "--delta"),
    ],
)
def test_misuse_is_said(folder, run, line, words):
    assert words in run.error(line, status=2)


def test_a_declared_plan_is_written(folder, run):
    run("plan --private -k 2 --center 0,0 --spread 2 --columns x,y -o p.json")

    spec = ss.SketchSpec.from_json((folder / "p.json").read_text())
    assert (spec.origin.kind, spec.columns, spec.scale) == ("declared", ("x", "y"), 2.0)


def test_two_private_sketches_are_compared(released, run):
    run(f"release people.sketch {PROMISE} -o again.sketch")

    found = run.facts("compare people.private.sketch again.sketch -k 2")
    text = run("compare people.private.sketch again.sketch -k 2 --plot drift.png").stdout

    assert found["bound"] is None
    assert 0.0 < found["threshold"] < 2.0
    assert [cluster["move"] for cluster in found["clusters"]] == [None, None]
    assert re.search(r"^about [\d,]+ rows and about [\d,]+ rows: distance", text, re.MULTILINE)


def test_a_raw_and_a_private_sketch_are_not_compared(released, run):
    message = run.error("compare people.sketch people.private.sketch")

    assert "a raw sketch and a private one" in message


def test_private_sketches_are_watched_with_what_they_promise_together(released, run, folder):
    for i in (2, 3):
        run(f"release people.sketch {PROMISE} -o people{i}.private.sketch")
    files = ["people.private.sketch", "people2.private.sketch", "people3.private.sketch"]
    line = f"compare {' '.join(files)} -k 2"

    facts, text = run.facts(line), run(f"{line} --plot drift.png").stdout

    both = sum(map(ss.privacy.load, files))
    assert facts["statement"] == both.statement
    assert f"Promise: {both.statement}." in text
    assert "3 slices by file, about " in text
    assert "about rows" in text
    assert [s["rows_std"] > 0 for s in facts["slices"]] == [True] * 3
    assert not any(s["drifted"] for s in facts["slices"])
    assert (folder / "drift.png").exists()


def test_raw_and_private_sketches_are_not_watched_together(released, run):
    message = run.error("compare people.sketch people.private.sketch day1.sketch")

    assert "a raw sketch and a private one" in message


@pytest.mark.parametrize("command", ["report {} -k 2 -o r.html"])
def test_pages_show_a_private_sketch_with_its_promise(released, run, command):
    line = command.format("people.private.sketch")
    facts, text = run.facts(line), run(line).stdout

    statement = ss.privacy.load(released).statement
    assert facts["statement"] == statement
    assert f"Promise: {statement}." in text
    assert not {"statistics", "left_out"} & set(facts)


def test_a_report_says_about_how_many_rows_there_are(released, run, folder):
    text = run("report people.private.sketch -k 2 -o r.html").stdout
    message = run.error("report people.private.sketch -k 5000 -o r.html")

    assert "2 clusters of about " in text
    assert "there are about " in message


def test_a_new_account_needs_a_budget_and_an_old_one_none(run, folder):
    line = "release people.sketch --epsilon 0.3 --delta 1e-8 -o out.sketch --account new.json"

    assert "Give its --budget" in run.error(line, status=2)
    run(f"{line} --budget 1")
    assert "Leave epsilon (--budget) out" in run.error(f"{line} --budget 2")
