from __future__ import annotations

import numpy as np
import pytest
from wide import datasets
from wide.__main__ import do
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
