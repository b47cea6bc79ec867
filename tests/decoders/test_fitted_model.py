"""Which sketches the fitted models take: Diracs all, Gaussians those with a Gaussian kernel."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.decoders import SketchAndShift
from sketchshift.errors import SpecError
from sketchshift.metrics import match_centroids


@pytest.mark.parametrize(
    "options",
    [
        {"bandwidth": (0.1, 1.0)},
        {"bandwidth": ss.features.Range(0.05, 0.5, 0.1)},
        {"bandwidth": 0.15, "law": "folded_gaussian"},
        {"bandwidth": 0.15, "law": "leverage"},
    ],
)
def test_diracs_fit_any_kernel(options, rng):
    """Centroids where they are, and shares of the rows."""
    centres, shares = np.array([(-0.5, -0.4), (0.5, -0.4), (0.0, 0.9)]), np.array([0.5, 0.3, 0.2])
    X = centres[rng.choice(3, 20_000, p=shares)] + 0.05 * rng.normal(size=(20_000, 2))
    sketch = ss.sketch(X, ss.SketchSpec(2, 500, **options))

    for refine, atol in ((False, 0.06), (True, 0.03)):  # clusters have a width of 0.05
        decoding = SketchAndShift(n_initializations=200, refine=refine)(sketch, 3)

        found = match_centroids(centres, decoding.centroids)
        assert_allclose(decoding.centroids[found], centres, atol=atol)
        assert_allclose(decoding.weights[found], shares, atol=atol)


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"bandwidth": (0.1, 2.0)}, r"this sketch has bandwidths from 0\.1 to 2\."),
        ({"bandwidth": 0.5, "law": "adapted_radius"}, r"this sketch has the law 'adapted_radius'"),
    ],
)
def test_gaussians_need_a_gaussian_kernel(options, fact):
    """The curvature of another kernel is not 1 / sigma^2: covariances would be made up."""
    sketch = ss.sketch(np.zeros((5, 2)), ss.SketchSpec(2, 20, **options))

    with pytest.raises(SpecError, match=rf"{fact}.* Take fitted_model='dirac'"):
        SketchAndShift(fitted_model="gaussian")(sketch, 2)


def test_covariances_by_leverage_are_those_of_the_gaussian_law(rng):
    """Weights give the kernel back, and with it the curvature: within 15 % of the truth."""
    truth = np.array([[0.09, 0.04], [0.04, 0.06]])
    X = rng.multivariate_normal([0.3, -0.2], truth, size=50_000)
    sketch = ss.sketch(X, ss.SketchSpec(2, 4000, 0.4, law="leverage"))

    decoding = SketchAndShift(n_atoms=1, n_initializations=20, fitted_model="gaussian")(sketch, 1)

    assert_allclose(decoding.covariances[0], truth, atol=0.15 * 0.09)
