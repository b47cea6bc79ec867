"""Drift: whether, when and where the data behind sketches changed."""

from __future__ import annotations

from sketchshift.drift.compare import ClusterChange, Comparison, Distance, compare, score_rows
from sketchshift.drift.since_when import SinceWhen, Window, since_when
from sketchshift.drift.watch import Watch, WatchedSlice, watch
from sketchshift.sketch.plan import plan_drift

__all__ = [
    "ClusterChange",
    "Comparison",
    "Distance",
    "SinceWhen",
    "Watch",
    "WatchedSlice",
    "Window",
    "compare",
    "plan_drift",
    "score_rows",
    "since_when",
    "watch",
]
