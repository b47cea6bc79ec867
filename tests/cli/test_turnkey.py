"""Plans without a bandwidth on the command line: what Python does, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss


def plan_in(name):
    return ss.SketchSpec.from_json(Path(name).read_text(encoding="utf-8"))


def test_a_plan_is_that_of_python_and_says_how_it_shares_the_numbers(folder, run):
    line = "plan events.parquet -k 3 -o p.json --columns x,y"
    spec = ss.plan("events.parquet", 3, columns=["x", "y"])
    J, m = spec.cells.n_cells, spec.sketch_size
    share = 5 * J / (5 * J + 2 * m)

    words = f"planned on 200 rows: {J} cells ({round(100 * share)} % of the numbers), {m} waves"
    run.says(line, f"It was {words}.")
    run.says("inspect p.json", words)
    assert plan_in("p.json") == spec
    told = run.facts(line)["cells"]["share_of_numbers"]
    assert told == pytest.approx(share, abs=0.02)


def test_inspecting_tells_of_rows_far_out_and_of_partial_weights(folder, run):
    spec = ss.load("points.sketch").spec
    rows = [[0.0, 0.0], [300.0, 0.0], [0.0, -1e12]]
    ss.sketch(rows, spec, sample_weight=[1.0, 1.0, 0.5]).save("far.sketch")

    run.says("inspect far.sketch", "1.5, of which waves miss 0.5; up to ", "partial weights")
    where = run.facts("inspect far.sketch")["where"]
    assert where.pop("farthest") == pytest.approx(1e12 / spec.rows.scale, rel=1e-3)
    assert where == {"in_cells": 1.0, "outer": 1.0, "far": 0.5, "partial": 1}
    assert run.facts("inspect week.sketch")["where"] is None


def test_flags_of_a_plan_reach_it(folder, run):
    flags = "--seed 5 --scale standard --columns y,x --metric cosine"
    run(f"plan 'part-*.parquet' -k 3 -o p.json {flags}")
    run("sketch part-1.parquet part-2.parquet -o b.sketch -k 3 --weights w")

    parts = ["part-1.parquet", "part-2.parquet"]
    options = {"seed": 5, "standardize": True, "columns": ["y", "x"], "metric": "cosine"}
    assert plan_in("p.json") == ss.plan(parts, 3, **options)
    assert ss.load("b.sketch") == ss.sketch(parts, n_clusters=3, sample_weight="w")


@pytest.mark.parametrize("line", ["plan gaps.csv -o p.json", "sketch gaps.csv -o g.sketch"])
def test_invalid_rows_can_be_left_out_of_a_plan(line, folder, run):
    Path("gaps.csv").write_text("x,y\n1,2\n,3\n4,5\n7,1\n")

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
