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


@pytest.mark.parametrize("rows", [ROWS, list(ROWS), iter([ROWS])], ids=["array", "list", "stream"])
def test_a_masked_number_of_a_row_is_missing(rows):
    found = ss.sketch(rows, SPEC, on_invalid="skip")

    assert found.n_invalid == MISSING.sum()
    np.testing.assert_array_equal(found.z, ss.sketch(X[~MISSING], SPEC).z)


@pytest.mark.parametrize(
    "call",
    [
        lambda: ss.metrics.mse(ROWS, X[:3]),
        lambda: ss.metrics.mse(X, ROWS[:5]),
        lambda: ss.metrics.mse(X, X[:3], sample_weight=MASKED["float"]),
        lambda: ss.metrics.assign(ROWS, X[:3]),
        lambda: ss.metrics.lloyd(ROWS, 2),
        lambda: ss.privacy.plan_declared(ROWS[3], 5.0, n_clusters=2),
        lambda: ss.decoders.Box(ROWS[3], np.ones(2)),
    ],
)
def test_metrics_and_declared_numbers_may_not_be_masked(call):
    with pytest.raises(ss.errors.SketchshiftError, match=r"finite|NaN|center"):
        call()


@pytest.mark.parametrize("kind", [ss.CompressiveKMeans, ss.CompressiveGaussianMixture])
def test_estimators_refuse_what_is_masked(kind):
    model = kind(2, random_state=0).fit(X)
    for step in (model.fit, model.partial_fit, model.predict, model.score, model.forget):
        with pytest.raises(ValueError, match="NaN"):
            step(ROWS)
    for step in (model.fit, model.partial_fit):
        with pytest.raises(ss.errors.InvalidRowsError, match="weight nan"):
            step(X, sample_weight=MASKED["float"])
    with pytest.raises(ss.errors.DataError, match="sample_weight must be finite"):
        ss.CompressiveKMeans(2, random_state=0).fit(X).score(
            csr_array(X), sample_weight=MASKED["float"]
        )
