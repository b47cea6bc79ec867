"""A cube of many slices: made, stored, rolled up, beside reading all slices and beside DuckDB.

Slices are of days x 50 countries x 20 products, rows of d = 10 columns around 10 centers, in
Parquet files of ten days each; the plan is the default one for k = 10. DuckDB reads the same files,
and keeps count and averages of the ten columns by the same keys. Seconds of the processor (``cpu``)
leave out what other processes took.

    python benchmarks/bench_cube.py [--days 50] [--rows 10] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import machine, report

import sketchshift as ss

D, COUNTRIES, PRODUCTS, DAYS_A_FILE = 10, 50, 20, 10
BY = ["day", "country", "product"]
COLUMNS = [f"x{i}" for i in range(D)]
ROLL_UPS = {
    "one day": "day = '2024-01-10'",
    "a country's product on all days": "country = 'C07' AND product = 3",
    "ten days": "day BETWEEN '2024-01-05' AND '2024-01-14'",
    "a country": "country = 'C07'",
}


def write_data(folder: Path, days: int, rows: int) -> None:
    """Rows of a day in any order, ten days a file."""
    centers = 3 * np.random.default_rng(0).normal(size=(10, D))
    names = np.array([f"C{i:02d}" for i in range(COUNTRIES)])
    for first in range(0, days, DAYS_A_FILE):
        rng, n = np.random.default_rng(first), COUNTRIES * PRODUCTS * rows
        tables = []
        for day in range(first, min(first + DAYS_A_FILE, days)):
            slices = rng.permutation(np.repeat(np.arange(COUNTRIES * PRODUCTS), rows))
            X = centers[rng.integers(10, size=n)] + rng.normal(size=(n, D))
            keys = {
                "day": np.full(n, np.datetime64("2024-01-01") + day),
                "country": names[slices // PRODUCTS],
                "product": slices % PRODUCTS,
            }
            tables.append(pa.table(keys | dict(zip(COLUMNS, X.T, strict=True))))
        pq.write_table(pa.concat_tables(tables), folder / f"{first:04d}.parquet")


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    clock, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - cpu


def best(work: Callable[[], object], repeats: int = 5) -> tuple[float, float]:
    """The least of both."""
    both = [timed(work) for _ in range(repeats)]
    return min(b[0] for b in both), min(b[1] for b in both)


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def bench_cube(data: Path, path: Path, n_slices: int) -> dict[str, float]:
    """Made and rolled up."""
    spec = ss.plan(data, 10, columns=COLUMNS, seed=0)
    cube = ss.live.Cube.create(path, spec, by=BY)
    clock, cpu = timed(lambda: cube.append_rows(data))
    facts = {"made, s": clock, "made, cpu s": cpu, "made, cpu us a slice": 1e6 * cpu / n_slices}
    facts |= {"on disk, GB": size_of(path) / 1e9, "bytes a slice": size_of(path) / n_slices}
    facts["most memory, GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    clock, cpu = timed(cube.compact)
    facts |= {"put together, s": clock, "put together, cpu s": cpu}
    for name, where in ROLL_UPS.items():
        clock, cpu = best(lambda where=where: ss.live.Cube.open(path).merge(where))
        facts |= {
            f"{name}: opened anew, ms": 1e3 * clock,
            f"{name}: opened anew, cpu ms": 1e3 * cpu,
        }
        clock, cpu = best(lambda where=where: cube.merge(where))
        facts |= {f"{name}: ms": 1e3 * clock, f"{name}: cpu ms": 1e3 * cpu}
    clock, cpu = timed(cube.merge)
    facts |= {"all slices: s": clock, "all slices: cpu s": cpu}
    clock, cpu = timed(lambda: cube.table(by="country"))
    facts |= {"all slices by country: s": clock, "all slices by country: cpu s": cpu}
    return facts


def bench_table(cube: ss.live.Cube, folder: Path) -> dict[str, float]:
    """A thousand slices as a table of sketches, read and merged."""
    path, table = folder / "day.parquet", cube.table(ROLL_UPS["one day"])
    table.save(path)
    clock, cpu = timed(lambda: ss.load(path).merge())
    return {
        "bytes a slice": path.stat().st_size / len(table),
        "ms": 1e3 * clock,
        "cpu ms": 1e3 * cpu,
    }


def bench_duckdb(data: Path, path: Path, n_slices: int) -> dict[str, float]:
    """Averages by the same keys, and of these the same roll-ups."""
    base = duckdb.connect(str(path))
    base.execute("SET threads = 1")
    averages = ", ".join(f"avg({name}) AS {name}" for name in COLUMNS)
    make = (
        f"CREATE TABLE slices AS SELECT day, country, product, count(*) AS n, {averages} "
        f"FROM '{data}/*.parquet' GROUP BY ALL ORDER BY ALL"
    )
    clock, cpu = timed(lambda: base.execute(make))
    base.execute("CHECKPOINT")
    facts = {"made, s": clock, "made, cpu s": cpu, "bytes a slice": path.stat().st_size / n_slices}
    sums = ", ".join(f"sum(n * {name}) / sum(n)" for name in COLUMNS)
    for name, where in ROLL_UPS.items():
        query = f"SELECT sum(n), {sums} FROM slices WHERE {where}"
        clock, cpu = best(lambda query=query: base.execute(query).fetchall())
        facts |= {f"{name}: ms": 1e3 * clock, f"{name}: cpu ms": 1e3 * cpu}
    rows = f"SELECT count(*), {averages} FROM '{data}/*.parquet' WHERE "
    where = ROLL_UPS["one day"]
    clock, cpu = best(lambda: base.execute(rows + where).fetchall(), 2)
    return facts | {
        "of the rows, one day: ms": 1e3 * clock,
        "of the rows, one day: cpu ms": 1e3 * cpu,
    }


def main() -> None:
    """Write the data, time all, remove the data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=50, help="1,000 slices each")
    parser.add_argument("--rows", type=int, default=10, help="of a slice")
    parser.add_argument("--folder", type=Path, help="for data and cube; removed in the end")
    given = parser.parse_args()
    n_slices = given.days * COUNTRIES * PRODUCTS
    folder = Path(tempfile.mkdtemp(prefix="bench-cube-", dir=given.folder))
    try:
        (folder / "data").mkdir()
        write_data(folder / "data", given.days, given.rows)
        results = {"cube": bench_cube(folder / "data", folder / "cube", n_slices)}
        results["table of 1,000 slices"] = bench_table(ss.live.Cube.open(folder / "cube"), folder)
        results["duckdb"] = bench_duckdb(folder / "data", folder / "base.duckdb", n_slices)
        of = {
            "days": given.days,
            "rows a slice": given.rows,
            "data, GB": size_of(folder / "data") / 1e9,
        }
        print(machine())
        report("cube", {f"{n_slices:,} slices": of, **results})
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
