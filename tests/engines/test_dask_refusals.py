"""Dask: what is wrong is said in a sentence, most of it before anything is computed."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

import sketchshift as ss
from sketchshift.engines import dask as engine

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
        engine.sketch_by(dd.read_parquet(folder), "w", spec, max_slices=3)
    with pytest.raises(ss.errors.DataError, match=r"^there are more than 5 slices by key"):
        engine.sketch_by(dd.from_pandas(sorted_by_key, npartitions=3), "key", spec, max_slices=5)
    with pytest.raises(ss.errors.DataError, match="to_dask_dataframe"):
        engine.sketch_by(da.zeros((9, 3)), "w", spec)


def test_invalid_rows_are_refused_by_partition_row_and_column_or_counted(client):
    X = np.random.default_rng(0).normal(size=(1000, 2))
    X[650, 1] = np.nan
    frame = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=4)
    spec = ss.SketchSpec(2, 10, bandwidth=1.0)

    with pytest.raises(ss.errors.InvalidRowsError, match=r"partition 2: .*row.* 150 .*'b'"):
        engine.sketch(frame, spec, client=client)
    with pytest.raises(ss.errors.InvalidRowsError, match=r"partition 2: .*row.* 150 .*'b'"):
        engine.plan(frame, n_clusters=2)

    skipped = engine.sketch(frame, spec, on_invalid="skip", client=client)
    assert (skipped.count, skipped.n_invalid) == (999, 1)
    assert engine.plan(frame, n_clusters=2, on_invalid="skip").n_features == 2


def test_what_cannot_be_read_is_refused_before_anything_is_computed(tmp_path, folder, spec):
    def read(path):
        (tmp_path / path.stem).touch()
        return pd.read_parquet(path)

    files = sorted(folder.iterdir())
    frame = dd.from_map(read, files, meta=pd.read_parquet(files[1]).iloc[:0])
    numbers = da.zeros((10, 3), chunks=5)

    with pytest.raises(ss.errors.DataError, match=r"no column 'heigth'.*Did you mean 'height'"):
        engine.plan(frame, 3, columns=["heigth", "weight", "age"])
    with pytest.raises(ss.errors.DataError, match=r"\['age'\] are not those of the spec"):
        engine.sketch(frame, spec, columns=["age"])
    with pytest.raises(ss.errors.DataError, match=r"no columns 'a', 'b'"):
        engine.sketch(frame, ss.SketchSpec(2, 10, bandwidth=1.0, columns=["a", "b"]))
    with pytest.raises(ss.errors.SpecError, match=r"must be a SketchSpec. Got 'name'"):
        engine.sketch_by(frame, spec, "name")
    with pytest.raises(ss.errors.DataError, match=r"column 'name' .*cannot be read as numbers"):
        engine.plan(frame, n_clusters=3)
    with pytest.raises(ss.errors.DataError, match=r"Series.*\.to_frame\(\)"):
        engine.sketch(frame["age"], spec)
    with pytest.raises(ss.errors.DataError, match=r"name of a column.*add it as a column"):
        engine.sketch(frame, spec, sample_weight=numbers[:, 0])
    with pytest.raises(ss.errors.DataError, match=r"dask array of shape \(10,\)"):
        engine.sketch(numbers, spec, sample_weight="w")
    with pytest.raises(ss.errors.DataError, match="one dimension, not two"):
        engine.sketch(numbers[:, 0], spec)
    with pytest.raises(ss.errors.SpecError, match="'n_clusters' parameter of plan"):
        engine.plan(frame, n_clusters=0)
    with pytest.raises(ss.errors.SpecError, match="'split_every' parameter"):
        engine.sketch(numbers, spec, split_every=1)
    with pytest.raises(ss.errors.SpecError, match="'max_slices' parameter"):
        engine.sketch_by(frame, "name", spec, max_slices=0)
    with pytest.raises(ss.errors.DataError, match=r"by must be the name of a column.*Got Series"):
        engine.sketch_by(frame, frame["name"], spec)
    with pytest.raises(ss.errors.SpecError, match=r"'client' parameter .* Got 'tcp://"):
        engine.sketch(frame, spec, client="tcp://127.0.0.1:8786")
    assert not list(tmp_path.iterdir())


def test_what_partitions_hold_is_refused_by_their_number(spec):
    frame = dd.from_pandas(pd.DataFrame({"x": [1.0], "shop": ["a"]}), npartitions=1)
    records = db.from_sequence([{"x": 1.0}], npartitions=1)
    line = ss.SketchSpec(1, 10, bandwidth=1.0, columns=["x"])

    with pytest.raises(
        ss.errors.DataError, match=r"partition 0: month\(shop\): 'a' cannot be read"
    ):
        engine.sketch_by(frame, "month(shop)", line)
    with pytest.raises(
        ss.errors.DataError, match=r"partition 0: .* bag of dict.*\.to_dataframe\(\)"
    ):
        engine.sketch(records, line)
    with pytest.raises(ss.errors.DataError, match=r"partition 0: .*1 columns.* n_features=3"):
        engine.sketch(frame[["x"]], ss.SketchSpec(3, 10, bandwidth=1.0))


def test_names_in_a_bag_need_an_order(spec):
    """Partitions of a bag do not see each other: ``y, x`` in one would be added to ``x, y``."""
    part = pd.DataFrame({"x": [1.0, 2.0], "y": [10.0, 11.0], "key": [0, 1]})
    bag = db.from_sequence([part, part[["key", "y", "x"]]], npartitions=2)
    nameless = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=1.0)
    both = pd.concat([part, part])

    with pytest.raises(
        ss.errors.DataError, match=r"partition \d: columns .* another order.*columns=\["
    ):
        engine.sketch(bag.map(lambda part: part.drop(columns="key")), nameless)
    with pytest.raises(
        ss.errors.DataError, match=r"partition \d: columns .* another order.*columns=\["
    ):
        engine.sketch_by(bag, "key", nameless)
    assert engine.sketch(bag, nameless, columns=["x", "y"]) == ss.sketch(both[["x", "y"]], nameless)
    assert engine.sketch_by(bag, "key", nameless, columns=["x", "y"]) == ss.sketch_by(
        both, "key", nameless
    )


def test_clients_that_are_closed_or_asynchronous_are_refused(cluster, spec):
    frame = dd.from_pandas(pd.DataFrame(np.ones((9, 3)), columns=spec.columns), npartitions=3)
    address = cluster.scheduler_address
    closed = Client(address, set_as_default=False)
    closed.close()

    async def sketch_there():
        async with Client(address, asynchronous=True, set_as_default=False) as client:
            return engine.sketch(frame, spec, client=client)

    with pytest.raises(
        ss.errors.SpecError, match=r"a synchronous distributed\.Client that is open"
    ):
        engine.sketch(frame, spec, client=closed)
    with pytest.raises(
        ss.errors.SpecError, match=r"a synchronous distributed\.Client that is open"
    ):
        asyncio.run(sketch_there())


def test_a_collection_without_rows_is_refused(spec):
    frame = dd.from_pandas(pd.DataFrame(np.ones((9, 3)), columns=spec.columns), npartitions=3)
    nothing = frame[frame["age"] > 1]

    with pytest.raises(ss.errors.DataError, match="no rows to sketch"):
        engine.sketch(nothing, spec)
    with pytest.raises(ss.errors.DataError, match="no rows to plan on"):
        engine.plan(nothing, n_clusters=2)
    with pytest.raises(ss.errors.DataError, match="no rows to plan on"):
        engine.plan(db.from_sequence([1, 2]).filter(lambda n: n > 2), n_clusters=2)


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
