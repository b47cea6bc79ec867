"""``sketchshift compare`` over time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import sketchshift as ss


def test_facts_and_lines_tell_the_same(folder, run):
    facts = run.facts("compare sketches.parquet --over day -k 2")
    lines = run("compare sketches.parquet --over day -k 2").stdout.splitlines()

    found = ss.drift.watch(ss.SketchTable.from_parquet("sketches.parquet"), by="day", n_clusters=2)
    assert [s["key"] for s in facts["slices"]] == [f"2026-01-0{day}" for day in range(1, 9)]
    assert [s["rows"] for s in facts["slices"]] == [25] * 8
    assert facts["slices"][0]["before"] is None
    assert facts["slices"][3]["before"]["distance"] == found.slices[3].before.distance
    assert facts["slices"][3]["shares"] == found.slices[3].shares.tolist()
    assert lines[0] == "8 slices by day, 200 rows: no alarms."
    assert lines[1] == "An alarm is a change beyond chance that concerns at least 5 % of the rows."
    assert lines[4].split() == [
        *("day", "rows", "verdict", "change", "before", "threshold", "earlier", "threshold"),
        *("cluster", "0", "cluster", "1"),
    ]
    names = [cluster.name for cluster in found.decoding.profile.clusters]
    assert [line for line in lines if line.startswith("cluster ")] == [
        f"cluster {i}: {name}" for i, name in enumerate(names)
    ]
    assert len([line for line in lines if line.startswith("2026-01-")]) == 8
    assert lines[-1] == "Next: sketchshift compare sketches.parquet --over day --plot drift.png"


def test_slices_are_selected_before_they_are_added_up(folder, run):
    facts = run.facts("compare sketches.parquet --over day -k 1 --where \"shop = 'a'\"")

    assert sum(s["rows"] for s in facts["slices"]) == 67


def test_a_jump_is_an_alarm_and_can_be_a_failing_status(folder, run):
    X = np.random.default_rng(0).normal(size=(400, 2))
    X[300:] += 3.0
    ss.sketch_by(X, by=np.arange(400) // 100, n_clusters=2).to_parquet("jump.parquet")

    result = run("compare jump.parquet -k 2 --fail-on-drift --plot jump.svg", status=1)

    lines = result.stdout.splitlines()
    assert lines[0] == "4 slices by key, 400 rows: 1 alarm."
    assert lines[1].startswith("3: ")
    assert lines[1].endswith(" of rows, compared with the slice before.")
    assert "alarm" in next(line for line in lines[5:] if line.startswith("3 "))
    assert (folder / "jump.svg").exists()


def test_misuse_and_failures_are_one_sentence(folder, run):
    assert "only one of them is the time" in run.error("compare sketches.parquet")
    assert "cannot merge by 'week'" in run.error("compare sketches.parquet --over week")
    assert "is data. Take its sketch first" in run.error("compare 'part-*.parquet'", status=2)
    assert "'day1.sketch' is one sketch, and not a table" in run.error("compare day1.sketch")
    error = run.error("compare sketches.parquet day1.sketch day2.sketch", status=2)
    assert "'sketches.parquet' is one of 3 files" in error
    error = run.error("compare day1.sketch day2.sketch --over day", status=2)
    assert "--over and --where are for tables" in error


def test_sketches_in_a_row_are_watched_in_the_order_given(folder, run):
    facts = run.facts("compare day2.sketch day1.sketch all.sketch -k 2")
    line = run("compare day2.sketch day1.sketch all.sketch -k 2").stdout.splitlines()[-1]

    a, b = (ss.load(f"day{i}.sketch") for i in (2, 1))
    assert facts["by"] == "file"
    assert [s["key"] for s in facts["slices"]] == ["day2.sketch", "day1.sketch", "all.sketch"]
    assert facts["slices"][1]["before"]["distance"] == np.linalg.norm(a.z - b.z)
    assert line == "Next: sketchshift compare day2.sketch day1.sketch all.sketch --plot drift.png"


def write_restless(path: str, n: int = 12) -> None:
    """Days whose clusters vary by themselves; on the last one there is a cluster of its own."""
    rng = np.random.default_rng(0)
    X = []
    for day in range(n):
        share = rng.uniform(0.4, 0.6)
        part = rng.normal(size=(1_500, 2)) + 9.0 * (rng.random(1_500) < share)[:, None]
        part[: 900 * (day == n - 1)] += [30.0, 0.0]
        X.append(part)
    days = np.datetime64("2026-01-01") + np.repeat(np.arange(n), 1_500)
    columns = {"price": np.vstack(X)[:, 0], "weight": np.vstack(X)[:, 1], "day": days}
    ss.sketch_by(pa.table(columns), by="day", n_clusters=4).to_parquet(path)


def test_a_reference_makes_of_slices_that_vary_one_alarm_that_counts(folder, run):
    write_restless("restless.parquet")

    before = run.facts("compare restless.parquet -k 3")
    facts = run.facts("compare restless.parquet -k 3 --reference \"day < '2026-01-10'\"")
    text = run("compare restless.parquet -k 3 --reference \"day < '2026-01-10'\"").stdout

    assert sum(each["drifted"] for each in before["slices"]) >= 6
    verdicts = [each["verdict"] for each in facts["slices"]]
    assert verdicts == ["reference"] * 9 + ["same"] * 2 + ["alarm"]
    assert facts["reference"] == "day < '2026-01-10'"
    assert facts["slices"][-1]["before"] is None
    assert facts["slices"][-1]["usual"]["drifted"] is True
    assert f"\n2026-01-12: {facts['slices'][-1]['sentence']}\n" in text
    assert text.count("reference") >= 9


def test_where_most_slices_alarm_a_reference_is_proposed_that_works(folder, run):
    write_restless("restless.parquet")

    lines = run("compare restless.parquet -k 3").stdout.splitlines()

    assert lines[-2].startswith("Most slices differ from the one before")
    assert lines[-1].startswith(
        "Next: sketchshift compare restless.parquet --over day --reference "
    )
    pasted = run(lines[-1].removeprefix("Next: ")).stdout
    assert len([line for line in pasted.splitlines() if line.split()[2:3] == ["reference"]]) == 3


def test_small_changes_are_listed_and_are_no_failure(folder, run):
    """A change of 3 % of the rows is beyond chance, and below 5 %."""
    rng = np.random.default_rng(0)
    shares = np.repeat([0.5, 0.5, 0.53, 0.5], 20_000)
    X = rng.normal(size=(80_000, 2)) + 9.0 * (rng.random(80_000) < shares)[:, None]
    ss.sketch_by(X, by=np.arange(80_000) // 20_000, n_clusters=2).to_parquet("calm.parquet")

    text = run("compare calm.parquet -k 2 --fail-on-drift").stdout

    assert text.splitlines()[0].startswith("4 slices by key, 80,000 rows: no alarms, ")
    assert "\nSmall changes, not alarms: 2" in text
    assert "at least 5 % of the rows." in text


def test_a_reference_needs_slices(folder, run):
    write_restless("restless.parquet")

    error = run.error("compare restless.parquet --reference \"day < '2026-01-02'\"")
    assert "a reference needs at least 3 slices with rows" in error
