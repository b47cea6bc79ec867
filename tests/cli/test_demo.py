"""The demo tells the truth."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

import sketchshift as ss

ROWS = 273_280


def test_the_demo_writes_a_sketch_a_picture_and_data_to_go_on_with(here, run):
    text = run.says("demo", f"{ROWS:,} pixels", "Next: sketchshift cluster demo.sketch -k 5")

    png = Path("demo.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert struct.unpack(">II", png[16:24]) > (1000, 500)
    assert "\x1b[" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert " ".join(text.split("\n\n          ")[1].split()[:4]) == "cluster share red blue"
    run("cluster demo.sketch -k 5")
    run("sketch demo.parquet --by part --columns red,green,blue -k 3 -o parts.parquet")
    assert ss.load("parts.parquet").counts.sum() == ROWS


@pytest.mark.thorough
def test_the_python_that_the_demo_prints_gives_the_same_bytes(here, run):
    """Five colours from 16 kB, nearly those of k-means, which has read every row many times."""
    facts = run.facts("demo")
    written = Path("demo.sketch").read_bytes()
    Path("demo.sketch").unlink()

    names: dict = {}
    exec(facts["python"], names)

    assert Path("demo.sketch").read_bytes() == written
    assert (facts["rows"], facts["bytes"], facts["data_bytes"]) == (ROWS, len(written), 2 * ROWS)
    found = [(row["centroid"], row["share"]) for row in facts["clusters"]]
    assert found == [*zip(names["colours"].tolist(), names["shares"].tolist(), strict=True)]
    best = facts["mean_squared_error_of_k_means"]
    assert best < facts["mean_squared_error"] < 1.1 * best


def test_without_matplotlib_the_demo_says_what_to_install(here, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    run.says("demo", 'pip install "sketchshift[view]"')

    assert Path("demo.sketch").exists()
    assert not Path("demo.png").exists()
