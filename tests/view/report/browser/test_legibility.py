"""Whether the pages can be read: at both widths, in both colour schemes, with other senses."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.browser
CHARTS = ("#map", "#curve", "#trends")  # the last one of tables alone
SIZES = [(1280, "light"), (1280, "dark"), (400, "light"), (400, "dark")]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_nothing_is_cut_off_and_no_text_lies_on_another(
    browser, page, report, private_report, width, scheme
):
    """Boxes of lines are higher than their signs: a quarter of them may touch."""
    for url in (report, page, private_report):
        (browser.explore if url == page else browser.open)(url)
        browser.look(width, scheme)
        assert browser.script("return document.documentElement.scrollWidth <= innerWidth")
        for chart in CHARTS[:-1] if url == private_report else CHARTS:
            texts, cut = browser.script(
                "const t = [...document.querySelectorAll(arguments[0] + ' svg text')].map((t) =>"
                "[t.textContent, t.getBoundingClientRect()]); const over = ([, a], [, b]) =>"
                "Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&"
                "Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) >"
                "0.3 * Math.min(a.height, b.height);"
                "return [t.length, t.filter((one, i) => one[1].left < -1 ||"
                "one[1].right > innerWidth + 1 || t.slice(0, i).some((two) => over(one, two)))]",
                chart,
            )
            assert texts
            assert cut == []
    browser.look(1280)


@pytest.mark.parametrize("width", [1280, 400])
def test_the_first_picture_begins_above_the_fold(browser, page, width):
    """On a wide screen all of the map, and the profiles; on a small one where it begins."""
    browser.look(width)
    browser.explore(page)
    found, picture, first = browser.script(
        "return ['#found', '#map svg', '#profiles li'].map((css) =>"
        "document.querySelector(css).getBoundingClientRect())"
    )
    assert found["top"] < 100
    assert picture["top"] < 400
    assert width == 400 or max(picture["bottom"], first["bottom"]) < 800
    browser.look(1280)


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
