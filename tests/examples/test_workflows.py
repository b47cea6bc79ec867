"""The DAG of examples/workflows, with the real Airflow: `make test-workflows` brings it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss

pytestmark = pytest.mark.workflows
SCRIPT = Path(__file__).parents[2] / "examples" / "workflows" / "airflow_dag.py"


def test_days_of_airflow_add_up_whatever_was_run_again(tmp_path):
    pytest.importorskip("airflow", reason="`make test-workflows`")
    (tmp_path / "dags").mkdir()
    script = shutil.copy(SCRIPT, tmp_path / "dags")
    home = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    environment = os.environ | home | {"SKETCHES": str(tmp_path), "NO_COLOR": "1"}
    program = str(Path(sys.executable).with_name("airflow"))

    for words in ([program, "db", "migrate"], [sys.executable, script]):
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr

    found = ss.load(tmp_path / "all.sketch")
    days = ["20261116", "20261117", "20261118"]
    rows = [np.random.default_rng(int(day)).normal(size=(1000, 2)) for day in days]
    assert found == ss.sketch(np.concatenate(rows), found.spec)
