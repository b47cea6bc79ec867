"""Merging in SQL
==============

Stored sketches merge inside DuckDB, which needs one function for it.

The table has the columns of the key, ``count`` and ``sketch``, as ``SketchTable.to_parquet``
writes it; other engines of SQL do the same with a function of their own. Saves a picture of two
shops, each merged from five days.

Run it::

    python examples/10_merge_in_sql.py [folder]
"""

import sys
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift import view

SHOPS = np.array(["north", "south"])
MEANS = np.array([[[0, 0], [4, 1], [1, 4]], [[0, 0], [4, 1], [5, 5]]])  # three in each shop


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
    day, shop, kind = (rng.integers(n, size=50_000) for n in (7, 2, 3))
    X = MEANS[shop, kind] + 0.5 * rng.normal(size=(50_000, 2))
    return pa.table({"day": day + 1, "shop": SHOPS[shop], "x": X[:, 0], "y": X[:, 1]})


def main() -> None:
    """Store a week of sketches, and merge five days of each shop."""
    data = events()
    plan = ss.plan(data.select(["x", "y"]), n_clusters=5)
    folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
    path = folder / "week.parquet"
    ss.sketch_by(data, by=["day", "shop"], spec=plan).to_parquet(path)

    by_shop = connect().sql(f"""
        SELECT shop, sum(count) AS n_rows, merge_sketches(list(sketch)) AS sketch
        FROM '{path}'
        WHERE day <= 5
        GROUP BY shop
        ORDER BY shop
    """)
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    for ax, (shop, n_rows, stored) in zip(figure.subplots(1, 2), by_shop.fetchall(), strict=True):
        sketch = ss.Sketch.from_bytes(stored)
        rows = data.filter((pa.compute.field("day") <= 5) & (pa.compute.field("shop") == shop))
        assert sketch == ss.sketch(rows, plan)  # as if these rows alone had been read
        print(f"{shop}: {n_rows} rows from five days, {sketch.nbytes} bytes")
        view.plot_centroids(sketch, ss.decode(sketch, n_clusters=3), ax)
        ax.set_title(f"{shop}, five days: {n_rows:,} rows")
    figure.savefig(folder / "merge_in_sql.png", dpi=120)
    print(f"the picture: {folder / 'merge_in_sql.png'}")


if __name__ == "__main__":
    main()
