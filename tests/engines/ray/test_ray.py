from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.errors import DataError, InvalidRowsError

engine = pytest.importorskip("sketchshift.engines.ray")
col = pytest.importorskip("ray.data.expressions").col


def test_workers_use_the_package_under_test(ray_cluster):
    @ray_cluster.remote
    def where() -> str:
        return ss.__file__

    assert Path(ray_cluster.get(where.remote())) == Path(ss.__file__)


def test_any_blocks_give_the_bytes_of_one_thread(dataset, spec, expected):
    assert engine.sketch(dataset, spec).to_bytes() == expected.to_bytes()
    assert engine.sketch(dataset.repartition(7), spec).to_bytes() == expected.to_bytes()


def test_weights_are_those_of_one_thread(dataset, files, spec):
    whole = ss.sketch(files, spec, sample_weight="w", n_threads=1)

    assert engine.sketch(dataset, spec, columns=["x", "y"], sample_weight="w") == whole


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

    assert engine.sketch(failing, spec).to_bytes() == expected.to_bytes()
    assert mark.exists()


def test_workers_with_a_gpu_give_the_same_bytes(dataset, spec, expected):
    """There is no GPU here: what is tested is the way to such workers, not a kernel."""
    found = engine.sketch(dataset, spec, num_gpus=0.5, kernel="reference", batch_size=900)

    assert found.to_bytes() == expected.to_bytes()


def test_a_table_by_key_is_that_of_one_thread(dataset, files, spec):
    """Keys of two columns, one of them with missing values, over several blocks."""
    table = engine.sketch_by(dataset, ["day", "shop"], spec, num_partitions=2)

    assert table == ss.sketch_by(files, ["day", "shop"], spec, n_threads=1)


def test_rows_and_stored_sketches_are_aggregates_of_ray(dataset, files, spec, expected):
    by_day = ss.sketch_by(files, "day", spec)

    rows = dataset.groupby("day", num_partitions=2).aggregate(engine.SketchRows(spec))
    stored = rows.materialize()
    whole = stored.aggregate(engine.MergeSketches("sketch", name="whole"))

    found = {row["day"]: ss.Sketch.from_bytes(row["sketch"]) for row in stored.take_all()}
    assert found == {day: sketch for day, sketch in by_day}  # noqa: C416
    assert whole == {"whole": expected.to_bytes()}


def test_bad_rows_are_named_as_without_ray(ray_cluster, spec):
    dataset = ray_cluster.data.from_arrow(pa.table({"x": [0.0, 1.0, None], "y": [0.0, 1.0, 2.0]}))

    with pytest.raises(InvalidRowsError, match=r"a block: .*row 2 of .*column 'x'.*skip"):
        engine.sketch(dataset, spec)
    assert engine.sketch(dataset, spec, on_invalid="skip").n_invalid == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ds, spec: engine.sketch(ds, spec, columns=["x", "z"]), "no column 'z'"),
        (lambda ds, spec: engine.sketch(ds.filter(expr=col("x") > 1e9), spec), "no rows to sketch"),
        (lambda ds, spec: engine.sketch(ds, spec, sample_weight=[1.0]), "the name of a column"),
        (lambda ds, spec: engine.sketch("ds", spec), "cannot read a str with Ray"),
        (lambda ds, spec: engine.sketch_by(ds, "hour", spec), "no column 'hour'"),
    ],
)
def test_wrong_uses_end_in_a_sentence(dataset, spec, call, message):
    with pytest.raises(DataError, match=message):
        call(dataset, spec)


def test_a_plan_of_few_rows_is_that_of_one_process(ray_cluster):
    rows = pa.table({"x": np.arange(900.0) % 97, "y": np.arange(900.0) % 13})
    dataset = ray_cluster.data.from_arrow([rows.slice(0, 10), rows.slice(10, 500), rows.slice(510)])

    assert engine.plan(dataset, 3, seed=5) == ss.plan(rows, 3, seed=5)


def test_a_plan_looks_into_blocks_from_all_along(ray_cluster):
    """A hundred sorted blocks: those looked into have about the mean of all."""
    blocks = [pa.table({"x": np.arange(200.0) + 200 * i}) for i in range(100)]
    dataset = ray_cluster.data.from_arrow(blocks)

    first, again = engine.plan(dataset, 3), engine.plan(dataset, 3)

    assert first == again
    assert first.center[0] == pytest.approx(10_000, rel=0.05)
