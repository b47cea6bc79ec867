"""One small Dask cluster for all tests, and Parquet files of several sizes and types.

Workers are processes of their own: whatever travels is pickled.
"""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss

COLUMNS = ("height", "weight", "age")
TIME_KEYS = {
    "times as they are": ["at", "local", "date"],
    "all units": [
        "year(date)",
        "quarter(at)",
        "month(local)",
        "week(at)",
        "day(at)",
        "hour(at)",
        "minute(local)",
    ],
    "a unit and a text": ["month(date)", "shop"],
}


def pytest_generate_tests(metafunc):
    """Tests that take ``time_key`` run for each of the keys above."""
    if "time_key" in metafunc.fixturenames:
        metafunc.parametrize("time_key", TIME_KEYS.values(), ids=TIME_KEYS)


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
def folder(tmp_path_factory):
    """Three files with 20 000, 100 and 9 900 rows of three clusters; one column is text."""
    folder = tmp_path_factory.mktemp("engines") / "parts"
    folder.mkdir()
    rng = np.random.default_rng(0)
    centers = 5 * rng.normal(size=(3, 3))
    values = centers[rng.integers(3, size=30_000)] + rng.normal(size=(30_000, 3))
    table = pa.table(
        {
            "name": ["x"] * len(values),
            **dict(zip(COLUMNS[::-1], values.T, strict=True)),
            "w": rng.integers(0, 4, size=len(values)).astype(np.float64),
        }
    )
    for i, (first, last) in enumerate([(0, 20_000), (20_000, 20_100), (20_100, 30_000)]):
        part = table.slice(first, last - first)
        pq.write_table(part, folder / f"part-{i}.parquet", row_group_size=3000)
    return folder


@pytest.fixture(scope="session")
def spec(folder) -> ss.SketchSpec:
    return ss.plan(folder, n_clusters=3, columns=COLUMNS)


@pytest.fixture(scope="session")
def expected(folder, spec) -> ss.Sketch:
    """The reference of every engine: one thread of one process."""
    return ss.sketch(folder, spec, n_threads=1)


@pytest.fixture(scope="session")
def shops(tmp_path_factory):
    """Three files of 10 000 rows: a day, a shop that may be missing, float32 x and y, a weight."""
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
def shops_spec() -> ss.SketchSpec:
    return ss.SketchSpec(n_features=2, sketch_size=60, bandwidth=0.7, columns=("x", "y"))


@pytest.fixture(scope="session")
def shops_sketch(shops, shops_spec) -> ss.Sketch:
    """The reference: one thread of one process."""
    return ss.sketch(shops, shops_spec, n_threads=1)


@pytest.fixture(scope="session")
def decimals(tmp_path_factory):
    """A file of decimals, x and w; Arrow's own cast to floats is off for hundreds of them."""
    path = tmp_path_factory.mktemp("decimals") / "rows.parquet"
    numbers = np.random.default_rng(0).integers(100_000, 1_000_000, 2000)
    column = pa.array([Decimal(int(n)).scaleb(-3) for n in numbers], pa.decimal128(12, 3))
    pq.write_table(pa.table({"x": column, "w": column}), path)
    return path


@pytest.fixture(scope="session")
def decimals_spec() -> ss.SketchSpec:
    """So narrow that the last bit of a row is seen in the sums."""
    return ss.SketchSpec(n_features=1, sketch_size=20, bandwidth=0.01, columns=("x",))


@pytest.fixture(scope="session")
def decimals_sketch(decimals, decimals_spec) -> ss.Sketch:
    """Of the floats that Python reads."""
    rows = np.array([float(number) for number in pq.read_table(decimals)["x"].to_pylist()])
    return ss.sketch(rows[:, None], decimals_spec, sample_weight=rows, n_threads=1)
