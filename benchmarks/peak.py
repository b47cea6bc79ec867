"""How many multiply-adds a second one core can do: the limit that rates are compared with."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from sketchshift.kernels.cpu import simd

CHAINS = 16  # independent sums: more than the latency of a multiply-add needs


@simd.intrinsic
def _chains(typing_context: Any, values: Any, n: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, _ = simd.array_data(context, builder, signature.args[0], arguments[0])
        type_ = simd.vector(simd.FLOAT)
        factor = simd.load(builder, data, simd.INT64(0), type_)
        sums = [simd.variable(builder, factor) for _ in range(CHAINS)]
        with cgutils.for_range(builder, arguments[1]):
            for total in sums:
                builder.store(simd.fma(builder, builder.load(total), factor, factor), total)
        result = factor
        for total in sums:
            result = builder.fadd(result, builder.load(total))
        simd.store(builder, result, data, simd.INT64(0))
        return context.get_dummy_value()

    return types.void(values, n), generate


@simd.jit
def _run(values: Any, n: int) -> None:
    _chains(values, n)


def multiply_adds_per_second(repeats: int = 20, n: int = 1_000_000) -> float:
    """The best of several short runs."""
    values = np.full(simd.LANES, 0.5, dtype=np.float32)
    _run(values, 1)
    best = float("inf")
    for _ in range(repeats):
        values[:] = 0.5
        start = time.perf_counter()
        _run(values, n)
        best = min(best, time.perf_counter() - start)
    return n * CHAINS * simd.LANES / best
