"""The mean of every column in every cluster, as a shaded table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sketchshift._colours import shade
from sketchshift._text import counted
from sketchshift.decoders import Decoding
from sketchshift.decoders.problem import spread_of
from sketchshift.sketch import AnySketch
from sketchshift.view.looks import (
    best_columns,
    check_decoding,
    known_decoding,
    positions_of,
    shown_values,
    wrap_name,
)
from sketchshift.view.plane import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FULL", "plot_means"]

FULL, LARGEST = 20, 40
"""Columns, and clusters, that are shown."""

WRITTEN = 10
"""Clusters up to which numbers are written; of more, shades alone."""


def plot_means(
    sketch: AnySketch,
    decoding: Decoding,
    ax: Axes | None = None,
    *,
    columns: Sequence[int | str] | None = None,
) -> Axes:
    """Draw the mean of every column in every cluster, shaded by its distance from the mean.

    Blue is below the mean of all rows, orange above; two standard deviations have the full colour.

    Parameters
    ----------
    sketch : Sketch
        Of any number of columns.
    decoding : Decoding
        What a decoder made of it.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.
    columns : sequence of int or str, or None
        From top to bottom. None takes all columns, or, of more than 20, those 20 that tell the
        clusters apart best.

    Returns
    -------
    ax : matplotlib Axes
        A row for each column, and a column for each cluster, of more than 40 the heaviest. Of up
        to 10 clusters the means are written, in the units of the table.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from matplotlib.figure import Figure
    >>> from sketchshift.view import plot_means
    >>> X = np.repeat([[0.0, 0.0], [3.0, 3.0]], 50, axis=0)
    >>> s = ss.sketch(X, ss.SketchSpec(2, 50, 1.0, columns=("height", "weight")))
    >>> ax = plot_means(s, ss.decode(s, 2), Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['height', 'weight']
    """
    check_decoding(sketch, decoding, "plot_means")
    decoding = known_decoding(sketch, decoding)
    d, k = sketch.spec.n_features, min(len(decoding.weights), LARGEST)
    if columns is None:
        columns = sorted(best_columns(decoding)[0][:FULL])
    chosen = positions_of(sketch, columns, "plot_means", (1, d))
    ax = new_axes(ax)
    from matplotlib.colors import to_rgba

    mean, variance = spread_of(sketch, decoding)
    deviations = (decoding.centroids[:k] - mean) / np.sqrt(np.where(variance > 0, variance, 1.0))
    shades = [[to_rgba(shade(row[c])) for row in deviations] for c in chosen]
    if k:
        ax.imshow(np.reshape(shades, (len(chosen), k, 4)), aspect="auto")
    if k <= WRITTEN:
        for i, values in enumerate(shown_values(decoding)):
            for row, c in enumerate(chosen):
                ax.text(i, row, values[c], ha="center", va="center", fontsize=8)
    ax.set_yticks(range(len(chosen)), [wrap_name(sketch.spec.rows.labels[c], 36) for c in chosen])
    ax.tick_params(axis="y", length=0, labelsize=9 if len(chosen) <= 12 else 8)
    step = 1 if k <= LARGEST // 2 else 5
    ax.set_xticks(range(0, k, step))
    ax.spines[:].set_visible(False)
    shown = counted(d, "column") if len(chosen) == d else f"{len(chosen):,} of {d:,} columns"
    ax.set(xlabel="cluster", title=f"Means of {shown}")
    return ax
