"""What is masked or null is missing wherever rows and weights come in, whatever lies below."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import sketchshift as ss

X = np.random.default_rng(0).normal(size=(300, 2))
MISSING = np.arange(300) % 7 == 3
WEIGHTS = np.where(MISSING, 1000.0, 1.0 + np.arange(300) % 3)
NULLS = [None if gone else float(w) for w, gone in zip(WEIGHTS, MISSING, strict=True)]
SPEC = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=1.0)

MASKED = {
    "float": np.ma.array(WEIGHTS, mask=MISSING),
    "integer": np.ma.array(WEIGHTS.astype(int), mask=MISSING),
    "pandas": pd.Series(NULLS, dtype="Float64"),
    "pandas integers": pd.Series(NULLS, dtype="Int64"),
    "polars": pl.Series(NULLS),
    "arrow": pa.array(NULLS),
    "arrow chunks": pa.chunked_array([NULLS[:100], NULLS[100:]]),
}
ROWS = np.ma.array(X, mask=np.column_stack([MISSING, np.zeros(300, dtype=bool)]))


@pytest.fixture(params=list(MASKED))
def weights(request: pytest.FixtureRequest):
    return MASKED[request.param]


def test_a_missing_weight_is_refused(weights):
    for data in (X, pa.table(dict(zip("ab", X.T, strict=True))), csr_array(X)):
        with pytest.raises(ss.errors.InvalidRowsError, match=r"row 3 of .* has weight nan"):
            ss.sketch(data, SPEC, sample_weight=weights)
    with pytest.raises(ss.errors.InvalidRowsError, match="row 3 of array has weight nan"):
        ss.Sketcher(SPEC).update(X, sample_weight=weights)
    with pytest.raises(ss.errors.InvalidRowsError, match="row 3 of array has weight nan"):
        ss.sketch_by(X, by=np.arange(300) % 2, spec=SPEC, sample_weight=weights)


def test_a_row_without_a_weight_is_left_out_where_that_is_asked_for(weights):
    found = ss.sketch(X, SPEC, sample_weight=weights, on_invalid="skip")
    expected = ss.sketch(X[~MISSING], SPEC, sample_weight=WEIGHTS[~MISSING])

    assert found.n_invalid == MISSING.sum()
    assert found.total_weight == expected.total_weight
    np.testing.assert_array_equal(found.z, expected.z)


def test_a_mask_that_hides_nothing_changes_nothing():
    masked = np.ma.array(WEIGHTS, mask=False)

    assert ss.sketch(X, SPEC, sample_weight=masked) == ss.sketch(X, SPEC, sample_weight=WEIGHTS)


@pytest.mark.parametrize("rows", [ROWS, list(ROWS), iter([ROWS])], ids=["array", "list", "stream"])
def test_a_masked_number_of_a_row_is_missing(rows):
    found = ss.sketch(rows, SPEC, on_invalid="skip")

    assert found.n_invalid == MISSING.sum()
    np.testing.assert_array_equal(found.z, ss.sketch(X[~MISSING], SPEC).z)


def test_metrics_refuse_what_is_masked():
    C = X[:3]
    for measure in (ss.metrics.mse, ss.metrics.assign):
        with pytest.raises(ss.errors.DataError, match=r"finite|NaN"):
            measure(ROWS, C)
    with pytest.raises(ss.errors.DataError, match="finite"):
        ss.metrics.mse(X, np.ma.array(C, mask=C > 0))
    with pytest.raises(ss.errors.DataError, match="sample_weight must be finite"):
        ss.metrics.mse(X, C, sample_weight=MASKED["float"])
    with pytest.raises(ss.errors.DataError, match=r"finite|NaN"):
        ss.metrics.lloyd(ROWS, 2)


@pytest.mark.parametrize("kind", [ss.CompressiveKMeans, ss.CompressiveGaussianMixture])
def test_estimators_refuse_what_is_masked(kind):
    model = kind(2, random_state=0)
    for step in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="NaN"):
            step(ROWS)
        with pytest.raises(ss.errors.InvalidRowsError, match="weight nan"):
            step(X, sample_weight=MASKED["float"])
    model.fit(X)
    for step in (model.predict, model.score, model.forget):
        with pytest.raises(ValueError, match="NaN"):
            step(ROWS)


@pytest.mark.parametrize("rows", [X, csr_array(X)], ids=["dense", "sparse"])
def test_a_score_has_no_room_for_missing_weights(rows):
    model = ss.CompressiveKMeans(2, random_state=0).fit(X)

    with pytest.raises(ss.errors.DataError, match="sample_weight must be finite"):
        model.score(rows, sample_weight=MASKED["float"])


def test_declared_numbers_may_not_be_masked():
    ends = np.ma.array([1.0, 2.0], mask=[False, True])

    with pytest.raises(ss.errors.SpecError, match="center"):
        ss.privacy.plan_declared(ends, 5.0, n_clusters=2)
    with pytest.raises(ss.errors.SpecError, match="finite corners"):
        ss.decoders.Box(np.zeros(2), ends)
