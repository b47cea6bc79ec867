"""Drift: whether, when and where the data behind sketches changed."""

from __future__ import annotations

from sketchshift.drift.compare import ClusterChange, Comparison, Distance, compare, score_rows
from sketchshift.drift.since_when import SinceWhen, Window, since_when
from sketchshift.drift.watch import Watch, WatchedSlice, watch
from sketchshift.errors import find_renamed

__all__ = [
    "ClusterChange",
    "Comparison",
    "Distance",
    "SinceWhen",
    "Watch",
    "WatchedSlice",
    "Window",
    "compare",
    "score_rows",
    "since_when",
    "watch",
]

_RENAMED = {"Moment": "WatchedSlice"}
"""Old names, until the next version, and what they are now."""


def __getattr__(name: str) -> object:
    """An old name, with a warning."""
    return globals()[find_renamed(__name__, name, _RENAMED)]
