"""Pictures of drift."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sketchshift as ss
from sketchshift.view import plot_comparison, plot_watch, watch_figure

MEANS = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])


def rows(n, shares, seed):
    rng = np.random.default_rng(seed)
    return MEANS[rng.choice(3, n, p=shares)] + rng.normal(size=(n, 2))


@pytest.fixture(scope="module")
def table():
    """Twelve days, from the eighth on with other shares."""
    parts = [rows(300, (0.5, 0.3, 0.2) if day < 7 else (0.2, 0.3, 0.5), day) for day in range(12)]
    days = np.datetime64("2026-01-01") + np.repeat(np.arange(12), 300)
    return ss.sketch_by(np.vstack(parts), by=days, n_clusters=4)


@pytest.fixture(scope="module")
def comparison(table):
    a, b = (table.where(f"key {sign} '2026-01-08'").merge() for sign in ("<", ">="))
    return ss.compare(a, b, n_clusters=3)


@pytest.fixture(scope="module")
def watch(table):
    return ss.drift.watch(table, n_clusters=3)


def test_shares_stand_side_by_side_with_what_became_of_them(comparison, faults, ax):
    assert plot_comparison(comparison, ax) is ax

    heights = [bar.get_height() for bar in ax.patches]
    shares = np.array([(c.share_a, c.share_b) for c in comparison.clusters])
    assert_allclose(heights, 100 * shares.T.ravel())
    words = [c.verdict.replace("same", "") for c in comparison.clusters]
    assert [t.get_text() for t in ax.texts] == words
    assert sorted(words) == ["", "grew", "shrank"]
    assert ax.get_title().startswith("The second has changed: distance ")
    opacities = [bar.get_alpha() or 1.0 for bar in ax.patches]
    assert max(opacities[:3]) < min(opacities[3:])  # what was before is paler, also in grey
    assert "column" in ax.get_xticklabels()[2].get_text()
    assert faults(ax.figure) == []


def test_many_clusters_have_signs_instead_of_words(faults, ax):
    rng = np.random.default_rng(0)
    X, corners = rng.normal(size=(4_000, 2)), 9.0 * rng.normal(size=(25, 2))
    spec = ss.plan(X + corners[rng.integers(25, size=4_000)], n_clusters=25)
    pair = [ss.sketch(X + corners[rng.integers(low, 25, size=4_000)], spec) for low in (0, 5)]

    plot_comparison(ss.compare(*pair, n_clusters=25), ax)

    assert {t.get_text() for t in ax.texts} <= {"", "+", "-", "~", "+ ~", "- ~"}
    assert ax.get_xlabel() == "cluster, the 20 heaviest of 25"
    assert faults(ax.figure) == []


def test_distances_are_drawn_with_thresholds_and_rings_around_alarms(watch, faults, ax):
    assert plot_watch(watch, ax) is ax

    before, threshold, rings, earlier, *_ = ax.lines
    slices = watch.slices[1:]
    alarms = [m.before.distance for m in slices if m.before.drifted]
    assert_array_equal(before.get_ydata()[1:], [m.before.distance for m in slices])
    assert_array_equal(threshold.get_ydata()[1:], [m.before.threshold for m in slices])
    assert_array_equal(earlier.get_ydata()[1:], [m.earlier.distance for m in slices])
    assert_array_equal(rings.get_ydata(), alarms)
    assert 7 in rings.get_xdata()
    # told apart without colour
    assert (
        before.get_linestyle() != earlier.get_linestyle()
        or before.get_marker() != earlier.get_marker()
    )
    assert faults(ax.figure) == []


def test_the_figure_has_the_shares_below_the_distances(watch, table, faults):
    figure = watch_figure(watch)

    assert [ax.get_ylabel() for ax in figure.axes] == ["distance", "share of the rows (%)"]
    assert faults(figure) == []
    one = ss.drift.watch(table.where("key = '2026-01-01'"), n_clusters=None)
    assert len(watch_figure(one).axes) == 1


def test_what_is_usual_is_drawn_with_the_reference_shaded_and_small_changes_without_rings(
    table, faults
):
    found = ss.drift.watch(table, n_clusters=3, reference="key < '2026-01-07'", effect=1.0)
    figure = watch_figure(found)
    ax = figure.axes[0]

    drawn = ax.lines[0].get_ydata()
    assert_array_equal(drawn[6:], [m.usual.distance for m in found.slices[6:]])
    assert np.isnan(drawn[:6].astype(float)).all()
    assert len(ax.patches) == 6
    assert len(ax.lines[2].get_xdata()) == 0
    assert ax.get_title() == "0 alarms in 12 slices (ringed, from 100 % of the rows on)"
    assert faults(figure) == []
