"""Dask, Spark and Ray: the same bytes as one thread, and the same refusals."""

from __future__ import annotations

from collections import namedtuple
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss

pytestmark = pytest.mark.engines


Engine = namedtuple("Engine", ["read", "cut", "empty"])
"""Functions: a folder of Parquet files, seven partitions of it, and a collection without rows."""


@pytest.fixture
def dask(client):
    import dask.dataframe as dd

    read = partial(dd.read_parquet, split_row_groups=True, dtype_backend="pyarrow")
    return Engine(read, lambda df: df.repartition(npartitions=7), lambda df: df[df["x"] > 1e9])


@pytest.fixture
def spark(session):
    return Engine(
        lambda folder: session.read.parquet(str(folder)),
        lambda df: df.repartition(7),
        lambda df: df.where("x > 1e9"),
    )


@pytest.fixture
def ray(ray_cluster):
    from ray.data.expressions import col

    return Engine(
        lambda folder: ray_cluster.data.read_parquet(str(folder), override_num_blocks=4),
        lambda dataset: dataset.repartition(7),
        lambda dataset: dataset.filter(expr=col("x") > 1e9),
    )


@pytest.fixture(params=["dask", "spark", "ray"])
def engine(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def collection(engine, files):
    return engine.read(files)


def test_any_partitioning_gives_the_bytes_of_one_thread(engine, collection, files, spec, expected):
    weighted = {"columns": ["x", "y"], "sample_weight": "w"}

    for cut in (collection, engine.cut(collection)):
        assert ss.sketch(cut, spec, **weighted) == ss.sketch(files, spec, **weighted)
        assert ss.CompressiveKMeans(2, spec=spec, random_state=0).fit(cut).sketch_ == expected


KEYS = {
    "numbers and text, some missing": ["day", "w", "shop"],
    "times as they are": ["at", "local", "date"],
    "times in all units beside a text": [
        *("year(date)", "quarter(at)", "month(local)", "week(at)", "day(at)", "hour(at)"),
        *("minute(local)", "shop"),
    ],
}


@pytest.mark.parametrize("by", KEYS.values(), ids=KEYS)
def test_a_table_by_key_is_that_of_one_thread(engine, collection, files, spec, by):
    """Rows of a key lie in all partitions."""
    assert ss.sketch_by(engine.cut(collection), by, spec) == ss.sketch_by(files, by, spec)


def test_a_plan_of_few_rows_is_that_of_one_process(collection, files):
    options = {"columns": ["x", "y"], "seed": 5}

    assert ss.plan(collection, 3, **options) == ss.plan(files, 3, **options)


def test_a_column_of_vectors_is_read_as_rows(engine, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    table = pa.table({"day": ["a", "b"] * 30, "v": pa.array(list(X))})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=20)
    collection, spec = engine.read(tmp_path), ss.plan(X, 2)

    assert ss.plan(collection, 2, columns=["v"]) == spec
    assert ss.sketch(collection, spec, columns=["v"]) == ss.sketch(X, spec)
    assert ss.sketch_by(collection, "day", spec, columns=["v"]).merge() == ss.sketch(X, spec)


def test_wrong_uses_end_in_a_sentence(engine, collection, spec):
    nameless = ss.SketchSpec(n_features=2, sketch_size=10, bandwidth=1.0)
    sketch, sketch_by = partial(ss.sketch, collection), partial(ss.sketch_by, collection)
    empty = engine.empty(collection)

    for call, message in (
        (lambda: sketch(nameless, columns=["x", "z"]), "no column 'z'"),
        (lambda: sketch(nameless), "columns 'shop' .*cannot be read as numbers"),
        (lambda: sketch(spec, sample_weight=[1.0]), "the name of a column"),
        (lambda: sketch_by("month(x)", spec), "needs a column of dates"),
        (lambda: ss.sketch(empty, spec), "no rows to sketch"),
        (lambda: ss.sketch_by(empty, "day", spec), "no rows to sketch"),
        (lambda: ss.plan(empty, 2, columns=["x"]), "no rows to plan on"),
    ):
        with pytest.raises(ss.errors.DataError, match=message):
            call()


def test_wrong_partitions_are_named_or_their_sum_is(engine, spec, tmp_path):
    """Four files of a day each."""
    for day in range(4):
        y = pa.array([0.0, 1.0, 2.0], mask=np.full(3, [day == 2, False, False]))
        table = pa.table({"day": [day] * 3, "x": [0.0, 1.0, 2.0], "y": y})
        pq.write_table(table, tmp_path / f"{day}.parquet")
    collection = engine.read(tmp_path)

    with pytest.raises(
        ss.errors.InvalidRowsError, match=r"^(partition \d|a block): .*row \d .*column 'y'.*skip"
    ):
        ss.sketch(collection, spec)
    assert ss.sketch(collection, spec, on_invalid="skip").n_invalid == 1
