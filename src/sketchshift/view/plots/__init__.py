"""Pictures of sketches. Nobody imports this room; matplotlib is imported when drawing."""

from __future__ import annotations

from sketchshift.view.plots.curves import k_curve, plot_slices, plot_trace, plot_weights
from sketchshift.view.plots.drift import plot_comparison, plot_watch, watch_figure
from sketchshift.view.plots.figure import decoding_figure
from sketchshift.view.plots.maps import plot_centroids, plot_pairs
from sketchshift.view.plots.parallel import plot_parallel
from sketchshift.view.plots.plane import correlation_image, plot_correlation

__all__ = [
    "correlation_image",
    "decoding_figure",
    "k_curve",
    "plot_centroids",
    "plot_comparison",
    "plot_correlation",
    "plot_pairs",
    "plot_parallel",
    "plot_slices",
    "plot_trace",
    "plot_watch",
    "plot_weights",
    "watch_figure",
]
