"""Totals have named families, and one more family is one more definition."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.features import Ball
from sketchshift.kernels import BITS
from sketchshift.privacy.release import release_vector, sensitivity
from sketchshift.sketch import FunctionFamily, register_family
from sketchshift.sketch.family import families_of
from sketchshift.sketch.file import encode
from sketchshift.sketch.totals import Totals

SPEC = ss.SketchSpec(n_features=2, sketch_size=12, bandwidth=0.8)
PUBLIC = SPEC.replaced(rows=replace(SPEC.rows, onto=Ball("declared", 100.0)))
X = np.random.default_rng(3).normal(size=(500, 2))


@register_family
class PositiveFamily(FunctionFamily):
    """Weight of the rows whose first coordinate is beyond a limit."""

    name, lowest = "positive", 0.0

    def __init__(self, spec, limit):
        super().__init__(spec, 1)
        self.limit = limit

    def evaluate(self, values):
        return values[:, :1] > self.limit


def with_one_more(spec):
    return spec.replaced(families={"positive": {"limit": 0.0}})


SPEC, PUBLIC = with_one_more(SPEC), with_one_more(PUBLIC)


def positive(sketch) -> float:
    return int(sketch._totals.decode("positive")[0]) / 2**BITS


def expected(rows: np.ndarray) -> int:
    return int((rows[:, 0] > 0).sum())


def test_one_more_family_adds_subtracts_merges_travels_and_is_removed():
    weights = np.random.default_rng(4).integers(0, 40, len(X)) / 4
    whole, part = ss.sketch(X, SPEC, sample_weight=weights), ss.sketch(X[:200], SPEC)
    sketcher = ss.Sketcher(SPEC, n_threads=2).update(X, sample_weight=weights)

    assert positive(whole) == positive(sketcher.sketch()) == weights[X[:, 0] > 0].sum()
    assert positive(whole + part - whole) == expected(X[:200])
    assert positive(whole.prefix(5)) == positive(whole)
    assert pickle.loads(pickle.dumps(whole)) == whole
    rest = sketcher.remove(X[:100], sample_weight=weights[:100]).sketch()
    assert positive(rest) == weights[100:][X[100:, 0] > 0].sum()


def test_one_more_family_goes_through_checkpoints(tmp_path):
    np.save(tmp_path / "x.npy", X)

    for _ in range(2):
        passed = ss.sketch(tmp_path / "x.npy", SPEC, checkpoint=tmp_path / "pass")
        assert positive(passed) == expected(X)


def test_one_more_family_is_released_if_what_a_row_adds_is_bounded(monkeypatch, tmp_path):
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


def test_integers_of_one_more_family_that_no_rows_left_are_refused():
    whole, part = ss.sketch(X, SPEC), ss.sketch(X[:200], SPEC)
    part._totals.dense["positive"][:, 1] += 10**4

    with pytest.raises(ss.errors.SketchFormatError, match="the integers are not those of any rows"):
        ss.Sketch.from_bytes(part.to_bytes())
    with pytest.raises(ss.errors.RemovalError, match="with sums that no rows have"):
        whole - part


def test_functions_of_rows_beyond_all_reach_are_summed_where_outliers_hold_the_rows():
    cells = ss.features.Cells.of(X[:5])
    spec = SPEC.replaced(cells=cells)
    rows = np.vstack([X, [[1e12, 0.0], [-1e12, 0.0]]])
    whole = ss.sketch(rows, spec)

    assert positive(whole) == expected(rows)
    assert ss.Sketch.from_bytes(whole.to_bytes()) == whole
    assert positive(whole - ss.sketch(rows[400:], spec)) == expected(rows[:400])
    with pytest.raises(ss.errors.InvalidRowsError):
        ss.sketch(rows, SPEC)


class Wrong(FunctionFamily):
    name = "wrong"

    def __init__(self, spec, returns):
        super().__init__(spec, 2)
        self.returns = np.array(returns)

    def evaluate(self, values):
        return np.broadcast_to(self.returns, (len(values), *self.returns.shape))


def test_functions_out_of_bounds_or_shape_are_refused_and_of_private_rows_cut():
    register_family(Wrong)
    for returns, message in (
        ([0.0, 1.5], "must return numbers from -1 to 1. Got 1.5"),
        ([0.0, -1.5], "Got -1.5"),
        ([0.5], r"numbers of shape \(\d+, 2\). Got float64 of shape"),
        (0.5, "Got float64 of shape"),
        (["a", "b"], "Got <U1"),
    ):
        spec = SPEC.replaced(families={"wrong": {"returns": returns}})
        with pytest.raises(ss.errors.SpecError, match=f"family 'wrong'.*{message}"):
            ss.sketch(X, spec)
    far = {"wrong": {"returns": [-5.0, 5.0]}}
    sums = ss.sketch(X, PUBLIC.replaced(families=far)).integers("wrong")
    assert sums.tolist() == [-len(X) << BITS, len(X) << BITS]


def test_a_name_is_of_one_family():
    register_family(PositiveFamily)  # a cell of a notebook runs again
    with pytest.raises(ss.errors.SpecError, match="one that no family has"):
        register_family(type("Other", (FunctionFamily,), {"name": "positive"}))
    for name in ("waves", None):
        with pytest.raises(ss.errors.SpecError, match="'name' parameter of register_family"):
            register_family(type("Other", (FunctionFamily,), {"name": name}))
    for families in (["positive"], {"positive": [1]}, {"positive": {"limit": X}}):
        with pytest.raises(ss.errors.SpecError, match="families"):
            SPEC.replaced(families=families)


def test_the_families_of_a_spec_have_names_and_sizes():
    # 2 m waves; 2 weights, 3 d sums and rests, d (d + 1) / 2 products
    groups = {"waves": (24,), "moments": (1, 1, 2, 2, 2, 3), "positive": (1,)}
    assert {family.name: family.groups for family in families_of(SPEC)} == groups
    none, less = (encode("", Totals.zero(spec)) for spec in (SPEC, SPEC.prefix(11)))
    assert len(none) == len(less) + 2  # a byte each


def test_integers_of_moments_are_those_of_the_definition():
    """One row of weight 1 and one of weight 1/2, in steps of unit / 2**16."""
    rows, weights = np.array([[0.5, -0.25], [0.125, 1.0]]), np.array([1.0, 0.5])
    integers = ss.sketch(rows, SPEC, sample_weight=weights)._totals.integers("moments")
    weights, sums, rests, partial_rests, products = np.split(integers, [2, 4, 6, 8])
    steps = rows * 2**16 / SPEC.rows.unit

    def rounded(values):
        return [round(float(value)) for value in values]

    assert list(weights) == [3 * 2**21, 3 * 2**51]
    assert list(sums) == rounded(steps[0] + np.rint(steps[1] / 2))
    roots = np.rint(steps[1] * np.sqrt(0.5))
    squares = rounded(np.rint(steps[0]) ** 2 + roots**2)
    cross = np.rint(steps[0]).prod() + roots.prod()
    assert list(products) == [squares[0], round(cross), squares[1]]
    assert abs(rests).max() <= 2 * 2**19
    assert abs(partial_rests).max() <= 2**19
