"""Which features are summed: specs and the frequencies drawn from them."""

from __future__ import annotations

from sketchshift.features.cells import Axes, Cells
from sketchshift.features.frequencies import Frequencies, draw_frequencies, register_law
from sketchshift.features.landmarks import Landmarks
from sketchshift.features.spec import Charge, Origin, SketchSpec, Spectrum

__all__ = [
    "Axes",
    "Cells",
    "Charge",
    "Frequencies",
    "Landmarks",
    "Origin",
    "SketchSpec",
    "Spectrum",
    "draw_frequencies",
    "register_law",
]
