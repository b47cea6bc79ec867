"""What centroids cost at most: proved by a sketch with cells, whoever found them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sketchshift as ss


def test_the_bound_is_that_of_python_and_no_less_than_the_cost(folder, run):
    """Columns are found by name, in any order."""
    X = np.loadtxt("points.csv", delimiter=",", skiprows=1)
    rows = [f"{i},0.5,{y!r},{x!r}" for i, (x, y) in enumerate(X[:4].tolist())]
    Path("turned.csv").write_text("\n".join(["cluster,share,y,x", *rows]), encoding="utf-8")
    line = "inspect points.sketch --centroids turned.csv"

    expected = ss.certify(ss.load("points.sketch"), X[:4])
    bound = expected.cost_bound
    assert run.facts(line)["cost_bound"] == bound >= ss.metrics.mse(X, X[:4])
    assert run(line).stdout == (
        f"The mean squared distance of 60 rows to 4 centroids is proved to be at most {bound:.6g}.\n"
        "Next: sketchshift cluster points.sketch -k 4\n"
    )


def test_what_cluster_wrote_is_proved_as_cluster_said(folder, run):
    said = run.facts("cluster points.sketch -k 3 -o c.csv")["cost_bound"]

    assert run.facts("inspect points.sketch --centroids c.csv")["cost_bound"] == said
