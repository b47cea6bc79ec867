"""How many multiply-adds a second one core can do: the limit that rates are compared with."""

from __future__ import annotations

import time

import numpy as np

from sketchshift.kernels.cpu.library import load_variant

CHAINS = 16  # of native/variant.cpp


def multiply_adds_per_second(repeats: int = 20, n: int = 1_000_000) -> float:
    """The best of several short runs."""
    variant = load_variant()
    best = float("inf")
    for _ in range(repeats):
        values = np.full(variant.lanes, 0.5, dtype=np.float32)
        start = time.perf_counter()
        variant.call("multiply_adds", values, n)
        best = min(best, time.perf_counter() - start)
    return n * CHAINS * variant.lanes / best
