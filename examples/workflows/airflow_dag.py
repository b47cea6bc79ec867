"""Sketches of days by a DAG of Airflow, and their sum.

A run again of a day replaces its file, so that the sum counts every row once. Airflow wants this
script in its folder of DAGs, where it also runs by itself, without a scheduler::

    pip install sketchshift apache-airflow
    airflow db migrate
    cp examples/workflows/airflow_dag.py ~/airflow/dags
    SKETCHES=/tmp/sketches python ~/airflow/dags/airflow_dag.py
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import pendulum
from airflow.sdk import dag, task

import sketchshift as ss

FOLDER = Path(os.environ.get("SKETCHES", tempfile.gettempdir()))
SPEC = ss.SketchSpec(n_features=2, sketch_size=200, bandwidth=0.5, columns=["x", "y"])


def read_rows(day: str) -> np.ndarray:
    """The rows of a day: yours come from a lake or a database."""
    return np.random.default_rng(int(day.replace("-", ""))).normal(size=(1000, 2))


@dag(schedule="@daily", start_date=pendulum.datetime(2026, 11, 16, tz="UTC"), catchup=False)
def sketch_days() -> None:
    """A file for each day, and the sum of all files."""

    @task
    def sketch_day(ds: str | None = None) -> str:
        """A few kilobytes of a day, written whole or not at all; only the path travels on."""
        path = FOLDER / "days" / f"{ds}.sketch"
        path.parent.mkdir(parents=True, exist_ok=True)
        ss.sketch(read_rows(ds), SPEC).save(path)
        return str(path)

    @task
    def add_up(newest: str) -> int:
        """The sketch of all days, without their rows."""
        whole = sum(ss.load(path) for path in sorted(Path(newest).parent.glob("*.sketch")))
        whole.save(FOLDER / "all.sketch")
        return whole.count

    add_up(sketch_day())


days = sketch_days()

if __name__ == "__main__":
    for day in (16, 17, 18, 17):
        days.test(logical_date=pendulum.datetime(2026, 11, day, tz="UTC"))
    print(ss.load(FOLDER / "all.sketch"))
