"""Pictures of decodings: what is drawn is what was found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose, assert_array_equal

import sketchshift as ss
from sketchshift._colours import shade
from sketchshift.view import (
    decoding_figure,
    k_curve,
    plot_centroids,
    plot_comparison,
    plot_correlation,
    plot_means,
    plot_slices,
    plot_weights,
)

PLACES = np.array([0.0, 4.0, 9.0])


def cloud(d, **spec):
    """Three clusters along the diagonal, of shares 0.5, 0.3 and 0.2."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(400, d)) * 0.3 + np.repeat(PLACES, [200, 120, 80])[:, None]
    options = {"sketch_size": 120, "bandwidth": float(np.sqrt(d))} | spec
    sketch = ss.sketch(X, ss.SketchSpec(n_features=d, **options))
    return sketch, ss.SketchAndShift(n_initializations=30, refine=True)(sketch, 3)


def marks(ax):
    return np.asarray(ax.collections[-1].get_offsets())


@pytest.mark.parametrize(("d", "columns", "shown"), [(2, None, [0, 1]), (4, ("d", "b"), [3, 1])])
def test_the_marks_are_the_centroids_with_areas_as_the_weights(d, columns, shown, ax):
    s, decoding = cloud(d, columns=tuple("abcd"[:d]))

    assert plot_centroids(s, decoding, ax, columns=columns, resolution=5) is ax

    assert_array_equal(marks(ax), decoding.centroids[:, shown])
    areas = ax.collections[-1].get_sizes()
    assert_allclose(areas / areas.sum(), decoding.weights, rtol=1e-6)
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2"]
    assert ax.get_xlabel() + ax.get_ylabel() == "".join("abcd"[c] for c in shown)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_all_marks_are_inside_the_picture(d, ax):
    """Even a centroid far outside the three standard deviations that are shown otherwise."""
    s, found = cloud(d)
    far = found.centroids + np.array([[100.0], [-50.0], [0.0]])

    plot_centroids(s, replace(found, centroids=far, covariances=None), ax, resolution=5)

    assert all(ax.viewLim.contains(x, y) for x, y in marks(ax))


def test_equal_rows_and_a_decoding_of_nothing_can_be_drawn():
    for d in (1, 2, 3):
        s = ss.sketch(np.full((9, d), 7.0), ss.SketchSpec(d, 40, 0.5))
        one = ss.SketchAndShift(n_initializations=10)(s, 1)
        nothing = replace(one, centroids=np.empty((0, d)), weights=np.empty(0), covariances=None)
        for drawn in (decoding_figure(s, one), decoding_figure(cloud(d)[0], nothing)):
            drawn.draw_without_rendering()


def test_the_bars_are_the_shares(ax):
    _, decoding = cloud(2)

    plot_weights(decoding, ax)

    assert_allclose([bar.get_height() for bar in ax.patches], 100 * decoding.weights)
    written = [text.get_text() for text in ax.texts]
    assert written == [f"{share:.1f}" for share in 100 * decoding.weights]


def test_a_sketch_of_cells_alone_has_a_map(ax):
    rows = np.random.default_rng(0).normal(size=(2000, 3))
    s = ss.sketch(rows, n_clusters=2).prefix(0)

    for columns in (None, [0, 1]):
        assert plot_centroids(s, ss.decode(s, 2), ax, columns=columns).images
    with pytest.raises(ss.errors.DataError, match="where rows lie is drawn from waves"):
        plot_correlation(s, ax)


def test_what_cannot_be_drawn_is_refused_by_name(ax):
    (s, found), (_, other) = cloud(2), cloud(3)
    table = ss.sketch_by(np.eye(2), spec=s.spec, by=np.arange(2))
    nothing = ss.SketchTable.of(table.keys.slice(0, 0), ())
    compared = ss.compare(s, s, n_clusters=None)

    for call, message in (
        (lambda: plot_centroids(s, other, ax), "must be a Decoding of the sketch's 2 columns"),
        (lambda: plot_centroids(s, found, ax, columns=(0, 0)), "must be two different columns"),
        (lambda: plot_slices(nothing, found, ax), "must be a SketchTable of at least one slice"),
        (lambda: k_curve(found, ax), "must be a Decoding with a curve, that of decode"),
        (lambda: plot_comparison(compared, ax), "must be a Comparison with clusters"),
    ):
        with pytest.raises(ss.errors.SpecError, match=message):
            call()


def test_in_more_than_30_columns_the_marks_lie_along_the_main_axes(ax):
    """The clusters lie on the diagonal: the first axis holds their distances, in deviations."""
    s, decoding = cloud(31)

    plot_centroids(s, decoding, ax, resolution=5)

    apart = np.diff(PLACES) * np.sqrt(31 / s.variance.mean())
    assert_allclose(np.diff(np.sort(marks(ax)[:, 0])), apart, rtol=0.05)
    assert ax.get_xlabel().startswith("main axis 1, mostly column")


@pytest.mark.parametrize(("d", "is_auto"), [(1, True), (2, False), (3, True)])
def test_the_figure_has_a_panel_for_all_there_is(d, is_auto):
    s, given = cloud(d)
    decoding = ss.decode(s, "auto", max_clusters=4) if is_auto else given

    titles = [ax.get_title() for ax in decoding_figure(s, decoding).axes]

    means = ["Means of 3 columns"] if d == 3 else []
    curve = ["3 clusters, of 1 to 4 tried"] if is_auto else []
    assert titles == ["3 clusters of 400 rows", *means, "Weights", *curve]


def test_means_are_written_and_shaded_by_their_distance_from_the_mean_of_all_rows(ax):
    s, decoding = cloud(3, columns=("a", "b", "c"))

    plot_means(s, decoding, ax, columns=("c", "a"))

    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "a"]
    deviations = (decoding.centroids - s.mean) / np.sqrt(s.variance)
    expected = [[to_rgba(shade(row[c])) for row in deviations] for c in (2, 0)]
    assert_allclose(ax.images[0].get_array(), expected, atol=1e-6)
    texts = {
        text.get_position(): float(text.get_text().replace("\N{MINUS SIGN}", "-"))
        for text in ax.texts
    }
    places = {(i, row): decoding.centroids[i, c] for i in range(3) for row, c in enumerate((2, 0))}
    assert texts == pytest.approx(places, abs=0.06)


def test_of_many_columns_the_means_are_of_those_that_tell_clusters_apart(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 25))
    X[:, 7:22] += 9.0 * rng.normal(size=(30, 15))[rng.integers(30, size=2_000)]
    s = ss.sketch(X, n_clusters=30)

    plot_means(s, ss.decode(s, 30), ax)

    names = [label.get_text() for label in ax.get_yticklabels()]
    assert len(names) == 20
    assert {f"column {c}" for c in range(7, 22)} <= set(names)
    assert ax.get_title() == "Means of 20 of 25 columns"
    assert not ax.texts  # no room for numbers of 30 clusters


def test_of_one_column_without_cells_the_marks_stand_at_their_shares(ax):
    s, decoding = cloud(1, columns=("height",))

    plot_centroids(s, decoding, ax)

    expected = np.column_stack([decoding.centroids[:, 0], decoding.weights])
    assert_array_equal(marks(ax), expected)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("height", "share of the rows")
