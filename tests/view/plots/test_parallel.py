"""Parallel coordinates: each centroid at its place on the axis of each column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import sketchshift as ss
from sketchshift.recipe import Category, Log
from sketchshift.view import plot_parallel


def scene(d: int = 3, k: int = 4, **spec) -> tuple[np.ndarray, ss.Sketch, ss.Decoding]:
    rng = np.random.default_rng(d)
    X = rng.normal(size=(500, d)) * 10.0 ** np.arange(-1, d - 1) + 7.0
    weights = np.sort(rng.dirichlet(np.ones(k)))[::-1]
    decoding = ss.Decoding(X[:k], weights, None, 0.0, ss.decoders.Outcome.COMPLETE, ())
    scale = tuple(10.0 ** np.arange(-1, d - 1))
    return X, ss.sketch(X, ss.SketchSpec(d, 20, 1.0, scale=scale, **spec)), decoding


def axes():
    return Figure(layout="constrained").subplots()


def lines(ax) -> dict[str, np.ndarray]:
    return {line.get_label(): line.get_xdata() for line in ax.lines if line.get_label()[0] != "_"}


def test_places_are_in_standard_deviations_from_the_mean():
    """Against the moments of the rows themselves."""
    X, s, decoding = scene()

    ax = plot_parallel(s, decoding, axes())

    expected = (decoding.centroids - X.mean(axis=0)) / X.std(axis=0)
    drawn = lines(ax)
    assert list(drawn) == ["0", "1", "2", "3"]
    # moments are integers of 2**-16 of the scale
    np.testing.assert_allclose(list(drawn.values()), expected, atol=1e-3)


def test_numbers_along_an_axis_are_values_of_its_column():
    X, s, decoding = scene()

    ax = plot_parallel(s, decoding, axes())

    ticks = [note for note in ax.texts if note.get_fontsize() == 7]
    assert len({note.xy[1] for note in ticks}) == 3
    for note in ticks:
        x, row = note.xy
        value = X[:, row].mean() + x * X[:, row].std()
        assert float(note.get_text()) == pytest.approx(value, abs=1e-2 * X[:, row].std())


def test_columns_are_named_and_can_be_chosen():
    _, s, decoding = scene(columns=("a", "b", "cost in $"))

    whole = plot_parallel(s, decoding, axes())
    part = plot_parallel(s, decoding, axes(), columns=("cost in $", 0))

    assert [label.get_text() for label in whole.get_yticklabels()] == ["a", "b", r"cost in \$"]
    assert [label.get_text() for label in part.get_yticklabels()] == [r"cost in \$", "a"]
    assert part.get_title() == "4 centroids across 2 of 3 columns"
    for name, line in lines(part).items():
        np.testing.assert_array_equal(line, lines(whole)[name][[2, 0]])


def test_of_many_columns_the_separating_ones_are_shown():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    X[:200, 5:25] += 8.0
    s = ss.sketch(X, ss.SketchSpec(30, 20, 5.0))
    means = np.array([X[:200].mean(axis=0), X[200:].mean(axis=0)])
    decoding = ss.Decoding(means, np.full(2, 0.5), None, 0.0, ss.decoders.Outcome.COMPLETE, ())

    ax = plot_parallel(s, decoding, axes())

    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [f"column {i}" for i in range(5, 25)]


def test_no_two_of_twenty_lines_look_alike_in_greyscale():
    _, s, decoding = scene(k=20)

    ax = plot_parallel(s, decoding, axes())

    shown = [line for line in ax.lines if line.get_label()[0] != "_"]
    looks = {(line.get_linestyle(), str(line._dash_pattern), line.get_marker()) for line in shown}
    assert len(looks) == len(shown) == 20
    widths = [line.get_linewidth() for line in shown]
    assert widths == sorted(widths, reverse=True)


def test_beyond_twenty_clusters_the_lighter_ones_have_no_number():
    _, s, decoding = scene(k=50)

    ax = plot_parallel(s, decoding, axes())

    numbers = [note.get_text() for note in ax.texts if note.get_fontweight() == "bold"]
    assert sorted(numbers, key=int) == [str(i) for i in range(20)]
    grey = [line for line in ax.lines if line.get_color() == "0.7"]
    assert len(grey) == 30


@pytest.mark.parametrize("d", [1, 2])
def test_constant_columns_and_no_centroids_can_be_drawn(d):
    s = ss.sketch(np.full((9, d), 7.0), ss.SketchSpec(d, 20, 0.5))
    none = ss.Decoding(
        np.empty((0, d)), np.empty(0), None, 1.0, ss.decoders.Outcome.FLAT_CORRELATION, ()
    )
    one = ss.Decoding(np.full((1, d), 7.0), np.ones(1), None, 0.0, ss.decoders.Outcome.COMPLETE, ())

    for decoding in (none, one):
        ax = plot_parallel(s, decoding, axes())
        ax.figure.draw_without_rendering()

    assert lines(ax)["0"] == pytest.approx(np.zeros(d), abs=1e-4)
    assert {note.get_text() for note in ax.texts} == {"0", "7"}


def test_a_decoding_of_other_columns_is_refused():
    (_, s, _), (_, _, other) = scene(2), scene(3)

    with pytest.raises(
        ss.errors.SpecError, match="of plot_parallel must be a Decoding of the sketch's 2"
    ):
        plot_parallel(s, other, axes())


def test_what_lies_far_away_stands_at_the_edge_with_its_number():
    """One centroid far off would press all others together."""
    X, s, _ = scene(d=2, columns=("a", "b"))
    centroids = X.mean(axis=0) + X.std(axis=0) * [[0.5, -0.5], [80.0, 1.0]]
    decoding = ss.Decoding(
        centroids, np.array([0.9, 0.1]), None, 0.0, ss.decoders.Outcome.COMPLETE, ()
    )

    ax = plot_parallel(s, decoding, axes())

    assert ax.get_xlim()[1] < 6.0
    assert lines(ax)["1"][0] == 5.0
    assert "+80 sd" in [note.get_text() for note in ax.texts]


def test_axes_have_the_numbers_of_the_table_and_none_that_no_row_has():
    """Logarithms are told as the numbers they are of; a share ends at one."""
    rng = np.random.default_rng(0)
    table = pa.table({"votes": np.exp(rng.normal(5, 2, 600)), "cut": ["a"] * 570 + ["b"] * 30})
    recipe = ss.profiling.Recipe([Log("votes"), Category("cut", ("a", "b"))])
    s = ss.sketch(table, n_clusters=2, columns=recipe)

    ax = plot_parallel(s, ss.decode(s, 2), axes())

    told = {row: [] for row in range(3)}
    for note in ax.texts:
        if note.get_fontsize() == 7:
            told[note.xy[1]].append(float(note.get_text().replace(",", "")))
    assert len(told[0]) >= 3
    assert all(f"{value:e}"[0] in "0125" for value in told[0])  # round numbers, not logarithms
    assert max(told[0]) >= 1000
    assert all(0.0 <= value <= 1.0 for row in (1, 2) for value in told[row])
