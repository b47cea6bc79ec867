"""Plans without a bandwidth on the command line: what Python does, byte for byte."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sketchshift as ss


def plan_in(path) -> ss.SketchSpec:
    return ss.SketchSpec.from_json(path.read_text(encoding="utf-8"))


def test_a_plan_is_that_of_python(folder, run):
    facts = run.facts("plan points.csv -k 3 -o p.json")

    spec = ss.plan("points.csv", 3)
    assert plan_in(folder / "p.json") == spec
    assert facts["fingerprint"] == spec.fingerprint
    assert facts["sketch_size"] == spec.sketch_size < 60  # of 10 k d; cells take the rest
    assert facts["cells"]["rows_seen"] == spec.cells.n_rows == 60
    assert facts["cells"]["n_cells"] == spec.cells.n_cells
    assert facts["cells"]["share_of_numbers"] == pytest.approx(1 - spec.sketch_size / 60, abs=0.02)


def test_a_plan_says_what_it_saw_and_how_it_shares_the_numbers(folder, run):
    text = run("plan events.parquet -k 3 -o p.json --columns x,y").stdout
    spec = plan_in(folder / "p.json")

    J, m = spec.cells.n_cells, spec.sketch_size
    share = round(100 * 5 * J / (5 * J + 2 * m))
    words = f"planned on 200 rows: {J} cells ({share} % of the numbers), {m} waves"
    assert f"It was {words}." in text
    assert words in run("inspect p.json").stdout


def test_inspecting_tells_of_rows_far_out_and_of_partial_weights(folder, run):
    X = np.random.default_rng(0).normal(size=(500, 2))
    rows = np.vstack([X, [[300.0, 0.0], [0.0, -1e12]]])
    weights = np.append(np.full(501, 1.0), 0.5)
    sketch = ss.sketch(rows, ss.plan(X, 3), sample_weight=weights)
    sketch.save("far.sketch")

    text, facts = run("inspect far.sketch").stdout, run.facts("inspect far.sketch")

    spreads = 1e12 / sketch.spec.scale
    assert facts["where"] == {
        "in_cells": 500.0,
        "outer": 1.0,
        "far": 0.5,
        "farthest": pytest.approx(spreads, rel=1e-3),
        "partial": 1,
    }
    assert "1.5, of which waves miss 0.5; up to " in text
    assert "partial weights" in text
    assert run.facts("inspect week.sketch")["where"] is None


def test_flags_of_a_plan_reach_it(folder, run):
    flags = "--seed 5 --scale standard --columns y,x --metric cosine"
    run(f"plan part-1.parquet -k 3 -o p.json {flags}")

    options = {"seed": 5, "standardize": True, "columns": ["y", "x"], "metric": "cosine"}
    assert plan_in(folder / "p.json") == ss.plan("part-1.parquet", 3, **options)


def test_a_glob_is_planned_on_as_a_whole(folder, run):
    run("plan 'part-*.parquet' -k 3 -o p.json --columns x,y")

    parts = ["part-1.parquet", "part-2.parquet"]
    assert plan_in(folder / "p.json") == ss.plan(parts, 3, columns=["x", "y"])


def test_a_sketch_planned_on_the_way_is_that_of_python(folder, run):
    run("sketch part-1.parquet part-2.parquet -o b.sketch -k 3 --weights w")

    parts = ["part-1.parquet", "part-2.parquet"]
    assert ss.load("b.sketch") == ss.sketch(parts, n_clusters=3, sample_weight="w")


@pytest.mark.parametrize("line", ["plan gaps.csv -o p.json", "sketch gaps.csv -o g.sketch"])
def test_invalid_rows_can_be_left_out_of_a_plan(line, folder, run):
    (folder / "gaps.csv").write_text("x,y\n1,2\n,3\n4,5\n7,1\n")

    facts = run.facts(f"{line} -k 2 --on-invalid skip")

    assert facts["center"] == pytest.approx([4.0, 8 / 3], abs=1e-5)


def test_a_hint_is_one_sentence_on_stderr(folder, run):
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1, 5000]
    np.savetxt("units.csv", X, delimiter=",", header="age,pay", comments="")

    result = run("plan units.csv -k 2 -o p.json --json --scale none")

    assert json.loads(result.stdout)["n_features"] == 2
    assert result.stderr.startswith("Note: column 'pay' varies by ")
    assert "--scale standard" in result.stderr
    assert result.stderr.count("\n") == 1
    assert run("plan units.csv -k 2 -o p.json").stderr == ""


def test_warnings_of_others_are_left_to_python(folder, run, monkeypatch):
    """Here they are errors, as everywhere in these tests."""
    import warnings

    from sketchshift.cli import main

    def noisy(**_):
        warnings.warn("old", DeprecationWarning, stacklevel=1)

    monkeypatch.setattr(main.get_command(None, "merge"), "callback", noisy)

    assert isinstance(run("merge day1.sketch -o a.sketch", 1).exception, DeprecationWarning)
