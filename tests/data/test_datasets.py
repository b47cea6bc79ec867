from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sketchshift.data.datasets import china_pixels, gaussian_mixture
from sketchshift.errors import MissingDependencyError


def test_the_picture_has_a_row_per_pixel():
    pytest.importorskip("PIL", reason="Pillow comes with the extra `plot`")

    X = china_pixels()

    assert X.shape == (427 * 640, 3)
    assert X.dtype == np.uint8
    assert len(np.unique(X[::20], axis=0)) > 5000


def test_without_pillow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)

    with pytest.raises(MissingDependencyError, match=r'pip install "sketchshift\[view\]"'):
        china_pixels()


def test_points_lie_around_their_means():
    """The mean of about 2500 points of spread 0.05 is off by 6 sigma = 0.006 at most."""
    X, labels = gaussian_mixture(10_000, 3, 4, seed=1)

    assert (X.shape, X.dtype, set(labels)) == ((10_000, 3), np.float64, {0, 1, 2, 3})
    for k in range(4):
        cluster = X[labels == k]
        assert np.abs(cluster.mean(axis=0)).max() < 1.006
        np.testing.assert_allclose(cluster.std(axis=0), 0.05, rtol=0.1)
    assert_array_equal(gaussian_mixture(10_000, 3, 4, seed=1)[0], X)
    assert not np.array_equal(gaussian_mixture(10_000, 3, 4, seed=2)[0], X)
