"""One Ray of two processors for all tests, and datasets of the same Parquet files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import sketchshift as ss

SRC = Path(ss.__file__).parents[1]
OWN = Path(__file__).parent
SETTINGS = {
    "RAY_worker_niceness": "0",  # at 15, Ray's default, workers starve on a busy machine
    "RAY_idle_worker_killing_time_threshold_ms": "600000",  # a new one takes seconds to import
}
REASONS = {
    "ignore:unclosed:ResourceWarning": "Ray leaves sockets and files to the collector",
    "ignore:.*is deprecated:DeprecationWarning:ray": "Ray warns of options it sets itself",
    "ignore:The inplace keyword": "of pandas 3, which Ray's own code does not know yet",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if OWN in Path(item.path).parents:
            item.add_marker(pytest.mark.engines)
            for warning in REASONS:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def ray_cluster():
    """Two processors, and one GPU by name only: Ray hands it out without looking."""
    ray = pytest.importorskip("ray")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SRC), os.environ.get("PYTHONPATH", "")])
    os.environ.update(SETTINGS)
    ray.init(num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def dataset(ray_cluster, files):
    return ray_cluster.data.read_parquet(str(files), override_num_blocks=4)
