"""A headless Chromium with the eyes and hands of a person; Selenium is imported on first use."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss
from sketchshift.view.document import SketchFile
from sketchshift.view.explorer import Explorer
from sketchshift.view.page import report_on
from sketchshift.view.server import listening

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # as root there is none to be had
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 120  # seconds, on a busy machine
LOCAL = ("file", "data", "blob", "chrome", "about")


class Browser:
    """A window, with the eyes and hands of a person."""

    def __init__(self, driver, downloads):
        self.driver, self.downloads = driver, downloads

    def open(self, url):
        """A page, after others of which the console said nothing."""
        self.driver.get("about:blank")
        assert self.complaints() == []
        self.driver.get_log("performance")
        self.driver.get(url)

    def explore(self, url):
        """The explorer, with clusters, curve and slices on its page."""
        self.open(url)
        self.until(lambda: self.text("#status").startswith("Decoded"))
        self.until(lambda: self.all("#curve svg") and self.all("#trends svg"))

    def until_found(self, pattern):
        """Wait for a sentence above the map that begins so."""
        self.until(lambda: re.match(pattern, self.text("#found")))

    @contextmanager
    def another_window(self):
        """A second one in front; the first one is there again afterwards."""
        first = self.driver.current_window_handle
        self.driver.switch_to.new_window("window")
        other = self.driver.current_window_handle
        try:
            yield other
        finally:
            self.driver.switch_to.window(other)
            self.driver.close()
            self.driver.switch_to.window(first)

    def find(self, css):
        return self.driver.find_element("css selector", css)

    def all(self, css):
        return self.driver.find_elements("css selector", css)

    def column(self, n):
        """A column of the table of clusters, as it is read."""
        return [cell.text for cell in self.all(f"#table tbody tr > :nth-child({n})")]

    def fill(self, css):
        """The colour of a mark."""
        return self.script("return getComputedStyle(arguments[0]).fill", self.find(css))

    def text(self, css):
        return self.find(css).text

    def click(self, css):
        """Scroll there, as a person would, and press."""
        target = self.find(css)
        self.script("arguments[0].scrollIntoView({block: 'center'})", target)
        target.click()

    def script(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def until(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, PATIENCE, 0.05).until(lambda _: condition())

    def look(self, width, scheme="light"):
        """Another window and another taste; waits until the page has settled."""
        cdp = self.driver.execute_cdp_cmd
        taste = {"name": "prefers-color-scheme", "value": scheme}
        cdp("Emulation.setEmulatedMedia", {"features": [taste]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        cdp("Emulation.setDeviceMetricsOverride", size)
        settled = "return innerWidth === arguments[0] && matchMedia(arguments[1]).matches"
        self.until(lambda: self.script(settled, width, f"(prefers-color-scheme: {scheme})"))
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))"
        )

    def faults(self):
        """What axe-core finds: serious and critical faults of accessibility."""
        from axe_core_python.base import AXE_SCRIPT

        self.script(AXE_SCRIPT)
        found = self.driver.execute_async_script("axe.run().then(arguments[0])")
        bad = [fault for fault in found["violations"] if fault["impact"] in ("serious", "critical")]
        return [f"{f['id']}: {node['html'][:120]}" for f in bad for node in f["nodes"]]

    def complaints(self):
        """What the console says since this was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def strangers(self, *own):
        """Addresses asked for since the page was opened, but for those of its own host."""
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        sent = [e["params"]["request"]["url"] for e in events if e["method"] == REQUEST]
        parts = [urlsplit(url) for url in sent]
        return [p.geturl() for p in parts if p.scheme not in LOCAL and p.netloc not in own]

    def downloaded(self, name):
        """A file that was saved, once all of it is there."""
        path = self.downloads / name
        self.until(lambda: path.exists() and not list(self.downloads.glob("*.crdownload")))
        return path


REQUEST = "Network.requestWillBeSent"


@contextmanager
def chromium(folder):
    """A new Chromium with an empty profile; what it saves comes into the folder."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    program, driver = found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    assert all(found), "no chromium and chromedriver: run `make test-browser`"
    downloads = folder / "downloads"
    downloads.mkdir()
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with webdriver.Chrome(options=options, service=Service(driver)) as window:
        yield Browser(window, downloads)


@pytest.fixture(scope="session")
def window(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def browser(window):
    """A window whose console says nothing in any test."""
    yield window
    assert window.complaints() == []


@pytest.fixture(scope="session")
def report(subject, tmp_path_factory):
    """The address of a report on three columns, five clusters and twelve slices."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_on(subject, 5, commands=["sketchshift report x -k 5"])[0])
    return path.as_uri()


@pytest.fixture
def private_report(private, tmp_path):
    """The address of a report on a private sketch."""
    file = SketchFile.of("people.private.sketch", private.nbytes, private)
    (tmp_path / "private.html").write_text(report_on(file, 3)[0])
    return (tmp_path / "private.html").as_uri()


@pytest.fixture(scope="session")
def ten():
    """Ten clusters in ten columns, over twelve months: the size that must answer at once."""
    rng = np.random.default_rng(0)
    label, month = rng.integers(0, 10, 24_000), np.repeat(np.arange(12), 2000)
    X = 3 * rng.normal(size=(10, 10))[label] + 0.5 * rng.normal(size=(24_000, 10))
    columns = {f"a_rather_long_name_of_column_{i}": X[:, i] for i in range(10)}
    months = [f"2026-{1 + i:02d}" for i in month]
    table = ss.sketch_by(pa.table({**columns, "month": months}), by="month", n_clusters=10)
    return SketchFile.of("year.parquet", 1, table)


@pytest.fixture(scope="session")
def page(ten):
    """The address of the explorer."""
    with listening(Explorer(ten)) as address, address.in_background():
        yield address.url
