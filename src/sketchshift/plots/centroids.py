"""Centroids as marks on a picture: area by weight, legible in greyscale, numbered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sketchshift._typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["mark_centroids"]

LARGEST, SMALLEST = 260.0, 16.0
"""Areas of marks, in points squared; the smallest can still be seen."""

NUMBERED = 40
"""Marks with numbers, the heaviest ones: more would hide the picture."""


def mark_centroids(ax: Axes, places: FloatArray, weights: FloatArray) -> None:
    """Mark centroids on given axes.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    places : array of shape (k, 2)
        Heaviest first, in the coordinates of the axes.
    weights : array of shape (k,)
        The area of a mark is proportional to its weight.
    """
    from matplotlib.patheffects import withStroke

    if not len(weights):
        return
    areas = np.maximum(LARGEST * weights / weights.max(), SMALLEST)
    x, y = places.T
    ax.scatter(x, y, s=areas, c="#d62728", edgecolors="white", linewidths=1.5, zorder=3)
    halo = [withStroke(linewidth=2.5, foreground="white")]
    shares = ax.transAxes.inverted().transform(ax.transData.transform(places))
    for i in range(min(len(places), NUMBERED)):
        away = 0.7 * (np.sqrt(areas[i]) / 2 + 2.5)  # points from the middle of the mark
        is_right, is_high = shares[i] > 0.92  # a number there goes inside, to the other side
        ax.annotate(
            str(i),
            (float(x[i]), float(y[i])),
            xytext=(-away if is_right else away, -away if is_high else away),
            textcoords="offset points",
            ha="right" if is_right else "left",
            va="top" if is_high else "bottom",
            fontsize=9,
            fontweight="bold",
            color="black",
            path_effects=halo,
            zorder=4,
            annotation_clip=True,
        )
