"""From a sketch alone to centroids."""

from __future__ import annotations

from sketchshift.decoders.decoder import Decoding, KCurve, Outcome, Round, Step
from sketchshift.decoders.paper.cl_ompr import ClOmpr
from sketchshift.decoders.paper.sketch_and_shift import SketchAndShift
from sketchshift.decoders.shares import shares
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
