"""Two sketches: their distance, its threshold, and what became of the clusters."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.drift.compare import compare
from sketchshift.errors import DataError, IncompatibleSketchesError, SpecError

PLAIN = ss.SketchSpec(2, 80, 1.0)


def verdicts(found):
    return [cluster.verdict for cluster in found.clusters]


def test_the_distance_is_the_mmd_of_all_pairs_of_rows(blobs):
    """MMD^2 = mean k(x, x') + mean k(y, y') - 2 mean k(x, y), with the kernel of the spec."""
    X, Y = blobs.rows(60, seed=1), blobs.rows(40, seed=2)
    omega = 2 * np.pi * PLAIN.frequencies.turns.astype(float)

    def mean_kernel(A, B):
        return np.cos((A[:, None] - B) @ omega).mean()

    found = compare(ss.sketch(X, PLAIN), ss.sketch(Y, PLAIN), n_clusters=None)

    squared = mean_kernel(X, X) + mean_kernel(Y, Y) - 2 * mean_kernel(X, Y)
    assert found.distance**2 == pytest.approx(squared, abs=1e-6)
    assert (found.clusters, found.decoding) == ((), None)


def test_samples_of_one_population_do_not_drift(blobs):
    """The number of clusters is chosen if it is not given."""
    found = compare(blobs.sketch(3_000, seed=1), blobs.sketch(2_000, seed=2))

    assert not found.drifted
    assert found.p_value > found.false_alarm == 0.01
    assert abs(found.excess) < found.threshold**2
    assert verdicts(found) == ["same"] * 3
    assert found.counts == (3_000, 2_000)


def test_shares_that_changed_are_named_and_the_order_of_the_two_is_a_sign(blobs):
    pair = blobs.sketch(3_000, seed=1), blobs.sketch(3_000, shares=(0.4, 0.3, 0.3), seed=2)

    found, back = (compare(*both, n_clusters=3) for both in (pair, pair[::-1]))

    assert found.drifted
    assert found.p_value < 1e-6
    assert verdicts(found) == ["shrank", "same", "grew"]
    for name in ("distance", "p_value", "threshold"):
        assert getattr(found, name) == getattr(back, name)
    for one, other, change in zip(found.clusters, back.clusters, (-0.1, 0.0, 0.1), strict=True):
        assert one.change == pytest.approx(change, abs=4 * one.standard_error)
        binomial = math.sqrt(one.share_a * (1 - one.share_a) / 1_500)  # 2 p (1 - p) / 3,000
        assert one.standard_error == pytest.approx(binomial, rel=0.1)
        assert (one.change, one.move) == (-other.change, other.move)


def test_a_cluster_that_moved_is_named_with_how_far(blobs):
    a, b = blobs.sketch(4_000, seed=1), blobs.sketch(4_000, seed=2, shift=(0.9, 0.0))

    found = compare(a, b, n_clusters=3)

    assert found.drifted
    assert verdicts(found) == ["same", "same", "moved"]
    cluster = found.clusters[2]
    way = cluster.centroid_b - cluster.centroid_a
    assert_allclose(way, [0.9, 0.0], atol=0.2)
    assert cluster.move == pytest.approx(np.linalg.norm(way), abs=0.2)
    assert cluster.width == pytest.approx(math.sqrt(2), rel=0.2)
    assert cluster.relative_move == pytest.approx(cluster.move / cluster.width)


def test_a_sketch_has_no_distance_from_itself(blobs):
    a = blobs.sketch(500)

    found = compare(a, a)

    assert (found.distance, found.p_value, found.drifted) == (0.0, 1.0, False)
    assert {(cluster.verdict, cluster.change) for cluster in found.clusters} == {("same", 0.0)}


@pytest.mark.parametrize("spec", [PLAIN, None], ids=["plain", "planned"])
@pytest.mark.parametrize("counts", [(1, 1), (1, 5), (3, 400)])
def test_a_few_rows_are_no_reason_to_fail(blobs, counts, spec):
    found = compare(*(blobs.sketch(n, spec, seed=n) for n in counts))

    assert 0.0 < found.p_value <= 1.0
    assert np.isfinite(found.threshold)


@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_rows_that_are_all_equal_differ_only_if_the_rows_do(blobs):
    one, other = (ss.sketch(np.full((200, 2), value), blobs.spec) for value in (1.0, 2.0))

    assert verdicts(compare(one, one)) == ["same"]
    assert compare(one, other).drifted


def test_a_bound_holds_for_every_distribution_without_weights(blobs):
    """Gretton et al. 2012, corollary 9, with K = 1 and m = n."""
    X, b = blobs.rows(500, seed=1), blobs.sketch(500, PLAIN, seed=2)
    weights = np.linspace(0.5, 1.0, 500)
    found, weighted = (
        compare(a, b, n_clusters=None, false_alarm=0.05)
        for a in (ss.sketch(X, PLAIN), ss.sketch(X, PLAIN, sample_weight=weights))
    )

    assert found.bound == pytest.approx(math.sqrt(2 / 500) * (1 + math.sqrt(2 * math.log(20))))
    assert found.bound > found.threshold
    assert weighted.bound is None


def test_the_threshold_goes_with_the_root_of_the_counts_and_falls_with_the_rate(blobs):
    pair = blobs.sketch(400, seed=1), blobs.sketch(400, seed=2)

    found, fewer, strict = (
        compare(*pair, n_clusters=None, **options)
        for options in ({}, {"effective_counts": (100, 100)}, {"false_alarm": 1e-6})
    )

    assert fewer.threshold == pytest.approx(2 * found.threshold)
    assert fewer.counts == (100.0, 100.0)
    assert strict.threshold > found.threshold
    assert strict.p_value == found.p_value


def test_what_cannot_be_compared_is_refused(blobs):
    a, other = (
        blobs.sketch(20),
        blobs.sketch(20, blobs.spec.replaced(waves=replace(blobs.spec.waves, seed=5))),
    )
    empty = a - a
    for b, options, error, words in (
        (other, {}, IncompatibleSketchesError, "cannot compare sketches that were"),
        (empty, {}, DataError, "the second sketch holds 0 rows"),
        (None, {}, SpecError, "'b' parameter of compare must be a Sketch"),
        (a, {"false_alarm": 0.7}, SpecError, "'false_alarm' parameter"),
        (a, {"n_clusters": "many"}, SpecError, "'n_clusters' parameter"),
        (a, {"n_clusters": 2.5}, SpecError, "'n_clusters' parameter"),
        (a, {"effective_counts": (5, 21)}, SpecError, "'effective_counts' parameter"),
        (a, {"effective_counts": 5}, SpecError, "must be a pair"),
    ):
        with pytest.raises(error, match=words):
            compare(a, b, **options)
