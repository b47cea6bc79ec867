"""The way of private rows into a sketch: each alone, in silence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.features import Origin

CENTER = np.array([5.0, -1.0, 0.3])
BAD = [[np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0], [0.0, -np.inf, np.nan], [1e308, 1e308, 0.0]]


def test_rows_inside_the_ball_are_sketched_as_ever(X, public_spec):
    inside = X[np.linalg.norm(X - CENTER, axis=1) < 20.0]
    private = ss.sketch(inside, public_spec)
    plain = ss.sketch(inside, replace(public_spec, origin=None))

    np.testing.assert_array_equal(private._totals.waves, plain._totals.waves)
    assert private.count == plain.count


def test_rows_outside_are_moved_to_the_border(public_spec):
    """The ball has radius 10 in units of the scale, 2."""
    far = CENTER + np.array([[30.0, 40.0, 0.0]])
    border = CENTER + np.array([[12.0, 16.0, 0.0]])

    moved, there = (ss.sketch(row, public_spec) for row in (far, border))

    np.testing.assert_allclose(moved._totals.waves, there._totals.waves, atol=100)  # of 4e6


def test_rows_that_are_not_numbers_are_dropped_and_not_counted(X, public_spec):
    assert ss.sketch(np.vstack([X, BAD]), public_spec) == ss.sketch(X, public_spec)
    assert ss.sketch(np.vstack([X, BAD]), public_spec).n_invalid == 0


def test_no_rows_at_all_are_no_error(public_spec):
    assert ss.sketch(np.array(BAD), public_spec).count == 0


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(*[st.floats(allow_nan=True)] * 3), min_size=1, max_size=5))
def test_no_row_raises_and_each_adds_the_same_wherever_it_stands(rows):
    spec = ss.SketchSpec(3, 20, 0.5, origin=Origin("declared", 5.0))
    X = np.array(rows, dtype=np.float64)

    alone = sum(ss.sketch(row[None], spec) for row in X)

    assert ss.sketch(X, spec) == alone


def test_a_ball_beyond_reach_is_refused_before_any_row(public_spec):
    spec = replace(public_spec, origin=Origin("declared", 1e9))

    with pytest.raises(ss.errors.SpecError, match=r"declared radius is 1e\+09 times the scale"):
        ss.Sketcher(spec)


def test_the_origin_is_part_of_the_spec(public_spec):
    """Sketches of other origins do not merge, and specs without one are as they were."""
    assert ss.SketchSpec.from_json(public_spec.to_json()) == public_spec
    assert public_spec.fingerprint != replace(public_spec, origin=None).fingerprint
    assert "origin" not in replace(public_spec, origin=None).to_json()
    assert "origin=Origin" in public_spec.describe()


@pytest.mark.parametrize(
    "origin",
    [3, {}, {"kind": "declared", "radius": 1.0, "charges": 3}, {"kind": "x", "radius": 1.0}],
)
def test_an_unsound_origin_is_refused(public_spec, origin):
    import json

    content = json.loads(public_spec.to_json()) | {"origin": origin}

    with pytest.raises(ss.errors.SpecError):
        ss.SketchSpec.from_dict(content)
