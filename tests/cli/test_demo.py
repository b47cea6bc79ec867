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
    assert "█" in text  # not a terminal: shades instead of colours
    assert "\x1b[" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_python_that_the_demo_prints_gives_the_same_bytes(here, run):
    facts = run.facts("demo --output pixels.png --sketch a.sketch")
    written = (here / "a.sketch").read_bytes()
    (here / "a.sketch").unlink()

    exec(facts["python"], {})

    assert (here / "a.sketch").read_bytes() == written
    assert facts["rows"] == ROWS
    assert facts["bytes"] == len(written)
    assert facts["data_bytes"] == 2 * ROWS
    assert facts["merged_equals_whole"] is True
    assert facts["whole_minus_part_equals_rest"] is True
    assert (here / "pixels.png").exists()


def test_without_matplotlib_the_demo_says_what_to_install(here, run, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)

    text = run("demo").stdout

    assert 'pip install "sketchshift[plot]"' in text
    assert "█" in text
    assert (here / "demo.sketch").exists()
    assert not (here / "demo.png").exists()


def test_the_demo_refuses_a_folder_that_is_not_there(here, run):
    assert "there is no folder" in run.error("demo --output none/demo.png")
