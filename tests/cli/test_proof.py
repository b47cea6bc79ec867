"""What centroids cost at most: proved by a sketch with cells, whoever found them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sketchshift as ss


def write_centroids(name: str, names: str, centroids: np.ndarray) -> None:
    rows = [f"{i},0.5,{','.join(map(repr, c))}" for i, c in enumerate(centroids.tolist())]
    Path(name).write_text("\n".join([f"cluster,share,{names}", *rows]) + "\n", encoding="utf-8")


def test_the_bound_is_that_of_python_and_no_less_than_the_cost(folder, run):
    """Columns are found by name, in any order."""
    X = np.loadtxt("points.csv", delimiter=",", skiprows=1)
    write_centroids("turned.csv", "y,x", X[:4, ::-1])
    line = "inspect points.sketch --centroids turned.csv"
    facts = run.facts(line)
    sentence, step = run(line).stdout.splitlines()

    expected = ss.certify(ss.load("points.sketch"), X[:4])
    bound = expected.cost_bound
    assert facts["cost_bound"] == bound >= ss.metrics.mse(X, X[:4])
    assert [c["bound"] for c in facts["clusters"]] == expected.bounds.tolist()
    assert [c["share"] for c in facts["clusters"]] == expected.weights.tolist()
    assert sentence == (
        f"The mean squared distance of 60 rows to 4 centroids is proved to be at most {bound:.6g}."
    )
    assert step == "Next: sketchshift cluster points.sketch -k 4"


def test_what_cluster_wrote_is_proved_as_cluster_said(folder, run):
    said = run.facts("cluster points.sketch -k 3 -o c.csv")["cost_bound"]

    assert run.facts("inspect points.sketch --centroids c.csv")["cost_bound"] == said
