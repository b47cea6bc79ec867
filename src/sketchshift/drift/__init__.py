"""Drift: whether, when and where the data behind sketches changed."""

from __future__ import annotations

from sketchshift.drift.compare import ClusterChange, Comparison, Distance, compare
from sketchshift.drift.watch import Watch, WatchedSlice, watch

__all__ = [
    "ClusterChange",
    "Comparison",
    "Distance",
    "Watch",
    "WatchedSlice",
    "compare",
    "watch",
]
