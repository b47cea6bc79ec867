"""Private sketches compared: the noise of their releases is part of the law."""

from __future__ import annotations

import numpy as np
import pytest
from drift_rates import FeatureTable
from numpy.testing import assert_allclose
from scipy.stats import binom

import sketchshift as ss
from sketchshift.decoders.shares import ClusterSketches
from sketchshift.drift.compare import Population
from sketchshift.drift.noise import AddedNoise, NullLaw
from sketchshift.errors import IncompatibleSketchesError, SpecError
from sketchshift.features import Charge
from sketchshift.privacy.ledger import Ledger
from sketchshift.privacy.release import count_factor, release_vector, sensitivity
from sketchshift.privacy.sketch import NoisyTotals, PrivateSketch

SPEC = ss.privacy.plan_declared(center=[2.0, 2.0], spread=4.0, n_clusters=4)
KAPPA = 5.39
"""Noise in units of the sensitivity: epsilon 1 at delta 1e-8."""


def released(raw, rng, kappa=KAPPA):
    """A release with noise from a seed, which OpenDP does not take."""
    m = raw.spec.sketch_size
    scale = kappa * sensitivity(raw.spec)
    noise = np.rint(rng.normal(scale=scale, size=2 * m + 1)).astype(np.int64)
    vector = release_vector(raw) + noise
    charge = Charge(
        rng.bytes(16).hex(), "release", 0.5 / kappa**2, 1e-8, float(sensitivity(raw.spec)), scale,
        "add_remove", 1, "numpy",
    )  # fmt: skip
    totals = NoisyTotals(vector, raw._totals.layout, count_factor(raw.spec), scale)
    return PrivateSketch(raw.spec, raw.fingerprint, totals, Ledger.of((charge,)))


def noisy_z(table, n, times, side, rng):
    """Releases of samples, as floats: real and imaginary parts side by side."""
    z, m = table.z(table.draw(n, times, rng)), side.spec.sketch_size
    waves = rng.normal(scale=side.noise_std * side.total_weight, size=z.shape) / np.sqrt(m)
    count = n + rng.normal(scale=side.count_std, size=(times, 1))
    return (n * z + waves) / count


@pytest.mark.rates
def test_false_alarms_are_as_many_as_asked_for(blobs):
    """With so few rows the release is most of the noise."""
    counts, repetitions, rng = (2_000, 3_000), 1_000, np.random.default_rng(7)
    X = blobs.rows(10_000)
    table = FeatureTable.of(X, SPEC)
    a, b = (released(ss.sketch(X[rng.integers(len(X), size=n)], SPEC), rng) for n in counts)
    noise = Population.of(a + b, None, 0, "compare").noise
    law = noise.null(a, b, counts)

    zs = [noisy_z(table, n, repetitions, side, rng) for n, side in zip(counts, (a, b), strict=True)]
    squared = ((zs[0] - zs[1]) ** 2).sum(axis=1)

    assert law.mean == pytest.approx(squared.mean(), rel=0.1)
    for level in (0.1, 0.01):
        alarms = int((squared > law.quantile(level)).sum())
        assert binom.ppf(1e-4, repetitions, level / 2) <= alarms
        assert alarms <= binom.isf(1e-4, repetitions, 1.3 * level)


def test_the_law_of_raw_sketches_alone_would_raise_alarms_without_drift(blobs):
    """What the added terms are for: most of the distance is the noise of the releases."""
    rng = np.random.default_rng(3)
    a, b = (released(blobs.sketch(n, SPEC, seed=n), rng) for n in (2_000, 3_000))

    found = ss.compare(a, b, n_clusters=None)

    noise = Population.of(a + b, None, 0, "compare").noise
    plain = NullLaw.of((1 / 2_000 + 1 / 3_000) * noise.eigenvalues).quantile(0.01)
    assert not found.drifted
    assert found.bound is None
    assert found.distance**2 > plain


def test_clusters_that_grew_are_found_and_moves_are_not_told(blobs):
    rng = np.random.default_rng(5)
    a, b = (
        released(blobs.sketch(20_000, SPEC, seed=1, shares=shares), rng)
        for shares in ((0.5, 0.3, 0.2), (0.4, 0.4, 0.2))
    )

    found = ss.compare(a, b, n_clusters=3)

    assert found.drifted
    assert sorted(cluster.verdict for cluster in found.clusters) == ["grew", "same", "shrank"]
    assert all(np.isnan(cluster.move) for cluster in found.clusters)


@pytest.mark.rates
def test_noise_in_shares_is_that_of_many_releases(blobs):
    """300 pairs of releases of one raw sketch: a deviation is known to 4 %, and 5 are taken."""
    rng = np.random.default_rng(11)
    raw = blobs.sketch(20_000, SPEC)
    decoding = ss.decode(raw, n_clusters=3)
    atoms = ClusterSketches.of(decoding, SPEC)
    pairs = [(released(raw, rng), released(raw, rng)) for _ in range(300)]

    changes = [ss.decoders.shares(decoding, a) - ss.decoders.shares(decoding, b) for a, b in pairs]

    expected = np.sqrt(AddedNoise.of(*pairs[0]).share_variances(atoms))
    assert_allclose(np.std(changes, axis=0), expected, rtol=0.2)


@pytest.fixture(scope="module")
def days(blobs):
    """Four days, released; on the last one the third cluster has grown."""
    rng = np.random.default_rng(17)
    shares = [(0.5, 0.3, 0.2)] * 3 + [(0.3, 0.3, 0.4)]
    raw = [blobs.sketch(4_000, SPEC, seed=i, shares=each) for i, each in enumerate(shares)]
    return {f"day {i}": released(sketch, rng) for i, sketch in enumerate(raw)}


def test_the_last_slice_beside_all_earlier_ones_is_the_comparison_with_their_sum(days):
    found = ss.drift.watch(days, n_clusters=None, by="day")

    *earlier, last = days.values()
    expected = ss.compare(sum(earlier), last, n_clusters=None, false_alarm=0.01 / 6)
    assert found.slices[3].earlier.distance == expected.distance
    assert found.slices[3].earlier.threshold == pytest.approx(expected.threshold, rel=1e-12)
    assert found.slices[3].earlier.p_value == pytest.approx(expected.p_value, rel=1e-9)
    assert found.slices[1].before == found.slices[1].earlier
    assert found.whole.ledger == sum(days.values()).ledger


def test_a_jump_is_seen_through_the_noise_and_shares_have_its_errors(days):
    found = ss.drift.watch(days, n_clusters=3)

    assert [each.key for each in found.alarms] == ["day 3"]
    grown = int(np.linalg.norm(found.decoding.centroids - [0.0, 6.0], axis=1).argmin())
    shares, errors = (
        np.array([getattr(each, name)[grown] for each in found.slices])
        for name in ("shares", "share_errors")
    )
    assert np.abs(shares - [0.2, 0.2, 0.2, 0.4]).max() < 4 * errors.max()
    noise = AddedNoise.of(days["day 0"]).share_variances(ClusterSketches.of(found.decoding, SPEC))
    assert errors[0] ** 2 > noise[grown] > 0.0


def test_a_slice_that_noise_leaves_nothing_of_is_stepped_over(days):
    """Noise may leave a part of a row, which rounds to none, or less than nothing."""
    nobody, rng = ss.sketch(np.zeros((0, 2)), SPEC), np.random.default_rng(1)
    empty = [released(nobody, rng, 0.01) for _ in range(9)]
    below, above = (next(s for s in empty if (s.total_weight > 0) == sign) for sign in (0, 1))
    a, b = list(days.values())[:2]

    found = ss.drift.watch({0: a, 1: below, 2: above, 3: b}, n_clusters=2)

    for each in found.slices[1:3]:
        assert each.before is each.earlier is None
        assert np.isnan(each.shares).all()
    assert found.slices[3].before.distance == np.linalg.norm(a.z - b.z)
    assert ss.compare(a, above, n_clusters=None).counts[1] == 1.0


def test_what_cannot_be_watched_or_compared_is_refused(days, blobs):
    a, b = list(days.values())[:2]
    raw = blobs.sketch(100, SPEC)

    for slices, error, words in (
        ({0: a, 1: b, 2: a}, IncompatibleSketchesError, "both hold the release"),
        ({0: a, 1: raw}, IncompatibleSketchesError, "a raw sketch and a private one"),
        ([a, b], SpecError, "or a mapping of times to sketches"),
    ):
        with pytest.raises(error, match=words):
            ss.drift.watch(slices)
    for other, words in ((raw, "a raw sketch and a private one"), (a, "both hold the release")):
        with pytest.raises(IncompatibleSketchesError, match=words):
            ss.compare(other, a)
