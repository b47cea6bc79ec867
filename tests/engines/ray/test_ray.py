from __future__ import annotations

import os
import re
import signal
from pathlib import Path

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


def test_workers_use_the_package_under_test(ray_cluster):
    @ray_cluster.remote
    def where() -> str:
        return ss.__file__

    assert Path(ray_cluster.get(where.remote())) == Path(ss.__file__)


def test_any_blocks_give_the_bytes_of_one_thread(dataset, spec, expected):
    assert ss.sketch(dataset, spec).to_bytes() == expected.to_bytes()
    assert ss.sketch(dataset.repartition(7), spec).to_bytes() == expected.to_bytes()


def test_weights_are_those_of_one_thread(dataset, files, spec):
    whole = ss.sketch(files, spec, sample_weight="w", n_threads=1)

    assert ss.sketch(dataset, spec, columns=["x", "y"], sample_weight="w") == whole


def test_decimals_are_rounded_once(ray_cluster, decimals, decimals_spec, decimals_sketch):
    dataset = ray_cluster.data.read_parquet(str(decimals))

    assert ss.sketch(dataset, decimals_spec, sample_weight="w") == decimals_sketch


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
    table = ss.sketch_by(dataset, ["day", "shop"], spec)

    assert table == ss.sketch_by(files, ["day", "shop"], spec, n_threads=1)


def test_times_are_keys_as_without_ray(ray_cluster, times, spec, time_key):
    dataset = ray_cluster.data.read_parquet(str(times), override_num_blocks=3)

    table = ss.sketch_by(dataset, time_key, spec)

    assert table == ss.sketch_by(times, time_key, spec, n_threads=1)


def test_bad_rows_are_named_as_without_ray(ray_cluster, spec):
    dataset = ray_cluster.data.from_arrow(pa.table({"x": [0.0, 1.0, None], "y": [0.0, 1.0, 2.0]}))

    with pytest.raises(InvalidRowsError, match=r"a block: .*row 2 of .*column 'x'.*skip"):
        ss.sketch(dataset, spec)
    assert ss.sketch(dataset, spec, on_invalid="skip").n_invalid == 1


NAMELESS = ss.SketchSpec(n_features=2, sketch_size=10, bandwidth=1.0)
WRONG = [
    (lambda ds, spec: ss.sketch(ds, "day"), "must be a SketchSpec. Got 'day'"),
    (lambda ds, spec: ss.sketch(ds, spec, columns=["x", "z"]), "not those of the spec"),
    (lambda ds, spec: ss.sketch(ds, NAMELESS, columns=["x", "z"]), "no column 'z'"),
    (lambda ds, spec: ss.sketch(ds, NAMELESS), "column 'shop' .*cannot be read as numbers"),
    (lambda ds, spec: ss.sketch(ds, spec, sample_weight=[1.0]), "the name of a column"),
    (lambda ds, spec: ss.sketch(ds, spec, on_invalid="drop"), "'on_invalid' parameter"),
    (lambda ds, spec: engine.RayEngine(num_gpus="all"), "'num_gpus' parameter"),
    (lambda ds, spec: engine.RayEngine(batch_size=0), "'batch_size' parameter"),
    (lambda ds, spec: ss.sketch(ds.select_columns("x"), NAMELESS), "a block: .*n_features=2"),
    (lambda ds, spec: ss.sketch(ds.filter(expr=col("x") > 1e9), spec), "no rows to sketch"),
    (
        lambda ds, spec: ss.sketch_by(ds.filter(expr=col("x") > 1e9), "day", spec),
        "no rows to sketch",
    ),
    (lambda ds, spec: ss.plan(ds, 0), "'n_clusters' parameter of plan"),
    (lambda ds, spec: ss.plan(ds, 2, standardize="no"), "'standardize' parameter of plan"),
    (lambda ds, spec: ss.sketch_by(ds, "day", "day"), "must be a SketchSpec. Got 'day'"),
    (lambda ds, spec: ss.sketch_by(ds, "hour", spec), "no column 'hour'"),
    (lambda ds, spec: ss.sketch_by(ds, "month(x)", spec), "needs a column of dates"),
    (lambda ds, spec: ss.sketch_by(ds, [1, 2], spec), "by must be the name of a column"),
    (lambda ds, spec: ss.sketch_by(ds, ["day", "day"], spec), "each once"),
    (lambda ds, spec: ss.sketch_by(ds, "day", spec, max_slices=0), "'max_slices' parameter"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_uses_end_in_a_sentence(dataset, spec, call, message):
    with pytest.raises(SketchshiftError, match=message):
        call(dataset, spec)


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

    with pytest.raises(
        DataError, match=r"'data' holds tensors of shape \(1, 2\).*reshape"
    ) as error:
        ss.sketch(dataset, NAMELESS)
    (advice,) = re.findall(r"dataset\.map_batches\(.*\)(?=\.$)", str(error.value))
    vectors = eval(advice, {"dataset": dataset})
    assert ss.sketch(vectors, NAMELESS) == ss.sketch(X, NAMELESS)


def test_too_many_keys_are_refused_in_one_block_or_in_all(ray_cluster, dataset, spec):
    blocks = [pa.table({"day": [i], "x": [0.0], "y": [0.0]}) for i in range(4)]
    few_in_each = ray_cluster.data.from_arrow(blocks)

    with pytest.raises(DataError, match="a block: there are more than 3 slices by day"):
        ss.sketch_by(dataset, "day", spec, max_slices=3)
    with pytest.raises(DataError, match=r"^there are more than 3 slices"):
        ss.sketch_by(few_in_each, "day", spec, max_slices=3)


def test_blocks_may_differ_in_the_type_of_their_keys(ray_cluster):
    keys = [pa.nulls(2), pa.array([5, 7], pa.int32()), pa.array([7, 9]), pa.array([9.0, 0.5])]
    blocks = [pa.table({"key": key, "x": [0.0, 1.0]}) for key in keys]
    spec = ss.SketchSpec(1, 20, bandwidth=1.0, columns=["x"])
    values = [value for key in keys for value in key.to_pylist()]
    whole = pa.table({"key": pa.array(values, pa.float64()), "x": [0.0, 1.0] * 4})

    for order in (blocks, blocks[::-1]):
        table = ss.sketch_by(ray_cluster.data.from_arrow(order), "key", spec)
        assert table == ss.sketch_by(whole, "key", spec)


def test_a_plan_of_few_rows_is_that_of_one_process(ray_cluster):
    rows = pa.table({"x": np.arange(900.0) % 97, "y": np.arange(900.0) % 13})
    dataset = ray_cluster.data.from_arrow([rows.slice(0, 10), rows.slice(10, 500), rows.slice(510)])

    assert ss.plan(dataset, 3, seed=5) == ss.plan(rows, 3, seed=5)


def test_a_plan_looks_into_blocks_from_all_along(ray_cluster):
    """A hundred sorted blocks: those looked into have about the mean of all."""
    blocks = [pa.table({"x": np.arange(200.0) + 200 * i}) for i in range(100)]
    dataset = ray_cluster.data.from_arrow(blocks)

    first, again = ss.plan(dataset, 3), ss.plan(dataset, 3)

    assert first == again
    assert first.center[0] == pytest.approx(10_000, rel=0.05)
