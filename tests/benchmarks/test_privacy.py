from __future__ import annotations

import math

import pytest
from privacy.data import Rows
from privacy.methods import METHODS, dp_lloyd
from privacy.report import write_report

import sketchshift as ss
from sketchshift.data import datasets


@pytest.fixture
def data():
    X, _ = datasets.gaussian_mixture(20_000, 2, 10, cluster_std=0.03, seed=1)
    spread = math.sqrt(X.var(axis=0).sum())
    return Rows(X, X.mean(axis=0), spread, ss.metrics.mse(X, ss.metrics.lloyd(X, 10)))


def test_dp_lloyd_with_hardly_any_noise_is_lloyd_from_the_same_start(data):
    """One start in a sample: local minima of its own, but far better than the sample's rows."""
    found = [dp_lloyd(10, 4.0)(data, 100.0, seed) for seed in range(3)]

    assert min(ss.metrics.mse(data.X, c) for c in found) < 3.0 * data.least


@pytest.mark.parametrize("name", [name for name in METHODS if name.startswith("sketch")])
def test_sketches_are_judged_like_the_others(data, name):
    assert ss.metrics.mse(data.X, METHODS[name](data, 10.0, 0)) < 1.2 * data.least


def lines():
    methods = {name: 2.0 + i for i, name in enumerate(METHODS)} | {"diffprivlib": 9.0}
    return [
        {"dataset": d, "n": 100, "method": m, "epsilon": e, "seed": 0, "rse": rse / e}
        for d in ("a", "b")
        for m, rse in methods.items()
        for e in (1.0, 2.0)
    ]


def test_the_report_shows_the_baseline_at_its_best_setting(tmp_path):
    write_report(lines(), tmp_path)

    assert "| DP-Lloyd | 5.000 / 5.00 | 2.500 / 2.50 |" in (tmp_path / "privacy.md").read_text()
    assert (tmp_path / "privacy.png").stat().st_size > 10_000
