"""Pictures of sketches. Nobody imports this room; matplotlib is imported when drawing."""

from __future__ import annotations

from sketchshift.plots.correlation import correlation_image, plot_correlation

__all__ = ["correlation_image", "plot_correlation"]
