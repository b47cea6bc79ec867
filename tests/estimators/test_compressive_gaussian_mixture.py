"""The mixture: how close to the truth and to EM with the data, and what can be asked of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import sketchshift as ss

TYPES = ["full", "diag", "spherical"]
WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.0, 0.0, 1.0], [3.0, 1.0, 0.0], [0.5, 4.0, 0.0]])
AXES = np.array([[1.0, 0.3, 0.2], [0.4, 0.8, 0.3], [0.5, 0.5, 1.0]])


def truth(kind):
    """Covariances of each type, shape (3, 3, 3)."""
    if kind == "spherical":
        return np.array([s**2 * np.eye(3) for s in (0.4, 0.6, 0.8)])
    if kind == "diag":
        return np.array([np.diag(axes**2) for axes in AXES])
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    return np.array([turn @ np.diag(axes**2) @ turn.T for axes in AXES])


def drawn(kind, n=10_000, seed=0):
    """Rows of the true mixture, whose components overlap a little."""
    rng = np.random.default_rng(seed)
    parts = zip(rng.multinomial(n, WEIGHTS), MEANS, truth(kind), strict=True)
    return np.concatenate([rng.multivariate_normal(c, S, size=size) for size, c, S in parts])


def full(covariances):
    """Covariances of any type as matrices."""
    if covariances.ndim == 3:
        return covariances
    return np.array([np.diag(np.broadcast_to(row, 3)) for row in covariances])


@pytest.mark.parametrize("kind", TYPES)
def test_the_true_mixture_is_found_and_is_as_likely_as_that_of_em(kind):
    """Ten thousand rows leave errors of a few hundredths; EM sees the rows, this a sketch."""
    X, unseen = drawn(kind), drawn(kind, seed=1)

    mixture = ss.CompressiveGaussianMixture(3, covariance_type=kind, random_state=0).fit(X)

    assert_allclose(mixture.weights_, WEIGHTS, atol=0.02)
    assert_allclose(mixture.means_, MEANS, atol=0.05)
    assert_allclose(full(mixture.covariances_), truth(kind), atol=0.06)
    exact = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    assert mixture.score(unseen) > exact.score(unseen) - 0.02
    assert mixture.converged_


def test_data_that_is_no_mixture_is_still_described(skin):
    """Skin pixels: far from Gaussian, so moment matching must not be believed."""
    exact = GaussianMixture(5, covariance_type="diag", random_state=0).fit(skin)

    mixture = ss.CompressiveGaussianMixture(5, covariance_type="diag", random_state=0).fit(skin)

    assert mixture.score(skin) > exact.score(skin) - 0.1


@pytest.mark.parametrize("kind", TYPES)
def test_one_gaussian_has_the_moments_of_the_rows(kind):
    """They are integers in the sketch, and the most likely ones."""
    X = drawn("full", 500)

    mixture = ss.CompressiveGaussianMixture(covariance_type=kind, random_state=0).fit(X)

    exact = GaussianMixture(covariance_type=kind).fit(X)
    assert_allclose(mixture.means_, exact.means_, atol=1e-4)
    assert_allclose(mixture.covariances_, exact.covariances_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("kind", "size"), [("diag", None), ("full", 2 * 5 * 45)])
def test_plans_have_frequencies_enough_for_the_covariances(kind, size, rng):
    X = rng.normal(size=(50, 8))
    mixture = ss.CompressiveGaussianMixture(2, covariance_type=kind, random_state=0).partial_fit(X)

    assert mixture.sketch_.spec == ss.plan(X, 2, cells=False, sketch_size=size)


def test_spheres_are_spheres_in_the_units_of_the_data():
    """Also under a spec that standardises the columns."""
    options = {"covariance_type": "spherical", "random_state": 0, "standardize": True}
    mixture = ss.CompressiveGaussianMixture(3, **options).fit(drawn("spherical"))

    assert_allclose(np.sqrt(mixture.covariances_), [0.4, 0.6, 0.8], atol=0.02)


@pytest.fixture(scope="module", params=TYPES)
def fitted(request):
    mixture = ss.CompressiveGaussianMixture(
        3, covariance_type=request.param, sketch_size=90, random_state=0
    )
    return mixture.fit(drawn(request.param, 1000))


def test_densities_are_those_of_scipy(fitted):
    X = drawn("full", 50)
    logs = [
        np.log(w) + stats.multivariate_normal(c, S).logpdf(X)
        for w, c, S in zip(fitted.weights_, fitted.means_, full(fitted.covariances_), strict=True)
    ]
    expected = np.logaddexp.reduce(logs, axis=0)
    factors = full(fitted.precisions_cholesky_)
    precisions = factors @ factors.swapaxes(1, 2)

    assert_allclose(fitted.score_samples(X), expected, rtol=1e-9)
    assert fitted.score(X) == pytest.approx(expected.mean())
    assert_allclose(fitted.predict_proba(X), np.exp(logs - expected).T, atol=1e-9)
    assert_array_equal(fitted.predict(X), np.argmax(logs, axis=0))
    assert_allclose(precisions @ full(fitted.covariances_), [np.eye(3)] * 3, atol=1e-8)


def test_information_criteria_need_rows(fitted):
    """2 L - 2 p and p log n - 2 L, with p counted by hand."""
    X = drawn("full", 200)
    p = 2 + 9 + {"full": 18, "diag": 9, "spherical": 3}[fitted.covariance_type]

    for name, factor in (("aic", 2.0), ("bic", np.log(200))):
        criterion = getattr(fitted, name)
        assert criterion(X) == pytest.approx(p * factor - 2 * 200 * fitted.score(X))
        with pytest.raises(ss.errors.DataError, match=rf"{name} needs the .*{name}\(X\)"):
            criterion()


def test_rows_are_drawn_from_the_mixture(fitted):
    X, labels = fitted.sample(5000)

    assert X.shape == (5000, 3)
    assert_allclose(np.bincount(labels) / 5000, fitted.weights_, atol=0.03)
    assert_allclose(X.mean(axis=0), fitted.weights_ @ fitted.means_, atol=0.1)


def test_equal_rows_are_one_narrow_component():
    X = np.tile([[1.0, 2.0, 3.0]], (20, 1))
    mixture = ss.CompressiveGaussianMixture(2, spec=ss.SketchSpec(3, 50, bandwidth=1.0))

    with pytest.warns(ConvergenceWarning, match="1 of 2 components were found. Nothing was left"):
        mixture.fit(X)

    assert_allclose(mixture.means_, X[:1], atol=1e-3)
    assert np.trace(mixture.covariances_[0]) < 1e-4
    assert np.isfinite(mixture.score(X))


def test_parameters_that_cannot_be_used_are_named():
    for parameters, message in (
        ({"covariance_type": "tied"}, "must be one of 'full', 'diag', 'spherical'. Got 'tied'"),
        ({"n_components": 0}, "'n_components' parameter of"),
        ({"n_components": "auto"}, "'n_components' parameter of"),
        ({"max_iter": 0}, "'max_iter' parameter of"),
        ({"n_components": 11}, "n_samples=10 rows are in, and n_components=11 is more than that"),
    ):
        with pytest.raises(ValueError, match=message):
            ss.CompressiveGaussianMixture(**parameters).fit(drawn("full", 10))
