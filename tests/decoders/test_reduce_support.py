"""From all atoms to k: what merging keeps, and which clusters are left."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.cluster.hierarchy import fcluster, linkage

from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.paper.refine import merge_nearest


@pytest.mark.parametrize("is_gaussian", [False, True])
def test_merging_keeps_weight_and_mean_and_of_gaussians_the_covariance(is_gaussian, rng):
    """The law of total variance; twins without weight change nothing."""
    weights, means, roots = rng.dirichlet(np.ones(9)), *rng.normal(size=(2, 9, 3))
    covariances = roots[:, :, None] * roots[:, None] if is_gaussian else None
    whole = Mixture(np.append(np.zeros(3), weights[3:]), means, covariances)

    merged = merge_nearest(whole, 4)

    assert merged.n_components == 4
    assert merged.weights.sum() == pytest.approx(whole.weights.sum())
    kept = slice(1 + is_gaussian)
    for left, right in zip(merged.moments[kept], whole.moments[kept], strict=True):
        assert_allclose(left, right, atol=1e-9)


def test_merging_raises_the_inertia_least_each_time():
    """Ward's rule: SciPy's on points that are repeated as often as they weigh."""
    rng = np.random.default_rng(1)
    counts, means = rng.integers(1, 9, size=12), rng.normal(size=(12, 2))
    points = np.repeat(means, counts, axis=0)
    labels = fcluster(linkage(points, "ward"), 4, "maxclust")

    merged = merge_nearest(Mixture(counts, means), 4)

    expected = [points[labels == label].mean(axis=0) for label in range(1, 5)]
    assert_allclose(np.sort(merged.means, axis=0), np.sort(expected, axis=0))
    assert sorted(merged.weights) == sorted(np.bincount(labels)[1:])
