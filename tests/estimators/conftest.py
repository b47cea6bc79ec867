from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def blobs():
    """Three clusters of unequal size in the plane, far apart, in random order."""
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 600, p=[0.5, 0.3, 0.2])
    centers = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
    return centers[labels] + 0.3 * rng.normal(size=(600, 2))
