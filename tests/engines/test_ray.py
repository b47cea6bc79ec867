"""Ray: workers that die, GPUs, tensors and blocks in memory."""

from __future__ import annotations

import os
import re
import signal

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.engines.driver import Driver
from sketchshift.sketch.reading import Reading
from sketchshift.sketch.slices import add_keys

pytestmark = pytest.mark.engines
NAMELESS = ss.SketchSpec(n_features=2, sketch_size=10, bandwidth=1.0)


@pytest.fixture
def engine():
    return pytest.importorskip("sketchshift.engines.ray").RayEngine


@pytest.fixture
def dataset(ray_cluster, files):
    return ray_cluster.data.read_parquet(str(files), override_num_blocks=4)


def test_a_worker_killed_midway_loses_nothing_and_counts_nothing_twice(
    dataset, spec, expected, tmp_path
):
    """The first worker to reach a block of the second file takes itself down."""
    mark = tmp_path / "killed"

    def kill_once(block):
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return block
        os.kill(os.getpid(), signal.SIGKILL)
        return block

    failing = dataset.map_batches(kill_once, batch_size=1000, batch_format="pyarrow")

    assert ss.sketch(failing, spec).to_bytes() == expected.to_bytes()
    assert mark.exists()


@pytest.mark.parametrize("kernel", ["reference", "cuda"])
def test_workers_with_a_gpu_give_the_same_bytes(engine, dataset, files, spec, expected, kernel):
    """Without a GPU, what is tested is the way to such workers."""
    if kernel == "cuda" and not pytest.importorskip("cupy").is_available():
        pytest.skip("needs a GPU")
    driver = Driver(engine(num_gpus=0.5, batch_size=900))
    reading = Reading(spec, kernel=kernel)

    assert driver.sketch(dataset, reading).to_bytes() == expected.to_bytes()
    table = driver.sketch_by(dataset, add_keys(reading, "shop"))
    assert table == ss.sketch_by(files, "shop", spec, n_threads=1)


def test_wrong_uses_end_in_a_sentence(engine, dataset):
    for call, message in (
        (lambda: engine(num_gpus="all"), "'num_gpus' parameter"),
        (lambda: engine(batch_size=0), "'batch_size' parameter"),
        (lambda: ss.sketch(dataset.select_columns("x"), NAMELESS), "a block: .*n_features=2"),
    ):
        with pytest.raises(ss.errors.SketchshiftError, match=message):
            call()


def test_a_column_of_tensors_is_read_as_rows_if_they_are_vectors(ray_cluster):
    """Others are refused by how to make vectors of them."""
    X = np.random.default_rng(0).normal(size=(100, 2))
    vectors, tensors = map(ray_cluster.data.from_numpy, (X, X[:, None]))

    assert ss.sketch(vectors, NAMELESS) == ss.sketch(X, NAMELESS)
    assert ss.plan(vectors, 2) == ss.plan(X, 2)
    message = r"'data' holds tensors of shape \(1, 2\)"
    with pytest.raises(ss.errors.DataError, match=message) as error:
        ss.sketch(tensors, NAMELESS)
    (advice,) = re.findall(r"dataset\.map_batches\(.*\)(?=\.$)", str(error.value))
    assert ss.sketch(eval(advice, {"dataset": tensors}), NAMELESS) == ss.sketch(X, NAMELESS)


def test_a_plan_looks_into_blocks_from_all_along(ray_cluster):
    """A hundred sorted blocks: those looked into have about the mean of all."""
    blocks = [pa.table({"x": np.arange(200.0) + 200 * i}) for i in range(100)]
    dataset = ray_cluster.data.from_arrow(blocks)

    first = ss.plan(dataset, 3)

    assert first == ss.plan(dataset, 3)
    assert first.rows.center[0] == pytest.approx(10_000, rel=0.05)
