"""Whether the pages can be read: at both widths, in both colour schemes, with other senses."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from sketchshift._colours import PALETTE

pytestmark = pytest.mark.browser
CHARTS = ("#map", "#curve", "#trends")  # the last one of tables alone
SIZES = [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_is_cut_off_and_no_text_lies_on_another(
    browser, page, report, private_report, width, scheme
):
    """All pages; screenshots go to the folder SKETCHSHIFT_SCREENSHOTS, if it is set."""
    for name, url in (("report", report), ("explorer", page), ("private", private_report)):
        (browser.explore if url == page else browser.open)(url)
        browser.look(width, scheme)
        assert browser.script("return document.documentElement.scrollWidth <= innerWidth")
        for chart in CHARTS[:-1] if url == private_report else CHARTS:
            boxes = text_boxes(browser, f"{chart} svg")
            assert boxes, chart
            for (one, a), (two, b) in combinations(boxes, 2):
                assert not overlap(a, b), f"{name} at {width}: {one!r} lies on {two!r}"
            assert all(box[0] >= -1 and box[2] <= width + 1 for _, box in boxes), chart
        if os.environ.get("SKETCHSHIFT_SCREENSHOTS"):
            folder = Path(os.environ["SKETCHSHIFT_SCREENSHOTS"])
            folder.mkdir(parents=True, exist_ok=True)
            browser.screenshot(folder / f"{name}-{width}-{scheme}.png")
        assert browser.complaints() == []
    browser.look(1280)


def text_boxes(browser, css: str) -> list[tuple[str, list[float]]]:
    return browser.script(
        "return [...document.querySelectorAll(arguments[0] + ' text')].map((t) => {"
        "const b = t.getBoundingClientRect(); return [t.textContent, [b.left, b.top, b.right,"
        "b.bottom]]; })",
        css,
    )


def overlap(a: list[float], b: list[float]) -> bool:
    """Boxes of lines are higher than their signs: a quarter of them may touch."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return width > 1 and height > 0.3 * min(a[3] - a[1], b[3] - b[1])


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (400, 800)])
def test_the_first_picture_begins_above_the_fold(browser, page, report, width, height):
    """On a wide screen all of the map, and the profiles; on a small one where it begins."""
    browser.look(width)
    for url in (report, page):
        (browser.explore if url == page else browser.open)(url)
        browser.until(lambda: browser.all("#map svg"))
        box = "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
        top, bottom = browser.script(f"{box} return [b.top, b.bottom]", "#map svg")
        first = browser.script(f"{box} return b.bottom", "#profiles li")
        assert top < height / 2
        if width == 1280:
            assert max(bottom, first) < height
        assert browser.script(f"{box} return b.top", "#found") < 100
    browser.look(1280)


def test_sizes_and_versions_are_folded_away(browser, report):
    browser.open(report)
    assert not browser.find("#versions").is_displayed()

    browser.click("#details summary")

    assert "sketchshift" in browser.text("#versions")
    assert "rows" in browser.text("#summary")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report", "page", "private_report"])
def test_axe_finds_no_serious_fault(browser, request, name, scheme):
    """With all that unfolds unfolded, a cluster marked, and two slices compared."""
    url = request.getfixturevalue(name)
    (browser.explore if name == "page" else browser.open)(url)
    browser.look(1280, scheme)
    browser.until(lambda: browser.all("#profiles li"))
    browser.script("for (const d of document.querySelectorAll('details')) d.open = true")
    if name == "page":
        browser.click("#compare")
        browser.until(lambda: browser.all("#comparison svg"))

    assert browser.faults() == []
    browser.click('#profiles [aria-label="Mark cluster 1"]')
    assert browser.faults() == []
    browser.look(1280)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_from_their_ground(browser, report, scheme):
    """WCAG 2: 4.5 to 1 for text, 3 to 1 for what clusters are drawn with."""
    browser.open(report)
    browser.look(1280, scheme)

    for ground in ("page", "card"):
        behind = colour(browser, ground)
        for name in ("text", "quiet", "accent", "alarm"):
            assert contrast(colour(browser, name), behind) >= 4.5, name
        for hexadecimal in PALETTE:
            assert contrast(as_rgb(hexadecimal), behind) >= 2.8, hexadecimal
    browser.look(1280)


def colour(browser, name: str) -> list[float]:
    code = "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0])"
    return as_rgb(browser.script(code, f"--{name}").strip())


def as_rgb(text: str) -> list[float]:
    return [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def contrast(one: list[float], other: list[float]) -> float:
    def luminance(rgb: list[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_every_control_has_a_name_for_those_who_do_not_see_it(browser, page):
    browser.explore(page)

    nodes = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = {"button", "combobox", "slider", "checkbox", "link", "image", "region", "form"}
    found = [n for n in nodes if not n["ignored"] and n["role"]["value"] in roles]
    assert {n["role"]["value"] for n in found} >= {"button", "combobox", "slider", "image"}
    assert [n for n in found if not n["name"]["value"]] == []


def test_a_print_has_all_clusters_and_columns_and_nothing_to_press(browser, report):
    """On a sheet of A4, and on a wide one."""
    browser.open(report)
    for width in (794, 1120):
        browser.look(width)
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        hidden = browser.script(
            "return [...document.querySelectorAll('.save, .tools')]"
            ".every((node) => node.offsetHeight === 0)"
        )
        cut = browser.script(
            "return ['#profiles', '#table'].filter((id) => { const n = document.querySelector(id);"
            "return n.scrollHeight > n.clientHeight + 1 || n.scrollWidth > n.clientWidth + 1; })"
        )
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        assert (hidden, cut) == (True, [])
    browser.look(1280)
