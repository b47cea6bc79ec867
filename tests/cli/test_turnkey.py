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
    assert facts["sketch_size"] == 60  # 10 k d: the default of --sketch-size is not meant


def test_flags_of_a_turnkey_plan_reach_it(folder, run):
    run("plan part-1.parquet -k 3 -o p.json -m 77 --seed 5 --standardize --columns y,x --weights w")

    options = {"sketch_size": 77, "seed": 5, "standardize": True, "columns": ["y", "x"]}
    assert plan_in(folder / "p.json") == ss.plan("part-1.parquet", 3, sample_weight="w", **options)


def test_a_glob_is_planned_on_as_a_whole(folder, run):
    run("plan 'part-*.parquet' -k 3 -o p.json --columns x,y")

    parts = ["part-1.parquet", "part-2.parquet"]
    assert plan_in(folder / "p.json") == ss.plan(parts, 3, columns=["x", "y"])


def test_a_sketch_planned_on_the_way_is_that_of_its_plan(folder, run):
    run("plan 'part-*.parquet' -k 3 -o p.json --weights w --seed 2")
    run("sketch part-1.parquet part-2.parquet -o a.sketch --plan p.json --weights w")
    run("sketch part-1.parquet part-2.parquet -o b.sketch -k 3 --weights w --seed 2")

    assert (folder / "a.sketch").read_bytes() == (folder / "b.sketch").read_bytes()
    parts = ["part-1.parquet", "part-2.parquet"]
    expected = ss.sketch(parts, n_clusters=3, seed=2, sample_weight="w")
    assert ss.load("b.sketch") == expected


@pytest.mark.parametrize("line", ["plan gaps.csv -o p.json", "sketch gaps.csv -o g.sketch"])
def test_invalid_rows_can_be_left_out_of_a_plan(line, folder, run):
    (folder / "gaps.csv").write_text("x,y\n1,2\n,3\n4,5\n7,1\n")

    facts = run.facts(f"{line} -k 2 --on-invalid skip")

    assert facts["center"] == pytest.approx([4.0, 8 / 3], abs=1e-5)


def test_a_hint_is_one_sentence_on_stderr(folder, run):
    X = np.random.default_rng(0).normal(size=(50, 2)) * [1, 5000]
    np.savetxt("units.csv", X, delimiter=",", header="age,pay", comments="")

    result = run("plan units.csv -k 2 -o p.json --json")

    assert json.loads(result.stdout)["n_features"] == 2
    assert result.stderr.startswith("Note: column 'pay' varies by ")
    assert "--standardize" in result.stderr
    assert result.stderr.count("\n") == 1
    assert run("plan units.csv -k 2 -o p.json --standardize").stderr == ""


def test_warnings_of_others_are_left_to_python(folder, run, monkeypatch):
    """Here they are errors, as everywhere in these tests."""
    import warnings

    from sketchshift.cli import main

    def noisy(**_):
        warnings.warn("old", DeprecationWarning, stacklevel=1)

    monkeypatch.setattr(main.get_command(None, "merge"), "callback", noisy)

    assert isinstance(run("merge day1.sketch -o a.sketch", 1).exception, DeprecationWarning)
