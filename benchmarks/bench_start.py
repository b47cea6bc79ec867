"""What it costs to start: the import, the command, and the first task of a worker.

Run: ``python benchmarks/bench_start.py [--only commands]``. Everything runs in fresh interpreters,
in turns, and the least of several times counts. ``cluster`` reads a CSV of 50,000 rows and stands
beside a script that reads the same file with pandas and runs scikit-learn's k-means; cold means
that Python has compiled no file of this package before. A worker's first task imports what it
needs and sketches a small partition; the bare one adds its rows with NumPy.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import report

import sketchshift

N, D, K = 50_000, 6, 8
SCRIPT = f"""
import sys
import pandas as pd
from sklearn.cluster import KMeans
X = pd.read_csv(sys.argv[1]).to_numpy()
print(KMeans({K}, random_state=0).fit(X).cluster_centers_)
"""
ENVIRONMENT = os.environ | {"PYSPARK_PYTHON": sys.executable}
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)


def write_rows(path: Path) -> None:
    """Eight clusters, as text of six digits."""
    rng = np.random.default_rng(0)
    X = 4.0 * rng.normal(size=(K, D))[rng.integers(K, size=N)] + rng.normal(size=(N, D))
    names = ",".join(f"x{j}" for j in range(D))
    np.savetxt(path, X, fmt="%.6g", delimiter=",", header=names, comments="")


def run(*words: str) -> None:
    """One fresh interpreter."""
    subprocess.run([sys.executable, *words], check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)


def forget_bytecode() -> None:
    """Delete what Python has compiled of this package."""
    for folder in Path(sketchshift.__file__).parent.rglob("__pycache__"):
        shutil.rmtree(folder)


def time_commands(repeats: int) -> dict[str, float]:
    """Least seconds of each command, and ratios."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write_rows(path)
        cluster = ("-m", "sketchshift", "cluster", str(path), "-k", str(K))
        commands = {
            "import numpy": ("-c", "import numpy"),
            "import sketchshift": ("-c", "import sketchshift"),
            "sketchshift --help": ("-m", "sketchshift", "--help"),
            "scikit-learn's script": ("-c", SCRIPT, str(path)),
            "sketchshift cluster, cold": cluster,
            "sketchshift cluster, warm": cluster,
        }
        best = dict.fromkeys(commands, float("inf"))
        for _ in range(repeats):
            for name, words in commands.items():
                if name.endswith("cold"):
                    forget_bytecode()
                start = time.perf_counter()
                run(*words)
                best[name] = min(best[name], time.perf_counter() - start)
    ratios = {
        f"{name} / {other}": best[name] / best[other]
        for name, other in [
            ("import sketchshift", "import numpy"),
            ("sketchshift --help", "import numpy"),
            ("sketchshift cluster, cold", "scikit-learn's script"),
            ("sketchshift cluster, warm", "scikit-learn's script"),
        ]
    }
    return {f"{name} (s)": seconds for name, seconds in best.items()} | ratios


TASKS = {
    "sums of rows": "import numpy as np; np.ones((1000, 6)).sum(axis=0)",
    "a sketch": (
        "import numpy as np, sketchshift as ss; spec = ss.SketchSpec(6, 480, 1.0); "
        "ss.sketch(np.ones((1000, 6)), spec, n_threads=1)"
    ),
}
BEGINNING = """
import sys, time

def task(code):
    import time
    start = time.perf_counter()
    exec(code)
    return time.perf_counter() - start

start = time.perf_counter()
"""
DASK = """
from distributed import Client, LocalCluster
options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
with LocalCluster(**options) as cluster, Client(cluster) as client:
    inside = client.submit(task, sys.argv[1]).result()
    print(time.perf_counter() - start, inside)
"""
SPARK = """
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
session = builder.config("spark.log.level", "ERROR").getOrCreate()
inside = session.sparkContext.parallelize([sys.argv[1]], 1).map(task).collect()[0]
print(time.perf_counter() - start, inside)
"""


def time_workers(driver: str, repeats: int) -> dict[str, float]:
    """Least seconds until a worker is there and has done its first task, and of that task."""
    until, inside = (dict.fromkeys(TASKS, float("inf")) for _ in range(2))
    for _ in range(repeats):
        for name, code in TASKS.items():
            words = [sys.executable, "-c", BEGINNING + driver, code]
            done = subprocess.run(
                words, check=True, env=ENVIRONMENT, capture_output=True, text=True
            )
            both = [float(number) for number in done.stdout.split()[-2:]]
            until[name], inside[name] = min(until[name], both[0]), min(inside[name], both[1])
    return {
        **{f"start and first task, {name} (s)": until[name] for name in TASKS},
        **{f"first task alone, {name} (s)": inside[name] for name in TASKS},
        "start and first task, a sketch / sums": until["a sketch"] / until["sums of rows"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["commands", "dask", "spark"])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    parts: dict[str, Callable[[], dict[str, float]]] = {
        "commands": lambda: time_commands(options.repeats),
        "dask": lambda: time_workers(DASK, options.repeats),
        "spark": lambda: time_workers(SPARK, options.repeats),
    }
    chosen = [options.only] if options.only else list(parts)
    if "spark" in chosen and shutil.which("java") is None:
        print("Spark is left out: there is no Java.", file=sys.stderr)
        chosen.remove("spark")
    titles = {
        "commands": f"Fresh interpreters; {N:,} rows x {D} columns, k = {K}",
        "dask": "The first task of a Dask worker",
        "spark": "The first task of a Spark executor",
    }
    report("start", {titles[part]: parts[part]() for part in chosen})


if __name__ == "__main__":
    main()
