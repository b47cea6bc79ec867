"""Clusters from noisy sketches, against k-means on all of the data."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.data import datasets

DELTA = 1e-8
BEST_OF = 5

pytestmark = pytest.mark.usefixtures("seeded_noise")


@lru_cache(maxsize=1)
def data(name: str) -> tuple[np.ndarray, float]:
    """Rows, and the least error of five runs of k-means on them."""
    if name == "gaussian_mixture":
        X = datasets.gaussian_mixture(100_000, 10, 10, seed=3)[0]
    else:
        X = (datasets.china_pixels() if name == "china" else datasets.load(name)).astype(np.float64)
    return X, min(ss.metrics.mse(X, ss.metrics.lloyd(X, 10, seed=i)) for i in range(BEST_OF))


def error(name: str, epsilon: float, seed: int) -> float:
    """RSE of one release at m = 10 k d, planned on a public sample of a thousand rows."""
    X, least = data(name)
    sample = X[np.random.default_rng(seed).choice(len(X), 1000, replace=False)]
    spec = ss.privacy.plan_public(sample, 10, seed=seed)
    released = ss.privacy.release(ss.sketch(X, spec), epsilon, DELTA)
    return ss.metrics.mse(X, ss.decode(released, 10, seed=seed).centroids) / least


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "limit"), [(1.0, 1.05), (0.1, 1.10)])
@pytest.mark.parametrize(
    "name",
    [
        "gaussian_mixture",
        "china",
        pytest.param("spectral_mnist", marks=pytest.mark.data("spectral_mnist")),
    ],
)
def test_clusters_are_nearly_those_of_kmeans(name, epsilon, limit):
    """Mean of five seeds; 1e5, 2.7e5 and 7e4 rows."""
    assert np.mean([error(name, epsilon, seed) for seed in range(5)]) <= limit


def test_clusters_of_a_small_mixture_survive_the_noise():
    X, _ = datasets.gaussian_mixture(50_000, 2, 5, seed=2)
    spec = ss.privacy.plan_declared([0.0, 0.0], 1.0, 5)
    released = ss.privacy.release(ss.sketch(X, spec), 1.0, DELTA)

    assert ss.metrics.rse(X, ss.decode(released, 5).centroids, ss.metrics.lloyd(X, 5)) < 1.05


def test_noise_is_not_taken_for_clusters():
    """Twenty releases; when noise counted once, one in nine had six to nine clusters."""
    X, _ = datasets.gaussian_mixture(50_000, 2, 5, seed=2)
    raw = ss.sketch(X, ss.privacy.plan_declared([0.0, 0.0], 1.0, 5))
    releases = [ss.privacy.release(raw, 1.0, DELTA) for _ in range(20)]

    assert {len(ss.decode(released, "auto").weights) for released in releases} == {5}


@pytest.mark.parametrize("above", [10**9, 0], ids=["coarse to fine", "stochastic"])
def test_a_descent_stops_at_the_noise_floor(above, monkeypatch):
    """With ten times its noise claimed, a sketch is fitted no better than that: 2 std^2."""
    from sketchshift.decoders import Turnkey
    from sketchshift.decoders.gaussians import Stochastic

    X, _ = datasets.gaussian_mixture(50_000, 2, 5, seed=2)
    spec = ss.privacy.plan_declared([0.0, 0.0], 1.0, 5)
    released = ss.privacy.release(ss.sketch(X, spec), 1.0, DELTA)
    claimed = 10.0 * released.noise_std
    monkeypatch.setattr(ss.privacy.PrivateSketch, "noise_std", claimed)
    decoder = Turnkey(stochastic=Stochastic(above=above))

    misfits = [step.misfit**2 for step in ss.decode(released, 5, decoder=decoder).trace]

    assert all(0.1 < misfit / (2.0 * claimed**2) <= 1.0 for misfit in misfits)


@pytest.mark.parametrize("decoder", [ss.SketchAndShift(), ss.ClOmpr(n_initializations=100)])
def test_the_decoders_of_the_paper_take_private_sketches(decoder):
    X, _ = datasets.gaussian_mixture(50_000, 2, 3, seed=2)
    spec = ss.SketchSpec(2, 200, 0.2, origin=ss.features.Origin("declared", 10.0))
    released = ss.privacy.release(ss.sketch(X, spec), 1.0, DELTA)

    assert ss.metrics.rse(X, decoder(released, 3).centroids, ss.metrics.lloyd(X, 3)) < 1.2
