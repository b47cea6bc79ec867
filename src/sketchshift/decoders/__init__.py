"""From a sketch alone to centroids."""

from __future__ import annotations

from sketchshift._threads import one_blas_thread
from sketchshift.decoders.certificate import Certificate, certify
from sketchshift.decoders.decoder import (
    DECODERS,
    Decoder,
    Decoding,
    Fit,
    KCurve,
    Outcome,
    Round,
    Step,
    Trust,
    register_decoder,
)
from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.objective import Box, Correlation, CorrelationFunction, draw_starts
from sketchshift.decoders.paper.bandwidth import bandwidth
from sketchshift.decoders.paper.cl_ompr import ClOmpr
from sketchshift.decoders.paper.climb import LOCAL_MAXIMA
from sketchshift.decoders.paper.sketch_and_shift import SketchAndShift, estimate_sigma
from sketchshift.decoders.points import fewest_points
from sketchshift.decoders.problem import Problem
from sketchshift.decoders.profile import ClusterProfile, Profile, Trait
from sketchshift.decoders.shares import shares
from sketchshift.decoders.turnkey import Turnkey, decode, decode_range

__all__ = [
    "DECODERS",
    "LOCAL_MAXIMA",
    "Box",
    "Certificate",
    "ClOmpr",
    "ClusterProfile",
    "Correlation",
    "CorrelationFunction",
    "Decoder",
    "Decoding",
    "Fit",
    "KCurve",
    "Mixture",
    "Outcome",
    "Problem",
    "Profile",
    "Round",
    "SketchAndShift",
    "Step",
    "Trait",
    "Trust",
    "Turnkey",
    "bandwidth",
    "certify",
    "decode",
    "decode_range",
    "draw_starts",
    "estimate_sigma",
    "fewest_points",
    "one_blas_thread",
    "register_decoder",
    "shares",
]

register_decoder("turnkey", Turnkey)
register_decoder("sketch-and-shift", SketchAndShift)
register_decoder("cl-ompr", ClOmpr)
