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
from sketchshift.data.open import register_format
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
    Watch,
    WatchedSlice,
    compare,
    watch,
)
from sketchshift.engines import register_engine
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
    find_renamed,
)
from sketchshift.features import Origin, SketchSpec, Tilt, register_law
from sketchshift.metrics import assign, lloyd, match_centroids, mse, rse
from sketchshift.sketch import Sketch, Sketcher, SketchTable, bandwidth, load, plan, sketch

if TYPE_CHECKING:
    from sketchshift.engines import Engine
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
    "WatchedSlice",
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
    "register_engine",
    "register_format",
    "register_law",
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

_RENAMED = {"Moment": "WatchedSlice"}
"""Old names, until the next version, and what they are now."""


def _import_engine(module: str, name: str) -> Engine:
    engine: Engine = getattr(import_module(f"sketchshift.engines.{module}"), name)()
    return engine


for _library, _module, _name in (  # imported when a collection of theirs turns up
    ("dask", "dask", "DaskEngine"),
    ("distributed", "dask", "DaskEngine"),
    ("pyspark", "spark", "SparkEngine"),
    ("ray", "ray", "RayEngine"),
):
    register_engine(_library, partial(_import_engine, _module, _name))


def __getattr__(name: str) -> object:
    """A name that is imported on first use, or an old one."""
    if name in _ON_FIRST_USE:
        return getattr(import_module(_ON_FIRST_USE[name]), name)
    return globals()[find_renamed(__name__, name, _RENAMED)]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
