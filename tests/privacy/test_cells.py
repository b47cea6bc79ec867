"""Cells in private releases: what a row adds, how they travel, and what is decoded of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.decoders.noisy_cells import move_to_cells
from sketchshift.errors import SketchFormatError, SpecError
from sketchshift.features import Ball, Cells, Rows, Waves
from sketchshift.features.rows import unit_for
from sketchshift.kernels import BITS
from sketchshift.privacy.release import cell_factor
from sketchshift.sketch.clipped import ClippedFamily, NoisyCells
from sketchshift.sketch.digits import into_digits

CENTERS = np.random.default_rng(3).normal(size=(12, 3)).round(3)
CELLS = Cells.of([*CENTERS, CENTERS[0], CENTERS[1] + [0.001, 0.0, 0.0]], unit=0.25)
SPEC = ss.SketchSpec.of(Rows(3, unit=0.25, onto=Ball("public", 5.0)), Waves(20, 0.5), cells=CELLS)


def spec_of(d, n_cells):
    centers = np.random.default_rng(d).normal(size=(n_cells, d))
    cells = Cells.of(centers, unit=1.0)
    return ss.SketchSpec.of(
        Rows(d, unit=unit_for(0.5, d), onto=Ball("declared", 50.0)), Waves(5, 0.5), cells=cells
    )


# What one row adds.


@pytest.mark.parametrize("d", [1, 3, 64, 300])
def test_rows_at_all_kinds_of_places_stay_within_the_bound_of_cells(d, rng):
    """At centers, at radii and a few floats off them, in all directions, inside and far outside."""
    part, n = ClippedFamily(spec_of(d, 1 if d == 64 else 9)), 100_000 // d
    labels = rng.integers(0, part.full_shape[0], n)
    ways = rng.normal(size=(n, d)) * rng.choice([0.0, 1.0], size=(n, d), p=[0.3, 0.7])
    ways /= np.maximum(np.linalg.norm(ways, axis=1), 1e-300)[:, None]
    near = 1.0 + rng.integers(-8, 9, n) * 2.0**-52
    lengths = rng.choice([0.0, 1e-300, 1e-8, 0.3, 1.0, 1.5, 1e6], n) * near
    rows = part._cells.table[labels] + ways * (part.radii[labels] * lengths)[:, None]

    added = part.clip(rows, labels).astype(np.int64).astype(object)

    assert (added[:, 0] == 2**BITS).all()
    assert part.row_square >= max((added**2).sum(axis=1)) > 0.9999 * part.row_square


def test_the_radius_of_a_cell_is_the_distance_to_the_nearest_other_center():
    table = CELLS.table.astype(np.float64)
    off = np.linalg.norm(table[:, None] - table, axis=2)
    off[off == 0.0] = np.inf  # two cells are at one place

    assert_allclose(ClippedFamily(SPEC).radii, off.min(axis=1), rtol=1e-12)
    assert ClippedFamily(spec_of(2, 1)).radii == [100.0]  # the ball is all there is


# Sketches with private cells are exact.


def test_without_noise_a_release_tells_the_clipped_sums_of_the_rows(rng, release, no_noise):
    X = np.clip(rng.normal(size=(4000, 3)), -2.5, 2.5)  # inside of the ball
    released = release(ss.sketch(X, SPEC))
    told, table = released.cells, CELLS.table.astype(np.float64)
    labels = np.square(X[:, None] - table).sum(axis=2).argmin(axis=1)
    offsets = X - table[labels]
    lengths = np.linalg.norm(offsets, axis=1)
    offsets *= np.minimum(1.0, told.radii[labels] / lengths)[:, None]
    own = labels == np.arange(CELLS.n_cells)[:, None]

    assert told.weights.tolist() == own.sum(axis=1).tolist()
    assert_allclose(told.sums, own @ offsets, atol=1e-3)
    assert_allclose(told.squares, own @ np.square(offsets).sum(axis=1), atol=1e-3)
    std = released._totals.scale / (cell_factor(SPEC) * 2**BITS)
    assert_allclose(told.weight_std, std)
    assert_allclose(told.sum_std, std * told.radii)
    assert_allclose(told.square_std, 2.0 * std * told.radii**2)


def test_integers_of_clipped_cells_that_no_rows_leave_are_refused(rng):
    """A cell of n rows has offsets of n + rounding and half as large squares at most."""
    raw = ss.sketch(rng.normal(size=(200, 3)), SPEC)
    entries = raw._totals.entries["clipped"]
    at_cell = int(np.flatnonzero(entries.names[:, 1] == 3)[0])
    good = raw._totals.integers("clipped")[3]
    n = int(good[0])

    def put(numbers):
        entries.digits[at_cell] = into_digits(np.array([numbers], dtype=np.int64))[0]

    most = n + (n >> BITS)
    for at, number in ((0, n + 2**BITS), (1, most + 1), (2, -most - 1), (-1, -1), (-1, n // 2 + 1)):
        wrong = good.copy()
        wrong[at] = number
        put(wrong)
        with pytest.raises(SketchFormatError, match="not those of any rows"):
            ss.Sketch.from_bytes(raw.to_bytes())
    put([n, most, -most, 0, n // 2])
    assert ss.Sketch.from_bytes(raw.to_bytes()) == raw


# Refusals.


def test_a_private_spec_has_waves_and_few_cells():
    many = Cells.of(np.arange(5000.0)[:, None] + [0.0, 0.0, 0.0], unit=16.0)
    with pytest.raises(SpecError, match="waves beside them: here are 14 cells and 0 "):
        SPEC.prefix(0)
    with pytest.raises(SpecError, match="at most 4096 cells"):
        SPEC.replaced(cells=many)


def test_a_ball_beyond_the_reach_of_cells_is_refused_before_any_row():
    with pytest.raises(SpecError, match=r"declared radius is 600 .* reach 512 times"):
        ss.Sketcher(
            SPEC.replaced(
                rows=Rows(3, unit=unit_for(50.0, 3), onto=Ball("public", 600.0)),
                waves=Waves(20, 50.0),
            )
        )


# Plans.


def test_a_public_plan_is_the_turnkey_plan_with_more_waves_and_five_cells_a_cluster(rng):
    """Of cells there is one for 20 rows at most."""
    rows = rng.normal(size=(2000, 4))
    spec, small = (ss.privacy.plan_public(rows[:n], 3) for n in (2000, 100))
    turnkey = ss.plan(rows, 3)

    assert (spec.cells.n_cells, small.cells.n_cells, spec.sketch_size) == (15, 5, 200)
    assert ss.privacy.plan_public(rows[:10], 3).cells is None
    assert ss.privacy.plan_public(rows, 8, cells=False).sketch_size == 10 * 8 * 4
    assert spec.replaced(cells=None) == ss.privacy.plan_public(rows, 3, cells=False)
    waves = turnkey.replaced(waves=replace(turnkey.waves, size=200), cells=None, rows=spec.rows)
    assert spec.replaced(cells=None) == waves
    assert spec.rows.ball.kind == "public"


# Decoding.


def noisy(weights, sums, squares, noise):
    centers, ones = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.ones(2)
    told = (np.asarray(a, dtype=np.float64) for a in (weights, sums, squares))
    return NoisyCells(*told, centers, 2.0 * ones, noise * ones, 2 * noise * ones, 4 * noise * ones)


def two_groups(rng):
    """Points of two cells, for 600 rows each."""
    cells = Cells.of([[-1.0, 0.0], [1.0, 0.0]])
    places = np.repeat(cells.table.astype(np.float64), 300, axis=0)
    return cells, places + 0.1 * rng.normal(size=places.shape), np.full(600, 2.0)


def test_points_take_on_what_cells_tell_without_noise_and_else_stay(rng):
    cells, places, weights = two_groups(rng)
    numbers = [900, 300], [[90, 0], [0, 60]], [900 * 0.05, 300 * 0.08]

    moved, rows = move_to_cells(places, weights, cells, noisy(*numbers, 1e-6))

    left = moved[:300]
    assert rows[:300].sum() == pytest.approx(900.0)
    assert_allclose(left.mean(axis=0), [-0.9, 0.0], atol=1e-3)
    assert left.var(axis=0).sum() == pytest.approx(0.05 - 0.01, rel=1e-3)
    for found, given in zip(
        move_to_cells(places, weights, cells, noisy(*numbers, 1e6)), (places, weights), strict=True
    ):
        assert_allclose(found, given)


def test_a_cell_without_points_gets_one_if_its_rows_are_more_than_noise(rng):
    cells, places, weights = two_groups(rng)
    for n, added in ((3, 0), (600, 1)):
        told = noisy([600, n], [[0, 0], [0.1 * n, 0]], [12, 0], 1.0)
        moved, rows = move_to_cells(places[:300], weights[:300], cells, told)
        assert len(moved) == 300 + added
    assert_allclose(moved[-1], [1.1, 0.0])
    assert rows[-1] == 600
