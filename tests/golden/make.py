"""Write the golden files of the current format version; run once per version, by hand.

``python tests/golden/make.py`` replaces no file: golden files are for ever.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import sketchshift as ss
from sketchshift.features import Axes, Cells, Charge, Origin
from sketchshift.privacy import Ledger
from sketchshift.privacy.sketch import NoisyMeasure

HERE = Path(__file__).parent
SPECS = {
    "v1_plain": ss.SketchSpec(n_features=2, sketch_size=8, bandwidth=0.3, seed=7),
    "v1_tilted": ss.SketchSpec(
        n_features=2,
        sketch_size=8,
        bandwidth=(0.1, 2.0),
        seed=2**64 - 1,
        far_share=0.25,
        columns=("height", "weight"),
        center=(0.5, -0.25),
        scale=(1.5, 3.0),
        tilt=ss.features.Tilt(radius=1.0, cap=6.0),
    ),
    "v1_structured": ss.SketchSpec(
        n_features=65,
        sketch_size=16,
        bandwidth=4.0,
        law="adapted_radius",
        structured=True,
    ),
    "v1_double": ss.SketchSpec(
        n_features=3, sketch_size=8, bandwidth=0.5, law="folded_gaussian", precision="float64"
    ),
    "v2_cells": ss.SketchSpec(
        n_features=3,
        sketch_size=8,
        bandwidth=0.5,
        columns=("a", "b", "c"),
        cells=replace(
            Cells.of([[-0.5, 0.0, 0.25], [0.25, 0.5, 0.0], [0.5, -0.5, 0.25]], (0, 1), 2, 2.0**-10),
            within=2.0**-8,
            n_rows=60,
            lower=(-1.5, -1.25, -1.0),
            upper=(1.5, 1.25, 1.0),
        ),
    ),
    "v2_alone": ss.SketchSpec(
        n_features=2, sketch_size=0, bandwidth=1.0, cells=Cells.of([[-0.5, 0.0], [0.25, 0.5]])
    ),
    "v2_wide": ss.SketchSpec(
        n_features=3,
        sketch_size=4,
        bandwidth=0.5,
        metric="cosine",
        moments="none",
        center=(0.125, 0.0, -0.125),
        axes=Axes.of([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]),
        cells=Cells(
            np.array([[-0.5, 0, 0.25], [0.25, 0.5, 0], [0.5, -0.5, 0.25]], "<f2").tobytes(),
            n_features=3,
            starts=(0, 1),
            unit=2.0**-10,
            within=2.0**-10,
            n_rows=60,
            middles=np.array([[-0.5, 0, 0.5], [0.5, 0, 0]], "<f2").tobytes(),
            are_half=True,
        ),
    ),
    "v1_leverage": ss.SketchSpec(
        n_features=2, sketch_size=8, bandwidth=0.3, law="leverage", saturation=1.5
    ),
    "v3_landmarks": ss.SketchSpec(
        n_features=2,
        sketch_size=2,
        bandwidth=0.5,
        landmarks=ss.features.Landmarks.of([[-0.5, 0.0], [0.25, 0.5], [1.0, -1.0]]),
    ),
}


def data(d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and weights made without any random generator."""
    i = np.arange(20 * d, dtype=np.float64).reshape(20, d)
    return np.mod(i * i * 0.37, 3.0) - 1.5, 0.25 + np.mod(np.arange(20) * 0.75, 2.0)


def golden_sketch(name: str, kernel: str = "auto") -> ss.Sketch:
    """The sketch that the file of that name must hold."""
    spec = SPECS[name]
    X, weights = data(spec.n_features)
    if name == "v2_cells":  # rows in cells, in shells, and beyond the reach of cells and of waves
        X = X * np.array([0.01, 0.3, 1.0, 2.0, 1e9])[np.arange(20) % 5, None]
    return ss.sketch(X, spec, sample_weight=None if name in UNWEIGHTED else weights, kernel=kernel)


UNWEIGHTED = ("v1_plain", "v1_structured", "v1_double", "v2_alone")


def golden_release() -> ss.privacy.PrivateSketch:
    """A private sketch whose noise is written down here, since noise has no seed."""
    charges = [
        Charge(f"{i:032x}", purpose, 0.125 * i, 1e-8, 1000.0, 2000.0, "add_remove", 1, "by hand")
        for i, purpose in enumerate(("plan: mean", "release"), start=1)
    ]
    origin = Origin("private", 8.0, (charges[0],))
    spec = ss.SketchSpec(2, 8, (0.1, 2.0), columns=("a", "b"), scale=2.0, origin=origin)
    raw = ss.sketch(data(2)[0], spec)
    noise = np.arange(16).reshape(2, 8) * 1001 - 8000
    totals = NoisyMeasure({"waves": raw._totals.waves + noise}, 20 * 1000 + 37, 1000, 2000.0)
    return ss.privacy.PrivateSketch(spec, spec.fingerprint, totals, Ledger.of(charges))


def golden_release_with_cells() -> ss.privacy.PrivateSketch:
    """The same with cells."""
    plain = golden_release()
    spec = replace(plain.spec, cells=Cells.of([[-0.5, 0.0], [0.25, 0.5], [0.5, -0.5]]))
    raw = ss.sketch(data(2)[0], spec)
    clipped = raw._totals.parts["clipped"]
    noise = np.arange(12).reshape(3, 4) * 3001 - 8000
    parts = plain._totals.parts | {"clipped": 5 * clipped + noise}
    totals = replace(plain._totals, parts=parts, cell_factor=5)
    return ss.privacy.PrivateSketch(spec, spec.fingerprint, totals, plain.ledger)


GOLDEN = {
    "private/v1": golden_release,
    "private/v2": golden_release_with_cells,
    **{name: partial(golden_sketch, name) for name in SPECS},
}

if __name__ == "__main__":
    for name, make in GOLDEN.items():
        path = HERE / f"{name}.sketch"
        if not path.exists():
            path.write_bytes(make().to_bytes())
