"""Pictures of a decoding: its centroids, their weights, and how they were found.

Takes a sketch and what a decoder made of it; hands axes of matplotlib. The data is not
needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import check_integer, parameter_error
from sketchshift.decoders import Decoding, Round, Step
from sketchshift.objective import CorrelationFunction
from sketchshift.plots.centroids import mark_centroids
from sketchshift.plots.correlation import LABEL, label_axes, new_axes, plain, require_matplotlib
from sketchshift.plots.plane import (
    Plane,
    column_plane,
    main_plane,
    moments_of,
    names_of,
    plane_image,
)
from sketchshift.sketch import AnySketch, Sketch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["decoding_figure", "plot_centroids", "plot_trace", "plot_weights"]

LABELLED = 16
"""Bars and atoms that are labelled one by one."""


def plot_centroids(
    sketch: AnySketch,
    decoding: Decoding,
    ax: Axes | None = None,
    *,
    columns: Sequence[int | str] | None = None,
    resolution: int = 200,
) -> Axes:
    """Draw the correlation function of a sketch with the centroids on it.

    Parameters
    ----------
    sketch : Sketch
        Of any number of columns; of one column, the function is a curve.
    decoding : Decoding
        What a decoder made of it.
    ax : matplotlib Axes or None
        Where to draw; None makes a new figure of pyplot.
    columns : pair of int or str, or None
        The plane to show. None takes the two columns there are, or, of more, the plane of the
        two main axes. Either goes through the mean, and centroids are projected to it.
    resolution : int
        Pixels each way.

    Returns
    -------
    ax : matplotlib Axes
        With marks of an area proportional to the weight, numbered as the rows of
        ``decoding.centroids``.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from matplotlib.figure import Figure
    >>> from sketchshift.plots import plot_centroids
    >>> X = np.repeat([[0.0, 0.0], [3.0, 3.0]], 50, axis=0)
    >>> s = ss.sketch(X, ss.SketchSpec(n_features=2, sketch_size=50, bandwidth=1.0))
    >>> decoding = ss.SketchAndShift(n_initializations=10)(s, 2)
    >>> plot_centroids(s, decoding, Figure().subplots()).get_xlabel()
    'column 0'
    """
    d = sketch.spec.n_features
    n = check_integer("plot_centroids", "resolution", resolution, 1, 2**14)
    if decoding.centroids.shape[1] != d:
        msg = f"a Decoding of the sketch's {d} columns"
        raise parameter_error("plot_centroids", "decoding", msg, decoding)
    ax = new_axes(ax)
    if d == 1 and columns is None:
        _draw_curve(sketch, decoding, ax, n)
    elif d == 2 or columns is not None:
        plane = column_plane(sketch, (0, 1) if columns is None else columns, "plot_centroids")
        _draw_plane(sketch, decoding, ax, plane, n)
    else:
        _draw_plane(sketch, decoding, ax, main_plane(sketch, _moments(sketch, decoding)), n)
    ax.set_title(f"{len(decoding.weights):,} centroids on {sketch.count:,} rows")
    return ax


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
    k = len(decoding.weights)
    bars = ax.bar(np.arange(k), 100 * decoding.weights, color="#5b7fa6", edgecolor="black")
    if k <= LABELLED:
        ax.bar_label(bars, fmt="{:.1f}" if k <= 10 else "{:.0f}", padding=2, fontsize=8)
        ax.set_xticks(range(k))
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
    from matplotlib.ticker import MaxNLocator, NullLocator

    numbers = [step.index for step in decoding.trace]
    norms = np.maximum([step.residual_norm for step in decoding.trace], np.finfo(float).tiny)
    final = max(decoding.residual_norm, float(np.finfo(float).tiny))
    right = ax.twinx()
    lines = ax.plot(numbers, norms, "o-", color="black", markersize=4, label="residual norm")
    lines += [ax.axhline(final, linestyle=":", color="black", label=f"at the end: {final:.3g}")]
    values = [s.correlation if isinstance(s, Step) else s.n_atoms for s in decoding.trace]
    are_fits = any(isinstance(step, Round) for step in decoding.trace)
    lines += right.plot(
        numbers, values, "s--", color="#c05a1a", markersize=4, markerfacecolor="white",
        label="atoms (right)" if are_fits else "correlation (right)",
    )  # fmt: skip
    ax.set_yscale("log")
    if max([final, *norms]) < 20 * min([final, *norms]):  # too few powers of ten to read it by
        ax.yaxis.set_major_locator(MaxNLocator(6))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    unit, what = ("fit", "atoms") if are_fits else ("atom", "correlation with the residual")
    ax.set(xlabel=unit, ylabel="residual norm, of the sketch's", title="Trace")
    right.set_ylabel(what, color="#c05a1a")
    right.set_ylim(bottom=min([0.0, *values]))
    ax.legend(handles=lines, fontsize=8, loc="best")
    return ax


def decoding_figure(sketch: AnySketch, decoding: Decoding) -> Figure:
    """Three panels: the centroids, their weights, and the trace.

    Parameters
    ----------
    sketch : Sketch
        What was decoded.
    decoding : Decoding
        What a decoder made of it.

    Returns
    -------
    figure : matplotlib Figure
        Needs no display: it is not one of pyplot.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4.6), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=(1.5, 1, 1.1))
    plot_centroids(sketch, decoding, axes[0])
    plot_weights(decoding, axes[1])
    plot_trace(decoding, axes[2])
    return figure


def _moments(sketch: AnySketch, decoding: Decoding) -> tuple[FloatArray, FloatArray] | None:
    """Those of the clusters, for a sketch that does not tell its own."""
    if isinstance(sketch, Sketch) or not len(decoding.weights):
        return None
    mean = decoding.weights @ decoding.centroids
    rests = decoding.centroids - mean
    covariance = (rests.T * decoding.weights) @ rests
    if decoding.covariances is not None:
        covariance += np.einsum("i,ijk->jk", decoding.weights, decoding.covariances)
    return mean, covariance


def _values(sketch: AnySketch, points: FloatArray) -> FloatArray:
    normalised = (points - sketch.spec.center_vector) * sketch.spec.per_unit
    return CorrelationFunction.of(sketch)(normalised) if len(points) else np.empty(0)


def _draw_plane(sketch: AnySketch, decoding: Decoding, ax: Axes, plane: Plane, n: int) -> None:
    lower, upper = plane.box_around(decoding.centroids)
    image, extent = plane_image(sketch, plane, n, lower, upper)
    # a plane may pass far from all rows: what is noise must not be bright
    top = max(float(image.max()), float(_values(sketch, decoding.centroids).max(initial=0.0)))
    shown = ax.imshow(
        image, origin="lower", extent=extent, aspect="auto", cmap="viridis", vmin=0.0, vmax=top
    )
    mark_centroids(ax, plane.coordinates(decoding.centroids), decoding.weights)
    label_axes(ax, plane)
    ax.figure.colorbar(shown, ax=ax, label=LABEL)


def _draw_curve(sketch: AnySketch, decoding: Decoding, ax: Axes, n: int) -> None:
    center, covariance = moments_of(sketch)
    spread, mean = 3.0 * float(np.sqrt(covariance[0, 0])), float(center[0])
    bandwidth = np.max(sketch.spec.bandwidth) * sketch.spec.scale_vector[0]
    reach = spread if spread > 0 else 3.0 * bandwidth
    low = min(mean - reach, decoding.centroids.min(initial=np.inf))
    high = max(mean + reach, decoding.centroids.max(initial=-np.inf))
    x = np.linspace(low, high, max(4 * n, 2))
    y = _values(sketch, x[:, None])
    ax.plot(x, y, color="#2a788e")
    ax.fill_between(x, y, color="#2a788e", alpha=0.25, linewidth=0)
    tops = _values(sketch, decoding.centroids)
    ax.vlines(decoding.centroids[:, 0], 0, tops, color="black", linestyle=":")
    ax.set(xlabel=plain(names_of(sketch)[0]), ylabel=LABEL, xlim=(low, high))
    ax.margins(y=0.15)
    mark_centroids(ax, np.column_stack([decoding.centroids[:, 0], tops]), decoding.weights)
