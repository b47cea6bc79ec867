"""Two sketches: their distance, its threshold, and what became of the clusters."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.drift.compare import compare

PLAIN = ss.SketchSpec(2, 80, 1.0)


def verdicts(found: ss.drift.Comparison) -> list[str]:
    return [cluster.verdict for cluster in found.clusters]


def test_the_distance_is_the_mmd_of_all_pairs_of_rows(blobs):
    """MMD^2 = mean k(x, x') + mean k(y, y') - 2 mean k(x, y), with the kernel of the spec."""
    X, Y = blobs.rows(60, seed=1), blobs.rows(40, seed=2)
    omega = 2 * np.pi * PLAIN.frequencies.turns.astype(float)

    def mean_kernel(A, B):
        differences = (A[:, None] - B[None]) @ omega
        return np.cos(differences).mean()

    found = compare(ss.sketch(X, PLAIN), ss.sketch(Y, PLAIN), n_clusters=None)

    squared = mean_kernel(X, X) + mean_kernel(Y, Y) - 2 * mean_kernel(X, Y)
    assert found.distance**2 == pytest.approx(squared, abs=1e-6)
    assert found.clusters == ()
    assert found.decoding is None


def test_samples_of_one_population_do_not_drift(blobs):
    found = compare(blobs.sketch(3_000, seed=1), blobs.sketch(2_000, seed=2), n_clusters=3)

    assert not found.drifted
    assert found.p_value > found.false_alarm == 0.01
    assert abs(found.excess) < found.threshold**2
    assert verdicts(found) == ["same"] * 3
    assert found.counts == (3_000, 2_000)


def test_shares_that_changed_are_named(blobs):
    a, b = blobs.sketch(3_000, seed=1), blobs.sketch(3_000, shares=(0.4, 0.3, 0.3), seed=2)

    found = compare(a, b, n_clusters=3)

    assert found.drifted
    assert found.p_value < 1e-6
    assert verdicts(found) == ["shrank", "same", "grew"]
    for cluster, change in zip(found.clusters, (-0.1, 0.0, 0.1), strict=True):
        assert cluster.change == pytest.approx(change, abs=4 * cluster.standard_error)
        assert cluster.standard_error == pytest.approx(0.012, abs=0.003)


def test_a_cluster_that_moved_is_named_with_how_far(blobs):
    a, b = blobs.sketch(4_000, seed=1), blobs.sketch(4_000, seed=2, shift=(0.9, 0.0))

    found = compare(a, b, n_clusters=3)

    assert found.drifted
    assert verdicts(found) == ["same", "same", "moved"]
    cluster = found.clusters[2]
    assert cluster.move == pytest.approx(0.9, abs=0.2)
    assert cluster.width == pytest.approx(math.sqrt(2), rel=0.2)
    assert cluster.relative_move == pytest.approx(cluster.move / cluster.width)
    np.testing.assert_allclose(cluster.centroid_b - cluster.centroid_a, [0.9, 0.0], atol=0.2)


def test_the_order_of_the_two_is_a_sign(blobs):
    a, b = blobs.sketch(3_000, seed=1), blobs.sketch(2_000, shares=(0.4, 0.3, 0.3), seed=2)

    forth, back = (compare(*pair, n_clusters=3) for pair in ((a, b), (b, a)))

    assert forth.distance == back.distance
    assert forth.p_value == back.p_value
    assert forth.threshold == back.threshold
    for one, other in zip(forth.clusters, back.clusters, strict=True):
        assert one.change == -other.change
        assert one.move == other.move


def test_the_number_of_clusters_is_chosen_if_not_given(blobs):
    found = compare(blobs.sketch(3_000, seed=1), blobs.sketch(3_000, seed=2))

    assert len(found.clusters) == 3
    assert found.decoding.curve.chosen == 3


def test_a_sketch_has_no_distance_from_itself(blobs):
    a = blobs.sketch(500)

    found = compare(a, a)

    assert (found.distance, found.p_value, found.drifted) == (0.0, 1.0, False)
    assert set(verdicts(found)) == {"same"}
    assert all(cluster.change == 0.0 for cluster in found.clusters)


@pytest.mark.parametrize("spec", [PLAIN, None], ids=["plain", "planned"])
@pytest.mark.parametrize("counts", [(1, 1), (1, 5), (2, 3), (3, 400)])
def test_a_few_rows_are_no_reason_to_fail(blobs, counts, spec):
    a, b = (blobs.sketch(n, spec, seed=n) for n in counts)

    found = compare(a, b)

    assert 0.0 < found.p_value <= 1.0
    assert np.isfinite(found.threshold)


@pytest.mark.filterwarnings("ignore:The clusters:sketchshift.errors.PlanWarning")
def test_rows_that_are_all_equal_differ_only_if_the_rows_do(blobs):
    same, other = (ss.sketch(np.full((200, 2), value), blobs.spec) for value in (1.0, 2.0))

    assert not compare(same, same).drifted
    assert [cluster.verdict for cluster in compare(same, same).clusters] == ["same"]
    assert compare(same, other).drifted


def test_the_bound_holds_for_every_distribution_and_is_larger(blobs):
    """Gretton et al. 2012, corollary 9, with K = 1 and m = n."""
    a, b = blobs.sketch(500, PLAIN, seed=1), blobs.sketch(500, PLAIN, seed=2)

    found = compare(a, b, n_clusters=None, false_alarm=0.05)

    assert found.bound == pytest.approx(math.sqrt(2 / 500) * (1 + math.sqrt(2 * math.log(20))))
    assert found.bound > found.threshold


def test_there_is_no_bound_with_weights(blobs):
    X = blobs.rows(100)
    weighted = ss.sketch(X, PLAIN, sample_weight=np.linspace(0.5, 1.0, 100))

    assert compare(weighted, ss.sketch(X, PLAIN), n_clusters=None).bound is None


def test_fewer_independent_rows_raise_the_threshold(blobs):
    """The threshold goes with the root of 1/n_a + 1/n_b."""
    a, b = blobs.sketch(400, seed=1), blobs.sketch(400, seed=2)

    all_rows = compare(a, b, n_clusters=None)
    fewer = compare(a, b, n_clusters=None, effective_counts=(100, 100))

    assert fewer.threshold == pytest.approx(2 * all_rows.threshold)
    assert fewer.counts == (100.0, 100.0)


def test_the_threshold_falls_with_the_rate_and_the_p_value_does_not_know_it(blobs):
    a, b = blobs.sketch(400, seed=1), blobs.sketch(400, seed=2)

    found = [compare(a, b, n_clusters=None, false_alarm=rate) for rate in (0.1, 1e-6)]

    thresholds = [comparison.threshold for comparison in found]
    assert thresholds == sorted(thresholds)
    assert len({comparison.p_value for comparison in found}) == 1


def test_what_cannot_be_compared_is_refused(blobs):
    a = blobs.sketch(20)

    with pytest.raises(
        ss.errors.IncompatibleSketchesError,
        match="cannot compare sketches that were made with differ",
    ):
        compare(a, blobs.sketch(20, replace(blobs.spec, seed=5)))
    with pytest.raises(
        ss.errors.DataError, match="nothing to compare: the second sketch holds 0 rows"
    ):
        compare(a, ss.Sketcher(blobs.spec).sketch())
    with pytest.raises(ss.errors.SpecError, match="'b' parameter of compare must be a Sketch"):
        compare(a, None)
    with pytest.raises(ss.errors.SpecError, match="'false_alarm' parameter of compare must be"):
        compare(a, a, false_alarm=0.7)
    with pytest.raises(ss.errors.SpecError, match="'n_clusters' parameter of compare must be"):
        compare(a, a, n_clusters="many")
    with pytest.raises(ss.errors.SpecError, match="'n_clusters' parameter of compare must be"):
        compare(a, a, n_clusters=2.5)
    with pytest.raises(
        ss.errors.SpecError, match="'effective_counts' parameter of compare must be"
    ):
        compare(a, a, effective_counts=(5, 21))
    with pytest.raises(
        ss.errors.SpecError, match="'effective_counts' parameter of compare must be a pair"
    ):
        compare(a, a, effective_counts=5)
