"""Data beside its sketch: the picture of the demo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sketchshift._typing import FloatArray, RealArray
from sketchshift.decoders import Decoding
from sketchshift.plots.centroids import mark_centroids
from sketchshift.plots.columns import names_of, plain
from sketchshift.plots.correlation import correlation_image, require_matplotlib
from sketchshift.sketch import Sketch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["comparison_figure", "kernel_density"]

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
    names = [plain(name) for name in names_of(sketch)]
    for ax, title in zip(axes, titles, strict=True):
        ax.set(title=title, xlabel=names[0])
    axes[0].set_ylabel(names[1])
    figure.colorbar(rows, ax=axes[0], label="rows a cell", shrink=0.86)
    label = r"correlation $f_z(c)$ with a Dirac at $c$"
    figure.colorbar(last, ax=axes[1:], label=label, shrink=0.86, pad=0.01)
    return figure
