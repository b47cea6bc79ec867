"""Drift in pictures: the clusters of two sketches side by side, and distances over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._colours import colour_of
from sketchshift._pictures import require_matplotlib
from sketchshift._text import counted
from sketchshift._times import describe_keys
from sketchshift._typing import BoolArray
from sketchshift._validation import parameter_error
from sketchshift.drift import Comparison, Distance, Watch
from sketchshift.drift.compare import name_clusters
from sketchshift.view.curves import draw_shares, name_slices
from sketchshift.view.looks import (
    INK,
    escape_name,
    legend_above,
    legend_of_clusters,
    line_look,
    names_in_words,
    wrap_name,
)
from sketchshift.view.plane import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["comparison_figure", "plot_comparison", "plot_watch", "watch_figure"]

SHOWN = 20
"""Clusters with bars of their own, the heaviest."""

FEW = 8
"""Clusters up to which what became of them is written out; beyond, as signs."""

QUOTE = "'"
SIGNS = {"same": "", "grew": "+", "shrank": "-", "moved": "~"}

LINES = {
    "before": "from the slice before",
    "earlier": "from all earlier slices",
    "usual": "from what is usual",
}
PALE = 0.45
"""Opacity of what was before."""


def plot_comparison(comparison: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the shares of the clusters in two sketches side by side.

    Parameters
    ----------
    comparison : Comparison
        With clusters.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.

    Returns
    -------
    ax : matplotlib Axes
        With error bars of two standard errors of the change on the second of each pair, and
        above it what became of the cluster: in words, or beyond eight clusters "+" grew,
        "-" shrank, "~" moved. Of more than 20 clusters the heaviest.
    """
    if not comparison.clusters:
        must = "a Comparison with clusters, not of n_clusters=None"
        raise parameter_error("plot_comparison", "comparison", must, comparison)
    ax = new_axes(ax)
    from matplotlib.patches import Patch

    shown = comparison.clusters[:SHOWN]
    places = np.arange(len(shown))
    before, after = (
        100.0 * np.array([getattr(cluster, name) for cluster in shown])
        for name in ("share_a", "share_b")
    )
    errors = 200.0 * np.array([cluster.standard_error for cluster in shown])
    colours = [colour_of(i) for i in range(len(shown))]
    ax.bar(places - 0.2, before, 0.38, color=colours, alpha=PALE)
    ax.bar(places + 0.2, after, 0.38, color=colours)
    low = np.minimum(errors, after)
    ax.errorbar(places + 0.2, after, [low, errors], fmt="none", ecolor=INK, capsize=3)
    for place, top, cluster in zip(places, after + errors, shown, strict=True):
        words = cluster.verdict.split(" and ")
        text = "\n".join(words) if len(shown) <= FEW else " ".join(SIGNS[w] for w in words)
        is_same = cluster.verdict == "same"
        ax.annotate(
            "" if is_same else text, (place + 0.2, top), xytext=(0, 3), va="bottom", ha="center",
            textcoords="offset points", fontsize=9, fontweight="bold",
        )  # fmt: skip
    ax.set_xticks(places)
    if len(shown) <= FEW:
        names = name_clusters(comparison.decoding)
        told = [f"{i}\n{wrap_name(name.strip(QUOTE), 16)}" for i, name in enumerate(names)]
        ax.set_xticks(places, told, fontsize=8)
    rest = len(comparison.clusters) - len(shown)
    ax.set(
        xlabel="cluster" + (f", the {SHOWN} heaviest of {SHOWN + rest:,}" if rest else ""),
        ylabel="share of the rows (%)",
        title=_summary(comparison),
    )
    ax.margins(y=0.14)
    ax.set_ylim(bottom=0.0)
    kinds = {"first sketch, pale": PALE, "second sketch": 1.0}
    legend_above(ax, [Patch(color=INK, alpha=a, label=label) for label, a in kinds.items()])
    return ax


def comparison_figure(comparison: Comparison) -> Figure:
    """Draw :func:`plot_comparison` on a figure of its own, which needs no display."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.6), layout="constrained")
    plot_comparison(comparison, figure.subplots())
    return figure


def plot_watch(watch: Watch, ax: Axes | None = None) -> Axes:
    """Draw the distances of the slices from those before them, with thresholds and alarms.

    Parameters
    ----------
    watch : Watch
        Of at least one slice.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.

    Returns
    -------
    ax : matplotlib Axes
        A line for each kind of distance, its threshold, and a ring around the distances of slices
        that are alarms. The slices of a reference are shaded.
    """
    ax = new_axes(ax)
    handles: list[Any] = []
    is_alarm = np.array([each.drifted for each in watch.slices])
    drawn = {w: [getattr(each, w) for each in watch.slices] for w in LINES}
    drawn = {w: tests for w, tests in drawn.items() if any(test is not None for test in tests)}
    for i, (which, tests) in enumerate(drawn.items()):
        handles += _draw_tests(ax, tests, LINES[which], i, is_alarm)
    usual = np.flatnonzero([each.is_reference for each in watch.slices]).tolist()
    spans = [ax.axvspan(i - 0.5, i + 0.5, color="0.9", linewidth=0, zorder=0) for i in usual]
    for span in spans[:1]:
        span.set_label("the reference")
        handles.append(span)
    ax.set(xlim=(-0.6, len(watch) - 0.4), ylim=(0.0, None))
    name_slices(ax, _keys(watch))
    ax.set(xlabel=escape_name(watch.by), ylabel="distance", title=_alarms(watch))
    if handles:
        legend_above(ax, handles)
    return ax


def watch_figure(watch: Watch) -> Figure:
    """Two panels: distances over time, and below them the shares of the clusters.

    Parameters
    ----------
    watch : Watch
        Of at least one slice.

    Returns
    -------
    figure : matplotlib Figure
        Of the first panel alone where there are no clusters. Needs no display: it is not one of
        pyplot.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    n_panels = 1 if watch.decoding is None else 2
    figure = Figure(figsize=(12, 4.2 * n_panels), layout="constrained")
    axes = figure.subplots(n_panels, 1, squeeze=False)[:, 0]
    plot_watch(watch, axes[0])
    if watch.decoding is not None:
        rows = np.nan_to_num(np.array([each.shares for each in watch.slices]))
        counts = [each.count for each in watch.slices]
        draw_shares(axes[1], rows, _keys(watch), counts, watch.by)
        place = {"loc": "upper left", "bbox_to_anchor": (1.05, 1.0)}
        names = names_in_words(watch.whole, watch.decoding)
        legend_of_clusters(axes[1], names, watch.decoding.weights, **place)
    return figure


def _keys(watch: Watch) -> list[str]:
    return describe_keys(watch.by, [each.key for each in watch.slices])


def _alarms(watch: Watch) -> str:
    """How many alarms, and what a ring means: many a distance beyond its threshold has none."""
    found = f"{counted(len(watch.alarms), 'alarm')} in {counted(len(watch), 'slice')}"
    if not watch.effect:
        return found
    return f"{found} (ringed, from {100 * watch.effect:g} % of the rows on)"


def _draw_tests(
    ax: Axes, tests: Sequence[Distance | None], label: str, i: int, is_alarm: BoolArray
) -> list[Any]:
    """A line of distances, its threshold as steps, and rings; handles of the first two."""
    distances, limits = (
        np.array([np.nan if test is None else getattr(test, name) for test in tests])
        for name in ("distance", "threshold")
    )
    at = np.arange(len(tests))
    look = line_look(i)
    dense = len(tests) > 60
    handles = ax.plot(
        at, distances, markersize=2.5 if dense else 5, linewidth=1.2, label=label, **look
    )
    limit = {"color": look["color"], "linewidth": 1.0, "alpha": 0.8, "linestyle": (":", "-.")[i]}
    handles += ax.plot(at, limits, drawstyle="steps-mid", label="its threshold", **limit)
    beyond = (distances > limits) & is_alarm
    ax.plot(
        at[beyond], distances[beyond], "o", markersize=12, markerfacecolor="none",
        markeredgecolor=look["color"], markeredgewidth=1.6,
    )  # fmt: skip
    return handles


def _summary(comparison: Comparison) -> str:
    verdict = "The second has changed" if comparison.drifted else "No change beyond chance"
    return f"{verdict}: distance {comparison.distance:.2g}, threshold {comparison.threshold:.2g}"
