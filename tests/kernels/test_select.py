from __future__ import annotations

import subprocess
import sys

import pytest

import sketchshift as ss
from sketchshift.kernels import select
from sketchshift.kernels.cpu import library
from sketchshift.kernels.select import select_kernel

SKETCH = """
import numpy as np
import sketchshift as ss

X = np.random.default_rng(0).normal(size=(500, 3))
spec = ss.SketchSpec(n_features=3, sketch_size=40, bandwidth=0.5)
"""

WITHOUT_LIBRARY = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "sketchshift.kernels.cpu.library":
            raise ImportError("the compiled kernels are not there")

sys.meta_path.insert(0, Blocker())
"""


def run(script):
    warned = ("-W", "error", "-W", "ignore:NumPy does the sums:RuntimeWarning")
    command = [sys.executable, *warned, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split()


@pytest.mark.parametrize("name", ["cpu", "reference"])
def test_a_kernel_is_found_by_its_name(name):
    assert select_kernel(name).name == name


def test_without_a_gpu_its_kernel_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed

    with pytest.raises(ss.errors.MissingDependencyError) as caught:
        select_kernel("cuda")

    assert str(caught.value) == (
        "kernel='cuda' cannot run here: it needs CuPy: pip install \"sketchshift[gpu]\". "
        "Or take kernel='auto'."
    )


def test_the_fastest_kernel_is_taken_by_default():
    """It is compiled when the package is installed, so it is here."""
    assert select_kernel() is select_kernel("auto") is select_kernel("cpu")


@pytest.mark.parametrize("name", ["gpu", "", "CPU"])
def test_an_unknown_kernel_is_refused_with_the_names_there_are(name):
    text = f"there is no kernel named '{name}'. Use 'auto' or one of cpu, cuda, reference."

    with pytest.raises(ss.errors.SpecError, match=f"^{text}$"):
        select_kernel(name)


def test_a_kernel_that_cannot_be_imported_says_why(monkeypatch, tmp_path):
    """The sentence names what is missing and what to do; the default is slower, and says so."""
    monkeypatch.setattr(library, "FILE", tmp_path / "kernels.native.so")
    monkeypatch.delitem(sys.modules, "sketchshift.kernels.cpu")
    for function in ("_load", "_load_fastest"):
        monkeypatch.setattr(select, function, getattr(select, function).__wrapped__)  # uncached

    missing = r"the compiled kernels \(kernels.native.so\) are not there. Install sketchshift again"
    with pytest.raises(
        ss.errors.MissingDependencyError, match=rf"^kernel='cpu' cannot .*: {missing}"
    ):
        select_kernel("cpu")

    with pytest.warns(RuntimeWarning, match=rf"^NumPy does .* the same bytes: {missing}"):
        assert select_kernel("auto").name == "reference"


def test_a_library_of_another_machine_is_refused_in_a_sentence(monkeypatch, tmp_path):
    (tmp_path / "kernels.native.so").write_bytes(b"\x7fELF of another machine")
    monkeypatch.setattr(library, "FILE", tmp_path / "kernels.native.so")

    with pytest.raises(ImportError, match=r"^the compiled kernels cannot be loaded \(.*\)\. Inst"):
        library.variants()


def test_sketches_without_the_compiled_library_are_the_same_bytes():
    """A clone that was not installed falls back to NumPy: slower, and the same integers."""
    script = (
        WITHOUT_LIBRARY
        + SKETCH
        + (
            "from sketchshift.kernels import select_kernel\n"
            "print(select_kernel().name, ss.sketch(X, spec).to_bytes().hex())\n"
        )
    )
    here = {}
    exec(SKETCH, here)

    name, content = run(script)

    assert name == "reference"
    assert bytes.fromhex(content) == ss.sketch(here["X"], here["spec"], kernel="cpu").to_bytes()


def test_importing_the_package_loads_no_kernel():
    """The first import stays quick: the compiled library comes in with the first sketch."""
    name = "sketchshift.kernels.cpu"

    assert run(f"import sys, sketchshift; print({name!r} in sys.modules)") == ["False"]
