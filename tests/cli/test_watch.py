"""``sketchshift watch``."""

from __future__ import annotations

import numpy as np

import sketchshift as ss


def test_facts_and_lines_tell_the_same(folder, run):
    facts = run.facts("watch sketches.parquet --by day -k 2")
    lines = run("watch sketches.parquet --by day -k 2").stdout.splitlines()

    found = ss.watch(ss.SketchTable.from_parquet("sketches.parquet"), by="day", n_clusters=2)
    assert [s["key"] for s in facts["slices"]] == [f"2026-01-0{day}" for day in range(1, 9)]
    assert [s["rows"] for s in facts["slices"]] == [25] * 8
    assert facts["slices"][0]["before"] is None
    assert facts["slices"][3]["before"]["distance"] == found.moments[3].before.distance
    assert facts["slices"][3]["shares"] == found.moments[3].shares.tolist()
    assert lines[0] == "8 slices by day, 200 rows: no alarms."
    assert lines[3].split() == [
        *("day", "rows", "before", "threshold", "earlier", "threshold", "alarm"),
        *("cluster", "0", "cluster", "1"),
    ]
    assert len([line for line in lines if line.startswith("2026-01-")]) == 8
    assert lines[-1] == "Next: sketchshift watch sketches.parquet --by day --plot drift.png"


def test_slices_are_selected_before_they_are_added_up(folder, run):
    facts = run.facts("watch sketches.parquet --by day -k 1 --where \"shop = 'a'\"")

    assert sum(s["rows"] for s in facts["slices"]) == 67


def test_a_jump_is_an_alarm_and_can_be_a_failing_status(folder, run):
    X = np.random.default_rng(0).normal(size=(400, 2))
    X[300:] += 3.0
    ss.sketch_by(X, by=np.arange(400) // 100, n_clusters=2).to_parquet("jump.parquet")

    result = run("watch jump.parquet -k 2 --fail-on-drift --plot jump.svg", status=1)

    assert result.stdout.startswith("4 slices by key, 400 rows: 1 alarm.")
    assert "drift" in result.stdout.splitlines()[7]
    assert (folder / "jump.svg").exists()


def test_misuse_and_failures_are_one_sentence(folder, run):
    assert "only one of them is the time" in run.error("watch sketches.parquet")
    assert "cannot merge by 'week'" in run.error("watch sketches.parquet --by week")
    assert "give one table" in run.error("watch 'part-*.parquet'", status=2)
    assert "'day1.sketch' is not a table of sketches" in run.error("watch day1.sketch")
