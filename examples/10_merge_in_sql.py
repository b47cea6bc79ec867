"""Sketches stored in a Parquet table, merged by SQL: one function is all that DuckDB needs.

The table has the columns of the key, ``count`` and ``sketch``, as ``SketchTable.to_parquet``
writes it; other engines of SQL do the same with a function of their own.

Run: python examples/10_merge_in_sql.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute

import sketchshift as ss


def merge(sketches: list[bytes]) -> bytes:
    """The bytes of the sketch of all rows."""
    return sum(ss.Sketch.from_bytes(part) for part in sketches).to_bytes()


def connect() -> duckdb.DuckDBPyConnection:
    """A connection that knows ``merge_sketches``."""
    connection = duckdb.connect()
    connection.create_function("merge_sketches", merge, ["BLOB[]"], "BLOB")
    return connection


def events() -> pa.Table:
    """A week of rows with a day, a shop and two numbers."""
    rng = np.random.default_rng(0)
    columns = {"day": rng.integers(1, 8, 50_000), "shop": rng.choice(["north", "south"], 50_000)}
    return pa.table({**columns, "x": rng.normal(size=50_000), "y": rng.normal(size=50_000)})


def main() -> None:
    """Store a week of sketches, and merge five days of each shop."""
    data = events()
    plan = ss.plan(data.select(["x", "y"]), n_clusters=5)
    path = Path(tempfile.mkdtemp()) / "week.parquet"
    ss.sketch_by(data, by=["day", "shop"], spec=plan).to_parquet(path)

    by_shop = connect().sql(f"""
        SELECT shop, sum(count) AS n_rows, merge_sketches(list(sketch)) AS sketch
        FROM '{path}'
        WHERE day <= 5
        GROUP BY shop
        ORDER BY shop
    """)
    for shop, n_rows, stored in by_shop.fetchall():
        sketch = ss.Sketch.from_bytes(stored)
        rows = data.filter((pa.compute.field("day") <= 5) & (pa.compute.field("shop") == shop))
        assert sketch == ss.sketch(rows, plan)  # as if these rows alone had been read
        print(f"{shop}: {n_rows} rows from five days, {sketch.nbytes} bytes")


if __name__ == "__main__":
    main()
