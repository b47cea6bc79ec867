"""Whether the pages can be read: at both widths, in both colour schemes, with other senses."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.browser
CHARTS = ("#parallel", "#map", "#curve", "#trends")  # the last one of tables alone
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_from_their_ground(browser, report, scheme):
    """WCAG 2: 4.5 to 1 for text, 3 to 1 for lines."""
    browser.open(report)
    browser.look(1280, scheme)

    for ground in ("page", "card"):
        for name, least in [("text", 4.5), ("quiet", 4.5), ("accent", 4.5), ("alarm", 4.5)] + [
            (f"c{i}", 3.0) for i in range(7)
        ]:
            assert contrast(colour(browser, name), colour(browser, ground)) >= least, name
    browser.look(1280)


def colour(browser, name: str) -> list[float]:
    code = "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0])"
    text = browser.script(code, f"--{name}").strip()
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
