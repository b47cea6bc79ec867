"""What each cluster is told to be, against pandas on the rows themselves."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sketchshift as ss
from sketchshift._text import meaningful
from sketchshift.features import Rows
from sketchshift.recipe import Category, Cycle, Frequency, Log, Recipe


def test_profiles_agree_with_pandas_groupby_of_the_assigned_rows(wine, of_wine):
    """Shares within 3 % of all rows; means and spreads within 0.15 sd, half of them within 0.035.

    Rows are assigned to the nearest centroid; a profile knows no rows.
    """
    profile, labels, unit = of_wine.profile, of_wine.predict(wine), wine.std(ddof=0)
    groups, table, scaled = wine.groupby(labels), profile.table, wine / unit

    told = np.array([(cluster.rows, cluster.spread) for cluster in profile.clusters])
    assert_allclose(told[:, 0], groups.size(), atol=0.03 * len(wine))
    of_means, of_spreads = table.means - groups.mean(), table.spreads - groups.std(ddof=0)
    for distances in (of_means.abs() / unit, of_spreads.abs() / unit):
        assert distances.to_numpy().max() < 0.15
        assert np.median(distances) < 0.035
    assert_allclose(table.deviations, (table.means - table.mean) / table.std)
    variances = scaled.groupby(labels).var(ddof=0).mean(axis=1)
    assert_allclose(told[:, 1], np.sqrt(variances), atol=0.03)
    assert_allclose(table.correlations, wine.corr(), atol=1e-3)
    assert profile.clusters[1].name == "high proline, high flavanoids"


def told(
    means,
    shares,
    *,
    columns=None,
    mean=0.0,
    std=1.0,
    recipe=None,
    rows=1000,
    covariance=None,
    width=0.01,
):
    """A profile of clusters at given means, among rows of a given mean and spread."""
    means = np.asarray(means, dtype=float)
    d = means.shape[1]
    spread = np.full(d, mean), np.square(np.full(d, std))
    spec = SimpleNamespace(rows=Rows(d, recipe or columns))
    moments = None if covariance is None else (spread[0], covariance)
    sketch = SimpleNamespace(spec=spec, count=rows, spread=spread, moments=moments)
    covariances = np.tile(width * np.eye(d), (len(means), 1, 1))
    done = ss.decoders.Outcome.COMPLETE
    return ss.Decoding(means, np.array(shares), covariances, 0.0, done, (), sketch=sketch).profile


def test_a_cluster_is_told_by_the_columns_farthest_from_the_mean_in_words_of_stated_bounds():
    columns = ("a", "b", "c", "d", "e")
    (cluster,) = told([[0.29, 0.31, -1.99, 2.01, -5.0]], [1.0], columns=columns).clusters

    assert cluster.name == "very low e, very high d"
    assert [t.label for t in cluster.traits] == ["very low e", "very high d", "low c"]
    assert cluster.traits[2].text == "c low, -2.0 sd"
    near, _ = told([[0.29, -0.2], [9.0, 9.0]], [0.5, 0.5], columns=("a", "b")).clusters
    assert (near.name, near.traits) == ("near the average", ())
    (alone,) = told([[0.0, 0.1]], [1.0]).clusters
    assert (alone.name, alone.traits) == ("all rows", ())


def test_a_cluster_of_one_row_is_told_with_the_digits_that_the_column_has():
    means, std = [[1e-4, 1565353.9599, 189.9999991]], [9e4, 9e4, 40.0]
    for width in (1e-18, 0.0):
        profile = told(means, [1.0], std=std, rows=1, width=width)

        shown = [trait.shown for trait in profile.told[0]]

        assert shown == ["0", "1,565,350", "190"]


NAMES = [  # where words do not tell: values, further columns, and then the number
    (
        [[1.8, 0.0], [0.9, 0.0], [0.0, -0.9], [0.0, -1.8]],
        ["a about 1.80", "a about 0.90", "'high' about -0.90", "'high' about -1.80"],
    ),
    ([[0.0, -0.9]], ["low 'high'"]),
    (
        [[2.5, 1.0, 0.5], [2.5, 1.0, -0.5], [0.0, 0.0, 0.0], [0.0, 0.1, 0.0]],
        [
            "very high a, high 'high', high c",
            "very high a, high 'high', low c",
            "near the average (2)",
            "near the average (3)",
        ],
    ),
    (
        [[1.9, 1.8, 1.0], [1.8, 1.9, -1.0]],
        ["high a, high 'high', high c", "high 'high', high a, low c"],
    ),
]


@pytest.mark.parametrize(("means", "names"), NAMES)
def test_names_tell_clusters_apart(means, names):
    columns = ("a", "high", "c")[: len(means[0])]
    shares = np.arange(len(means), 0.0, -1.0)

    found = told(means, shares / shares.sum(), columns=columns).clusters

    assert [cluster.name for cluster in found] == names


def test_years_are_told_as_dates():
    profile = told([[1962.4], [1989.0]], [0.5, 0.5], columns=("year",), mean=1975.0, std=20.0)

    assert [c.name for c in profile.clusters] == ["year about 1962", "year about 1989"]
    assert [own[0].shown for own in profile.told] == ["1962", "1989"]


def test_the_columns_that_differ_most_are_the_first_to_be_shown():
    means = np.zeros((2, 12))
    means[0, [3, 10]], means[0, 11] = 2.0, -1.9
    covariance = np.eye(12)
    covariance[10, 3] = covariance[3, 10] = 0.99
    profile = told(means, [0.5, 0.5], covariance=covariance)

    assert profile.most_telling(2) == [3, 11]
    assert profile.most_telling(12) == list(range(12))


def test_a_column_that_says_the_same_as_another_is_not_told_again():
    covariance = np.array([[1.0, -0.95, 0.5], [-0.95, 1.0, 0.0], [0.5, 0.0, 1.0]])
    (one,) = told(
        [[1.9, -1.8, 1.0]], [1.0], columns=("a", "b", "c"), covariance=covariance
    ).clusters

    assert ([t.column for t in one.traits], one.name) == (["a", "c"], "high a, high c")


def test_columns_of_a_recipe_are_told_as_the_table_has_them():
    parts = (
        Log("price", unit=1e-9),
        Category("cut", ("Ideal", "Premium")),
        Cycle("time", "hour"),
        Frequency("city", ("Rome",), (1.0,)),
    )
    angle, share = 17 / 12 * np.pi, np.array([0.4, 0.25])
    all_rows = {
        "mean": [np.log(2400e9), *share, 0.0, 0.0, 0.2],
        "std": [1.0, *np.sqrt(share * (1 - share)), 0.7, 0.7, 0.1],
        "columns": tuple(name for part in parts for name in part.names),
        "recipe": Recipe(parts),
    }
    means = [[np.log(9120e9), 0.2, 0.62, 0.8 * np.cos(angle), 0.8 * np.sin(angle), 0.02]]
    profile = told(means, [1.0], rows=53940, **all_rows)
    (cluster,) = profile.clusters

    assert [t.text for t in cluster.traits] == [
        "city: rare values, -1.8 sd",
        "price high, +1.3 sd",
        "time around 17 h, 1.1 sd off",
    ]
    assert cluster.traits[1].shown == "9,120"
    assert profile.to_pandas()["price"][0] == pytest.approx(9120)
    (far,) = told([[np.log(2400e9), 0.2, 0.62, 0, 0, 0.2]], [1.0], **all_rows).clusters
    (cut,) = far.traits
    assert cut.text == "cut: 62 % Premium, 25 % of all rows"
    assert (cut.value, far.name) == ("Premium", "cut mostly Premium")
    assert cut.deviation == pytest.approx((0.62 - 0.25) / np.sqrt(0.25 * 0.75))


@pytest.mark.parametrize(
    ("unit", "turn", "words"),
    [
        ("hour", 23.8 / 24, "0 h"),
        ("weekday", 5 / 7, "Saturday"),
        ("day_of_year", 60 / 366, "day 60"),
        ("month", 1.0, "December"),
    ],
)
def test_times_that_come_round_are_told_as_hours_days_and_months(unit, turn, words):
    recipe = Recipe((Cycle("when", unit),))
    means = [np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)] * np.array([[0.9], [0.05]])
    one, none = told(means, [0.5, 0.5], columns=recipe.names, recipe=recipe).told

    assert one[0].label == f"when around {words}"
    assert none[0].shown == "all round"


def test_a_table_of_any_columns_is_told_and_assigned_as_it_is(rng):
    """Through a real recipe: each cluster is one value of the category and one size."""
    is_large = np.arange(3000) % 3 == 0
    price = np.where(is_large, 5000.0, 50.0) * rng.uniform(0.7, 1.4, 3000)
    table = pd.DataFrame({"price": price, "cut": np.where(is_large, "Premium", "Good")})
    recipe = Recipe((Log("price"), Category("cut", ("Good", "Premium"))))
    spec = ss.plan(table, n_clusters=2, columns=recipe, standardize=True)
    decoding = ss.decode(ss.sketch(table, spec), 2)
    small, large = decoding.profile.clusters

    assert (small.rows, large.rows) == (2000, 1000)
    traits = {trait.column: trait for trait in large.traits}
    assert traits["cut"].text == "cut: 100 % Premium, 33 % of all rows"
    typical = np.expm1(np.log1p(price[is_large]).mean())
    assert traits["price"].value == pytest.approx(typical, rel=1e-3)
    assert_array_equal(ss.metrics.assign(table[["cut", "price"]], decoding), is_large)


def test_a_profile_is_a_table_with_the_names_of_the_columns_kept():
    X = pd.DataFrame({"share": [0.0, 0.1, 5.0, 5.1], "<script>": [1.0, 1.1, 2.0, 2.1]})
    decoding = ss.decode(ss.sketch(pd.concat([X] * 20, ignore_index=True), n_clusters=2), 2)
    frame, clusters = decoding.profile.to_pandas(), decoding.to_pandas()

    own = ["cluster", "rows", "cluster share", "spread", "name"]
    assert list(frame.columns) == [*own, "share", "<script>"]
    assert frame["rows"].tolist() == [40, 40]
    assert sorted(frame["share"].round(2)) == [0.05, 5.05]
    content = json.loads(json.dumps(decoding.profile.to_dict(), allow_nan=False))
    assert [c["name"] for c in content["clusters"]] == frame["name"].tolist()
    assert list(clusters.columns) == ["cluster", "cluster share", "share", "<script>"]
    assert_array_equal(clusters[["share", "<script>"]], decoding.centroids)


def test_lines_tell_rows_share_name_and_what_sets_a_cluster_apart():
    assert told([[2.5], [0.0]], [0.25, 0.75], columns=("price",)).lines() == [
        "0  250 rows  25.0 %  very high price",
        "   price very high, +2.5 sd (2.50)",
        "1  750 rows  75.0 %  near the average",
    ]


def test_a_decoding_without_a_sketch_is_told_from_its_clusters(made):
    bare = made(np.array([[0.0], [10.0]]))
    wide = replace(bare, covariances=np.ones((2, 1, 1)))

    assert (wide.std, bare.std) == (pytest.approx(np.sqrt(26.0)), pytest.approx(5.0))
    assert [c.name for c in bare.profile.clusters] == ["low column 0", "high column 0"]
    assert wide.profile.clusters[0].rows is None
    assert bare.profile.clusters[0].spread is None


@pytest.mark.parametrize(
    ("value", "spread", "n", "text"),
    [
        (230.934, 12.0, None, "231"),
        (0.0123, 0.004, 150, "0.012"),
        (3932.799, 3989.4, 53940, "3,930"),
        (3932.799, 4000.0, None, "3,900"),
        (3932.799, 4000.0, 10**9, "3,930"),
        (1234567.0, None, None, "1,235,000"),
        (-0.0001, 1.0, 100, "0"),
        (float("nan"), 1.0, 10, "-"),
        (2.5e-20, None, None, "2.5e-20"),
    ],
)
def test_numbers_have_the_digits_that_mean_something(value, spread, n, text):
    assert meaningful(value, spread, n) == text
