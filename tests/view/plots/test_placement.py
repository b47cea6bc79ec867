"""Labels are moved apart, and no further than needed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize

from sketchshift.view.maps import mark_centroids, spread

PLACES = st.lists(st.floats(0.0, 10.0), max_size=12).map(np.array)


@given(PLACES, st.floats(0.0, 3.0))
def test_spread_places_keep_their_order_their_distance_and_inside(places, gap):
    moved = spread(places, gap, 0.0, 10.0)

    order = np.argsort(places, kind="stable")
    room = min(gap, 10.0 / max(len(places) - 1, 1))
    assert (np.diff(moved[order]) >= room - 1e-9).all()
    assert ((moved >= -1e-9) & (moved <= 10.0 + 1e-9)).all()


def test_spread_moves_as_little_as_a_quadratic_program_would():
    places, gap = np.array([1.0, 1.1, 1.2, 6.0, 6.3, 9.0]), 0.8

    moved = spread(places, gap, -5.0, 15.0)

    apart = LinearConstraint(np.diff(np.eye(6), axis=0), gap, np.inf)
    best = minimize(lambda x: ((x - places) ** 2).sum(), places, constraints=apart)
    assert_allclose(moved, best.x, atol=1e-5)


def test_marks_with_room_have_numbers_and_where_they_crowd_the_heaviest_keep_theirs():
    """Thirty marks at one point: there are eight directions, so eight numbers at most."""
    ax = Figure().subplots()
    corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    ax.set(xlim=(0, 1), ylim=(0, 1))

    mark_centroids(ax, np.array(corners + [[0.5, 0.5]] * 30), np.linspace(0.06, 0.01, 34))

    ax.figure.draw_without_rendering()
    drawn = [text.get_text() for text in ax.texts if text.get_visible()]
    assert 4 + 2 <= len(drawn) <= 4 + 8
    assert drawn == [str(i) for i in range(len(drawn))]
