"""Cells and far rows as parts of a sketch: exact, additive, subtractive, in files and slices."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.features import Cells
from sketchshift.features.cells import plan_cells
from sketchshift.kernels.cpu.library import CHOICE, variants

RNG = np.random.default_rng(7)
X = RNG.normal(size=(3000, 3))
CELLS = Cells.of(X[:20], unit=0.25)
SPEC = ss.SketchSpec(3, 40, bandwidth=0.5, cells=CELLS)
ALONE = ss.SketchSpec(3, 0, bandwidth=0.5, cells=CELLS)
SPREADS = (1e3, 1e6, 1e12, 1e150, 1e300)


def labels_of(rows):
    return np.square(rows[:, None, :] - CELLS.table.astype(float)).sum(axis=2).argmin(axis=1)


@pytest.mark.parametrize("spec", [SPEC, ALONE], ids=["with waves", "alone"])
def test_cells_know_weight_mean_and_variance_of_their_rows(spec):
    weights = RNG.uniform(size=len(X)) * 3
    labels = labels_of(X)
    for given_weights, w in ((None, np.ones(len(X))), (weights, weights)):
        cells = ss.sketch(X, spec, sample_weight=given_weights).cells
        for j in range(CELLS.n_cells):
            rows, own = X[labels == j], w[labels == j]
            mean = own @ rows / own.sum()
            np.testing.assert_allclose(cells.weights[j], own.sum(), rtol=1e-8)
            np.testing.assert_allclose(cells.means[j], mean, atol=1e-6)
            variance = own @ np.square(rows - mean) / own.sum()
            np.testing.assert_allclose(cells.variances[j], variance, atol=1e-6)


@pytest.mark.parametrize("spec", [SPEC, ALONE], ids=["with waves", "alone"])
def test_sketches_with_cells_add_subtract_and_travel(spec, tmp_path):
    whole, part = ss.sketch(X, spec), ss.sketch(X[:700], spec)

    assert whole - part == ss.sketch(X[700:], spec)
    assert (whole - part) + part == whole
    assert sum([part, ss.sketch(X[700:900], spec), ss.sketch(X[900:], spec)]) == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
    whole.save(tmp_path / "a.sketch")
    assert ss.load(tmp_path / "a.sketch") == whole
    assert ss.SketchSpec.from_json(spec.to_json()) == spec
    assert whole.prefix(0).cells.weights.tolist() == whole.cells.weights.tolist()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_threads=st.integers(1, 3),
    weighted=st.booleans(),
    far=st.booleans(),
)
def test_the_bytes_do_not_depend_on_order_threads_or_parts(seed, n_threads, weighted, far):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(rng.integers(1, 400), 3))
    if far:
        rows[rng.random(len(rows)) < 0.05] *= 10.0 ** rng.uniform(3, 200)
    weights = rng.uniform(size=len(rows)) * 10.0 ** rng.uniform(-4, 4) if weighted else None
    order, cut = rng.permutation(len(rows)), rng.integers(0, len(rows) + 1)

    def sketch(at):
        w = None if weights is None else weights[at]
        return ss.Sketcher(SPEC, n_threads=n_threads).update(rows[at], sample_weight=w).sketch()

    whole = sketch(np.arange(len(rows)))

    assert sketch(order) == whole
    assert sketch(order[:cut]) + sketch(order[cut:]) == whole
    assert whole - sketch(order[:cut]) == sketch(order[cut:])
    assert ss.Sketch.from_bytes(whole.to_bytes()) == whole


def test_the_reference_gives_the_same_bytes():
    for spec in (SPEC, ALONE):
        assert ss.sketch(X, spec, kernel="reference") == ss.sketch(X, spec)


@pytest.mark.parametrize("size", SPREADS)
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


def test_far_rows_are_kept_apart_by_column_sign_and_size():
    far = np.array([[1e6, 0, 0], [-1e6, 0, 0], [0, 1e6, 0], [1.01e6, 1, 1], [4e6, 0, 0]])
    found = ss.sketch(far, SPEC).far

    assert sorted(found.weights.tolist()) == [1.0, 1.0, 1.0, 2.0]
    order = np.argsort(found.means.sum(axis=1))
    np.testing.assert_allclose(found.means[order][0], [-1e6, 0, 0])
    np.testing.assert_allclose(found.means[order][-1], [4e6, 0, 0])


def test_what_is_not_a_number_is_still_refused():
    for value in (np.nan, np.inf):
        bad = X.copy()
        bad[17, 1] = value
        with pytest.raises(ss.errors.InvalidRowsError, match="row 17"):
            ss.sketch(bad, SPEC)
        left, others = ss.sketch(bad, SPEC, on_invalid="skip"), ss.sketch(np.delete(X, 17, 0), SPEC)
        assert (left.n_invalid, left.count) == (1, 2999)
        for name, integers in others._totals.parts.items():
            assert (left._totals.parts[name] == integers).all() or name == "far"
        assert not left._totals.parts["far"][0]


def test_a_number_that_normalisation_cannot_hold_is_refused_by_its_row():
    spec = ss.SketchSpec(3, 10, bandwidth=0.5, scale=1e-3, cells=CELLS)
    huge = X.copy()
    huge[5, 0] = 1e306

    with pytest.raises(ss.errors.InvalidRowsError, match=r"row 5 of .* lies too far out"):
        ss.sketch(huge, spec)


def test_slices_and_stored_tables_have_cells_too(tmp_path):
    key = np.arange(len(X)) % 4
    table = ss.sketch_by(X, key, SPEC)
    table.to_parquet(tmp_path / "slices.parquet")

    stored = ss.SketchTable.from_parquet(tmp_path / "slices.parquet")

    assert [s for _, s in stored] == [ss.sketch(X[key == k], SPEC) for k in range(4)]
    assert stored.where("key < 2").merge() == ss.sketch(X[key < 2], SPEC)


def test_integers_of_cells_that_no_rows_left_are_refused():
    for change in ((3, 0, 2**34), (3, 0, -(2**60)), (2, 1, 2**60), (1, 4, -(2**70))):
        sketch = ss.sketch(X, SPEC)
        row, column, by = change
        sketch._totals.parts["cells"][row, column] += by
        with pytest.raises(
            ss.errors.SketchFormatError, match="the integers are not those of any rows"
        ):
            ss.Sketch.from_bytes(sketch.to_bytes())


def test_a_file_of_cells_that_is_cut_off_or_goes_on_is_refused():
    from sketchshift.sketch.file import MAGIC, pack, unpack

    data = ss.sketch(np.vstack([X, [[1e9, 0, 0]]]), SPEC).to_bytes()
    header, payload = unpack(data, MAGIC)
    import json

    for changed in (payload[:-1], payload[:-30], payload[:700], bytes(payload) + b"\0"):
        with pytest.raises(ss.errors.SketchFormatError):
            ss.Sketch.from_bytes(pack(MAGIC, json.loads(header), bytes(changed)))


@pytest.mark.parametrize("n_cells", [1, 30, 400])
def test_planned_cells_are_the_same_on_every_machine(n_cells):
    """Each variant of the kernels in a process of its own."""
    script = (
        "import numpy as np\n"
        "from sketchshift.features.cells import plan_cells\n"
        "X = np.random.default_rng(0).standard_t(2, size=(3000, 4)) / 4\n"
        f"cells = plan_cells(X, {n_cells}, weights=np.arange(1.0, 3001.0), seed=3)\n"
        "print(cells.starts, cells.probes, cells.unit, cells.centers.hex())\n"
    )

    def run(variant):
        words = [sys.executable, "-c", script]
        return subprocess.run(words, env=os.environ | {CHOICE: variant}, capture_output=True).stdout

    results = {run(variant) for variant in variants()}
    assert len(results) == 1
    assert results != {b""}


def test_planned_cells_reach_into_tails():
    """Squared distances draw the seeds: a few rows far away have cells of their own."""
    rows = np.vstack([RNG.normal(size=(20000, 2)), [[200.0, 0.0]], [[0.0, -300.0]]])
    found = plan_cells(rows, 12).table

    for far in rows[-2:]:
        assert np.linalg.norm(found - far, axis=1).min() < 1e-3


def test_of_few_different_rows_there_are_no_more_cells():
    rows = np.repeat(np.eye(3), 50, axis=0)
    assert sorted(map(tuple, plan_cells(rows, 10).table.tolist())) == sorted(
        map(tuple, np.eye(3).tolist())
    )


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


def test_cells_of_other_columns_are_refused_by_a_spec():
    with pytest.raises(ss.errors.SpecError, match="Cells of 2 columns"):
        ss.SketchSpec(2, 10, bandwidth=1.0, cells=CELLS)


@pytest.mark.parametrize(
    "key",
    [
        *[(2, -1, 0, 1064, 1), (0, -1, 0, 5, 1), (2, -1, 2, 5, 1), (2, -1, 0, 5, 3)],
        *[(2, 3, 0, 5, 1), (1, 20, 0, 5, 1), (1, -2, 0, 5, 1)],
    ],
)
def test_keys_that_no_far_row_has_are_refused(key):
    from sketchshift.sketch.cells import FarSums

    sketch = ss.sketch(np.vstack([X, [[1e9, 0, 0]]]), SPEC)
    (row,) = sketch._totals.parts["far"][0].rows.values()
    sketch._totals.parts["far"][0] = FarSums({key: row})

    with pytest.raises(ss.errors.SketchFormatError, match="no far rows with the key"):
        ss.Sketch.from_bytes(sketch.to_bytes())


def test_a_far_weight_beyond_all_capacity_is_refused():
    sketch = ss.sketch(np.vstack([X, [[1e9, 0, 0]]]), SPEC)
    (row,) = sketch._totals.parts["far"][0].rows.values()
    row[0] += 2**110

    with pytest.raises(ss.errors.SketchFormatError, match="the integers are not those of any rows"):
        ss.Sketch.from_bytes(sketch.to_bytes())


def test_rows_of_partial_weight_are_counted_and_taken_off_again(tmp_path):
    weights = np.where(np.arange(len(X)) % 5 == 0, 2.5, 3.0)
    far = np.vstack([X, [[1e9, 0, 0]]])
    whole = ss.sketch(far, SPEC, sample_weight=np.append(weights, 0.25))
    part = ss.sketch(X[:700], SPEC, sample_weight=weights[:700])

    assert (whole.n_partial, part.n_partial, (whole - part).n_partial) == (601, 140, 461)
    assert ss.sketch(X, SPEC).n_partial == 0
    whole.save(tmp_path / "a.sketch")
    assert ss.load(tmp_path / "a.sketch").n_partial == 601


@pytest.mark.parametrize("n", [-1, 0, 3001])
def test_numbers_of_partial_weights_that_no_rows_have_are_refused(n):
    import json

    from sketchshift.sketch.file import MAGIC, pack, unpack

    data = ss.sketch(X, SPEC, sample_weight=np.full(len(X), 0.7)).to_bytes()
    header, payload = unpack(data, MAGIC)
    forged = bytes(payload[:-8]) + n.to_bytes(8, "little", signed=True)

    with pytest.raises(ss.errors.SketchFormatError, match="not those of any rows"):
        ss.Sketch.from_bytes(pack(MAGIC, json.loads(header), forged))


def test_a_plan_costs_next_to_nothing_in_each_slice_of_a_file(tmp_path):
    """Against a file of the same integers without any plan."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sketchshift.sketch.file import MAGIC, unpack

    rows = RNG.normal(size=(10_000, 8))
    table = ss.sketch_by(rows, by=np.arange(10_000) // 100, n_clusters=10)
    table.to_parquet(tmp_path / "all.parquet")
    integers = [bytes(unpack(s.to_bytes(), MAGIC)[1]) for s in table.sketches]
    alone = pa.table({"key": table.keys.column(0), "sketch": pa.array(integers, pa.binary())})
    pq.write_table(alone, tmp_path / "alone.parquet", compression="zstd")

    plan = len(table.spec.to_json())
    extra = (tmp_path / "all.parquet").stat().st_size - (tmp_path / "alone.parquet").stat().st_size
    assert extra < 0.15 * plan * len(table)
    assert ss.SketchTable.from_parquet(tmp_path / "all.parquet") == table


def strays(n=400):
    """Rows far from all that a plan has seen, but within the reach of its cells."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 3)) * 20.0 * rng.uniform(1, 3, size=(n, 1))


PLANNED = ss.plan(X, 4)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_far_from_their_center_are_in_shells_that_know_them_exactly(weighted):
    """By hand: nearest center, largest offset, its sign and its power of two."""
    rows = np.vstack([X, strays()])
    rng = np.random.default_rng(5)
    weights = rng.uniform(0.2, 3.0, size=len(rows)) if weighted else np.ones(len(rows))
    table = PLANNED.cells.table.astype(float)
    places = (rows - PLANNED.center_vector) * PLANNED.per_unit
    offsets = places[:, None] - table
    nearest = np.square(offsets).sum(axis=2).argmin(axis=1)
    offsets = offsets[np.arange(len(rows)), nearest]
    is_out = np.square(offsets).sum(axis=1) > 144.0 * PLANNED.cells.within
    keys = [
        (j, -e[c] > 0, np.frexp(abs(e[c]))[1], c) if out else None
        for j, e, c, out in zip(
            nearest, offsets, np.abs(offsets).argmax(axis=1), is_out, strict=True
        )
    ]

    cells = ss.sketch(rows, PLANNED, sample_weight=weights if weighted else None).cells

    assert is_out.sum() > 300
    assert not is_out[: len(X)].any()
    shells = sorted({key for key in keys if key is not None})
    J = PLANNED.cells.n_cells
    assert len(cells.weights) == J + len(shells)
    for i, shell in enumerate(shells):
        inside = np.array([key == shell for key in keys])
        own, w = places[inside], weights[inside]
        mean = w @ own / w.sum()
        np.testing.assert_allclose(cells.weights[J + i], w.sum(), rtol=1e-8)
        np.testing.assert_allclose(cells.means[J + i], mean, rtol=1e-9)
        expected = w @ np.square(own - mean) / w.sum()
        np.testing.assert_allclose(cells.variances[J + i], expected, rtol=1e-6, atol=1e-6)


def test_places_are_found_in_the_cells_and_shells_of_the_rows():
    rows = np.vstack([X, strays()])
    sketch = ss.sketch(rows, PLANNED)
    labels = sketch.find_cells((rows - PLANNED.center_vector) * PLANNED.per_unit)

    np.testing.assert_array_equal(
        np.bincount(labels, minlength=len(sketch.cells.weights)), sketch.cells.weights
    )
    nowhere = np.array([[300.0, -200.0, 100.0]])
    assert sketch.find_cells(nowhere) < PLANNED.cells.n_cells


@given(st.integers(1, 1700), st.integers(1701, 3399), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_shells_add_and_subtract_like_rows(a, b, seed):
    rows = np.vstack([X, strays()])[np.random.default_rng(seed).permutation(3400)]
    weights = np.where(np.arange(3400) % 7 == 0, 2.75, 1.0)

    def sketched(part):
        return ss.sketch(rows[part], PLANNED, sample_weight=weights[part])

    first, middle, last = map(sketched, (slice(0, a), slice(a, b), slice(b, None)))
    whole = sketched(slice(None))
    assert first + middle + last == whole
    assert whole - middle == first + last
    assert ss.Sketch.from_bytes(whole.to_bytes()) == whole


def test_shells_are_the_same_on_every_kernel_and_in_any_number_of_threads():
    rows = np.vstack([X, strays()])
    weights = np.where(np.arange(3400) % 7 == 0, 2.75, 1.0)
    found = {
        ss.sketch(rows, PLANNED, sample_weight=weights, kernel=kernel, n_threads=n).to_bytes()
        for kernel, n in (("cpu", 1), ("cpu", 3), ("reference", 1))
    }

    assert len(found) == 1


def test_whole_weights_put_rows_into_shells_as_often_as_they_say():
    rows, weights = strays(50), np.arange(50) % 5

    weighted = ss.sketch(rows, PLANNED, sample_weight=weights.astype(float))
    repeated = ss.sketch(np.repeat(rows, weights, axis=0), PLANNED)

    assert weighted.cells.squares.tolist() == repeated.cells.squares.tolist()
    assert weighted.cells.sums.tolist() == repeated.cells.sums.tolist()
