"""The correlation function over a plane, against its formula."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sketchshift as ss
from sketchshift.view import correlation_image, plot_correlation
from sketchshift.view.figure import demo_figure


def cloud(d=2, n=500):
    rng = np.random.default_rng(d)
    return rng.normal(size=(n, d)) * np.arange(1, d + 1) + 2.0


def formula(s, points):
    """Definition 1 in float64: Re<z, A delta_c>, features divided by sqrt(m)."""
    x = (points - s.spec.rows.center_vector) / s.spec.rows.scale_vector
    omega = 2 * np.pi * s.frequencies.turns.astype(np.float64)
    atoms = np.exp(1j * (x @ omega)) / np.sqrt(s.spec.sketch_size)
    return (atoms @ np.conj(s.z)).real


RANGE = ss.SketchSpec(2, 50, (0.5, 3.0), columns=("cost in $", "weight"))
NORMALISED = ss.SketchSpec(2, 64, 0.5, center=(2.0, 1.0), scale=(1.0, 2.0))
TOO_MANY_FOR_ONCE = ss.SketchSpec(2, 9_000, 0.8)


@pytest.mark.parametrize("spec", [RANGE, NORMALISED, TOO_MANY_FOR_ONCE])
def test_the_image_is_the_correlation_function_at_the_centers_of_its_pixels(spec):
    s = ss.sketch(cloud(), spec)

    image, extent = correlation_image(s, resolution=17, lower=(-1, -3), upper=(4, 6))

    assert extent == (-1, 4, -3, 6)
    x, y = -1 + 5 * (np.arange(17) + 0.5) / 17, -3 + 9 * (np.arange(17) + 0.5) / 17
    points = np.column_stack([np.tile(x, 17), np.repeat(y, 17)])
    # float32 phases of a few turns: 1e-6 each
    assert_allclose(image.ravel(), formula(s, points), atol=1e-5)


def test_the_other_coordinates_are_those_of_the_mean():
    spec = ss.SketchSpec(4, 90, 2.0, center=(1.0,) * 4, scale=(1.0, 2.0, 4.0, 0.5))
    s = ss.sketch(cloud(4), spec)

    image, _ = correlation_image(s, columns=(3, 1), resolution=3, lower=(0, 1), upper=(6, 4))

    points = np.tile(s.mean, (9, 1))
    points[:, 3] = np.tile([1.0, 3.0, 5.0], 3)
    points[:, 1] = np.repeat([1.5, 2.5, 3.5], 3)
    assert_allclose(image.ravel(), formula(s, points), atol=1e-5)


def test_the_box_is_three_standard_deviations_around_the_mean():
    X = cloud()

    _, extent = correlation_image(ss.sketch(X, RANGE), resolution=2)

    ends = [X.mean(0) - 3 * X.std(0), X.mean(0) + 3 * X.std(0)]
    assert_allclose(extent, np.transpose(ends).ravel(), atol=1e-3)


def test_what_cannot_be_drawn_is_refused_by_name():
    s = ss.sketch(cloud(), RANGE)

    for options in (
        {"columns": (0, 0)},
        {"resolution": 0},
        {"lower": (0, 0), "upper": (0, 1)},
        {"lower": (0, 0, 0)},
    ):
        with pytest.raises(ss.errors.SpecError, match="of correlation_image must be"):
            correlation_image(s, **options)


def test_a_plot_makes_its_own_axes_with_the_names_of_the_columns_and_a_colour_bar():
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    ax = plot_correlation(ss.sketch(cloud(), RANGE), resolution=20)

    assert ax.get_xlabel() == r"cost in \$"
    assert ax.get_ylabel() == "weight"
    assert "500 rows" in ax.get_title()
    assert "correlation" in ax.figure.axes[1].get_ylabel()
    pyplot.close(ax.figure)


def test_without_matplotlib_plots_are_there_and_say_what_to_install():
    code = """
import sys
sys.modules["matplotlib"] = None
import sketchshift as ss
from sketchshift.view import plot_correlation
plot_correlation(ss.sketch([[0.0, 1.0]], ss.SketchSpec(2, 20, 1.0)))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr

    assert 'MissingDependencyError: pictures need matplotlib. Run: pip install "sketch' in said


def test_the_demo_shows_the_rows_beside_the_density_of_their_sketch():
    X = cloud()
    s = ss.sketch(X, NORMALISED)

    figure = demo_figure(X, s, ss.decode(s, 2), (-6.0, 10.0))

    counts, seen = (ax.images[0].get_array() for ax in figure.axes[:2])
    assert counts.sum() == len(X)
    expected, _ = correlation_image(s, resolution=256, lower=(-6.0,) * 2, upper=(10.0,) * 2)
    assert_array_equal(seen, expected)
