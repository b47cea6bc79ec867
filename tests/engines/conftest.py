"""One small cluster of each engine for all tests, and Parquet files of several sizes and types.

Workers are processes of their own: whatever travels is pickled.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    # 5:45 ahead of UTC: days and hours begin at other instants
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.log.level": "OFF",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
}
ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "RAY_worker_niceness": "0",  # at 15, Ray's default, workers starve on a busy machine
    "RAY_idle_worker_killing_time_threshold_ms": "600000",  # a new one takes seconds to import
}
WARNINGS = {
    "ignore:The inplace keyword": "of pandas 3, which Dask's and Ray's own code does not know yet",
    "ignore:PySpark does not yet fully support pandas": "nothing here goes through pandas",
    "ignore:unclosed:ResourceWarning": "Spark and Ray leave sockets and files to the collector",
    "ignore:.*is deprecated:DeprecationWarning:ray": "Ray warns of options it sets itself",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for warning in WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def environment():
    """What workers take over from this process."""
    path = os.pathsep.join([str(Path(ss.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    os.environ.update(ENVIRONMENT, PYTHONPATH=path)


@pytest.fixture(scope="session")
def connected():
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with LocalCluster(2, **options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def client(connected):
    """Dask's default client; without it, all is computed in this process."""
    with connected.as_current():
        yield connected


@pytest.fixture(scope="session")
def connect_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="session")
def session(environment, connect_port):
    """Spark on two cores, with one more try for a task that fails; its JVM also serves Connect."""
    builder = pytest.importorskip("pyspark.sql").SparkSession.builder.master("local[2, 2]")
    for name, value in (*SETTINGS.items(), ("spark.connect.grpc.binding.port", connect_port)):
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def ray_cluster(environment):
    """Two processors, and one GPU by name only: Ray hands it out without looking."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Three files of 10 000 rows, one of them of one: keys, float32 x and y, and a weight.

    A key is a day in digits, a shop that may be missing, or one of forty times around New Year:
    instants, times without a zone and dates, some missing, some so near midnight that a zone moves
    them to another day, month and year.
    """
    folder = tmp_path_factory.mktemp("shops") / "files"
    folder.mkdir()
    rng = np.random.default_rng(0)
    minutes = np.datetime64("2025-12-30T20:10", "us") + 97 * np.arange(40) * np.timedelta64(1, "m")
    days = np.datetime64("2025-12-29", "D") + np.arange(40)
    for i, n in enumerate([6000, 1, 3999]):
        numbers = rng.integers(0, 40, n)
        table = pa.table(
            {
                "day": pa.array(rng.integers(0, 4, n), pa.int32()),
                "shop": pa.array(rng.choice(["a", "b", None], n), pa.string()),
                "at": pa.array(minutes[numbers], pa.timestamp("us", "UTC"), mask=numbers == 0),
                "local": pa.array(minutes[7 * numbers % 40], mask=numbers == 1),
                "date": pa.array(days[3 * numbers % 40], mask=numbers == 2),
                "x": rng.normal(size=n).astype(np.float32),
                "y": (3 * rng.normal(size=n)).astype(np.float32),
                "w": rng.integers(0, 4, n) / 2,
            }
        )
        pq.write_table(table, folder / f"{i}.parquet", row_group_size=2000)
    return folder


@pytest.fixture(scope="session")
def spec():
    return ss.SketchSpec(n_features=2, sketch_size=60, bandwidth=0.7, columns=("x", "y"))


@pytest.fixture(scope="session")
def expected(files, spec):
    """The reference: one thread of one process."""
    return ss.sketch(files, spec, n_threads=1)
