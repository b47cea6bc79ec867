"""The report in a real browser, used as a person would: `make test-browser`."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.report.document import SketchFile
from sketchshift.report.page import report_on

pytestmark = pytest.mark.browser


def numbers(texts: list[str]) -> list[float]:
    return [float(text.replace("\N{MINUS SIGN}", "-").removesuffix(" %")) for text in texts]


def test_a_report_opens_without_network_and_without_complaint(browser, report):
    browser.open(report)
    browser.until(lambda: len(browser.all("#table tbody tr")) == 5)

    for section in ("#parallel svg", "#map svg", "#curve svg", "#trends svg"):
        assert browser.all(section)
    assert not browser.find("#promise").is_displayed()
    assert browser.complaints() == []
    assert browser.strangers() == []


def test_the_report_of_a_private_sketch_shows_the_promise(browser, private_report, private):
    browser.open(private_report)
    browser.until(lambda: len(browser.all("#table tbody tr")) == 3)

    assert private.statement in browser.text("#promise")
    assert f"3 clusters in about {private.count:,} rows" in browser.text("#found")
    assert "around the mean of the clusters" in browser.text("#parallel-note")
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

    browser.click("#table th:nth-child(3) button")
    upwards = numbers(browser.column(3))
    browser.click("#table th:nth-child(3) button")
    downwards = numbers(browser.column(3))

    assert upwards == sorted(upwards)
    assert downwards == upwards[::-1]
    assert browser.find("#table th:nth-child(3)").get_attribute("aria-sort") == "descending"


def test_the_saved_csv_has_the_floats_of_the_decoding(browser, report, subject):
    browser.open(report)

    browser.click("#save-csv")

    with browser.downloaded("centroids.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    expected = ss.decode(subject.whole, 5)
    assert head == ["cluster", "share", *subject.columns]
    assert [[float(cell) for cell in row[2:]] for row in rows] == expected.centroids.tolist()
    assert [float(row[1]) for row in rows] == expected.weights.tolist()


def test_a_marked_cluster_stands_out_in_all_pictures(browser, report):
    browser.open(report)

    browser.click('[aria-label="Mark cluster 2"]')

    assert len(browser.all("#parallel g.faint title")) == 4
    assert len(browser.all("#map .mark.marked")) == 1
    assert browser.script("return document.activeElement.textContent") == "2"


def test_columns_can_be_left_out(browser, report):
    browser.open(report)

    browser.click("#columns summary")
    browser.click('#column-list input[value="1"]')

    assert browser.text("#columns-title") == "Columns shown: 2 of 3"
    assert "<script>" not in browser.text("#table thead")


def test_the_map_is_densest_where_the_rows_are(browser, tmp_path):
    """One cloud at (2, -1): the strongest pixel lies there, as the data says."""
    X = np.random.default_rng(0).normal(size=(4000, 2)) * 0.5 + [2.0, -1.0]
    sketch = ss.sketch(X, n_clusters=2)
    (tmp_path / "cloud.html").write_text(report_on(SketchFile.of("cloud", 1, sketch), 1)[0])

    browser.open((tmp_path / "cloud.html").as_uri())
    pixels = browser.driver.execute_async_script(
        "const done = arguments[0], image = new Image();"
        "image.onload = () => { const c = document.createElement('canvas');"
        "c.width = image.width; c.height = image.height; const x = c.getContext('2d');"
        "x.drawImage(image, 0, 0);"
        "done([...x.getImageData(0, 0, c.width, c.height).data]); };"
        "image.src = document.querySelector('#map image').getAttribute('href');"
    )
    n = int((len(pixels) // 4) ** 0.5)
    red = np.array(pixels).reshape(n, n, 4)[::-1, :, 0]  # dark blue has the least red
    up, right = np.unravel_index(red.argmin(), red.shape)
    span = 2 * 3 * X.std(axis=0) * 1.08
    found = X.mean(axis=0) + ((np.array([right, up]) + 0.5) / n - 0.5) * span

    np.testing.assert_allclose(found, [2.0, -1.0], atol=0.15)  # where it is flat
