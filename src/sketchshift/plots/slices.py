"""The shares of the clusters in the slices of a table of sketches, one after another.

Takes a table and what a decoder made of the whole; hands axes of matplotlib. The data is not
needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.shares import shares
from sketchshift.plots.columns import check_decoding, counted, plain
from sketchshift.plots.correlation import new_axes
from sketchshift.plots.looks import fill_look
from sketchshift.plots.placement import spread
from sketchshift.sketch import Sketch, SketchTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_shares", "name_slices", "plot_slices"]

SHOWN = 11
"""Clusters with an area of their own, the heaviest; the others share one."""

SEPARATE = 60
"""Slices that are bars of their own; more of them are areas with steps."""

SHORT, LEVEL, TURNED = 6, 9, 22
"""Characters of a short name; slices that are named if all names are short, and if not."""


def plot_slices(
    table: SketchTable,
    decoding: Decoding,
    ax: Axes | None = None,
    *,
    reference: Sketch | None = None,
) -> Axes:
    """Draw the shares of the clusters in each slice of a table as stacked bars.

    Slices stand in the order of the table, at equal distances. One without rows has no bar. Of
    more than 60 slices the bars touch.

    Parameters
    ----------
    table : SketchTable
        Of at least one slice, ordered: by time, for example.
    decoding : Decoding
        Of all slices together, or of another sketch of the same spec.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.
    reference : Sketch or None
        The sketch that was decoded: with it the shares are more exact, see
        :func:`sketchshift.shares`.

    Returns
    -------
    ax : matplotlib Axes
        Areas are numbered at the right as the rows of ``decoding.centroids``, from below. Of
        more than 12 clusters, those beyond the 11 heaviest are one area.
    """
    if not len(table):
        raise parameter_error("plot_slices", "table", "a SketchTable of at least one slice", table)
    check_decoding(table.sketches[0], decoding, "plot_slices")
    k = len(decoding.weights)
    rows = [
        shares(decoding, sketch, reference=reference) if sketch.count else np.zeros(k)
        for sketch in table.sketches
    ]
    keys = [", ".join(map(str, row.values())) for row in table.keys.to_pylist()]
    return draw_shares(new_axes(ax), np.array(rows), keys, ", ".join(table.by))


def draw_shares(ax: Axes, rows: FloatArray, keys: Sequence[str], by: str) -> Axes:
    """Shares of clusters, shape (n, k), as stacked bars; those of a slice without rows are 0."""
    n, k = rows.shape
    heights, names = _areas(100.0 * rows)
    tops = np.cumsum(heights, axis=1)
    for i, name in enumerate(names):
        look = fill_look(i) | {"label": name, "linewidth": 0.6}
        if n <= SEPARATE:
            bottom = tops[:, i] - heights[:, i]
            ax.bar(np.arange(n), heights[:, i], bottom=bottom, width=0.85, **look)
        else:
            _draw_band(ax, tops[:, i] - heights[:, i], tops[:, i], look)
    ax.set(xlim=(-0.6, n - 0.4), ylim=(0, 100))
    last = int(np.flatnonzero(tops[:, -1] > 0)[-1]) if (tops > 0).any() else n - 1
    _number(ax, n - 0.4, tops[last] - heights[last] / 2, names)
    name_slices(ax, keys)
    ax.set(
        xlabel=plain(by),
        ylabel="share of the rows (%)",
        title=f"{counted(k, 'cluster')} in {counted(n, 'slice')}",
    )
    return ax


def _areas(heights: FloatArray) -> tuple[FloatArray, list[str]]:
    """Percentages, shape (n, areas), and the names of the areas."""
    k = heights.shape[1]
    names = [str(i) for i in range(k)]
    if k <= SHOWN + 1:
        return heights, names
    rest = heights[:, SHOWN:].sum(axis=1, keepdims=True)
    return np.hstack([heights[:, :SHOWN], rest]), [*names[:SHOWN], f"{SHOWN}-{k - 1}"]


def _draw_band(ax: Axes, low: FloatArray, high: FloatArray, look: dict[str, Any]) -> None:
    """Bars that touch, as one area: a hatch needs more room than one of them has."""
    x = np.concatenate([[-0.5], np.arange(len(low)), [len(low) - 0.5]])
    ax.fill_between(x, np.pad(low, 1, "edge"), np.pad(high, 1, "edge"), step="mid", **look)


def _number(ax: Axes, right: float, middles: FloatArray, names: Sequence[str]) -> None:
    """Names of the areas beside the last bar, with a line where they had to move."""
    for name, middle, place in zip(names, middles, spread(middles, 6.0, 2.0, 98.0), strict=True):
        ax.annotate(
            name, (right, middle), xytext=(12, place), textcoords=("offset points", "data"),
            va="center", fontsize=9, fontweight="bold", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip


def name_slices(ax: Axes, names: Sequence[str]) -> None:
    """As many names below the bars as can be read, at equal distances, from the first one on."""
    is_short = max(map(len, names)) <= SHORT
    step = -(-len(names) // (LEVEL if is_short else TURNED))
    shown = range(0, len(names), step)
    labels = [plain(names[i]) for i in shown]
    ax.set_xticks(shown, labels, rotation=0 if is_short else 90, fontsize=9)
