"""The explorer in a real browser, used as a person would."""

from __future__ import annotations

import csv
import re
import time
from urllib.parse import urlsplit

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sketchshift.decoders import Turnkey
from sketchshift.view.explorer import Explorer
from sketchshift.view.server import listening

pytestmark = pytest.mark.browser


def test_the_explorer_can_be_used_without_a_mouse(browser, page):
    """Tab to the slice and to k, keys to change them."""
    from selenium.webdriver.common.keys import Keys

    browser.explore(page)
    reached = []
    for _ in range(4):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.script("return document.activeElement.id"))

    assert reached[1:] == ["slice", "k", "save-report"]
    browser.find("#k").send_keys(Keys.ARROW_LEFT)
    browser.until_found("9 clusters")
    browser.find("#slice").send_keys(Keys.ARROW_DOWN)
    browser.until_found(r".* \(month = 2026-01\)")


def test_k_and_slice_are_changed_by_clicking(browser, page):
    from selenium.webdriver.common.action_chains import ActionChains

    browser.explore(page)
    slider = browser.find("#k")
    at = (4 - 5.5) / 9 * (slider.size["width"] - 16)
    ActionChains(browser.driver).move_to_element_with_offset(slider, at, 0).click().perform()
    assert browser.text("#k-shown") == "4"
    browser.until_found("4 clusters")
    browser.all("#slice option")[3].click()
    browser.until_found(r".* \(month = 2026-03\)")

    assert len(browser.all("#table tbody tr")) == 4
    assert browser.strangers(urlsplit(page).netloc) == []


@pytest.fixture
def slow_page(subject_page, monkeypatch):
    """The same, whose fits take most of a second, and can be ended early."""
    fit = Turnkey.fit

    def slow(*arguments, progress=None, **options):
        for _ in range(8):
            time.sleep(0.1)
            progress(0)
        return fit(*arguments, progress=progress, **options)

    monkeypatch.setattr(Turnkey, "fit", slow)
    return subject_page


def test_many_wishes_of_two_windows_end_in_the_last_of_each(browser, slow_page):
    browser.explore(slow_page)
    wish = (
        "const k = document.getElementById('k'), n = arguments[0];"
        "for (let i = 1; i <= n; i += 1) setTimeout(() => { k.value = i;"
        "k.dispatchEvent(new Event('input')); }, 150 * i);"
    )
    with browser.another_window():
        browser.explore(slow_page)
        browser.script(wish, 3)
        browser.driver.switch_to.window(browser.driver.window_handles[0])
        browser.script(wish, 4)
        browser.until_found("4 clusters")
        assert "alarm" not in browser.find("#status").get_attribute("class")
        browser.driver.switch_to.window(browser.driver.window_handles[1])
        browser.until_found("3 clusters")
        assert browser.complaints() == []


def test_a_comparison_has_the_numbers_and_colours_of_the_clusters_shown(browser, subject_page):
    """The third cluster grows from day to day: its number in words is that of the table."""
    browser.explore(subject_page)
    browser.all("#after option")[3].click()
    browser.click("#compare")
    browser.until(lambda: browser.all("#changes li"))
    browser.click("[data-file='comparison.csv']")

    told = [
        re.match(r"Cluster (\d) \((.*)\) (grew|shrank) from [\d.]+ % to", line.text).groups()
        for line in browser.all("#changes li")
    ]
    assert {verb for *_, verb in told} == {"grew", "shrank"}
    for number, name, _ in told:
        assert browser.all("#profiles .name")[int(number)].text == name
        mark = f".mark[data-cluster='{number}']"
        assert browser.fill(f"#comparison {mark}") == browser.fill(f"#map {mark}")
    with browser.downloaded("comparison.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["cluster", "name", "day = 2026-01-01", "day = 2026-01-04", "change"]
    shares = np.array([row[2:4] for row in rows], float)
    assert_allclose(shares.sum(axis=0), 1.0)


def test_the_address_brings_back_k_slice_and_comparison(browser, subject_page):
    """After a reload, by going back and forward, and as a link in another window."""

    def until_shown():
        browser.until(lambda: browser.text("#found") == shown)

    browser.explore(subject_page)
    browser.click("#k")
    browser.until_found("3 clusters")
    browser.all("#slice option")[2].click()
    browser.until_found(r".* \(day = 2026-01-02\)")
    browser.click("#compare")
    browser.until(lambda: browser.all("#comparison svg"))
    shown, address = browser.text("#found"), browser.script("return location.href")

    browser.driver.refresh()
    until_shown()
    browser.until(lambda: browser.all("#comparison svg"))
    browser.driver.back()  # before the comparison
    browser.until(lambda: not browser.find("#comparison").is_displayed())
    browser.driver.back()  # before the slice
    browser.until_found("3 clusters in 3,000 rows")
    browser.driver.forward()
    until_shown()
    with browser.another_window():
        browser.driver.get(address)
        until_shown()
        browser.until(lambda: browser.all("#comparison svg"))


@pytest.fixture
def subject_page(subject):
    """The address of an explorer of three clusters, one of which grows."""
    with listening(Explorer(subject, 5)) as address, address.in_background():
        yield address.url


def test_what_is_shown_can_be_saved_as_a_report(browser, page):
    browser.explore(page)
    browser.all("#slice option")[2].click()
    browser.until_found(r".* \(month = 2026-02\)")
    shown = browser.column(3)

    browser.click("#save-report")
    saved = browser.downloaded("report.html")
    browser.open(saved.as_uri())

    browser.until_found(r".* \(month = 2026-02\)")
    assert browser.column(3) == shown
    browser.click("#details summary")
    assert "where=\"month = '2026-02'\"" in browser.text("#commands")
    assert browser.strangers() == []
