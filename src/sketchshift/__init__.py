"""Clusters decoded from a few kilobytes: one exact pass over any data.

A dataset is read once into a :class:`Sketch`, a small vector of exact integers. Sketches of
parts add up to the sketch of the whole, and subtract again, bit for bit.
"""

from __future__ import annotations

import sketchshift._interrupt  # noqa: F401  first: the others take most of a second

# isort: split
from functools import partial
from importlib import import_module
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
    register_decoder,
    shares,
)
from sketchshift.decoders.objective import Box
from sketchshift.drift import (
    ClusterChange,
    Comparison,
    Distance,
    Moment,
    Watch,
    compare,
    watch,
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
from sketchshift.sketch import Sketch, Sketcher, SketchTable, bandwidth, load, plan, sketch
from sketchshift.sketch.reading import register_engine

if TYPE_CHECKING:
    from sketchshift.estimators import CompressiveGaussianMixture, CompressiveKMeans
    from sketchshift.sketch.slices import sketch_by

__version__ = "0.1.0"

__all__ = [
    "Box",
    "ClOmpr",
    "ClusterChange",
    "Comparison",
    "CompressiveGaussianMixture",
    "CompressiveKMeans",
    "DataError",
    "Decoding",
    "Distance",
    "IncompatibleSketchesError",
    "InvalidRowsError",
    "KCurve",
    "MissingDependencyError",
    "Moment",
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
    "SketchTable",
    "Sketcher",
    "SketchshiftError",
    "SpecError",
    "Step",
    "Tilt",
    "Watch",
    "assign",
    "bandwidth",
    "compare",
    "decode",
    "decode_range",
    "lloyd",
    "load",
    "match_centroids",
    "mse",
    "plan",
    "privacy",
    "register_decoder",
    "rse",
    "shares",
    "sketch",
    "sketch_by",
    "watch",
]

_ON_FIRST_USE = {
    "CompressiveGaussianMixture": "sketchshift.estimators",
    "CompressiveKMeans": "sketchshift.estimators",
    "sketch_by": "sketchshift.sketch.slices",
}
"""Where names are that import scikit-learn or pyarrow, which take a second to load."""


for _engine in ("dask", "ray", "spark"):  # imported when a collection of theirs turns up
    register_engine(_engine, partial(import_module, f"sketchshift.engines.{_engine}"))


def __getattr__(name: str) -> object:
    """A name that is imported on first use."""
    if name in _ON_FIRST_USE:
        return getattr(import_module(_ON_FIRST_USE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
