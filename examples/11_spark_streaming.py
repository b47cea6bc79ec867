"""A stream of Spark
=================

A stream of Spark becomes a table of sketches for each micro-batch.

Parquet files arrive in a folder; Structured Streaming reads them in micro-batches, and
``foreachBatch`` writes one table of sketches by sensor for each. A batch that Spark hands over
twice, after a fault, replaces its own file, so that no row counts twice. At the end the tables
add up to what one pass over all files gives, byte for byte; clusters are decoded from them, and
a picture is saved. It needs Java and ``pip install "sketchshift[spark]"``, and stops by itself.

Run it::

    python examples/11_spark_streaming.py [folder]
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from pyspark.sql import DataFrame, SparkSession

import sketchshift as ss
from sketchshift import view

folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="sketchshift-"))
N_FILES, ROWS, K = 6, 5_000, 3
MEANS = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
SCHEMA = "sensor string, x double, y double"


def write_files(folder: Path) -> None:
    """What a fleet of sensors leaves behind."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(N_FILES):
        X = MEANS[rng.integers(K, size=ROWS)] + 0.4 * rng.normal(size=(ROWS, 2))
        sensors = rng.choice(["north", "south"], ROWS)
        table = pa.table({"sensor": sensors, "x": X[:, 0], "y": X[:, 1]})
        pq.write_table(table, folder / f"{number}.parquet")


def follow(session: SparkSession, arriving: Path, stored: Path, spec: ss.SketchSpec) -> None:
    """Sketch all that has arrived, two files at a time, and stop."""

    def keep(batch: DataFrame, number: int) -> None:
        if not batch.isEmpty():
            table = ss.sketch_by(batch, "sensor", spec)
            table.save(stored / f"batch-{number:04}.parquet")  # all of it, or nothing
            print(f"batch {number}: {int(table.counts.sum()):,} rows of {len(table)} sensors")

    stream = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2)
    query = (
        stream.parquet(str(arriving))
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", str(stored / "checkpoint"))
        .trigger(availableNow=True)  # leave it out to go on for ever
        .start()
    )
    query.awaitTermination()


with tempfile.TemporaryDirectory(dir=folder) as temporary:
    arriving, stored = Path(temporary) / "arriving", Path(temporary) / "stored"
    stored.mkdir()
    write_files(arriving)
    spec = ss.plan(arriving / "0.parquet", n_clusters=K, columns=["x", "y"])

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need this package, too
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 2)
    session = builder.config(map=settings).getOrCreate()
    follow(session, arriving, stored, spec)
    session.stop()

    tables = [ss.load(path) for path in sorted(stored.glob("*.parquet"))]
    whole = sum(tables).merge()
    print(f"{len(tables)} tables add up to one pass: {whole == ss.sketch(arriving, spec)}")
    decoding = ss.decode(whole, n_clusters=K)
    print("centroids:", np.round(decoding.centroids[np.argsort(decoding.centroids[:, 0])], 2))

figure = Figure(figsize=(7, 4.5), layout="constrained")
view.plot_centroids(whole, decoding, figure.subplots())
figure.savefig(folder / "spark_streaming.png", dpi=120)
print(f"\nthe picture: {folder / 'spark_streaming.png'}")
