"""Slices of private rows: the same refusals as for one sketch, and parallel composition."""

from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss


@pytest.fixture
def labels(X) -> np.ndarray:
    return np.arange(len(X)) % 2


def test_slices_drop_and_clip_rows_as_one_sketch_does(X, labels, public_spec):
    """Rows that are not finite, or far out, cause no error and no count of invalid rows."""
    X = X.copy()
    X[3], X[7], X[8] = np.nan, 1e300, 1e6
    table = ss.sketch_by(X, labels, public_spec)

    assert table.merge() == ss.sketch(X, public_spec)
    assert [sketch.n_invalid for sketch in table.sketches] == [0, 0]


def test_slices_of_no_usable_rows_are_no_error(labels, X, public_spec):
    table = ss.sketch_by(np.full_like(X, np.nan), labels, public_spec)

    assert table.counts.tolist() == [0, 0]


def test_weights_are_refused_in_slices_too(X, labels, public_spec):
    with pytest.raises(ss.errors.DataError, match="every row counts 1"):
        ss.sketch_by(X, labels, public_spec, sample_weight=np.ones(len(X)))


def test_too_many_slices_are_an_error_that_names_no_key(X, public_spec):
    secrets = np.array([f"person-{i}" for i in range(len(X))])

    with pytest.raises(ss.errors.DataError, match="more than 5 slices") as caught:
        ss.sketch_by(X, secrets, public_spec, max_slices=5)

    assert "person" not in str(caught.value)


def test_releases_of_disjoint_slices_cost_as_much_as_one(X, labels, public_spec, release):
    table = ss.sketch_by(X, labels, public_spec)
    first, second = (release(sketch) for sketch in table.sketches)

    apart = first.merge(second, disjoint=True)

    assert apart.ledger.epsilon() == pytest.approx(1.0, rel=1e-6)
    assert (first + second).ledger.epsilon() == pytest.approx(1.4405, abs=2e-3)


def test_a_table_is_not_released_as_one(X, labels, public_spec, release):
    with pytest.raises(ss.errors.PrivacyError, match="one sketch is released at a time"):
        release(ss.sketch_by(X, labels, public_spec))


def test_slices_of_a_plan_from_the_data_are_not_released(X, labels, release):
    table = ss.sketch_by(X, labels, n_clusters=3)

    with pytest.raises(ss.errors.PrivacyError):
        release(table[0])


def test_a_table_of_private_sketches_is_refused_by_row(X, labels, public_spec, release):
    import pyarrow as pa

    private = release(ss.sketch(X, public_spec))
    table = pa.table({"day": [1], "sketch": [private.to_bytes()]})

    with pytest.raises(
        ss.errors.SketchFormatError, match="row 0 of the table: this is a private sketch"
    ):
        ss.SketchTable.from_arrow(table)
