"""Centroids as parallel coordinates: one line a centroid across the axes of all columns.

Takes a sketch and what a decoder made of it; hands axes of matplotlib. The axes of the columns
lie below each other, so that names and numbers are read without turning the head. The data is
not needed: means and standard deviations are the sketch's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sketchshift._text import column_names, counted
from sketchshift._typing import FloatArray
from sketchshift.decoders import Decoding
from sketchshift.decoders.problem import spread_of
from sketchshift.recipe import log_ticks
from sketchshift.sketch import AnySketch
from sketchshift.view.looks import (
    check_decoding,
    in_units,
    line_look,
    positions_of,
    separation,
    wrap_name,
)
from sketchshift.view.maps import spread
from sketchshift.view.plane import new_axes, range_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_parallel"]

FULL, LINES = 20, 20
"""Columns, and clusters with a look of their own; lighter clusters are thin and grey."""

FARTHEST = 5.0
"""Standard deviations that are drawn; what lies farther stands at the edge, with its number."""

CHARACTERS = 36
"""Room for the numbers of one axis."""


def plot_parallel(
    sketch: AnySketch,
    decoding: Decoding,
    ax: Axes | None = None,
    *,
    columns: Sequence[int | str] | None = None,
) -> Axes:
    """Draw each centroid as a line across the axes of the columns.

    All axes are centered at the mean of their column and have its standard deviation as unit,
    from the sketch's own moments; numbers along them are in the column's own units. What lies
    farther than five of them from the mean stands at the edge, with its number of deviations.

    Parameters
    ----------
    sketch : Sketch
        Of any number of columns.
    decoding : Decoding
        What a decoder made of it.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.
    columns : sequence of int or str, or None
        From top to bottom. None takes all columns, or, of more than 20, those 20 with the
        largest share of their variance between the clusters.

    Returns
    -------
    ax : matplotlib Axes
        Lines are numbered as the rows of ``decoding.centroids``; their width grows with the
        share. Beyond 20 clusters, the lighter ones are grey and without a number.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from matplotlib.figure import Figure
    >>> from sketchshift.view import plot_parallel
    >>> X = np.repeat([[0.0, 0.0], [3.0, 3.0]], 50, axis=0)
    >>> s = ss.sketch(X, ss.SketchSpec(2, 50, 1.0, columns=("height", "weight")))
    >>> ax = plot_parallel(s, ss.decode(s, 2), Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['height', 'weight']
    """
    check_decoding(sketch, decoding, "plot_parallel")
    d = sketch.spec.n_features
    if columns is None:
        best = np.argsort(-separation(sketch, decoding), kind="stable")[:FULL]
        columns = sorted(best.tolist())
    chosen = positions_of(sketch, columns, "plot_parallel", (1, d))
    mean, variance = (moment[chosen] for moment in spread_of(sketch, decoding))
    deviation = np.sqrt(variance)
    unit = np.where(deviation > 0, deviation, 1.0)  # a constant column: any unit will do
    places = (decoding.centroids[:, chosen] - mean) / unit
    shown_places = np.clip(places, -FARTHEST, FARTHEST)
    low, high = shown_places.min(initial=-1.5), shown_places.max(initial=1.5)
    ax = new_axes(ax)
    ax.set(xlim=(1.05 * low - 0.05 * high, 1.05 * high - 0.05 * low))
    ax.set(ylim=(len(chosen) - 0.4, -1.1))
    for row, (values, texts) in enumerate(_numbers(sketch, chosen, mean, deviation, ax.get_xlim())):
        _draw_axis(ax, row, (values - mean[row]) / unit[row], texts)
    _draw_lines(ax, shown_places, decoding.weights)
    for i, row in np.argwhere(np.abs(places[:LINES]) > FARTHEST).tolist():
        _tell_far(ax, row, places[i, row], i)
    ax.set_yticks(range(len(chosen)), [wrap_name(column_names(sketch.spec)[c], 36) for c in chosen])
    ax.tick_params(axis="y", length=0, labelsize=9 if len(chosen) <= 12 else 8)
    ax.spines[["left", "right", "top"]].set_visible(False)
    shown = counted(d, "column") if len(chosen) == d else f"{len(chosen):,} of {d:,} columns"
    ax.set(
        xlabel="standard deviations from the mean of the column",
        title=f"{counted(len(places), 'centroid')} across {shown}",
    )
    return ax


def _numbers(
    sketch: AnySketch,
    chosen: Sequence[int],
    mean: FloatArray,
    deviation: FloatArray,
    ends: tuple[float, float],
) -> Iterator[tuple[FloatArray, list[str]]]:
    """For each axis, round values of its column that rows can have, and how they are written."""
    lowest, highest = (limits[chosen] for limits in range_of(sketch))
    low, high = mean + ends[0] * deviation, mean + ends[1] * deviation
    low, high = np.maximum(low, lowest), np.minimum(high, highest)
    whole = sketch.spec.n_features
    first, last = np.zeros(whole), np.zeros(whole)
    first[chosen], last[chosen] = low, high
    logs = log_ticks(sketch.spec.recipe, first, last)
    for row, column in enumerate(chosen):
        known = logs[column]
        if known:
            yield np.array([at for at, _ in known]), [text for _, text in known]
        else:
            is_point = not low[row] < high[row]
            values = mean[row : row + 1] if is_point else _ticks(low[row], high[row])
            yield values, in_units(values)


def _draw_axis(ax: Axes, row: int, at: FloatArray, texts: Sequence[str]) -> None:
    """The axis of one column, with numbers in its own units."""
    from matplotlib.patheffects import withStroke

    ax.plot(ax.get_xlim(), [row, row], color="0.75", linewidth=0.8, zorder=1)
    ax.plot(at, np.full(len(at), row), "|", color="0.4", markersize=6, zorder=1)
    halo = [withStroke(linewidth=2, foreground="white")]
    for x, text in zip(at, texts, strict=True):
        ax.annotate(
            text, (x, row), xytext=(0, -3), textcoords="offset points", ha="center", va="top",
            fontsize=7, color="0.25", path_effects=halo, zorder=5, in_layout=False,
        )  # fmt: skip


def _tell_far(ax: Axes, row: int, place: float, i: int) -> None:
    """How far a centroid is that stands at the edge."""
    side = np.sign(place)
    ax.annotate(
        f"{place:+.0f} sd", (side * FARTHEST, row), xytext=(-6 * side, 3), fontsize=8, va="bottom",
        textcoords="offset points", ha="right" if side > 0 else "left", fontweight="bold",
        color=line_look(i)["color"], in_layout=False,
    )  # fmt: skip


def _ticks(low: float, high: float) -> FloatArray:
    """Round values between two, away from the ends, as many as there is room for."""
    from matplotlib.ticker import MaxNLocator

    margin = 0.06 * (high - low)
    ticks = np.array([(low + high) / 2])
    for n in (1, 2, 3, 4, 5):
        values = np.asarray(MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
        values = values[(values >= low + margin) & (values <= high - margin)]
        if len(values) and sum(map(len, in_units(values))) <= CHARACTERS:
            ticks = values
    return ticks


def _draw_lines(ax: Axes, places: FloatArray, weights: FloatArray) -> None:
    """The lines, the heaviest below, and their numbers above the first axis."""
    rows, (low, high) = np.arange(places.shape[1]), ax.get_xlim()
    margin = 0.02 * (high - low)
    ax.plot(places[LINES:].T, rows, color="0.7", linewidth=0.6, zorder=1.5)
    heads = spread(places[:LINES, 0], 0.047 * (high - low), low + margin, high - margin)
    widest = 4.5 if len(heads) <= 8 else 3.0
    widths = 0.9 + (widest - 0.9) * weights[:LINES] / weights.max(initial=np.finfo(float).tiny)
    for i, (place, head, width) in enumerate(zip(places, heads, widths, strict=False)):
        look, zorder = line_look(i), 2 + i / LINES
        ax.plot([head, place[0]], [-0.55, 0], color=look["color"], linewidth=0.7, zorder=zorder)
        ax.plot(
            place, rows, linewidth=width, markersize=3.5 + width, markeredgecolor="white",
            markeredgewidth=0.5, zorder=zorder, label=str(i), **look,
        )  # fmt: skip
        ax.annotate(
            str(i), (head, -0.55), xytext=(0, 1), textcoords="offset points", ha="center",
            va="bottom", fontsize=9, fontweight="bold", color=look["color"], in_layout=False,
        )  # fmt: skip
