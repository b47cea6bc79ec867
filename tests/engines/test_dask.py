"""Dask: the same bytes as one thread, however the rows are cut and whoever dies on the way."""

from __future__ import annotations

import os
import signal
from functools import partial
from itertools import pairwise
from pathlib import Path

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.engines import dask as engine
from sketchshift.engines.driver import Driver, merge_sketches, sketch_partition
from sketchshift.sketch.reading import Reading

pytestmark = [
    pytest.mark.engines,
    # what Dask's reader of Parquet does is between Dask and pandas
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index"),
]

PARTITIONINGS = {
    "seven parts": lambda path: dd.read_parquet(path).repartition(npartitions=7),
    "shuffled": lambda path: dd.read_parquet(path, split_row_groups=True).shuffle("day"),
    "Arrow types": partial(dd.read_parquet, dtype_backend="pyarrow"),
}


def reader(notes: Path, dies_at: str):
    """Reads a file and leaves a note of that; the first to read ``dies_at`` is killed then.

    A closure, so that it travels by value: workers cannot import this module.
    """

    def read(path: Path) -> pd.DataFrame:
        (notes / f"{path.stem}-{os.urandom(4).hex()}").touch()
        if path.stem == dies_at and not (notes / "died").exists():
            (notes / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return pd.read_parquet(path)

    return read


@pytest.mark.parametrize("cut", PARTITIONINGS.values(), ids=PARTITIONINGS)
def test_any_partitioning_gives_the_bytes_of_one_thread(cut, files, spec, expected, client):
    assert ss.sketch(cut(files), spec).to_bytes() == expected.to_bytes()


@settings(deadline=None, max_examples=10)
@given(
    cuts=st.lists(st.integers(0, 500), max_size=9).map(sorted),
    split_every=st.integers(2, 5),
    columns=st.permutations(["a", "b", "c"]),
)
def test_no_cut_and_no_tree_changes_a_byte(cuts, split_every, columns):
    """Partitions may be empty; columns may stand in another order."""
    X = np.random.default_rng(0).normal(size=(500, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    spec = ss.SketchSpec(3, 20, bandwidth=1.0, columns=("a", "b", "c"))
    edges = [0, *cuts, 500]
    parts = [frame[columns].iloc[i:j] for i, j in pairwise(edges)]

    cut = dd.from_map(lambda part: part, parts, meta=parts[0].iloc[:0])
    result = Driver(engine.DaskEngine(split_every)).sketch(cut, Reading(spec))

    assert result.to_bytes() == ss.sketch(X, spec).to_bytes()


@pytest.mark.parametrize("apart", [{}, {"sample_weight": "w"}], ids=["alone", "beside weights"])
def test_partitions_with_columns_in_other_orders_are_taken_by_name(apart):
    """Also by a spec that names none: the frame does."""
    part = pd.DataFrame({"x": [1.0, 2.0], "y": [10.0, 11.0]}).assign(
        **{name: [1.0, 3.0] for name in apart.values()}
    )
    parts = [part, part[part.columns[::-1]]]
    frame = dd.from_map(lambda part: part, parts, meta=part.iloc[:0])
    line, plane = (ss.SketchSpec(d, 20, bandwidth=1.0) for d in (1, 2))

    for read in (
        lambda data: ss.sketch(data, plane, **apart),
        lambda data: ss.sketch_by(data, "x", line, **apart),
        lambda data: ss.plan(data, 2, **apart),
    ):
        assert read(frame) == read(pd.concat(parts))


ARRAYS = {
    "columns cut, too": lambda X: da.from_array(X, chunks=(400, 2)),
    "of unknown length": lambda X: (lambda x: x[x[:, 0] < np.inf])(da.from_array(X, (300, 3))),
    "bag of rows": lambda X: db.from_sequence(X.tolist(), npartitions=7),
    "bag of arrays": lambda X: db.from_sequence(np.array_split(X, 11), npartitions=3),
    "bag of frames": lambda X: db.from_sequence([pd.DataFrame(X[:9]), pd.DataFrame(X[9:])]),
    "bag with empty parts": lambda X: db.from_sequence(
        [[-1.0] * 3] * 200 + X.tolist(), npartitions=30
    ).filter(lambda row: row[0] != -1.0),
}


@pytest.mark.parametrize("make", ARRAYS.values(), ids=ARRAYS)
def test_arrays_and_bags_give_the_bytes_of_their_rows(make):
    X = np.random.default_rng(1).integers(0, 9, size=(1000, 3)).astype(np.float32)
    spec, weights = ss.SketchSpec(3, 20, bandwidth=2.0), X[:, 0]
    cut, beside = da.from_array(X, (400, 2)), da.from_array(weights, 999)

    with dask.config.set(scheduler="threads"):
        assert ss.sketch(make(X), spec) == ss.sketch(X, spec)
        found = ss.sketch(cut, spec, sample_weight=beside)
    assert found == ss.sketch(X, spec, sample_weight=weights)


@pytest.mark.parametrize("by", [["shop", "day"], "w"])
def test_sketches_by_key_are_those_of_one_thread(by, files, spec, client):
    """Keys of text and numbers; rows of a key lie in all partitions."""
    frame = dd.read_parquet(files, split_row_groups=True)

    assert ss.sketch_by(frame, by, spec) == ss.sketch_by(files, by, spec, n_threads=1)


def test_times_are_keys_as_without_dask(times, spec, time_key, client):
    frame = dd.read_parquet(times, split_row_groups=True)

    assert ss.sketch_by(frame, time_key, spec) == ss.sketch_by(times, time_key, spec)


def test_partitions_without_rows_have_no_keys(files, spec):
    """A filter leaves one row in one of three files."""
    frame, rows = dd.read_parquet(files), pd.read_parquet(files)
    largest = rows["x"].max()

    table = ss.sketch_by(frame[frame["x"] >= largest], "w", spec)

    assert table == ss.sketch_by(rows[rows["x"] >= largest], "w", spec)


KEYS = {
    "missing": [pd.array([None, None], "string[pyarrow]"), ["a", "b"], [None, "b"]],
    "missing, and no text": [[np.nan, np.nan], ["a", "b"], ["b", "c"]],
    "narrow": [np.array([5, 7], np.int32), np.array([7, 9]), np.array([5, 9], np.int8)],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_partitions_may_differ_in_the_type_of_their_keys(keys, client):
    parts = [pd.DataFrame({"key": key, "x": [0.0, 1.0]}) for key in keys]
    spec = ss.SketchSpec(1, 20, bandwidth=1.0, columns=["x"])
    values = [None if pd.isna(value) else value for part in parts for value in part["key"]]
    whole = pa.table({"key": values, "x": pd.concat(parts)["x"].to_numpy()})

    for order in (parts, parts[::-1]):
        bag = db.from_sequence(order, partition_size=1)
        table = ss.sketch_by(bag, "key", spec)
        assert table == ss.sketch_by(whole, "key", spec)


def test_a_worker_that_is_killed_changes_no_byte(tmp_path, files, spec, expected, client):
    """The worker dies with a partition half done, and all sketches that it holds are lost."""
    paths = sorted(files.iterdir())
    meta = pd.read_parquet(paths[1]).iloc[:0]

    result = ss.sketch(dd.from_map(reader(tmp_path, "2"), paths, meta=meta), spec)

    assert len(list(tmp_path.glob("2-*"))) == 2
    assert result.to_bytes() == expected.to_bytes()


def test_rows_do_not_travel_between_workers(files, spec, client):
    """A partition is read and sketched by one task: what is sent is sketches."""

    def count_sent() -> int:
        return sum(
            client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values()
        )

    frame, before = dd.read_parquet(files, split_row_groups=True), count_sent()

    sketch = ss.sketch(frame, spec)

    sent, most = count_sent() - before, 2 * frame.npartitions * sketch.nbytes
    assert sketch.nbytes / 2 < sent <= most < 10_000 * 2 * 4  # what the rows would be


def test_a_plan_sees_all_of_a_sorted_collection_and_reads_64_partitions(tmp_path):
    """Rows 0 to 19 999 in order: the mean of a good sample is near 10 000.

    With 2000 rows from 64 of 200 partitions, the standard error of the mean is below 150; the
    first 64 partitions have the mean 3200.
    """
    first_rows = list(range(0, 20_000, 100))
    parts = dd.from_map(rows_from, first_rows, notes=tmp_path, meta=rows_from(0).iloc[:0])
    n_notes = len(list(tmp_path.iterdir()))

    spec = ss.plan(parts, n_clusters=5, seed=3)

    assert abs(spec.center[0] - 10_000) < 600
    assert len(list(tmp_path.iterdir())) - n_notes == 64
    assert ss.plan(parts, n_clusters=5, seed=3) == spec
    assert ss.plan(parts, n_clusters=5, seed=4).center != spec.center


def rows_from(first: int, notes: Path | None = None) -> pd.DataFrame:
    if notes is not None:
        (notes / f"{first}-{os.urandom(4).hex()}").touch()
    return pd.DataFrame({"x": np.arange(first, first + 100.0), "y": 999 * np.sin(np.arange(100.0))})


def test_a_plan_of_few_rows_is_that_of_the_rows_in_memory(client):
    X = np.random.default_rng(0).normal(size=(1500, 2))

    for rows in (X, np.repeat(X[:500], 3, axis=0)):
        cut = da.from_array(rows, chunks=(400, 1))
        assert ss.plan(cut, n_clusters=4) == ss.plan(rows, n_clusters=4)


def test_equal_work_has_equal_keys(files, spec):
    """Else Dask would compute again what it holds already. The key covers all that is below."""

    def key(path, spec):
        dask = engine.DaskEngine(split_every=2)
        partitions = dask.partitions(dd.read_parquet(path), Reading(spec))
        return dask.merge_tree(merge_sketches, dask.map(sketch_partition, partitions)).key

    again = ss.SketchSpec.from_json(spec.to_json())
    assert key(files, spec) == key(files, again)
    assert key(files, spec) != key(files, spec.prefix(30))
    assert key(files, spec) != key(files / "0.parquet", spec)


def test_estimators_fit_collections_where_they_lie(files, spec, expected, client):
    frame = dd.read_parquet(files, split_row_groups=True)
    paths = sorted(files.iterdir())

    km = ss.CompressiveKMeans(n_clusters=3, spec=spec).fit(frame)
    planned = ss.CompressiveKMeans(n_clusters=3, random_state=5).fit(frame[list(spec.columns)])
    gmm = ss.CompressiveGaussianMixture(3, spec=spec).fit(frame)

    assert km.sketch_ == gmm.sketch_ == expected
    assert list(km.feature_names_in_) == list(spec.columns)
    centroids = ss.decode(expected, 3, seed=km._seed).centroids
    np.testing.assert_array_equal(km.cluster_centers_, centroids)
    assert planned.sketch_.spec == ss.plan(frame[list(spec.columns)], 3, seed=5)
    km.forget(dd.read_parquet(paths[0]))
    assert km.sketch_ == ss.sketch(paths[1:], spec)
    km.partial_fit(dd.read_parquet(paths[0]))
    assert km.sketch_ == expected
    with pytest.raises(ss.errors.DataError, match="cannot be read here"):
        km.predict(frame[list(spec.columns)])


def test_a_column_of_vectors_is_read_as_rows():
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    column = pd.Series(pa.array(list(X)), dtype=pd.ArrowDtype(pa.list_(pa.float32())))
    frame = dd.from_pandas(pd.DataFrame({"id": range(60), "v": column}), npartitions=4)
    spec = ss.plan(X, 2)

    assert ss.plan(frame, 2, columns=["v"]) == spec
    assert ss.sketch(frame, spec, columns=["v"]) == ss.sketch(X, spec)
    assert ss.sketch_by(frame, "id", spec, columns=["v"]).merge() == ss.sketch(X, spec)
