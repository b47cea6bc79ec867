"""Plans of any data, and sketches planned on the way."""

from __future__ import annotations

import dataclasses
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.sketch.reading import Planning

NAMES = ["a", "b", "c"]


@pytest.fixture
def files(tmp_path, X):
    """The same rows in several formats, and in a folder of parts."""
    frame = pd.DataFrame(X, columns=NAMES)
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = pa.table(frame)
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    (tmp_path / "parts").mkdir()
    for i in range(4):
        part = table.slice(250 * i, 250)
        pa.parquet.write_table(part, tmp_path / "parts" / f"{i}.parquet")
    return tmp_path


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), standardize=st.booleans(), data=st.data())
def test_shuffled_rows_give_the_same_plan(seed, standardize, data):
    """Sums depend on their order in the last bits; here that does not show."""
    rng = np.random.default_rng(seed)
    n = data.draw(st.sampled_from([1, 2, 3, 50, 2500]))
    X = rng.normal(size=(n, 2)) + rng.integers(0, 3, size=(n, 1)) * 9
    options = {"n_clusters": 3, "seed": 5, "standardize": standardize}

    specs = {ss.plan(rows, **options).to_json() for rows in (X, X[::-1], rng.permutation(X))}

    assert len(specs) == 1


@pytest.mark.parametrize(
    "kind",
    ["array", "list", "pandas", "polars", "table", "sparse", "blocks", "csv", "parquet", "folder"],
)
def test_a_sketch_planned_on_the_way_is_that_of_the_plan(kind, files, X):
    frame = pd.DataFrame(X, columns=NAMES)
    data = {
        "array": X,
        "list": X.tolist(),
        "pandas": frame,
        "polars": pl.DataFrame(frame),
        "table": pa.table(frame),
        "sparse": scipy.sparse.csr_array(X),
        "blocks": [X[:400], X[400:]],
        "csv": files / "x.csv",
        "parquet": str(files / "x.parquet"),
        "folder": files / "parts",
    }[kind]

    spec = ss.plan(data, 4, seed=3)

    s = ss.sketch(data, n_clusters=4, seed=3)
    assert s == ss.sketch(data, spec)
    assert s.count == 1000
    has_names = kind in ("pandas", "polars", "table", "csv", "parquet", "folder")
    assert spec == dataclasses.replace(
        ss.plan(X, 4, seed=3), columns=tuple(NAMES) if has_names else None
    )


def test_the_sample_is_limited_and_does_not_hide_the_rest():
    """Of 20 000 rows, 2000 are drawn without cells: mean and spread are right to a few percent."""
    X = np.random.default_rng(0).normal(size=(20_000, 2)) * 5 + 100
    spec = ss.plan(X, 5, cells=False)

    assert spec.center == pytest.approx([100, 100], abs=5 * 5 / np.sqrt(2000))
    assert spec.scale == pytest.approx(5 * np.sqrt(2), rel=0.1)
    assert spec.scale != pytest.approx(np.sqrt(X.var(axis=0).sum()), rel=1e-5)
    assert ss.plan(X, 5, seed=1, cells=False).center != spec.center


def test_a_plan_with_cells_sees_all_of_some_rows_and_200_000_of_many():
    X = np.random.default_rng(0).normal(size=(210_000, 1)) + np.arange(210_000)[:, None] / 1e5

    some, many = ss.plan(X[:20_000], 2), ss.plan(X, 2)

    assert (some.cells.n_rows, many.cells.n_rows) == (20_000, 200_000)
    assert some.scale == pytest.approx(X[:20_000].std(), rel=1e-5)
    assert many.center != ss.plan(X, 2, seed=1).center


def test_of_wide_rows_a_plan_holds_no_more_numbers_than_of_others():
    assert [Planning(2).n_rows(d) for d in (1, 80, 1000, 10**6)] == [200_000, 200_000, 16_777, 2000]


def test_columns_are_chosen_by_name(files, X):
    spec = ss.plan(files / "x.csv", 4, columns=["c", "a"])

    assert spec.columns == ("c", "a")
    assert spec.center == ss.plan(X[:, [2, 0]], 4).center
    s = ss.sketch(files / "x.csv", n_clusters=4, columns=["c", "a"])
    assert s.spec == spec


def test_parameters_of_the_plan_reach_it(X):
    options = {"sketch_size": 77, "seed": 5, "standardize": True, "cells": False}
    s = ss.sketch(X, n_clusters=4, **options)

    assert s.spec == ss.plan(X, 4, **options)
    assert (s.spec.sketch_size, s.spec.seed) == (77, 5)
    assert ss.plan(X, 4).cells is not None
    assert len(s.spec.scale) == 3


def test_weights_count_in_the_plan(X):
    weights = np.where(X[:, 0] > 5, 3.0, 1.0)

    spec = ss.plan(X, 4, sample_weight=weights)

    np.testing.assert_allclose(spec.center, np.average(X, axis=0, weights=weights), atol=1e-5)
    frame = pd.DataFrame(X, columns=NAMES).assign(w=weights)
    assert ss.plan(frame, 4, sample_weight="w").center == spec.center
    assert ss.sketch(X, n_clusters=4, sample_weight=weights).spec == spec


def test_rows_of_weight_zero_do_not_count(X):
    weights = np.r_[np.ones(600), np.zeros(400)]

    assert ss.plan(X, 4, sample_weight=weights) == ss.plan(X[:600], 4, sample_weight=np.ones(600))
    with pytest.raises(ss.errors.DataError, match="no rows to plan on"):
        ss.plan(X, 4, sample_weight=np.zeros(1000))
    with pytest.raises(ss.errors.InvalidRowsError, match="row 3 of array has weight -1"):
        ss.plan(X, 4, sample_weight=np.where(np.arange(1000) == 3, -1.0, 1.0))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_invalid_rows_are_refused_as_in_a_sketch_or_left_out(X, bad):
    dirty = X.copy()
    dirty[[3, 700], 1] = bad
    clean = np.delete(X, [3, 700], axis=0)

    for call in (lambda: ss.plan(dirty, 4), lambda: ss.sketch(dirty, n_clusters=4)):
        with pytest.raises(
            ss.errors.InvalidRowsError, match=r"row 3 of array has .* in column 1 .*3, 700"
        ):
            call()
    assert ss.plan(dirty, 4, on_invalid="skip") == ss.plan(clean, 4)
    s = ss.sketch(dirty, n_clusters=4, on_invalid="skip")
    assert (s.count, s.n_invalid) == (998, 2)


def test_invalid_rows_alone_are_no_rows():
    X = np.full((5, 2), np.nan)

    with pytest.raises(ss.errors.DataError, match="no rows to plan on"):
        ss.plan(X, 2, on_invalid="skip")


@pytest.mark.parametrize("data", [np.empty((0, 2)), [np.empty((0, 2))], iter([np.empty((0, 2))])])
def test_there_must_be_rows(data):
    with pytest.raises(ss.errors.DataError, match="no rows to plan on"):
        ss.sketch(data, n_clusters=2)


def chunks(X: np.ndarray, rows: int = 100):
    return (X[i : i + rows] for i in range(0, len(X), rows))


def test_a_stream_is_planned_on_its_head_and_every_row_counts_once():
    X = np.random.default_rng(0).normal(size=(10_000, 2))

    with pytest.warns(
        ss.errors.PlanWarning, match=r"first 2,000 rows.*if it is sorted, pass spec=ss.plan"
    ):
        s = ss.sketch(chunks(X), n_clusters=3, cells=False)

    assert s.spec == ss.plan(X[:2000], 3, cells=False)
    assert s == ss.sketch(X, s.spec)
    assert s.count == 10_000


def test_the_warning_points_at_the_line_that_called():
    X = np.random.default_rng(0).normal(size=(5000, 2))

    with pytest.warns(ss.errors.PlanWarning) as caught:
        ss.plan(chunks(X), 3, cells=False)

    assert caught[0].filename == __file__


def test_a_short_stream_is_planned_on_as_a_whole_without_a_warning(X):
    s = ss.sketch(chunks(X), n_clusters=3)

    assert s == ss.sketch(X, n_clusters=3)
    reader = pa.table(pd.DataFrame(X, columns=NAMES)).to_reader(max_chunksize=99)
    assert ss.sketch(reader, n_clusters=3).z.tolist() == s.z.tolist()


def test_invalid_rows_of_a_stream_do_not_fill_its_head():
    X = np.random.default_rng(0).normal(size=(6000, 2))
    X[:3000:2] = np.nan

    with pytest.warns(ss.errors.PlanWarning, match="first 3,500 rows"):
        s = ss.sketch(chunks(X), n_clusters=3, on_invalid="skip", cells=False)

    assert (s.count, s.n_invalid) == (4500, 1500)
    with pytest.raises(ss.errors.InvalidRowsError, match="row 0 of block 0 has nan"):
        ss.sketch(chunks(X), n_clusters=3)


def test_plans_may_be_made_in_several_threads(X):
    specs = []
    threads = [
        threading.Thread(target=lambda: specs.append(ss.plan(X, 5).fingerprint)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert specs == [ss.plan(X, 5).fingerprint] * 4


def test_exactly_one_of_spec_and_number_of_clusters_is_needed(X):
    spec = ss.plan(X, 3)

    with pytest.raises(ss.errors.SpecError, match=r"needs spec or n_clusters. Pass n_clusters=10"):
        ss.sketch(X)
    with pytest.raises(ss.errors.SpecError, match=r"needs spec or n_clusters"):
        ss.sketch(X, seed=3)
    with pytest.raises(
        ss.errors.SpecError, match=r"not both: n_clusters cannot change what the spec"
    ):
        ss.sketch(X, spec, n_clusters=3)
    with pytest.raises(ss.errors.SpecError, match=r"not both: seed, standardize cannot change"):
        ss.sketch(X, spec, seed=0, standardize=False)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_clusters": 0}, "'n_clusters' parameter of plan"),
        ({"n_clusters": True}, "'n_clusters' parameter of plan"),
        ({"n_clusters": 3, "seed": 2**64}, "'seed' parameter of plan"),
        ({"n_clusters": 3, "on_invalid": "drop"}, "'on_invalid' parameter of plan"),
    ],
)
def test_parameters_are_checked(X, parameters, words):
    with pytest.raises(ss.errors.SpecError, match=words):
        ss.plan(X, **parameters)


def test_heavy_tails_are_within_reach():
    """A million rows of a Cauchy law: the farthest lie ten thousand radii of the sample out."""
    X = np.random.default_rng(0).standard_cauchy(size=(1_000_000, 2))

    assert ss.sketch(X, n_clusters=10, sketch_size=20).count == 1_000_000
