"""Cells: where a plan puts their centers, and definitions of them that are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sketchshift.errors import SpecError
from sketchshift.features import Cells, SketchSpec
from sketchshift.features.cells import plan_cells
from sketchshift.kernels import select
from sketchshift.kernels.cpu import CpuKernel
from sketchshift.kernels.cpu.library import variants

CELLS = Cells.of(np.random.default_rng(7).normal(size=(20, 3)), unit=0.25)


def test_planned_cells_are_the_same_on_every_machine(monkeypatch, rng):
    X = rng.standard_t(2, size=(3000, 4)) / 4
    found = set()
    for kernel in map(CpuKernel, variants().values()):
        monkeypatch.setattr(select, "_load_fastest", lambda kernel=kernel: kernel)
        for n in (1, 30, 400):
            found.add(plan_cells(X, n, weights=np.arange(1.0, 3001.0), seed=3))

    assert sorted(cells.n_cells for cells in found) == [1, 30, 400]


def test_of_few_different_rows_there_are_no_more_cells():
    found = plan_cells(np.repeat(np.eye(3), 50, axis=0), 10).table

    assert sorted(found.tolist()) == sorted(np.eye(3).tolist())


def test_values_that_repeat_have_groups_of_cells_of_their_own(rng):
    rows = rng.normal(size=(2000, 2))
    assert plan_cells(rows, 20, splits_values=True) == plan_cells(rows, 20)

    rows[::2, 0] = 5.0
    whole, split = plan_cells(rows, 20), plan_cells(rows, 20, splits_values=True)

    assert (whole.starts, whole.middles) == ((0,), b"")
    assert split.starts == (0, 10)
    places = np.frombuffer(split.middles, "<f4").reshape(2, 2)
    assert_allclose(places, [[4.99, 0.0], [5.0, 0.0]], rtol=1e-6)
    assert (split.table[10:, 0] == 5.0).all()


def test_cells_that_make_no_sense_are_refused():
    for change, message in (
        ({"centers": np.zeros((3, 2))}, "bytes"),
        ({"unit": 3.0}, "a power of two"),
        ({"starts": (0, 5, 5)}, "rising from 0"),
        ({"starts": (1,)}, "rising from 0"),
        ({"probes": 2}, "probes"),
        ({"n_features": 7}, "centers"),
    ):
        with pytest.raises(SpecError, match=message):
            Cells(**{"centers": CELLS.centers, "n_features": 3} | change)
    with pytest.raises(SpecError, match="made for 2 columns"):
        SketchSpec(2, 10, bandwidth=1.0).replaced(cells=CELLS)


def test_centers_in_letters_that_base64_has_not_are_refused():
    text = SketchSpec(3, 10, bandwidth=1.0).replaced(cells=CELLS).to_json()
    content = json.loads(text)
    content["cells"]["centers"] = "!" + content["cells"]["centers"]

    assert SketchSpec.from_json(text).cells == CELLS
    with pytest.raises(SpecError, match="numbers in base64"):
        SketchSpec.from_json(json.dumps(content))
