"""What is decoded from written specs, on real and made data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from totals import cells_of

import sketchshift as ss

SAMPLES = Path(__file__).parents[1] / "samples"
N_CELLS = 40
COUNTS = {"cells": (1, 3, 8), "cells and waves": (3, 8, "auto")}
FEW_COLUMNS = 16  # up to here, waves alone are decoded, too


def datasets():
    """Return rows, and whether each column is standardised, by name."""
    from sklearn import datasets

    found = {
        name: (getattr(datasets, f"load_{name}")().data, name != "digits")
        for name in ("iris", "wine", "breast_cancer", "diabetes", "digits")
    }
    for name in ("china", "flower"):
        pixels = datasets.load_sample_image(f"{name}.jpg").reshape(-1, 3)
        found[name] = pixels[::97].astype(float), False
    for name in ("skin", "spectral_mnist"):
        with np.load(SAMPLES / f"{name}.npz", allow_pickle=False) as arrays:
            found[name] = arrays["X"].astype(float), False
    rng = np.random.default_rng(0)
    centers = rng.uniform(-10, 10, size=(12, 4))
    found["mixture"] = centers[rng.integers(0, 12, 6000)] + rng.normal(size=(6000, 4)), False
    found["lognormal"] = rng.lognormal(sigma=1.5, size=(5000, 3)), False
    found["square"] = rng.uniform(size=(5000, 2)), False
    found["whole numbers"] = rng.poisson(2.0, size=(3000, 5)).astype(float), False
    found["five rows"] = rng.normal(size=(5, 2)), False
    found["equal rows"] = np.full((40, 3), 7.0), False
    places = rng.normal(size=(6, 80))
    found["80 columns"] = places[rng.integers(0, 6, 2000)] + rng.normal(size=(2000, 80)) / 2, False
    return found


def specs_for(X, *, standardize):
    """Return specs by a rule that does not change: nothing is planned."""
    n, d = X.shape
    center = np.round(X.mean(axis=0), 3)
    spread = np.maximum(X.std(axis=0), 1e-3) * np.sqrt(d)
    if not standardize:
        spread = np.full(d, np.sqrt(np.square(spread).mean()))
    scale = [float(f"{number:.3g}") for number in spread]
    shared = {
        "n_features": d,
        "center": tuple(center.tolist()),
        "scale": tuple(scale) if standardize else scale[0],
    }
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
    found = {
        "cells": ss.SketchSpec(sketch_size=0, bandwidth=0.2, cells=cells, **shared),
        "cells and waves": ss.SketchSpec(
            sketch_size=min(30 * d, 300),
            bandwidth=(0.15, 0.7),
            far_share=0.15,
            cells=cells,
            **shared,
        ),
    }
    if d <= FEW_COLUMNS:
        waves = shared | {"sketch_size": min(60 * d, 600)}
        found["waves"] = ss.SketchSpec(bandwidth=(0.1, 0.5), far_share=0.15, **waves)
        found["waves of one bandwidth"] = ss.SketchSpec(bandwidth=0.2, **waves)
    return found


def decodings():
    """Return clusters of all data sets, for several k and kinds of specs."""
    found = {}
    for name, (X, standardize) in datasets().items():
        for kind, spec in specs_for(X, standardize=standardize).items():
            sketch = ss.sketch(X, spec)
            for k in COUNTS.get(kind, (3, 8)):
                if k != 8 or len(X) >= 8:
                    found[f"{name}; {kind}; {k}"] = facts_of(ss.decode(sketch, k))
    return found | {f"moved rows; {name}": facts for name, facts in _of_moved_rows().items()}


def _of_moved_rows():
    """Return clusters of rows that lie elsewhere than the rows of the plan."""
    X, _ = datasets()["mixture"]
    found = {}
    for kind, spec in specs_for(X[:3000], standardize=False).items():
        sketch = ss.sketch(X[3000:] * [1.0, -1.0, 1.0, 1.0] + 2.0, spec)
        found[f"{kind}; 8"] = facts_of(ss.decode(sketch, 8))
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
        X, standardize = datasets()[name]
        spec = specs_for(X, standardize=standardize)["waves of one bandwidth"]
        sketch = ss.sketch(X, spec)
        for title, decoder in PUBLISHED.items():
            for k, seed in ((3, 0), (6, 1)):
                decoding = ss.decode(sketch, k, seed=seed, decoder=decoder)
                facts = facts_of(decoding)
                found[f"{name}; {title}; {k}"] = {
                    part: facts[part] for part in ("outcome", "weights", "centroids")
                }
    return found
