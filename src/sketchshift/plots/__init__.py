"""Pictures of sketches. Nobody imports this room; matplotlib is imported when drawing."""

from __future__ import annotations

from sketchshift.plots.choosing_k import k_curve
from sketchshift.plots.correlation import correlation_image, plot_correlation
from sketchshift.plots.decoding import decoding_figure, plot_centroids, plot_trace, plot_weights

__all__ = [
    "correlation_image",
    "decoding_figure",
    "k_curve",
    "plot_centroids",
    "plot_correlation",
    "plot_trace",
    "plot_weights",
]
