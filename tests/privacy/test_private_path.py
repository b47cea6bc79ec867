"""The way of private rows into a sketch: each alone, in silence."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import sketchshift as ss
from sketchshift.features import Ball, Cells, Rows, Waves

CENTER = np.array([5.0, -1.0, 0.3])
BAD = [[np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0], [0.0, -np.inf, np.nan], [1e308, 1e308, 0.0]]


def test_rows_inside_the_ball_are_sketched_as_ever(X, public_spec):
    inside = X[np.linalg.norm(X - CENTER, axis=1) < 20.0]
    private, plain = (
        ss.sketch(inside, spec)._totals
        for spec in (public_spec, public_spec.replaced(rows=replace(public_spec.rows, onto=None)))
    )

    assert_array_equal(private.integers("waves"), plain.integers("waves"))
    assert private.count == plain.count


def test_rows_outside_are_moved_to_the_border(public_spec):
    """The ball has radius 10 in units of the scale, 2."""
    moved, there = (
        ss.sketch(CENTER + np.array([way]), public_spec)._totals.integers("waves")
        for way in ([30.0, 40.0, 0.0], [12.0, 16.0, 0.0])
    )

    assert_allclose(moved, there, atol=100)  # of 4e6


def test_rows_that_are_not_numbers_are_dropped_and_not_counted(X, public_spec):
    rows = np.vstack([X, BAD])
    found = ss.sketch(rows, public_spec)

    assert found == ss.sketch(X, public_spec)
    assert ss.sketch_by(rows, np.arange(len(rows)) % 2, public_spec).merge() == found
    assert found.n_invalid == ss.sketch(np.array(BAD), public_spec).count == 0


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(*[st.floats(allow_nan=True)] * 3), min_size=1, max_size=5),
    st.sampled_from([None, Cells.of([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -2.0]])]),
)
def test_no_row_raises_and_each_adds_the_same_wherever_it_stands(rows, cells):
    spec = ss.SketchSpec.of(
        Rows(3, unit=0.25, onto=Ball("declared", 5.0)), Waves(20, 0.5), cells=cells
    )
    whole = ss.sketch(np.array(rows), spec)
    first, *rest = (ss.sketch(np.array([row]), spec) for row in rows)

    assert sum(rest, first) == whole
    assert whole - first == sum(rest, first - first)
    assert ss.Sketch.from_bytes(whole.to_bytes()) == whole


def test_an_unsound_origin_is_refused(public_spec):
    content = json.loads(public_spec.to_json())
    for origin in (
        3,
        {},
        {"kind": "declared", "radius": 1.0, "charges": 3},
        {"kind": "private", "radius": 1.0, "charges": []},
        {"kind": "x", "radius": 1.0, "charges": []},
    ):
        with pytest.raises(ss.errors.SpecError):
            ss.SketchSpec.from_dict(content | {"origin": origin})
