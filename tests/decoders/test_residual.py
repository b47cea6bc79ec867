"""A residual norm is one thing everywhere: what the clusters of a decoding leave of its sketch."""

from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders.decoder import DECODERS

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(c, 0.3, (500, 2)) for c in ((0.0, 0.0), (3.0, 0.0), (0.0, 4.0))])
SPECS = {
    "cells": ss.plan(X, 3),
    "waves": ss.plan(X, 3, cells=False),
    "one bandwidth": ss.SketchSpec(n_features=2, sketch_size=80, bandwidth=1.0),
}


def recompute(sketch: ss.Sketch, decoding: ss.Decoding) -> float:
    """Norm of z minus the mixture's waves, over that of z, in plain NumPy."""
    spec = sketch.spec
    omega = 2.0 * np.pi * spec.frequencies.turns.astype(np.float64)
    places = (decoding.centroids - spec.center_vector) / spec.scale_vector
    waves = 0.0
    for i, (share, c) in enumerate(zip(decoding.weights, places, strict=True)):
        S = np.zeros((2, 2)) if decoding.covariances is None else decoding.covariances[i]
        S = S / np.outer(spec.scale_vector, spec.scale_vector)
        waves += share * np.exp(1j * (c @ omega) - 0.5 * ((S @ omega) * omega).sum(axis=0))
    z = sketch.z * np.sqrt(spec.sketch_size)
    return float(np.linalg.norm(z - waves) / np.linalg.norm(z))


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("k", [1, 3])
def test_the_residual_norm_is_what_the_clusters_leave_of_the_waves(name, kind, k):
    sketch = ss.sketch(X, SPECS[kind])

    decoding = ss.decode(sketch, k, decoder=name)

    assert decoding.residual_norm == pytest.approx(recompute(sketch, decoding), abs=1e-6)
    assert decoding.residual_norm > 0.0  # above 1 where a point is all that rows far apart get


def test_of_gaussians_too():
    sketch = ss.sketch(X, SPECS["one bandwidth"])

    decoding = ss.SketchAndShift(fitted_model="gaussian", n_initializations=100)(sketch, 3)

    assert decoding.residual_norm == pytest.approx(recompute(sketch, decoding), abs=1e-6)


@pytest.mark.parametrize("kind", SPECS)
def test_true_clusters_leave_next_to_nothing_and_wrong_ones_most(kind):
    """Three Gaussians are what the rows are; sampling leaves about 1 / sqrt(1500)."""
    sketch = ss.sketch(X, SPECS[kind])

    assert ss.decode(sketch, 3).residual_norm < 0.1
    assert ss.decode(sketch, 1).residual_norm > 0.5


@pytest.mark.parametrize("kind", SPECS)
def test_equal_rows_leave_nothing(kind):
    sketch = ss.sketch(np.full((40, 2), 1.5), SPECS[kind])

    decoding = ss.decode(sketch, 1)

    assert decoding.residual_norm == pytest.approx(recompute(sketch, decoding), abs=1e-6)
    assert decoding.residual_norm < 3e-5  # phases are float32
