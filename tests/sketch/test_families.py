"""Totals have named families, and one more family is one more definition."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.features import Origin
from sketchshift.kernels import BITS
from sketchshift.privacy.release import release_vector, sensitivity
from sketchshift.sketch import family as module
from sketchshift.sketch.family import Family, SlotSums, WeightedRows, families_of
from sketchshift.sketch.file import encode
from sketchshift.sketch.moments import Moments
from sketchshift.sketch.totals import Totals

SPEC = ss.SketchSpec(n_features=2, sketch_size=12, bandwidth=0.8)
PUBLIC = replace(SPEC, origin=Origin("declared", 100.0))
X = np.random.default_rng(3).normal(size=(500, 2))


class PositiveFamily(Family):
    """Weight of the rows whose first coordinate is positive, in steps of 2**-BITS."""

    name = "positive"
    shape = (1,)
    row_square = 2 ** (2 * BITS)

    def adders(self, kernel):
        return PositiveAdder

    def are_sound(self, totals, u):
        sums = np.array([int(self.integers(totals, i)[0]) for i in range(len(totals))])
        return (sums >= 0) & (sums <= totals.weights + u)


class PositiveAdder:
    """Holds all back until the end, to show that what is pending arrives."""

    def __init__(self):
        self.pending = SlotSums(1)

    def add(self, rows: WeightedRows) -> None:
        shares = np.ones(len(rows.values)) if rows.shares is None else rows.shares
        weights = np.rint(shares * (rows.values[:, 0] > 0) * 2.0**BITS).astype(np.int64)
        np.add.at(self.pending.reach(rows.n_slots)[:, 0], rows.slots, weights << rows.digit)

    def take(self, n):
        return self.pending.take(n)


def one_family(spec):
    return PositiveFamily()


@pytest.fixture
def one_more(monkeypatch):
    """The families of every spec, and :class:`PositiveFamily`."""
    monkeypatch.setattr(module, "FAMILIES", [*module.FAMILIES, one_family])


def positive(sketch) -> float:
    if isinstance(sketch, ss.privacy.PrivateSketch):
        return int(sketch._totals.parts["positive"][0]) / 2**BITS
    return int(sketch._totals.integers("positive")[0]) / 2**BITS


def expected(rows: np.ndarray) -> int:
    return int((rows[:, 0] > 0).sum())


def test_one_more_family_adds_subtracts_merges_travels_and_is_removed(one_more):
    weights = np.random.default_rng(4).integers(0, 40, len(X)) / 4
    whole, part = ss.sketch(X, SPEC, sample_weight=weights), ss.sketch(X[:200], SPEC)
    sketcher = ss.Sketcher(SPEC, n_threads=2).update(X, sample_weight=weights)

    assert positive(whole) == positive(sketcher.sketch()) == weights[X[:, 0] > 0].sum()
    assert positive(whole + part - whole) == expected(X[:200])
    assert positive(whole.prefix(5)) == positive(whole)
    assert pickle.loads(pickle.dumps(whole)) == whole
    rest = sketcher.remove(X[:100], sample_weight=weights[:100]).sketch()
    assert positive(rest) == weights[100:][X[100:, 0] > 0].sum()


def test_one_more_family_goes_through_checkpoints(one_more, tmp_path):
    np.save(tmp_path / "x.npy", X)

    for _ in range(2):
        passed = ss.sketch(tmp_path / "x.npy", SPEC, checkpoint=tmp_path / "pass")
        assert positive(passed) == expected(X)


def test_one_more_family_is_released_if_what_a_row_adds_is_bounded(one_more, monkeypatch, tmp_path):
    from sketchshift.privacy import mechanism

    monkeypatch.setattr(mechanism, "_draw", lambda measurement, vector: vector)
    raw = ss.sketch(X, PUBLIC)

    private = ss.privacy.release(raw, 9.0, 1e-8, force=True)
    private.save(tmp_path / "private.sketch")
    read = ss.privacy.load(tmp_path / "private.sketch")

    assert sensitivity(PUBLIC) ** 2 > sensitivity(PUBLIC.prefix(11)) ** 2 > 2 ** (2 * BITS)
    assert len(release_vector(raw)) == 2 * 12 + 1 + 1
    assert positive(read) == positive(raw)
    assert positive(read.prefix(6)) == positive(raw)
    assert positive(read.merge(ss.privacy.release(raw, 9.0, 1e-8, force=True))) == 2 * positive(raw)


def test_integers_of_one_more_family_that_no_rows_left_are_refused(one_more):
    whole, part = ss.sketch(X, SPEC), ss.sketch(X[:200], SPEC)
    part._totals.dense["positive"][:, 1] += 10**4

    with pytest.raises(ss.errors.SketchFormatError, match="the integers are not those of any rows"):
        ss.Sketch.from_bytes(part.to_bytes())
    with pytest.raises(ss.errors.RemovalError, match="with sums that no rows have"):
        whole - part


def test_a_file_without_a_family_of_the_spec_is_refused_by_its_length(monkeypatch):
    data = ss.sketch(X, SPEC).to_bytes()
    monkeypatch.setattr(module, "FAMILIES", [*module.FAMILIES, one_family])

    with pytest.raises(ss.errors.SketchFormatError, match=r"another length|not written"):
        ss.Sketch.from_bytes(data)


def test_the_families_of_a_spec_have_names_and_sizes():
    # 2 m waves; 2 weights, 3 d sums and rests, d (d + 1) / 2 products
    groups = {"waves": (24,), "moments": (1, 1, 2, 2, 2, 3)}
    assert {family.name: family.groups for family in families_of(SPEC)} == groups
    none, less = (encode("", Totals.zero(spec)) for spec in (SPEC, SPEC.prefix(11)))
    assert len(none) == len(less) + 2  # a byte each


def test_moments_have_names_that_read_as_the_definition_says():
    """One row of weight 1 and one of weight 1/2, in steps of unit / 2**16."""
    rows, weights = np.array([[0.5, -0.25], [0.125, 1.0]]), np.array([1.0, 0.5])
    integers = ss.sketch(rows, SPEC, sample_weight=weights)._totals.integers("moments")
    moments = Moments.of(integers, SPEC)
    steps = rows * 2**16 / SPEC.moment_unit

    def rounded(values):
        return [round(float(value)) for value in values]

    assert moments.weight == 3 * 2**21
    assert moments.fine_weight == 3 * 2**51
    assert list(moments.sums) == rounded(steps[0] + np.rint(steps[1] / 2))
    roots = np.rint(steps[1] * np.sqrt(0.5))
    assert list(moments.squares) == rounded(np.rint(steps[0]) ** 2 + roots**2)
    cross = np.rint(steps[0]).prod() + roots.prod()
    assert list(moments.products) == [moments.squares[0], round(cross), moments.squares[1]]
    assert abs(moments.rests).max() <= 2 * 2**19
    assert abs(moments.partial_rests).max() <= 2**19
