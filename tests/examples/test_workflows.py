"""The hooks of examples/workflows, with the real packages: `make test-workflows` brings them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss

pytestmark = pytest.mark.workflows
WORKFLOWS = Path(__file__).parents[2] / "examples" / "workflows"
PATIENCE = 300


def need(package: str) -> None:
    if find_spec(package) is None:
        pytest.skip(f"no package {package} here: `make test-workflows`")


def run(*words: str, folder: Path, **variables: str) -> str:
    """What a program prints that must not fail; in a process of its own, with its own warnings."""
    environment = os.environ | {"DAGSTER_HOME": str(folder), "NO_COLOR": "1"} | variables
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_days_of_dagster_add_up_whatever_was_run_again(tmp_path):
    need("dagster")

    run(sys.executable, str(WORKFLOWS / "dagster_assets.py"), str(tmp_path), folder=tmp_path)

    check_three_days(ss.load(tmp_path / "week_sketch" / "all.sketch"))


def check_three_days(found: ss.Sketch) -> None:
    days = ["20261116", "20261117", "20261118"]
    rows = [np.random.default_rng(int(day)).normal(size=(1000, 2)) for day in days]
    assert found == ss.sketch(np.concatenate(rows), found.spec)


def test_days_of_airflow_add_up_whatever_was_run_again(tmp_path):
    need("airflow")

    (tmp_path / "dags").mkdir()
    script = shutil.copy(WORKFLOWS / "airflow_dag.py", tmp_path / "dags")
    home = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    home["SKETCHES"] = str(tmp_path)
    program = str(Path(sys.executable).with_name("airflow"))
    run(program, "db", "migrate", folder=tmp_path, **home)
    run(sys.executable, script, folder=tmp_path, **home)

    check_three_days(ss.load(tmp_path / "all.sketch"))


def test_a_sketch_comes_back_from_mlflow_as_it_was_logged(tmp_path):
    need("mlflow")

    script = str(WORKFLOWS / "mlflow_artifact.py")
    lines = run(sys.executable, script, str(tmp_path), folder=tmp_path).splitlines()

    assert lines[0] == "usual day differs: False"
    assert lines[1] == "moved day differs: True"
    assert lines[2].startswith("loaded as it was logged: True")
    pages = list(tmp_path.rglob("rows.html"))
    assert len(pages) == 1
    assert pages[0].read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_models_of_dbt_sketch_rows_and_merge_in_sql(tmp_path):
    need("dbt")
    import duckdb

    database = tmp_path / "shops.duckdb"
    project = str(WORKFLOWS / "dbt")
    words = [str(Path(sys.executable).with_name("dbt")), "run", "--project-dir", project]
    words += ["--profiles-dir", project, "--target-path", str(tmp_path / "target")]
    words += ["--log-path", str(tmp_path / "logs")]
    variables = {"SHOPS_DUCKDB": str(database), "PYTHONPATH": f"{project}:{import_path()}"}
    run(*words, folder=tmp_path, **variables)

    with duckdb.connect(str(database)) as connection:
        rows = connection.sql("select * from events where day <= 5").to_arrow_table()
        merged = connection.sql("select shop, sketch from shop_sketches").fetchall()
    spec = ss.Sketch.from_bytes(merged[0][1]).spec
    expected = ss.sketch_by(rows, "shop", spec)
    assert {shop for shop, _ in merged} == {"north", "south"}
    for shop, stored in merged:
        assert ss.Sketch.from_bytes(stored) == expected[shop]


def import_path() -> str:
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH")]))
