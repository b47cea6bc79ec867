"""A reference period, seasons and effect sizes: what varies by itself is no alarm."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import sketchshift as ss
from sketchshift.drift.noise import ratio_quantile, ratio_tail
from sketchshift.drift.watch import watch

CORNERS = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
SHARES = np.array([0.5, 0.3, 0.2])
RATE = 0.1


def rows(n: int, shares, rng) -> np.ndarray:
    """Rows around three corners."""
    return CORNERS[rng.choice(3, n, p=shares)] + rng.normal(size=(n, 2))


@pytest.fixture(scope="module")
def spec() -> ss.SketchSpec:
    return ss.drift.plan_drift(rows(4_000, SHARES, np.random.default_rng(9)), sketch_size=60)


def varying(spec, n: int, seed: int, spread: float, jump: float = 0.0) -> dict[int, ss.Sketch]:
    """Slices whose shares vary by themselves; of the last one, the third corner has grown."""
    rng = np.random.default_rng(seed)
    slices = {}
    for t in range(n):
        move = np.clip(spread * rng.normal(), -0.2, 0.2)
        shares = SHARES + [move, -move, 0.0] + (t == n - 1) * np.array([-jump, 0.0, jump])
        slices[t] = ss.sketch(rows(int(rng.integers(150, 350)), shares, rng), spec)
    return slices


# The law of the ratio, and the rate of false alarms.


@pytest.mark.parametrize("freedom", [2, 5, 11, 60])
@pytest.mark.parametrize("p", [1e-2, 1e-4, 1e-6])
def test_with_one_direction_the_ratio_has_the_law_of_fisher(freedom, p):
    """F(1, n); the approximation errs to the safe side, by at most 18 % of p."""
    found = ratio_tail(stats.f.isf(p, 1, freedom), np.ones(1), freedom)

    assert p <= found <= 1.18 * p


@pytest.mark.parametrize("freedom", [3, 20])
def test_with_equal_directions_the_ratio_has_the_law_of_fisher_too(freedom):
    for p in (1e-2, 1e-4):
        exact = stats.f.isf(p, 6, 6 * freedom)
        assert ratio_tail(exact, np.ones(6), freedom) == pytest.approx(p, rel=0.02)
        assert ratio_quantile(p, np.ones(6), freedom) == pytest.approx(exact, rel=0.01)


def test_unequal_directions_have_the_tail_that_is_simulated():
    rng = np.random.default_rng(0)
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
    tables = [varying(spec, 14, seed, spread) for seed in range(100)]
    options = {"n_clusters": None, "false_alarm": RATE, "effect": 0.0}

    judged = [bool(watch(t, reference="time < 8", **options).alarms) for t in tables]
    in_turn = [bool(watch(t, **options).alarms) for t in tables[:20]]

    assert np.mean(judged) <= RATE + 3 * np.sqrt(RATE * (1 - RATE) / 100)
    assert (np.mean(in_turn) > 0.8) == (spread > 0.0)


def test_a_change_beyond_the_usual_is_found(spec):
    """Of 12 tables with a jump of 35 % of the rows, among slices that vary by 3 %."""
    found = [
        watch(varying(spec, 14, seed, 0.03, jump=0.35), n_clusters=None, reference="time < 8")
        for seed in range(12)
    ]

    assert np.mean([each.slices[-1].drifted for each in found]) > 0.9
    assert not any(each.drifted for one in found for each in one.slices[:8])


def test_the_more_slices_a_reference_has_the_lower_is_the_threshold(spec):
    slices = varying(spec, 30, 1, 0.05)
    limits = [
        watch(slices, n_clusters=None, reference=f"time < {n}").slices[-1].usual.threshold
        for n in (4, 8, 20)
    ]

    assert limits == sorted(limits, reverse=True)


# Seasons.


@pytest.fixture(scope="module")
def years() -> ss.SketchTable:
    """Four years of months with a strong season; from September of the last, a new cluster."""
    rng = np.random.default_rng(0)
    X, months = [], []
    for year in range(2010, 2014):
        for month in range(1, 13):
            move = 0.2 * np.sin(2 * np.pi * month / 12) + 0.01 * rng.normal()
            is_new = (year, month) >= (2013, 9)
            shares = np.array([0.4 + move, 0.6 - move, 0.0]) * (0.7 if is_new else 1.0)
            shares[2] = 1.0 - shares.sum()
            X.append(rows(1_000, shares, rng))
            months += [date(year, month, 1)] * 1_000
    table = pa.table({"x": np.vstack(X)[:, 0], "y": np.vstack(X)[:, 1], "month": months})
    return ss.sketch_by(table, by="month", n_clusters=4)


def test_in_turn_the_season_alarms_every_year(years):
    found = watch(years, n_clusters=3)

    assert len(found.alarms) > 24


@pytest.mark.parametrize(
    "options",
    [{"season": "year"}, {"season": "year", "reference": "month < '2013-01-01'"}],
    ids=["season", "season and reference"],
)
def test_against_the_same_month_of_other_years_only_the_real_change_alarms(years, options):
    found = watch(years, n_clusters=3, **options)

    assert found.alarms[0].key == date(2013, 9, 1)
    assert {each.key.year for each in found.alarms} == {2013}
    assert {each.key.month for each in found.alarms} <= {9, 10, 11, 12}


def test_a_reference_of_whole_years_takes_the_season_for_usual(years):
    found = watch(years, n_clusters=3, reference="month < '2013-01-01'", effect=0.0)

    assert not any(each.is_significant for each in found.slices if each.key < date(2013, 9, 1))


def test_the_same_day_of_other_weeks_is_the_baseline(spec):
    """Weekends differ from other days, and a Monday that looks like one of them is found."""
    rng = np.random.default_rng(0)
    weekend = np.array([0.2, 0.3, 0.5])
    slices = {}
    for i in range(70):
        day = date.fromordinal(date(2024, 1, 1).toordinal() + i)
        shares = weekend if day.weekday() >= 5 or i == 63 else SHARES
        slices[day] = ss.sketch(rows(300, shares, rng), spec)

    found = watch(slices, n_clusters=None, season="week")

    assert found.slices[6].usual is None  # no week before
    assert [each.key for each in found.alarms] == [date(2024, 3, 4)]
    assert found.season == "week"


def test_months_as_text_have_seasons(spec):
    rng = np.random.default_rng(0)
    names = [f"{year}-{month:02d}" for year in (2011, 2012) for month in range(1, 13)]
    found = watch(
        {name: ss.sketch(rows(100, SHARES, rng), spec) for name in names},
        n_clusters=None,
        season="year",
    )

    assert [each.usual is not None for each in found.slices] == [False] * 14 + [True] * 10


# The effect, and its words.


def test_a_significant_change_of_few_rows_is_small(spec):
    """Three per cent of 60,000 rows moved: certain, and below five per cent."""
    rng = np.random.default_rng(0)
    slices = {
        t: ss.sketch(rows(60_000, SHARES + (t == 3) * np.array([-0.03, 0, 0.03]), rng), spec)
        for t in range(4)
    }

    found = watch(slices, n_clusters=None)
    strict = watch(slices, n_clusters=None, effect=0.0)

    assert [each.key for each in found.small] == [3]
    assert found.alarms == ()
    assert found.effect == 0.05
    assert [each.key for each in strict.alarms] == [3]
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


def test_the_effect_is_the_share_of_rows_that_changed_clusters(grown):
    """A quarter of the rows, up to the noise of 1,000."""
    found = watch(grown, n_clusters=3, reference="day < 4")

    assert found.slices[5].effect == pytest.approx(0.25, abs=0.04)
    assert found.slices[4].effect < 0.05


def test_an_alarm_says_which_cluster_changed_from_what_to_what(grown):
    found = watch(grown, n_clusters=3, reference="day < 4")
    names = [cluster.name for cluster in found.decoding.profile.clusters]
    shares = found.slices[5].shares
    usual = np.mean([each.shares for each in found.slices[:4]], axis=0)
    changed = int(np.argmax(np.abs(shares - usual)))

    sentence = found.slices[5].sentence

    assert [each.key for each in found.alarms] == [5]
    assert sentence.startswith(f"'{names[changed]}' ")
    assert f" to {100 * shares[changed]:.0f} % of rows" in sentence
    assert sentence.endswith(", compared with what is usual.")
    assert found.slices[4].sentence == ""


def test_rows_that_move_without_changing_clusters_are_told_by_their_column():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6_000, 2))
    X[5_000:, 1] += 1.0
    table = pa.table({"price": X[:, 0], "weight": X[:, 1], "day": np.repeat(np.arange(6), 1_000)})

    found = watch(ss.sketch_by(table, by="day", n_clusters=4), n_clusters=1)

    assert [each.key for each in found.alarms] == [5]
    assert found.alarms[0].sentence.startswith("the mean of weight rose by 0.9")


def test_the_arrow_table_tells_what_is_usual_and_what_changed(grown):
    found = watch(grown, n_clusters=3, reference="day < 4")
    last = found.to_arrow().to_pylist()[-1]

    assert last["distance_usual"] == found.slices[-1].usual.distance
    assert last["distance_before"] is None
    assert last["effect"] == found.slices[-1].effect
    assert last["sentence"] == found.slices[-1].sentence


def test_what_cannot_be_judged_is_refused_with_the_remedy(spec, grown):
    slices = varying(spec, 6, 0, 0.0)
    with pytest.raises(ss.errors.DataError, match=r"at least 3 slices with rows.*chooses 2 of 6"):
        watch(slices, n_clusters=None, reference="time < 2")
    with pytest.raises(ss.errors.DataError, match="chooses all slices, and leaves none to judge"):
        watch(slices, n_clusters=None, reference="time >= 0")
    with pytest.raises(
        ss.errors.DataError, match="a season needs times that are dates, and day has '0'"
    ):
        watch(grown, n_clusters=None, season="year")
    with pytest.raises(ss.errors.SpecError, match="'season' parameter of watch must be"):
        watch(grown, n_clusters=None, season="month")
    with pytest.raises(ss.errors.SpecError, match="'effect' parameter of watch must be"):
        watch(grown, n_clusters=None, effect=2.0)
