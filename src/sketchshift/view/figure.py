"""Pictures of several panels: a decoding, and the demo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._pictures import require_matplotlib
from sketchshift._typing import RealArray
from sketchshift.decoders import Decoding
from sketchshift.sketch import AnySketch, Sketch
from sketchshift.view.curves import k_curve, plot_weights
from sketchshift.view.looks import escape_name
from sketchshift.view.maps import mark_centroids, plot_centroids
from sketchshift.view.means import FULL, plot_means
from sketchshift.view.plane import LABEL, correlation_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["decoding_figure", "demo_figure"]

# The one picture of a decoding: all that the sketch and the decoder have to show.


def decoding_figure(
    sketch: AnySketch, decoding: Decoding, *, columns: Sequence[int | str] | None = None
) -> Figure:
    """Panels of a decoding: a map of its clusters, their means, their weights, the choice of k.

    The means are there of more than two columns, the curve over k where the decoder chose k.

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
    means = _Panel(lambda ax: plot_means(sketch, decoding, ax), 1.4)
    weights = _Panel(partial(plot_weights, decoding))
    curve = [] if decoding.curve is None else [_Panel(partial(k_curve, decoding))]
    if sketch.spec.n_features > 2:
        return [[centroids, means], [weights, *curve]]
    return [[centroids, weights, *curve]]


# Rows beside their sketch: the picture of the demo.

PIXELS = 256
"""Each way, of both panels."""


def demo_figure(
    X: RealArray, sketch: Sketch, decoding: Decoding, ends: tuple[float, float]
) -> Figure:
    """Draw rows of two columns, and beside them the correlation function of their sketch.

    Parameters
    ----------
    X : array of shape (N, 2)
        The rows.
    sketch : Sketch
        Their sketch.
    decoding : Decoding
        Its centroids are marked.
    ends : pair of float
        Lower and upper end of both axes.

    Returns
    -------
    figure : matplotlib Figure
        Needs no display: it is not one of pyplot.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    counts, *_ = np.histogram2d(X[:, 1], X[:, 0], bins=PIXELS, range=[ends, ends])
    (low, high), n = ends, len(decoding.weights)
    seen, extent = correlation_image(
        sketch, resolution=PIXELS, lower=(low, low), upper=(high, high)
    )
    figure = Figure(figsize=(11, 4.9), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    common: dict[str, Any] = {"origin": "lower", "extent": extent, "cmap": "viridis"}
    rows = axes[0].imshow(np.ma.masked_equal(counts, 0), norm="log", **common)
    density = axes[1].imshow(seen, vmin=0.0, **common)
    mark_centroids(axes[1], decoding.centroids, decoding.weights)
    titles = (
        f"The data: {len(X):,} rows, {X.nbytes:,} bytes",
        f"From the sketch alone: {sketch.nbytes:,} bytes, {n} clusters",
    )
    names = [escape_name(name) for name in sketch.spec.rows.labels]
    for ax, title in zip(axes, titles, strict=True):
        ax.set(title=title, xlabel=names[0])
    axes[0].set_ylabel(names[1])
    figure.colorbar(rows, ax=axes[0], label="rows per cell", shrink=0.86)
    figure.colorbar(density, ax=axes[1], label=LABEL, shrink=0.86)
    return figure
