"""`import sketchshift` is quick and brings no optional package along."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "dask", "ray", "pyspark", "matplotlib", "numba", "pyarrow", "sklearn", "pandas")


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout.strip()


def test_importing_imports_nothing_heavy():
    code = f"import sys, sketchshift; print([m for m in {HEAVY} if m in sys.modules])"

    assert run(code) == "[]"


def test_importing_costs_little_more_than_numpy():
    """Half a second is promised; counted in modules, which no noisy machine changes.

    NumPy alone brings about 150 modules and the standard library the rest.
    """
    code = (
        "import sys, numpy; before = len(sys.modules); import sketchshift; "
        "print(len(sys.modules) - before)"
    )

    assert int(run(code)) < 150


def test_sketching_an_array_needs_no_optional_package():
    code = (
        "import sys, numpy as np, sketchshift as ss; "
        "ss.sketch(np.zeros((5, 2)), ss.SketchSpec(2, 10, 1.0)); "
        "print([m for m in ('torch', 'dask', 'ray', 'pyspark', 'matplotlib', 'sklearn') "
        "if m in sys.modules])"
    )

    assert run(code) == "[]"
