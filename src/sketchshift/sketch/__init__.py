"""The exact sketch: totals that add, subtract and travel."""

from __future__ import annotations

from sketchshift.sketch.bandwidth import bandwidth
from sketchshift.sketch.base import AnySketch
from sketchshift.sketch.one_pass import sketch
from sketchshift.sketch.plan import plan
from sketchshift.sketch.sketch import Sketch, load
from sketchshift.sketch.sketcher import Sketcher
from sketchshift.sketch.table import SketchTable

__all__ = ["AnySketch", "Sketch", "SketchTable", "Sketcher", "bandwidth", "load", "plan", "sketch"]
