"""Another machine: narrower vectors, or no multiply-add instruction, and the same bits."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.kernels import select
from sketchshift.kernels.cpu import library

FUZZ = Path(__file__).with_name("fuzz.py")


def test_random_comparisons_with_the_reference_find_no_difference(compare, compiled):
    """A sample of what ``make fuzz`` does: sums, moments, cells, and sketches from rows to bytes.

    Each lane does the same scalar operations in the same order, whatever its neighbours.
    """
    assert not [(name, found) for name, _, found in compare(compiled, seed=1, n=350) if found]


@pytest.mark.thorough
def test_digests_of_one_machine_stand_for_the_reference_on_another(tmp_path):
    """``make fuzz`` itself, and how an emulated machine is compared."""
    saved, n = tmp_path / "digests.json", 630
    words = [sys.executable, FUZZ, "--comparisons", str(n), "--seed", "2"]

    for more in (["--save", saved], ["--against", saved, "--variant", "plain"]):
        done = subprocess.run([*words, *more], capture_output=True, text=True)

        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith(f"{n} comparisons with the reference, differences: ")
        assert "plain 0" in done.stdout


def test_clusters_are_the_same_on_all_machines(compiled, monkeypatch):
    """Sums of a fit are kept in as many parts everywhere, and added in one order."""
    X = np.random.default_rng(0).normal(size=(2000, 4)) + np.eye(4)[np.arange(2000) % 4] * 9
    found = set()
    for kernel in compiled.values():
        monkeypatch.setattr(select, "_load_fastest", lambda kernel=kernel: kernel)
        sketch, waves = (ss.sketch(X, n_clusters=4, cells=cells) for cells in (True, False))
        shifts = ss.SketchAndShift(refine=True)(waves, 4)
        found.add((ss.decode(sketch, 4).centroids.tobytes(), shifts.centroids.tobytes()))

    assert len(found) == 1


def test_the_widest_vectors_are_in_use_unless_a_variable_names_others(cpu, monkeypatch):
    names = list(library.variants())
    monkeypatch.delenv(library.CHOICE, raising=False)
    assert library.load_variant().name == names[0]

    monkeypatch.setenv(library.CHOICE, " Plain")
    assert library.load_variant().name == "plain"

    monkeypatch.setenv(library.CHOICE, "mmx")
    message = rf"^{library.CHOICE}='mmx', and this machine has {', '.join(names)}$"
    with pytest.raises(ImportError, match=message):
        library.load_variant()


def test_a_library_with_another_table_is_refused_and_not_called(monkeypatch):
    """One that an older checkout has compiled, say: its functions stand elsewhere."""
    monkeypatch.setattr(library, "TABLE_VERSION", library.TABLE_VERSION - 1)
    with pytest.raises(ImportError, match="are not those of this version"):
        library.variants()


def test_the_version_of_the_table_rises_with_its_text():
    """Who changes the table: raise TABLE_VERSION in both places, and note the digest here."""
    text = (Path(__file__).parents[2] / "native" / "table.h").read_bytes()
    assert f"TABLE_VERSION = {library.TABLE_VERSION};".encode() in text
    assert hashlib.blake2b(text, digest_size=8).hexdigest() == "a182180848137e85"
