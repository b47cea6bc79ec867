"""From private rows to published clusters, on the command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sketchshift as ss
from sketchshift.privacy import mechanism

PROMISE = "--epsilon 1 --delta 1e-8"
PLAN = "plan people.csv --private -k 2 --center 0,0 --radius 50 --delta 1e-8"

pytestmark = pytest.mark.usefixtures("seeded_noise")


@pytest.fixture
def released(folder, run):
    """What was said of people.private.sketch."""
    return run(f"release people.sketch {PROMISE} -o people.private.sketch").stdout


def test_from_private_rows_to_clusters(folder, run):
    """Plan with noise, sketch, release, cluster: the ledger has all of it."""
    assert run.facts(f"{PLAN} --epsilon 1 -o private.json")["origin"]["kind"] == "private"
    run("sketch people.csv --plan private.json -o raw.sketch")
    released = run.facts(f"release raw.sketch {PROMISE} -o out.sketch")
    found = run.facts("cluster out.sketch -k 2")

    assert [c["purpose"].split(":")[0] for c in released["ledger"]["charges"]].count("plan") == 3
    assert released["epsilon"] == pytest.approx(1.4405, abs=2e-3)
    assert len(found["clusters"]) == 2
    assert found["epsilon"] == released["epsilon"]


def test_releasing_and_inspecting_say_the_promise_and_nothing_of_the_rows(released, run):
    facts = run.facts("inspect people.private.sketch")

    assert "epsilon 1.0 at delta 1e-08; about " in released
    assert released.endswith("Next: sketchshift inspect people.private.sketch\n")
    words = "epsilon 1.0 at delta 1e-08", "add_remove, 1 row a person", "kind declared, radius 20"
    run.says("inspect people.private.sketch", *words, facts["statement"])
    assert facts["kind"] == "private sketch"
    assert not {"statistics", "left_out"} & set(facts)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("merge people.private.sketch people.sketch -o a.sketch", "give away what the private one"),
        (
            "merge people.private.sketch --minus people.sketch -o a.sketch",
            "cannot subtract a raw sketch and a private one",
        ),
        ("compare people.sketch people.private.sketch", "a raw sketch and a private one"),
        ("report people.private.sketch -k 5000 -o r.html", "there are about "),
    ],
)
def test_what_cannot_be_done_with_private_sketches_is_refused(line, words, released, run):
    run.error(line, words)


def test_plans_are_charged_to_an_account_until_its_budget_is_spent(folder, run):
    """Plans of 0.9 with a budget of 1: the first is made, and the release is refused."""
    line = f"{PLAN} --epsilon 0.9 --account people.json"
    release = f"release raw.sketch {PROMISE} --account people.json -o out.sketch"

    spent = "Spent epsilon 0.9 of 1 at delta 1e-08 of people.json."
    run.says(f"{line} --budget 1 -o plan.json", spent)
    run.error(f"{line} -o other.json", "the budget is too small")
    run("sketch people.csv --plan plan.json -o raw.sketch")
    run.error(release, "the budget is too small")

    assert not Path("other.json").exists()
    assert not Path("out.sketch").exists()
    assert ss.privacy.Account("people.json").spent == pytest.approx(0.9, abs=1e-3)
    run.error(f"{release} --budget 2", "Leave epsilon (--budget) out")
    facts = run.facts(f"{PLAN} --epsilon 0.9 --account new.json --budget 1 -o new.plan.json")
    assert facts["spent"] == pytest.approx(0.9, abs=1e-3)
    assert run.facts(f"{PLAN} --epsilon 0.9 -o other.json")["spent"] is None


def test_a_damaged_account_is_said_and_a_damaged_sketch_opens_none(folder, run):
    line = f"release people.sketch {PROMISE} --account people.json -o o.sketch"
    for content in ('{"charges": {}}', "[" * 100_000, "", "\0"):
        Path("people.json").write_text(content)
        run.error(line, "is not an account")
    assert not Path("o.sketch").exists()
    Path("people.sketch").write_bytes(b"SKETCHSH")
    run.error(line.replace("people.json", "new.json --budget 1"))
    assert not Path("new.json").exists()


def test_a_refused_release_says_what_it_has_cost(folder, run):
    line = "release people.sketch --epsilon 0.005 --delta 1e-8 -o out.sketch"

    run.error(line, "epsilon 0.005 at delta 1e-08 by the charge")
    run.error(f"{line} --account a.json --budget 1", "epsilon 0.005 at delta 1e-08 in ")
    assert ss.privacy.Account("a.json").spent == pytest.approx(0.005, abs=1e-4)


def test_few_rows_are_a_note(folder, run, monkeypatch):
    monkeypatch.setattr(mechanism, "_draw", lambda measurement, vector: vector.copy())

    result = run("release people.sketch --epsilon 0.05 --delta 1e-8 -o out.sketch --force")

    assert result.stderr.startswith("Note: about ")


def test_two_private_sketches_are_merged_and_compared(released, run):
    run(f"release people.sketch {PROMISE} -o again.sketch")
    both = "people.private.sketch again.sketch"

    merged = run.facts(f"merge {both} -o both.sketch")
    found = run.facts(f"compare {both} -k 2")

    assert merged["epsilon"] == pytest.approx(1.4405, abs=1e-3)  # of both ledgers
    assert found["bound"] is None
    assert 0.0 < found["threshold"] < 2.0
    assert [cluster["move"] for cluster in found["clusters"]] == [None, None]
    text = run(f"compare {both} -k 2").stdout
    assert re.search(r"^about [\d,]+ rows and about [\d,]+ rows: distance", text, re.MULTILINE)


def test_private_sketches_are_watched_with_what_they_promise_together(released, run):
    files = ["people.private.sketch", "b.sketch", "c.sketch"]
    for name in files[1:]:
        run(f"release people.sketch {PROMISE} -o {name}")
    line = f"compare {' '.join(files)} -k 2 --plot drift.png"

    together = sum(map(ss.privacy.load, files)).statement
    run.says(line, f"Promise: {together}.", "3 slices by file, about ")
    facts = run.facts(line)
    assert facts["statement"] == together
    assert [(s["rows_std"] > 0, s["drifted"]) for s in facts["slices"]] == [(True, False)] * 3
    assert Path("drift.png").exists()


def test_clusters_and_pages_of_a_private_sketch_come_with_its_promise(released, run):
    line = "report people.private.sketch -k 2 -o r.html"
    statement = ss.privacy.load("people.private.sketch").statement

    run.says(line, f"Promise: {statement}.", "2 clusters of about ")
    run.says("cluster people.private.sketch -k 2 --plot c.png", "2 clusters in about ")
    facts = run.facts(line)
    assert facts["statement"] == statement
    assert not {"statistics", "left_out"} & set(facts)
    assert Path("c.png").read_bytes().startswith(b"\x89PNG")
