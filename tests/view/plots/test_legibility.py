"""No text of a picture lies on other text or is cut off, whatever is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift.view import (
    decoding_figure,
    k_curve,
    plot_centroids,
    plot_correlation,
    plot_means,
    plot_slices,
    plot_weights,
)

LONG = "a_rather_long_name_of_a_column_as_engineers_write_them, in $"


def scene(
    d: int, k: int, *, unit: float = 1.0, middle: float = 0.0, long: bool = False, **more
) -> tuple[ss.Sketch, ss.Decoding]:
    """A sketch of k clusters in d columns and the decoding that knows them."""
    rng = np.random.default_rng([d, k])
    C = rng.normal(size=(k, d)) * 3.0
    weights = np.sort(rng.dirichlet(np.full(k, 2.0)))[::-1]
    X = C[rng.choice(k, size=600, p=weights)] + rng.normal(size=(600, d))
    names = tuple(f"{LONG} {i}" for i in range(d)) if long else None
    spec = ss.SketchSpec(d, 60, np.sqrt(d), center=(middle,) * d, scale=unit, columns=names)
    trace = tuple(ss.decoders.Round(i + 1, 9, 2 * k, 0.1 / (i + 1)) for i in range(9))
    covariances = np.tile(unit**2 * np.eye(d), (k, 1, 1))
    found = (unit * C + middle, weights, covariances, 0.011, ss.decoders.Outcome.COMPLETE, trace)
    return ss.sketch(unit * X + middle, spec), ss.Decoding(*found, **more)


def curve(k: int) -> ss.decoders.KCurve:
    numbers = np.arange(1, max(2 * k, 5))
    values = 0.3 / numbers + 0.002 * np.abs(numbers - k)
    return ss.decoders.KCurve(numbers, values, 1.3 * values, values, k, "misfit")


def of_axes(plot, *arguments, **options) -> Figure:
    figure = Figure(layout="constrained")
    plot(*arguments, figure.subplots(), **options)
    return figure


LOOKS = [
    (1, 50, {}),
    (2, 3, {"unit": 1e-9}),
    (2, 10, {"unit": 1e9, "middle": -4e9, "long": True}),
    (3, 1, {"unit": 1e-3, "middle": 1e5}),
    (10, 10, {"long": True}),
    (20, 20, {"unit": 1e9}),
    (20, 50, {"long": True}),
    (40, 5, {}),
]


@pytest.mark.parametrize(("d", "k", "options"), LOOKS)
def test_the_figure_of_a_decoding_is_legible(d, k, options, faults):
    s, decoding = scene(d, k, curve=curve(k) if (d + k) % 2 else None, **options)

    assert faults(decoding_figure(s, decoding)) == []


def test_pictures_on_axes_of_their_own_are_legible(faults):
    s, decoding = scene(3, 10, curve=curve(10), long=True)

    pictures = {
        "centroids": of_axes(plot_centroids, s, decoding, columns=(0, 2)),
        "correlation": of_axes(plot_correlation, s),
        "means": of_axes(plot_means, s, decoding),
        "weights": of_axes(plot_weights, decoding),
        "curve": of_axes(k_curve, decoding),
    }

    found = {name: faults(figure) for name, figure in pictures.items()}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


@pytest.mark.parametrize(("n", "k"), [(1, 1), (24, 12), (300, 20)])
def test_slices_are_legible(n, k, faults):
    days = np.datetime64("2026-01-01") + np.arange(n) if n > 7 else np.arange(n)
    _, decoding = scene(2, k)
    X = np.random.default_rng(0).normal(size=(3 * n, 2)) * 3.0
    table = ss.sketch_by(X, spec=ss.SketchSpec(2, 40, 2.0), by=np.tile(days, 3))

    assert faults(of_axes(plot_slices, table, decoding)) == []


def test_the_check_itself_finds_text_on_text_and_text_cut_off(faults):
    figure = Figure()
    figure.text(0.5, 0.5, "one")
    figure.text(0.51, 0.5, "other")
    figure.text(0.98, 0.1, "outside")

    assert faults(figure) == ["'outside' is cut off", "'one' lies on 'other'"]


def test_text_that_is_not_drawn_is_no_fault(drawn_text):
    figure = Figure()
    ax = figure.subplots()
    ax.set_xticks([0.0, 0.6, 0.9], ["left of the axes", "inside", "inside too"])
    ax.set_xlim(0.5, 1.0)

    texts = [text for text, _ in drawn_text(figure)]

    assert "inside" in texts
    assert "left of the axes" not in texts
