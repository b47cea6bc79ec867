from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.decoders.objective import Box
from sketchshift.metrics import lloyd, mse, rse


class Figure1:
    """The paper's first experiment: three well-separated clusters in the square [-1, 1]^2."""

    centres = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.5)])
    domain = Box([-1, -1], [1, 1])

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 3, 100_000)
        self.X = self.centres[labels] + 0.05 * rng.normal(size=(100_000, 2))
        self.reference = mse(self.X, lloyd(self.X, 3))

    def sketch(self, m: int, bandwidth: float, realization: int = 0) -> ss.Sketch:
        """One realization of the sketching operator, applied once."""
        return _sketch(m, bandwidth, realization)

    def mean_rse(self, decoder, m, bandwidth, n_realizations):
        """RSE of a decoder, averaged over realizations of the sketching operator."""
        decodings = (
            decoder(self.sketch(m, bandwidth, realization), 3, domain=self.domain)
            for realization in range(n_realizations)
        )
        return np.mean([rse(self.X, found.centroids, self.reference) for found in decodings])


_figure1 = lru_cache(maxsize=1)(Figure1)


@lru_cache(maxsize=128)
def _sketch(m: int, bandwidth: float, realization: int) -> ss.Sketch:
    return ss.sketch(_figure1().X, ss.SketchSpec(2, m, bandwidth, seed=realization))


@pytest.fixture(scope="session")
def figure1() -> Figure1:
    return _figure1()


@pytest.fixture(scope="session")
def central_differences():
    """Derivatives of a function of points by each coordinate, on a new last axis."""

    def derivatives(g, C, h):
        steps = np.eye(C.shape[1]) * h
        return np.stack([(g(C + step) - g(C - step)) / (2 * h) for step in steps], axis=-1)

    return derivatives
