"""Pictures of decodings: what is drawn is what was found."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift._colours import shade
from sketchshift.view import (
    decoding_figure,
    plot_centroids,
    plot_correlation,
    plot_means,
    plot_weights,
)

PLACES = np.array([0.0, 4.0, 9.0])


def cloud(d: int, **spec) -> tuple[ss.Sketch, ss.Decoding]:
    """Three clusters along the diagonal, of shares 0.5, 0.3 and 0.2."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(400, d)) * 0.3 + np.repeat(PLACES, [200, 120, 80])[:, None]
    options = {"sketch_size": 120, "bandwidth": float(np.sqrt(d))} | spec
    sketch = ss.sketch(X, ss.SketchSpec(n_features=d, **options))
    return sketch, ss.SketchAndShift(n_initializations=30, refine=True)(sketch, 3)


def axes():
    return Figure(layout="constrained").subplots()


def marks(ax) -> np.ndarray:
    return np.asarray(ax.collections[-1].get_offsets())


def test_in_two_columns_the_marks_are_the_centroids():
    s, decoding = cloud(2, columns=("a", "b"))
    ax = axes()

    assert plot_centroids(s, decoding, ax, resolution=20) is ax

    np.testing.assert_array_equal(marks(ax), decoding.centroids)
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")


def test_the_area_of_a_mark_is_proportional_to_the_weight():
    s, decoding = cloud(2)
    ax = plot_centroids(s, decoding, axes(), resolution=5)

    areas = ax.collections[-1].get_sizes()

    np.testing.assert_allclose(areas / areas.sum(), decoding.weights, rtol=1e-6)


def test_a_pair_of_columns_can_be_chosen():
    s, decoding = cloud(4, columns=("a", "b", "c", "d"))

    ax = plot_centroids(s, decoding, axes(), columns=("d", "b"), resolution=5)

    np.testing.assert_array_equal(marks(ax), decoding.centroids[:, [3, 1]])
    assert ax.get_xlabel() == "d"


@pytest.mark.parametrize("d", [1, 2, 3])
def test_all_marks_are_inside_the_picture(d):
    """Even a centroid far outside the three standard deviations that are shown otherwise."""
    s, found = cloud(d)
    far = found.centroids.copy()
    far[0], far[1] = 100.0, -50.0
    decoding = ss.Decoding(far, found.weights, None, 0.1, found.outcome, found.trace)

    ax = plot_centroids(s, decoding, axes(), resolution=5)

    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    x, y = marks(ax).T
    assert ((x >= x0) & (x <= x1) & (y >= y0) & (y <= y1)).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_rows_that_are_all_equal_can_be_drawn(d, tmp_path):
    s = ss.sketch(np.full((9, d), 7.0), ss.SketchSpec(d, 40, 0.5))
    decoding = ss.SketchAndShift(n_initializations=10)(s, 1)

    decoding_figure(s, decoding).savefig(tmp_path / "equal.png")


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_decoding_of_nothing_can_be_drawn(d, tmp_path):
    s, _ = cloud(d)
    nothing = ss.Decoding(
        np.empty((0, d)), np.empty(0), None, 1.0, ss.decoders.Outcome.FLAT_CORRELATION, ()
    )

    decoding_figure(s, nothing).savefig(tmp_path / "nothing.png")


def test_the_bars_are_the_shares():
    _, decoding = cloud(2)

    ax = plot_weights(decoding, axes())

    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, 100 * decoding.weights)
    assert [text.get_text() for text in ax.texts] == [f"{height:.1f}" for height in heights]


def test_a_sketch_of_cells_alone_has_a_map():
    rows = np.random.default_rng(0).normal(size=(2000, 3))
    s = ss.sketch(rows, n_clusters=2).prefix(0)

    for columns in (None, [0, 1]):
        assert plot_centroids(s, ss.decode(s, 2), axes(), columns=columns).images
    with pytest.raises(ss.errors.DataError, match="where rows lie is drawn from waves"):
        plot_correlation(s, axes())


def test_plots_make_their_own_axes():
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    s, decoding = cloud(2)

    drawn = [
        plot_centroids(s, decoding, resolution=5),
        plot_weights(decoding),
    ]

    assert len({ax.figure for ax in drawn}) == 2
    pyplot.close("all")


def test_a_decoding_of_other_columns_is_refused():
    (s, _), (_, other) = cloud(2), cloud(3)

    with pytest.raises(ss.errors.SpecError, match="must be a Decoding of the sketch's 2 columns"):
        plot_centroids(s, other, axes())


@pytest.mark.parametrize("columns", [(0, 0), (0,), ("a", "z")])
def test_columns_that_cannot_be_drawn_are_refused_by_name(columns):
    s, decoding = cloud(3)

    with pytest.raises(
        ss.errors.SpecError, match="of plot_centroids must be two different columns"
    ):
        plot_centroids(s, decoding, axes(), columns=columns)


def test_in_more_than_30_columns_the_marks_lie_along_the_main_axes():
    """The clusters lie on the diagonal: the first axis holds their distances, in deviations."""
    s, decoding = cloud(31)

    ax = plot_centroids(s, decoding, axes(), resolution=5)

    apart = np.diff(PLACES) * np.sqrt(31 / s.variance.mean())
    np.testing.assert_allclose(np.diff(np.sort(marks(ax)[:, 0])), apart, rtol=0.05)
    assert ax.get_xlabel().startswith("main axis 1, mostly column")


@pytest.mark.parametrize(("d", "is_auto"), [(1, True), (2, False), (3, True)])
def test_the_figure_has_a_panel_for_all_there_is(d, is_auto):
    s, given = cloud(d)
    decoding = ss.decode(s, "auto", max_clusters=4) if is_auto else given

    titles = [ax.get_title() for ax in decoding_figure(s, decoding).axes]

    means = ["Means of 3 columns"] if d == 3 else []
    curve = ["3 clusters, of 1 to 4 tried"] if is_auto else []
    assert titles == ["3 clusters of 400 rows", *means, "Weights", *curve]


def test_means_are_written_and_shaded_by_their_distance_from_the_mean_of_all_rows():
    s, decoding = cloud(3, columns=("a", "b", "c"))

    ax = plot_means(s, decoding, axes(), columns=("c", "a"))

    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "a"]
    deviations = (decoding.centroids - s.mean) / np.sqrt(s.variance)
    expected = [[to_rgba(shade(row[c])) for row in deviations] for c in (2, 0)]
    np.testing.assert_allclose(ax.images[0].get_array(), expected, atol=1e-6)
    texts = {text.get_position(): text.get_text() for text in ax.texts}
    assert len(texts) == 6
    for (i, row), text in texts.items():
        value = float(text.replace("\N{MINUS SIGN}", "-"))
        assert value == pytest.approx(decoding.centroids[i, (2, 0)[row]], abs=0.06)


def test_of_many_columns_the_means_are_of_those_that_tell_clusters_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 25))
    X[:, 7:22] += 9.0 * rng.normal(size=(30, 15))[rng.integers(30, size=2_000)]
    s = ss.sketch(X, n_clusters=30)

    ax = plot_means(s, ss.decode(s, 30), axes())

    names = [label.get_text() for label in ax.get_yticklabels()]
    assert len(names) == 20
    assert {f"column {c}" for c in range(7, 22)} <= set(names)
    assert ax.get_title() == "Means of 20 of 25 columns"
    assert not ax.texts  # no room for numbers of 30 clusters


def test_of_one_column_without_cells_the_marks_stand_at_their_shares():
    s, decoding = cloud(1, columns=("height",))

    ax = plot_centroids(s, decoding, axes())

    expected = np.column_stack([decoding.centroids[:, 0], decoding.weights])
    np.testing.assert_array_equal(marks(ax), expected)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("height", "share of the rows")
