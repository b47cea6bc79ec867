"""What a release proves of centroids, at the confidence that it states.

Noise is drawn many times by NumPy at the scale of the release, at which rounded normal numbers and
OpenDP's discrete ones are alike to six digits. The number of bounds that fail is compared with the
risk: more failures than chance allows at 1e-9 raise the alarm.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import sketchshift as ss
from sketchshift.data import datasets
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch.cells import ClippedPart

K, DRAWS = 5, 2000


class Rows:
    """Rows, a public plan of them, and what is known of them: centroids, and costs as cells see."""

    def __init__(self) -> None:
        self.X = datasets.gaussian_mixture(20_000, 3, K, cluster_std=0.2, seed=4)[0] * 3.0 + 10.0
        self.spec = ss.privacy.plan_public(self.X[:600], K)
        self.raw = ss.sketch(self.X, self.spec)
        self.good = ss.metrics.lloyd(self.X, K)
        self.seen = self.moved()

    def moved(self) -> np.ndarray:
        """The rows, moved to the ball and to the radii of their cells."""
        spec = self.spec
        rows = (self.X - spec.center_vector) * spec.per_unit
        assert np.linalg.norm(rows, axis=1).max() < spec.origin.radius
        table, radii = spec.cells.table.astype(np.float64), ClippedPart(spec).radii
        labels = np.square(rows[:, None] - table).sum(axis=2).argmin(axis=1)
        offsets = rows - table[labels]
        lengths = np.linalg.norm(offsets, axis=1)
        seen = table[labels] + offsets * np.minimum(1.0, radii[labels] / lengths)[:, None]
        return spec.center_vector + seen * spec.scale_vector


@pytest.fixture(scope="module")
def rows() -> Rows:
    return Rows()


def redraw(released: PrivateSketch, quiet: PrivateSketch, rng) -> PrivateSketch:
    """A release of the same rows with other noise."""
    totals, scale = quiet._totals, released._totals.scale

    def add_noise(numbers: np.ndarray) -> np.ndarray:
        return numbers + np.rint(rng.normal(scale=scale, size=numbers.shape)).astype(np.int64)

    parts = {name: add_noise(numbers) for name, numbers in totals.parts.items()}
    count = int(add_noise(np.array(totals.scaled_count)))
    return replace(released, _totals=replace(totals, parts=parts, scaled_count=count))


@pytest.fixture
def quiet(rows, release, no_noise) -> PrivateSketch:
    return release(rows.raw, epsilon=0.5)


def n_failures(quiet, bounded, seed: int, n: int = DRAWS) -> int:
    """How often the bound that ``bounded`` gives of a release, with its cost, is too low."""
    rng = np.random.default_rng(seed)
    pairs = (bounded(redraw(quiet, quiet, rng)) for _ in range(n))
    return sum(bound < cost for bound, cost in pairs)


def most_failures(risk: float, n: int = DRAWS) -> float:
    return float(stats.binom.isf(1e-9, n, risk))


@pytest.mark.parametrize(("k", "risk"), [(1, 0.3), (1, 0.05), (K, 0.05)])
def test_bounds_on_given_centroids_fail_as_rarely_as_they_say(rows, quiet, k, risk):
    """With one centroid the cells' cost is the very cost, so that some bounds must fail as well."""
    given = rows.X.mean(axis=0, keepdims=True) if k == 1 else rows.good
    cost = ss.metrics.mse(rows.seen, given)

    def bounded(sketch):
        found = ss.certify(sketch, given, confidence=1.0 - risk, independent=True)
        return found.cost_bound, cost

    failures = n_failures(quiet, bounded, seed=k)

    assert failures <= most_failures(risk)
    if k == 1:
        assert failures > 0


@pytest.mark.slow
def test_bounds_hold_for_centroids_that_noise_has_chosen(rows, quiet):
    """Of many candidates, those that look best in this release: they profit from its noise."""
    rng = np.random.default_rng(0)
    candidates = [rows.good + rng.normal(size=rows.good.shape) * s for s in rng.uniform(0, 3.0, 30)]
    costs = [ss.metrics.mse(rows.seen, c) for c in candidates]

    def bounded(sketch):
        bounds = [ss.certify(sketch, c).cost_bound for c in candidates]
        return min((b / c, 1.0) for b, c in zip(bounds, costs, strict=True))

    assert n_failures(quiet, bounded, seed=3, n=200) <= most_failures(0.05, 200)


def test_bounds_hold_for_centroids_that_were_decoded(rows, quiet):
    def bounded(sketch):
        centroids = ss.decode(sketch, K).centroids
        return ss.certify(sketch, centroids).cost_bound, ss.metrics.mse(rows.seen, centroids)

    assert n_failures(quiet, bounded, seed=4, n=20) <= most_failures(0.05, 20)


def test_without_noise_a_bound_is_near_the_cost(rows, quiet):
    silent = replace(quiet, _totals=replace(quiet._totals, scale=1.0))

    for independent in (False, True):
        found = ss.certify(silent, rows.good, independent=independent)
        assert 1.0 <= found.cost_bound / ss.metrics.mse(rows.seen, rows.good) < 1.1
        assert found.confidence == 0.95
        assert found.bounds.sum() == pytest.approx(found.cost_bound)
        assert found.weights.sum() == pytest.approx(1.0)


def test_more_confidence_and_more_noise_cost(rows, release, quiet):
    bounds = [ss.certify(quiet, rows.good, confidence=c).cost_bound for c in (0.5, 0.95, 0.999)]
    assert bounds == sorted(bounds)
    assert ss.certify(quiet, rows.good, independent=True).cost_bound < bounds[1]
    louder = replace(quiet, _totals=replace(quiet._totals, scale=2.0 * quiet._totals.scale))
    assert ss.certify(louder, rows.good).cost_bound > bounds[1]


def test_a_bound_is_of_the_units_of_the_data(rows, quiet):
    """A spec with a scale for each column bounds by the largest of them."""
    widest = replace(rows.spec, scale=(rows.spec.scale, rows.spec.scale / 2, rows.spec.scale / 3))
    raw = ss.sketch(
        rows.spec.center_vector + (rows.X - rows.spec.center_vector) / [1, 2, 3], widest
    )
    other = replace(quiet, spec=widest, fingerprint=widest.fingerprint)
    middle = rows.spec.center_vector

    np.testing.assert_array_equal(
        raw._totals.parts["clipped"], rows.raw._totals.parts["clipped"], strict=True
    )
    a, b = (ss.certify(s, [middle]).cost_bound for s in (quiet, other))
    assert a == pytest.approx(b)


def test_a_certificate_says_its_confidence(rows, quiet):
    assert "with confidence 0.9>" in repr(ss.certify(quiet, rows.good, confidence=0.9))
    assert ss.certify(rows.raw, rows.good).confidence == 1.0
    assert "confidence" not in repr(ss.certify(rows.raw, rows.good))


@pytest.mark.parametrize("confidence", [0.0, 0.4, 1.0, float("nan"), "sure"])
def test_a_confidence_that_is_none_is_refused(rows, quiet, confidence):
    with pytest.raises(ss.errors.SpecError, match="The 'confidence' parameter of certify must be"):
        ss.certify(quiet, rows.good, confidence=confidence)


def test_a_release_without_cells_proves_nothing(rows, release):
    plain = release(ss.sketch(rows.X, ss.privacy.plan_public(rows.X[:600], K, cells=False)))

    with pytest.raises(ss.errors.DataError, match=r"only sketches with cells prove anything"):
        ss.certify(plain, rows.good)


def test_rows_that_may_be_none_prove_nothing(rows, quiet):
    few = replace(quiet, _totals=replace(quiet._totals, scaled_count=1))

    with pytest.raises(ss.errors.DataError, match=r"nothing to prove: with the noise .* no rows"):
        ss.certify(few, rows.good)
