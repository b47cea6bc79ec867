"""The correlation function over a plane, against its formula."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.view.plots import correlation_image, plot_correlation
from sketchshift.view.plots.figure import comparison_figure, kernel_density


def cloud(d: int = 2, n: int = 500) -> np.ndarray:
    rng = np.random.default_rng(d)
    return rng.normal(size=(n, d)) * np.arange(1, d + 1) + 2.0


def formula(s: ss.Sketch, points: np.ndarray) -> np.ndarray:
    """Definition 1 in float64: Re<z, A delta_c>, features divided by sqrt(m)."""
    x = (points - s.spec.center_vector) / s.spec.scale_vector
    omega = 2 * np.pi * s.frequencies.turns.astype(np.float64)
    atoms = np.exp(1j * (x @ omega)) / np.sqrt(s.spec.sketch_size)
    return (atoms @ np.conj(s.z)).real


SPECS = {
    "plain": ss.SketchSpec(n_features=2, sketch_size=130, bandwidth=0.8),
    "normalised": ss.SketchSpec(
        n_features=2, sketch_size=64, bandwidth=0.5, center=(2.0, 1.0), scale=(1.0, 2.0)
    ),
    "range": ss.SketchSpec(n_features=2, sketch_size=50, bandwidth=(0.5, 3.0)),
}


@pytest.mark.parametrize("name", SPECS)
def test_the_image_is_the_correlation_function_at_the_centers_of_its_pixels(name):
    s = ss.sketch(cloud(), SPECS[name])

    image, (x0, x1, y0, y1) = correlation_image(s, resolution=17, lower=(-1, -3), upper=(4, 6))

    assert (x0, x1, y0, y1) == (-1, 4, -3, 6)
    x, y = -1 + 5 * (np.arange(17) + 0.5) / 17, -3 + 9 * (np.arange(17) + 0.5) / 17
    points = np.array([[x[i], y[j]] for j in range(17) for i in range(17)])
    # float32 phases of a few turns: 1e-6 each
    np.testing.assert_allclose(image.ravel(), formula(s, points), atol=1e-5)


def test_the_other_coordinates_are_those_of_the_mean():
    s = ss.sketch(cloud(4), ss.SketchSpec(n_features=4, sketch_size=90, bandwidth=2.0))

    image, _ = correlation_image(s, columns=(3, 1), resolution=3, lower=(0, 1), upper=(6, 4))

    points = np.tile(s.mean, (9, 1))
    points[:, 3] = np.tile([1.0, 3.0, 5.0], 3)
    points[:, 1] = np.repeat([1.5, 2.5, 3.5], 3)
    np.testing.assert_allclose(image.ravel(), formula(s, points), atol=1e-5)


def test_the_box_is_three_standard_deviations_around_the_mean():
    X = cloud()
    s = ss.sketch(X, SPECS["plain"])

    _, extent = correlation_image(s, resolution=2)

    low, high = X.mean(0) - 3 * X.std(0), X.mean(0) + 3 * X.std(0)
    np.testing.assert_allclose(extent, [low[0], high[0], low[1], high[1]], atol=1e-3)


def test_equal_rows_have_a_box_as_wide_as_the_kernel():
    s = ss.sketch(np.full((5, 2), 7.0), ss.SketchSpec(2, 30, 0.5, scale=2.0))

    _, extent = correlation_image(s, resolution=2)

    np.testing.assert_allclose(extent, [4.0, 10.0, 4.0, 10.0], atol=1e-6)


def test_structured_frequencies_are_drawn_too():
    X = np.random.default_rng(0).normal(size=(200, 64))
    s = ss.sketch(X, ss.SketchSpec(64, 100, 8.0, structured=True))

    image, _ = correlation_image(s, resolution=4, lower=(-1, -1), upper=(1, 1))

    assert image.shape == (4, 4)
    assert 0 < image.max() <= 1


def test_the_image_tends_to_the_kernel_density():
    """M = 20000: an error of 1/sqrt(2 m) = 0.005 a pixel; 6 of these with this seed."""
    X = cloud()
    s = ss.sketch(X, ss.SketchSpec(n_features=2, sketch_size=20_000, bandwidth=0.8))

    image, _ = correlation_image(s, resolution=5, lower=(-2, -2), upper=(6, 6))

    g = -2 + 8 * (np.arange(5) + 0.5) / 5
    points = np.stack(np.meshgrid(g, g), axis=-1).reshape(-1, 1, 2)
    exact = np.exp(-((points - X) ** 2).sum(axis=-1) / (2 * 0.8**2)).mean(axis=1)
    np.testing.assert_allclose(image.ravel(), exact, atol=0.03)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": (0, 0)},
        {"columns": (0, 2)},
        {"columns": ("a", "z")},
        {"columns": (0,)},
        {"resolution": 0},
        {"lower": (0, 0), "upper": (0, 1)},
        {"lower": (0, 0, 0)},
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(options):
    s = ss.sketch(cloud(), ss.SketchSpec(2, 10, 1.0, columns=("a", "b")))

    with pytest.raises(ss.errors.SpecError, match="of correlation_image must be"):
        correlation_image(s, **options)


def test_columns_can_be_named():
    s = ss.sketch(cloud(), ss.SketchSpec(2, 10, 1.0, columns=("a", "b")))

    by_name, extent = correlation_image(s, columns=("b", "a"), resolution=5)

    by_position, other = correlation_image(s, columns=(1, 0), resolution=5)
    assert (by_name == by_position).all()
    assert extent == other


def test_a_plot_has_the_names_of_the_columns_and_a_colour_bar(tmp_path):
    from matplotlib.figure import Figure

    s = ss.sketch(cloud(), ss.SketchSpec(2, 50, 1.0, columns=("cost in $", "weight")))
    figure = Figure()
    ax = figure.subplots()

    assert plot_correlation(s, ax, resolution=20) is ax

    assert ax.get_xlabel() == r"cost in \$"
    assert ax.get_ylabel() == "weight"
    assert "500 rows" in ax.get_title()
    assert "correlation" in figure.axes[1].get_ylabel()
    figure.savefig(tmp_path / "plot.png")


def test_a_plot_makes_its_own_axes():
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    s = ss.sketch(cloud(), SPECS["plain"])

    ax = plot_correlation(s, resolution=10)

    assert ax.get_xlabel() == "column 0"
    pyplot.close(ax.figure)


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    s = ss.sketch(cloud(), SPECS["plain"])

    with pytest.raises(
        ss.errors.MissingDependencyError, match=r'pip install "sketchshift\[plot\]"'
    ):
        plot_correlation(s)


def test_importing_plots_does_not_import_matplotlib():
    code = "import sys, sketchshift.view.plots; sys.exit('matplotlib' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_kernel_density_of_a_histogram_is_the_mean_of_gaussians():
    rng = np.random.default_rng(3)
    X = rng.uniform(20, 80, size=(300, 2))
    counts, *_ = np.histogram2d(X[:, 1], X[:, 0], bins=400, range=[[0, 100]] * 2)

    density = kernel_density(counts, bandwidth=5.0, width=0.25)

    c = np.array([50.125, 30.125])  # the center of cell (120, 200)
    exact = np.exp(-((c - X) ** 2).sum(axis=1) / 50).mean()
    assert density[120, 200] == pytest.approx(exact, abs=2e-3)  # rows move by half a cell


def test_the_comparison_has_three_panels_and_two_colour_bars():
    X = cloud()
    s = ss.sketch(X, ss.SketchSpec(2, 50, 1.0, columns=("a", "b")))

    figure = comparison_figure(X, s, bandwidth=1.0, lower=-6.0, upper=10.0)

    assert len(figure.axes) == 5
    assert [ax.get_xlabel() for ax in figure.axes[:3]] == ["a"] * 3
    assert "from the sketch alone" in figure.axes[2].get_title().lower()
