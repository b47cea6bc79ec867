"""Where numbers go so that none lies on another.

``spread`` moves labels along a line apart. :func:`keep_apart` finds places around marks, and
looks again whenever the figure is drawn: only then sizes and layout are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression

from sketchshift._typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

__all__ = ["keep_apart", "spread"]

DIRECTIONS = ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
SIDES = {1: ("left", "bottom"), 0: ("center", "center"), -1: ("right", "top")}


def spread(places: FloatArray, gap: float, low: float, high: float) -> FloatArray:
    r"""Places at least a gap apart, in the same order, as near to the given ones as can be.

    With the i-th smallest place minus i gaps, the condition is that the values do not decrease:
    an isotonic regression.

    Parameters
    ----------
    places : array of shape (n,)
        In any order.
    gap : float
        At least this far from one to the next; less where n of them have no room.
    low, high : float
        Ends of the room.

    Returns
    -------
    places : array of shape (n,)
        From low to high.

    Examples
    --------
    >>> spread(np.array([0.0, 5.0, 5.0]), 1.0, 0.0, 9.0)
    array([0. , 4.5, 5.5])
    """
    n = len(places)
    if n == 0:
        return places
    gap = min(gap, (high - low) / max(n - 1, 1))
    order, gaps = np.argsort(places, kind="stable"), gap * np.arange(n)
    nearest = isotonic_regression(places[order] - gaps).x
    result = np.empty(n)
    result[order] = np.clip(nearest, low, high - gaps[-1]) + gaps
    return result


def keep_apart(ax: Axes, notes: Sequence[Annotation], radii: FloatArray) -> None:
    """Let numbers find free places around their marks, the first ones first.

    Parameters
    ----------
    ax : matplotlib Axes
        Where they are.
    notes : sequence of Annotation
        With offsets in points. One that finds no free place inside the axes is not drawn.
    radii : array of shape (n,)
        Of the marks, in points; numbers keep off other marks where they can.
    """
    from matplotlib.artist import Artist

    class Placement(Artist):
        """Draws nothing: comes before the numbers and moves them."""

        def draw(self, renderer: Any) -> None:
            _place(ax, notes, radii, renderer)

    placement = Placement()
    placement.set_in_layout(False)
    placement.set_zorder(min((note.get_zorder() for note in notes), default=0.0) - 0.5)
    ax.add_artist(placement)


def _place(ax: Axes, notes: Sequence[Annotation], radii: FloatArray, renderer: Any) -> None:
    from matplotlib.transforms import Bbox

    frame, point = ax.get_window_extent(renderer), renderer.points_to_pixels(1.0)
    middles = ax.transData.transform([note.xy for note in notes])
    marks = [Bbox([c - r * point, c + r * point]) for c, r in zip(middles, radii, strict=True)]
    taken: list[Any] = []
    for i, note in enumerate(notes):
        note.set_visible(True)
        size = note.get_window_extent(renderer).size
        others = marks[:i] + marks[i + 1 :]
        free = []
        for way in DIRECTIONS:
            offset = np.array(way) * (radii[i] + 1.5) * (0.75 if all(way) else 1.0)
            corner = middles[i] + offset * point + (np.array(way) - 1) / 2 * size
            box = Bbox([corner, corner + size])
            if _is_inside(box, frame) and not box.count_overlaps(taken):
                free.append((box.count_overlaps(others), box, way, offset))
        note.set_visible(bool(free))
        if free:
            _, box, way, offset = min(free, key=lambda place: place[0])
            note.set_position(tuple(offset))
            note.set(ha=SIDES[way[0]][0], va=SIDES[way[1]][1])
            taken.append(box)


def _is_inside(box: Any, frame: Any) -> bool:
    return bool(
        frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
    )
