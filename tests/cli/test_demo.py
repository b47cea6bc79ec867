"""The demo tells the truth."""

from __future__ import annotations

import struct
import sys

import pytest

import sketchshift as ss

ROWS = 273_280


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_demo_writes_a_sketch_and_a_picture(here, run):
    text = run("demo").stdout

    assert ss.load("demo.sketch").count == ROWS
    png = (here / "demo.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert struct.unpack(">II", png[16:24]) > (1000, 500)
    assert f"{ROWS:,} pixels" in text
    assert "\x1b[" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_python_that_the_demo_prints_gives_the_same_bytes(here, run):
    facts = run.facts("demo")
    written = (here / "demo.sketch").read_bytes()
    (here / "demo.sketch").unlink()

    names: dict = {}
    exec(facts["python"], names)

    assert (here / "demo.sketch").read_bytes() == written
    assert facts["rows"] == ROWS
    assert facts["bytes"] == len(written)
    assert facts["data_bytes"] == 2 * ROWS
    assert facts["merged_equals_whole"] is True
    assert facts["whole_minus_part_equals_rest"] is True
    assert (here / "demo.png").exists()
    assert [row["centroid"] for row in facts["clusters"]] == names["colours"].tolist()
    assert [row["share"] for row in facts["clusters"]] == names["shares"].tolist()


def test_the_clusters_of_the_demo_are_nearly_those_of_k_means(here, run):
    """Five colours from 16 kB; k-means has read every row many times."""
    facts = run.facts("demo")

    assert len(facts["clusters"]) == 5
    best = facts["mean_squared_error_of_k_means"]
    assert best < facts["mean_squared_error"] < 1.1 * best
    text = run("demo").stdout
    assert "Next: sketchshift cluster demo.sketch -k 5" in text
    assert " ".join(text.split("\n\n          ")[1].split()[:4]) == "cluster share red blue"
    run("cluster demo.sketch -k 5")


def test_the_data_that_the_demo_leaves_can_be_clustered_and_sliced(here, run):
    run("demo")

    facts = run.facts("cluster demo.parquet --columns red,green,blue -k 3")
    assert facts["rows"] == ROWS
    run("sketch demo.parquet --by part -k 3 -o parts.parquet")
    assert ss.SketchTable.from_parquet("parts.parquet").counts.sum() == ROWS


def test_without_matplotlib_the_demo_says_what_to_install(here, run, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    text = run("demo").stdout

    assert 'pip install "sketchshift[view]"' in text
    assert (here / "demo.sketch").exists()
    assert not (here / "demo.png").exists()
