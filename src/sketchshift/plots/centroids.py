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
    for i in range(min(len(places), NUMBERED)):
        away = np.sqrt(areas[i]) / 2 + 2.5  # points from the middle of the mark to its edge
        ax.annotate(
            str(i),
            (float(places[i, 0]), float(places[i, 1])),
            xytext=(0.7 * away, 0.7 * away),
            textcoords="offset points",
            fontsize=9,
            fontweight="bold",
            color="black",
            path_effects=halo,
            zorder=4,
            annotation_clip=True,
        )
