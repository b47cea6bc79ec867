"""A reference period and effect sizes: what varies by itself is no alarm."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sketchshift as ss
from sketchshift.drift.noise import ratio_quantile, ratio_tail
from sketchshift.drift.watch import watch
from sketchshift.errors import DataError, SpecError

CORNERS = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
SHARES = np.array([0.5, 0.3, 0.2])
RATE = 0.1


def rows(n, shares, rng):
    """Rows around three corners."""
    return CORNERS[rng.choice(3, n, p=shares)] + rng.normal(size=(n, 2))


@pytest.fixture(scope="module")
def spec():
    return ss.drift.plan_drift(rows(4_000, SHARES, np.random.default_rng(9)), sketch_size=60)


def varying(spec, n, seed, spread):
    """Slices whose shares vary by themselves."""
    rng = np.random.default_rng(seed)
    moves = np.clip(spread * rng.normal(size=n), -0.2, 0.2)
    shares = SHARES + moves[:, None] * [1.0, -1.0, 0.0]
    sizes = rng.integers(150, 350, n)
    return {t: ss.sketch(rows(sizes[t], shares[t], rng), spec) for t in range(n)}


# The law of the ratio, and the rate of false alarms.


@pytest.mark.parametrize("freedom", [2, 5, 60])
def test_with_one_direction_the_ratio_has_the_law_of_fisher(freedom):
    """F(1, n); the approximation errs to the safe side, by at most 18 % of p."""
    for p in (1e-2, 1e-6):
        assert p <= ratio_tail(stats.f.isf(p, 1, freedom), np.ones(1), freedom) <= 1.18 * p


@pytest.mark.parametrize("freedom", [3, 20])
def test_with_equal_directions_the_ratio_has_the_law_of_fisher_too(freedom):
    for p in (1e-2, 1e-4):
        exact = stats.f.isf(p, 6, 6 * freedom)
        assert ratio_tail(exact, np.ones(6), freedom) == pytest.approx(p, rel=0.02)
        assert ratio_quantile(p, np.ones(6), freedom) == pytest.approx(exact, rel=0.01)


def test_unequal_directions_have_the_tail_that_is_simulated(rng):
    weights, n = np.array([1.0, 0.3, 0.1]), 6
    one = (weights * rng.chisquare(1, (400_000, 3))).sum(axis=1)
    mean = (weights * rng.chisquare(n, (400_000, 3))).sum(axis=1) / n

    for c in (3.0, 8.0):  # tails of 0.07 and 0.01, with standard errors below 2 % of them
        assert ratio_tail(c, weights, n) == pytest.approx(np.mean(one > c * mean), rel=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 0.06], ids=["equal slices", "slices that vary"])
def test_without_drift_alarms_are_at_most_as_rare_as_asked_for(spec, spread):
    """Any alarm in 100 tables of 8 slices of reference and 6 others, at a rate of 0.1.

    The bound is three standard errors above it. Without a reference, slices that vary alarm in
    nearly every table: they are not equal, and that test is right to say so.
    """
    options = {"n_clusters": None, "false_alarm": RATE, "effect": 0.0}
    tables = [varying(spec, 14, seed, spread) for seed in range(100)]
    judged = [bool(watch(t, reference="time < 8", **options).alarms) for t in tables]
    in_turn = [bool(watch(t, **options).alarms) for t in tables[:20]]

    assert np.mean(judged) <= RATE + 3 * np.sqrt(RATE * (1 - RATE) / 100)
    assert (np.mean(in_turn) > 0.8) == (spread > 0.0)


# The effect, and its words.


def test_a_significant_change_of_few_rows_is_small(spec, rng):
    """Three per cent of 60,000 rows moved: certain, and below five per cent."""
    shares = [SHARES, SHARES, SHARES, [0.47, 0.3, 0.23]]
    slices = [ss.sketch(rows(60_000, each, rng), spec) for each in shares]

    found, strict = (
        watch(dict(enumerate(slices)), n_clusters=None, effect=effect) for effect in (0.05, 0.0)
    )

    assert [each.key for each in found.small] == [each.key for each in strict.alarms] == [3]
    assert found.alarms == ()
    assert 0.0 < found.slices[3].effect <= 0.03


@pytest.fixture(scope="module")
def grown(blobs):
    """Six days; on the last one the third corner has grown from 20 % to 45 % of the rows."""
    parts = [
        blobs.rows(1_000, shares=(0.5, 0.3, 0.2) if day < 5 else (0.25, 0.3, 0.45), seed=day)
        for day in range(6)
    ]
    columns = dict(zip(("price", "weight"), np.vstack(parts).T, strict=True))
    table = pa.table(columns | {"day": np.repeat(np.arange(6), 1_000)})
    return ss.sketch_by(table, by="day", n_clusters=4)


def test_an_alarm_says_which_cluster_changed_from_what_to_what(grown):
    """The effect is the share of rows that changed clusters, up to the noise of 1,000."""
    found = watch(grown, n_clusters=3, reference="day < 4")
    day, last = found.slices[4:]
    usual = np.mean([each.shares for each in found.slices[:4]], axis=0)
    changed = int(np.argmax(np.abs(last.shares - usual)))

    assert [each.key for each in found.alarms] == [5]
    assert last.effect == pytest.approx(0.25, abs=0.04)
    assert last.sentence.startswith(f"'{found.decoding.profile.clusters[changed].name}' ")
    assert f" to {100 * last.shares[changed]:.0f} % of rows" in last.sentence
    assert last.sentence.endswith(", compared with what is usual.")
    assert (day.effect < 0.05, day.sentence) == (True, "")
    row = found.to_arrow().to_pylist()[-1]
    told = [row[name] for name in ("distance_usual", "distance_before", "effect", "sentence")]
    assert told == [last.usual.distance, None, last.effect, last.sentence]


def test_rows_that_move_without_changing_clusters_are_told_by_their_column(rng):
    X = rng.normal(size=(6_000, 2))
    X[5_000:, 1] += 1.0
    table = pa.table({"price": X[:, 0], "weight": X[:, 1], "day": np.repeat(np.arange(6), 1_000)})

    found = watch(ss.sketch_by(table, by="day", n_clusters=4), n_clusters=1)

    assert [each.key for each in found.alarms] == [5]
    assert found.alarms[0].sentence.startswith("the mean of weight rose by 0.9")


def test_what_cannot_be_judged_is_refused_with_the_remedy(grown):
    for options, error, words in (
        ({"reference": "day < 2"}, DataError, r"at least 3 slices .*chooses 2 of 6"),
        ({"reference": "day >= 0"}, DataError, "leaves none to judge"),
        ({"effect": 2.0}, SpecError, "'effect' parameter of watch must be"),
    ):
        with pytest.raises(error, match=words):
            watch(grown, n_clusters=None, **options)
