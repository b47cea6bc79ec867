"""`import sketchshift` and the commands are quick: they load what they need, when they need it."""

from __future__ import annotations

import ast
import subprocess
import sys

import numpy as np
import pytest

import sketchshift
from sketchshift.cli import main
from sketchshift.cli.main import COMMANDS

OPTIONAL = ("torch", "dask", "ray", "pyspark", "matplotlib", "pandas", "polars")
HEAVY = ("scipy", "sklearn", "pyarrow", "narwhals", "sqlglot", "rich", *OPTIONAL)
LATER = [
    f"sketchshift.{room}" for room in ("decoders", "drift", "estimators", "metrics", "privacy")
]


def run(code, *words):
    """The lines that a program prints."""
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout.splitlines()


def loaded_by(code, names, *words):
    """Which of some modules a program loads, whatever it prints."""
    code = (
        f"import sys\ntry:\n {code}\nfinally:\n print([m for m in {[*names]} if m in sys.modules])"
    )
    return ast.literal_eval(run(code, *words)[-1])


COMMAND = "from sketchshift.cli import main; main()"


def test_importing_and_sketching_an_array_load_nothing_heavy_and_only_what_a_pass_needs():
    code = (
        "import numpy as np, sketchshift as ss; "
        "ss.sketch(np.zeros((5, 2)), ss.SketchSpec(2, 10, 1.0))"
    )

    assert loaded_by(code, [*HEAVY, *LATER, "click"]) == []


def test_the_help_loads_nothing_heavy_and_no_command():
    commands = [f"sketchshift.cli.{name.replace('-', '_')}" for name in COMMANDS]

    assert loaded_by(COMMAND, [*HEAVY, *LATER, *commands], "--help") == []


def test_clustering_a_csv_loads_no_other_package_than_arrow(tmp_path):
    path = tmp_path / "x.csv"
    X = np.random.default_rng(0).normal(size=(3000, 3)) + 6.0 * np.eye(3).repeat(1000, axis=0)
    np.savetxt(path, X, delimiter=",", header="a,b,c", comments="")

    assert loaded_by(COMMAND, HEAVY, "cluster", str(path), "-k", "auto") == ["pyarrow"]


def test_decoding_an_array_by_a_room_that_is_found_on_first_use_loads_no_other_package():
    code = (
        "import numpy as np, sketchshift as ss; rng = np.random.default_rng(0); "
        "sketch = ss.sketch(rng.normal(size=(999, 2)), n_clusters=3); "
        "ss.decode(sketch, 3, decoder=ss.decoders.Turnkey())"
    )

    assert loaded_by(code, HEAVY) == []


def test_what_the_help_lists_are_the_commands_by_their_names():
    assert [main.get_command(None, name).name for name in COMMANDS] == list(COMMANDS)


def test_every_public_name_is_that_of_its_room():
    for name in sketchshift.__all__:
        found = getattr(sketchshift, name)

        assert name in dir(sketchshift)
        assert found.__name__.rpartition(".")[2] == name
        assert found.__module__.startswith("sketchshift.") if name != "privacy" else True


def test_a_name_that_is_not_there_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'sketchshift' has no attribute 'nothing'"):
        _ = sketchshift.nothing


def test_importing_costs_little_more_than_numpy():
    """A quarter of a second is promised; counted in modules, which no noisy machine changes.

    NumPy alone brings about 150. Those of the standard library are counted apart: the same import
    brings a few more of them in a newer Python.
    """
    code = (
        "import sys, numpy; before = set(sys.modules); import sketchshift; "
        "new = [name.partition('.')[0] for name in set(sys.modules) - before]; "
        "print(len(new), sum(name in sys.stdlib_module_names for name in new))"
    )

    n, n_standard = map(int, run(code)[0].split())
    assert n - n_standard < 50
    assert n_standard < 60
