"""From a sketch alone to centroids."""

from __future__ import annotations

from sketchshift.decoders.decoder import Decoding, KCurve, Outcome, Round, Step
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.objective import Box, CorrelationFunction
from sketchshift.decoders.paper.cl_ompr import ClOmpr
from sketchshift.decoders.paper.climb import LOCAL_MAXIMA
from sketchshift.decoders.paper.sketch_and_shift import SketchAndShift
from sketchshift.decoders.problem import Problem, one_blas_thread
from sketchshift.decoders.shares import shares
from sketchshift.decoders.turnkey import decode, decode_range

__all__ = [
    "LOCAL_MAXIMA",
    "Box",
    "ClOmpr",
    "CorrelationFunction",
    "Decoding",
    "KCurve",
    "Mixture",
    "Outcome",
    "Problem",
    "Round",
    "SketchAndShift",
    "Step",
    "decode",
    "decode_range",
    "one_blas_thread",
    "shares",
]
