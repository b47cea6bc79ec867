"""Clusters decoded from a few kilobytes: one exact pass over any data.

A dataset is read once into a :class:`Sketch`, a small vector of exact integers. Sketches of
parts add up to the sketch of the whole, and subtract again, bit for bit.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from sketchshift.engines import register_engine
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch, Sketcher, SketchTable, load, plan, sketch

if TYPE_CHECKING:
    from sketchshift import (
        data as data,
    )
    from sketchshift import (
        decoders as decoders,
    )
    from sketchshift import (
        drift as drift,
    )
    from sketchshift import (
        errors as errors,
    )
    from sketchshift import (
        features as features,
    )
    from sketchshift import (
        index as index,
    )
    from sketchshift import (
        live as live,
    )
    from sketchshift import (
        metrics as metrics,
    )
    from sketchshift import (
        privacy as privacy,
    )
    from sketchshift import (
        profiling as profiling,
    )
    from sketchshift import (
        view as view,
    )
    from sketchshift.decoders import ClOmpr, Decoding, SketchAndShift, certify, decode
    from sketchshift.drift import compare
    from sketchshift.engines import Engine
    from sketchshift.estimators import CompressiveGaussianMixture, CompressiveKMeans
    from sketchshift.sketch.slices import sketch_by

__version__ = "0.1.0"

__all__ = [
    "ClOmpr",
    "CompressiveGaussianMixture",
    "CompressiveKMeans",
    "Decoding",
    "Sketch",
    "SketchAndShift",
    "SketchSpec",
    "SketchTable",
    "Sketcher",
    "certify",
    "compare",
    "decode",
    "load",
    "plan",
    "sketch",
    "sketch_by",
]

_ROOMS = (
    "data",
    "decoders",
    "drift",
    "engines",
    "errors",
    "features",
    "index",
    "live",
    "metrics",
    "privacy",
    "profiling",
    "view",
)
"""Packages and modules whose names belong to users too; imported on first use."""

_HOMES = {
    "ClOmpr": "decoders",
    "CompressiveGaussianMixture": "estimators",
    "CompressiveKMeans": "estimators",
    "Decoding": "decoders",
    "SketchAndShift": "decoders",
    "certify": "decoders",
    "compare": "drift",
    "decode": "decoders",
    "sketch_by": "sketch.slices",
}
"""Names that a pass over data does without, and the modules that they are imported from."""


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
    """Import a room or a name on first use."""
    if name in _ROOMS:
        return import_module(f"sketchshift.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"sketchshift.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
