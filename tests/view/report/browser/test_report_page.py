"""The report in a real browser, used as a person would: `make test-browser`."""

from __future__ import annotations

import csv
import json
import re

import matplotlib.image as mpimg
import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import sketchshift as ss
from sketchshift._colours import PALETTE, shade
from sketchshift.recipe import Category, Number, Recipe
from sketchshift.view.document import SketchFile
from sketchshift.view.page import report_on

pytestmark = pytest.mark.browser


@pytest.fixture
def open_report(browser, tmp_path):
    """Opens a report on some rows, or on a table of sketches."""

    def opened(k, data, **options):
        sketched = data if isinstance(data, ss.SketchTable) else ss.sketch(data, **options)
        path = tmp_path / "report.html"
        path.write_text(report_on(SketchFile.of("x.sketch", 1, sketched), k)[0])
        browser.open(path.as_uri())
        browser.until(lambda: len(browser.all("#profiles li")) == k)

    return opened


def numbers(texts):
    plain = (text.replace("\N{MINUS SIGN}", "-").replace(",", "") for text in texts)
    return [float(text.removesuffix(" %")) for text in plain]


def test_a_report_opens_without_network_and_without_complaint(browser, report):
    browser.open(report)
    browser.until(lambda: len(browser.all("#table tbody tr")) == 5)

    for section in ("#map svg", "#profiles li", "#curve svg", "#trends svg"):
        assert browser.all(section)
    for folded in ("#promise", "#versions"):
        assert not browser.find(folded).is_displayed()
    assert browser.strangers() == []


def test_the_report_of_a_private_sketch_shows_the_promise(browser, private_report, private):
    browser.open(private_report)
    browser.until(lambda: len(browser.all("#table tbody tr")) == 3)

    assert private.statement in browser.text("#promise")
    assert f"3 clusters in about {private.count:,} rows" in browser.text("#found")
    assert len(browser.all("#map polygon")) == 3
    assert browser.strangers() == []


def test_names_from_the_data_stay_text(browser, report):
    """A name that is a script is neither run nor markup, wherever it stands."""
    browser.open(report)

    assert "<script>alert(1)</script>" in browser.text("#table thead")
    assert "<script>alert(1)</script>" in browser.text("#across")
    assert browser.script("return document.scripts.length") == 2
    browser.until(lambda: browser.all("#trend option"))
    browser.all("#trend option")[1].click()
    names = browser.script("return document.querySelector('#trends svg').textContent")
    assert "it's <b>" in names
    assert browser.all("main b") == []


def test_a_click_on_a_heading_sorts_the_table(browser, report):
    browser.open(report)
    shares = numbers(browser.column(2))
    assert shares == sorted(shares, reverse=True)

    browser.click("#table thead th:nth-child(3) button")
    upwards = numbers(browser.column(3))
    browser.click("#table thead th:nth-child(3) button")
    downwards = numbers(browser.column(3))

    assert upwards == sorted(upwards)
    assert downwards == upwards[::-1]
    assert browser.find("#table thead th:nth-child(3)").get_attribute("aria-sort") == "descending"


def test_the_saved_csv_has_the_floats_and_the_json_the_profile_of_the_decoding(
    browser, report, subject
):
    browser.open(report)

    for kind in ("csv", "json"):
        browser.click(f"[data-file='clusters.{kind}']")

    expected = ss.decode(subject.whole, 5)
    with browser.downloaded("centroids.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["cluster", "share", *subject.columns]
    numbers = np.array(rows, float)
    assert_array_equal(numbers[:, 1], expected.weights)
    assert_array_equal(numbers[:, 2:], expected.centroids)
    saved = json.loads(browser.downloaded("clusters.json").read_text())
    assert saved["clusters"] == expected.profile.to_dict()["clusters"]


@pytest.mark.parametrize("place", ["map", "trends"])
def test_a_picture_is_saved_as_it_looks(browser, report, place):
    """The SVG needs no style sheet, and both have the colours of the clusters."""
    browser.open(report)
    browser.until(lambda: browser.all(f"#{place} svg"))

    for kind in ("svg", "png"):
        browser.click(f"[data-picture='{place}'][data-kind='{kind}']")

    svg = browser.downloaded(f"{place}.svg").read_text()
    assert svg.startswith("<svg ")
    assert "var(" not in svg
    assert PALETTE[0] in svg or "rgb(31, 120, 200)" in svg
    image = mpimg.imread(browser.downloaded(f"{place}.png"))
    assert image.shape[1] == pytest.approx(2 * browser.find(f"#{place} svg").size["width"], abs=2)
    assert (np.abs(image[..., :3] * 255 - [31, 120, 200]).max(axis=2) < 8).sum() > 50


def test_a_cluster_has_one_colour_in_map_profile_table_and_slices(browser, report):
    browser.open(report)

    for i in range(5):
        found = {
            browser.fill(f"#map .mark[data-cluster='{i}']"),
            browser.fill(f"#profiles li:nth-child({i + 1}) .mark"),
            browser.fill(f"#table [aria-label='Mark cluster {i}'] .mark"),
            browser.fill(f"#trends rect[data-area='{i}']"),
            browser.script(
                "return getComputedStyle(arguments[0]).backgroundColor",
                browser.find(f"#profiles li:nth-child({i + 1}) .bar"),
            ),
        }
        assert found == {"rgb({}, {}, {})".format(*bytes.fromhex(PALETTE[i][1:]))}


def test_numbers_are_shaded_by_their_distance_from_the_mean(browser, report, subject):
    browser.open(report)
    deviations = ss.decode(subject.whole, 5).profile.table.deviations

    order = browser.script("return JSON.parse(document.getElementById('document').text).view.order")
    code = "return [...document.querySelectorAll(arguments[0])].map((c) => c.style.backgroundColor)"
    for place, column in enumerate(order):
        found = browser.script(code, f"#table tbody td:nth-child({place + 3})")
        for text, deviation in zip(found, deviations[:, column], strict=True):
            *rgb, alpha = (float(x) for x in re.findall(r"[\d.]+", text))
            expected = bytes.fromhex(shade(deviation)[1:])
            assert [*rgb, 255 * alpha] == pytest.approx([*expected], abs=1.3)


def test_a_wide_table_shows_the_columns_that_tell_clusters_apart_and_the_rest_on_demand(
    browser, open_report
):
    """Of 30 columns the last ten have clusters in them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 30))
    X[:, 20:] += 6.0 * rng.normal(size=(4, 10))[rng.integers(0, 4, 4000)]
    open_report(4, X, n_clusters=4)

    names = [head.text.split(" \N{UP DOWN ARROW}")[0] for head in browser.all("#table thead th")]
    assert len(names) == 14
    assert {f"column {c}" for c in range(20, 30)} < set(names)
    browser.click("#all-columns")

    assert len(browser.all("#table thead th")) == 32
    assert browser.script("return document.documentElement.scrollWidth <= innerWidth")
    assert not browser.find("#all-columns").is_displayed()


def test_the_map_is_densest_and_slants_where_the_rows_do_and_empty_where_none_can_be(
    browser, open_report
):
    """Rows on a diagonal fall off from (0, 0), and none is negative: so is the picture."""
    rng = np.random.default_rng(0)
    along = rng.exponential(size=(20_000, 1))
    open_report(4, along * rng.uniform(0.9, 1.1, (20_000, 2)), n_clusters=8)

    clip = browser.find("#map clipPath rect")
    zero = browser.script(
        "return [...document.querySelectorAll('#map text.quiet[text-anchor=middle]')]"
        ".find((t) => t.textContent === '0').getAttribute('x')"
    )
    pixels = browser.driver.execute_async_script(
        "const done = arguments[0], image = new Image();"
        "image.onload = () => { const c = document.createElement('canvas');"
        "c.width = c.height = 150; const x = c.getContext('2d'); x.drawImage(image, 0, 0, 150, 150);"
        "done([...x.getImageData(0, 0, 150, 150).data].filter((_, i) => i % 4 === 3)); };"
        "image.src = document.querySelector('#map image').getAttribute('href')"
    )
    alpha = np.array(pixels).reshape(150, 150)[::-1]
    on = np.mean(alpha.diagonal()[10:70])

    assert float(clip.get_attribute("x")) == pytest.approx(float(zero), abs=1.0)
    assert max(np.unravel_index(alpha.argmax(), alpha.shape)) < 30
    assert max(alpha[:30, 60:].mean(), alpha[60:, :30].mean()) < 0.1 * on


def test_what_was_chosen_is_in_the_address_and_comes_back(browser, report):
    def axes():
        return [browser.find(css).get_attribute("value") for css in ("#across", "#upwards")]

    browser.open(report)
    before = axes()
    browser.click(f'#across option[value="{before[1]}"]')  # the other axis' column: they swap
    browser.click('#profiles [aria-label="Mark cluster 1"]')
    for faint in ("#map g.pick", "#profiles li", "#trends g"):
        assert len(browser.all(f"{faint}.faint")) == 4
    browser.all("#trend option")[1].click()
    browser.open(browser.script("return location.href"))

    assert axes() == before[::-1]
    pressed = browser.find('#table [aria-label="Mark cluster 1"]').get_attribute("aria-pressed")
    assert pressed == "true"
    assert browser.find("#trends svg").get_attribute("aria-label").endswith("by shop")


def test_slices_without_many_rows_are_marked_with_their_counts(browser, open_report):
    """A slice of 12 rows, and one of none."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 1000, axis=0) + rng.normal(size=(2000, 2))
    day = np.repeat(["a", "b", "c"], [988, 12, 1000])
    table = ss.sketch_by(pa.table({"x": X[:, 0], "y": X[:, 1], "day": day}), "day", n_clusters=2)
    a, b, c = table.sketches

    open_report(2, ss.SketchTable.of(table.keys, (a, b, c - c)))

    assert "b (12 rows), c (0 rows)" in browser.text("#trends-note")
    assert len(browser.all("#trends rect.thin")) == 2  # both clusters of the slice of 12
    assert len(browser.all("#trends rect.empty")) == 2


def test_clusters_of_many_columns_are_as_wide_on_the_map_as_on_average(browser, open_report):
    """The sketch of 64 columns has no covariances: against the spread within the labels."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 4, 8000)
    open_report(4, 4.0 * np.eye(64)[label] + 0.5 * rng.normal(size=(8000, 64)), n_clusters=4)
    assert "as wide as the clusters are on average" in browser.text("#map-note")
    assert "main axis 1" in browser.find("#map svg").get_attribute("aria-label")

    browser.script(
        "const s = document.getElementById('across');"
        "s.value = [...s.options].findIndex((o) => o.text === 'column 0');"
        "s.dispatchEvent(new Event('change'))"
    )

    ticks, rings = browser.script(
        "return ['text.quiet[text-anchor=middle]', 'polygon'].map((css) =>"
        "[...document.querySelectorAll('#map ' + css)].map((n) => [n.textContent,"
        "n.getAttribute('x'), n.getBBox().width]))"
    )
    values, places = numbers([t for t, *_ in ticks]), [float(x) for _, x, _ in ticks]
    pixels = np.polyfit(values, places, 1)[0]
    expected = 2 * np.sqrt(2 * np.log(2)) * 0.5 * pixels
    assert [width for *_, width in rings] == pytest.approx([expected] * 4, rel=0.1)


def test_hyphens_in_names_stay_and_years_have_no_commas(browser, open_report):
    rng = np.random.default_rng(0)
    year = np.repeat([1950.0, 1990.0], 500) + rng.normal(0, 5, 1000)
    rated = np.repeat(["PG-13", "R"], [450, 550])
    table = pa.table({"year": year, "length": rng.normal(90, 9, 1000), "mpaa": rated})
    recipe = Recipe([Number("year"), Number("length"), Category("mpaa", ("PG-13", "R"))])
    open_report(2, table, n_clusters=2, columns=recipe, standardize=True)

    traits = " ".join(span.text for span in browser.all("#profiles .traits"))
    assert "PG-13" in traits
    assert re.search(r"year 19\d\d", traits)
    assert "\N{MINUS SIGN}" in traits
    ticks = [text.text for text in browser.all("#map text.quiet")]
    assert not [text for text in ticks if text.startswith("1,9")]
