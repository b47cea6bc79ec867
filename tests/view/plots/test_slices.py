"""Slices over time: bars are the shares that the decoder finds in each."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift._colours import colour_of
from sketchshift.view import plot_slices

CENTERS = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])


def days(parts):
    """One slice a day, with so many rows of each cluster."""
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.repeat(np.arange(3), counts) for counts in parts])
    X = CENTERS[labels] + 0.3 * rng.normal(size=(len(labels), 2))
    start = datetime.date(2026, 1, 1)
    by = [start + datetime.timedelta(days=i) for i, c in enumerate(parts) for _ in range(sum(c))]
    table = ss.sketch_by(X, spec=ss.SketchSpec(2, 100, 1.5), by=np.array(by, dtype="datetime64[D]"))
    covariances = np.tile(0.09 * np.eye(2), (3, 1, 1))
    shares = np.bincount(labels) / len(labels)
    return table, ss.Decoding(CENTERS, shares, covariances, 0.0, ss.decoders.Outcome.COMPLETE, ())


def bars(ax):
    """Heights, shape (slices, areas)."""
    return np.array([[bar.get_height() for bar in area] for area in ax.containers]).T


@pytest.mark.parametrize("has_reference", [False, True])
def test_bars_are_the_shares_of_the_clusters_numbered_from_below_and_parted_by_white(
    has_reference, ax
):
    """Against the labels of the rows: clusters are far apart, so that shares are near exact."""
    parts = [[80, 15, 5], [50, 30, 20], [40, 25, 35]]
    table, decoding = days(parts)

    plot_slices(table, decoding, ax, reference=table.merge() if has_reference else None)

    assert_allclose(bars(ax), parts, atol=1.5)
    assert_allclose(bars(ax).sum(axis=1), 100.0)
    assert ax.get_title() == "3 clusters in 3 slices"
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == ["1 Jan 2026", "2 Jan 2026", "3 Jan 2026"]
    upwards = sorted(ax.texts, key=lambda note: note.xy[1])
    assert [note.get_text() for note in upwards] == ["0", "1", "2"]
    looks = [(bar.get_facecolor(), bar.get_edgecolor()) for bar, *_ in ax.containers]
    assert looks == [(to_rgba(colour_of(i)), to_rgba("white")) for i in range(3)]


def test_of_many_slices_some_are_named_and_the_areas_are_the_same(ax):
    parts = [[60 + i % 20, 20, 20] for i in range(100)]
    table, decoding = days(parts)

    plot_slices(table, decoding, ax)

    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names[:2] == ["1 Jan 2026", "6 Jan 2026"]
    assert len(names) == 20
    first = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert first.max() == pytest.approx(100 * 79 / 119, abs=1.5)


def test_light_clusters_share_one_area(ax):
    C = np.random.default_rng(1).normal(size=(20, 2)) * 5
    table, found = days([[50, 30, 20]])

    plot_slices(table, replace(found, centroids=C, weights=np.full(20, 0.05), covariances=None), ax)

    assert [note.get_text() for note in ax.texts] == [*map(str, range(11)), "11-19"]
    assert bars(ax).sum() == pytest.approx(100.0)


def test_thin_slices_are_hatched_and_named_with_their_rows_and_without_rows_there_is_no_bar(ax):
    table, decoding = days([[50, 30, 20], [5, 3, 1], [60, 40, 0]])
    full, thin, last = table.sketches

    emptied = ss.SketchTable.of(table.keys, (full, thin, last - last))
    plot_slices(emptied, decoding, ax)

    assert_allclose(bars(ax).sum(axis=1), [100.0, 100.0, 0.0])
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == ["1 Jan 2026", "2 Jan 2026 (9 rows)", "3 Jan 2026 (0 rows)"]
    hatched = [patch.get_x() for patch in ax.patches if patch.get_hatch() == "////"]
    assert hatched == pytest.approx([0.575, 1.575])
