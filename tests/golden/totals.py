"""Totals of written specs, as integers: the same on every machine, kernel and engine."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import sketchshift as ss
from sketchshift.features import Axes, Ball, Cells, Range, Rows, Waves
from sketchshift.features.rows import unit_for
from sketchshift.recipe import Category, Frequency, Number, Recipe
from sketchshift_papers import landmarks
from sketchshift_papers import leverage as leverage  # registers the law

EVERY_DISTANCE = (0.01, 0.3, 1.0, 2.0, 1e9)
"""Factors of rows: in cells, around them, beyond the reach of cells, beyond that of waves."""

OF_MOMENTS = ("sums", "rests", "partial_rests", "products")
MOST_NUMBERS = 400
"""Longer lists of integers are stored as their first ones and a digest."""


def data(d, n=20):
    """Make rows and weights without a random generator."""
    i = np.arange(n * d, dtype=np.float64).reshape(n, d)
    return np.mod(i * i * 0.37, 3.0) - 1.5, 0.25 + np.mod(np.arange(n) * 0.75, 2.0)


def integers_of(sketch):
    """Return all integers of a sketch as nested lists by name; keys come before far rows."""
    totals = sketch._totals
    d = sketch.spec.n_features if sketch.spec.has_moments else 0
    weights, *moments = np.split(totals.integers("moments"), 2 + d * np.arange(4))
    found = {
        "count": totals.count,
        "n_invalid": totals.n_invalid,
        "weights": weights.tolist(),
    }
    for name, numbers in zip(OF_MOMENTS, moments, strict=True):
        found[name] = numbers.tolist()
    for name in totals.layout.by_name:
        integers = totals.integers(name)
        if name == "outliers":
            found["far"] = [[*key, *row] for key, row in integers.items()]
        elif name != "moments":
            found[name] = integers.tolist()
    return {name: _shortened(np.array(numbers, object)) for name, numbers in found.items()}


def _shortened(numbers):
    if numbers.size <= MOST_NUMBERS:
        return numbers.tolist()
    text = json.dumps(numbers.tolist(), default=int)
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return {"first": numbers.ravel()[:12].tolist(), "numbers": numbers.size, "digest": digest}


# Specs are numbers in specs.json; here they meet the constructors.


def specs():
    """Return the written specs by name."""
    found = json.loads(Path(__file__).with_name("specs.json").read_text())
    return {name: spec_of(**numbers) for name, numbers in found.items()}


def spec_of(
    n_features, sketch_size, bandwidth, seed=0, far_share=0.0, metric="euclidean", **numbers
):
    """Put a spec together from its numbers by name."""
    ends = bandwidth if isinstance(bandwidth, list) else [bandwidth]
    onto = "sphere" if metric == "cosine" else None
    if "origin" in numbers:
        onto = Ball.from_dict(numbers["origin"])
    names = ("columns", "center", "scale")
    own = {name: numbers.get(name) for name in names}
    rows = Rows(n_features, **own, unit=unit_for(ends[0], n_features), onto=onto)
    bandwidth = Range(*ends, far_share) if len(ends) > 1 else ends[0]
    names = {"law", "structured", "precision"} & numbers.keys()
    own = {name: numbers[name] for name in names}
    waves = Waves(sketch_size, bandwidth, seed, **own) if sketch_size else None
    spread = None if numbers.get("moments") == "none" else "columns"
    spread = Axes.of(numbers["axes"]) if "axes" in numbers else spread
    cells = cells_of(**numbers["cells"]) if "cells" in numbers else None
    families = {}
    if "landmarks" in numbers:
        families["landmarks"] = landmarks.parameters(numbers["landmarks"], bandwidth)
    return ss.SketchSpec.of(rows, waves, cells=cells, spread=spread, families=families)


def cells_of(centers, middles=(), are_half=False, **numbers):
    """Return cells around the rows of an array."""
    table, places = (np.array(each, "<f2" if are_half else "<f4") for each in (centers, middles))
    numbers |= {"middles": places.tobytes(), "are_half": are_half}
    return Cells(table.tobytes(), table.shape[1], **numbers)


def scattered(X):
    """Return 20 rows at every distance."""
    return X * np.resize(EVERY_DISTANCE, (20, 1))


def totals(kernel="auto"):
    """Return the integers of all cases."""
    sketch, written = partial(ss.sketch, kernel=kernel), specs()
    found = {}
    for name, spec in written.items():
        X, weights = data(spec.n_features)
        found[name] = sketch(X, spec)
        if spec.rows.ball is None:
            kind, rows = ("scattered", scattered(X)) if spec.cells else ("weighted", X)
            found[f"{name}; {kind}"] = sketch(rows, spec, sample_weight=weights)
    found |= _other_rows(sketch, written) | _sums(sketch, written)
    for name, table in _sliced(partial(ss.sketch_by, kernel=kernel), written).items():
        found |= {f"{name}; slice {key}": of_slice for key, of_slice in table}
    return {name: integers_of(each) for name, each in found.items()}


def _other_rows(sketch, written):
    """Sketch special rows and weights."""
    X, weights = data(2)
    holes = np.where(np.arange(20)[:, None] % 6 == [3, 5], np.nan, X)
    directions = np.vstack([data(3)[0], np.zeros((1, 3))])
    paper, groups = written["paper"], written["cells in groups, within"]
    table = {
        "price": [1.0, None, 2.25, -0.5] * 5,
        "cut": ["good", "fair", None, "poor", "good"] * 4,
        "city": ["Rome", "Oslo", "Rome", "Bern"] * 5,
    }
    cut, city = Category("cut", ("fair", "good")), Frequency("city", ("Oslo", "Rome"), (0.75, 0.25))
    recipe = Recipe([Number("price", fill=1.5), cut, city])
    of_table = ss.SketchSpec(4, 8, 0.5, columns=recipe)
    large = np.arange(20.0) ** 7
    return {
        "rows in float32": sketch(X.astype(np.float32), paper),
        "300,000 rows": sketch(data(2, 300_000)[0], written["range of bandwidths"]),
        "300,000 rows in cells": sketch(data(3, 300_000)[0], groups),
        "whole weights up to 2**30": sketch(X, paper, sample_weight=large),
        "large weights in cells": sketch(data(3)[0], groups, sample_weight=large + 0.375),
        "weights near 0": sketch(X, paper, sample_weight=weights * 1e-3),
        "rows beside holes": sketch(holes, paper, on_invalid="skip"),
        "directions of no length": sketch(directions, written["cosine"], on_invalid="skip"),
        "rows with holes, private": sketch(holes, written["private"]),
        "equal rows": sketch(np.full((1000, 2), 0.1), paper),
        "no rows": ss.Sketcher(paper).sketch(),
        "far from the center": sketch(
            X + 1e5, paper.replaced(waves=replace(paper.waves, precision="float64"))
        ),
        "columns of a table": sketch(pa.table(table), of_table),
    }


def _sums(sketch, written):
    """Add, subtract and cut sketches."""
    found = {}
    for name in ("float64", "cells in groups, within", "axes, Euclidean, within"):
        spec = written[name]
        X, weights = data(3)
        X = scattered(X) if spec.cells else X
        both = sketch(X[:7], spec, sample_weight=weights[:7]) + sketch(X[7:], spec)
        found[f"{name}; sum of weighted and other rows"] = both
        found[f"{name}; rows taken out"] = both - sketch(X[9:14], spec)
        found[f"{name}; prefix"] = both.prefix(2)
    return found


def _sliced(sketch_by, written):
    """Sketch the rows of each label."""
    X, weights = data(3)
    labels, groups = np.arange(20) % 3, written["cells in groups, within"]
    private = written["private with cells"]
    return {
        "sliced": sketch_by(X, labels, written["float64"]),
        "sliced, weighted": sketch_by(X, labels, written["float64"], sample_weight=weights),
        "sliced cells": sketch_by(scattered(X), labels, groups, sample_weight=weights),
        "sliced axes": sketch_by(scattered(X), labels, written["axes, Euclidean, within"]),
        "sliced, private": sketch_by(data(2)[0], labels, private),
    }
