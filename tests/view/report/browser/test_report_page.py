"""The report in a real browser, used as a person would: `make test-browser`."""

from __future__ import annotations

import csv
import json
import re

import matplotlib.image as mpimg
import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift._colours import PALETTE, shade
from sketchshift.recipe import Category, Number
from sketchshift.view.document import SketchFile
from sketchshift.view.page import report_on

pytestmark = pytest.mark.browser


def numbers(texts: list[str]) -> list[float]:
    plain = (text.replace("\N{MINUS SIGN}", "-").replace(",", "") for text in texts)
    return [float(text.removesuffix(" %")) for text in plain]


def test_a_report_opens_without_network_and_without_complaint(browser, report):
    browser.open(report)
    browser.until(lambda: len(browser.all("#table tbody tr")) == 5)

    for section in ("#map svg", "#profiles li", "#curve svg", "#trends svg"):
        assert browser.all(section)
    assert not browser.find("#promise").is_displayed()
    assert browser.complaints() == []
    assert browser.strangers() == []


def test_the_report_of_a_private_sketch_shows_the_promise(browser, private_report, private):
    browser.open(private_report)
    browser.until(lambda: len(browser.all("#table tbody tr")) == 3)

    assert private.statement in browser.text("#promise")
    assert f"3 clusters in about {private.count:,} rows" in browser.text("#found")
    assert len(browser.all("#map polygon")) == 3
    assert browser.complaints() == []
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
    assert browser.complaints() == []


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


def test_the_saved_csv_has_the_floats_of_the_decoding(browser, report, subject):
    browser.open(report)

    browser.click("[data-file='clusters.csv']")

    with browser.downloaded("centroids.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    expected = ss.decode(subject.whole, 5)
    assert head == ["cluster", "share", *subject.columns]
    assert [[float(cell) for cell in row[2:]] for row in rows] == expected.centroids.tolist()
    assert [float(row[1]) for row in rows] == expected.weights.tolist()


def test_the_saved_json_has_the_profile_and_the_slices(browser, report, subject):
    browser.open(report)

    browser.click("[data-file='clusters.json']")

    saved = json.loads(browser.downloaded("clusters.json").read_text())
    profile = ss.decode(subject.whole, 5).profile.to_dict()
    assert saved["clusters"] == profile["clusters"]
    assert [trend["column"] for trend in saved["slices"]] == ["day", "shop"]


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
    near = np.abs(image[:, :, :3] * 255 - [31, 120, 200]).max(axis=2) < 8
    assert near.sum() > 50
    assert browser.complaints() == []


def test_a_marked_cluster_stands_out_in_all_pictures(browser, report):
    browser.open(report)

    browser.click('#table [aria-label="Mark cluster 2"]')

    assert len(browser.all("#map g.pick.faint")) == 4
    assert len(browser.all("#profiles li.faint")) == 4
    assert len(browser.all("#trends g.faint")) == 4
    assert browser.script("return document.activeElement.textContent") == "2"
    assert browser.script("return location.hash") == "#cluster=2"


def test_a_cluster_has_one_colour_in_map_profile_table_and_slices(browser, report):
    browser.open(report)

    for i in range(5):
        places = (
            f"#map .mark[data-cluster='{i}']",
            f"#profiles li:nth-child({i + 1}) .mark",
            f"#table [aria-label='Mark cluster {i}'] .mark",
            f"#trends rect[data-area='{i}']",
        )
        code = "return getComputedStyle(document.querySelector(arguments[0])).fill"
        bar = "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor"
        found = {browser.script(code, css) for css in places}
        found.add(browser.script(bar, f"#profiles li:nth-child({i + 1}) .bar"))
        red, green, blue = (int(PALETTE[i][c : c + 2], 16) for c in (1, 3, 5))
        assert found == {f"rgb({red}, {green}, {blue})"}


def test_numbers_are_shaded_by_their_distance_from_the_mean(browser, report, subject):
    browser.open(report)
    deviations = ss.decode(subject.whole, 5).profile.table.deviations

    order = browser.script("return JSON.parse(document.getElementById('document').text).view.order")
    code = "return [...document.querySelectorAll(arguments[0])].map((c) => c.style.backgroundColor)"
    for place, column in enumerate(order):
        found = browser.script(code, f"#table tbody td:nth-child({place + 3})")
        rgba = [[float(x) for x in re.findall(r"[\d.]+", text)] for text in found]
        for (*rgb, alpha), deviation in zip(rgba, deviations[:, column], strict=True):
            expected = shade(deviation)
            assert rgb == [int(expected[c : c + 2], 16) for c in (1, 3, 5)]
            assert alpha == pytest.approx(int(expected[7:], 16) / 255, abs=5e-3)


def test_columns_can_be_left_out(browser, report):
    browser.open(report)

    browser.click("#columns summary")
    browser.click('#column-list input[value="1"]')

    assert browser.text("#columns-title") == "Columns: 2 of 3"
    assert "<script>" not in browser.text("#table thead")


def test_a_wide_table_shows_the_columns_that_tell_clusters_apart_and_the_rest_on_demand(
    browser, tmp_path
):
    """Of 30 columns the last ten have clusters in them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 30))
    X[:, 20:] += 6.0 * rng.normal(size=(4, 10))[rng.integers(0, 4, 4000)]
    sketch = ss.sketch(X, n_clusters=4)
    (tmp_path / "wide.html").write_text(report_on(SketchFile.of("wide", 1, sketch), 4)[0])
    browser.open((tmp_path / "wide.html").as_uri())

    names = [head.text for head in browser.all("#table thead th")][2:]
    assert len(names) == 12
    assert {f"column {c}" for c in range(20, 30)} < {
        name.split(" \N{UP DOWN ARROW}")[0] for name in names
    }
    browser.click("#all-columns")

    assert len(browser.all("#table thead th")) == 32
    assert browser.script("return document.documentElement.scrollWidth <= innerWidth")
    assert not browser.find("#all-columns").is_displayed()


def test_the_map_is_densest_where_the_rows_are_and_empty_where_none_can_be(browser, tmp_path):
    """Rows fall off from (0, 0), and none is negative: so is the picture."""
    X = np.random.default_rng(0).exponential(size=(20_000, 2))
    sketch = ss.sketch(X, n_clusters=8)
    (tmp_path / "prices.html").write_text(report_on(SketchFile.of("prices", 1, sketch), 4)[0])

    browser.open((tmp_path / "prices.html").as_uri())
    clip = browser.find("#map clipPath rect")
    ticks = browser.script(
        "return [...document.querySelectorAll('#map text.quiet')].map((t) => [t.textContent,"
        "t.getAttribute('text-anchor'), Number(t.getAttribute('x'))])"
    )
    zero = next(x for text, anchor, x in ticks if text == "0" and anchor == "middle")
    pixels = browser.driver.execute_async_script(
        "const done = arguments[0], image = new Image();"
        "image.onload = () => { const c = document.createElement('canvas');"
        "c.width = image.width; c.height = image.height; const x = c.getContext('2d');"
        "x.drawImage(image, 0, 0);"
        "done([...x.getImageData(0, 0, c.width, c.height).data]); };"
        "image.src = document.querySelector('#map image').getAttribute('href');"
    )
    n = int((len(pixels) // 4) ** 0.5)
    alpha = np.array(pixels).reshape(n, n, 4)[::-1, :, 3]
    up, right = np.unravel_index(alpha.argmax(), alpha.shape)

    assert float(clip.get_attribute("x")) == pytest.approx(zero, abs=1.0)
    assert max(up, right) < n / 5


def test_what_was_chosen_is_in_the_address_and_comes_back(browser, report):
    browser.open(report)
    before = [browser.find(f"#{axis}").get_attribute("value") for axis in ("across", "upwards")]

    browser.click(f'#across option[value="{before[1]}"]')  # the other axis' column: they swap
    browser.click('#profiles [aria-label="Mark cluster 1"]')
    browser.all("#trend option")[1].click()
    address = browser.script("return location.href")
    browser.open("about:blank")
    browser.open(address)

    after = [browser.find(f"#{axis}").get_attribute("value") for axis in ("across", "upwards")]
    assert after == before[::-1]
    pressed = browser.find('#table [aria-label="Mark cluster 1"]').get_attribute("aria-pressed")
    assert pressed == "true"
    assert browser.find("#trends svg").get_attribute("aria-label").endswith("by shop")
    assert browser.complaints() == []


def test_slices_without_many_rows_are_marked_with_their_counts(browser, tmp_path):
    """A slice of 12 rows, and one of none."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 1000, axis=0) + rng.normal(size=(2000, 2))
    day = np.repeat(["a", "b", "c"], [988, 12, 1000])
    table = ss.sketch_by(pa.table({"x": X[:, 0], "y": X[:, 1], "day": day}), "day", n_clusters=2)
    a, b, c = table.sketches
    file = SketchFile.of("days", 1, ss.SketchTable(table.keys, (a, b, c - c)))
    (tmp_path / "thin.html").write_text(report_on(file, 2)[0])

    browser.open((tmp_path / "thin.html").as_uri())

    assert "b (12 rows), c (0 rows)" in browser.text("#trends-note")
    texts = browser.script("return document.querySelector('#trends svg').textContent")
    assert "12 rows" in texts
    assert len(browser.all("#trends rect.thin")) == 2  # both clusters of the slice of 12
    assert len(browser.all("#trends rect.empty")) == 2


def report_of(X, tmp_path, k: int, **options) -> str:
    """The address of a report on some rows."""
    path = tmp_path / "report.html"
    path.write_text(report_on(SketchFile.of("x.sketch", 1, ss.sketch(X, **options)), k)[0])
    return path.as_uri()


def rings(browser) -> np.ndarray:
    """Width, height and slant of the ring of each cluster, in pixels: shape (k, 3)."""
    found = []
    for polygon in browser.all("#map polygon"):
        points = np.array([p.split(",") for p in polygon.get_attribute("points").split()], float)
        found.append([*np.ptp(points, axis=0), np.corrcoef(points.T)[0, 1]])
    return np.array(found)


def test_clusters_of_many_columns_are_as_wide_on_the_map_as_on_average(browser, tmp_path):
    """The sketch of 64 columns has no covariances: against the spread within the labels."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 4, 8000)
    X = 4.0 * np.eye(64)[label] + 0.5 * rng.normal(size=(8000, 64))
    columns = [f"e{i}" for i in range(64)]
    table = pa.table(dict(zip(columns, X.T, strict=True)))
    browser.open(report_of(table, tmp_path, 4, n_clusters=4, columns=columns))
    browser.until(lambda: len(browser.all("#map polygon")) == 4)
    assert "as wide as the clusters are on average" in browser.text("#map-note")
    assert browser.find("#across").text.splitlines()[-2].startswith("main axis 1")
    assert "main axis 1" in browser.find("#map svg").get_attribute("aria-label")

    for select, column in (("across", "e0"), ("upwards", "e1")):
        script = (
            "const s = document.getElementById(arguments[0]);"
            "s.value = [...s.options].findIndex((o) => o.text === arguments[1]);"
            "s.dispatchEvent(new Event('change'))"
        )
        browser.script(script, select, column)

    ticks = browser.script(
        "return [...document.querySelectorAll('#map text.quiet[text-anchor=middle]')]"
        ".map((t) => [Number(t.textContent.replace('\u2212', '-')), Number(t.getAttribute('x'))])"
    )
    (first, left), (last, right) = ticks[0], ticks[-1]
    pixels = (right - left) / (last - first)
    expected = 2 * np.sqrt(2 * np.log(2)) * 0.5 * pixels
    assert rings(browser)[:, 0] == pytest.approx(expected, rel=0.1)
    assert browser.complaints() == []


def test_the_density_slants_as_the_rows_do(browser, tmp_path):
    """Rows on a diagonal: nothing is drawn in the corners, where no row is."""
    rng = np.random.default_rng(0)
    along = rng.uniform(0, 100, 20_000)
    X = np.column_stack([along, along + rng.normal(0, 3, 20_000)])
    browser.open(report_of(X, tmp_path, 2, n_clusters=2))
    browser.until(lambda: browser.all("#map image"))

    alpha = browser.driver.execute_async_script(
        "const done = arguments[0], image = new Image();"
        "image.onload = () => { const c = document.createElement('canvas');"
        "c.width = c.height = 150; const x = c.getContext('2d'); x.drawImage(image, 0, 0);"
        "done([...x.getImageData(0, 0, 150, 150).data].filter((_, i) => i % 4 === 3)); };"
        "image.src = document.querySelector('#map image').getAttribute('href')"
    )
    picture = np.array(alpha, dtype=float).reshape(150, 150)[::-1]
    corners = [picture[:50, 100:], picture[100:, :50]]
    on = np.mean([picture[i, i] for i in range(10, 140)])
    assert max(np.mean(corner) for corner in corners) < 0.1 * on


def test_one_cluster_is_not_told_from_others(browser, tmp_path):
    X = np.abs(np.random.default_rng(0).normal(size=(2000, 3)))
    browser.open(report_of(X, tmp_path, 1, n_clusters=2))

    assert browser.text("#found") == "1 cluster in 2,000 rows and 3 columns."
    assert browser.text("#profiles .name") == "all rows"
    assert "apart" not in browser.text("#map-note")


def test_hyphens_in_names_stay_and_years_have_no_commas(browser, tmp_path):
    rng = np.random.default_rng(0)
    year = np.repeat([1950.0, 1990.0], 500) + rng.normal(0, 5, 1000)
    rated = ["PG-13"] * 450 + ["R"] * 50 + ["R"] * 500
    table = pa.table({"year": year, "length": rng.normal(90, 9, 1000), "mpaa": rated})
    recipe = ss.profiling.Recipe(
        [Number("year"), Number("length"), Category("mpaa", ("PG-13", "R"))]
    )
    browser.open(report_of(table, tmp_path, 2, n_clusters=2, columns=recipe, standardize=True))

    traits = " ".join(span.text for span in browser.all("#profiles .traits"))
    assert "PG-13" in traits
    assert re.search(r"year 19\d\d", traits)
    assert "\N{MINUS SIGN}" in traits
    ticks = [text.text for text in browser.all("#map text.quiet")]
    assert not [text for text in ticks if text.startswith("1,9")]
