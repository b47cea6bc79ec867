"""The box and the starts: nearest points, uniform samples, moments of the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import sketchshift as ss
from sketchshift.decoders.objective import Box, draw_starts
from sketchshift.errors import DataError, SpecError

numbers = st.floats(-1e6, 1e6)


def normalised(X, spec):
    return (X - spec.rows.center_vector) / spec.rows.scale_vector


@given(arrays(float, (2, 3), elements=numbers), arrays(float, (2, 4, 3), elements=numbers))
def test_the_projection_is_the_nearest_point_of_the_box(ends, points):
    """It lies in the box, and no other point p of it is nearer: <c - Pc, p - Pc> <= 0."""
    box = Box(ends.min(axis=0), ends.max(axis=0))

    C, (projected, others) = points[0], map(box.project, points)

    assert box.contains(projected).all()
    assert ((C - projected)[:, None] * (others - projected[:, None]) <= 0).all()  # on each axis
    assert_array_equal(box.contains(C), (projected == C).all(axis=1))


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0, 0], [1], r"Got \(2,\) and \(1,\)"),
        (0.0, 1.0, r"Got \(\) and \(\)"),
        ([0, 2], [1, 1], r"Got \[2, 1\] on axis 1"),
        ([np.nan], [1], r"Got \[nan, 1\] on axis 0"),
        ([0], [np.inf], r"Got \[0, inf\]"),
    ],
)
def test_corners_that_make_no_box_are_refused(lower, upper, message):
    with pytest.raises(SpecError, match=message):
        Box(lower, upper)


def test_samples_are_uniform():
    """Kolmogorov-Smirnov on each axis: below 1e-3 for one seed in 330."""
    box = Box([-1, 0, 5], [1, 10, 5.5])

    C = box.sample(20_000, seed=3)

    for column in ((C - box.lower) / (box.upper - box.lower)).T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
    assert np.abs(np.corrcoef(C.T) - np.eye(3)).max() < 5 / np.sqrt(20_000)


@pytest.mark.parametrize(
    ("d", "n_points"), [(1, 7), (3, 7), (3, 8), (10, 1023), (10, 1024), (100, 1000)]
)
def test_a_grid_has_as_many_points_as_fit(d, n_points):
    C = Box(np.zeros(d), np.ones(d)).grid(n_points)

    p = len(np.unique(C[:, 0]))
    assert len(np.unique(C, axis=0)) == len(C) == p**d <= n_points < (p + 1) ** d
    assert_allclose(np.unique(C[:, -1]), (np.arange(p) + 0.5) / p)


def test_the_box_of_a_sketch_is_three_standard_deviations_around_the_mean(X, spec):
    X[:, 2] = 0.3  # constant: one bandwidth wide

    box = Box.of(ss.sketch(X, spec))

    rows = normalised(X, spec)
    half = np.maximum(3 * rows.std(axis=0), spec.bandwidths[0] / 2)
    assert_allclose([box.lower, box.upper], rows.mean(axis=0) + np.outer([-1, 1], half), atol=1e-5)


@pytest.mark.parametrize("d", [3, 80])
def test_normal_starts_have_the_moments_of_the_data(d, rng):
    """Mean and covariance of n draws are off by 1 / sqrt(n) and sqrt(2 / n): 5 sigma.

    Beyond 64 columns only variances are known.
    """
    X, n = rng.normal(size=(300, d)) * np.linspace(1, 2, d), 40_000
    X[:, 1] += X[:, 0]
    spec = ss.SketchSpec(d, 10, 5.0, center=[5.0] * d, scale=[0.5] * d)
    s, rows = ss.sketch(X, spec), normalised(X, spec)

    C = (draw_starts(s, n, 1, box=Box.of(s, width=8.0)) - rows.mean(axis=0)) / rows.std(axis=0)

    assert np.abs(C.mean(axis=0)).max() < 5 / np.sqrt(n)
    expected = np.corrcoef(X.T) if d == 3 else np.eye(d)
    assert np.abs(np.cov(C.T) - expected).max() < 5 * np.sqrt(2 / n)


def test_starts_stay_in_the_box_and_nest(X, spec):
    s = ss.sketch(X, spec)
    box = Box.of(s, width=0.5)

    for kind in ("normal", "uniform"):
        C = draw_starts(s, 200, 7, box=box, kind=kind)
        assert box.contains(C).all()
        assert_array_equal(draw_starts(s, 50, 7, box=box, kind=kind), C[:50])
    assert_array_equal(C, box.sample(200, 7))
    assert (box.sample(200, 8) != C).all()


def test_what_cannot_be_drawn_is_refused():
    spec = ss.SketchSpec(2, 10, bandwidth=1.0)
    s = ss.sketch(np.eye(2), spec)
    box = Box.of(s)

    for make, message in (
        (lambda: draw_starts(s, 5, 0, box=box, kind="random"), "'kind' parameter of draw_starts"),
        (lambda: draw_starts(s, 5, 0, box=Box([0] * 3, [1] * 3)), "2 columns, and the box has 3"),
        (lambda: draw_starts(s, 0, 0, box=box), "'n' parameter"),
        (lambda: box.sample(5, -1), "'seed' parameter"),
        (lambda: box.grid(0), "'n_points' parameter"),
        (lambda: Box.of(s, width=-1.0), "'width' parameter"),
        (lambda: Box.of(s - s), "0 rows of weight 0"),
    ):
        with pytest.raises((SpecError, DataError), match=message):
            make()
