"""Pictures of several panels: all of a decoding, and the demo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._text import column_names
from sketchshift._typing import FloatArray, RealArray
from sketchshift.decoders import Decoding
from sketchshift.sketch import AnySketch, Sketch
from sketchshift.view.curves import k_curve, plot_trace, plot_weights
from sketchshift.view.looks import escape_name
from sketchshift.view.maps import mark_centroids, plot_centroids
from sketchshift.view.parallel import FULL, plot_parallel
from sketchshift.view.plane import correlation_image, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["comparison_figure", "decoding_figure", "kernel_density"]

# The one picture of a decoding: all that the sketch and the decoder have to show.


def decoding_figure(
    sketch: AnySketch, decoding: Decoding, *, columns: Sequence[int | str] | None = None
) -> Figure:
    """Panels of a decoding: a map of its clusters, their weights, and how they were found.

    The map; of more than two columns, parallel coordinates too; the weights; where k was chosen
    by the decoder, its curve; the trace, if there is one.

    Parameters
    ----------
    sketch : Sketch
        What was decoded.
    decoding : Decoding
        What a decoder made of it.
    columns : pair of int or str, or None
        The plane of the first panel, as in :func:`plot_centroids`.

    Returns
    -------
    figure : matplotlib Figure
        Needs no display: it is not one of pyplot.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    rows = _rows(sketch, decoding, columns)
    first = max(4.6, 0.3 * min(sketch.spec.n_features, FULL) + 1.2)
    heights = [first, 4.0 if len(rows[-1]) > 1 else 2.6][: len(rows)]
    figure = Figure(figsize=(15, sum(heights)), layout="constrained")
    parts = figure.subfigures(len(rows), 1, height_ratios=heights, squeeze=False)[:, 0]
    for part, panels in zip(parts, rows, strict=True):
        widths = [panel.width for panel in panels]
        axes = part.subplots(1, len(panels), squeeze=False, width_ratios=widths)[0]
        for ax, panel in zip(axes, panels, strict=True):
            panel.draw(ax)
    return figure


@dataclass(frozen=True)
class _Panel:
    draw: Callable[[Axes], object]
    width: float = 1.0


def _rows(
    sketch: AnySketch, decoding: Decoding, columns: Sequence[int | str] | None
) -> list[list[_Panel]]:
    """One line of panels where that is enough, else two."""
    centroids = _Panel(lambda ax: plot_centroids(sketch, decoding, ax, columns=columns), 1.4)
    parallel = _Panel(lambda ax: plot_parallel(sketch, decoding, ax), 1.4)
    weights = _Panel(partial(plot_weights, decoding))
    trace = [_Panel(partial(plot_trace, decoding))] if decoding.trace else []
    curve = [] if decoding.curve is None else [_Panel(partial(k_curve, decoding))]
    if sketch.spec.n_features > 2:
        return [[centroids, parallel], [weights, *curve, *trace]]
    return [[centroids, weights], [*curve, *trace]] if curve else [[centroids, weights, *trace]]


# Data beside its sketch: the picture of the demo.

BINS = 256


def kernel_density(counts: FloatArray, bandwidth: float, width: float) -> FloatArray:
    r"""Mean over the rows of :math:`e^{-|c - x|^2 / 2\sigma^2}`, from a fine histogram.

    What the correlation function tends to as m grows: its oracle in pictures and tests.

    Parameters
    ----------
    counts : array of shape (ny, nx)
        Rows a cell.
    bandwidth : float
        :math:`\sigma`, much larger than a cell.
    width : float
        Of a cell, in the units of the bandwidth.

    Returns
    -------
    density : array of shape (ny, nx)
        From 0 to 1.
    """
    from scipy.ndimage import gaussian_filter

    blurred = gaussian_filter(counts / counts.sum(), bandwidth / width, mode="constant", truncate=6)
    return np.asarray(blurred * (2 * np.pi * (bandwidth / width) ** 2))


def comparison_figure(
    X: RealArray,
    sketch: Sketch,
    *,
    bandwidth: float,
    lower: float,
    upper: float,
    decoding: Decoding | None = None,
) -> Figure:
    """Three panels: the rows, their kernel density, and the same from their sketch alone.

    Parameters
    ----------
    X : array of shape (N, 2)
        The rows that were sketched.
    sketch : Sketch
        Theirs, not normalised.
    bandwidth : float
        That of the sketch.
    lower, upper : float
        Ends of both axes.
    decoding : Decoding or None
        Its centroids are marked on the last panel.

    Returns
    -------
    figure : matplotlib Figure
        Needs no display: it is not one of pyplot.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    counts, *_ = np.histogram2d(X[:, 1], X[:, 0], bins=BINS, range=[[lower, upper]] * 2)
    density = kernel_density(counts, bandwidth, (upper - lower) / BINS)
    ends: dict[str, Any] = {"lower": (lower, lower), "upper": (upper, upper)}
    seen, extent = correlation_image(sketch, resolution=BINS, **ends)

    figure = Figure(figsize=(15, 4.9), layout="constrained")
    axes = figure.subplots(1, 3, sharex=True, sharey=True)
    common: dict[str, Any] = {"origin": "lower", "extent": extent, "cmap": "viridis"}
    scale = {"vmin": 0.0, "vmax": max(density.max(), seen.max())}
    rows = axes[0].imshow(np.ma.masked_equal(counts, 0), norm="log", **common)
    axes[1].imshow(density, **scale, **common)
    last = axes[2].imshow(seen, **scale, **common)
    found = ""
    if decoding is not None:
        mark_centroids(axes[2], decoding.centroids, decoding.weights)
        found = f", {len(decoding.weights)} clusters"
    titles = (
        f"The data: {len(X):,} rows, {X.nbytes:,} bytes",
        f"Its kernel density, from every row ($\\sigma$ = {bandwidth:g})",
        f"From the sketch alone: {sketch.nbytes:,} bytes{found}",
    )
    names = [escape_name(name) for name in column_names(sketch.spec)]
    for ax, title in zip(axes, titles, strict=True):
        ax.set(title=title, xlabel=names[0])
    axes[0].set_ylabel(names[1])
    figure.colorbar(rows, ax=axes[0], label="rows per cell", shrink=0.86)
    label = r"correlation $f_z(c)$ with a Dirac at $c$"
    figure.colorbar(last, ax=axes[1:], label=label, shrink=0.86, pad=0.01)
    return figure
