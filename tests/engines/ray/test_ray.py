from __future__ import annotations

import os
import re
import signal

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.engines.driver import Driver
from sketchshift.errors import DataError, InvalidRowsError, SketchshiftError
from sketchshift.sketch.reading import Reading
from sketchshift.sketch.slices import add_keys

engine = pytest.importorskip("sketchshift.engines.ray")
col = pytest.importorskip("ray.data.expressions").col


def has_gpu() -> bool:
    try:
        import cupy
    except ImportError:
        return False
    return bool(cupy.is_available())


NEEDS_GPU = pytest.mark.skipif(not has_gpu(), reason="needs CuPy and a GPU")


def test_any_blocks_give_the_bytes_of_one_thread(dataset, files, spec):
    weighted = {"columns": ["x", "y"], "sample_weight": "w"}

    for cut in (dataset, dataset.repartition(7)):
        assert ss.sketch(cut, spec, **weighted) == ss.sketch(files, spec, **weighted)


def test_a_worker_killed_midway_loses_nothing_and_counts_nothing_twice(
    dataset, spec, expected, tmp_path
):
    """The first worker to reach a block of the second file takes itself down."""
    mark = tmp_path / "killed"

    def kill_once(block: pa.Table) -> pa.Table:
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return block
        os.kill(os.getpid(), signal.SIGKILL)
        return block

    failing = dataset.map_batches(kill_once, batch_size=1000, batch_format="pyarrow")

    assert ss.sketch(failing, spec).to_bytes() == expected.to_bytes()
    assert mark.exists()


@pytest.mark.parametrize("kernel", ["reference", pytest.param("cuda", marks=NEEDS_GPU)])
def test_workers_with_a_gpu_give_the_same_bytes(dataset, files, spec, expected, kernel):
    """Without a GPU, what is tested is the way to such workers."""
    driver = Driver(engine.RayEngine(num_gpus=0.5, batch_size=900))
    reading = Reading(spec, kernel=kernel, max_slices=10)

    assert driver.sketch(dataset, reading).to_bytes() == expected.to_bytes()
    table = driver.sketch_by(dataset, add_keys(reading, "shop"))
    assert table == ss.sketch_by(files, "shop", spec, n_threads=1)


def test_a_table_by_key_is_that_of_one_thread(dataset, files, spec):
    """Keys of two columns, one of them with missing values, over several blocks."""
    by = ["day", "shop"]

    assert ss.sketch_by(dataset, by, spec) == ss.sketch_by(files, by, spec)


def test_times_are_keys_as_without_ray(ray_cluster, times, spec, time_key):
    dataset = ray_cluster.data.read_parquet(str(times), override_num_blocks=3)

    assert ss.sketch_by(dataset, time_key, spec) == ss.sketch_by(times, time_key, spec)


NAMELESS = ss.SketchSpec(n_features=2, sketch_size=10, bandwidth=1.0)
WRONG = [
    (lambda ds, spec: ss.sketch(ds, NAMELESS, columns=["x", "z"]), "no column 'z'"),
    (lambda ds, spec: ss.sketch(ds, NAMELESS), "column 'shop' .*cannot be read as numbers"),
    (lambda ds, spec: ss.sketch(ds, spec, sample_weight=[1.0]), "the name of a column"),
    (lambda ds, spec: engine.RayEngine(num_gpus="all"), "'num_gpus' parameter"),
    (lambda ds, spec: engine.RayEngine(batch_size=0), "'batch_size' parameter"),
    (lambda ds, spec: ss.sketch(ds.select_columns("x"), NAMELESS), "a block: .*n_features=2"),
    (lambda ds, spec: ss.sketch(ds.filter(expr=col("x") > 1e9), spec), "no rows to sketch"),
    (lambda ds, spec: ss.sketch_by(ds.limit(0), "day", spec), "no rows to sketch"),
    (lambda ds, spec: ss.sketch_by(ds, "month(x)", spec), "needs a column of dates"),
    (
        lambda ds, spec: ss.sketch_by(ds, "day", spec, max_slices=3),
        "a block: there are more than 3 slices by day",
    ),
]


def test_wrong_uses_end_in_a_sentence(dataset, spec):
    for call, message in WRONG:
        with pytest.raises(SketchshiftError, match=message):
            call(dataset, spec)


def test_wrong_blocks_are_named_or_their_sum_is(ray_cluster, spec):
    columns = {"day": [1, 2, 3, 4], "x": [0.0, 1.0, None, 2.0], "y": [0.0] * 4}
    whole = pa.table(columns)
    dataset = ray_cluster.data.from_arrow([whole, whole.slice(3)])
    rows = ray_cluster.data.from_arrow([whole.slice(i, 1) for i in range(4)])

    with pytest.raises(InvalidRowsError, match=r"a block: .*row 2 of .*column 'x'.*skip"):
        ss.sketch(dataset, spec)
    assert ss.sketch(dataset, spec, on_invalid="skip").n_invalid == 1
    with pytest.raises(DataError, match=r"^there are more than 2 slices"):
        ss.sketch_by(rows, "day", spec, max_slices=2, on_invalid="skip")


def test_vectors_are_read_from_one_column_of_tensors(ray_cluster):
    X = np.random.default_rng(0).normal(size=(100, 2))
    dataset = ray_cluster.data.from_numpy(X)
    keyed = dataset.map_batches(lambda block: {**block, "day": np.arange(len(block["data"])) % 2})

    assert ss.sketch(dataset, NAMELESS) == ss.sketch(X, NAMELESS)
    assert ss.plan(dataset, 2) == ss.plan(X, 2)
    table = ss.sketch_by(keyed, "day", NAMELESS, columns=["data"])
    assert table.merge() == ss.sketch(X, NAMELESS)


def test_tensors_are_refused_by_how_to_make_vectors_of_them(ray_cluster):
    """And that is how."""
    X = np.random.default_rng(0).normal(size=(100, 2))
    dataset = ray_cluster.data.from_numpy(X[:, None])

    with pytest.raises(DataError, match=r"'data' holds tensors of shape \(1, 2\)") as error:
        ss.sketch(dataset, NAMELESS)
    (advice,) = re.findall(r"dataset\.map_batches\(.*\)(?=\.$)", str(error.value))
    vectors = eval(advice, {"dataset": dataset})
    assert ss.sketch(vectors, NAMELESS) == ss.sketch(X, NAMELESS)


def test_a_plan_of_few_rows_is_that_of_one_process(ray_cluster):
    rows = pa.table({"x": np.arange(900.0) % 97, "y": np.arange(900.0) % 13})
    dataset = ray_cluster.data.from_arrow([rows.slice(0, 10), rows.slice(10, 500), rows.slice(510)])

    assert ss.plan(dataset, 3, seed=5) == ss.plan(rows, 3, seed=5)


def test_a_plan_looks_into_blocks_from_all_along(ray_cluster):
    """A hundred sorted blocks: those looked into have about the mean of all."""
    blocks = [pa.table({"x": np.arange(200.0) + 200 * i}) for i in range(100)]
    dataset = ray_cluster.data.from_arrow(blocks)

    first = ss.plan(dataset, 3)

    assert first == ss.plan(dataset, 3)
    assert first.center[0] == pytest.approx(10_000, rel=0.05)
