from __future__ import annotations

import numpy as np
from numpy_misfit import Misfit
from numpy_turnkey import NumpyTurnkey, revived

import sketchshift as ss
from sketchshift.data import datasets


def test_the_gradient_of_the_misfit_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    omega, z = rng.normal(size=(3, 200)), 0.3 * rng.normal(size=200) + 0.3j
    misfit = Misfit(omega, z, np.ones(200), np.zeros(3), np.diag([1.0, 2.0, 3.0]))
    x = misfit.packed(np.full(5, 0.2), rng.normal(size=(5, 3)), rng.uniform(0.1, 1, size=(5, 3)))
    direction = rng.normal(size=len(x))

    slope = misfit(x)[1] @ direction
    difference = (misfit(x + 1e-2 * direction)[0] - misfit(x - 1e-2 * direction)[0]) / 2e-2

    # float32 sums divided by the step, and the third derivative times its square
    np.testing.assert_allclose(slope, difference, rtol=2e-3)


def test_splitting_an_atom_keeps_mass_mean_and_variance():
    weights, means = np.array([0.0, 1.0]), np.array([[5.0, 5.0], [1.0, 2.0]])
    deviations = np.array([[1.0, 1.0], [2.0, 1.0]])

    alpha, c, s = revived(weights, means, deviations)

    mean = alpha @ c
    np.testing.assert_allclose(alpha, [0.5, 0.5])
    np.testing.assert_allclose(mean, [1.0, 2.0])
    np.testing.assert_allclose(alpha @ (s**2 + (c - mean) ** 2), [4.0, 1.0])


def test_the_plain_decoder_finds_clusters_that_lie_apart():
    X, _ = datasets.gaussian_mixture(5000, 2, 4, cluster_std=0.05)
    sketch = ss.sketch(X, n_clusters=4, cells=False)

    centroids = NumpyTurnkey(sketch, 4, seed=0).decode()

    assert ss.metrics.rse(X, centroids, ss.metrics.lloyd(X, 4)) < 1.02
