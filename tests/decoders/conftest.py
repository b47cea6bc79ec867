from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_wine

import sketchshift as ss
from sketchshift.decoders import Box
from sketchshift.metrics import lloyd, mse, rse


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def figure1():
    """The paper's first experiment: three well-separated clusters in the square [-1, 1]^2."""
    rng, domain = np.random.default_rng(0), Box([-1, -1], [1, 1])
    centres = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.5)])
    X = centres[rng.integers(0, 3, 100_000)] + 0.05 * rng.normal(size=(100_000, 2))
    reference = mse(X, lloyd(X, 3))

    @cache
    def sketch(m, bandwidth, realization=0):
        """One realization of the sketching operator, applied once."""
        return ss.sketch(X, ss.SketchSpec(2, m, bandwidth, seed=realization))

    def mean_rse(decoder, m, bandwidth, n_realizations):
        """RSE of a decoder, averaged over realizations of the sketching operator."""
        sketches = (sketch(m, bandwidth, realization) for realization in range(n_realizations))
        found = [decoder(each, 3, domain=domain).centroids for each in sketches]
        return np.mean([rse(X, centroids, reference) for centroids in found])

    return SimpleNamespace(domain=domain, sketch=sketch, mean_rse=mean_rse)


@pytest.fixture(scope="session")
def wine():
    return load_wine(as_frame=True).data


@pytest.fixture(scope="session")
def of_wine(wine):
    return ss.decode(ss.sketch(wine, n_clusters=3, standardize=True), 3)


@pytest.fixture(scope="session")
def made():
    """A decoding of centroids alone, of equal weights."""

    def make(centroids):
        k = len(centroids)
        weights = np.full(k, 1.0) / max(k, 1)
        return ss.Decoding(centroids, weights, None, 0.0, ss.decoders.Outcome.COMPLETE, ())

    return make
