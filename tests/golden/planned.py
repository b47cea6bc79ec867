"""What plans are, and the clusters found with them."""

from __future__ import annotations

import hashlib

from commands import planned_commands
from decodings import STANDARDIZED, datasets, facts_of

import sketchshift as ss

OF_CELLS = ("n_cells", "starts", "probes", "unit", "within", "n_rows", "lower", "upper")


def short_plan(spec):
    """Return the numbers of a plan, with digests of the centers of its cells and of its axes."""
    plan = {name: _short(value) for name, value in _facts(spec).items()}
    if spec.cells is not None:
        plan |= {name: _short(getattr(spec.cells, name)) for name in OF_CELLS}
        plan["centers"] = _digest(spec.cells.centers)
        plan["middles"] = _digest(spec.cells.middles)
    if spec.axes is not None:
        plan["axes"] = _digest(spec.axes.directions)
    return plan


def _facts(spec):
    """Return the numbers of rows and waves by name."""
    return {
        "sketch_size": spec.sketch_size,
        "bandwidth": spec.waves.bandwidths,
        "far_share": spec.waves.beyond,
        "center": spec.rows.center,
        "scale": spec.rows.scale,
        "law": spec.waves.law,
        "metric": spec.rows.metric,
        "moments": "full" if spec.has_moments else "none",
    }


def _short(value):
    """Return long lists as a digest."""
    is_long = isinstance(value, tuple) and len(value) > 12
    return _digest(repr(value).encode()) if is_long else value


def _digest(numbers):
    return hashlib.blake2b(numbers, digest_size=8).hexdigest()


def planned():
    """Return plans and clusters with cells; of plans without cells the bandwidths."""
    found = {}
    for name, X in datasets().items():
        standardize = name in STANDARDIZED
        for k in (1, 3, 8):
            if k > len(X):
                continue
            sketch = ss.sketch(X, n_clusters=k, standardize=standardize)
            waves = ss.plan(X, k, standardize=standardize, cells=False)
            found[f"{name}; {k}"] = {
                "plan": short_plan(sketch.spec),
                "bandwidth without cells": waves.waves.bandwidths,
                **facts_of(ss.decode(sketch, k)),
            }
    X = datasets()["wine"]
    for title, options in {
        "cosine": {"metric": "cosine"},
        "robust": {"standardize": "robust"},
        "seed 1": {"seed": 1},
        "sketch size": {"sketch_size": 100},
    }.items():
        found[f"wine; 3; {title}"] = {"plan": short_plan(ss.plan(X, 3, **options))}
    return found | planned_commands()
