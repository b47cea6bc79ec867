"""Files written by every earlier version are read by this one, and written again alike."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import sketchshift as ss

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("golden_make", HERE / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)


@pytest.mark.parametrize("path", sorted(HERE.glob("*.sketch")), ids=lambda path: path.stem)
def test_a_golden_file_is_read_and_its_frequencies_are_drawn_again(path):
    s = ss.load(path)

    assert s.count == 20
    assert s.frequencies.turns.shape == (s.spec.n_coordinates, s.spec.sketch_size)


@pytest.mark.parametrize("name", list(make.SPECS))
def test_the_same_rows_still_give_the_bytes_of_the_golden_file(name):
    """Kernels, stream, rounding, header: if any bit of them changes, this fails."""
    assert make.golden_sketch(name).to_bytes() == (HERE / f"{name}.sketch").read_bytes()


@pytest.mark.parametrize("name", list(make.SPECS))
def test_the_reference_kernel_gives_the_bytes_of_the_golden_file(name):
    sketch = make.golden_sketch(name, kernel="reference")

    assert sketch.to_bytes() == (HERE / f"{name}.sketch").read_bytes()


def test_a_golden_file_has_rows_in_cells_in_shells_and_beyond():
    s = ss.load(HERE / "v2_cells.sketch")

    assert (s.cells.weights[:3] > 0).any()
    assert len(s.cells.weights) > 3
    assert len(s.outer.weights) > 0
    assert len(s.far.weights) > 0
    assert 0 < s.n_partial < 20


def test_a_golden_file_has_cells_and_shells_along_axes():
    s = ss.load(HERE / "v2_wide.sketch")

    assert s.cells.along.shape == (len(s.cells.weights), 2)
    assert len(s.cells.weights) > 3
    assert 0 < s.n_partial < 20


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_golden_private_sketch_is_read_and_written_again_alike(version):
    data = (HERE / "private" / f"{version}.sketch").read_bytes()
    s = ss.privacy.load(HERE / "private" / f"{version}.sketch")

    assert s.to_bytes() == data == make.GOLDEN[f"private/{version}"]().to_bytes()
    assert s.statement == "epsilon 5.193 at delta 1e-08; about 20 +- 2 rows"
    assert s.frequencies.turns.shape == (2, 8)
    assert (s.cells is None) == (version == "v1")
