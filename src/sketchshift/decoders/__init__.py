"""From a sketch alone to centroids."""

from __future__ import annotations

from sketchshift.decoders.cl_ompr import ClOmpr
from sketchshift.decoders.decoding import Decoding, KCurve, Outcome, Round, Step
from sketchshift.decoders.shares import shares
from sketchshift.decoders.sketch_and_shift import SketchAndShift
from sketchshift.decoders.turnkey import decode, decode_range

__all__ = [
    "ClOmpr",
    "Decoding",
    "KCurve",
    "Outcome",
    "Round",
    "SketchAndShift",
    "Step",
    "decode",
    "decode_range",
    "shares",
]
