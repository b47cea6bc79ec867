"""Which features are summed: specs and the frequencies drawn from them."""

from __future__ import annotations

from sketchshift.features.frequencies import Frequencies, draw_frequencies
from sketchshift.features.origin import Charge, Origin
from sketchshift.features.spec import SketchSpec
from sketchshift.features.tilt import Tilt

__all__ = ["Charge", "Frequencies", "Origin", "SketchSpec", "Tilt", "draw_frequencies"]
