"""Dask: what is wrong is said in a sentence, most of it before anything is computed."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import sketchshift as ss
from sketchshift.engines.dask import DaskEngine

pytestmark = [
    pytest.mark.engines,
    # what Dask's reader of Parquet does is between Dask and pandas
    pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index"),
]


def test_invalid_rows_are_refused_by_partition_row_and_column_or_counted(client):
    X = np.random.default_rng(0).normal(size=(1000, 2))
    X[650, 1] = np.nan
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=4)

    for read, argument in ((ss.sketch, ss.SketchSpec(2, 10, bandwidth=1.0)), (ss.plan, 2)):
        with pytest.raises(ss.errors.InvalidRowsError, match=r"partition 2: .*row.* 150 .*'b'"):
            read(frame, argument)
    skipped = ss.sketch(frame, n_clusters=2, on_invalid="skip")
    assert (skipped.count, skipped.n_invalid) == (999, 1)


def read_parts(files, notes):
    """A frame of three files; whoever reads one leaves a note."""

    def read(path):
        (notes / path.stem).touch()
        return pd.read_parquet(path)

    paths = sorted(files.iterdir())
    return dd.from_map(read, paths, meta=pd.read_parquet(paths[1]).iloc[:0])


def test_what_cannot_be_read_is_refused_before_anything_is_computed(tmp_path, files, spec):
    frame, numbers = read_parts(files, tmp_path), da.zeros((10, 3), chunks=5)
    plan, sketch, sketch_by = ss.plan, ss.sketch, partial(ss.sketch_by, frame)
    nameless = ss.SketchSpec(2, 10, bandwidth=1.0, columns=["a", "b"])

    for call, message in (
        (lambda: plan(frame, 3, columns=["shpo"]), r"no column 'shpo'.*Did you mean 'shop'"),
        (lambda: sketch(frame, spec, columns=["x"]), r"\['x'\] are not those of the spec"),
        (lambda: sketch(frame, nameless), r"no columns 'a', 'b'"),
        (lambda: sketch_by("shop", "shop"), r"must be a SketchSpec. Got 'shop'"),
        (lambda: plan(frame, 3), r"column 'shop' .*cannot be read as numbers"),
        (lambda: sketch(frame["x"], spec), r"Series.*\.to_frame\(\)"),
        (lambda: sketch(frame, spec, sample_weight=numbers[:, 0]), "of a column.*add it as a col"),
        (lambda: sketch(numbers, spec, sample_weight="w"), r"dask array of shape \(10,\)"),
        (lambda: sketch(numbers[:, 0], spec), "one dimension, not two"),
        (lambda: plan(frame, 0), "'n_clusters' parameter of plan"),
        (lambda: plan(frame, 2, standardize="no"), "'standardize' parameter of plan"),
        (lambda: sketch(frame, spec, on_invalid="drop"), "'on_invalid' parameter"),
        (lambda: DaskEngine(split_every=1), "'split_every' parameter"),
        (lambda: sketch_by("shop", spec, max_slices=0), "'max_slices' parameter"),
        (lambda: sketch_by(frame["shop"], spec), r"by must be the name of a column.*Got Series"),
        (lambda: sketch_by([1, 2], spec), r"by must be the name of a column"),
        (lambda: sketch_by(["w", "w"], spec), "each once"),
        (lambda: sketch_by("hour", spec), "no column 'hour'"),
        (lambda: sketch_by(np.zeros(30_000), spec), "labels from here do not reach rows"),
        (lambda: ss.sketch_by(numbers, "w", spec), "to_dask_dataframe"),
        (lambda: sketch(frame, spec, n_threads=2), "^sketch cannot use n_threads for a dask coll"),
        (
            lambda: sketch_by("w", spec, progress=print, checkpoint="x"),
            "cannot use progress and checkpoint .*Leave out",
        ),
        (lambda: ss.Sketcher(spec).update(frame), r"here.*Use ss\.plan, ss\.sketch,"),
        (lambda: ss.decoders.bandwidth(frame), r"dask collection here.*Use ss\.plan, ss\.sketch,"),
        (lambda: sketch([frame], spec), r"dask collection here.*Use ss\.plan, ss\.sketch,"),
    ):
        with pytest.raises(ss.errors.SketchshiftError, match=message):
            call()
    assert not list(tmp_path.iterdir())


def test_what_partitions_hold_is_refused_by_their_number_or_the_sum_is(files, spec):
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0] * 6, "k": list("aabbcc")}), npartitions=3)
    records = db.from_sequence([{"x": 1.0}], npartitions=1)
    line = ss.SketchSpec(1, 10, bandwidth=1.0, columns=["x"])
    nothing, no_bag = frame[frame["x"] > 1], db.from_sequence([1]).filter(lambda n: n > 2)

    for call, message in (
        (lambda: ss.sketch_by(frame, "month(k)", line), r"partition \d: month\(k\): '.' cannot be"),
        (lambda: ss.sketch(records, line), r"partition 0: .* bag of dict.*\.to_dataframe\(\)"),
        (
            lambda: ss.sketch(frame[["x"]], ss.SketchSpec(3, 10, bandwidth=1.0)),
            r"partition \d: .*1 col",
        ),
        (
            lambda: ss.sketch_by(frame, "k", line, max_slices=2),
            "^there are more than 2 slices by k",
        ),
        (
            lambda: ss.sketch_by(dd.read_parquet(files), "w", spec, max_slices=3),
            r"partition \d: .*more than 3 slices by w",
        ),
        (lambda: ss.sketch(nothing, line), "no rows to sketch"),
        (lambda: ss.sketch_by(nothing, "k", line), "no rows to sketch"),
        (lambda: ss.plan(nothing, 2, columns=["x"]), "no rows to plan on"),
        (lambda: ss.plan(no_bag, 2), "no rows to plan on"),
    ):
        with pytest.raises(ss.errors.DataError, match=message):
            call()


def test_names_in_a_bag_need_an_order():
    """Partitions of a bag do not see each other: ``y, x`` in one would be added to ``x, y``."""
    part = pd.DataFrame({"x": [1.0, 2.0], "y": [10.0, 11.0], "key": [0, 1]})
    bag = db.from_sequence([part, part[["key", "y", "x"]]], npartitions=2)
    nameless = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=1.0)

    for read, line in (
        (lambda data, **of: ss.sketch(data, nameless, **of), 0),
        (lambda data, **of: ss.sketch_by(data, "key", nameless, **of), 1),
    ):
        plain = bag if line else bag.map(lambda part: part.drop(columns="key"))
        with pytest.raises(ss.errors.DataError, match=r"partition \d: columns .* another order"):
            read(plain)
        assert read(bag, columns=["x", "y"]) == read(pd.concat([part, part]), columns=["x", "y"])


def test_without_dask_the_extra_is_named():
    code = "import sys; sys.modules['dask'] = None; import sketchshift.engines.dask"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert 'pip install "sketchshift[dask]"' in done.stderr
    assert "MissingDependencyError" in done.stderr
