from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

import sketchshift as ss
from sketchshift._times import describe_keys
from sketchshift.recipe import Category, Log, Recipe
from sketchshift.view.document import (
    SketchFile,
    build_document,
    build_trends,
    build_view,
    compare_slices,
)
from sketchshift.view.page import policy, render, report_on


def floats(packed):
    return np.frombuffer(base64.b64decode(packed), dtype="<f4").astype(float)


@pytest.fixture(scope="module")
def decoding(subject):
    return ss.decode(subject.whole, 3)


@pytest.fixture(scope="module")
def text(subject):
    return report_on(subject, 3)[0]


def view_of(sketch, k):
    file = SketchFile.of("x", 1, sketch)
    return build_view(file.choices[0], sketch, ss.decode(sketch, k))


def test_the_page_is_given_rows_means_variances_and_ends_of_the_cells(subject, data):
    """By the laws of total expectation and variance, cells give the moments of all rows."""
    view = view_of(subject.whole, 3)

    cells, shares = view["cells"], np.array(view["cells"]["weights"])
    means, variances = (floats(cells[name]).reshape(-1, 3) for name in ("means", "variances"))
    assert_allclose(shares.sum(), 1.0)
    assert_allclose(shares @ means, data.mean(axis=0), atol=1e-4)
    second = shares @ (variances + means**2) - (shares @ means) ** 2
    assert_allclose(second, data.var(axis=0), rtol=1e-3)
    assert_allclose([view["lower"], view["upper"]], [data.min(axis=0), data.max(axis=0)])


@pytest.mark.filterwarnings("ignore::sketchshift.errors.PlanWarning")
def test_rows_beyond_the_plan_widen_the_map():
    """A plan of rows above 0, and later rows below it: cells there have other means."""
    X = np.random.default_rng(0).uniform(size=(2000, 2))

    lower = view_of(ss.sketch(X - [0.5, 0.0], ss.plan(X, 3)), 3)["lower"]

    assert lower[0] < -0.2
    assert lower[1] == X[:, 1].min()


def test_the_columns_of_the_map_are_those_that_tell_the_clusters_apart():
    """Four clusters in two of six columns; a copy of one of these tells nothing more."""
    rng = np.random.default_rng(0)
    labels, X = rng.integers(0, 4, 4000), rng.normal(size=(4000, 6))
    X[:, [1, 4]] += np.column_stack([8.0 * (labels % 2), 7.0 * (labels // 2)])
    X[:, 2] = X[:, 1] + 0.1 * rng.normal(size=4000)

    view = view_of(ss.sketch(X, n_clusters=4), 4)

    assert set(view["pair"]) in ({1, 4}, {2, 4})
    assert set(view["order"][:3]) == {1, 2, 4}
    assert sorted(view["order"]) == list(range(6))


def test_columns_on_a_log_scale_and_categories_are_shown_in_the_units_of_the_table():
    """Two groups a thousand times apart; prices on the axis are those of the table."""
    rng = np.random.default_rng(0)
    price = np.exp(rng.normal(size=2000)) * np.repeat([1.0, 1000.0], 1000)
    data = pa.table({"price": price, "cut": np.repeat(["fair", "good"], 1000)})
    recipe = Recipe([Log("price"), Category("cut", ("fair", "good"))])

    view = view_of(ss.sketch(data, ss.plan(data, 2, columns=recipe)), 2)

    ticks, *others = view["ticks"]
    for place, text in ticks:
        natural = recipe.parts[0].natural(place)
        assert natural == pytest.approx(float(text.replace(",", "")), rel=0.02)
    assert {"1", "10", "100", "1,000"} < {text for _, text in ticks}
    assert others == [None, None]
    _, (rich, *cuts) = sorted(view["shown"], key=lambda row: len(row[0]))
    assert 500 < float(rich.replace(",", "")) < 2000
    assert cuts == ["0 %", "100 %"]


def test_the_first_sentence_says_what_is_in_the_data(subject, decoding):
    whole, day = (
        build_view(choice, subject.sketch_of(choice), decoding)["lead"]
        for choice in subject.choices[:2]
    )

    name, share = decoding.profile.clusters[0].name, f"{100 * decoding.weights[0]:.0f}"
    assert whole == (
        f"3 clusters in 3,000 rows and 3 columns; the largest ({name}) has "
        f"{share}\N{NO-BREAK SPACE}% of the rows. {decoding.trust}"
    )
    assert day.startswith("3 clusters in 750 rows (day = 2026-01-01) and 3 columns; ")


def test_keys_are_shown_as_people_write_them():
    for unit, key, shown in (
        ("month", date(2013, 1, 1), "Jan 2013"),
        ("day", date(2026, 1, 7), "7 Jan 2026"),
        ("year", date(2013, 1, 1), "2013"),
        ("quarter", date(2013, 4, 1), "Q2 2013"),
        ("week", date(2026, 1, 5), "week of 5 Jan 2026"),
        ("hour", datetime(2026, 1, 7, 14, tzinfo=UTC), "7 Jan 2026, 14:00:00+00:00"),
        ("month_of_year", 4, "Apr"),
        ("hour_of_day", 4, "4"),
        ("shop", None, "(missing)"),
    ):
        assert describe_keys(unit, [key]) == [shown]


def test_weekdays_and_months_are_shown_in_their_order():
    groups = np.random.default_rng(0).normal(size=180) + np.tile([0.0, 20.0], 90)
    for names, expected in (
        (["Friday", "Monday", "Sunday"], ["Monday", "Friday", "Sunday"]),
        (["Apr", "Aug", "Jan"], ["Jan", "Apr", "Aug"]),
        (["Friday", "Monday", "never"], ["Friday", "Monday", "never"]),
    ):
        data = pd.DataFrame({"x": groups, "day": np.repeat(names, 60)})
        file = SketchFile.of("week", 1, ss.sketch_by(data, "day", n_clusters=2))
        [trend] = build_trends(file, ss.decode(file.whole, 2), file.whole)
        assert trend["names"] == expected


def test_a_comparison_keeps_the_clusters_that_are_shown_and_tells_the_change_in_words(
    subject, decoding
):
    """The third cluster grows from day to day, the first one shrinks: see ``rows``."""
    whole, (_, first, *_, last, shop) = subject.whole, subject.choices[:6]

    found = compare_slices(subject, first, last, decoding, whole)

    for name, side in (("before", first), ("after", last)):
        expected = ss.decoders.shares(decoding, subject.sketch_of(side), reference=whole)
        assert_allclose([c[name] for c in found["clusters"]], expected, atol=1e-9)
    grown = int(np.argmin(decoding.centroids[:, 2]))
    before, after = (100 * found["clusters"][grown][name] for name in ("before", "after"))
    assert after > before
    name = decoding.profile.clusters[grown].name
    [sentence] = [text for text in found["words"] if "grew" in text]
    assert sentence == f"Cluster {grown} ({name}) grew from {before:.0f} % to {after:.0f} %."
    assert found["sentence"].startswith("day = 2026-01-01 and day = 2026-01-04 differ: ")
    with pytest.raises(ss.errors.DataError, match="share rows"):
        compare_slices(subject, first, shop, decoding, whole)


def test_names_from_the_data_cannot_end_the_script_or_the_title_they_travel_in(
    embedded, subject, text
):
    assert embedded(text)["columns"][1] == "<script>alert(1)</script>"
    assert "<script>alert(1)" not in text
    assert text.count("<script") == text.count("</script>") == 2
    other = render(build_document(replace(subject, name="</title><b>.sketch"), []))
    assert "<title>&lt;/title&gt;&lt;b&gt;.sketch: clusters</title>" in other


def test_names_neither_turn_nor_hide_what_stands_beside_them(embedded):
    """The page shows escapes; the table that it saves has the true names, and no formulas."""
    names = ["=a\u202eb", "c\x1b[31m"]
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=names)
    rows["\u2066day"] = ["\u202e1", "2\u200f"] * 150
    table = ss.sketch_by(rows, by="\u2066day", n_clusters=2, standardize=True)

    text, _ = report_on(SketchFile.of("\u202e.parquet", 10, table), 2)
    shown = embedded(text)
    header = shown.pop("header")

    escapes = re.findall(r"\\u(20[0-9a-f]{2}|001b)", json.dumps(shown).replace("\\\\", ""))
    assert escapes == []
    assert "\u202e" not in text
    assert shown["columns"] == [r"=a\u202eb", r"c\x1b[31m"]
    scales = [f"'{names[0]} scale", f"{names[1]} scale"]
    assert header == ["cluster", "share", f"'{names[0]}", names[1], *scales]


def test_the_policy_allows_exactly_the_program_and_style_that_are_there(text):
    """The digests are those of what stands between the tags."""
    for tag in ("script", "style"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy(live=False)
    assert "default-src 'none'" in policy(live=False)
    assert policy(live=False) in text


def test_a_report_names_no_address_outside_itself(text):
    """But for the name of SVG, which is no address, though it looks like one."""
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", text)


def test_the_clusters_in_a_report_are_those_of_decode_to_the_last_bit(
    embedded, subject, decoding, text
):
    clusters = embedded(text)["view"]["profile"]["clusters"]

    assert [cluster["means"] for cluster in clusters] == decoding.centroids.tolist()
    assert [cluster["share"] for cluster in clusters] == decoding.weights.tolist()
    assert embedded(text)["curve"]["chosen"] == ss.decode(subject.whole, "auto").curve.chosen


def test_shares_over_slices_are_those_of_the_library(subject, table, decoding):
    day, shop = build_trends(subject, decoding, subject.whole)

    assert (day["column"], shop["column"]) == ("day", "shop")
    for trend in (day, shop):
        merged = table.merge_by(trend["column"])
        of = [ss.decoders.shares(decoding, s, reference=subject.whole) for s in merged.sketches]
        assert_allclose(trend["shares"], of, atol=1e-9)
        assert trend["counts"] == merged.counts.tolist()


def test_every_choice_is_selected_by_its_own_condition(subject, table):
    """Also hours of the night when clocks are set back: one of them comes twice."""
    times = pd.date_range("2024-10-26 22:00", periods=12, freq="30min", tz="UTC")
    data = pd.DataFrame({"t": times.tz_convert("Europe/Berlin"), "x": np.arange(12.0)})
    hours = ss.sketch_by(data, "hour(t)", ss.SketchSpec(1, 20, 1.0, columns=["x"]))
    night = SketchFile.of("hours", 1, hours)

    for of, file in ((table, subject), (hours, night)):
        for choice in file.choices[1:]:
            assert of.where(choice.where).merge() == file.sketch_of(choice)
    labels = [choice.label for choice in subject.choices]
    assert labels[:2] == ["all rows", "day = 2026-01-01"]
    assert (len(labels), len(night.choices)) == (1 + 4 + 3, 1 + 6)


def three_groups(n_seen):
    """Rows in three groups, of which a plan on the first rows sees some."""
    X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 600, axis=0)
    X += np.random.default_rng(0).normal(size=(1800, 2))
    return SketchFile.of("three.sketch", 10, ss.sketch(X, ss.plan(X[:n_seen], 3)))


def test_a_report_says_how_far_clusters_can_be_trusted_and_warns_where_they_cannot(embedded):
    text, decoding = report_on(three_groups(1800), 3)
    with pytest.warns(ss.errors.PlanWarning) as told:
        other, doubtful = report_on(three_groups(600), 3)

    shown = embedded(text)
    assert shown["view"]["sentence"] == str(decoding.trust)
    assert dict(shown["plan"])["cells"].startswith("planned on 1,800 rows: ")
    assert [str(warning.message) for warning in told] == [str(doubtful.trust)]
    assert [embedded(t)["view"]["is_good"] for t in (text, other)] == [True, False]


def test_a_sketch_of_cells_alone_has_a_report_without_a_curve(embedded):
    sketch = three_groups(1800).whole.prefix(0)

    shown = embedded(report_on(SketchFile.of("cells.sketch", 10, sketch), 3)[0])

    assert shown["curve"] is None
    assert len(shown["view"]["profile"]["clusters"]) == 3
