from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

CORNERS = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])


class Blobs:
    """Rows around three corners, and their sketches of one planned spec."""

    def __init__(self):
        self.spec = ss.plan(self.rows(5_000, seed=99), n_clusters=4)

    def rows(self, n, shares=(0.5, 0.3, 0.2), seed=0, shift=(0.0, 0.0)):
        """``n`` rows; the last corner is shifted."""
        rng = np.random.default_rng(seed)
        corners = CORNERS + np.array([[0, 0], [0, 0], shift])
        return corners[rng.choice(3, n, p=shares)] + rng.normal(size=(n, 2))

    def sketch(self, n, spec=None, **options):
        """Their sketch."""
        return ss.sketch(self.rows(n, **options), spec or self.spec)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def blobs():
    return Blobs()
