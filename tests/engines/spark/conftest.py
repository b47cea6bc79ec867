"""One Spark for all tests, whose JVM also serves Connect, and frames of the same Parquet files."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift.engines.driver import choose_partitions

SRC = Path(ss.__file__).parents[1]
OWN = Path(__file__).parent
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if OWN in Path(item.path).parents:
            item.add_marker(pytest.mark.engines)
            # Spark 4.3 says so of every pandas 3; nothing here goes through pandas.
            item.add_marker(
                pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
            )
            # Spark leaves its sockets to Python's workers and to the JVM to the collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(scope="session")
def connect_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="session")
def session(connect_port):
    """Two cores, and one more try for a task that fails."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")])
    builder = SparkSession.builder.master("local[2, 2]")
    builder = builder.config("spark.connect.grpc.binding.port", connect_port)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def far_from_utc(session):
    """A session in a zone that is 5:45 ahead: its days and its hours begin at other instants."""
    session.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    yield "Asia/Kathmandu"
    session.conf.set("spark.sql.session.timeZone", SETTINGS["spark.sql.session.timeZone"])


@pytest.fixture(scope="session")
def frame(session, files):
    return session.read.parquet(str(files))


@pytest.fixture(scope="session")
def many_files(tmp_path_factory):
    """Eighty of one row each: more than a plan looks into."""
    folder = tmp_path_factory.mktemp("many") / "files"
    folder.mkdir()
    for i in range(80):
        pq.write_table(pa.table({"id": [i], "x": [float(i)]}), folder / f"{i:02}.parquet")
    return folder


@pytest.fixture(scope="session")
def damaged_files(many_files, tmp_path_factory):
    """The same, but those that a plan leaves out are zeros: a pass over all would fail."""
    folder = shutil.copytree(many_files, tmp_path_factory.mktemp("damaged") / "files")
    paths = sorted(folder.iterdir())
    left_out = set(range(len(paths))) - set(choose_partitions(len(paths), seed=0).tolist())
    for i in left_out:
        paths[i].write_bytes(bytes(paths[i].stat().st_size))
    assert len(left_out) == 16
    return folder
