"""A table of sketches over time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.drift.watch import watch

DAYS, ROWS = 8, 500


@pytest.fixture(scope="module")
def table(blobs):
    """Eight days; from the sixth on, the third cluster has grown. Two shops."""
    parts = [
        blobs.rows(ROWS, shares=(0.5, 0.3, 0.2) if day < 5 else (0.3, 0.3, 0.4), seed=day)
        for day in range(DAYS)
    ]
    day = np.repeat(np.arange(DAYS), ROWS)
    shop = np.tile(["a", "b"], DAYS * ROWS // 2)
    slices = {"x": np.vstack(parts)[:, 0], "y": np.vstack(parts)[:, 1], "day": day, "shop": shop}
    return ss.sketch_by(pa.table(slices), by=["day", "shop"], n_clusters=4)


@pytest.fixture(scope="module")
def found(table):
    return watch(table, by="day", n_clusters=3)


def test_the_day_of_the_jump_is_the_one_that_differs_from_the_day_before(found):
    assert [m.key for m in found.slices if m.before is not None and m.before.drifted] == [5]
    assert found.alarms[0].key == 5
    assert not any(m.drifted for m in found.slices[:5])


def test_days_after_the_jump_differ_from_all_before_them(found):
    assert found.slices[6].earlier.drifted
    assert not found.slices[6].before.drifted


def test_slices_are_added_up_over_the_other_columns(table, found):
    assert len(found) == DAYS
    assert [m.count for m in found.slices] == [ROWS] * DAYS
    assert found.by == "day"
    assert found.sketches[3] == table[(3, "a")] + table[(3, "b")]
    assert found.whole == table.merge()


def test_distances_are_those_of_the_sketches_and_of_their_sums(found):
    days = found.sketches

    assert found.slices[4].before.distance == np.linalg.norm(days[4].z - days[3].z)
    assert found.slices[4].earlier.distance == np.linalg.norm(days[4].z - sum(days[:4]).z)
    assert found.slices[0].before is found.slices[0].earlier is None


def test_every_test_has_its_part_of_the_rate_of_false_alarms(found):
    """Bonferroni over two tests a slice, the first one excepted."""
    rates = {t.false_alarm for m in found.slices for t in (m.before, m.earlier) if t is not None}

    assert rates == {0.01 / (2 * (DAYS - 1))}
    assert found.false_alarm == 0.01


def test_shares_follow_the_clusters_of_all_days(found):
    """The third cluster has 20 % of the rows, then 40 %; errors are about binomial."""
    shares = np.array([m.shares for m in found.slices])
    grown = int(np.argmin(((found.decoding.centroids - [0.0, 6.0]) ** 2).sum(axis=1)))

    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares[:, grown], [0.2] * 5 + [0.4] * 3, atol=0.08)
    np.testing.assert_allclose(shares.mean(axis=0), found.decoding.weights, atol=0.01)
    np.testing.assert_allclose(found.slices[0].share_errors, 0.02, atol=0.006)


def test_slices_without_rows_have_no_distances_and_are_stepped_over(blobs, table):
    days = list(table.merge_by("day").sketches)
    days[2] = days[2] - days[2]
    holed = ss.SketchTable(table.merge_by("day").keys, tuple(days))

    found = watch(holed, n_clusters=2)

    assert found.slices[2].before is found.slices[2].earlier is None
    assert np.isnan(found.slices[2].shares).all()
    assert found.slices[3].before.distance == np.linalg.norm(days[3].z - days[1].z)


def test_a_single_slice_has_nothing_to_be_compared_with(blobs):
    one = ss.sketch_by(blobs.rows(100), by=np.zeros(100, dtype=int), spec=blobs.spec)

    found = watch(one, n_clusters=None)

    assert found.alarms == ()
    assert found.decoding is None
    assert found.slices[0].shares.shape == (0,)


def test_the_arrow_table_has_a_row_for_each_slice(found):
    rows = found.to_arrow().to_pylist()

    assert [row["day"] for row in rows] == list(range(DAYS))
    assert rows[0]["distance_before"] is None
    assert rows[5]["distance_before"] == found.slices[5].before.distance
    assert [row["drifted"] for row in rows] == [m.drifted for m in found.slices]
    np.testing.assert_array_equal(rows[5]["shares"], found.slices[5].shares)
    assert repr(found).startswith("<Watch of 8 slices by day: ")


def test_what_cannot_be_watched_is_refused(table):
    with pytest.raises(
        ss.errors.SpecError, match=r"only one of them is the time.*by='day' or by='shop'"
    ):
        watch(table)
    with pytest.raises(ss.errors.DataError, match="cannot merge by 'week'"):
        watch(table, by="week")
    with pytest.raises(
        ss.errors.SpecError, match="'table' parameter of watch must be a SketchTable of at"
    ):
        watch(table.where("day > 99"))
    with pytest.raises(ss.errors.SpecError, match="'false_alarm' parameter of watch must be"):
        watch(table, by="day", false_alarm=0.0)


def test_rows_without_a_time_are_refused_with_the_remedy():
    """They come last in a table, and would be taken for the newest."""
    X = np.random.default_rng(0).normal(size=(300, 2))
    table = ss.sketch_by(X, pa.array([1, 2, None] * 100), n_clusters=2)

    with pytest.raises(ss.errors.DataError, match="100 rows have no key, so that") as told:
        watch(table, n_clusters=None)
    assert """table.where('"key" IS NOT NULL')""" in str(told.value)
    assert len(watch(table.where('"key" IS NOT NULL'), n_clusters=None)) == 2
