"""Curves of a decoding: the choice of k, the weights, the shares over slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._colours import THIN, colour_of
from sketchshift._text import counted
from sketchshift._times import describe_keys
from sketchshift._typing import FloatArray
from sketchshift._validation import parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.choose_k import TOLERANCE
from sketchshift.decoders.shares import shares
from sketchshift.sketch import Sketch, SketchTable
from sketchshift.view.looks import (
    INK,
    check_decoding,
    escape_name,
    fill_look,
    legend_above,
    logarithmic,
)
from sketchshift.view.maps import spread
from sketchshift.view.plane import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_shares", "k_curve", "name_slices", "plot_slices", "plot_weights"]

# How the number of clusters was chosen.

RULE = f"first within {100 * (TOLERANCE - 1):.2g} % of the best"
"""How the legend says which k is chosen."""

NO_RULE = "no number is natural"
"""The same where the curve singles none out."""

DEEPEST = 1e-6
"""Values below this share of the largest are drawn there: a logarithmic axis has no zero."""


def k_curve(decoding: Decoding, ax: Axes | None = None) -> Axes:
    """Draw score and misfit against the number of clusters, with the chosen one marked.

    Parameters
    ----------
    decoding : Decoding
        Of ``decode(sketch, n_clusters="auto")``.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.

    Returns
    -------
    ax : matplotlib Axes
        With a logarithmic axis of both.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from matplotlib.figure import Figure
    >>> from sketchshift.view import k_curve
    >>> X = np.repeat([[0.0, 0.0], [3.0, 3.0], [0.0, 3.0]], 50, axis=0)
    >>> decoding = ss.decode(ss.sketch(X, n_clusters=5), n_clusters="auto")
    >>> k_curve(decoding, Figure().subplots()).get_title()
    '3 clusters, of 1 to 3 tried'
    """
    curve = decoding.curve
    if curve is None:
        must = 'a Decoding with a curve, that of decode(sketch, n_clusters="auto")'
        raise parameter_error("k_curve", "decoding", must, decoding)
    ax = new_axes(ax)
    from matplotlib.ticker import MaxNLocator

    k, score, misfit = curve.n_clusters, _floor(curve.score), _floor(curve.misfit)
    size = 4 if len(k) <= 40 else 2
    ax.plot(
        k, misfit, "s--", color=colour_of(1), markersize=size, markerfacecolor="white",
        linewidth=1, label="misfit",
    )  # fmt: skip
    ax.plot(k, score, "o-", color=INK, markersize=size, label="score")
    at = curve.chosen - 1
    ax.axvline(curve.chosen, color=INK, linestyle=":", linewidth=1)
    ax.plot(
        k[at], score[at], "o", color=INK, markersize=13, markerfacecolor="none",
        markeredgewidth=2,
        label=f"chosen: {curve.chosen}, {RULE if curve.is_natural else NO_RULE}",
    )  # fmt: skip
    logarithmic(ax, [*score, *misfit])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(
        xlabel="number of clusters",
        ylabel="share of the sketch",
        title=f"{counted(curve.chosen, 'cluster')}, of 1 to {len(k)} tried",
    )
    legend_above(ax, ax.get_legend_handles_labels()[0])
    return ax


def _floor(values: FloatArray) -> FloatArray:
    """Values that a logarithmic axis can show."""
    return np.maximum(values, DEEPEST * (float(values.max()) or 1.0))


# The weights of a decoding.

LABELLED = 16
"""Bars that are labelled one by one."""


def plot_weights(decoding: Decoding, ax: Axes | None = None) -> Axes:
    """Draw the shares of the clusters as bars.

    Parameters
    ----------
    decoding : Decoding
        What a decoder found.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.

    Returns
    -------
    ax : matplotlib Axes
        Numbered as the rows of ``decoding.centroids``.
    """
    ax = new_axes(ax)
    from matplotlib.ticker import MaxNLocator

    k = len(decoding.weights)
    bars = ax.bar(np.arange(k), 100 * decoding.weights, color=[colour_of(i) for i in range(k)])
    if k <= LABELLED:
        ax.bar_label(bars, fmt="{:.1f}" if k <= 10 else "{:.0f}", padding=2, fontsize=8)
        ax.set_xticks(range(k))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="cluster", ylabel="share of the rows (%)", title="Weights")
    ax.margins(y=0.1)
    return ax


# The shares of the clusters in the slices of a table of sketches, one after another.

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

    Slices stand in the order of the table, at equal distances. One without rows has no bar, and one
    with fewer than 100 rows is hatched, with their number: its shares are rough. Of more than 60
    slices the bars touch.

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
        :func:`sketchshift.decoders.shares`.

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
    named = (describe_keys(name, table.keys.column(name).to_pylist()) for name in table.by)
    keys = [", ".join(parts) for parts in zip(*named, strict=True)]
    counts = [sketch.count for sketch in table.sketches]
    return draw_shares(new_axes(ax), np.array(rows), keys, counts, ", ".join(table.by))


def draw_shares(
    ax: Axes, rows: FloatArray, keys: Sequence[str], counts: Sequence[int], by: str
) -> Axes:
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
    for i in np.flatnonzero(np.array(counts) < THIN).tolist():
        low, high = (i - 0.425, i + 0.425) if n <= SEPARATE else (i - 0.5, i + 0.5)
        ax.axvspan(low, high, facecolor=(1, 1, 1, 0.5), edgecolor=INK, hatch="////", linewidth=0)
    name_slices(ax, [_with_count(key, n) for key, n in zip(keys, counts, strict=True)])
    ax.set(
        xlabel=escape_name(by),
        ylabel="share of the rows (%)",
        title=f"{counted(k, 'cluster')} in {counted(n, 'slice')}",
    )
    return ax


def _with_count(key: str, n: int) -> str:
    return f"{key} ({counted(n, 'row')})" if n < THIN else key


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
    labels = [escape_name(names[i]) for i in shown]
    ax.set_xticks(shown, labels, rotation=0 if is_short else 90, fontsize=9)
