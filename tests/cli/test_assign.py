"""``sketchshift assign``: labels for files of any size."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

import sketchshift as ss


def read(path) -> np.ndarray:
    reader = pyarrow.csv.read_csv if path.suffix == ".csv" else pyarrow.parquet.read_table
    return reader(path)["cluster"].to_numpy()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_every_row_gets_its_nearest_centroid(run, folder, suffix):
    facts = run.facts(f"assign points.csv --centroids centroids.csv -o labels.{suffix}")

    X = np.loadtxt(folder / "points.csv", delimiter=",", skiprows=1)
    expected = ss.metrics.assign(X, [[0.0, 0.0], [1.0, 1.0]])
    labels = read(folder / f"labels.{suffix}")
    assert labels.tolist() == expected.tolist()
    assert facts["rows"] == len(X)
    assert facts["rows_per_cluster"] == np.bincount(expected, minlength=2).tolist()


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_what_cluster_wrote_can_be_assigned_to(run, folder, suffix):
    run(f"cluster points.csv -k 3 -o found.{suffix}")

    facts = run.facts(f"assign points.csv --centroids found.{suffix} -o labels.csv")

    decoding = ss.decode(ss.sketch("points.csv", n_clusters=3), 3)
    X = np.loadtxt(folder / "points.csv", delimiter=",", skiprows=1)
    assert len(facts["rows_per_cluster"]) == 3
    expected = ss.metrics.assign(X, decoding.centroids)
    assert read(folder / "labels.csv").tolist() == expected.tolist()


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_labels_of_standardised_clusters_are_theirs(run, folder, suffix):
    """A column of large numbers must not decide alone: the file of centroids holds the scales."""
    rng = np.random.default_rng(0)
    halves = np.repeat([0, 1], 500)
    X = rng.normal(size=(1000, 2)) * [0.1, 1000.0] + np.outer(halves, [3.0, 0.0])
    np.savetxt(folder / "units.csv", X, delimiter=",", header="a,b", comments="")
    run(f"cluster units.csv -k 2 --scale standard -o found.{suffix}")

    run(f"assign units.csv --centroids found.{suffix} -o labels.csv")

    labels = read(folder / "labels.csv")
    assert (labels == labels[0]).tolist() == (halves == 0).tolist()


@pytest.mark.parametrize(
    ("names", "suffix", "flag"),
    [
        (("a", "a scale"), "csv", "--scale standard"),
        (("a", "a scale"), "parquet", ""),
        (("column 1", "column 0"), "csv", ""),
        (("column 1", "column 0"), "json", "--scale standard"),
    ],
)
def test_names_of_the_data_that_look_like_ours_are_names(run, folder, names, suffix, flag):
    """Clusters in the second column alone."""
    halves = np.repeat([0, 1], 500)
    X = np.random.default_rng(0).normal(size=(1000, 2)) * 0.1 + np.outer(halves, [0.0, 3.0])
    np.savetxt(folder / "named.csv", X, delimiter=",", header=",".join(names), comments="")
    np.savetxt(
        folder / "turned.csv", X[:, ::-1], delimiter=",", header=",".join(names[::-1]), comments=""
    )
    run(f"cluster turned.csv -k 2 {flag} -o found.{suffix}")

    run(f"assign named.csv --centroids found.{suffix} -o labels.csv")

    labels = read(folder / "labels.csv")
    assert (labels == labels[0]).tolist() == (halves == 0).tolist()


def test_arrays_without_names_are_taken_in_order(run, folder):
    X = np.random.default_rng(0).normal(size=(200, 3))
    np.save(folder / "x.npy", X)
    run("cluster x.npy -k 2 -o c.csv")

    run("assign x.npy --centroids c.csv -o labels.parquet")

    expected = ss.metrics.assign(X, ss.decode(ss.sketch(X, n_clusters=2), 2).centroids)
    assert read(folder / "labels.parquet").tolist() == expected.tolist()


def test_rows_with_missing_values_get_minus_one(run, folder):
    (folder / "holes.csv").write_text("x,y\n0,0\n,1\n1,1\n")

    result = run("assign holes.csv --centroids centroids.csv -o labels.csv")

    assert read(folder / "labels.csv").tolist() == [0, -1, 1]
    assert "1 row with missing or infinite values" in result.stdout


WRONG = {
    "--centroids none.csv": "cannot read 'none.csv'",
    "--centroids points.csv": "'points.csv' does not hold centroids",
    "--centroids empty.csv": "holds no centroids",
    "--centroids other.csv": "'z'",
}


@pytest.mark.parametrize(("flags", "sentence"), WRONG.items())
def test_wrong_centroids_are_one_sentence_and_leave_no_file(run, folder, flags, sentence):
    (folder / "empty.csv").write_text("cluster,share,x,y\n")
    (folder / "other.csv").write_text("cluster,share,x,z\n0,1,0,0\n")

    error = run.error(f"assign points.csv {flags} -o labels.csv")

    assert sentence in error
    assert not (folder / "labels.csv").exists()
    assert not list(folder.glob(".*.tmp"))


def test_a_table_without_names_and_with_text_is_labelled(run, folder):
    lines = [f"{i % 2},{5 * (i % 2)},shop {i}" for i in range(40)]
    (folder / "nameless.csv").write_text("\n".join(lines) + "\n")
    run("cluster nameless.csv -k 2 -o found.csv")

    run("assign nameless.csv --centroids found.csv -o labels.csv")

    labels = read(folder / "labels.csv")
    assert (labels == labels[0]).tolist() == [i % 2 == 0 for i in range(40)]


def test_columns_that_csv_cannot_hold_are_written_as_json(run, folder):
    table = pyarrow.table(
        {
            "x": [0.0, 1.0] * 20,
            "y": [0.0, 2.0] * 20,
            "tags": [["a", "b"], None] * 20,
            "place": [{"lat": 1.5}, {"lat": 2.5}] * 20,
            "short": pyarrow.array(["q", "r"] * 20, pyarrow.string_view()),
        }
    )
    pyarrow.parquet.write_table(table, folder / "nested.parquet")
    run("cluster nested.parquet -k 2 --columns x,y -o found.csv")

    run("assign nested.parquet --centroids found.csv -o labels.csv")

    first, second = pyarrow.csv.read_csv(folder / "labels.csv").to_pylist()[:2]
    assert json.loads(first["tags"]) == ["a", "b"]
    assert second["tags"] == ""
    assert json.loads(second["place"]) == {"lat": 2.5}
    assert (first["short"], second["short"]) == ("q", "r")


def test_shares_of_other_rows_are_not_explained_as_those_of_the_same(run, folder):
    lines = [f"{i % 2},{5 * (i % 2)},{'ab'[i % 2]}" for i in range(40)]
    (folder / "old.csv").write_text("x,y,c\n" + "\n".join(lines) + "\n")
    (folder / "new.csv").write_text("x,y,c\n" + "\n".join(line[:-1] + "z" for line in lines) + "\n")
    run("cluster old.csv -k 2 --categories c -o found.csv")

    part = run("assign old.csv --centroids found.csv -o labels.csv --where 'x = 1'").stdout
    other = run("assign new.csv --centroids found.csv -o labels.csv").stdout

    assert "`cluster` reported" not in part
    assert "100 % of the rows have a value of 'c' that no cluster was found with" in other
