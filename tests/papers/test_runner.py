"""Runs: each is made once, kept, and really computed."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift import decoders
from sketchshift_papers.definition import load_figure
from sketchshift_papers.reproduction import reproduce
from sketchshift_papers.runner import Store, planned, run_figure


@pytest.fixture
def stem(tmp_path):
    return tmp_path / "fig0-quick"


def runs(stem):
    return stem.with_suffix(".parquet")


def n_missing(figure, stem):
    store = Store(runs(stem))
    return sum(row not in store for row in planned(figure, figure.grids["quick"]))


def test_every_run_is_kept_with_where_it_comes_from_and_made_once(tiny, paper, stem, monkeypatch):
    """Runs of an old file are not taken for those of a new one."""
    grid = tiny.grids["quick"]
    reproduce(tiny, grid, stem)
    table = pq.read_table(runs(stem))
    columns = ["figure", "decoder", "m", "sigma", "L", "seed", "mse", "rse", "seconds", "commit"]

    assert table.num_rows == 12 + 1  # and the reference
    assert set(columns) <= set(table.column_names)
    assert set(table["version"].to_pylist()) == {ss.__version__}
    assert set(table["seed"].to_pylist()) == {0, 1}
    assert stem.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    for name in ("measure", "measure_reference"):
        monkeypatch.setattr(f"sketchshift_papers.runner.{name}", None)
    reproduce(tiny, grid, stem)
    assert pq.read_table(runs(stem)).equals(table)
    assert n_missing(tiny, stem) == 0
    text = (paper / "fig0.toml").read_text(encoding="utf-8")
    text = text.replace("L = [5, 20]", 'L = [5, 20]\noptions = { starts = "uniform" }')
    (paper / "fig0.toml").write_text(text, encoding="utf-8")
    assert n_missing(load_figure("fig0", paper), stem) == 8


def test_numbers_are_those_of_the_library(tiny, stem):
    """One run, made by hand."""
    from sketchshift_papers.datasets import make_data

    grid = tiny.grids["quick"]
    store = Store(runs(stem))
    run_figure(tiny, grid, store)
    data = make_data(tiny.datasets[0], 500)
    z = ss.sketch(data.X, ss.SketchSpec(2, 40, 0.3, seed=1))
    found = ss.SketchAndShift(n_initializations=20)(z, 3, domain=data.domain, seed=1)
    where = {"decoder": "algorithm2", "sigma": 0.3, "L": 20, "seed": 1}
    (row,) = (r for r in store.rows if all(r[name] == value for name, value in where.items()))

    assert len(data.X) == 500
    assert row["mse"] == pytest.approx(ss.metrics.mse(data.X, found.centroids), rel=1e-9)
    assert row["rse"] == pytest.approx(
        ss.metrics.rse(data.X, found.centroids, ss.metrics.lloyd(data.X, 3))
    )


def test_another_decoder_gives_other_numbers(tiny, stem, monkeypatch):
    """Nothing in the figures is written down beforehand."""
    grid = tiny.grids["quick"]
    honest = reproduce(tiny, grid, stem)

    class Nonsense:
        def decode(self, k):
            point = np.full((1, 2), 7.0)
            return ss.Decoding(point, np.ones(1), None, 0.0, ss.decoders.Outcome.COMPLETE, ())

    monkeypatch.setattr(decoders.SketchAndShift, "fit", lambda *words, **options: Nonsense())
    fooled = reproduce(tiny, grid, stem, again=True)

    assert honest["claims"][1]["evidence"] != fooled["claims"][1]["evidence"]
    rows = [row for row in Store(runs(stem)).rows if row["decoder"] == "algorithm2"]
    assert min(row["mse"] for row in rows) > 50


def test_it_goes_on_after_an_interruption(tiny, stem, monkeypatch):
    """Interrupted in the sixth run: five are kept, and only the others are made later."""
    from sketchshift_papers import runner

    made = []
    really = runner.measure

    def interrupted(contender, L, cell):
        if len(made) == 5:
            raise KeyboardInterrupt
        made.append((contender.name, L, cell.seed))
        return really(contender, L, cell)

    grid = tiny.grids["quick"]
    monkeypatch.setattr(runner, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tiny, grid, stem)
    assert n_missing(tiny, stem) == 12 - 5

    counts = []
    monkeypatch.setattr(runner, "measure", really)
    facts = reproduce(tiny, grid, stem, progress=lambda *count: counts.append(count))

    assert facts["runs"] == 13
    assert counts == [(n, 12) for n in range(6, 13)]


def test_processes_give_the_numbers_of_one(tiny, tmp_path):
    grid = tiny.grids["quick"].thinned(1, None)
    here, there = Store(tmp_path / "a.parquet"), Store(tmp_path / "b.parquet")
    run_figure(tiny, grid, here, n_jobs=1)
    run_figure(tiny, grid, there, n_jobs=2)

    def errors(store):
        return sorted((str(row["L"]), row["decoder"], row["mse"]) for row in store.rows)

    assert errors(here) == errors(there)


def test_thinning_keeps_the_ends(tiny):
    grid = tiny.grids["full"].thinned(1, 2)

    assert grid.bandwidths == (0.1, 0.3)
    assert grid.thinned(None, 1).bandwidths == (0.1,)
    assert len(planned(tiny, grid)) == 2 * 2 * 3
