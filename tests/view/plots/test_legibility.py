"""No text of a picture lies on other text or is cut off, whatever is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift.view import (
    decoding_figure,
    plot_centroids,
    plot_correlation,
    plot_means,
    plot_slices,
)

LONG = "a_rather_long_name_of_a_column_as_engineers_write_them, in $"


def scene(d, k, unit=1.0, middle=0.0, name="x", has_curve=False):
    """A sketch of k clusters in d columns and the decoding that knows them."""
    rng = np.random.default_rng([d, k])
    C = rng.normal(size=(k, d)) * 3.0
    weights = np.sort(rng.dirichlet(np.full(k, 2.0)))[::-1]
    X = C[rng.choice(k, size=600, p=weights)] + rng.normal(size=(600, d))
    names = [f"{name} {i}" for i in range(d)]
    spec = ss.SketchSpec(d, 60, np.sqrt(d), center=(middle,) * d, scale=unit, columns=names)
    numbers = np.arange(1, max(2 * k, 5))
    values = 0.3 / numbers + 0.002 * np.abs(numbers - k)
    curve = ss.decoders.KCurve(numbers, values, 1.3 * values, values, k, "misfit")
    covariances = np.tile(unit**2 * np.eye(d), (k, 1, 1))
    found = (unit * C + middle, weights, covariances, 0.011, ss.decoders.Outcome.COMPLETE, ())
    return ss.sketch(unit * X + middle, spec), ss.Decoding(
        *found, curve=curve if has_curve else None
    )


LOOKS = [
    (1, 50, 1.0, 0.0, "x", True),
    (2, 10, 1e9, -4e9, LONG, False),
    (3, 1, 1e-3, 1e5, "x", False),
    (20, 50, 1.0, 0.0, LONG, False),
    (40, 5, 1e-9, 0.0, "x", True),
]


@pytest.mark.parametrize("look", LOOKS)
def test_the_figure_of_a_decoding_is_legible(look, faults):
    assert faults(decoding_figure(*scene(*look))) == []


@pytest.mark.parametrize(
    "plot", [plot_centroids, lambda s, _, ax: plot_correlation(s, ax), plot_means]
)
def test_pictures_on_axes_of_their_own_are_legible(plot, ax, faults):
    plot(*scene(3, 10, name=LONG), ax)

    assert faults(ax.figure) == []


@pytest.mark.parametrize(("n", "k"), [(1, 1), (24, 12), (70, 20)])
def test_slices_are_legible(n, k, ax, faults):
    days = np.datetime64("2026-01-01") + np.arange(n) if n > 7 else np.arange(n)
    _, decoding = scene(2, k)
    X = np.random.default_rng(0).normal(size=(3 * n, 2)) * 3.0
    table = ss.sketch_by(X, spec=ss.SketchSpec(2, 40, 2.0), by=np.tile(days, 3))

    plot_slices(table, decoding, ax)

    assert faults(ax.figure) == []


def test_the_check_itself_finds_text_on_text_and_text_cut_off(faults):
    figure = Figure()
    figure.text(0.5, 0.5, "one")
    figure.text(0.51, 0.5, "other")
    figure.text(0.98, 0.1, "outside")

    assert faults(figure) == ["'outside' is cut off", "'one' lies on 'other'"]
