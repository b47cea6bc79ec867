"""The pictures of docs/plots.md: there, small, and legible on real data."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"


def shown():
    """Those of the script: the explorer is a photograph of a page."""
    text = (DOCS / "plots.md").read_text(encoding="utf-8")
    return [name for name in re.findall(r"\]\(images/(\w+)\.png\)", text) if name != "explorer"]


def test_every_picture_of_the_gallery_is_there_and_small():
    sizes = {name: (DOCS / "images" / f"{name}.png").stat().st_size for name in shown()}

    assert len(sizes) == 8
    assert {name: size for name, size in sizes.items() if size > 150_000} == {}


@pytest.mark.slow
@pytest.mark.data("covertype", "uber_pickups")
def test_the_pictures_of_the_gallery_are_drawn_by_their_script_and_legible(faults):
    spec = importlib.util.spec_from_file_location("make_plots", DOCS / "make_plots.py")
    make_plots = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_plots)

    found = {name: faults(figure) for name, figure in make_plots.pictures()}

    assert set(found) == set(shown())
    assert {name: sentences for name, sentences in found.items() if sentences} == {}
