"""Clusters decoded from a few kilobytes: one exact pass over any data.

A dataset is read once into a :class:`Sketch`, a small vector of exact integers. Sketches of
parts add up to the sketch of the whole, and subtract again, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sketchshift import privacy
from sketchshift.decoders import (
    ClOmpr,
    Decoding,
    KCurve,
    Outcome,
    Round,
    SketchAndShift,
    Step,
    decode,
    decode_range,
)
from sketchshift.errors import (
    DataError,
    IncompatibleSketchesError,
    InvalidRowsError,
    MissingDependencyError,
    PlanWarning,
    PrivacyError,
    PrivacyWarning,
    RemovalError,
    ScaleHint,
    SketchFormatError,
    SketchshiftError,
    SpecError,
)
from sketchshift.features import Origin, SketchSpec, Tilt
from sketchshift.metrics import assign, lloyd, match_centroids, mse, rse
from sketchshift.objective import Box
from sketchshift.sketch import Sketch, Sketcher, bandwidth, load, plan, sketch

if TYPE_CHECKING:
    from sketchshift.estimators import CompressiveGaussianMixture, CompressiveKMeans

__version__ = "0.1.0"

__all__ = [
    "Box",
    "ClOmpr",
    "CompressiveGaussianMixture",
    "CompressiveKMeans",
    "DataError",
    "Decoding",
    "IncompatibleSketchesError",
    "InvalidRowsError",
    "KCurve",
    "MissingDependencyError",
    "Origin",
    "Outcome",
    "PlanWarning",
    "PrivacyError",
    "PrivacyWarning",
    "RemovalError",
    "Round",
    "ScaleHint",
    "Sketch",
    "SketchAndShift",
    "SketchFormatError",
    "SketchSpec",
    "Sketcher",
    "SketchshiftError",
    "SpecError",
    "Step",
    "Tilt",
    "assign",
    "bandwidth",
    "decode",
    "decode_range",
    "lloyd",
    "load",
    "match_centroids",
    "mse",
    "plan",
    "privacy",
    "rse",
    "sketch",
]


def __getattr__(name: str) -> object:
    """The estimators, imported on first use: scikit-learn takes a second to load."""
    if name in ("CompressiveGaussianMixture", "CompressiveKMeans"):
        from sketchshift import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
