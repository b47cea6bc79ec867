"""What is decoded from written specs, on real and made data."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from totals import cells_of

import sketchshift as ss
from sketchshift.features import Range
from sketchshift.features.rows import unit_for

SAMPLES = Path(__file__).parents[1] / "samples"
N_CELLS = 40
COUNTS = {"cells": (1, 3, 8), "cells and waves": (3, 8, "auto")}
STANDARDIZED = ("iris", "wine", "breast_cancer", "diabetes")
FEW_COLUMNS = 16  # up to here, waves alone are decoded, too


def datasets():
    """Return rows by name."""
    from sklearn import datasets

    names = (*STANDARDIZED, "digits")
    found = {name: getattr(datasets, f"load_{name}")().data for name in names}
    for name in ("china", "flower"):
        found[name] = datasets.load_sample_image(f"{name}.jpg").reshape(-1, 3)[::97].astype(float)
    for name in ("skin", "spectral_mnist"):
        with np.load(SAMPLES / f"{name}.npz", allow_pickle=False) as arrays:
            found[name] = arrays["X"].astype(float)
    rng = np.random.default_rng(0)
    centers = rng.uniform(-10, 10, size=(12, 4))
    found["mixture"] = centers[rng.integers(0, 12, 6000)] + rng.normal(size=(6000, 4))
    found["lognormal"] = rng.lognormal(sigma=1.5, size=(5000, 3))
    found["square"] = rng.uniform(size=(5000, 2))
    found["whole numbers"] = rng.poisson(2.0, size=(3000, 5)).astype(float)
    found["five rows"] = rng.normal(size=(5, 2))
    found["equal rows"] = np.full((40, 3), 7.0)
    places = rng.normal(size=(6, 80))
    found["80 columns"] = places[rng.integers(0, 6, 2000)] + rng.normal(size=(2000, 80)) / 2
    return found


def specs_for(X, *, standardize=False):
    """Return specs by a rule that does not change: nothing is planned."""
    n, d = X.shape
    center = np.round(X.mean(axis=0), 3)
    spread = np.maximum(X.std(axis=0), 1e-3) * np.sqrt(d)
    if not standardize:
        spread = np.full(d, np.sqrt(np.square(spread).mean()))
    scale = [float(f"{number:.3g}") for number in spread]
    rows = (X - center) / scale
    chosen = rows[np.linspace(0, n - 1, N_CELLS).astype(int)]
    places = np.unique(np.round(chosen * 64.0) / 64.0, axis=0)
    within = np.square(rows[:, None] - places).sum(axis=2).min(axis=1).mean()
    cells = cells_of(
        places,
        within=float(f"{within:.3g}"),
        n_rows=n,
        lower=tuple(X.min(axis=0).tolist()),
        upper=tuple(X.max(axis=0).tolist()),
    )
    spec = partial(
        ss.SketchSpec,
        d,
        center=tuple(center.tolist()),
        scale=tuple(scale) if standardize else scale[0],
    )
    plain = spec(1, 0.2)
    found = {
        "cells": ss.SketchSpec.of(replace(plain.rows, unit=unit_for(0.2, d)), cells=cells),
        "cells and waves": spec(min(30 * d, 300), Range(0.15, 0.7, 0.15)).replaced(cells=cells),
    }
    if d <= FEW_COLUMNS:
        found["waves"] = spec(min(60 * d, 600), Range(0.1, 0.5, 0.15))
        found["waves of one bandwidth"] = spec(min(60 * d, 600), 0.2)
    return found


def decodings():
    """Return clusters of all data sets, for several k and kinds of specs, and of moved rows."""
    found = {}
    for name, X in datasets().items():
        for kind, spec in specs_for(X, standardize=name in STANDARDIZED).items():
            sketch = ss.sketch(X, spec)
            for k in COUNTS.get(kind, (3, 8)):
                if k != 8 or len(X) >= 8:
                    found[f"{name}; {kind}; {k}"] = facts_of(ss.decode(sketch, k))
    planned, others = np.split(datasets()["mixture"], 2)
    for kind, spec in specs_for(planned).items():
        sketch = ss.sketch(others * [1.0, -1.0, 1.0, 1.0] + 2.0, spec)
        found[f"moved rows; {kind}; 8"] = facts_of(ss.decode(sketch, 8))
    return found


def facts_of(decoding):
    """Return what a decoding holds, without its sentences."""
    trust = decoding.trust
    return {
        "outcome": decoding.outcome.name,
        "cost": decoding.cost,
        "cost_bound": decoding.cost_bound,
        "trust": None if trust is None else [trust.score, trust.is_good],
        "weights": decoding.weights.tolist(),
        "centroids": decoding.centroids.tolist(),
    }


PUBLISHED = {
    "SketchAndShift": ss.SketchAndShift(n_initializations=100),
    "SketchAndShift, to the letter": ss.SketchAndShift(
        n_initializations=30,
        starts="uniform",
        reuse_starts=False,
        local_maximum="plain_mean_shift",
        threshold="weight",
        repairs=False,
    ),
    "SketchAndShift, Gaussian": ss.SketchAndShift(n_initializations=100, fitted_model="gaussian"),
    "SketchAndShift, refined": ss.SketchAndShift(n_initializations=100, refine=True),
    "SketchAndShift, discretised": ss.SketchAndShift(
        n_initializations=100, local_maximum="discretized"
    ),
    "SketchAndShift, gradient ascent": ss.SketchAndShift(
        n_initializations=30, local_maximum="gradient_ascent"
    ),
    "ClOmpr": ss.ClOmpr(),
    "ClOmpr, not tuned": ss.ClOmpr(
        n_initializations=5, n_restarts=2, starts="normal", fine_tuning=False
    ),
}


def paper():
    """Return what the decoders of the paper find, at equal seeds."""
    found = {}
    for name in ("iris", "china", "mixture", "square"):
        X = datasets()[name]
        specs = specs_for(X, standardize=name in STANDARDIZED)
        sketch = ss.sketch(X, specs["waves of one bandwidth"])
        for title, decoder in PUBLISHED.items():
            for k, seed in ((3, 0), (6, 1)):
                facts = facts_of(ss.decode(sketch, k, seed=seed, decoder=decoder))
                parts = {part: facts[part] for part in ("outcome", "weights", "centroids")}
                found[f"{name}; {title}; {k}"] = parts
    return found
