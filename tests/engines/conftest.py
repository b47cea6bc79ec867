"""One small Dask cluster for all tests, and Parquet files of several sizes and types.

Workers are processes of their own: whatever travels is pickled.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss

TIME_KEYS = (
    ["at", "local", "date"],
    [
        *("year(date)", "quarter(at)", "month(local)", "week(at)"),
        *("day(at)", "hour(at)", "minute(local)"),
    ],
    ["month(date)", "shop"],
)


@pytest.fixture(params=TIME_KEYS, ids=["as they are", "all units", "beside a text"])
def time_key(request):
    return request.param


@pytest.fixture(scope="session")
def cluster():
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit=0
    ) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def connected(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def client(connected):
    """Dask's default client; without it, all is computed in this process."""
    with connected.as_current():
        yield connected


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Three files of 10 000 rows, one of them of one: a day, a shop that may be missing, float32 x and y, a weight."""
    folder = tmp_path_factory.mktemp("shops") / "files"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for i, n in enumerate([6000, 1, 3999]):
        table = pa.table(
            {
                "day": pa.array(rng.integers(0, 4, n), pa.int32()),
                "shop": pa.array(rng.choice(["a", "b", None], n)),
                "x": rng.normal(size=n).astype(np.float32),
                "y": (3 * rng.normal(size=n)).astype(np.float32),
                "w": rng.integers(0, 4, n) / 2,
            }
        )
        pq.write_table(table, folder / f"{i}.parquet", row_group_size=2000)
    return folder


@pytest.fixture(scope="session")
def times(tmp_path_factory):
    """Two files: instants, times without a zone, dates, all of them around New Year; a shop.

    Forty values of each, some missing, some so near midnight that a zone moves them to another
    day, month and year.
    """
    folder = tmp_path_factory.mktemp("times") / "files"
    folder.mkdir()
    rng = np.random.default_rng(0)
    minutes = np.datetime64("2025-12-30T20:10", "us") + 97 * np.arange(40) * np.timedelta64(1, "m")
    days = np.datetime64("2025-12-29", "D") + np.arange(40)
    for i, n in enumerate([900, 300]):
        numbers = rng.integers(0, 40, n)
        table = pa.table(
            {
                "at": pa.array(minutes[numbers], pa.timestamp("us", "UTC"), mask=numbers == 0),
                "local": pa.array(minutes[7 * numbers % 40], mask=numbers == 1),
                "date": pa.array(days[3 * numbers % 40], mask=numbers == 2),
                "shop": rng.choice(["a", "b"], n),
                "x": rng.normal(size=n).astype(np.float32),
                "y": rng.normal(size=n).astype(np.float32),
            }
        )
        pq.write_table(table, folder / f"{i}.parquet", row_group_size=250)
    return folder


@pytest.fixture(scope="session")
def spec() -> ss.SketchSpec:
    return ss.SketchSpec(n_features=2, sketch_size=60, bandwidth=0.7, columns=("x", "y"))


@pytest.fixture(scope="session")
def expected(files, spec) -> ss.Sketch:
    """The reference: one thread of one process."""
    return ss.sketch(files, spec, n_threads=1)
