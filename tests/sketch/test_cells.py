"""Cells and far rows as parts of a sketch: exact, additive, subtractive, in files and slices."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.features import Cells
from sketchshift.features.cells import plan_cells
from sketchshift.kernels.cpu.library import CHOICE, variants
from sketchshift.sketch.file import MAGIC, pack, unpack

RNG = np.random.default_rng(7)
X = RNG.normal(size=(3000, 3))
CELLS = Cells.of(X[:20], unit=0.25)
SPEC = ss.SketchSpec(3, 40, bandwidth=0.5, cells=CELLS)
ALONE = ss.SketchSpec(3, 0, bandwidth=0.5, cells=CELLS)


@cache
def planned():
    return ss.plan(X, 4)


def strays(n=400):
    """Rows far from all that a plan has seen, but within the reach of its cells."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 3)) * 20.0 * rng.uniform(1, 3, size=(n, 1))


def labels_of(rows):
    return np.square(rows[:, None, :] - CELLS.table.astype(float)).sum(axis=2).argmin(axis=1)


@pytest.mark.parametrize("spec", [SPEC, ALONE], ids=["with waves", "alone"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_know_weight_mean_and_variance_of_their_rows(spec, weighted):
    w, labels = RNG.uniform(size=len(X)) * 3 if weighted else np.ones(len(X)), labels_of(X)
    cells = ss.sketch(X, spec, sample_weight=w if weighted else None).cells
    for j in range(CELLS.n_cells):
        rows, own = X[labels == j], w[labels == j]
        mean = own @ rows / own.sum()
        np.testing.assert_allclose(cells.weights[j], own.sum(), rtol=1e-8)
        np.testing.assert_allclose(cells.means[j], mean, atol=1e-6)
        variance = own @ np.square(rows - mean) / own.sum()
        np.testing.assert_allclose(cells.variances[j], variance, atol=1e-6)


def test_sketches_with_cells_travel_and_rows_without_waves_reach_further():
    whole = ss.sketch(X, SPEC)

    assert pickle.loads(pickle.dumps(whole)) == whole
    assert ss.SketchSpec.from_json(SPEC.to_json()) == SPEC
    assert whole.prefix(0).cells.weights.tolist() == whole.cells.weights.tolist()
    assert ALONE.reach == 2.0**24 * ALONE.moment_unit > SPEC.reach
    assert SPEC.reach == 2.0**20 / SPEC.frequencies.largest


@settings(max_examples=60)
@given(
    spec=st.sampled_from([SPEC, ALONE, None]),
    seed=st.integers(0, 2**32 - 1),
    n_threads=st.integers(1, 3),
    weighted=st.booleans(),
    kernel=st.sampled_from(["cpu", "reference"]),
)
def test_the_bytes_do_not_depend_on_order_threads_kernel_or_parts(
    spec, seed, n_threads, weighted, kernel
):
    spec, rng = spec or planned(), np.random.default_rng(seed)
    rows = np.vstack([rng.normal(size=(rng.integers(1, 400), 3)), strays(30)])
    rows[rng.random(len(rows)) < 0.05] *= 10.0 ** rng.uniform(3, 200 if kernel == "cpu" else 90)
    weights = rng.uniform(size=len(rows)) * 10.0 ** rng.uniform(-4, 4) if weighted else None
    order, cut = rng.permutation(len(rows)), rng.integers(0, len(rows) + 1)

    def sketch(at, **options):
        w = None if weights is None else weights[at]
        return ss.Sketcher(spec, **options).update(rows[at], sample_weight=w).sketch()

    whole, first, second = sketch(np.arange(len(rows))), sketch(order[:cut]), sketch(order[cut:])

    assert sketch(order, n_threads=n_threads, kernel=kernel) == whole
    assert first + second == whole
    assert whole - first == second
    assert ss.Sketch.from_bytes(whole.to_bytes()) == whole


@pytest.mark.parametrize("size", [1e3, 1e6, 1e150, 1e300])
def test_far_rows_are_taken_told_and_taken_away_bit_for_bit(size):
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


def test_a_number_that_normalisation_cannot_hold_is_refused_by_its_row():
    spec = ss.SketchSpec(3, 10, bandwidth=0.5, scale=1e-3, cells=CELLS)
    huge = X.copy()
    huge[5, 0] = 1e306

    with pytest.raises(ss.errors.InvalidRowsError, match=r"row 5 of .* lies too far out"):
        ss.sketch(huge, spec)


def forge(change):
    """A file with a far row after a change of its integers, and its parts, with a new digest."""
    sketch = ss.sketch(np.vstack([X, [[1e9, 0, 0]]]), SPEC, sample_weight=np.full(3001, 0.7))
    change(sketch._totals.parts["cells"], sketch._totals.parts["far"][0].rows)
    header, payload = unpack(sketch.to_bytes(), MAGIC)
    return lambda altered: pack(MAGIC, json.loads(header), altered(bytes(payload)))


@pytest.mark.parametrize(
    "place", [(3, 0, 2**34), (3, 0, -(2**60)), (2, 1, 2**60), (1, 4, -(2**70))]
)
def test_integers_of_cells_that_no_rows_left_are_refused(place):
    def change(cells, far):
        cells[place[:2]] += place[2]

    with pytest.raises(ss.errors.SketchFormatError, match="the integers are not those of any rows"):
        ss.Sketch.from_bytes(forge(change)(bytes))


@pytest.mark.parametrize(
    "key",
    [
        *[(2, -1, 0, 1064, 1), (0, -1, 0, 5, 1), (2, -1, 2, 5, 1), (2, -1, 0, 5, 3)],
        *[(2, 3, 0, 5, 1), (1, 20, 0, 5, 1), (1, -2, 0, 5, 1)],
    ],
)
def test_keys_and_weights_that_no_far_row_has_are_refused(key):
    def change(cells, far):
        far[key] = far.popitem()[1]

    def add(cells, far):
        next(iter(far.values()))[0] += 2**110

    with pytest.raises(ss.errors.SketchFormatError, match="no far rows with the key"):
        ss.Sketch.from_bytes(forge(change)(bytes))
    with pytest.raises(ss.errors.SketchFormatError, match="not those of any rows"):
        ss.Sketch.from_bytes(forge(add)(bytes))


@pytest.mark.parametrize(
    "altered",
    [
        *[lambda p: p[:-1], lambda p: p[:-30], lambda p: p[:700], lambda p: p + b"\0"],
        *[lambda p, n=n: p[:-8] + n.to_bytes(8, "little", signed=True) for n in (-1, 0, 3002)],
    ],
)
def test_a_file_of_cells_that_is_cut_off_or_counts_other_rows_is_refused(altered):
    """The last 8 bytes are the number of rows of partial weight."""
    with pytest.raises(ss.errors.SketchFormatError):
        ss.Sketch.from_bytes(forge(lambda cells, far: None)(altered))


@pytest.mark.thorough
def test_planned_cells_are_the_same_on_every_machine():
    """Each variant of the kernels in a process of its own."""
    script = (
        "import numpy as np\n"
        "from sketchshift.features.cells import plan_cells\n"
        "X = np.random.default_rng(0).standard_t(2, size=(3000, 4)) / 4\n"
        "for n in (1, 30, 400):\n"
        "    cells = plan_cells(X, n, weights=np.arange(1.0, 3001.0), seed=3)\n"
        "    print(cells.starts, cells.probes, cells.unit, cells.centers.hex())\n"
    )

    def run(variant):
        words = [sys.executable, "-c", script]
        return subprocess.run(words, env=os.environ | {CHOICE: variant}, capture_output=True).stdout

    results = {run(variant) for variant in variants()}
    assert len(results) == 1
    assert results != {b""}


def test_of_few_different_rows_there_are_no_more_cells():
    found = plan_cells(np.repeat(np.eye(3), 50, axis=0), 10).table

    assert {tuple(row) for row in found.tolist()} == {tuple(row) for row in np.eye(3)}
    assert len(found) == 3


def test_values_that_repeat_have_groups_of_cells_of_their_own():
    rows = RNG.normal(size=(2000, 2))
    assert plan_cells(rows, 20, splits_values=True) == plan_cells(rows, 20)

    rows[::2, 0] = 5.0
    whole, split = plan_cells(rows, 20), plan_cells(rows, 20, splits_values=True)

    assert (whole.starts, whole.middles) == ((0,), b"")
    assert split.starts == (0, 10)
    places = np.frombuffer(split.middles, "<f4").reshape(2, 2)
    np.testing.assert_allclose(places, [[4.99, 0.0], [5.0, 0.0]], rtol=1e-6)
    assert (split.table[10:, 0] == 5.0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"centers": np.zeros((3, 2))}, "bytes"),
        ({"unit": 3.0}, "a power of two"),
        ({"starts": (0, 5, 5)}, "rising from 0"),
        ({"starts": (1,)}, "rising from 0"),
        ({"probes": 2}, "probes"),
        ({"n_features": 7}, "centers"),
    ],
)
def test_cells_that_make_no_sense_are_refused(change, message):
    fields = {"centers": CELLS.centers, "n_features": 3} | change
    with pytest.raises(ss.errors.SpecError, match=message):
        Cells(**fields)


def test_cells_of_other_columns_and_centers_in_other_letters_are_refused_by_a_spec():
    with pytest.raises(ss.errors.SpecError, match="Cells of 2 columns"):
        ss.SketchSpec(2, 10, bandwidth=1.0, cells=CELLS)
    content = json.loads(SPEC.to_json())
    content["cells"]["centers"] = "!" + content["cells"]["centers"]
    with pytest.raises(ss.errors.SpecError, match="numbers in base64"):
        ss.SketchSpec.from_json(json.dumps(content))


def test_rows_of_partial_weight_are_counted_and_taken_off_again():
    weights = np.where(np.arange(len(X)) % 5 == 0, 2.5, 3.0)
    far = np.vstack([X, [[1e9, 0, 0]]])
    whole = ss.sketch(far, SPEC, sample_weight=np.append(weights, 0.25))
    part = ss.sketch(X[:700], SPEC, sample_weight=weights[:700])

    assert (whole.n_partial, part.n_partial, (whole - part).n_partial) == (601, 140, 461)
    assert ss.Sketch.from_bytes(whole.to_bytes()).n_partial == 601


def test_a_plan_costs_next_to_nothing_in_each_slice_of_a_file(tmp_path):
    rows, key = RNG.normal(size=(10_000, 8)), np.arange(10_000) // 100
    table = ss.sketch_by(rows, by=key, n_clusters=10)
    table.to_parquet(tmp_path / "all.parquet")
    stored = ss.SketchTable.from_parquet(tmp_path / "all.parquet")

    integers = sum(len(s.to_bytes()) - len(table.spec.to_json()) for s in table.sketches)
    assert (tmp_path / "all.parquet").stat().st_size < integers
    assert [s for _, s in stored] == [ss.sketch(rows[key == k], table.spec) for k in range(100)]


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_far_from_their_center_are_in_shells_that_know_them_exactly(weighted):
    """By hand: nearest center, largest offset, its sign and its power of two."""
    spec, rows = planned(), np.vstack([X, strays()])
    weights = np.random.default_rng(5).uniform(0.2, 3.0, size=3400) if weighted else np.ones(3400)
    places = (rows - spec.center_vector) * spec.per_unit
    offsets = places[:, None] - spec.cells.table.astype(float)
    squares = np.square(offsets).sum(axis=2)
    nearest, is_out = squares.argmin(axis=1), squares.min(axis=1) > 144.0 * spec.cells.within
    offsets = offsets[np.arange(3400), nearest]
    column = np.abs(offsets).argmax(axis=1)
    largest = offsets[np.arange(3400), column]
    keys = np.column_stack([nearest, largest < 0, np.frexp(largest)[1], column])
    shells, J = np.unique(keys[is_out], axis=0), spec.cells.n_cells

    cells = ss.sketch(rows, spec, sample_weight=weights if weighted else None).cells

    assert is_out.sum() > 300
    assert not is_out[: len(X)].any()
    assert len(cells.weights) == J + len(shells)
    for i, shell in enumerate(shells, J):
        inside = is_out & (keys == shell).all(axis=1)
        own, w = places[inside], weights[inside]
        mean = w @ own / w.sum()
        np.testing.assert_allclose(cells.weights[i], w.sum(), rtol=1e-8)
        np.testing.assert_allclose(cells.means[i], mean, rtol=1e-9)
        expected = w @ np.square(own - mean) / w.sum()
        np.testing.assert_allclose(cells.variances[i], expected, rtol=1e-6, atol=1e-6)


def test_places_are_found_in_the_cells_and_shells_of_the_rows():
    spec, rows = planned(), np.vstack([X, strays()])
    sketch = ss.sketch(rows, spec)
    labels = sketch.find_cells((rows - spec.center_vector) * spec.per_unit)

    np.testing.assert_array_equal(
        np.bincount(labels, minlength=len(sketch.cells.weights)), sketch.cells.weights
    )
    nowhere = np.array([[300.0, -200.0, 100.0]])
    assert sketch.find_cells(nowhere) < spec.cells.n_cells
