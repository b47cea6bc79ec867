"""Another machine: narrower vectors, or no multiply-add instruction, and the same bits."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sketchshift.kernels import select_kernel
from sketchshift.kernels.cpu import CpuKernel
from sketchshift.kernels.cpu.library import CHOICE, variants

VARIANTS = variants()
FUZZ = Path(__file__).with_name("fuzz.py")


def digests(kernel):
    """Digests of what a kernel gives for rows that leave tiles, panels and strips unfilled."""
    rng = np.random.default_rng(0)
    weights = rng.random(301).astype(np.float32)
    rows = rng.normal(size=(301, 70))
    turns = rng.normal(size=(70, 77)).astype(np.float32)
    signs = rng.choice([-1, 1], size=(2, 3, 128)).astype(np.float32)
    radii = (rng.random(200) / 128**1.5).astype(np.float32)
    results = {}
    for dtype in ("float32", "float64"):
        for kind, accumulate, m in (
            ("dense", kernel.dense(turns), 77),
            ("structured", kernel.structured(signs, radii), 200),
        ):
            totals = np.zeros((2, m), dtype=np.int64)
            accumulate(rows.astype(dtype), weights, totals)
            results[f"{kind} {dtype}"] = totals
    far = rows * 10.0 ** rng.uniform(-3, 6, size=(301, 1))
    limbs = kernel.moments(far, weights.astype(np.float64), 1.0, full=True).astype(object)
    results["moments"] = np.array([str(a + b * 2**20 + c * 2**40) for a, b, c in limbs.T])
    return {name: hashlib.blake2b(a.tobytes()).hexdigest() for name, a in results.items()}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_width_of_the_vectors_does_not_change_the_bits(name):
    """Each lane does the same scalar operations in the same order, whatever its neighbours."""
    assert digests(CpuKernel(VARIANTS[name])) == digests(select_kernel("reference"))


@pytest.mark.parametrize("name", VARIANTS)
def test_random_comparisons_with_the_reference_find_no_difference(name):
    """A sample of what ``make fuzz`` does."""
    words = [sys.executable, FUZZ, "--comparisons", "210", "--seed", "1", "--variant", name]
    done = subprocess.run(words, capture_output=True, text=True)

    expected = f"210 comparisons with the reference, differences: {name} 0\n"
    assert (done.stdout, done.returncode) == (expected, 0), done.stderr


@pytest.mark.parametrize("name", VARIANTS)
def test_clusters_are_the_same_on_all_machines(name):
    """Sums of a fit are kept in as many parts everywhere, and added in one order."""
    script = (
        "import numpy as np, sketchshift as ss\n"
        "X = np.random.default_rng(0).normal(size=(2000, 4)) + np.eye(4)[np.arange(2000) % 4] * 9\n"
        "sketch = ss.sketch(X, n_clusters=4)\n"
        "print(ss.decode(sketch, 4).centroids.tobytes().hex())\n"
        "print(ss.SketchAndShift(refine=True)(sketch, 4).centroids.tobytes().hex())\n"
    )

    def run(variant):
        words = [sys.executable, "-c", script]
        return subprocess.run(words, env=os.environ | {CHOICE: variant}, capture_output=True).stdout

    assert run(name) == run("plain") != b""


def test_a_variant_that_this_machine_has_not_is_refused_with_those_it_has(monkeypatch):
    monkeypatch.setenv(CHOICE, "mmx")
    from sketchshift.kernels.cpu.library import load_variant

    with pytest.raises(ImportError, match=rf"{CHOICE}='mmx', and this machine has .*plain"):
        load_variant()


def test_the_kernel_in_use_is_the_widest():
    assert select_kernel("cpu").variant.name == os.environ.get(CHOICE, next(iter(VARIANTS)))


def test_a_library_with_another_table_is_refused_and_not_called(monkeypatch):
    """One that an older checkout has compiled, say: its functions stand elsewhere."""
    from sketchshift.kernels.cpu import library

    monkeypatch.setattr(library, "TABLE_VERSION", library.TABLE_VERSION - 1)
    with pytest.raises(ImportError, match="are not those of this version"):
        library.variants()


def test_the_version_of_the_table_rises_with_its_text():
    """Who changes the table: raise TABLE_VERSION in both places, and note the digest here."""
    from sketchshift.kernels.cpu.library import TABLE_VERSION

    text = (Path(__file__).parents[2] / "native" / "table.h").read_bytes()
    assert f"TABLE_VERSION = {TABLE_VERSION};".encode() in text
    assert hashlib.blake2b(text, digest_size=8).hexdigest() == "22d1a491769befc7"
