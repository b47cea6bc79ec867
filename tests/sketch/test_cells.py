"""Cells and far rows as parts of a sketch: sums against NumPy, what a file of them may hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.features import Axes, Cells

X = np.random.default_rng(7).normal(size=(3000, 3))
SPEC = ss.SketchSpec(3, 40, bandwidth=0.5).replaced(cells=Cells.of(X[:20], unit=0.25))


@pytest.mark.parametrize("weighted", [False, True])
def test_cells_and_shells_know_weight_mean_and_variance_of_their_rows(weighted):
    """By hand: nearest center; of far rows largest offset, its sign and its power of two."""
    rng = np.random.default_rng(1)
    rows = np.vstack([X, rng.normal(size=(400, 3)) * rng.uniform(20, 60, size=(400, 1))])
    weights = rng.uniform(0.2, 3.0, size=3400) if weighted else np.ones(3400)
    spec = ss.plan(X, 4)
    places, J = (rows - spec.rows.center_vector) * spec.rows.per_unit, spec.cells.n_cells
    offsets = places[:, None] - spec.cells.table.astype(float)
    squares = np.square(offsets).sum(axis=2)
    labels, is_out = squares.argmin(axis=1), squares.min(axis=1) > 144.0 * spec.cells.within
    offsets = offsets[np.arange(3400), labels]
    column = np.abs(offsets).argmax(axis=1)
    largest = offsets[np.arange(3400), column]
    keys = np.column_stack([labels, largest < 0, np.frexp(largest)[1], column])
    labels[is_out] = J + np.unique(keys[is_out], axis=0, return_inverse=True)[1].ravel()

    sketch = ss.sketch(rows, spec, sample_weight=weights if weighted else None)

    assert is_out.sum() > 300
    assert not is_out[: len(X)].any()
    np.testing.assert_array_equal(sketch.find_cells(places), labels)
    assert sketch.find_cells(np.array([[300.0, -200.0, 100.0]])) < J  # there is no such shell
    cells = sketch.cells
    np.testing.assert_allclose(cells.weights, np.bincount(labels, weights), rtol=1e-8)
    for i in np.unique(labels):
        own, w = places[labels == i], weights[labels == i]
        mean = w @ own / w.sum()
        variance = w @ np.square(own - mean) / w.sum()
        np.testing.assert_allclose(cells.means[i], mean, rtol=1e-9, atol=1e-6 * (i < J))
        np.testing.assert_allclose(cells.variances[i], variance, rtol=1e-6, atol=1e-6)


def test_rows_without_waves_reach_further():
    alone = SPEC.prefix(0)

    assert alone.reach == 2.0**24 * alone.rows.unit > SPEC.reach
    assert SPEC.reach == 2.0**20 / SPEC.frequencies.largest


@pytest.mark.parametrize("size", [1e3, 1e6, 1e150, 1e300])
def test_far_rows_are_known_and_leave_the_others_as_they_were(size):
    far = np.array([[size, -size / 3, 2.0], [0.0, size * 2, 1.0]])
    whole = ss.sketch(np.vstack([X, far]), SPEC)

    assert (whole.count, whole.total_weight) == (3002, 3002.0)
    found = whole.far if size > SPEC.reach else whole.outer
    assert found.weights.tolist() == [1.0, 1.0]
    np.testing.assert_allclose(found.means, far, rtol=1e-9, atol=size * 1e-10)
    assert not found.variances.any()
    if size > SPEC.reach:
        np.testing.assert_array_equal(whole.mean, ss.sketch(X, SPEC).mean)
    assert whole - ss.sketch(far, SPEC) == ss.sketch(X, SPEC)
    assert ss.Sketch.from_bytes(whole.to_bytes()) == whole


def test_with_axes_the_steps_of_a_far_row_are_those_of_its_length():
    axes, cells = Axes.of(np.eye(2, 48)), Cells.of(np.zeros((1, 48)))
    spec = ss.SketchSpec(48, 10, bandwidth=1.0).replaced(cells=cells, spread=axes)

    far = ss.sketch(np.full((1, 48), 1e9), spec).far

    assert far.steps.tolist() == [2.0 ** (np.frexp(1e9 * np.sqrt(48.0))[1] - 40)]
    np.testing.assert_allclose(far.means, 1e9, rtol=1e-9)


def test_a_number_that_normalisation_cannot_hold_is_refused_by_its_row():
    huge = X.copy()
    huge[5, 0] = 1e306

    with pytest.raises(ss.errors.InvalidRowsError, match=r"row 5 of .* lies too far out"):
        ss.sketch(huge, SPEC.replaced(rows=replace(SPEC.rows, scale=1e-3)))


@pytest.fixture
def far_sketch():
    """Rows in cells and one beyond all reach, whose weights have a fraction."""
    return ss.sketch(np.vstack([X, [[1e9, 0, 0]]]), SPEC, sample_weight=np.full(3001, 0.7))


def test_integers_that_no_rows_left_are_refused(far_sketch):
    totals = far_sketch._totals
    cells, far = (totals.entries[name].digits for name in ("cells", "outliers"))
    partial = totals.dense["partial"]

    for digits, (entry, place), change in (
        *[(cells, (3, 1), 4), (cells, (3, 1), -(2**28))],
        *[(cells, (2, 5), 2**28), (cells, (1, 18), -(2**6))],
        *[(far, (0, 3), 2**14), (far, (0, 19), -(2**14))],
        *[(partial, (0, 0), 1), (partial, (0, 0), -3001), (partial, (0, 0), -3002)],
    ):
        digits[entry, place] += change
        with pytest.raises(ss.errors.SketchFormatError, match="integers are not those of any rows"):
            ss.Sketch.from_bytes(far_sketch.to_bytes())
        digits[entry, place] -= change
    assert ss.Sketch.from_bytes(far_sketch.to_bytes()) == far_sketch


def test_keys_that_no_far_row_has_are_refused(far_sketch):
    names = far_sketch._totals.entries["outliers"].names

    for key in (
        *[(2, -1, 0, 1025, 1), (0, -1, 0, 5, 1), (2, -1, 2, 5, 1), (2, -1, 0, 5, 3)],
        *[(2, 3, 0, 5, 1), (1, 20, 0, 5, 1), (1, -2, 0, 5, 1), (2, -1, 0, -1100, 1)],
    ):
        names[0, 1:] = key
        with pytest.raises(ss.errors.SketchFormatError, match="not written in the canonical way"):
            ss.Sketch.from_bytes(far_sketch.to_bytes())


def test_rows_of_partial_weight_are_counted_and_taken_off_again():
    weights = np.where(np.arange(len(X)) % 5 == 0, 2.5, 3.0)
    whole = ss.sketch(X, SPEC, sample_weight=weights)
    part = ss.sketch(X[:700], SPEC, sample_weight=weights[:700])

    assert (whole.n_partial, part.n_partial, (whole - part).n_partial) == (600, 140, 460)


def test_a_plan_costs_next_to_nothing_in_each_slice_of_a_file(tmp_path):
    rows = np.random.default_rng(0).normal(size=(10_000, 8))
    table = ss.sketch_by(rows, by=np.arange(10_000) // 100, n_clusters=10)
    table.save(tmp_path / "all.parquet")

    integers = sum(len(s.to_bytes()) - len(table.spec.to_json()) for s in table.sketches)
    assert (tmp_path / "all.parquet").stat().st_size < integers
    assert ss.load(tmp_path / "all.parquet") == table
