"""A residual norm is one thing everywhere: what the clusters of a decoding leave of its sketch."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders.decoder import DECODERS
from sketchshift.decoders.mixture import Mixture
from sketchshift.errors import PlanWarning


def recompute(sketch, decoding):
    """Norm of z minus the mixture's waves, over that of z."""
    spec, S = sketch.spec, decoding.covariances
    places = (decoding.centroids - spec.rows.center_vector) / spec.rows.scale_vector
    S = None if S is None else S / np.outer(spec.rows.scale_vector, spec.rows.scale_vector)
    found = Mixture(decoding.weights, places, S).sketch(spec.frequencies.turns)
    return np.linalg.norm(sketch.z - found) / np.linalg.norm(sketch.z)


@pytest.mark.parametrize("name", [*DECODERS, "gaussian"])
@pytest.mark.parametrize("k", [1, 3])
def test_the_residual_norm_is_what_the_clusters_leave_of_the_waves(name, sketch, k):
    """Decoders that read waves alone warn of cells beside them."""
    if name == "gaussian" and len(set(sketch.spec.bandwidths)) > 1:
        return
    gaussian = ss.SketchAndShift(fitted_model="gaussian", n_initializations=100)
    reads_cells = name == "turnkey" or sketch.spec.cells is None
    with (
        nullcontext() if reads_cells else pytest.warns(PlanWarning, match="waves .* not its cells")
    ):
        decoding = ss.decode(sketch, k, decoder=gaussian if name == "gaussian" else name)

    assert decoding.residual_norm == pytest.approx(recompute(sketch, decoding), abs=1e-6)
    assert decoding.residual_norm > 0.0  # above 1 where a point is all that rows far apart get


def test_equal_rows_leave_nothing(sketch):
    equal = ss.sketch(np.full((40, 2), 1.5), sketch.spec)

    decoding = ss.decode(equal, 1)

    assert decoding.residual_norm == pytest.approx(recompute(equal, decoding), abs=1e-6)
    assert decoding.residual_norm < 3e-5  # phases are float32


@pytest.fixture(scope="module", params=["cells", "waves", "one bandwidth"])
def sketch(request):
    corners = np.repeat([(0.0, 0.0), (3.0, 0.0), (0.0, 4.0)], 500, axis=0)
    X = corners + np.random.default_rng(0).normal(0.0, 0.3, (1500, 2))
    if request.param == "one bandwidth":
        return ss.sketch(X, ss.SketchSpec(n_features=2, sketch_size=80, bandwidth=1.0))
    return ss.sketch(X, n_clusters=3, cells=request.param == "cells")
