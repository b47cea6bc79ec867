"""What decoders climb and descend: functions of centroids, given a sketch."""

from __future__ import annotations

from sketchshift.objective.correlation import CorrelationFunction
from sketchshift.objective.domain import Box, draw_starts
from sketchshift.objective.moment_matching import MomentMatching

__all__ = ["Box", "CorrelationFunction", "MomentMatching", "draw_starts"]
