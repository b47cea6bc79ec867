"""Rows of many columns: sums of cells in all columns, squares and waves along a few axes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.errors import DataError, InvalidRowsError, SpecError
from sketchshift.features import Axes, Ball
from sketchshift.features.rows import directions_of

D, K = 48, 5


def draw_rows(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    middles = 4.0 * np.random.default_rng(99).normal(size=(K, D))
    slopes = np.random.default_rng(98).normal(size=(3, D))
    rows = middles[rng.integers(0, K, n)] + rng.normal(size=(n, 3)) @ slopes
    return rows + 0.5 * rng.normal(size=(n, D))


@pytest.fixture(scope="module")
def spec() -> ss.SketchSpec:
    return ss.plan(draw_rows(4000), n_clusters=K)


def find_cells(rows: np.ndarray, spec: ss.SketchSpec) -> np.ndarray:
    """Number of each row's cell: the nearest middle of a group, then the nearest center there."""
    groups = spec.cells.groups
    x = (rows - spec.rows.center_vector) / spec.rows.scale_vector
    chosen = ((x[:, None] - groups.middles) ** 2).sum(axis=2).argmin(axis=1)
    group = np.repeat(np.arange(len(groups.middles)), np.diff(groups.starts))
    squares = ((x[:, None] - groups.centers) ** 2).sum(axis=2)
    return np.where(group == chosen[:, None], squares, np.inf).argmin(axis=1)


def test_many_columns_are_planned_with_axes_and_few_or_scaled_ones_are_not(spec):
    rows = draw_rows(2000)

    assert (spec.axes.n_axes, spec.has_moments, len(spec.cells.starts)) == (10, False, K)
    assert 8 * K <= spec.cells.n_cells <= 12 * K
    assert ss.plan(rows[:, :30], n_clusters=K).axes is None
    assert ss.plan(rows, n_clusters=K, standardize=True).axes is None
    assert ss.plan(rows, n_clusters=K, cells=False).axes is None
    assert ss.plan(rows[::-1], n_clusters=K) == ss.plan(rows, n_clusters=K)
    assert ss.SketchSpec.from_json(spec.to_json()) == spec


def test_axes_hold_nearly_as_much_variance_as_principal_ones(spec):
    x = (draw_rows(4000) - spec.rows.center_vector) / spec.rows.scale_vector
    x -= x.mean(axis=0)
    along = ((x @ spec.axes.table.T.astype(float)) ** 2).sum()
    best = (np.linalg.svd(x, compute_uv=False)[:10] ** 2).sum()

    np.testing.assert_allclose(spec.axes.table @ spec.axes.table.T, np.eye(10), atol=1e-6)
    assert 0.995 * best <= along <= 1.000001 * best


def test_cells_hold_what_numpy_counts_and_sums(spec):
    rows = draw_rows(3000, seed=1)
    x = (rows - spec.rows.center_vector) / spec.rows.scale_vector
    labels = find_cells(rows, spec)
    found = ss.sketch(rows, spec).cells
    J = spec.cells.n_cells

    np.testing.assert_array_equal(found.weights[:J], np.bincount(labels, minlength=J))
    step = found.steps[0]
    for j in np.unique(labels):
        inside = x[labels == j]
        along = inside @ spec.axes.table.T.astype(float)
        np.testing.assert_allclose(found.means[j], inside.mean(axis=0), atol=step)
        np.testing.assert_allclose(
            found.variances[j].sum(), inside.var(axis=0).sum(), atol=30 * step
        )
        np.testing.assert_allclose(found.along[j], along.var(axis=0), atol=30 * step)
    assert ss.sketch(rows, spec).mean == pytest.approx(rows.mean(axis=0), abs=1e-2)


@settings(max_examples=15)
@given(n=st.integers(2, 300), seed=st.integers(0, 2**32 - 1), weighted=st.booleans())
def test_sketches_of_parts_add_up_and_subtract_to_the_byte(spec, n, seed, weighted):
    rng = np.random.default_rng(seed)
    rows = draw_rows(n, seed) * 10.0 ** rng.choice([0, 0, 0, 2, 9], size=(n, 1))
    weights = rng.choice([1.0, 0.5, 3.0, 2.25] if weighted else [1.0], size=n)
    at = rng.integers(1, n)

    whole = ss.sketch(rows, spec, sample_weight=weights)
    first = ss.sketch(rows[:at], spec, sample_weight=weights[:at])
    second = ss.sketch(rows[at:], spec, sample_weight=weights[at:], kernel="reference")

    assert first + second == whole
    assert whole - first == second
    assert ss.Sketch.from_bytes(whole.to_bytes()) == whole


def test_far_rows_are_in_shells_with_their_squares_along_the_axes(spec):
    """The variance within cells and shells, and of their means, add up to that of the rows."""
    rows = draw_rows(1000)
    rows[:200] += 1e4 * np.random.default_rng(5).normal(size=(200, 1))
    found = ss.sketch(rows, spec)
    sums = found.cells + found.outer + found.far

    shares = sums.weights / 1000
    assert shares.sum() == found.total_weight / 1000 == 1.0
    total = ((rows - spec.rows.center_vector) / spec.rows.scale_vector).var(axis=0).sum()
    between = np.square(sums.means - shares @ sums.means).sum(axis=1)
    assert shares @ (between + sums.variances.sum(axis=1)) == pytest.approx(total, rel=1e-3)


@pytest.mark.filterwarnings("ignore::sketchshift.errors.PlanWarning")
def test_the_certificate_is_never_below_the_cost(spec):
    rng = np.random.default_rng(3)
    for seed in range(5):
        rows = draw_rows(500, seed) * 10.0 ** rng.choice([0, 0, 0, 1.5], size=(500, 1))
        sketch = ss.sketch(rows, spec)
        for centroids in (rows[:3], ss.decode(sketch, K).centroids, rng.normal(size=(7, D))):
            assert ss.certify(sketch, centroids).cost_bound >= ss.metrics.mse(rows, centroids)


def test_a_slice_is_small_and_integers_take_the_bytes_they_need(spec):
    sketch = ss.sketch(draw_rows(3000), spec)
    numbers = spec.cells.n_cells * (2 + D + 10)
    payload = len(sketch.to_bytes()) - len(spec.to_json())

    assert payload <= 16 * spec.sketch_size + 4 * numbers + 400


def test_a_spec_that_makes_no_sense_is_refused(spec):
    for change in (
        {"rows": dataclasses.replace(spec.rows, scale=(1.0,) * D)},
        {"rows": dataclasses.replace(spec.rows, onto=Ball("declared", 1.0))},
        {"spread": Axes.of(np.eye(7)[:2])},
    ):
        with pytest.raises(SpecError):
            spec.replaced(**change)
    with pytest.raises(SpecError, match="length 1"):
        Axes.of(2.0 * np.eye(D)[:4])
    assert spec.replaced(spread=Axes.of(np.eye(D)[:4])).n_coordinates == 4


def test_waves_along_axes_alone_cannot_be_decoded(spec):
    sketch = ss.sketch(draw_rows(300), spec.replaced(cells=None))

    with pytest.raises(DataError, match="waves of all columns"):
        ss.decode(sketch, 3)
    with pytest.raises(DataError, match="ClOmpr needs waves of all columns"):
        ss.ClOmpr()(ss.sketch(draw_rows(300), spec), n_clusters=3)


@pytest.mark.parametrize("d", [4, D])
def test_directions_do_not_see_the_lengths_of_rows(d):
    rows = draw_rows(2000)[:, :d]
    lengths = 2.0 ** np.random.default_rng(0).integers(-40, 40, size=(2000, 1))
    spec = ss.plan(rows, n_clusters=3, metric="cosine")
    sketch = ss.sketch(rows, spec)

    assert ss.sketch(rows * lengths, spec) == sketch
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(directions_of(rows), units, rtol=1e-14)
    assert sketch.mean == pytest.approx(units.mean(axis=0), abs=1e-4)


def test_a_row_without_a_direction_is_refused_by_its_number_or_left_out():
    rows = draw_rows(500)
    rows[7], rows[8] = 0.0, 1e-200
    spec = ss.plan(rows, n_clusters=3, metric="cosine", on_invalid="skip")

    for call in (ss.plan, ss.sketch):
        with pytest.raises(InvalidRowsError, match="row 7 of array has no direction"):
            call(rows, n_clusters=3, metric="cosine")
    sketch = ss.sketch(rows, spec, on_invalid="skip")
    others = ss.sketch(np.delete(rows, [7, 8], axis=0), spec)

    assert (sketch.count, sketch.n_invalid) == (498, 2)
    np.testing.assert_array_equal(sketch.z, others.z)
    np.testing.assert_array_equal(sketch.cells.sums, others.cells.sums)


def test_a_sketch_that_keeps_the_weight_alone_says_so():
    spec = ss.SketchSpec(n_features=3, sketch_size=20, bandwidth=1.0).replaced(spread=None)
    sketch = ss.sketch(np.random.default_rng(0).normal(size=(50, 3)), spec)

    assert sketch.moments is None
    assert sketch.total_weight == 50
    for name in ("mean", "variance", "covariance"):
        with pytest.raises(DataError, match=f"this sketch has no {name}"):
            getattr(sketch, name)
