"""Which features are summed: specs and the frequencies drawn from them."""

from __future__ import annotations

from sketchshift.features.cells import Axes, Cells
from sketchshift.features.frequencies import Frequencies, draw_frequencies, register_law
from sketchshift.features.rows import Ball, Charge, Rows
from sketchshift.features.spec import SketchSpec, Spectrum
from sketchshift.features.waves import Range, Waves

__all__ = [
    "Axes",
    "Ball",
    "Cells",
    "Charge",
    "Frequencies",
    "Range",
    "Rows",
    "SketchSpec",
    "Spectrum",
    "Waves",
    "draw_frequencies",
    "register_law",
]
