"""Centroids as marks on a picture: area by weight, legible in greyscale, numbered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.plots.placement import keep_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["mark_centroids", "mark_spreads"]

LARGEST, SMALLEST = 260.0, 16.0
"""Areas of marks, in points squared; the smallest can still be seen."""

NUMBERED = 40
"""Marks with numbers, the heaviest ones: more would hide the picture."""


def mark_centroids(ax: Axes, places: FloatArray, weights: FloatArray, *, size: float = 1.0) -> None:
    """Mark centroids on given axes, with numbers where there is room for them.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    places : array of shape (k, 2)
        Heaviest first, in the coordinates of the axes.
    weights : array of shape (k,)
        The area of a mark is proportional to its weight.
    size : float
        Of marks and numbers; 1 for axes as large as a page is wide.
    """
    from matplotlib.patheffects import withStroke

    if not len(weights):
        return
    areas = size**2 * np.maximum(LARGEST * weights / weights.max(), SMALLEST)
    x, y = places.T
    ax.scatter(x, y, s=areas, c="#d62728", edgecolors="white", linewidths=1.5 * size, zorder=3)
    halo = [withStroke(linewidth=2.5, foreground="white")]
    notes = [
        ax.annotate(
            str(i),
            (float(x[i]), float(y[i])),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=max(9 * size, 6),
            fontweight="bold",
            path_effects=halo,
            zorder=4,
            annotation_clip=True,
            in_layout=False,
        )
        for i in range(min(len(places), NUMBERED))
    ]
    keep_apart(ax, notes, np.sqrt(areas[: len(notes)]) / 2)


def mark_spreads(ax: Axes, places: FloatArray, covariances: FloatArray) -> None:
    """Draw an ellipse around each place: where a Gaussian has fallen to 1/sqrt(e).

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    places : array of shape (k, 2)
        Middles.
    covariances : array of shape (k, 2, 2)
        In the coordinates of the axes; zeros draw nothing.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.patheffects import withStroke

    angles = np.linspace(0.0, 2.0 * np.pi, 73)
    circle = np.array([np.cos(angles), np.sin(angles)])
    values, vectors = np.linalg.eigh(covariances)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    outlines = places[:, None, :] + np.swapaxes(roots @ circle, 1, 2)
    edge = [withStroke(linewidth=2.2, foreground="black")]
    lines = LineCollection(
        list(outlines), colors="white", linewidths=1.0, path_effects=edge, zorder=2
    )
    ax.add_collection(lines, autolim=False)
