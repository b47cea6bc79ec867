from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders import Turnkey
from sketchshift.decoders.gaussians import Stochastic

ALWAYS = Turnkey(stochastic=Stochastic(above=0))


def mixture(k, d, n, deviation):
    """Rows around k uniform centers of the unit cube, and their mean squared deviation."""
    rng = np.random.default_rng(0)
    centers = rng.uniform(size=(k, d))
    rests = deviation * rng.normal(size=(n, d))
    return centers[rng.integers(k, size=n)] + rests, (rests**2).sum(axis=1).mean()


@pytest.fixture(scope="module")
def sixty():
    X, error = mixture(60, 5, 20_000, 0.03)
    return X, error, ss.sketch(X, n_clusters=60, cells=False)


def test_clusters_are_found_from_blocks_of_frequencies(sixty):
    X, error, sketch = sixty
    decoding = ss.decode(sketch, 60, decoder=ALWAYS)
    assert ss.metrics.mse(X, decoding.centroids) < 1.02 * error
    assert decoding.weights.sum() == pytest.approx(1.0)
    assert [step.total for step in decoding.trace] == [Stochastic.fits] * Stochastic.fits


def test_the_same_seed_gives_the_same_bytes_and_any_number_of_clusters(sixty):
    hasty = Turnkey(stochastic=Stochastic(above=0, steps=40))
    _, _, sketch = sixty
    once = ss.decoders.decode_range(sketch, [60, 1, 5], seed=3, decoder=hasty)
    again = ss.decoders.decode_range(sketch, [60, 1, 5], seed=3, decoder=hasty)
    assert [len(decoding.centroids) for decoding in once] == [60, 1, 5]
    for left, right in zip(once, again, strict=True):
        assert left.centroids.tobytes() == right.centroids.tobytes()
    other = ss.decode(sketch, 60, seed=4, decoder=hasty)
    assert not np.array_equal(once[0].centroids, other.centroids)


def test_blocks_hold_every_frequency_once():
    for m in (1, 1000, 1600, 100_000):
        places = np.concatenate([np.arange(m)[block] for block in Stochastic()._blocks(m)])
        np.testing.assert_array_equal(places, np.arange(m))


def test_the_present_search_is_kept_where_it_is_quick():
    search = Stochastic()
    assert not search.is_for(100, 2_000)  # 100 clusters in the plane
    assert search.is_for(1000, 40_000)
    assert search.n_points(1000, 10) == 200_000
    assert search.n_points(1000, 100) == 40_000


@pytest.mark.slow
def test_a_thousand_clusters():
    X, error = mixture(1000, 10, 100_000, 0.06)
    decoding = ss.decode(ss.sketch(X, n_clusters=1000, cells=False), 1000)
    assert ss.metrics.mse(X, decoding.centroids) < 1.02 * error
