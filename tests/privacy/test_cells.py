"""Cells in private releases: what a row adds, how they travel, and what is decoded of them."""

from __future__ import annotations

import json
import pickle
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.data import datasets
from sketchshift.decoders.noisy_cells import move_to_cells
from sketchshift.features import Cells, Origin
from sketchshift.kernels import BITS
from sketchshift.privacy import PrivateSketch
from sketchshift.privacy.release import (
    cell_factor,
    count_factor,
    release_vector,
    sensitivity,
)
from sketchshift.sketch.cells import ClippedPart, NoisyCells
from sketchshift.sketch.file import PRIVATE_MAGIC, pack, unpack

CENTERS = np.random.default_rng(3).normal(size=(12, 3)).round(3)
CELLS = Cells.of([*CENTERS, CENTERS[0], CENTERS[1] + [0.001, 0.0, 0.0]], unit=0.25)
SPEC = ss.SketchSpec(3, 20, bandwidth=0.5, origin=Origin("public", 5.0), cells=CELLS)
NUMBERS = st.one_of(
    st.floats(-2, 2),
    st.floats(-1e300, 1e300),
    st.floats(-1e-30, 1e-30),
    st.sampled_from([np.nan, np.inf, *CENTERS[0].tolist(), *CENTERS[1].tolist()]),
)


def spec_of(d: int, n_cells: int, sketch_size: int = 5) -> ss.SketchSpec:
    centers = np.random.default_rng(d).normal(size=(n_cells, d))
    cells = Cells.of(centers, unit=1.0)
    return ss.SketchSpec(d, sketch_size, 0.5, origin=Origin("declared", 50.0), cells=cells)


# What one row adds.


@settings(deadline=None, max_examples=150)
@given(st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_no_row_adds_more_than_the_sensitivity(row):
    """Huge, tiny, not finite, at a center, between two of them: exact integers, no tolerance."""
    added = release_vector(ss.sketch(np.array([row]), SPEC))

    assert sum(int(v) ** 2 for v in added) <= sensitivity(SPEC) ** 2


@pytest.mark.parametrize("d", [1, 2, 3, 10, 64, 300])
def test_rows_at_all_kinds_of_places_stay_within_the_bound_of_cells(d, rng):
    """At centers, at radii and a few floats off them, in all directions, inside and far outside."""
    spec = spec_of(d, 1 if d == 64 else 9)
    part, n = ClippedPart(spec), 100_000 // d
    labels = rng.integers(0, part.shape[0], n)
    ways = rng.normal(size=(n, d)) * rng.choice([0.0, 1.0], size=(n, d), p=[0.3, 0.7])
    ways /= np.maximum(np.linalg.norm(ways, axis=1), 1e-300)[:, None]
    near = 1.0 + rng.integers(-8, 9, n) * 2.0**-52
    lengths = rng.choice([0.0, 1e-300, 1e-8, 0.3, 1.0, 1.5, 1e6], n) * near
    rows = centers_of(part, labels) + ways * (part.radii[labels] * lengths)[:, None]

    added = part.clip(rows, labels)

    assert np.abs(added).max() == 2.0**BITS
    squares = (added.astype(np.int64).astype(object) ** 2).sum(axis=1)
    assert max(squares) <= part.row_square
    assert max(squares) > 0.9999 * part.row_square


def centers_of(part: ClippedPart, labels: np.ndarray) -> np.ndarray:
    return part._cells.table[labels].astype(np.float64)


def test_shares_of_the_sensitivity_are_as_stated():
    spec = spec_of(10, 50, 1000)
    part = ClippedPart(spec)
    square, of_cells = sensitivity(spec) ** 2, cell_factor(spec) ** 2 * part.row_square

    assert of_cells / square == pytest.approx(0.198, abs=0.025)
    assert count_factor(spec) ** 2 / square == pytest.approx(0.01, rel=1e-3)


def test_the_radius_of_a_cell_is_the_distance_to_the_nearest_other_center():
    radii = ClippedPart(SPEC).radii
    off = np.linalg.norm(CENTERS[:, None] - CENTERS, axis=2)
    off[off == 0.0] = np.inf

    others = [j for j in range(2, 12) if off[j].argmin() != 1]
    np.testing.assert_allclose(radii[others], off.min(axis=1)[others], rtol=1e-6)
    assert radii[0] == radii[12] > 0.0  # two cells at one place
    assert radii[1] == pytest.approx(0.001, rel=1e-3)
    assert ClippedPart(spec_of(2, 1)).radii == [100.0]  # the ball is all there is


# Sketches with private cells are exact, and travel.


def test_clipped_sums_are_those_of_the_rows(rng):
    X = np.clip(rng.normal(size=(4000, 3)), -2.5, 2.5)  # inside of the ball
    raw = ss.sketch(X, SPEC)
    part = ClippedPart(SPEC)
    told = part.noisy(raw._totals.parts["clipped"], 1, 1.0)
    table = CELLS.table.astype(np.float64)
    labels = np.square(X[:, None] - table).sum(axis=2).argmin(axis=1)
    offsets = X - table[labels]
    lengths = np.linalg.norm(offsets, axis=1)
    offsets *= np.minimum(1.0, part.radii[labels] / lengths)[:, None]
    for j in range(CELLS.n_cells):
        own = offsets[labels == j]
        assert told.weights[j] == len(own)
        np.testing.assert_allclose(told.sums[j], own.sum(axis=0), atol=1e-3)
        np.testing.assert_allclose(told.squares[j], np.square(own).sum(), atol=1e-3)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_threads=st.integers(1, 3))
def test_raw_sketches_add_subtract_and_travel_whatever_the_order(seed, n_threads):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(rng.integers(1, 300), 3)) * 10.0 ** rng.uniform(-2, 3)
    rows[rng.random(rows.shape) < 0.01] = np.nan
    order, cut = rng.permutation(len(rows)), rng.integers(0, len(rows) + 1)

    def sketch(at):
        return ss.Sketcher(SPEC, n_threads=n_threads).update(rows[at]).sketch()

    whole, a, b = (sketch(at) for at in (np.arange(len(rows)), order[:cut], order[cut:]))

    assert a + b == whole
    assert whole - a == b
    assert ss.Sketch.from_bytes(whole.to_bytes()) == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert whole.prefix(7) == ss.sketch(rows, SPEC.prefix(7))


def test_all_kernels_give_the_same_integers(rng):
    X = rng.normal(size=(700, 3)) * 3.0
    assert ss.sketch(X, SPEC, kernel="reference") == ss.sketch(X, SPEC, kernel="cpu")


@pytest.mark.parametrize(
    ("at", "number"), [((3, 0), 2**BITS), ((3, 1), 2**50), ((3, -1), -(2**40))]
)
def test_integers_of_clipped_cells_that_no_rows_leave_are_refused(rng, at, number):
    raw = ss.sketch(rng.normal(size=(200, 3)), SPEC)
    raw._totals.parts["clipped"][at] += number

    with pytest.raises(ss.errors.SketchFormatError, match="not those of any rows"):
        ss.Sketch.from_bytes(raw.to_bytes())


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_private_sketches_add_subtract_and_travel(seed):
    """Noise is drawn anew, and what is done with it afterwards is exact."""
    rng = np.random.default_rng(seed)
    a, b = (
        ss.privacy.release(ss.sketch(rng.normal(size=(5000, 3)), SPEC), 5.0, 1e-8, force=True)
        for _ in range(2)
    )
    both = a + b

    for name in ("waves", "clipped"):
        one, other, sums = (s._totals.parts[name] for s in (a, b, both))
        np.testing.assert_array_equal(one + other, sums)
        np.testing.assert_array_equal(one - other, (a - b)._totals.parts[name])
    assert both._totals.cell_factor == a._totals.cell_factor
    np.testing.assert_allclose(both.cells.weights, a.cells.weights + b.cells.weights)
    np.testing.assert_allclose(both.cells.sum_std, np.sqrt(2.0) * a.cells.sum_std)
    again = PrivateSketch.from_bytes(both.to_bytes())
    assert again.to_bytes() == both.to_bytes()
    part = both.prefix(5)
    np.testing.assert_array_equal(part.cells.sums, both.cells.sums)
    assert PrivateSketch.from_bytes(part.to_bytes()).to_bytes() == part.to_bytes()


def test_without_noise_a_release_tells_the_very_sums(rng, release, no_noise):
    raw = ss.sketch(rng.normal(size=(3000, 3)), SPEC)
    told = release(raw).cells

    np.testing.assert_allclose(told.weights, raw.cells.weights, rtol=1e-12)
    exact = ClippedPart(SPEC).noisy(raw._totals.parts["clipped"], 1, 1.0)
    np.testing.assert_allclose(told.sums, exact.sums)
    np.testing.assert_allclose(told.squares, exact.squares)


def test_noise_is_as_large_as_it_says(rng, release):
    """Squared errors of 14 x 5 numbers over their variances: chi-square, p < 1e-9 on each side."""
    raw = ss.sketch(rng.normal(size=(3000, 3)), SPEC)
    told = release(raw, epsilon=10.0).cells
    exact = ClippedPart(SPEC).noisy(raw._totals.parts["clipped"], 1, 1.0)
    errors = [
        (told.weights - exact.weights) / told.weight_std,
        (told.sums - exact.sums) / told.sum_std[:, None],
        (told.squares - exact.squares) / told.square_std,
    ]

    assert 15.0 < sum(float(np.square(e).sum()) for e in errors) < 170.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cell_factor": 0}, "factors and scale must be positive"),
        ({"cell_factor": 2**62}, "factors and scale must be positive"),
        ({"cell_factor": 1.0}, "must hold exactly"),
    ],
)
def test_an_unsound_header_with_cells_is_refused(rng, release, changes, words):
    data = release(ss.sketch(rng.normal(size=(300, 3)), SPEC)).to_bytes()
    header, payload = unpack(data, PRIVATE_MAGIC)
    forged = pack(PRIVATE_MAGIC, json.loads(header) | changes, bytes(payload))

    with pytest.raises(ss.errors.SketchFormatError, match=words):
        PrivateSketch.from_bytes(forged)


# Refusals.


def test_a_private_spec_has_waves_beside_its_cells():
    with pytest.raises(
        ss.errors.SpecError, match=r"and waves beside them: here are 14 cells and 0 freq"
    ):
        replace(SPEC, sketch_size=0)
    with pytest.raises(ss.errors.SpecError, match="waves beside them"):
        SPEC.prefix(0)


def test_a_private_spec_has_few_cells():
    cells = Cells.of(np.arange(5000.0)[:, None], unit=8.0)

    with pytest.raises(ss.errors.SpecError, match="at most 4096 cells"):
        ss.SketchSpec(1, 5, 0.5, origin=Origin("declared", 1.0), cells=cells)


def test_a_ball_beyond_the_reach_of_cells_is_refused_before_any_row():
    with pytest.raises(ss.errors.SpecError, match=r"declared radius is 600 .* reach 512 times"):
        ss.Sketcher(replace(SPEC, bandwidth=50.0, origin=Origin("public", 600.0)))


def test_integers_of_cells_that_could_overflow_are_refused():
    spec = spec_of(2, 2, 200)
    raw = ss.sketch(np.zeros((1, 2)), spec)
    raw._totals.count = 2**39

    with pytest.raises(ss.errors.PrivacyError, match=r"would reach 2\*\*62"):
        release_vector(raw)


# Plans.


def test_a_public_plan_has_five_cells_for_each_cluster(rng):
    rows = rng.normal(size=(2000, 4))
    spec, small = ss.privacy.plan_public(rows, 3), ss.privacy.plan_public(rows[:100], 3)

    assert spec.cells.n_cells == 15
    assert spec.sketch_size == 200  # all waves are there as well
    assert small.cells.n_cells == 5  # one for 20 rows
    assert ss.privacy.plan_public(rows[:10], 3).cells is None
    assert ss.privacy.plan_public(rows, 3, cells=False).cells is None


def test_a_public_plan_with_cells_is_that_without_them_and_cells(rng):
    rows = rng.normal(size=(1000, 4))
    spec = ss.privacy.plan_public(rows, 3)

    assert replace(spec, cells=None) == ss.privacy.plan_public(rows, 3, cells=False)


def test_a_plan_may_be_told_how_many_cells_it_has(rng):
    rows = rng.normal(size=(1000, 2))

    assert ss.plan(rows, 5, cells=7).cells.n_cells == 7
    assert ss.plan(rows, 5, cells=900).cells.n_cells == 40  # of the 200 numbers there are
    with pytest.raises(ss.errors.SpecError, match="'cells' parameter of plan must be"):
        ss.plan(rows, 5, cells=0)


# Decoding.


def noisy(weights, sums, squares, noise: float) -> NoisyCells:
    centers, ones = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.ones(2)
    told = (np.asarray(a, dtype=np.float64) for a in (weights, sums, squares))
    return NoisyCells(*told, centers, 2.0 * ones, noise * ones, 2 * noise * ones, 4 * noise * ones)


def two_groups(rng) -> tuple[Cells, np.ndarray, np.ndarray]:
    """Points of two cells, for 600 rows each."""
    cells = Cells.of([[-1.0, 0.0], [1.0, 0.0]])
    places = np.repeat(cells.table.astype(np.float64), 300, axis=0)
    return cells, places + 0.1 * rng.normal(size=places.shape), np.full(600, 2.0)


def test_points_take_on_what_cells_tell_without_noise(rng):
    cells, places, weights = two_groups(rng)
    told = noisy([900, 300], [[90, 0], [0, 60]], [900 * 0.05, 300 * 0.08], 1e-6)

    moved, rows = move_to_cells(places, weights, cells, told)

    left = slice(300)
    assert rows[left].sum() == pytest.approx(900.0)
    np.testing.assert_allclose(np.average(moved[left], axis=0), [-0.9, 0.0], atol=1e-3)
    rests = moved[left] - moved[left].mean(axis=0)
    assert np.square(rests).sum(axis=1).mean() == pytest.approx(0.05 - 0.01, rel=1e-3)


def test_points_stay_where_cells_tell_nothing_but_noise(rng):
    cells, places, weights = two_groups(rng)
    told = noisy([1500, 100], [[600, 0], [0, -400]], [900, 500], 1e6)

    moved, rows = move_to_cells(places, weights, cells, told)

    np.testing.assert_allclose(moved, places)
    np.testing.assert_allclose(rows, weights)


def test_a_cell_without_points_gets_one_if_its_rows_are_more_than_noise(rng):
    cells, places, weights = two_groups(rng)
    is_left = places[:, 0] < 0.0
    for n, added in ((600, 1), (3, 0)):
        told = noisy([600, n], [[0, 0], [0.1 * n, 0]], [12, 0], 1.0)
        moved, rows = move_to_cells(places[is_left], weights[is_left], cells, told)
        assert len(moved) == 300 + added
        if added:
            np.testing.assert_allclose(moved[-1], [1.1, 0.0])
            assert rows[-1] == 600


@pytest.mark.usefixtures("seeded_noise")
def test_cells_find_a_small_far_cluster_that_waves_miss(rng):
    """Nine Gaussians, and one in a hundred rows far out, which the public sample has seen."""
    X = datasets.gaussian_mixture(60_000, 4, 9, cluster_std=0.1, seed=5)[0]
    X = np.vstack([X, rng.normal(size=(600, 4)) * 0.3 + 12.0])
    sample = X[rng.choice(len(X), 1500, replace=False)]
    least = ss.metrics.mse(X, ss.metrics.lloyd(X, 10, seed=0))
    errors = []
    for cells in (False, True):
        of_waves = pytest.warns(ss.errors.PlanWarning, match="waves alone lose clusters")
        with nullcontext() if cells else of_waves:
            spec = ss.privacy.plan_public(sample, 10, cells=cells)
        released = ss.privacy.release(ss.sketch(X, spec), 1.0, 1e-8)
        errors.append(ss.metrics.mse(X, ss.decode(released, 10).centroids) / least)

    assert errors[1] < 2.0 < 20.0 < errors[0]
