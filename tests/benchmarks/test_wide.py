from __future__ import annotations

import json

import numpy as np
import pytest
from wide import datasets
from wide.__main__ import Run, Store, do, table
from wide.methods import METHODS, Problem, mse


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A small set in a folder of its own: ten clusters of 40 columns."""
    rng = np.random.default_rng(0)
    labels = rng.integers(10, size=3000)
    rows = 3.0 * rng.normal(size=(10, 40))[labels] + rng.normal(size=(3000, 40))
    monkeypatch.setenv("SKETCHSHIFT_WIDE", str(tmp_path))
    monkeypatch.setitem(datasets.MAKERS, "small", lambda: iter(np.array_split(rows, 7)))
    return datasets.path_of("small")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_clusters_that_lie_apart(method, path):
    found = METHODS[method](Problem(path, 10, n_bytes=200_000))

    assert found.centroids.shape == (10, 40)
    assert mse(np.load(path), found.centroids) < 42.0  # 40 of the noise, and more if one is missed


def test_a_run_tells_error_seconds_memory_and_bytes(path):
    facts = do("small", 10, "fresh", "ours")

    assert facts["mse"] == pytest.approx(40.0, rel=0.05)
    assert facts["peak_mb"] > 10
    assert facts["bytes"] > 1000


def test_finished_runs_are_kept_and_failed_ones_are_run_again(tmp_path):
    done, failed = Run("mnist", 10, "fresh", "ours"), Run("mnist", 10, "stale", "ours")
    store = Store(tmp_path)
    store.add(done, {"mse": 1.0, "bytes": 77})
    store.add(failed, {"failed": "MemoryError"})

    again = Store(tmp_path)
    assert done in again
    assert failed not in again
    assert again.n_bytes(Run("mnist", 10, "none", "sample")) == 77
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 2
    assert json.loads((tmp_path / "runs.jsonl").read_text().splitlines()[0])["mse"] == 1.0


def test_the_table_compares_with_the_best_reference():
    common = {"dataset": "mnist", "k": 10, "seconds": 2.0, "peak_mb": 99}
    common |= {"date": "2026-11-16", "machine": "a machine"}
    rows = [
        common | {"method": "k-means", "plan": "none", "seed": 0, "mse": 2.0},
        common | {"method": "k-means", "plan": "none", "seed": 1, "mse": 4.0},
        common | {"method": "ours", "plan": "fresh", "seed": 0, "mse": 2.02},
    ]

    text = table(rows)

    assert "| ours | 1.0100, 2.0 s, 99 MB |" in text
    assert "| k-means of all rows, one run | 2.0000, 2.0 s, 99 MB |" in text
