"""A few rows far beyond all that the plan has seen."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.data import datasets
from sketchshift.decoders import Turnkey
from sketchshift.decoders.gaussians import Stochastic

CLUSTERS = datasets.gaussian_mixture(50_000, 2, 4, seed=3)[0]


def with_far(n: int, distance: float) -> tuple[np.ndarray, ss.Sketch]:
    """Clusters and n rows at one far place; the plan has seen the former alone."""
    X = np.vstack([CLUSTERS, np.full((n, 2), distance)])
    return X, ss.sketch(X, ss.plan(CLUSTERS, n_clusters=5, cells=False))


@pytest.mark.parametrize("above", [10**9, 0], ids=["coarse to fine", "stochastic"])
@pytest.mark.parametrize(("n", "distance"), [(1, 300.0), (1, 1500.0), (3, 1000.0)])
def test_sentinels_get_a_cluster_and_leave_the_others_alone(n, distance, above):
    """As with k-means: one centroid for the far rows, the others where they were."""
    decoder = Turnkey(stochastic=Stochastic(above=above))
    X, sketch = with_far(n, distance)

    with pytest.warns(ss.errors.PlanWarning, match=f"They are about {n}, near column 0 = "):
        decoding = ss.decode(sketch, 5, decoder=decoder)

    far = int(np.argmin(decoding.weights))
    others = np.delete(decoding.centroids, far, axis=0)
    assert ss.metrics.rse(X, decoding.centroids, ss.metrics.lloyd(X, 5)) < 1.05
    assert decoding.weights[far] * len(X) == pytest.approx(n, rel=0.1)
    np.testing.assert_allclose(decoding.centroids[far], distance, rtol=0.05)
    assert ss.metrics.rse(CLUSTERS, others, ss.metrics.lloyd(CLUSTERS, 4)) < 1.01


def test_far_rows_all_round_are_left_out_with_a_warning():
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(20, 2))
    directions *= 500.0 / np.linalg.norm(directions, axis=1)[:, None]
    sketch = ss.sketch(
        np.vstack([CLUSTERS, directions]), ss.plan(CLUSTERS, n_clusters=4, cells=False)
    )

    with pytest.warns(
        ss.errors.PlanWarning, match=r"hold 100% of the variance\. Clusters are those of"
    ):
        centroids = ss.decode(sketch, 4).centroids

    assert ss.metrics.rse(CLUSTERS, centroids, ss.metrics.lloyd(CLUSTERS, 4)) < 1.01


@pytest.mark.parametrize("scale", [0.2, 3.0])
def test_rows_that_all_drifted_are_fitted_with_their_moments(scale):
    """Another day, another spread: no row is far from the others, and nobody is warned."""
    sketch = ss.sketch(CLUSTERS * scale, ss.plan(CLUSTERS, n_clusters=4, cells=False))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centroids = ss.decode(sketch, 4).centroids

    assert ss.metrics.rse(CLUSTERS * scale, centroids, ss.metrics.lloyd(CLUSTERS * scale, 4)) < 1.01


def test_heavy_tails_are_no_far_rows():
    X = CLUSTERS + 0.3 * np.random.default_rng(1).standard_t(2, size=CLUSTERS.shape)
    sketch = ss.sketch(X, n_clusters=5, cells=False)

    assert ss.metrics.rse(X, ss.decode(sketch, 5).centroids, ss.metrics.lloyd(X, 5)) < 1.06
