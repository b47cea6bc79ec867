"""The report command: what it writes, serves and refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

import sketchshift as ss


def commands_in(page):
    """The commands that a page says to be made by."""
    _, rest = Path(page).read_text().split('"commands":')
    return json.JSONDecoder().raw_decode(rest)[0]


def test_a_report_says_how_to_get_it_again_to_the_byte(folder, run):
    line = "report sketches.parquet -k 2 --where \"shop = 'a'\" --seed 3 -o shop.html"
    facts = run.facts(line)

    before = (folder / "shop.html").read_bytes()
    assert facts["output_bytes"] == len(before)
    for command in commands_in("shop.html"):
        run(command)
    assert (folder / "shop.html").read_bytes() == before
    assert (folder / "centroids.csv").exists()


def test_a_report_on_data_shows_the_clusters_that_cluster_finds(folder, run):
    found = run.facts("cluster points.csv")

    facts = run.facts("report points.csv -o report.html")

    assert facts["clusters"] == found["clusters"]
    assert facts["survey"] == found["survey"]
    commands = commands_in("report.html")
    assert commands[0] == "sketchshift report points.csv -o report.html"
    assert run(commands[1]).stdout


def test_a_report_on_data_has_slices_where_a_key_is_given(folder, run):
    facts = run.facts("report events.parquet --by day -k 2 -o days.html")

    days = ss.sketch_by("events.parquet", by="day", n_clusters=2)
    assert facts["rows"] == days.counts.sum()
    assert '"trends":[{"column":"day"' in (folder / "days.html").read_text()


@pytest.mark.parametrize(
    ("line", "choices", "most"),
    [
        ("sketches.parquet", 1 + 8 + 3, 2),
        ("events.parquet --by day -k 3", 1 + 8, 3),
    ],
)
def test_the_page_that_is_served_has_every_slice_and_k(
    folder, run, monkeypatch, line, choices, most
):
    monkeypatch.setattr("sketchshift.view.server.Address.run", lambda self, browser: None)

    facts = run.facts(f"report {line} --serve")

    assert (facts["choices"], facts["max_clusters"]) == (choices, most)
    assert facts["url"].startswith("http://127.0.0.1:")


def test_without_its_packages_the_server_says_which_extra_to_install(folder, run, monkeypatch):
    monkeypatch.delitem(sys.modules, "sketchshift.view.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    run.error("report week.sketch --serve", 'pip install "sketchshift[view]"')


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for another process")
def test_ctrl_c_stops_the_server(folder):
    """A real process: it prints its address, answers, and ends without a traceback."""
    words = ["-m", "sketchshift", "report", "week.sketch", "--serve", "--no-browser", "--json"]
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        facts = json.loads(process.stdout.readline())
        with urlopen(facts["url"], timeout=60) as page:
            assert page.status == 200
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    assert process.returncode == 0
    assert errors == ""
