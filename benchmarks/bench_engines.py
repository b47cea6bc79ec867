"""The cost of engines beside threads of one process, and of k-means engines beside a sketch.

Run: ``python benchmarks/bench_engines.py [--rows 20_000_000] [--only overhead]``; Dask with two
workers of one thread each, in processes of their own. Ratios are of one run, taken in turns, and
the bytes of every sketch are compared. The comparison with Spark MLlib runs where pyspark and
Java are installed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster
from harness import best_of, report

import sketchshift as ss

D, K = 10, 10
FILE_ROWS = 500_000
SEEDS = (0, 1, 2)
COLUMNS = [f"x{j}" for j in range(D)]


def centers() -> np.ndarray:
    return 4.0 * np.random.default_rng(1).normal(size=(K, D))


def write_files(folder: Path, n_rows: int) -> Path:
    """Ten clusters of unlike sizes, float32, half a million rows a file."""
    folder.mkdir()
    shares = np.arange(1, K + 1) / np.arange(1, K + 1).sum()
    for i, first in enumerate(range(0, n_rows, FILE_ROWS)):
        rng = np.random.default_rng([2, i])
        n = min(FILE_ROWS, n_rows - first)
        rows = centers()[rng.choice(K, size=n, p=shares)] + rng.normal(size=(n, D))
        columns = dict(zip(COLUMNS, rows.T.astype(np.float32), strict=True))
        pq.write_table(pa.table(columns), folder / f"{i:04}.parquet", row_group_size=100_000)
    return folder


def serve() -> None:
    """A cluster in a process of its own, so that the driver's memory is the driver's."""
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


@contextmanager
def cluster_client() -> Iterator[Client]:
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        with Client(server.stdout.readline().strip()) as client:
            yield client
        server.stdin.close()


def bytes_sent(client: Client) -> int:
    """What all workers have sent so far, to each other and to the driver."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def processor_seconds(client: Client, run: Callable[[], object]) -> float:
    """What a run costs in the driver and the workers: other load on the machine does not count."""

    def so_far() -> float:
        return time.process_time() + sum(client.run(time.process_time).values())

    start = so_far()
    run()
    return so_far() - start


def overhead(folder: Path, client: Client, repeats: int) -> dict[str, float]:
    """Dask with two workers against two threads, on the same files."""
    spec = ss.plan(folder, n_clusters=K)
    frame = dd.read_parquet(folder)

    def by_dask() -> ss.Sketch:
        return ss.sketch(frame, spec)

    def by_threads() -> ss.Sketch:
        return ss.sketch(folder, spec, n_threads=2)

    assert by_dask() == by_threads()
    sent = bytes_sent(client)
    seconds = best_of({"dask": by_dask, "threads": by_threads}, repeats)
    costs = [processor_seconds(client, run) for run in (by_dask, by_threads)]
    n_runs, n_rows = repeats + 2, by_threads().count
    return {
        "million rows": n_rows / 1e6,
        "partitions": frame.npartitions,
        "two threads, seconds": seconds["threads"],
        "Dask, seconds": seconds["dask"],
        "Dask / two threads": seconds["dask"] / seconds["threads"],
        "Dask / two threads, processor seconds": costs[0] / costs[1],
        "kilobytes sent a run": (bytes_sent(client) - sent) / n_runs / 1e3,
        "kilobytes of a sketch": by_threads().nbytes / 1e3,
    }


def driver_memory(folder: Path, client: Client) -> dict[str, float]:
    """Growth of the driver's peak memory: with ten times the partitions, then with all rows."""
    spec = ss.plan(folder, n_clusters=K)
    few = sorted(folder.iterdir())[:1]
    results: dict[str, float] = {"kilobytes of a sketch": ss.sketch(few, spec).nbytes / 1e3}
    cases = {
        "10 partitions, 1 file (warm-up)": dd.read_parquet(few).repartition(npartitions=10),
        "100 partitions, 1 file": dd.read_parquet(few).repartition(npartitions=100),
        "1000 partitions, 1 file": dd.read_parquet(few).repartition(npartitions=1000),
        "all files": dd.read_parquet(folder),
    }
    peak = _peak_kilobytes()
    for name, frame in cases.items():
        ss.sketch(frame, spec)
        results[f"{name}: growth, kilobytes a partition"] = (
            _peak_kilobytes() - peak
        ) / frame.npartitions
        peak = _peak_kilobytes()
    return results


def _peak_kilobytes() -> float:
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def comparison(folder: Path, client: Client) -> dict[str, dict[str, float]]:
    """Plan, sketch and decode against Spark's k-means with its default settings, by seed."""
    rows = np.concatenate([rows_in(path) for path in sorted(folder.iterdir())])
    reference = ss.metrics.lloyd(rows[:: max(1, len(rows) // 500_000)], K)
    frame = dd.read_parquet(folder)
    sketch_kmeans(frame.partitions[:2], client, seed=0)  # kernels are loaded
    results: dict[str, dict[str, float]] = {}
    for seed in SEEDS:
        centroids, facts = sketch_kmeans(frame, client, seed)
        facts["RSE"] = ss.metrics.rse(rows, centroids, reference)
        results[f"plan + sketch + decode on Dask, seed {seed}"] = facts
    for (centroids, facts), seed in zip(spark_kmeans(folder), SEEDS, strict=False):
        facts["RSE"] = ss.metrics.rse(rows, centroids, reference)
        results[f"Spark MLlib KMeans, defaults, seed {seed}"] = facts
    return results


def sketch_kmeans(
    frame: dd.DataFrame, client: Client, seed: int
) -> tuple[np.ndarray, dict[str, float]]:
    """Centroids and costs of one pass."""
    sent, start = bytes_sent(client), time.perf_counter()
    spec = ss.plan(frame, n_clusters=K, seed=seed)
    planned = time.perf_counter()
    sketch = ss.sketch(frame, spec)
    sketched = time.perf_counter()
    found = ss.decode(sketch, n_clusters=K, seed=seed)
    done = time.perf_counter()
    return found.centroids, {
        "seconds": done - start,
        "of these for the plan": planned - start,
        "of these for the sketch": sketched - planned,
        "of these to decode": done - sketched,
        "passes over the data, most (a plan reads 64 partitions)": 1
        + min(1.0, 64 / frame.npartitions),
        "megabytes sent": (bytes_sent(client) - sent) / 1e6,
    }


def rows_in(path: Path) -> np.ndarray:
    return np.stack([c.to_numpy() for c in pq.read_table(path).columns], axis=1)


def spark_kmeans(folder: Path) -> Iterator[tuple[np.ndarray, dict[str, float]]]:
    """Centroids and costs of Spark's k-means on two cores for each seed; none without Spark."""
    try:
        from pyspark.ml.clustering import KMeans
        from pyspark.ml.feature import VectorAssembler
        from pyspark.sql import SparkSession
    except ImportError:
        return
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "6g")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    assembler = VectorAssembler(inputCols=COLUMNS, outputCol="features")
    frame = assembler.transform(session.read.parquet(str(folder))).select("features")
    KMeans(k=K, maxIter=1, seed=0).fit(frame.limit(10_000))  # classes are loaded
    for seed in SEEDS:
        before, start = {number for number, _, _ in _stages(session)}, time.perf_counter()
        model = KMeans(k=K, seed=seed).fit(frame)
        seconds = time.perf_counter() - start
        stages = [stage for stage in _stages(session) if stage[0] not in before]
        yield (
            np.array(model.clusterCenters()),
            {
                "seconds": seconds,
                "iterations": model.summary.numIter,
                "passes over the data (stages that read rows)": sum(r > 0 for _, r, _ in stages),
                "megabytes shuffled": sum(shuffled for _, _, shuffled in stages) / 1e6,
            },
        )
    session.stop()


def _stages(session: Any) -> list[tuple[int, int, int]]:
    """Number, records read and bytes shuffled of each stage so far, as Spark's own page has it."""
    context = session.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with build_opener(ProxyHandler({})).open(address) as page:
        stages = json.load(page)
    return [(s["stageId"], s["inputRecords"], s["shuffleWriteBytes"]) for s in stages]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["overhead", "memory", "comparison"])
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as place, cluster_client() as client:
        if options.only in (None, "memory", "overhead"):
            folder = write_files(Path(place) / "rows", options.rows)
        if options.only in (None, "memory"):
            results["memory of the driver"] = driver_memory(folder, client)
        if options.only in (None, "overhead"):
            results["Dask against threads"] = overhead(folder, client, options.repeats)
        if options.only in (None, "comparison"):
            few = write_files(Path(place) / "fewer", options.rows // 4)
            results |= comparison(few, client)
    report("engines", results)


if __name__ == "__main__":
    main()
