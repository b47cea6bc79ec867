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
from sketchshift.errors import DataError, SpecError
from sketchshift.sketch.clipped import ClippedFamily

K, DRAWS = 5, 2000


class Rows:
    """Rows, a public plan of them, and what is known of them: centroids, and costs as cells see."""

    def __init__(self):
        self.X = datasets.gaussian_mixture(20_000, 3, K, cluster_std=0.2, seed=4)[0] * 3.0 + 10.0
        self.spec = spec = ss.privacy.plan_public(self.X[:600], K)
        self.raw = ss.sketch(self.X, spec)
        self.good = ss.metrics.lloyd(self.X, K)
        # the rows, moved to the radii of their cells: all are in the ball
        rows = (self.X - spec.rows.center_vector) * spec.rows.per_unit
        table, radii = spec.cells.table.astype(np.float64), ClippedFamily(spec).radii
        labels = np.square(rows[:, None] - table).sum(axis=2).argmin(axis=1)
        offsets = rows - table[labels]
        lengths = np.linalg.norm(offsets, axis=1)
        seen = table[labels] + offsets * np.minimum(1.0, radii[labels] / lengths)[:, None]
        self.seen = spec.rows.center_vector + seen * spec.rows.scale_vector


@pytest.fixture(scope="module")
def rows():
    return Rows()


def redraw(quiet, rng):
    """A release of the same rows with other noise."""
    totals = quiet._totals
    noise = rng.normal(scale=totals.scale, size=totals.vector.shape)
    vector = totals.vector + np.rint(noise).astype(np.int64)
    return replace(quiet, _totals=replace(totals, vector=vector))


@pytest.fixture
def quiet(rows, release, no_noise):
    return release(rows.raw, epsilon=0.5)


@pytest.mark.rates
@pytest.mark.parametrize(("k", "risk"), [(1, 0.3), (K, 0.05)])
def test_bounds_on_given_centroids_fail_as_rarely_as_they_say(rows, quiet, k, risk):
    """With one centroid the cells' cost is the very cost, so that some bounds must fail as well."""
    given = rows.X.mean(axis=0, keepdims=True) if k == 1 else rows.good
    cost, rng, failures = ss.metrics.mse(rows.seen, given), np.random.default_rng(k), 0
    for _ in range(DRAWS):
        noisy = redraw(quiet, rng)
        found = ss.certify(noisy, given, confidence=1.0 - risk, independent=True)
        failures += found.cost_bound < cost

    assert (k == 1) <= failures <= stats.binom.isf(1e-9, DRAWS, risk)


@pytest.mark.parametrize("independent", [False, True])
def test_a_bound_adds_the_quantiles_of_the_noise_to_the_cost(rows, quiet, independent):
    """Of one centroid: four parts of the risk, for squares, sums, numbers of rows, and all rows.

    A spec with a scale for each column bounds by the largest of them.
    """
    told, spec, risk = quiet.cells, rows.spec, 0.1
    widest = spec.replaced(
        rows=replace(spec.rows, scale=(spec.rows.scale / 2, spec.rows.scale, spec.rows.scale / 3))
    )
    other = replace(quiet, spec=widest, fingerprint=widest.fingerprint)
    options = {"confidence": 1.0 - risk, "independent": independent}
    found = ss.certify(other, [spec.rows.center_vector], **options)

    lengths, quarter = np.linalg.norm(told.centers, axis=1), stats.norm.isf(risk / 4)
    parts = told.square_std, 2.0 * told.sum_std * lengths, told.weight_std * lengths**2
    quantiles = quarter, *(stats.chi.isf(risk / 4, n) for n in (told.sums.size, lengths.size))
    noise = np.array(quantiles) @ np.linalg.norm(parts, axis=1)
    if independent:
        noise = stats.norm.isf(0.75 * risk) * np.linalg.norm(parts)
    cost = np.square(rows.seen - spec.rows.center_vector).sum() / spec.rows.scale**2
    fewest = quiet.total_weight - quarter * quiet.count_std
    expected = (cost + noise) / fewest * spec.rows.scale**2

    assert 0.0 <= found.cost_bound / expected - 1.0 < 1e-5


def test_without_noise_a_bound_is_near_the_cost(rows, quiet):
    silent = replace(quiet, _totals=replace(quiet._totals, scale=1.0))

    for independent in (False, True):
        found = ss.certify(silent, rows.good, independent=independent)
        assert 1.0 <= found.cost_bound / ss.metrics.mse(rows.seen, rows.good) < 1.1
        assert found.bounds.sum() == pytest.approx(found.cost_bound)
        assert found.weights.sum() == pytest.approx(1.0)


def test_a_certificate_says_its_confidence(rows, quiet):
    private, raw = (ss.certify(sketch, rows.good) for sketch in (quiet, rows.raw))

    assert (private.confidence, raw.confidence) == (0.95, 1.0)
    assert "with confidence 0.95>" in repr(private)
    assert "confidence" not in repr(raw)


def test_a_confidence_that_is_none_is_refused(rows, quiet):
    for confidence in (0.0, 0.4, 1.0, float("nan"), "sure"):
        with pytest.raises(SpecError, match="'confidence' parameter of certify must be"):
            ss.certify(quiet, rows.good, confidence=confidence)


def test_what_has_no_cells_or_perhaps_no_rows_proves_nothing(rows, quiet):
    waves = replace(quiet, spec=rows.spec.replaced(cells=None))
    vector = np.append(quiet._totals.vector[:-1], 1)
    few = replace(quiet, _totals=replace(quiet._totals, vector=vector))

    for sketch, words in ((waves, "only sketches with cells"), (few, "nothing to prove: with")):
        with pytest.raises(DataError, match=words):
            ss.certify(sketch, rows.good)
