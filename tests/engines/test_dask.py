"""Dask: frames, arrays and bags, however they are cut and whoever dies on the way."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from itertools import pairwise

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

pytestmark = pytest.mark.engines
LINE, PLANE, SPACE = (ss.SketchSpec(d, 20, bandwidth=1.0) for d in (1, 2, 3))


def read_noted(files, notes, dies_at=""):
    """A frame of three files. Reading leaves a note; the first to read ``dies_at`` is killed then.

    A closure, so that it travels by value: workers cannot import this module.
    """

    def read(path):
        (notes / f"{path.stem}-{os.urandom(4).hex()}").touch()
        if path.stem == dies_at and len(list(notes.glob(f"{dies_at}-*"))) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return pd.read_parquet(path)

    paths = sorted(files.iterdir())
    return dd.from_map(read, paths, meta=pd.read_parquet(paths[1]).iloc[:0])


def cut(parts):
    """A frame of these partitions."""
    return dd.from_map(lambda part: part, parts, meta=parts[0].iloc[:0])


@settings(max_examples=10)
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
    parts = [frame[columns].iloc[i:j] for i, j in pairwise([0, *cuts, 500])]

    result = Driver(engine.DaskEngine(split_every)).sketch(cut(parts), Reading(spec))

    assert result.to_bytes() == ss.sketch(X, spec).to_bytes()


@pytest.mark.parametrize("apart", [{}, {"sample_weight": "w"}], ids=["alone", "beside weights"])
def test_partitions_with_columns_in_other_orders_are_taken_by_name(apart):
    """Also by a spec that names none: the frame does. Parts of a bag have no order in common."""
    part = pd.DataFrame({"x": [1.0, 2.0], "y": [10.0, 11.0], "w": [1.0, 3.0]})
    part = part[["x", "y", *apart.values()]]
    parts = [part, part[part.columns[::-1]]]
    bag, whole = db.from_sequence(parts, npartitions=2), pd.concat(parts)

    for read in (
        lambda data, **options: ss.sketch(data, PLANE, **apart, **options),
        lambda data, **options: ss.sketch_by(data, "x", PLANE, **apart, **options),
    ):
        named = {"columns": ["x", "y"]}
        assert read(bag, **named) == read(whole, **named)
        with pytest.raises(ss.errors.DataError, match=r"partition \d: columns .* another order"):
            read(bag)
    assert ss.sketch(cut(parts), PLANE, **apart) == ss.sketch(whole, PLANE, **apart)
    assert ss.sketch_by(cut(parts), "x", LINE, **apart) == ss.sketch_by(whole, "x", LINE, **apart)
    assert ss.plan(cut(parts), 2, **apart) == ss.plan(whole, 2, **apart)


ARRAYS = {
    "columns cut, too": lambda X: da.from_array(X, chunks=(400, 2)),
    "of unknown length": lambda X: (lambda x: x[x[:, 0] < np.inf])(da.from_array(X, (300, 3))),
    "bag of rows": lambda X: db.from_sequence(X.tolist(), npartitions=7),
    "bag of arrays": lambda X: db.from_sequence(np.array_split(X, 11), npartitions=3),
    "bag with empty parts": lambda X: db.from_sequence(
        [[-1.0] * 3] * 200 + X.tolist(), npartitions=30
    ).filter(lambda row: row[0] != -1.0),
}


def test_arrays_and_bags_give_the_bytes_of_their_rows():
    X = np.random.default_rng(1).integers(0, 9, size=(1000, 3)).astype(float)
    weights = X[:, 0]
    expected = ss.sketch(X, SPACE), ss.plan(X, 4)

    with dask.config.set(scheduler="threads"):
        for name, make in ARRAYS.items():
            assert (ss.sketch(make(X), SPACE), ss.plan(make(X), 4)) == expected, name
        beside = da.from_array(weights, 999)
        found = ss.sketch(da.from_array(X, (400, 2)), SPACE, sample_weight=beside)
    assert found == ss.sketch(X, SPACE, sample_weight=weights)


KEYS = {
    "missing": [pd.array([None, None], "string[pyarrow]"), ["a", "b"], [None, "b"]],
    "missing, and no text": [[np.nan, np.nan], ["a", "b"], ["b", "c"]],
    "narrow": [np.array([5, 7], np.int32), np.array([7, 9]), np.array([5, 9], np.int8)],
    "in one partition": [["a", "b"], [], ["b", "c"]],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
def test_partitions_may_differ_in_the_type_of_their_keys(keys, client):
    parts = [pd.DataFrame({"key": key, "x": np.arange(len(key)) / 2}) for key in keys]
    spec = ss.SketchSpec(1, 20, bandwidth=1.0, columns=["x"])
    values = [None if pd.isna(value) else value for part in parts for value in part["key"]]
    whole = pa.table({"key": values, "x": pd.concat(parts)["x"].to_numpy()})

    for order in (parts, parts[::-1]):
        bag = db.from_sequence(order, partition_size=1)
        assert ss.sketch_by(bag, "key", spec) == ss.sketch_by(whole, "key", spec)


def test_a_worker_that_is_killed_changes_no_byte(tmp_path, files, spec, expected, client):
    """The worker dies with a partition half done, and all sketches that it holds are lost."""
    result = ss.sketch(read_noted(files, tmp_path, "2"), spec)

    assert len(list(tmp_path.glob("2-*"))) == 2
    assert result.to_bytes() == expected.to_bytes()


def test_rows_do_not_travel_between_workers(files, spec, client):
    """A partition is read and sketched by one task: what is sent is sketches."""

    def count_sent():
        return sum(
            client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values()
        )

    frame, before = dd.read_parquet(files, split_row_groups=True), count_sent()

    sketch = ss.sketch(frame, spec)

    sent, most = count_sent() - before, 2 * frame.npartitions * sketch.nbytes
    assert sketch.nbytes / 2 < sent <= most < 10_000 * 2 * 4  # what the rows would be


def test_a_plan_sees_all_of_a_sorted_collection_and_reads_64_partitions():
    """Rows 0 to 19 999 in order: the mean of a good sample is near 10 000.

    With 2000 rows from 64 of 200 partitions, the standard error of the mean is below 150; the
    first 64 partitions have the mean 3200.
    """
    read = []

    def rows_from(first):
        read.append(first)
        return pd.DataFrame({"x": first + np.arange(100.0), "y": 999 * np.sin(np.arange(100.0))})

    parts = dd.from_map(rows_from, range(0, 20_000, 100), meta=rows_from(0).iloc[:0])
    read.clear()

    with dask.config.set(scheduler="synchronous"):
        spec = ss.plan(parts, n_clusters=5, seed=3)
        assert abs(spec.rows.center[0] - 10_000) < 600
        assert len(read) == len(set(read)) == 64
        assert ss.plan(parts, n_clusters=5, seed=3) == spec
        assert ss.plan(parts, n_clusters=5, seed=4).rows.center != spec.rows.center


def test_equal_work_has_equal_keys(files, spec):
    """Else Dask would compute again what it holds already. The key covers all that is below."""

    def key(path, spec):
        dask = engine.DaskEngine(split_every=2)
        partitions = dask.partitions(dd.read_parquet(path), Reading(spec))
        return dask.merge_tree(merge_sketches, dask.map(sketch_partition, partitions)).key

    again = key(files, ss.SketchSpec.from_json(spec.to_json()))
    assert key(files, spec) == again
    assert again not in (key(files, spec.prefix(30)), key(files / "0.parquet", spec))


def test_estimators_fit_collections_where_they_lie(files, spec, expected, client):
    frame = dd.read_parquet(files, split_row_groups=True)[["x", "y"]]
    first, *others = sorted(files.iterdir())

    planned = ss.CompressiveKMeans(n_clusters=3, random_state=5).fit(frame)
    km = ss.CompressiveKMeans(n_clusters=3, spec=spec, random_state=0).fit(frame)

    assert planned.sketch_.spec == ss.plan(frame, 3, seed=5)
    assert (
        km.sketch_
        == ss.CompressiveGaussianMixture(3, spec=spec, random_state=0).fit(frame).sketch_
        == expected
    )
    assert list(km.feature_names_in_) == ["x", "y"]
    assert km.forget(dd.read_parquet(first)).sketch_ == ss.sketch(others, spec)
    assert km.partial_fit(dd.read_parquet(first)).sketch_ == expected
    with pytest.raises(ss.errors.DataError, match="cannot be read here"):
        km.predict(frame)


def test_what_cannot_be_read_is_refused_before_anything_is_computed(tmp_path, files, spec):
    frame, numbers = read_noted(files, tmp_path), da.zeros((10, 3), chunks=5)
    sketch, here = ss.sketch, r"dask collection here.*Use ss\.plan, ss\.sketch,"

    for call, message in (
        (lambda: ss.plan(frame, 3, columns=["shpo"]), r"no column 'shpo'.*Did you mean 'shop'"),
        (lambda: sketch(frame["x"], spec), r"Series.*\.to_frame\(\)"),
        (lambda: sketch(frame, spec, sample_weight=numbers[:, 0]), "of a column.*add it as a col"),
        (lambda: sketch(numbers, SPACE, sample_weight="w"), r"dask array of shape \(10,\)"),
        (lambda: sketch(numbers[:, 0], spec), "one dimension, not two"),
        (lambda: engine.DaskEngine(split_every=1), "'split_every' parameter"),
        (lambda: ss.sketch_by(frame, frame["shop"], spec), "by must be the name of a column"),
        (lambda: ss.sketch_by(numbers, "w", spec), "to_dask_dataframe"),
        (lambda: ss.Sketcher(spec).update(frame), here),
        (lambda: ss.decoders.bandwidth(frame), here),
        (lambda: sketch([frame], spec), here),
    ):
        with pytest.raises(ss.errors.SketchshiftError, match=message):
            call()
    assert not list(tmp_path.iterdir())


def test_what_partitions_hold_is_refused_by_their_number(client):
    X = np.random.default_rng(0).normal(size=(1000, 2))
    X[650, 1] = np.nan
    rows = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=4)
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0] * 6, "k": list("aabbcc")}), npartitions=3)
    records = db.from_sequence([{"x": 1.0}], npartitions=1)
    nothing = db.from_sequence([1]).filter(lambda n: n > 2)

    for call, message in (
        (lambda: ss.sketch(rows, PLANE), r"partition 2: .*row.* 150 .*'b'"),
        (lambda: ss.plan(rows, 2), r"partition 2: .*row.* 150 .*'b'"),
        (lambda: ss.sketch_by(frame, "month(k)", LINE), r"partition \d: month\(k\): '.' cannot be"),
        (lambda: ss.sketch(records, LINE), r"partition 0: .* bag of dict.*\.to_dataframe\(\)"),
        (lambda: ss.sketch(frame[["x"]], SPACE), r"partition \d: .*1 col"),
        (lambda: ss.plan(nothing, 2), "no rows to plan on"),
    ):
        with pytest.raises(ss.errors.DataError, match=message):
            call()


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.delitem(sys.modules, engine.__name__)

    with pytest.raises(ss.errors.MissingDependencyError, match=r'install "sketchshift\[dask\]"'):
        import_module(engine.__name__)
