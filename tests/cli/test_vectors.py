"""Columns of vectors on the command line: chosen by --columns in every command that reads data."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import save_file

import sketchshift as ss

D = 4


@pytest.fixture
def rows(here):
    """Three clusters; texts.parquet has them as float16, and one missing vector."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, D)) + 20 * (np.arange(300)[:, None] % 3)).astype(np.float16)
    vectors = pa.array([*X, None], pa.list_(pa.float16()))
    ids = {"id": range(301), "day": ["a", "b", "c"] * 100 + ["a"]}
    pq.write_table(pa.table({**ids, "embedding": vectors}), "texts.parquet")
    save_file({"embedding": X, "other": X[:, :2].copy()}, "x.safetensors")
    return X


SKIP = "texts.parquet --columns embedding --on-invalid skip"


def test_a_column_of_vectors_goes_through_all_commands(run, rows):
    """And a tensor of a file of tensors, by the same flag."""
    then = "sketchshift sketch texts.parquet --columns embedding --plan plan.json"
    run.says(f"plan {SKIP} -k 3 -o plan.json", then)
    run(f"sketch {SKIP} --plan plan.json -o x.sketch")
    run(f"sketch {SKIP} --plan plan.json --by day -o days.parquet")
    run("sketch x.safetensors --columns embedding -k 3 -o tensor.sketch")
    run(f"cluster {SKIP} -k 3 -o centroids.csv")
    line = "assign texts.parquet --columns embedding --centroids centroids.csv -o labels.parquet"
    labels = run.facts(line)

    sketch = ss.load("x.sketch")
    assert (sketch.count, sketch.n_invalid) == (300, 1)
    assert sketch.z.tobytes() == ss.load("tensor.sketch").z.tobytes()
    assert ss.load("days.parquet").merge() == sketch
    assert ss.load("tensor.sketch") == ss.sketch(rows, n_clusters=3)
    assert (labels["n_invalid"], labels["rows_per_cluster"]) == (1, [100, 100, 100])
    found = pq.read_table("labels.parquet")["cluster"].to_numpy()
    assert found[-1] == -1
    assert len(set(found[:3])) == 3
    assert_array_equal(found[:300], np.tile(found[:3], 100))


def test_vectors_that_cannot_be_read_are_refused_by_their_row_or_the_flag_to_pass(run, rows):
    run(f"cluster {SKIP} -k 3 -o centroids.csv")

    line = "sketch texts.parquet -k 3 -o x.sketch"
    flag = "--columns embedding, or numbers with --columns id"
    run.error(line, "'embedding', beside 'id', 'day'", flag)
    row = "no vector in row 300 of texts.parquet"
    run.error(f"{line} --columns embedding", row, "--on-invalid skip")
    run.error("sketch x.safetensors -k 3 -o x.sketch", "Choose one with --columns")
    line = "assign x.safetensors --columns other --centroids centroids.csv -o labels.csv"
    run.error(line, "x.safetensors has 2 columns, and the centroids have 4")
