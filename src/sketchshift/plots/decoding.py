"""The weights of a decoding, and how it was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sketchshift.decoders import Decoding, Round, Step
from sketchshift.plots.correlation import new_axes
from sketchshift.plots.looks import legend_above, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_trace", "plot_weights"]

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
    bars = ax.bar(np.arange(k), 100 * decoding.weights, color="#5b7fa6", edgecolor="black")
    if k <= LABELLED:
        ax.bar_label(bars, fmt="{:.1f}" if k <= 10 else "{:.0f}", padding=2, fontsize=8)
        ax.set_xticks(range(k))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="cluster", ylabel="share of the rows (%)", title="Weights")
    ax.margins(y=0.1)
    return ax


def plot_trace(decoding: Decoding, ax: Axes | None = None) -> Axes:
    """Draw the residual norm after each atom, and the correlation at which it was found.

    Of the turnkey decoder: that of each fit, and the number of its atoms.

    Parameters
    ----------
    decoding : Decoding
        What a decoder found.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.

    Returns
    -------
    ax : matplotlib Axes
        The residual norm on a logarithmic axis; the other has the axis at the right.
    """
    ax = new_axes(ax)
    from matplotlib.ticker import MaxNLocator

    numbers = [step.index for step in decoding.trace]
    norms = np.maximum([step.residual_norm for step in decoding.trace], np.finfo(float).tiny)
    final = max(decoding.residual_norm, float(np.finfo(float).tiny))
    right = ax.twinx()
    lines = ax.plot(numbers, norms, "o-", color="black", markersize=4, label="residual norm")
    lines += [ax.axhline(final, linestyle=":", color="black", label=f"kept: {final:.3g}")]
    values = [s.correlation if isinstance(s, Step) else s.n_atoms for s in decoding.trace]
    are_fits = any(isinstance(step, Round) for step in decoding.trace)
    lines += right.plot(
        numbers, values, "s--", color="#c05a1a", markersize=4, markerfacecolor="white",
        label="atoms (right)" if are_fits else "correlation (right)",
    )  # fmt: skip
    logarithmic(ax, [final, *norms])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    unit, what = ("fit", "atoms") if are_fits else ("atom", "correlation with the residual")
    ax.set(xlabel=unit, ylabel="residual norm, of the sketch's", title="Trace")
    right.set_ylabel(what, color="#c05a1a")
    right.set_ylim(bottom=min([0.0, *values]))
    right.yaxis.set_major_locator(MaxNLocator(6, integer=are_fits))
    legend_above(ax, lines)
    return ax
