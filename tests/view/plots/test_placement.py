"""Labels are moved apart, and no further than needed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
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
    places, gap = np.array([1.0, 1.2, 1.1, 6.0, 6.3, 9.0]), 0.8

    moved = spread(places, gap, -5.0, 15.0)

    order = np.argsort(places)
    apart = LinearConstraint(np.diff(np.eye(6), axis=0), gap, np.inf)
    best = minimize(lambda x: ((x - places[order]) ** 2).sum(), places[order], constraints=apart)
    np.testing.assert_allclose(moved[order], best.x, atol=1e-5)


def drawn_numbers(places: np.ndarray, weights: np.ndarray) -> list[str]:
    figure = Figure()
    ax = figure.subplots()
    ax.set(xlim=(0, 1), ylim=(0, 1))
    mark_centroids(ax, places, weights)
    figure.draw_without_rendering()
    return [text.get_text() for text in ax.texts if text.get_visible()]


def test_where_marks_crowd_the_heaviest_keep_their_numbers():
    """Thirty marks at one point: there are eight directions, so eight numbers at most."""
    crowd = drawn_numbers(np.full((30, 2), 0.5), np.linspace(0.06, 0.01, 30))

    assert 2 <= len(crowd) <= 8
    assert crowd == [str(i) for i in range(len(crowd))]


def test_marks_with_room_all_have_their_numbers_even_in_corners():
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5]])

    assert drawn_numbers(corners, np.full(5, 0.2)) == list("01234")
