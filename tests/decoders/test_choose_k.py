"""The number of clusters is found from the sketch alone, and the curve says how."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans

import sketchshift as ss
from sketchshift.decoders.choose_k import ChoiceOfK, _Misfit, most_clusters
from sketchshift.decoders.problem import Problem
from sketchshift.errors import SpecError


def mixture(k, d, n=6_000, apart=3.0):
    rng = np.random.default_rng((k, d))
    return apart * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d))


@pytest.mark.parametrize(
    ("k", "d", "n"), [(1, 10, 50), (1, 2, 30_000), (3, 2, 6_000), (5, 10, 6_000)]
)
def test_the_number_of_gaussians_is_found(k, d, n):
    X = mixture(k, d, n, apart=6.0 if d == 2 else 4.0)

    decoding = ss.decode(ss.sketch(X, n_clusters=2 * k + 4), n_clusters="auto")

    curve = decoding.curve
    assert (curve.chosen, curve.is_natural, curve.criterion) == (k, True, "misfit")
    assert decoding.centroids.shape == (k, d)
    assert decoding.outcome is ss.decoders.Outcome.COMPLETE


def test_the_curve_has_every_number_up_to_the_largest_and_clusters_are_those_of_its_fit():
    sketch = ss.sketch(mixture(3, 2), n_clusters=9)
    auto = ss.decode(sketch, n_clusters="auto")
    curve = auto.curve

    assert_array_equal(curve.n_clusters, np.arange(1, 10))
    values = np.array([curve.misfit, curve.score, curve.inertia])
    assert values.shape == (3, 9)
    assert ((values > 0) & np.isfinite(values)).all()
    assert curve.score[curve.chosen - 1] <= 1.025 * curve.score.min()
    assert curve.inertia[0] == 1.0
    # k-means of more cells leaves less; the cells are not its best ones, hence the margin
    assert (np.diff(curve.inertia) < 0.01).all()
    assert str(curve.chosen) in repr(curve)
    chosen, _ = ss.decoders.decode_range(sketch, [curve.chosen, 9])
    assert_array_equal(auto.centroids, chosen.centroids)
    assert chosen.curve is None


@pytest.mark.parametrize("law", ["random", "lognormal"])
def test_data_without_clusters_has_no_natural_number(law):
    """The share of the variance that is told is the one that scikit-learn finds in the rows."""
    X = getattr(np.random.default_rng(4), law)(size=(8_000, 2))

    curve = ss.decode(ss.sketch(X, n_clusters=20), n_clusters="auto").curve

    assert not curve.is_natural
    assert "no natural number" in repr(curve)
    assert curve.criterion == "variance"
    coarse, medium, fine = curve.alternatives
    assert 2 <= coarse < medium < fine <= 20
    assert curve.chosen == medium
    for k in curve.alternatives:
        expected = KMeans(k, n_init=3, random_state=0).fit(X).inertia_ / len(X)
        assert curve.inertia[k - 1] == pytest.approx(expected / X.var(axis=0).sum(), abs=0.03)


@pytest.mark.parametrize(
    ("score", "k", "is_natural"),
    [
        ([2.0, 3.0, 1.0, 1.1, 1.2, 1.3], 3, True),  # a bend, and a rise after it
        ([2.0, 1.6, 1.3, 1.1, 1.0, 1.0], 5, False),  # falls to the end
        ([2.0, 1.9, 1.8, 1.7, 1.6, 1.0], 6, True),  # a cliff at the end
        ([1.05, 3.0, 1.0, 1.1, 1.2, 1.3], 3, False),  # hardly better than one cluster
        ([1.0, 2.0, 3.0], 1, True),
    ],
)
def test_a_natural_number_is_a_bend_of_the_curve(score, k, is_natural):
    assert ChoiceOfK().is_natural(np.array(score), k) is is_natural


def test_alternatives_are_where_the_elbow_curve_slackens():
    """A power law has no elbow; one is put at 3, 7 and 14 each."""
    k = np.arange(1, 21)
    elbows = k**-1.0 * np.prod([np.maximum(1.0, k / e) ** 0.3 for e in (3, 7, 14)], axis=0)

    assert ChoiceOfK().alternatives(elbows) == (3, 7, 14)
    assert ChoiceOfK().alternatives(elbows[:1]) == ()
    assert ChoiceOfK().alternatives(elbows[:2]) == (2,)
    assert ChoiceOfK().alternatives(elbows[:3]) == (2, 3)


@pytest.mark.parametrize(
    ("m", "d", "most"), [(400, 2, 20), (2_000, 10, 20), (50, 10, 2), (10, 1, 2), (10_000, 2, 100)]
)
def test_the_largest_number_is_what_the_sketch_can_serve(m, d, most):
    assert most_clusters(ss.SketchSpec(d, m, 1.0), None) == most


def test_the_noise_is_the_mean_square_distance_between_sketches_of_rows_and_of_their_law():
    rng = np.random.default_rng(2)
    law, spec = rng.normal(size=(2_000, 2)), ss.SketchSpec(2, 300, 1.0)
    true, squares, noises = ss.sketch(law, spec), [], []

    for _ in range(40):
        s = ss.sketch(law[rng.integers(len(law), size=100)], spec)
        misfit = _Misfit(Problem.of(s, 1, None, 0, "test"), ChoiceOfK())
        squares.append(misfit.weights @ np.abs(misfit.zeta - true.z * math.sqrt(300)) ** 2)
        noises.append(misfit.noise())

    # forty squares, each of a few dozen independent parts
    assert np.mean(noises) == pytest.approx(np.mean(squares), rel=0.15)


@pytest.mark.parametrize(
    ("n_clusters", "most", "message"),
    [
        ("auto", 0, "'max_clusters' .* an integer from 1 to 100000"),
        ("auto", "many", "'max_clusters' .* an integer from 1 to 100000"),
        (2, 4, r"must be None unless n_clusters is 'auto'\. Got 4"),
        ("best", None, 'must be "auto" or an integer from 1 to 100000'),
    ],
)
def test_wrong_largest_numbers_are_refused(n_clusters, most, message):
    sketch = ss.sketch(mixture(2, 2), n_clusters=4)

    with pytest.raises(SpecError, match=message):
        ss.decode(sketch, n_clusters=n_clusters, max_clusters=most)
