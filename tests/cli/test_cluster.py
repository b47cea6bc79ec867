"""``sketchshift cluster`` finds what the Python API finds, float for float."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import sketchshift as ss

QUICK = "--decoder sketch-and-shift:n_initializations=30,refine=true"


def decode(sketch, **options):
    return ss.SketchAndShift(n_initializations=30, refine=True)(sketch, 3, **options)


def centroids(facts):
    return [cluster["centroid"] for cluster in facts["clusters"]]


def test_files_and_facts_hold_the_floats_of_the_python_api(folder, run):
    week = ss.load("week.sketch")
    expected = decode(week, seed=7)

    for suffix in ("csv", "parquet", "json"):
        facts = run.facts(f"cluster week.sketch -k 3 --seed 7 {QUICK} -o c.{suffix}")

    x, y = expected.centroids.T.tolist()
    rows = {"cluster": [0, 1, 2], "share": expected.weights.tolist(), "x": x, "y": y}
    for table in (pyarrow.csv.read_csv("c.csv"), pyarrow.parquet.read_table("c.parquet")):
        assert list(table.to_pydict().items()) == list(rows.items())
    written = json.loads(Path("c.json").read_text())
    assert written["columns"] == facts["columns"] == ["x", "y"]
    assert written["clusters"] == facts["clusters"]
    assert centroids(facts) == expected.centroids.tolist()
    assert facts["sentence"] == expected.sentence
    assert (facts["seed"], facts["decoder"]["seed"]) == (week.spec.waves.seed, 7)


@pytest.mark.parametrize(
    ("text", "decoder"),
    [
        (
            "sketch-and-shift:n_initializations=30,n_atoms=4,fitted_model=gaussian",
            ss.SketchAndShift(n_initializations=30, n_atoms=4, fitted_model="gaussian"),
        ),
        ("cl-ompr:n_iterations=5", ss.ClOmpr(n_iterations=5)),
    ],
)
def test_keys_are_the_fields_of_the_decoder(text, decoder, folder, run):
    facts = run.facts(f"cluster week.sketch -k 3 --decoder {text}")

    expected = decoder(ss.load("week.sketch"), 3)
    assert facts["decoder"]["name"] == text
    assert centroids(facts) == expected.centroids.tolist()
    if expected.covariances is not None:
        covariances = [row["covariance"] for row in facts["clusters"]]
        assert covariances == expected.covariances.tolist()


def test_several_sketches_are_merged_first(folder, run):
    run("merge day1.sketch day2.sketch -o both.sketch")
    lines = ["both.sketch", "day1.sketch day2.sketch", "'day*.sketch'"]

    one, *more = [run.facts(f"cluster {line} -k 3 {QUICK}") for line in lines]

    for facts in more:
        assert (facts["rows"], facts["clusters"]) == (120, one["clusters"])
        assert facts["inputs"] == ["day1.sketch", "day2.sketch"]


def test_the_table_names_the_columns_and_says_what_comes_next(folder, run):
    lines = run(f"cluster week.sketch -k 3 {QUICK}").stdout.splitlines()

    expected = decode(ss.load("week.sketch"))
    profile = expected.profile.lines()
    assert lines[0].startswith("3 clusters in 180 rows x 2 columns, decoded from ")
    assert lines[2 : 2 + len(profile)] == profile
    head, first = (line.split() for line in lines[-7:-5])
    assert head == ["cluster", "share", "x", "y"]
    assert first == ["0", f"{100 * expected.weights[0]:.1f}", "%", "-0.4", "0"]
    step = f"Next: sketchshift cluster week.sketch -k 3 {QUICK} -o centroids.csv"
    assert lines[-2:] == [expected.sentence, step]


def test_a_table_for_people_is_not_wider_than_they_can_read(folder, run):
    X = np.random.default_rng(0).normal(size=(400, 11))
    ss.sketch(X, ss.SketchSpec(11, 100, 3.0)).save("wide.sketch")

    more = "3 columns more: -o centroids.csv writes all."
    text = run.says(f"cluster wide.sketch -k 3 {QUICK} -o wide.csv", more)

    (head,) = [line for line in text.splitlines() if line.startswith("cluster  ")]
    assert head.count("column ") == 8
    assert pyarrow.csv.read_csv("wide.csv").shape == (3, 13)


def test_a_picture_is_of_the_kind_that_its_name_says(folder, run):
    for suffix, start in {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}.items():
        line = f"cluster week.sketch -k 3 {QUICK} --plot c.{suffix}"
        run.says(line, f"Wrote c.{suffix}.")
        assert Path(f"c.{suffix}").read_bytes().startswith(start)


def test_fewer_clusters_than_asked_for_are_a_warning_and_a_result(folder, run):
    """Two distinct points hold no four clusters."""
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], [30, 10], axis=0)
    ss.sketch(X, ss.SketchSpec(2, 60, 1.0)).save("two.sketch")

    result = run(f"cluster two.sketch -k 4 {QUICK} --plot c.png --json")

    reason = ss.decoders.Outcome.EMPTY_RESIDUAL
    assert result.stderr == f"Warning: 2 clusters of 4. {reason}\n"
    facts = json.loads(result.stdout)
    assert facts["outcome"] == "EMPTY_RESIDUAL"
    assert [cluster["share"] for cluster in facts["clusters"]] == pytest.approx([0.75, 0.25])


def test_a_table_with_two_columns_of_one_name_is_refused(folder, run):
    spec = ss.load("week.sketch").spec
    spec = spec.replaced(rows=replace(spec.rows, columns=("share", "x")))
    ss.sketch(np.loadtxt("points.csv", delimiter=",", skiprows=1), spec).save("odd.sketch")
    line = f"cluster odd.sketch -k 3 {QUICK} -o"

    words = "has a column 'share', and 'c.csv' would have two. Write a .json"
    run.error(f"{line} c.csv", words, status=2)
    run(f"{line} c.json")


def test_without_matplotlib_a_picture_is_refused_before_decoding(folder, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    run.error("cluster week.sketch -k 3 --plot c.png -o c.csv", 'install "sketchshift[view]"')

    assert not Path("c.csv").exists()


@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_data_is_planned_for_read_and_decoded_in_one_command(run, folder):
    facts = run.facts("cluster points.csv -k 3 --columns y --scale standard --seed 3")

    sketch = ss.sketch("points.csv", n_clusters=3, columns=["y"], standardize=True, seed=3)
    assert (facts["rows"], facts["decoder"]["name"]) == (sketch.count, "turnkey")
    assert centroids(facts) == ss.decode(sketch, 3, seed=3).centroids.tolist()


@pytest.fixture
def three(folder):
    """Rows around three places, in three.csv."""
    X = np.random.default_rng(0).normal(size=(900, 2))
    X += np.repeat([[0, 0], [9, 0], [0, 9]], 300, axis=0)
    np.savetxt("three.csv", X, delimiter=",", header="x,y", comments="")
    return X


def test_clusters_come_with_what_they_cost_and_what_is_proved(run, three):
    run("sketch three.csv -k 3 -o s.sketch")
    facts, result = run.facts("cluster three.csv -k 3"), run("cluster s.sketch -k 3")

    decoding = ss.decode(ss.load("s.sketch"), 3)
    assert result.stdout.count(str(decoding.trust)) == 1
    assert result.stderr == ""
    assert facts["trust"]["sentence"] == str(decoding.trust)
    cost = ss.metrics.mse(three, decoding.centroids)
    assert facts["cost"] == pytest.approx(cost, rel=0.02)
    assert facts["cost_bound"] == decoding.cost_bound >= cost


@pytest.mark.parametrize("line", ["cluster s.sketch -k 3", "report s.sketch -k 3 -o r.html"])
def test_clusters_that_cannot_be_trusted_are_told_of_once_as_in_python(line, run, three):
    """The plan has seen a third of the rows, at one place."""
    ss.sketch(three, ss.plan(three[:300], 3)).save("s.sketch")

    result = run(line)

    with pytest.warns(ss.errors.PlanWarning) as told:
        trust = ss.decode(ss.load("s.sketch"), 3).trust
    assert [str(warning.message) for warning in told] == [str(trust)]
    assert result.stderr == f"Note: {trust}\n"
    assert str(trust) not in result.stdout


@pytest.mark.parametrize(("flags", "has_cells"), [("", True), (QUICK, False)])
def test_data_is_planned_with_cells_if_the_decoder_reads_them(flags, has_cells, run, three):
    facts = run.facts(f"cluster three.csv -k 3 {flags}")

    assert (facts["cells"] is not None) == has_cells
    assert facts["fingerprint"] == ss.plan("three.csv", 3, cells=has_cells).fingerprint


def test_k_is_chosen_and_the_curve_is_shown(run, three):
    line = "cluster three.csv -k auto --max-clusters 8"
    chosen = "Chose k = 3 of 1 to 8: fewer clusters would mix groups, more would cut"
    text = run.says(f"{line} --plot c.png", chosen)

    assert "not looked at" not in text
    assert run.facts(line)["curve"]["n_clusters"] == [*range(1, 9)]
