"""Clusters decoded from a few kilobytes: one exact pass over any data.

A dataset is read once into a :class:`Sketch`, a small vector of exact integers. Sketches of
parts add up to the sketch of the whole, and subtract again, bit for bit.
"""

from __future__ import annotations

import sketchshift._interrupt  # noqa: F401  first: the others take a while

# isort: split
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from sketchshift._stores import storage
from sketchshift.data.changes import register_changes
from sketchshift.data.open import register_format
from sketchshift.engines import register_engine
from sketchshift.errors import (
    ConflictError,
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
from sketchshift.features import Cells, Landmarks, Origin, SketchSpec, Spectrum, Tilt, register_law
from sketchshift.recipe import Recipe
from sketchshift.sketch import (
    Sketch,
    Sketcher,
    SketchTable,
    bandwidth,
    load,
    plan,
    plan_drift,
    sketch,
)

if TYPE_CHECKING:
    from sketchshift import privacy
    from sketchshift.data.dialect import text_dialect
    from sketchshift.decoders import (
        Box,
        Certificate,
        ClOmpr,
        ClusterProfile,
        Decoding,
        KCurve,
        Outcome,
        Profile,
        Round,
        SketchAndShift,
        SlidingFrankWolfe,
        StableMixture,
        Step,
        Trait,
        Trust,
        certify,
        decode,
        decode_range,
        decode_stable,
        register_decoder,
        shares,
    )
    from sketchshift.drift import (
        ClusterChange,
        Comparison,
        Distance,
        SinceWhen,
        Watch,
        WatchedSlice,
        Window,
        compare,
        score_rows,
        since_when,
        watch,
    )
    from sketchshift.engines import Engine
    from sketchshift.estimators import CompressiveGaussianMixture, CompressiveKMeans
    from sketchshift.following import follow
    from sketchshift.index import CoarseLists, train_lists
    from sketchshift.metrics import Assignment, assign, lloyd, match_centroids, mse, rse
    from sketchshift.sketch.columns import SurveyedColumn
    from sketchshift.sketch.cube import Cube
    from sketchshift.sketch.slices import sketch_by
    from sketchshift.sketch.survey import Survey, survey

__version__ = "0.1.0"

__all__ = [
    "Assignment",
    "Box",
    "Cells",
    "Certificate",
    "ClOmpr",
    "ClusterChange",
    "ClusterProfile",
    "CoarseLists",
    "Comparison",
    "CompressiveGaussianMixture",
    "CompressiveKMeans",
    "ConflictError",
    "Cube",
    "DataError",
    "Decoding",
    "Distance",
    "IncompatibleSketchesError",
    "InvalidRowsError",
    "KCurve",
    "Landmarks",
    "MissingDependencyError",
    "Origin",
    "Outcome",
    "PlanWarning",
    "PrivacyError",
    "PrivacyWarning",
    "Profile",
    "Recipe",
    "RemovalError",
    "Round",
    "ScaleHint",
    "SinceWhen",
    "Sketch",
    "SketchAndShift",
    "SketchFormatError",
    "SketchSpec",
    "SketchTable",
    "Sketcher",
    "SketchshiftError",
    "SlidingFrankWolfe",
    "SpecError",
    "Spectrum",
    "StableMixture",
    "Step",
    "Survey",
    "SurveyedColumn",
    "Tilt",
    "Trait",
    "Trust",
    "Watch",
    "WatchedSlice",
    "Window",
    "assign",
    "bandwidth",
    "certify",
    "compare",
    "decode",
    "decode_range",
    "decode_stable",
    "follow",
    "lloyd",
    "load",
    "match_centroids",
    "mse",
    "plan",
    "plan_drift",
    "privacy",
    "register_changes",
    "register_decoder",
    "register_engine",
    "register_format",
    "register_law",
    "rse",
    "score_rows",
    "shares",
    "since_when",
    "sketch",
    "sketch_by",
    "storage",
    "survey",
    "text_dialect",
    "train_lists",
    "watch",
]

_ON_FIRST_USE = {
    "decoders": (
        "Box",
        "Certificate",
        "ClOmpr",
        "ClusterProfile",
        "Decoding",
        "KCurve",
        "Outcome",
        "Profile",
        "Round",
        "SketchAndShift",
        "SlidingFrankWolfe",
        "StableMixture",
        "Step",
        "Trait",
        "Trust",
        "certify",
        "decode",
        "decode_range",
        "decode_stable",
        "register_decoder",
        "shares",
    ),
    "data.dialect": ("text_dialect",),
    "drift": (
        "ClusterChange",
        "Comparison",
        "Distance",
        "SinceWhen",
        "Watch",
        "WatchedSlice",
        "Window",
        "compare",
        "score_rows",
        "since_when",
        "watch",
    ),
    "estimators": ("CompressiveGaussianMixture", "CompressiveKMeans"),
    "following": ("follow",),
    "index": ("CoarseLists", "train_lists"),
    "metrics": ("Assignment", "assign", "lloyd", "match_centroids", "mse", "rse"),
    "privacy": (),
    "sketch.cube": ("Cube",),
    "sketch.slices": ("sketch_by",),
    "sketch.columns": ("SurveyedColumn",),
    "sketch.survey": ("Survey", "survey"),
}
"""Modules that a pass over data does without, and the names here that they bring."""

_HOMES = {name: module for module, names in _ON_FIRST_USE.items() for name in names}

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
    """A name or a module that is imported on first use, or an old name."""
    if name in _ON_FIRST_USE:
        return import_module(f"sketchshift.{name}")
    if name not in _HOMES:
        name = find_renamed(__name__, name, _RENAMED)
    found: object = getattr(import_module(f"sketchshift.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ON_FIRST_USE})
