"""The exact sketch: totals that add, subtract and travel."""

from __future__ import annotations

from sketchshift.sketch.family import Family, FunctionFamily, register_family
from sketchshift.sketch.file import load
from sketchshift.sketch.plan import plan
from sketchshift.sketch.sketch import AnySketch, Sketch
from sketchshift.sketch.sketcher import Sketcher, sketch
from sketchshift.sketch.table import SketchTable

__all__ = [
    "AnySketch",
    "Family",
    "FunctionFamily",
    "Sketch",
    "SketchTable",
    "Sketcher",
    "load",
    "plan",
    "register_family",
    "sketch",
]
