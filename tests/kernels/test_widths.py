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

MACHINES = {
    "8 lanes": (8, {"avx2": True}, {}),
    "4 lanes, no fma": (4, {}, {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}),
}

SCRIPT = """
import sys
import llvmlite.binding
import numba
numba.njit(lambda: 0)  # numba itself has looked at the machine by now; only LANES is forced
llvmlite.binding.get_host_cpu_features = lambda: {features}
sys.path.insert(0, {folder!r})
from sketchshift.kernels import select_kernel
from sketchshift.kernels.cpu import simd
from test_widths import digests
print(simd.LANES, *digests(select_kernel("cpu")).values())
"""


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


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """What the machines give; they compile side by side, into empty caches."""
    started = {}
    for name, (_, features, environment) in MACHINES.items():
        script = SCRIPT.format(features=features, folder=str(Path(__file__).parent))
        cache = {"NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
        started[name] = subprocess.Popen(
            [sys.executable, "-c", script],
            env=os.environ | environment | cache,
            stdout=subprocess.PIPE,
            text=True,
        )
    return {name: process.communicate(timeout=300)[0].split() for name, process in started.items()}


@pytest.mark.parametrize("name", MACHINES)
def test_the_width_of_the_vectors_does_not_change_the_bits(elsewhere, name):
    """Each lane does the same scalar operations in the same order, whatever its neighbours."""
    lanes, *found = elsewhere[name]

    assert int(lanes) == MACHINES[name][0]
    assert found == list(digests(select_kernel("cpu")).values())


def test_the_reference_gives_the_bits_of_the_vectors():
    """And the definition itself agrees on this very data."""
    assert digests(select_kernel("reference")) == digests(select_kernel("cpu"))
