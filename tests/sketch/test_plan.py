"""Plans of any data, and sketches planned on the way."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.sketch.reading import Planning

NAMES = ["a", "b", "c"]
SPEC = ss.SketchSpec(3, 20, bandwidth=1.0)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    standardize=st.booleans(),
    n=st.sampled_from([1, 2, 3, 50, 2500]),
)
def test_shuffled_rows_give_the_same_plan(seed, standardize, n):
    """Sums depend on their order in the last bits, which a plan does not show."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) + rng.integers(0, 3, size=(n, 1)) * 9

    specs = {
        ss.plan(rows, 3, seed=5, standardize=standardize).to_json()
        for rows in (X, X[::-1], rng.permutation(X))
    }

    assert len(specs) == 1


@pytest.mark.parametrize("kind", ["sparse", "blocks", "folder"])
def test_a_sketch_planned_on_the_way_is_that_of_the_plan(kind, tmp_path, X):
    options = {"n_clusters": 4, "sketch_size": 77, "seed": 5, "standardize": True, "cells": False}
    chosen = {}
    data = scipy.sparse.csr_array(X) if kind == "sparse" else [X[:400], X[400:]]
    if kind == "folder":
        chosen = {"columns": ["c", "a"]}
        data, frame = tmp_path, pd.DataFrame(X, columns=NAMES)
        frame[:250].to_parquet(tmp_path / "0.parquet")
        frame[250:].to_csv(tmp_path / "1.csv", index=False)
        X = X[:, [2, 0]]

    s = ss.sketch(data, **options, **chosen)

    assert s == ss.sketch(data, ss.plan(data, **options, **chosen))
    assert s.count == 1000
    columns = ("c", "a") if chosen else None
    planned = ss.plan(X, **options)
    assert s.spec == planned.replaced(rows=dataclasses.replace(planned.rows, columns=columns))
    assert (s.spec.sketch_size, s.spec.waves.seed, len(s.spec.rows.scale)) == (77, 5, X.shape[1])
    assert s.spec.cells is None
    assert ss.plan(X, 4).cells is not None


def test_the_sample_is_limited_and_does_not_hide_the_rest():
    """Of 20 000 rows, 2000 are drawn without cells: mean and spread are right to a few percent."""
    X = np.random.default_rng(0).normal(size=(20_000, 2)) * 5 + 100
    spec = ss.plan(X, 5, cells=False)

    assert spec.rows.center == pytest.approx([100, 100], abs=5 * 5 / np.sqrt(2000))
    assert spec.rows.scale == pytest.approx(5 * np.sqrt(2), rel=0.1)
    assert spec.rows.scale != pytest.approx(np.sqrt(X.var(axis=0).sum()), rel=1e-5)
    assert ss.plan(X, 5, seed=1, cells=False).rows.center != spec.rows.center


def test_a_plan_with_cells_sees_all_of_some_rows_and_200_000_of_many():
    X = np.random.default_rng(0).normal(size=(210_000, 1))

    some, many = ss.plan(X[:20_000], 2), ss.plan(X, 2)

    assert (some.cells.n_rows, many.cells.n_rows) == (20_000, 200_000)
    assert some.rows.scale == pytest.approx(X[:20_000].std(), rel=1e-5)
    assert many.rows.center != ss.plan(X, 2, seed=1).rows.center


def test_of_wide_rows_a_plan_holds_no_more_numbers_than_of_others():
    assert [Planning(2).n_rows(d) for d in (1, 80, 1000, 10**6)] == [200_000, 200_000, 16_777, 2000]


def test_weights_count_in_the_plan(X):
    weights = np.r_[np.where(X[:600, 0] > 5, 3.0, 1.0), np.zeros(400)]

    spec = ss.plan(X, 4, sample_weight=weights)

    np.testing.assert_allclose(spec.rows.center, np.average(X, axis=0, weights=weights), atol=1e-5)
    assert spec == ss.plan(X[:600], 4, sample_weight=weights[:600])
    assert spec == ss.sketch(X, n_clusters=4, sample_weight=weights).spec
    with pytest.raises(ss.errors.InvalidRowsError, match="row 0 of array has weight -"):
        ss.plan(X, 4, sample_weight=-weights)
    with pytest.raises(ss.errors.DataError, match="no rows to plan on"):
        ss.plan(X, 4, sample_weight=np.zeros(1000))


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_invalid_rows_are_refused_as_in_a_sketch_or_left_out(X, bad):
    dirty = X.copy()
    dirty[[3, 700], 1] = bad
    clean = np.delete(X, [3, 700], axis=0)

    for call in (ss.plan, ss.sketch):
        with pytest.raises(
            ss.errors.InvalidRowsError, match=r"row 3 of array has .* in column 1 .*3, 700"
        ):
            call(dirty, n_clusters=4)
    s = ss.sketch(dirty, n_clusters=4, on_invalid="skip")
    assert s.spec == ss.plan(clean, 4) == ss.plan(dirty, 4, on_invalid="skip")
    assert (s.count, s.n_invalid) == (998, 2)


@pytest.mark.parametrize("data", [iter([np.empty((0, 2))]), np.full((5, 2), np.nan)])
def test_there_must_be_rows(data):
    with pytest.raises(ss.errors.DataError, match="no rows to plan on"):
        ss.sketch(data, n_clusters=2, on_invalid="skip")


def chunks(X: np.ndarray):
    return (X[i : i + 100] for i in range(0, len(X), 100))


def test_a_stream_is_planned_on_its_head_and_every_row_counts_once():
    X = np.random.default_rng(0).normal(size=(6000, 2))
    holes = np.where(np.arange(6000)[:, None] % 2, X, np.nan)

    with pytest.warns(
        ss.errors.PlanWarning, match=r"first 2,000 rows.*if it is sorted, pass spec=ss.plan"
    ) as caught:
        s = ss.sketch(chunks(X), n_clusters=3, cells=False)
    with pytest.warns(ss.errors.PlanWarning, match="first 4,000 rows"):
        of_holes = ss.sketch(chunks(holes), n_clusters=3, on_invalid="skip", cells=False)

    assert caught[0].filename == __file__
    assert s.spec == ss.plan(X[:2000], 3, cells=False)
    assert s == ss.sketch(X, s.spec)
    assert (of_holes.count, of_holes.n_invalid) == (3000, 3000)
    with pytest.raises(ss.errors.InvalidRowsError, match="row 0 of block 0 has nan"):
        ss.sketch(chunks(holes), n_clusters=3)


def test_a_short_stream_is_planned_on_as_a_whole_without_a_warning(X):
    reader = pa.table(pd.DataFrame(X, columns=NAMES)).to_reader(max_chunksize=99)
    expected = ss.sketch(X, n_clusters=3)

    assert ss.sketch(chunks(X), n_clusters=3) == expected
    assert ss.sketch(reader, n_clusters=3).z.tolist() == expected.z.tolist()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"seed": 3}, "needs spec or n_clusters. Pass n_clusters=10"),
        ({"spec": SPEC, "n_clusters": 3}, "not both: n_clusters cannot change what the spec"),
        ({"spec": SPEC, "seed": 0, "standardize": False}, "not both: seed, standardize cannot"),
        ({"n_clusters": True}, "'n_clusters' parameter of"),
        ({"n_clusters": 3, "on_invalid": "drop"}, "'on_invalid' parameter of"),
    ],
)
def test_parameters_are_checked(X, parameters, words):
    with pytest.raises(ss.errors.SpecError, match=words):
        ss.sketch(X, **parameters)


def test_heavy_tails_are_within_reach():
    """A million rows of a Cauchy law: the farthest lie ten thousand radii of the sample out."""
    X = np.random.default_rng(0).standard_cauchy(size=(1_000_000, 2))

    assert ss.sketch(X, n_clusters=10, sketch_size=20).count == 1_000_000
