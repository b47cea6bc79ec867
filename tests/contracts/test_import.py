"""`import sketchshift` is quick and brings no optional package along."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

HEAVY = ("torch", "dask", "ray", "pyspark", "matplotlib", "pyarrow", "sklearn", "pandas")


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

    NumPy alone brings about 150. Those of the standard library are counted apart: the same import
    brings more of them in a newer Python, 50 in 3.13 for 48 in 3.11.
    """
    code = (
        "import sys, numpy; before = set(sys.modules); import sketchshift; "
        "new = [name.partition('.')[0] for name in set(sys.modules) - before]; "
        "print(len(new), sum(name in sys.stdlib_module_names for name in new))"
    )

    n, n_standard = map(int, run(code).split())
    assert n - n_standard < 110
    assert n_standard < 60


def test_sketching_an_array_needs_no_optional_package():
    code = (
        "import sys, numpy as np, sketchshift as ss; "
        "ss.sketch(np.zeros((5, 2)), ss.SketchSpec(2, 10, 1.0)); "
        "print([m for m in ('torch', 'dask', 'ray', 'pyspark', 'matplotlib', 'sklearn') "
        "if m in sys.modules])"
    )

    assert run(code) == "[]"


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("sketchshift", "Moment", "WatchedSlice"),
        ("sketchshift.drift", "Moment", "WatchedSlice"),
        ("sketchshift.report", "Subject", "SketchFile"),
        ("sketchshift.report", "report_of", "render_report"),
    ],
)
def test_an_old_name_is_what_it_was_and_says_the_new_one(module, old, new):
    room = importlib.import_module(module)

    with pytest.warns(DeprecationWarning, match=rf"{module}\.{old} is now {module}\.{new}\."):
        assert getattr(room, old) is getattr(room, new)
