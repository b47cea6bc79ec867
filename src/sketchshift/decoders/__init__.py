"""From a sketch alone to centroids."""

from __future__ import annotations

from sketchshift.decoders.decoder import (
    Decoder,
    Decoding,
    Fit,
    KCurve,
    Outcome,
    Round,
    Step,
    register_decoder,
)
from sketchshift.decoders.paper.cl_ompr import ClOmpr
from sketchshift.decoders.paper.sketch_and_shift import SketchAndShift
from sketchshift.decoders.shares import shares
from sketchshift.decoders.turnkey import Turnkey, decode, decode_range

__all__ = [
    "ClOmpr",
    "Decoder",
    "Decoding",
    "Fit",
    "KCurve",
    "Outcome",
    "Round",
    "SketchAndShift",
    "Step",
    "Turnkey",
    "decode",
    "decode_range",
    "register_decoder",
    "shares",
]

register_decoder("turnkey", Turnkey)
register_decoder("sketch-and-shift", SketchAndShift)
register_decoder("cl-ompr", ClOmpr)
