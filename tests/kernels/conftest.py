"""Fixtures: the kernels, and the integers of single phases."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from sketchshift.kernels import select_kernel
from sketchshift.kernels.cpu import CpuKernel
from sketchshift.kernels.cpu.library import variants


@pytest.fixture(scope="session")
def cpu():
    return select_kernel("cpu")


@pytest.fixture(scope="session")
def reference():
    return select_kernel("reference")


@pytest.fixture(scope="session")
def compiled():
    """The compiled kernel of each instruction set that this processor has, by name."""
    return {name: CpuKernel(variant) for name, variant in variants().items()}


@pytest.fixture(scope="session")
def compare():
    """Random comparisons of kernels with the reference: see ``fuzz.py``."""
    return runpy.run_path(str(Path(__file__).with_name("fuzz.py")))["compare"]


@pytest.fixture(params=["cpu", "reference"])
def kernel(request):
    return select_kernel(request.param)


@pytest.fixture(scope="session")
def integers_of():
    """Integers that single phases add: one row, x = 1, at as many frequencies as phases."""

    def integers(kernel, t, dtype=np.float32, weight=1.0):
        turns = np.asarray(t, dtype=np.float32)[None, :]
        totals = np.zeros((2, turns.shape[1]), dtype=np.int64)
        weights = np.full(1, weight, dtype=np.float32)
        kernel.dense(turns)(np.ones((1, 1), dtype=dtype), weights, totals)
        return totals

    return integers
