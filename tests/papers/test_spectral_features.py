"""From pixels to spectral features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import zoom
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

from sketchshift.errors import DataError
from sketchshift_papers.data.spectral_features import (
    laplacian_eigenvectors,
    neighbour_graph,
    sift_descriptors,
    spectral_features,
)


@pytest.fixture
def images():
    """Two kinds of pictures, 40 of each: bars that stand and bars that lie."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 40, (80, 28, 28)).astype(np.uint8)
    pixels[:40, 4:24, 12:16] = 220
    pixels[40:, 12:16, 4:24] = 220
    return pixels


def ring(n, offset=0):
    return [(offset + i, offset + (i + 1) % n) for i in range(n)]


def graph(edges, n):
    i, j = np.array(edges).T
    one_way = csr_array((np.ones(len(edges)), (i, j)), shape=(n, n))
    return one_way.maximum(one_way.T)


def test_eigenvectors_of_a_ring_are_its_first_waves():
    """On a cycle the smallest positive eigenvalue is double, with a sine and a cosine."""
    X = laplacian_eigenvectors(graph(ring(12), 12), 2)

    np.testing.assert_allclose((X**2).sum(axis=1), 2.0, atol=1e-9)
    np.testing.assert_allclose((X**2).mean(axis=0), 1.0, atol=1e-9)


def test_every_unconnected_group_takes_away_a_zero_eigenvalue():
    """Two rings: the constants of each are left out, whatever their rotation."""
    two = graph(ring(12) + ring(15, offset=12), 27)
    X = laplacian_eigenvectors(two, 2)

    assert abs(X[:12].sum(axis=0)).max() < 1e-6
    assert abs(X[12:].sum(axis=0)).max() < 1e-6


def test_too_few_images_are_an_error():
    with pytest.raises(DataError, match="12 images in 1 unconnected groups are too few for 11"):
        laplacian_eigenvectors(graph(ring(12), 12), 11)


def test_the_graph_is_symmetric_and_has_the_nearest_neighbours():
    points = np.array([[0.0], [1.0], [2.5], [10.0]])
    A = neighbour_graph(points, 1).toarray()

    np.testing.assert_array_equal(A, [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])


def test_descriptors_tell_pictures_apart(images):
    D = sift_descriptors(images)
    within = np.linalg.norm(D[:40] - D[:40].mean(axis=0), axis=1).max()

    assert D.shape == (80, 128)
    assert np.linalg.norm(D[:40].mean(axis=0) - D[40:].mean(axis=0)) > within


def test_images_must_be_grey_levels(images):
    with pytest.raises(DataError, match="must be a uint8 array of shape"):
        sift_descriptors(images.astype(float))


def test_handwritten_digits_come_out_in_clusters():
    """Scikit-learn's, of 8 x 8 pixels, enlarged: most of a cluster are of one digit."""
    digits, n = load_digits(), 600
    images = zoom(digits.images[:n] * (255 / 16), (1, 3.5, 3.5), order=1).astype(np.uint8)

    X = spectral_features(images)

    assert X.shape == (n, 10)
    np.testing.assert_allclose((X**2).mean(axis=0), 1.0, atol=1e-6)
    labels = KMeans(10, n_init=5, random_state=0).fit_predict(X)
    found = [np.bincount(digits.target[:n][labels == i]).max() for i in range(10)]
    assert sum(found) > 0.6 * n  # chance is little more than 0.1
