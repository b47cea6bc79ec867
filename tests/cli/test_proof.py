"""What centroids cost at most: proved by a sketch with cells, whoever found them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss


@pytest.fixture
def X(folder):
    return np.loadtxt(folder / "points.csv", delimiter=",", skiprows=1)


def write_centroids(name: str, names: str, centroids: np.ndarray) -> None:
    rows = [f"{i},0.5,{','.join(map(repr, c))}" for i, c in enumerate(centroids.tolist())]
    Path(name).write_text("\n".join([f"cluster,share,{names}", *rows]) + "\n", encoding="utf-8")


def test_the_bound_is_that_of_python_and_no_less_than_the_cost(folder, run, X):
    write_centroids("mine.csv", "x,y", X[:4])
    facts = run.facts("inspect points.sketch --centroids mine.csv")

    expected = ss.certify(ss.load("points.sketch"), X[:4])
    assert facts["cost_bound"] == expected.cost_bound >= ss.metrics.mse(X, X[:4])
    assert [c["bound"] for c in facts["clusters"]] == expected.bounds.tolist()
    assert [c["share"] for c in facts["clusters"]] == expected.weights.tolist()
    assert facts["rows"] == 60


def test_one_sentence_says_it(folder, run, X):
    write_centroids("mine.csv", "x,y", X[:4])
    sentence, step = run("inspect points.sketch --centroids mine.csv").stdout.splitlines()

    bound = ss.certify(ss.load("points.sketch"), X[:4]).cost_bound
    assert sentence == (
        f"The mean squared distance of 60 rows to 4 centroids is proved to be at most {bound:.6g}."
    )
    assert step == "Next: sketchshift cluster points.sketch -k 4"


def test_columns_are_found_by_name(folder, run, X):
    write_centroids("mine.csv", "x,y", X[:4])
    write_centroids("turned.csv", "y,x", X[:4, ::-1])

    bounds = {
        run.facts(f"inspect points.sketch --centroids {name}")["cost_bound"]
        for name in ("mine.csv", "turned.csv")
    }

    assert len(bounds) == 1


def test_what_cluster_wrote_is_proved_as_cluster_said(folder, run):
    said = run.facts("cluster points.sketch -k 3 -o c.csv")["cost_bound"]

    assert run.facts("inspect points.sketch --centroids c.csv")["cost_bound"] == said


def test_a_sketch_without_cells_proves_nothing(folder, run):
    said = run.error("inspect week.sketch --centroids centroids.csv")

    assert "only sketches with cells prove anything" in said


def test_a_missing_column_is_named(folder, run, X):
    write_centroids("mine.csv", "x,z", X[:4])

    assert "has no column 'y'" in run.error("inspect points.sketch --centroids mine.csv")
