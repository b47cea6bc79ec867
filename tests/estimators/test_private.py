"""Estimators fitted to private sketches, which tell no moments and take no rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.mixture import GaussianMixture

import sketchshift as ss
from sketchshift.decoders.mixture import Mixture
from sketchshift.errors import DataError, IncompatibleSketchesError, PrivacyWarning
from sketchshift.estimators.mixture_fit import Coordinates, MomentFit

pytestmark = pytest.mark.usefixtures("seeded_noise")

CENTERS = np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]])
SHARES = [0.5, 0.3, 0.2]
SPEC = ss.privacy.plan_declared(center=[1.0, 1.0], spread=4.0, n_clusters=3, sketch_size=120)


def rows(n=20_000, seed=0):
    """Three Gaussians, which overlap a little, in random order."""
    rng = np.random.default_rng(seed)
    return CENTERS[rng.choice(3, n, p=SHARES)] + 0.8 * rng.normal(size=(n, 2))


def released(X, epsilon=1.0):
    return ss.privacy.release(ss.sketch(X, SPEC), epsilon, 1e-8)


def test_centers_are_those_of_the_decoder_and_the_promise_is_kept():
    private = released(rows())

    km = ss.CompressiveKMeans(3, random_state=0).fit_sketch(private)

    found = ss.decode(private, 3, seed=0)
    assert km.cluster_centers_.tobytes() == found.centroids.tobytes()
    assert_allclose(km.cluster_centers_, CENTERS, atol=0.1)
    assert list(km.predict(CENTERS)) == [0, 1, 2]
    assert km.sketch_.statement == private.statement
    with pytest.raises(AttributeError, match="a sketch keeps no rows"):
        _ = km.labels_


@pytest.mark.parametrize("kind", [ss.CompressiveKMeans, ss.CompressiveGaussianMixture])
def test_rows_are_refused_before_they_are_read(kind):
    private = released(rows())
    fitted = kind(3, random_state=0).fit_sketch(private)

    for verb in (fitted.partial_fit, fitted.forget):
        with pytest.raises(IncompatibleSketchesError, match="Release a sketch of the"):
            verb("there-is-no-such-file.parquet")
    assert fitted.sketch_ is private


def test_more_clusters_than_about_so_many_rows_are_refused():
    with pytest.warns(PrivacyWarning):
        few = ss.privacy.release(ss.sketch(rows(50), SPEC), 10.0, 1e-8, force=True)

    with pytest.raises(DataError, match="about n_samples="):
        ss.CompressiveKMeans(500).fit_sketch(few)


def test_the_true_mixture_is_found_and_is_as_likely_as_that_of_em():
    X, unseen = rows(), rows(seed=1)

    mixture = ss.CompressiveGaussianMixture(3, random_state=0).fit_sketch(released(X))

    assert_allclose(mixture.weights_, SHARES, atol=0.03)
    assert_allclose(mixture.means_, CENTERS, atol=0.1)
    exact = GaussianMixture(3, random_state=0).fit(X)
    assert mixture.score(unseen) > exact.score(unseen) - 0.02


@pytest.mark.rates
def test_the_true_mixture_has_a_misfit_of_one_on_average():
    """The characteristic function of a Gaussian beside 40 samples of it, released."""
    place, variance = np.array([[0.2, -0.1]]), np.array([[[0.02, 0.0], [0.0, 0.05]]])
    decoding = ss.Decoding(place, np.ones(1), variance, 0.0, ss.decoders.Outcome.COMPLETE, ())
    truth = Mixture(np.ones(1), place, variance).sketch(SPEC.frequencies.turns)
    noise = 1.0 - np.linalg.norm(truth) ** 2
    misfits, shares = [], []
    for normal in np.random.default_rng(0).normal(size=(40, 5_000, 2)):
        private = released(1.0 + 4.0 * (place + normal * np.sqrt([0.02, 0.05])))
        fit = MomentFit.of(private, decoding, Coordinates.of(private, decoding, "full"))
        misfits.append(fit.n_rows * np.linalg.norm(private.z - truth) ** 2 / noise)
        shares.append(fit.added)

    assert np.mean(misfits) == pytest.approx(1.0, abs=0.08)
    assert 0.3 < np.mean(shares) < 0.95  # of both kinds of noise there is much
