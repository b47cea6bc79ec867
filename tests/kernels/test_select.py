from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.kernels import select
from sketchshift.kernels.cpu import library
from sketchshift.kernels.select import select_kernel


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


def test_an_unknown_kernel_is_refused_with_the_names_there_are():
    text = "there is no kernel named 'CPU'. Use 'auto' or one of cpu, cuda, reference."
    with pytest.raises(ss.errors.SpecError, match=f"^{text}$"):
        select_kernel("CPU")


def test_without_the_compiled_library_sketches_are_the_same_bytes(monkeypatch, tmp_path):
    """A clone that was not installed falls back to NumPy, with a warning that says what to do.

    The kernel itself, asked for by its name, is refused.
    """
    X, spec = np.random.default_rng(0).normal(size=(500, 3)), ss.SketchSpec(3, 40, 0.5)
    compiled = ss.sketch(X, spec, kernel="cpu")
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
        slow = ss.sketch(X, spec)

    assert slow.to_bytes() == compiled.to_bytes()


def test_a_library_of_another_machine_is_refused_in_a_sentence(monkeypatch, tmp_path):
    (tmp_path / "kernels.native.so").write_bytes(b"\x7fELF of another machine")
    monkeypatch.setattr(library, "FILE", tmp_path / "kernels.native.so")

    with pytest.raises(ImportError, match=r"^the compiled kernels cannot be loaded \(.*\)\. Inst"):
        library.variants()


def test_importing_the_package_loads_no_kernel():
    """The first import stays quick: the compiled library comes in with the first sketch."""
    script = "import sys, sketchshift; print('sketchshift.kernels.cpu' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert done.stdout.split() == [b"False"]
