"""Pictures of clusters, the report on them, and the page that explores them.

Needs matplotlib for pictures, and Starlette and uvicorn for the page that is served:
``pip install "sketchshift[view]"``. Each is imported when it is used. No module outside imports
this room: commands and pictures are found by their entry points.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sketchshift.view.curves import k_curve, plot_slices, plot_weights
    from sketchshift.view.document import SketchFile
    from sketchshift.view.drift import plot_comparison, plot_watch, watch_figure
    from sketchshift.view.figure import decoding_figure
    from sketchshift.view.maps import plot_centroids
    from sketchshift.view.means import plot_means
    from sketchshift.view.page import render_report, report_on
    from sketchshift.view.plane import correlation_image, plot_correlation

__all__ = [
    "SketchFile",
    "correlation_image",
    "decoding_figure",
    "k_curve",
    "plot_centroids",
    "plot_comparison",
    "plot_correlation",
    "plot_means",
    "plot_slices",
    "plot_watch",
    "plot_weights",
    "render_report",
    "report_on",
    "watch_figure",
]

_HOMES = {
    "curves": ("k_curve", "plot_slices", "plot_weights"),
    "document": ("SketchFile",),
    "drift": ("plot_comparison", "plot_watch", "watch_figure"),
    "figure": ("decoding_figure",),
    "maps": ("plot_centroids",),
    "means": ("plot_means",),
    "page": ("render_report", "report_on"),
    "plane": ("correlation_image", "plot_correlation"),
}
"""Modules, and the names that are imported from them on first use."""


def __getattr__(name: str) -> object:
    """Import a name on first use."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"sketchshift.view.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
