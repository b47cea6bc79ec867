"""Dask: what is wrong is said in a sentence, most of it before anything is computed."""

from __future__ import annotations

import subprocess
import sys

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


def test_too_many_keys_and_keys_of_arrays_are_refused(folder, spec):
    """Too many in one partition, or in several that have few each."""
    sorted_by_key = pd.DataFrame(np.ones((60, 3)), columns=spec.columns).assign(
        key=np.arange(60) // 10
    )

    with pytest.raises(ss.errors.DataError, match=r"partition \d: .*more than 3 slices by w"):
        ss.sketch_by(dd.read_parquet(folder), "w", spec, max_slices=3)
    with pytest.raises(ss.errors.DataError, match=r"^there are more than 5 slices by key"):
        ss.sketch_by(dd.from_pandas(sorted_by_key, npartitions=3), "key", spec, max_slices=5)
    with pytest.raises(ss.errors.DataError, match="to_dask_dataframe"):
        ss.sketch_by(da.zeros((9, 3)), "w", spec)


def test_invalid_rows_are_refused_by_partition_row_and_column_or_counted(client):
    X = np.random.default_rng(0).normal(size=(1000, 2))
    X[650, 1] = np.nan
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=4)
    spec = ss.SketchSpec(2, 10, bandwidth=1.0)

    with pytest.raises(ss.errors.InvalidRowsError, match=r"partition 2: .*row.* 150 .*'b'"):
        ss.sketch(frame, spec)
    with pytest.raises(ss.errors.InvalidRowsError, match=r"partition 2: .*row.* 150 .*'b'"):
        ss.plan(frame, n_clusters=2)

    skipped = ss.sketch(frame, spec, on_invalid="skip")
    assert (skipped.count, skipped.n_invalid) == (999, 1)
    assert ss.plan(frame, n_clusters=2, on_invalid="skip").n_features == 2


def test_what_cannot_be_read_is_refused_before_anything_is_computed(tmp_path, folder, spec):
    def read(path):
        (tmp_path / path.stem).touch()
        return pd.read_parquet(path)

    files = sorted(folder.iterdir())
    frame = dd.from_map(read, files, meta=pd.read_parquet(files[1]).iloc[:0])
    numbers = da.zeros((10, 3), chunks=5)

    with pytest.raises(ss.errors.DataError, match=r"no column 'heigth'.*Did you mean 'height'"):
        ss.plan(frame, 3, columns=["heigth", "weight", "age"])
    with pytest.raises(ss.errors.DataError, match=r"\['age'\] are not those of the spec"):
        ss.sketch(frame, spec, columns=["age"])
    with pytest.raises(ss.errors.DataError, match=r"no columns 'a', 'b'"):
        ss.sketch(frame, ss.SketchSpec(2, 10, bandwidth=1.0, columns=["a", "b"]))
    with pytest.raises(ss.errors.SpecError, match=r"must be a SketchSpec. Got 'name'"):
        ss.sketch_by(frame, "name", "name")
    with pytest.raises(ss.errors.DataError, match=r"column 'name' .*cannot be read as numbers"):
        ss.plan(frame, n_clusters=3)
    with pytest.raises(ss.errors.DataError, match=r"Series.*\.to_frame\(\)"):
        ss.sketch(frame["age"], spec)
    with pytest.raises(ss.errors.DataError, match=r"name of a column.*add it as a column"):
        ss.sketch(frame, spec, sample_weight=numbers[:, 0])
    with pytest.raises(ss.errors.DataError, match=r"dask array of shape \(10,\)"):
        ss.sketch(numbers, spec, sample_weight="w")
    with pytest.raises(ss.errors.DataError, match="one dimension, not two"):
        ss.sketch(numbers[:, 0], spec)
    with pytest.raises(ss.errors.SpecError, match="'n_clusters' parameter of plan"):
        ss.plan(frame, n_clusters=0)
    with pytest.raises(ss.errors.SpecError, match="'split_every' parameter"):
        DaskEngine(split_every=1)
    with pytest.raises(ss.errors.SpecError, match="'max_slices' parameter"):
        ss.sketch_by(frame, "name", spec, max_slices=0)
    with pytest.raises(ss.errors.DataError, match=r"by must be the name of a column.*Got Series"):
        ss.sketch_by(frame, frame["name"], spec)
    assert not list(tmp_path.iterdir())


def test_what_partitions_hold_is_refused_by_their_number(spec):
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0], "shop": ["a"]}), npartitions=1)
    records = db.from_sequence([{"x": 1.0}], npartitions=1)
    line = ss.SketchSpec(1, 10, bandwidth=1.0, columns=["x"])

    with pytest.raises(
        ss.errors.DataError, match=r"partition 0: month\(shop\): 'a' cannot be read"
    ):
        ss.sketch_by(frame, "month(shop)", line)
    with pytest.raises(
        ss.errors.DataError, match=r"partition 0: .* bag of dict.*\.to_dataframe\(\)"
    ):
        ss.sketch(records, line)
    with pytest.raises(ss.errors.DataError, match=r"partition 0: .*1 columns.* n_features=3"):
        ss.sketch(frame[["x"]], ss.SketchSpec(3, 10, bandwidth=1.0))


def test_names_in_a_bag_need_an_order(spec):
    """Partitions of a bag do not see each other: ``y, x`` in one would be added to ``x, y``."""
    part = pd.DataFrame({"x": [1.0, 2.0], "y": [10.0, 11.0], "key": [0, 1]})
    bag = db.from_sequence([part, part[["key", "y", "x"]]], npartitions=2)
    nameless = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=1.0)
    both = pd.concat([part, part])

    with pytest.raises(
        ss.errors.DataError, match=r"partition \d: columns .* another order.*columns=\["
    ):
        ss.sketch(bag.map(lambda part: part.drop(columns="key")), nameless)
    with pytest.raises(
        ss.errors.DataError, match=r"partition \d: columns .* another order.*columns=\["
    ):
        ss.sketch_by(bag, "key", nameless)
    assert ss.sketch(bag, nameless, columns=["x", "y"]) == ss.sketch(both[["x", "y"]], nameless)
    assert ss.sketch_by(bag, "key", nameless, columns=["x", "y"]) == ss.sketch_by(
        both, "key", nameless
    )


def test_a_collection_without_rows_is_refused(spec):
    frame = dd.from_pandas(pd.DataFrame(np.ones((9, 3)), columns=spec.columns), npartitions=3)
    nothing = frame[frame["age"] > 1]

    with pytest.raises(ss.errors.DataError, match="no rows to sketch"):
        ss.sketch(nothing, spec)
    with pytest.raises(ss.errors.DataError, match="no rows to plan on"):
        ss.plan(nothing, n_clusters=2)
    with pytest.raises(ss.errors.DataError, match="no rows to plan on"):
        ss.plan(db.from_sequence([1, 2]).filter(lambda n: n > 2), n_clusters=2)


def test_here_a_collection_is_refused_by_the_name_of_a_function_that_takes_it(folder, spec):
    frame = dd.read_parquet(folder)

    for read in (
        lambda: ss.Sketcher(spec).update(frame),
        lambda: ss.decoders.bandwidth(frame),
        lambda: ss.sketch([frame], spec),
    ):
        with pytest.raises(
            ss.errors.DataError, match=r"dask collection here.*Use ss\.plan, ss\.sketch,"
        ):
            read()


def test_what_dask_cannot_do_for_the_functions_for_any_data_is_refused(folder, spec):
    frame = dd.read_parquet(folder)

    with pytest.raises(ss.errors.SpecError, match=r"^sketch cannot use n_threads for a dask coll"):
        ss.sketch(frame, spec, n_threads=2)
    with pytest.raises(
        ss.errors.SpecError, match=r"cannot use progress and checkpoint .*Leave out"
    ):
        ss.sketch_by(frame, "w", spec, progress=print, checkpoint="x")
    with pytest.raises(ss.errors.SpecError, match="sketch cannot use n_threads"):
        ss.CompressiveKMeans(3, spec=spec, n_threads=2).fit(frame)
    with pytest.raises(ss.errors.DataError, match="labels from here do not reach rows"):
        ss.sketch_by(frame, np.zeros(30_000), spec)


def test_without_dask_the_extra_is_named():
    code = "import sys; sys.modules['dask'] = None; import sketchshift.engines.dask"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert 'pip install "sketchshift[dask]"' in done.stderr
    assert "MissingDependencyError" in done.stderr
