"""From a sketch alone to centroids."""

from __future__ import annotations

from sketchshift.decoders.cl_ompr import ClOmpr
from sketchshift.decoders.decoding import Decoding, Outcome, Step
from sketchshift.decoders.sketch_and_shift import SketchAndShift

__all__ = ["ClOmpr", "Decoding", "Outcome", "SketchAndShift", "Step"]
