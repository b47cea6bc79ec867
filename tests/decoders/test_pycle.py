"""CL-OMPR against the public pycle 1.2 on the same frequencies."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.decoders import ClOmpr
from sketchshift.decoders.objective import Box
from sketchshift.decoders.paper.refine import nonnegative_weights
from sketchshift.metrics import match_centroids


def pycle_centroids(X, Omega, k, bounds, n_restarts):
    """Centroids of pycle's CLOMP_CKM, best of a few runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learning = pytest.importorskip(
            "pycle.compressive_learning", reason="pycle 1.2, the rival's public code"
        )
        from pycle.sketching import SimpleFeatureMap

        z = np.exp(1j * X @ Omega).mean(axis=0)
        feature_map = SimpleFeatureMap("complexExponential", Omega)
        solver = learning.CLOMP_CKM(feature_map, k, np.array(bounds), z)
        state = np.random.get_state()  # noqa: NPY002 - pycle draws from the global generator
        np.random.seed(0)  # noqa: NPY002
        solver.fit_several_times(n_restarts)
        np.random.set_state(state)  # noqa: NPY002
        return solver.get_centroids()


@pytest.mark.thorough
def test_residual_and_centroids_are_those_of_pycle():
    """Clusters are 2 apart: 1e-2 of that is 0.02. Weights fitted alike: pycle rescales its own."""
    rng = np.random.default_rng(3)
    centres = np.array([(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.2)])
    X = centres[rng.integers(0, 4, 5000)] + 0.15 * rng.normal(size=(5000, 2))
    sketch = ss.sketch(X, ss.SketchSpec(2, 200, 1.5))
    Omega = 2 * np.pi * sketch.frequencies.turns.astype(float)

    ours = ClOmpr(n_restarts=5)(sketch, 4, domain=Box([-2, -2], [2, 2])).centroids
    theirs = pycle_centroids(X, Omega, 4, [[-2.0, -2.0], [2.0, 2.0]], 5)

    def residual_norm(centroids):
        atoms = np.exp(1j * centroids @ Omega) / np.sqrt(200)
        return np.linalg.norm(sketch.z - nonnegative_weights(atoms, sketch.z) @ atoms)

    assert_allclose(ours, theirs[match_centroids(ours, theirs)], atol=0.02)
    assert residual_norm(ours) == pytest.approx(residual_norm(theirs), rel=0.01)
