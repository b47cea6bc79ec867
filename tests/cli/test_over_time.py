"""``sketchshift compare`` over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss


def test_facts_and_lines_tell_the_same_as_python(folder, run):
    line = "compare sketches.parquet --over day -k 2"
    slices, lines = run.facts(line)["slices"], run(line).stdout.splitlines()

    found = ss.drift.watch(ss.load("sketches.parquet"), by="day", n_clusters=2)
    assert [(s["key"], s["rows"]) for s in slices] == [(f"2026-01-0{i}", 25) for i in range(1, 9)]
    assert slices[3]["before"]["distance"] == found.slices[3].before.distance
    assert lines[0] == "8 slices by day, 200 rows: no alarms."
    head = "day rows verdict change before threshold earlier threshold cluster 0 cluster 1"
    assert lines[4].split() == head.split()
    assert [line.split()[0] for line in lines[5:13]] == [s["key"] for s in slices]
    names = [cluster.name for cluster in found.decoding.profile.clusters]
    assert lines[14:16] == [f"cluster {i}: {name}" for i, name in enumerate(names)]
    assert lines[-1] == "Next: sketchshift compare sketches.parquet --over day --plot drift.png"


def test_slices_are_selected_before_they_are_added_up(folder, run):
    facts = run.facts("compare sketches.parquet --over day -k 1 --where \"shop = 'a'\"")

    assert sum(s["rows"] for s in facts["slices"]) == 67


def test_a_jump_is_an_alarm_and_can_be_a_failing_status(folder, run):
    X = np.random.default_rng(0).normal(size=(400, 2))
    X[300:] += 3.0
    ss.sketch_by(X, by=np.arange(400) // 100, n_clusters=2).save("jump.parquet")

    result = run("compare jump.parquet -k 2 --fail-on-drift --plot jump.svg", status=1)

    first, second, *lines = result.stdout.splitlines()
    assert first == "4 slices by key, 400 rows: 1 alarm."
    assert second.startswith("3: ")
    assert second.endswith(" of rows, compared with the slice before.")
    assert [line.split()[2] for line in lines if line.startswith("3  ")] == ["alarm"]
    assert Path("jump.svg").exists()


def test_sketches_in_a_row_are_watched_in_the_order_given(folder, run):
    files = ["day2.sketch", "day1.sketch", "all.sketch"]
    line = f"compare {' '.join(files)} -k 2"
    facts = run.facts(line)

    a, b = map(ss.load, files[:2])
    assert facts["by"] == "file"
    assert [s["key"] for s in facts["slices"]] == files
    assert facts["slices"][1]["before"]["distance"] == np.linalg.norm(a.z - b.z)
    run.says(line, f"\nNext: sketchshift {line.replace('-k 2', '--plot drift.png')}\n")


@pytest.fixture
def restless(folder):
    """Days whose clusters vary by themselves; on the last one there is a cluster of its own."""
    rng = np.random.default_rng(0)
    shares = np.repeat(rng.uniform(0.4, 0.6, 12), 1_500)
    X = rng.normal(size=(18_000, 2)) + 9.0 * (rng.random(18_000) < shares)[:, None]
    X[16_500:17_400] += [30.0, 0.0]
    days = np.datetime64("2026-01-01") + np.repeat(np.arange(12), 1_500)
    rows = pa.table({"price": X[:, 0], "weight": X[:, 1], "day": days})
    ss.sketch_by(rows, by="day", n_clusters=4).save("restless.parquet")


def test_a_reference_makes_of_slices_that_vary_one_alarm_that_counts(restless, run):
    line = "compare restless.parquet -k 3 --reference \"day < '2026-01-10'\""
    facts = run.facts(line)

    verdicts = [each["verdict"] for each in facts["slices"]]
    assert verdicts == ["reference"] * 9 + ["same"] * 2 + ["alarm"]
    assert facts["reference"] == "day < '2026-01-10'"
    last = facts["slices"][-1]
    assert (last["before"], last["usual"]["drifted"]) == (None, True)
    run.says(line, f"\n2026-01-12: {last['sentence']}\n")


def test_where_most_slices_alarm_a_reference_is_proposed_that_works(restless, run):
    *_, said, step = run("compare restless.parquet -k 3").stdout.splitlines()

    assert said.startswith("Most slices differ from the one before")
    assert step.startswith("Next: sketchshift compare restless.parquet --over day --reference ")
    assert run(step.removeprefix("Next: ")).stdout.count("  reference  ") == 3


def test_small_changes_are_listed_and_are_no_failure(folder, run):
    """A change of 3 % of the rows is beyond chance, and below 5 %."""
    rng = np.random.default_rng(0)
    shares = np.repeat([0.5, 0.5, 0.53, 0.5], 20_000)
    X = rng.normal(size=(80_000, 2)) + 9.0 * (rng.random(80_000) < shares)[:, None]
    ss.sketch_by(X, by=np.arange(80_000) // 20_000, n_clusters=2).save("calm.parquet")

    words = "4 slices by key, 80,000 rows: no alarms, ", "\nSmall changes, not alarms: 2"
    run.says("compare calm.parquet -k 2 --fail-on-drift", *words)
