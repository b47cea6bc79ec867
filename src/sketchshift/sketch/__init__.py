"""The exact sketch: totals that add, subtract and travel."""

from __future__ import annotations

from sketchshift.sketch.sketch import Sketch, load
from sketchshift.sketch.sketcher import Sketcher, sketch

__all__ = ["Sketch", "Sketcher", "load", "sketch"]
