"""Plans for drift alone: small slices, a measured law, rows typical of a change."""

from __future__ import annotations

import dataclasses
import math
import sys

import numpy as np
import pytest
from scipy.stats import chi2

import sketchshift as ss
from sketchshift.decoders.turnkey import Turnkey
from sketchshift.drift.noise import NullLaw
from sketchshift.errors import DataError, PlanWarning, SketchshiftError, SpecError
from sketchshift.features.plan import measure_spectrum

D, SIZE = 80, 200


def rows_of(n, seed=0, shift=0.0):
    """Four clusters in 80 columns."""
    rng = np.random.default_rng([seed, 80])
    centers = np.random.default_rng(1).normal(size=(4, D))
    return centers[rng.integers(0, 4, n)] + rng.normal(size=(n, D)) + shift


@pytest.fixture(scope="module")
def spec():
    return ss.drift.plan_drift(rows_of(4096, seed=99), sketch_size=SIZE)


@pytest.fixture(scope="module")
def pair(spec):
    """Two sketches; fifty rows of the second are of a new cluster."""
    later = rows_of(1000, seed=2)
    later[100:150] += 2.0
    return ss.sketch(rows_of(1000, seed=1), spec), ss.sketch(later, spec)


def phi(X, spec):
    """Features as the theory has them, shape (n, m)."""
    turns = spec.frequencies.turns.astype(np.float64)
    phases = 2.0 * np.pi * ((X - spec.rows.center_vector) / spec.rows.scale_vector @ turns)
    return np.exp(1j * phases) / math.sqrt(spec.sketch_size)


# The plan.


def test_a_slice_has_less_than_16_kilobytes_at_any_number_of_columns(rng):
    X = rng.normal(size=(300, 1536)).astype(np.float32)
    spec = ss.drift.plan_drift(X)

    assert (spec.sketch_size, spec.spread) == (960, None)
    assert ss.sketch(X, spec).nbytes <= 16_000


def test_a_plan_does_not_depend_on_the_order_of_rows_and_can_be_written():
    X = rows_of(500)
    spec = ss.drift.plan_drift(X, sketch_size=100, metric="cosine")

    assert ss.drift.plan_drift(X[::-1], sketch_size=100, metric="cosine") == spec
    assert ss.SketchSpec.from_json(spec.to_json()) == spec
    assert ss.sketch(4.0 * X, spec) == ss.sketch(X, spec)
    assert spec.prefix(50).noise is None


def test_a_collection_has_the_plan_of_its_rows():
    dask = pytest.importorskip("dask.array")
    X = rows_of(900)
    parts = dask.from_array(X, chunks=(250, D))

    assert ss.drift.plan_drift(parts, sketch_size=50) == ss.drift.plan_drift(X, sketch_size=50)


def test_the_bandwidth_is_0_7_median_distances(spec):
    X = rows_of(2000, seed=5)
    median = np.median(np.linalg.norm(X[:1000] - X[1000:], axis=1))

    assert spec.bandwidths[0] * spec.rows.scale == pytest.approx(0.7 * median, rel=0.02)


def test_a_center_is_kept_only_where_phases_need_it():
    assert ss.drift.plan_drift(rows_of(200), sketch_size=50).rows.center is None
    far = ss.drift.plan_drift(rows_of(200) + 1e3, sketch_size=50)

    assert np.abs(far.rows.center_vector - 1e3).max() < 10.0
    assert np.isfinite(far.noise.freedom)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.eye(99, D), "99 rows cannot tell"),
        (np.ones((200, D)), "are equal, so nothing is known about distances"),
    ],
)
def test_rows_that_tell_nothing_are_refused(rows, words):
    with pytest.raises(DataError, match=words):
        ss.drift.plan_drift(rows)


# The law without drift.


@pytest.mark.parametrize(
    "shares",
    [np.ones(400), np.append(np.ones(400), 40.0), 0.9 ** np.arange(100), 1 / np.arange(1.0, 300.0)],
    ids=["equal", "a large one", "geometric", "harmonic"],
)
def test_the_spectrum_of_a_sample_has_the_squares_of_the_truth(shares, rng):
    """Eigenvalues of the sample itself would have up to 2.3 times as much, at 300 rows."""
    shares = np.sort(shares / shares.sum())[::-1]
    rows = rng.normal(size=(4096, len(shares))) * np.sqrt(shares)
    for n, of_squares, of_first in ((300, 0.2, 0.3), (4096, 0.05, 0.1)):
        found = measure_spectrum(0.1 * rows[:n])
        squares = np.square(found.leading).sum() + found.rest**2 / found.freedom

        assert squares == pytest.approx(np.square(shares).sum(), rel=of_squares)
        assert found.trace == pytest.approx(0.01, rel=0.1)
        if shares[0] > 0.05:
            assert found.leading[0] == pytest.approx(shares[0], rel=of_first)


def test_the_measured_law_of_equal_weights_is_the_chi_square_law():
    law = NullLaw.of(np.array([0.5, 0.5]), np.array([20.0, 5.0]), is_measured=True).scaled(1.0, 3.0)
    for p in (0.5, 0.01, 1e-5):
        x = 3.0 + 0.5 * chi2.isf(p, 25)
        assert law.quantile(p) == pytest.approx(x, rel=1e-4)
        assert law.tail(x) == pytest.approx(p, rel=1e-3)


@pytest.mark.parametrize("largest", [0.0086, 0.1])
def test_the_measured_law_agrees_with_draws(largest, rng):
    """The saddlepoint approximation is off by up to 11 % here; 4 standard errors are 4 %."""
    weights, freedoms = np.array([largest, (1.0 - largest) / 1400]), np.array([1.0, 1400.0])
    drawn = rng.chisquare(freedoms, (10**6, 2)) @ weights
    law = NullLaw.of(weights, freedoms, is_measured=True)

    for p in (0.05, 0.01):
        assert (drawn > law.quantile(p)).mean() == pytest.approx(p, rel=4 / math.sqrt(p * 10**6))


def test_far_into_the_tail_the_measured_law_is_the_approximation():
    weights, freedoms = np.array([0.1, 0.001]), np.array([1.0, 900.0])
    measured, other = (NullLaw.of(weights, freedoms, is_measured=is_it) for is_it in (True, False))

    assert measured.quantile(1e-9) == pytest.approx(other.quantile(1e-9), rel=1e-12)


def test_the_p_value_is_that_of_permutations(spec, rng):
    """Of the same distance, between rows that are shuffled: 2000 times, errors of 0.01."""
    X = np.concatenate([rows_of(300, seed=3), rows_of(400, seed=4, shift=0.02)])
    waves, n = phi(X, spec), 300
    found = ss.compare(*(ss.sketch(part, spec) for part in (X[:n], X[n:])))
    larger = 0
    for _ in range(2000):
        order = rng.permutation(len(X))
        change = waves[order[:n]].mean(axis=0) - waves[order[n:]].mean(axis=0)
        larger += np.linalg.norm(change) >= found.distance

    assert 0.001 < found.p_value < 0.7
    assert found.p_value == pytest.approx(larger / 2000, abs=0.03)


def test_a_comparison_needs_no_decoder_and_no_frequencies(pair, monkeypatch):
    a, b = (ss.Sketch.from_bytes(side.to_bytes()) for side in pair)
    monkeypatch.setattr(Turnkey, "fit_problem", None)
    monkeypatch.setattr(ss.Sketch, "frequencies", None)
    found = ss.compare(a, b)

    assert (found.drifted, found.clusters, found.decoding) == (True, (), None)
    assert ss.drift.watch({"monday": a, "tuesday": b}, false_alarm=0.1, effect=0.0).alarms


def test_a_few_or_equal_rows_are_no_reason_to_fail(spec):
    for n in (1, 2, 3):
        found = ss.compare(ss.sketch(rows_of(n), spec), ss.sketch(rows_of(50, seed=1), spec))
        assert 0.0 <= found.p_value <= 1.0
        assert found.threshold > 0.0
    one = ss.sketch(np.repeat(rows_of(1), 600, axis=0), spec)
    with pytest.warns(PlanWarning, match="vary otherwise"):
        assert not ss.compare(one, one).drifted


def test_data_that_the_plan_has_not_seen_is_told_of(spec, pair):
    first, second = (ss.sketch(3.0 * rows_of(600, seed=i), spec) for i in (5, 6))
    with pytest.warns(PlanWarning, match="Plan anew on recent rows"):
        ss.compare(first, second)
    ss.compare(pair[0], first)  # only one side is other data: that is drift, and no warning


# Rows that are typical of the change.


def test_scores_are_the_witness_function(spec, pair):
    a, b = pair
    X = rows_of(300, seed=7)

    expected = (phi(X, spec).conj() @ (b.z - a.z)).real
    assert ss.drift.score_rows(a, b, X) == pytest.approx(expected, abs=1e-7)
    assert ss.drift.score_rows(b, a, X) == pytest.approx(-expected, abs=1e-7)


def test_rows_without_a_score_are_nan_and_the_others_do_not_change(pair):
    X = rows_of(10)
    expected = ss.drift.score_rows(*pair, X)
    X[3, 5], X[7] = np.nan, 1e30
    expected[[3, 7]] = np.nan

    found = ss.drift.score_rows(*pair, iter(np.array_split(X, 3)))
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_scores_of_sketches_with_cells_and_axes_follow_their_waves(metric):
    X = rows_of(3000)
    spec = ss.plan(X, n_clusters=3, metric=metric)
    a, b, *alone = (ss.sketch(rows, spec) for rows in (X, X[:50], X[:1], X[1:2]))

    expected = [np.vdot(one.z, b.z - a.z).real for one in alone]
    assert ss.drift.score_rows(a, b, X[:2]) == pytest.approx(expected, abs=1e-5)


def test_rows_of_other_columns_are_refused(pair):
    with pytest.raises(DataError, match="has 3 columns, and the sketches have 80"):
        ss.drift.score_rows(*pair, np.ones((5, 3)))
    with pytest.raises(SketchshiftError, match="before"):
        ss.drift.score_rows("a.sketch", pair[1], np.ones((5, D)))


# Wide sketches without such a plan.


def test_clusters_of_wide_sketches_wait_until_asked_for(blobs, monkeypatch):
    pair = [blobs.sketch(3_000, seed=i) for i in (1, 2)]
    eager = ss.compare(*pair, n_clusters=3)
    monkeypatch.setattr(sys.modules["sketchshift.drift.compare"], "WIDE", 1)
    lazy = ss.compare(*pair, n_clusters=3)

    assert "decoding" not in vars(lazy._population)
    assert lazy.distance == eager.distance
    assert lazy.threshold == pytest.approx(eager.threshold, rel=0.1)
    assert lazy.clusters[1].share_b == pytest.approx(eager.clusters[1].share_b)


def test_what_is_no_spectrum_is_refused(spec):
    for name, value in (
        ("leading", (0.1, 0.2)),
        ("leading", (0.9, 0.2)),
        ("leading", 0.1),
        ("freedom", 0.5),
    ):
        with pytest.raises(SpecError):
            dataclasses.replace(spec.noise, **{name: value})
