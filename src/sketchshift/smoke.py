"""``python -m sketchshift.smoke``: whether this installation gives what every other one gives.

Rows made here are sketched by every kernel of this machine and compared byte for byte with what
other machines got; clusters are decoded once. No file and no optional package is needed. It ends
with 0, or with 1 if anything differs.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

import sketchshift as ss
from sketchshift._typing import FloatArray
from sketchshift.kernels import select_kernel

__all__ = ["main"]


def make_rows(n: int, d: int) -> FloatArray:
    """Rows between -1.5 and 1.5 from integers alone: the same on every machine."""
    i = np.arange(n * d, dtype=np.int64).reshape(n, d)
    rows: FloatArray = (i * i * 37 % 301) / 100.0 - 1.5
    return rows


# some of the rows are in cells, some in shells around them, some beyond the reach of both
CELLS = replace(ss.features.Cells.of(make_rows(30, 3) / 3.0, unit=2.0**-10), within=2.0**-10)
SPECS: dict[str, tuple[ss.SketchSpec, str]] = {
    "dense": (ss.SketchSpec(3, 301, 0.3), "b8817d1918506154"),
    "weighted": (ss.SketchSpec(3, 301, 0.3, seed=7), "a0efca1f995cc6e7"),
    "float64": (ss.SketchSpec(5, 77, (0.2, 2.0), precision="float64"), "5b598bee3fbba0fa"),
    "range": (ss.SketchSpec(4, 130, (0.1, 2.0), scale=1.5), "eba34ce928185a74"),
    "structured": (ss.SketchSpec(70, 200, 4.0, structured=True), "36f9db967ec511a4"),
    "structured float64": (
        ss.SketchSpec(70, 200, 4.0, law="adapted_radius", structured=True, precision="float64"),
        "fbe537e8b6568ccc",
    ),
    "cells": (
        ss.SketchSpec(3, 40, 0.3).replaced(cells=CELLS),
        "93b212f36bf4bc9a",
    ),
}
"""What is summed, and the digest of the file. Digests change with the format version alone."""
CENTERS = np.array([[0.0, 0.0], [9.0, 1.0], [2.0, 8.0]])
TOLERANCE = 0.01
"""Sketches agree to the bit; a decoding also uses the BLAS of the machine."""


def digest(name: str, kernel: str) -> str:
    """Of the bytes of the sketch of that name."""
    spec, _ = SPECS[name]
    weights = make_rows(1001, 1)[:, 0] + 1.75 if name == "weighted" else None
    rows = make_rows(1001, spec.n_features)
    sketch = ss.sketch(rows, spec, sample_weight=weights, kernel=kernel)
    return hashlib.blake2b(sketch.to_bytes(), digest_size=8).hexdigest()


def check_bytes(label: str, kernel: str) -> Iterator[tuple[str, str]]:
    """A check for each spec: its name, and what is wrong."""
    for name, (_, expected) in SPECS.items():
        found = digest(name, kernel)
        fault = "" if found == expected else f"its digest is {found}, elsewhere {expected}"
        yield f"bytes of {name} sketch, {label}", fault


def check_variants() -> Iterator[tuple[str, str]]:
    """The same for each instruction set that the compiled library has for this machine."""
    try:
        from sketchshift.kernels.cpu import KERNEL
        from sketchshift.kernels.cpu.library import variants

        found = variants()
    except ImportError as error:
        yield "compiled kernels", str(error)
        return
    usual = KERNEL.variant
    try:
        for name, KERNEL.variant in found.items():
            yield from check_bytes(name, "cpu")
    finally:
        KERNEL.variant = usual


def check_decoding() -> Iterator[tuple[str, str]]:
    """Three clusters are found where they are."""
    rows = np.concatenate([center + make_rows(1000, 2) / 3.0 for center in CENTERS])
    expected = rows.reshape(3, 1000, 2).mean(axis=1)
    found = ss.decode(ss.sketch(rows, n_clusters=3), 3).centroids
    error = min(np.abs(found[list(order)] - expected).max() for order in permutations(range(3)))
    fault = "" if error < TOLERANCE else f"they are {error:.3g} away from where they should be"
    yield "centroids of a decoding", fault


def main() -> int:
    """Run all checks, a line each.

    Returns
    -------
    status : int
        0 if nothing differs, else 1.
    """
    kernel = select_kernel()
    variant = getattr(kernel, "variant", None)
    _say(f"sketchshift {ss.__version__}, NumPy {np.__version__}, Python {sys.version.split()[0]}")
    _say(f"machine: {platform.machine()}, {platform.platform()}")
    _say(f"kernel: {kernel.name}{f' with {variant.name} instructions' if variant else ''}")
    faults = checks = 0
    for check in (check_variants(), check_bytes("NumPy reference", "reference"), check_decoding()):
        for name, fault in check:
            _say(f"FAILED  {name}: {fault}" if fault else f"ok      {name}")
            checks, faults = checks + 1, faults + bool(fault)
    _say(f"{checks - faults} passed, {faults} failed")
    return int(faults > 0)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
