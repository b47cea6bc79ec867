"""A table of sketches over time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift.drift.watch import watch
from sketchshift.errors import DataError, SpecError

DAYS, ROWS = 8, 500


@pytest.fixture(scope="module")
def table(blobs):
    """Eight days; from the sixth on, the third cluster has grown. Two shops."""
    keys, slices = [], []
    for day in range(DAYS):
        shares = (0.5, 0.3, 0.2) if day < 5 else (0.2, 0.3, 0.5)
        rows = blobs.rows(ROWS, shares=shares, seed=day)
        keys += [{"day": day, "shop": shop} for shop in "ab"]
        slices += [ss.sketch(rows[i::2], blobs.spec) for i in range(2)]
    return ss.SketchTable.of(pa.Table.from_pylist(keys), tuple(slices))


@pytest.fixture(scope="module")
def found(table):
    return watch(table, by="day", n_clusters=3)


def test_the_day_of_the_jump_is_the_one_that_differs_from_the_day_before(found):
    """All days after it differ from all before it."""
    assert [m.key for m in found.slices if m.before is not None and m.before.drifted] == [5]
    assert found.alarms[0].key == 5
    assert not any(m.drifted for m in found.slices[:5])
    assert found.slices[6].earlier.drifted


def test_slices_are_added_up_over_the_other_columns(table, found):
    assert [m.count for m in found.slices] == [ROWS] * DAYS
    assert found.by == "day"
    assert found.sketches[3] == table[(3, "a")] + table[(3, "b")]
    assert found.whole == table.merge()


def test_distances_are_those_of_the_sketches_and_of_their_sums(found):
    """Each of two tests a slice, the first one excepted, has its part of the rate."""
    days, each = found.sketches, found.slices[4]

    assert each.before.distance == np.linalg.norm(days[4].z - days[3].z)
    assert each.earlier.distance == np.linalg.norm(days[4].z - sum(days[:4]).z)
    assert found.slices[0].before is found.slices[0].earlier is None
    rates = {test.false_alarm for m in found.slices for test in m.tests}
    assert rates == {found.false_alarm / (2 * (DAYS - 1))}


def test_shares_follow_the_clusters_of_all_days(found):
    """The third cluster has 20 % of the rows, then 50 %; errors are about binomial."""
    shares = np.array([m.shares for m in found.slices])
    grown = int(np.linalg.norm(found.decoding.centroids - [0.0, 6.0], axis=1).argmin())

    assert_allclose(shares.sum(axis=1), 1.0)
    assert_allclose(shares[:, grown], [0.2] * 5 + [0.5] * 3, atol=0.08)
    assert_allclose(shares.mean(axis=0), found.decoding.weights, atol=0.01)
    assert_allclose(found.slices[0].share_errors, 0.02, atol=0.006)


def test_slices_without_rows_have_no_distances_and_are_stepped_over(found):
    days = list(found.sketches)
    days[2] = days[2] - days[2]

    holed = watch(dict(enumerate(days)), n_clusters=2)

    assert holed.slices[2].before is holed.slices[2].earlier is None
    assert np.isnan(holed.slices[2].shares).all()
    assert holed.slices[3].before.distance == np.linalg.norm(days[3].z - days[1].z)


def test_a_single_slice_has_nothing_to_be_compared_with(blobs):
    found = watch({0: blobs.sketch(100)}, n_clusters=None)

    assert (found.alarms, found.decoding) == ((), None)
    assert found.slices[0].shares.shape == (0,)


def test_the_arrow_table_has_a_row_for_each_slice(found):
    rows = found.to_arrow().to_pylist()

    assert [(row["day"], row["drifted"]) for row in rows] == [
        (m.key, m.drifted) for m in found.slices
    ]
    assert rows[0]["distance_before"] is None
    assert rows[5]["distance_before"] == found.slices[5].before.distance
    assert rows[5]["shares"] == found.slices[5].shares.tolist()
    assert repr(found).startswith("<Watch of 8 slices by day: ")


def test_what_cannot_be_watched_is_refused(table):
    for each, options, error, words in (
        (table, {}, SpecError, r"only one of them is the time.*by='day' or by='shop'"),
        (table, {"by": "week"}, DataError, "cannot merge by 'week'"),
        (table.where("day > 99"), {}, SpecError, "'table' parameter of watch"),
        (table, {"by": "day", "false_alarm": 0.0}, SpecError, "'false_alarm' parameter"),
    ):
        with pytest.raises(error, match=words):
            watch(each, **options)


def test_rows_without_a_time_are_refused_with_the_remedy(blobs):
    """They come last in a table, and would be taken for the newest."""
    table = ss.sketch_by(blobs.rows(300), pa.array([1, 2, None] * 100), blobs.spec)

    with pytest.raises(DataError, match="100 rows have no key, so that") as told:
        watch(table, n_clusters=None)
    assert """table.where('"key" IS NOT NULL')""" in str(told.value)
    assert len(watch(table.where('"key" IS NOT NULL'), n_clusters=None)) == 2
