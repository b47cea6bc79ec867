"""From all atoms to k: what merging keeps, and which clusters are left."""

from __future__ import annotations

import numpy as np
import pytest

from sketchshift.decoders.mixture import Mixture
from sketchshift.decoders.paper.refine import merge_nearest


@pytest.mark.parametrize("is_gaussian", [False, True])
def test_merging_keeps_weight_and_mean_and_of_gaussians_the_covariance(is_gaussian):
    """The law of total variance; twins without weight change nothing."""
    rng = np.random.default_rng(0)
    weights, means, roots = rng.uniform(size=9), rng.normal(size=(9, 3)), rng.normal(size=(9, 3, 3))
    weights[:3] = 0.0
    weights /= weights.sum()
    whole = Mixture(weights, means, roots @ roots.swapaxes(1, 2) if is_gaussian else None)

    merged = merge_nearest(whole, 4)

    assert merged.n_components == 4
    assert merged.weights.sum() == pytest.approx(1.0)
    for left, right in list(zip(merged.moments, whole.moments, strict=True))[: 1 + is_gaussian]:
        np.testing.assert_allclose(left, right, atol=1e-9)


def test_merging_raises_the_inertia_least_each_time():
    """Ward's rule, against all pairs tried one by one."""
    rng = np.random.default_rng(1)
    weights, means = rng.dirichlet(np.ones(6)), rng.normal(size=(6, 2))

    def joined(i, j):
        pair, rest = [i, j], np.delete(np.arange(6), [i, j])
        mean = np.average(means[pair], axis=0, weights=weights[pair])
        own = np.append(weights[rest], weights[pair].sum())
        return Mixture(own, np.vstack([means[rest], mean]))

    def spread(mixture):
        return np.trace(mixture.moments[1])

    best = max(spread(joined(i, j)) for i in range(6) for j in range(i))
    assert spread(merge_nearest(Mixture(weights, means), 5)) == pytest.approx(best)
