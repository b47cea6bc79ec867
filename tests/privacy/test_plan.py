"""Plans that may be published."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.data import datasets
from sketchshift.errors import DataError, PrivacyError, PrivacyWarning, SpecError
from sketchshift.privacy import mechanism
from sketchshift.privacy.mechanism import rho_of

pytestmark = pytest.mark.usefixtures("seeded_noise")


@pytest.fixture(scope="module")
def X():
    return datasets.gaussian_mixture(100_000, 3, 4, seed=1)[0] * 7.0 + 30.0


def spread(X):
    return math.sqrt(X.var(axis=0).sum())


def test_a_private_plan_finds_center_and_spread_in_a_ball_far_too_large_for_what_was_asked(X):
    """At epsilon 0.1 the noise in the last mean is a few hundredths of the spread."""
    r0 = spread(X)
    spec = ss.privacy.plan(X, X.mean(axis=0) + r0, 100.0 * r0, 4, 0.1, 1e-8)

    assert np.linalg.norm(np.array(spec.rows.center) - X.mean(axis=0)) < 0.3 * r0
    assert 0.75 < spec.rows.scale / r0 < 1.35
    allowed = rho_of(0.1, 1e-8)
    shares = [(c.purpose, pytest.approx(c.rho / allowed, rel=1e-3)) for c in spec.rows.ball.charges]
    assert shares == [("plan: mean", 0.25), ("plan: radii", 0.5), ("plan: mean", 0.25)]
    assert sum(c.rho for c in spec.rows.ball.charges) <= allowed


def test_without_noise_the_numbers_are_those_of_the_rows(X, rng, no_noise):
    """Bins are a quarter of an octave wide: spread and tail are right to a few per cent."""
    rows = X * np.exp(0.5 * rng.normal(size=(len(X), 1)))  # with a tail
    center, r0 = rows.mean(axis=0), spread(rows)
    ratios = np.linalg.norm(rows - center, axis=1) / r0
    spec = ss.privacy.plan(rows, center, 100 * r0, 4, 1.0, 1e-8)

    assert_allclose(spec.rows.center, center, atol=0.1 * r0)  # far rows are clipped
    assert spec.rows.scale == pytest.approx(r0, rel=0.05)
    tail = math.sqrt(0.5 + 0.5 * np.mean(ratios**4))
    assert spec.bandwidths[1] == pytest.approx(0.8 * 4 ** (-1 / 3) * tail, rel=0.1)


@pytest.mark.parametrize("row", [[1e9, 0, 0], [30, 30, 30], [np.nan, 1, 2], [1e308, -1e308, 0]])
def test_one_row_moves_the_sums_of_a_plan_by_no_more_than_their_sensitivity(X, row, monkeypatch):
    """Exact integers of all looks, with and without the row; the same first mean for both."""
    seen = []

    def draw(look, vector):
        seen.append(vector.astype(object))
        return np.zeros_like(vector) + 10**9

    monkeypatch.setattr(mechanism.Look, "draw", draw)
    for rows in (X[:1000], np.vstack([X[:500], [row], X[500:1000]])):
        spec = ss.privacy.plan(rows, [30.0] * 3, 20.0, 4, 1.0, 1e-8)

    for a, b, charge in zip(seen[:3], seen[3:], spec.rows.ball.charges, strict=True):
        assert sum((b - a) ** 2) <= charge.sensitivity**2


def test_a_plan_that_cannot_be_made_costs_nothing(X, tmp_path):
    path = tmp_path / "broken.csv"
    path.write_text("a,b,c\n" + "1,2,3\n" * 1000 + "1,x,3\n")
    account = ss.privacy.Account(tmp_path / "people.json", epsilon=1, delta=1e-8)
    good = {"rows": X, "n_clusters": 4, "center": [30.0] * 3, "epsilon": 0.6}

    for changes, error in (
        ({"sketch_size": 0}, SpecError),
        ({"center": [0.0, 0.0]}, DataError),
        ({"rows": path}, DataError),
        ({"rows": iter([X])}, DataError),
        ({"epsilon": 1.1}, PrivacyError),
    ):
        with pytest.raises(error):
            ss.privacy.plan(radius=50.0, delta=1e-8, account=account, **good | changes)
    assert account.spent == 0.0


def test_a_plan_is_charged_before_it_says_how_many_rows_there_are(X, tmp_path):
    """A warning may be an exception: what it tells is then paid for, too."""
    account = ss.privacy.Account(tmp_path / "people.json", epsilon=1, delta=1e-8)

    with pytest.raises(PrivacyWarning, match="too few to plan on"):
        ss.privacy.plan(X[:20], [0.0] * 3, 50.0, 4, 0.6, 1e-8, account=account)
    assert account.spent == pytest.approx(0.6, abs=1e-3)


def test_a_plan_on_too_few_rows_falls_back_on_the_ball(X, no_noise):
    with pytest.warns(PrivacyWarning, match="the plan is made from center"):
        spec = ss.privacy.plan(X[:20], [0.0] * 3, 50.0, 4, 0.1, 1e-8)

    assert spec.rows.center == (0.0, 0.0, 0.0)


def test_a_center_that_is_none_is_refused():
    for center in (3.0, [], [math.nan, 0.0], [[0.0]]):
        with pytest.raises(SpecError, match="'center' parameter of plan_declared"):
            ss.privacy.plan_declared(center, 1.0, 3)


def test_a_declared_plan_says_what_was_declared_with_a_ball_within_reach():
    spec = ss.privacy.plan_declared([1.0, 2.0], 3.0, 5, radius=60.0, columns=["a", "b"])
    huge = ss.privacy.plan_declared([0.0, 0.0], 1.0, 5, radius=1e12)

    assert (spec.rows.center, spec.rows.scale, spec.rows.names) == ((1.0, 2.0), 3.0, ("a", "b"))
    assert (spec.rows.ball.kind, spec.rows.ball.radius) == ("declared", 20.0)
    assert huge.rows.ball.radius < huge.reach
    ss.Sketcher(huge)
