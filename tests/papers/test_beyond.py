"""Beyond the paper: files that run, and predictions against brute force."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from sketchshift import SketchSpec, sketch
from sketchshift_papers.beyond import Hills, density_of_maxima
from sketchshift_papers.contenders import Cell, measure
from sketchshift_papers.datasets import make_data
from sketchshift_papers.definition import BEYOND, Contender, DatasetSpec, figure_names, load_figure
from sketchshift_papers.runner import Store, planned, run_figure

NAMES = figure_names(BEYOND)


@pytest.mark.filterwarnings("ignore::sketchshift.errors.PlanWarning")
@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_cell_runs(name, tmp_path):
    """One sketch of the first dataset of the quick grid, of at most 2,000 rows."""
    figure = load_figure(name, BEYOND)
    quick = figure.grids["quick"].thinned(1, 1)
    first = figure.datasets_on(quick)[0]
    kept = [c for c in figure.contenders if c.n_initializations[0] in (None, 10, 60, 100)]
    if name == "running_time":
        kept = [replace(c, options={**c.options, "values": [100, 200]}) for c in kept[:4]]
    small = replace(figure, datasets=(first,), contenders=tuple(kept))
    grid = replace(quick, n_samples=2000, sketch_sizes=quick.sketch_sizes[:1], datasets=())
    rows = run_figure(small, grid, Store(tmp_path / "runs.parquet"))

    assert len(rows) == 1 + len(planned(small, grid))
    assert all(math.isfinite(row.get("rse", 0.0)) for row in rows)


def look(kind, m, seed=0):
    """At the three clusters of figure 1."""
    spec = DatasetSpec("x", "separated", "x", 3, (-1, 1), options={"n_samples": 3000})
    data = make_data(spec)
    z = sketch(data.X, SketchSpec(2, m, 0.1, seed))
    return measure(Contender("x", kind, "x"), 40, Cell(data, z, seed, 1.0))


# Predictions.


def test_maxima_are_as_many_as_is_known():
    """On a line Rice's number, in the plane Longuet-Higgins's, and on high that of Euler."""
    euler = 5.0 * math.exp(-12.5) / (2 * math.pi) ** 1.5

    assert density_of_maxima(-12.0, 1) == pytest.approx(math.sqrt(3) / (2 * math.pi), rel=0.01)
    assert density_of_maxima(-12.0, 2) == pytest.approx(1 / (2 * math.sqrt(3) * math.pi), rel=0.01)
    assert density_of_maxima(5.0, 2) == pytest.approx(euler, rel=0.01)


def test_noise_far_from_the_rows_is_that_of_the_field():
    found = [look("noise", 200, seed) for seed in range(8)]

    for name in ("variance_ratio", "energy_ratio", "maxima_ratio"):
        assert np.mean([f[name] for f in found]) == pytest.approx(1.0, abs=0.15)
    assert np.mean([f["highest_gap"] for f in found]) == pytest.approx(0.0, abs=0.5)


def test_the_error_of_the_curvature_is_that_of_random_frequencies():
    """By drawing frequencies for the exact characteristic function of one Gaussian: no rows."""
    d, std, sigma, m = 3, 0.1, 0.15, 400
    rng = np.random.default_rng(0)
    squares = []
    for _ in range(300):
        W = rng.standard_normal((m, d)) / sigma
        phi = np.exp(-0.5 * std**2 * (W**2).sum(axis=1))
        H = (W.T * phi) @ W / phi.sum()
        squares.append((((std**2 + sigma**2) * H - np.eye(d)) ** 2).sum() / d)
    expected, _ = Hills(d, 1, m, 10**12, sigma, std).curvature()

    assert expected == pytest.approx(np.mean(squares), rel=0.15)


def test_the_condition_says_which_maxima_attract():
    found = look("convergence", 60)

    assert found["agreement"] >= 0.95
    assert found["sharp"] > 0.0
