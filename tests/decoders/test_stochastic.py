from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sketchshift as ss
from sketchshift.decoders import Turnkey
from sketchshift.decoders.gaussians import Stochastic


@pytest.fixture(scope="module")
def sixty():
    """Rows around sixty uniform centers of the unit cube."""
    rng = np.random.default_rng(0)
    centers = rng.uniform(size=(60, 5))
    X = centers[rng.integers(60, size=20_000)] + 0.03 * rng.normal(size=(20_000, 5))
    return X, ss.sketch(X, n_clusters=60, cells=False)


def test_clusters_are_found_from_blocks_of_frequencies(sixty):
    X, sketch = sixty
    decoding = ss.decode(sketch, 60, decoder=Turnkey(stochastic=Stochastic(above=0)))
    assert ss.metrics.mse(X, decoding.centroids) < 1.02 * 5 * 0.03**2
    assert decoding.weights.sum() == pytest.approx(1.0)
    assert [step.total for step in decoding.trace] == [Stochastic.fits] * Stochastic.fits


def test_the_same_seed_gives_the_same_bytes_and_any_number_of_clusters(sixty):
    hasty = Turnkey(stochastic=Stochastic(above=0, steps=40))
    once, again, other = (
        ss.decoders.decode_range(sixty[1], [60, 1, 5], seed=seed, decoder=hasty)
        for seed in (3, 3, 4)
    )
    assert [len(decoding.centroids) for decoding in once] == [60, 1, 5]
    for left, right in zip(once, again, strict=True):
        assert left.centroids.tobytes() == right.centroids.tobytes()
    assert not np.array_equal(once[0].centroids, other[0].centroids)


def test_blocks_hold_every_frequency_once():
    for m in (1, 1000, 1600, 100_000):
        places = np.concatenate([np.arange(m)[block] for block in Stochastic()._blocks(m)])
        assert_array_equal(places, np.arange(m))
