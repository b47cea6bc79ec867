"""The paper's figures: complete, consistent, and their claims measurable."""

from __future__ import annotations

import re

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.errors import DataError
from sketchshift_papers import contenders
from sketchshift_papers.claims import Outcome, judge
from sketchshift_papers.contenders import LOOKS, Cell, measure, registered_decoders
from sketchshift_papers.datasets import RECIPES, make_data
from sketchshift_papers.definition import (
    BEYOND,
    PAPER,
    SIZES,
    Contender,
    figure_names,
    load_figure,
)
from sketchshift_papers.runner import _references, planned

NAMES = figure_names(PAPER)
MEASURES = [
    "mse",
    "rse",
    "seconds",
    "sketch_seconds",
    "squared_distance",
    "variance",
    "moved",
    "arrived",
    "positive",
    "least",
    "median_norm",
    "norm_at_means",
    "n_maxima",
    "peak_distance",
    "noise",
    "second_distance",
    "left_over",
    "slope",
    "variance_ratio",
    "energy_ratio",
    "maxima_ratio",
    "high_ratio",
    "highest_gap",
    "hidden",
    "hidden_gap",
    "agreement",
    "sharp",
    "sharpest",
    "sharpest_gap",
    "curvature_ratio",
    "curvature_error",
    "covariance_ratio",
    "definite",
]


def test_all_figures_are_there_in_order():
    figures = ["fig1", "fig2", "fig3", "fig4", "fig5a", "fig5b", "fig6", "fig7", "fig8", "fig9"]

    assert [*figures, "fig10"] == NAMES


@pytest.mark.parametrize(
    ("folder", "name", "size"),
    [(PAPER, name, size) for name in NAMES for size in SIZES]
    + [(BEYOND, name, "full") for name in figure_names(BEYOND)],
)
def test_every_claim_can_be_measured_on_the_grid(folder, name, size):
    """With made-up numbers at every point of the grid, no claim is left without a verdict."""
    figure = load_figure(name, folder)
    grid = figure.grids[size]
    dimensions = {dataset.name: dataset.options.get("d", 2) for dataset in figure.datasets}
    rows = [
        row | {"d": dimensions[row["dataset"]]} | dict.fromkeys(MEASURES, 1.0)
        for row in [*_references(figure, grid), *planned(figure, grid)]
    ]

    for verdict in judge(figure, rows):
        said = [verdict.said] * bool(verdict.claim.checks) + list(verdict.also.values())
        assert Outcome.UNMEASURED not in [found.outcome for found in said], verdict.claim.number


@pytest.mark.parametrize("name", NAMES)
def test_names_in_the_files_exist(name):
    figure = load_figure(name, PAPER)

    assert {dataset.kind for dataset in figure.datasets} <= set(RECIPES)
    assert {contender.kind for contender in figure.contenders} <= {
        *registered_decoders(),
        *LOOKS,
        "pycle",
    }
    assert set(figure.grids["quick"].sketch_sizes) <= set(figure.grids["full"].sketch_sizes)


def test_pycle_is_left_out_and_told_where_it_is_not_installed(monkeypatch):
    figure = load_figure("fig1", PAPER)
    monkeypatch.setattr(contenders, "find_spec", lambda name: None)
    rest, says = contenders.without_missing(figure)

    assert {c.name for c in figure.contenders} - {c.name for c in rest.contenders} == {"pycle"}
    assert says == ["CL-OMPR, pycle was left out. It needs: pip install pycle"]


def test_draws_are_other_data_and_each_has_its_own_reference():
    figure = load_figure("fig5a", PAPER)
    first, second = (make_data(figure.datasets[0], 500, draw) for draw in (0, 1))

    assert not np.array_equal(first.X, second.X)
    assert [row["seed"] for row in _references(figure, figure.grids["full"])] == [0, 1, 2, 3, 4]


def test_claims_are_numbered_once():
    numbers = [c.number for name in NAMES for c in load_figure(name, PAPER).claims]

    assert len(set(numbers)) == len(numbers) == 68


def test_the_deviations_are_written_down():
    text = (PAPER / "deviations.md").read_text(encoding="utf-8")

    assert all(f"\n{i}. " in text for i in range(1, 14))


@pytest.mark.parametrize(
    ("entry", "damaged", "message"),
    [
        ("title = ", "name = ", "fig0.toml lacks an entry, or has one too many: 'title'"),
        ("[quick]", "[quick", "fig0.toml is not TOML"),
        ("[[claims.checks]]", "cause = 'luck'", "0.1 has the cause 'luck'. Use one of 'data'"),
    ],
)
def test_a_damaged_file_is_named(paper, entry, damaged, message):
    text = (paper / "fig0.toml").read_text(encoding="utf-8")
    (paper / "fig0.toml").write_text(text.replace(entry, damaged, 1), encoding="utf-8")

    with pytest.raises(DataError, match=re.escape(message)):
        load_figure("fig0", paper)
    with pytest.raises(DataError, match=r"no figure 'fig99'.*There are: fig0"):
        load_figure("fig99", paper)


@pytest.mark.parametrize("name", ["fig1", "fig5a", "fig7", "fig9"])
def test_synthetic_data_lie_in_the_domain_with_their_clusters(name):
    figure = load_figure(name, PAPER)

    for dataset in figure.datasets:
        data = make_data(dataset, 2000)
        again = make_data(dataset, 2000)
        assert np.array_equal(data.X, again.X)
        assert len(data.X) == 2000
        assert len(data.means) == data.n_clusters
        assert data.domain.contains(data.means).all()
        assert data.domain.contains(data.X).mean() > 0.999


@pytest.fixture(scope="module")
def cell():
    figure = load_figure("fig1", PAPER)
    data = make_data(figure.datasets[0], 5000)
    return Cell(data, ss.sketch(data.X, ss.SketchSpec(2, 500, 0.05)), 0, 0.005)


def look(kind, cell, L=50, **options):
    return measure(Contender("x", kind, "x", (L,), options, is_ours=False), L, cell)


def test_maxima_are_counted_and_located(cell):
    found = look("correlation", cell)

    assert found["n_maxima"] >= 3
    assert found["peak_distance"] < 0.05
    assert 0.0 < found["noise"] < 0.2


class FindsNothing:
    """A decoder, and its own fit."""

    def fit(self, sketch, n_clusters, *, seed=0, progress=None):
        return self

    def decode(self, k):
        outcome = ss.decoders.Outcome.FLAT_CORRELATION
        return ss.Decoding(np.empty((0, 2)), np.empty(0), None, 1.0, outcome, ())


def test_a_decoder_that_finds_nothing_has_the_error_of_the_mean(cell):
    ss.decoders.register_decoder("finds-nothing", FindsNothing)

    assert look("finds_nothing", cell, L=None)["mse"] == pytest.approx(
        cell.data.X.var(axis=0).sum()
    )
