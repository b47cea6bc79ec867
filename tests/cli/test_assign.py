"""``sketchshift assign``: labels for files of any size."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from numpy.testing import assert_array_equal

import sketchshift as ss


def labels(name="labels.csv"):
    reader = pyarrow.csv.read_csv if name.endswith(".csv") else pyarrow.parquet.read_table
    return reader(name)["cluster"].to_numpy()


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_every_row_gets_its_nearest_centroid_of_those_that_cluster_wrote(run, folder, suffix):
    """Arrays without names are taken in order."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    np.save("x.npy", X)
    run(f"cluster x.npy -k 2 -o found.{suffix}")

    facts = run.facts(f"assign x.npy --centroids found.{suffix} -o labels.parquet")

    expected = ss.metrics.assign(X, ss.decode(ss.sketch(X, n_clusters=2), 2).centroids)
    assert labels("labels.parquet").tolist() == expected.tolist()
    assert facts["rows_per_cluster"] == np.bincount(expected).tolist()


@pytest.mark.parametrize(
    ("names", "suffix", "flag"),
    [
        (["a", "b"], "parquet", "--scale standard"),
        (["a", "a scale"], "csv", "--scale standard"),
        (["column 1", "column 0"], "csv", ""),
        (["column 1", "column 0"], "json", "--scale standard"),
    ],
)
def test_names_of_the_data_that_look_like_ours_are_names(run, folder, names, suffix, flag):
    """Clusters in the second column alone, which is the first in the other file.

    The file of centroids holds the scales: the first column is of large numbers, and must not
    decide alone.
    """
    halves = np.repeat([False, True], 500)
    units = [1000.0, 0.1] if flag else [0.1, 0.1]
    X = np.random.default_rng(0).normal(size=(1000, 2)) * units + np.outer(halves, [0.0, 3.0])
    for name, order in (("named", [0, 1]), ("turned", [1, 0])):
        header = ",".join(names[i] for i in order)
        np.savetxt(f"{name}.csv", X[:, order], delimiter=",", header=header, comments="")
    run(f"cluster turned.csv -k 2 {flag} -o found.{suffix}")

    run(f"assign named.csv --centroids found.{suffix} -o labels.csv")

    assert_array_equal(labels() == labels()[-1], halves)


def test_rows_with_missing_values_get_minus_one(run, folder):
    Path("holes.csv").write_text("x,y\n0,0\n,1\n1,1\n")

    line = "assign holes.csv --centroids centroids.csv -o labels.csv"
    run.says(line, "1 row with missing or infinite values")

    assert labels().tolist() == [0, -1, 1]


def test_a_table_without_names_and_with_text_is_labelled(run, folder):
    lines = [f"{i % 2},{5 * (i % 2)},shop {i}\n" for i in range(40)]
    Path("nameless.csv").write_text("".join(lines))
    run("cluster nameless.csv -k 2 -o found.csv")

    run("assign nameless.csv --centroids found.csv -o labels.csv")

    assert (labels() == labels()[0]).tolist() == [True, False] * 20


def test_columns_that_csv_cannot_hold_are_written_as_json(run, folder):
    columns = {"x": [0.0, 1.0], "y": [0.0, 2.0], "tags": [["a", "b"], None]}
    columns["place"] = [{"lat": 1.5}, {"lat": 2.5}]
    columns["short"] = pyarrow.array(["q", "r"], pyarrow.string_view())
    pyarrow.parquet.write_table(pyarrow.table(columns), "nested.parquet")

    run("assign nested.parquet --centroids centroids.csv -o labels.csv")

    first, second = pyarrow.csv.read_csv("labels.csv").to_pylist()
    assert json.loads(first["tags"]) == ["a", "b"]
    assert second["tags"] == ""
    assert json.loads(second["place"]) == {"lat": 2.5}
    assert (first["short"], second["short"]) == ("q", "r")


def test_shares_of_other_rows_are_not_explained_as_those_of_the_same(run, folder):
    rows = "x,y,c\n" + "0,0,a\n1,5,b\n" * 20
    Path("old.csv").write_text(rows)
    Path("new.csv").write_text(rows.replace("a", "z").replace("b", "z"))
    run("cluster old.csv -k 2 --categories c -o found.csv")

    line = "assign {}.csv --centroids found.csv -o labels.csv"
    assert "`cluster` reported" not in run(f"{line} --where 'x = 1'".format("old")).stdout
    other = "100 % of the rows have a value of 'c' that no cluster was found with"
    run.says(line.format("new"), other)
