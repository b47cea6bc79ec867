"""The one picture of a decoding: all that the sketch and the decoder have to show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sketchshift.decoders import Decoding
from sketchshift.plots.choosing_k import k_curve
from sketchshift.plots.correlation import require_matplotlib
from sketchshift.plots.decoding import plot_trace, plot_weights
from sketchshift.plots.maps import plot_centroids
from sketchshift.plots.parallel import FULL, plot_parallel
from sketchshift.sketch import AnySketch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["decoding_figure"]


def decoding_figure(
    sketch: AnySketch, decoding: Decoding, *, columns: Sequence[int | str] | None = None
) -> Figure:
    """Panels of a decoding: its centroids, their weights, and how they were found.

    The centroids on the correlation function; of more than two columns, as parallel
    coordinates too; the weights; where k was chosen by the decoder, its curve; the trace.

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
    heights = [max(4.6, 0.3 * min(sketch.spec.n_features, FULL) + 1.2), 4.0][: len(rows)]
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
    weights, trace = _Panel(partial(plot_weights, decoding)), _Panel(partial(plot_trace, decoding))
    curve = [] if decoding.curve is None else [_Panel(partial(k_curve, decoding))]
    if sketch.spec.n_features > 2:
        return [[centroids, parallel], [weights, *curve, trace]]
    return [[centroids, weights], [*curve, trace]] if curve else [[centroids, weights, trace]]
