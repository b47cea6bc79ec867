"""Clusters from noisy sketches, against k-means on all of the data."""

from __future__ import annotations

import pytest

import sketchshift as ss
from sketchshift.data import datasets
from sketchshift.decoders import Turnkey
from sketchshift.decoders.gaussians import Stochastic

DELTA = 1e-8

pytestmark = pytest.mark.usefixtures("seeded_noise")


@pytest.fixture(scope="module")
def X():
    return datasets.gaussian_mixture(50_000, 2, 5, seed=2)[0]


@pytest.fixture(scope="module")
def raw(X):
    return ss.sketch(X, ss.privacy.plan_declared([0.0, 0.0], 1.0, 5))


@pytest.mark.parametrize("decoder", [Turnkey(), ss.ClOmpr(n_initializations=100)])
def test_clusters_of_a_small_mixture_survive_the_noise(X, raw, decoder):
    found = ss.decode(ss.privacy.release(raw, 1.0, DELTA), 5, decoder=decoder)

    assert ss.metrics.rse(X, found.centroids, ss.metrics.lloyd(X, 5)) < 1.05


def test_noise_is_not_taken_for_clusters(raw):
    """Twelve releases; when noise counted once, one in nine had six to nine clusters."""
    releases = [ss.privacy.release(raw, 1.0, DELTA) for _ in range(12)]

    assert {len(ss.decode(released, "auto").weights) for released in releases} == {5}


@pytest.mark.parametrize("above", [10**9, 0], ids=["coarse to fine", "stochastic"])
def test_a_descent_stops_at_the_noise_floor(raw, above, monkeypatch):
    """With ten times its noise claimed, a sketch is fitted no better than that: 2 std^2."""
    released = ss.privacy.release(raw, 1.0, DELTA)
    claimed = 10.0 * released.noise_std
    monkeypatch.setattr(ss.privacy.PrivateSketch, "noise_std", claimed)
    decoder = Turnkey(stochastic=Stochastic(above=above))

    misfits = [step.misfit**2 for step in ss.decode(released, 5, decoder=decoder).trace]

    assert all(0.1 < misfit / (2.0 * claimed**2) <= 1.0 for misfit in misfits)
