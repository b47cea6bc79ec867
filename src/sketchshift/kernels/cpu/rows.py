"""What is done once a row: normalisation, norms and moments, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from sketchshift._typing import FloatArray, IntArray
from sketchshift.kernels.contract import LIMB_BITS, MOMENT_BITS
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.simd import DOUBLE, INT64

__all__ = ["moments", "normalise"]

STRIP = 512  # rows whose products are summed in float64
EXACT = 2.0**22
assert STRIP * EXACT**2 <= 2**53  # so all partial sums are exact, in any order
DOUBLES = simd.LANES // 2
TALL, WIDE = 4, 2 * DOUBLES  # a tile of products: its sums stay in eight registers


@simd.jit
def normalise(
    X: FloatArray,  # IN  (n, d)
    center: FloatArray,  # IN  (d,)
    scale: FloatArray,  # IN  (d,)
    rows: FloatArray,  # OUT  (n, d)
    squared_norms: FloatArray,  # OUT  (n,)
) -> None:
    """Fill in x' = (x - center) / scale and the sum of squares in the order of the columns."""
    n, d = X.shape
    for i in range(n):
        for k in range(d):
            rows[i, k] = (X[i, k] - center[k]) / scale[k]
    last = n - n % 4
    for i in range(0, last, 4):  # four chains of additions at a time hide their latency
        s0 = s1 = s2 = s3 = 0.0
        for k in range(d):
            s0 += rows[i, k] * rows[i, k]
            s1 += rows[i + 1, k] * rows[i + 1, k]
            s2 += rows[i + 2, k] * rows[i + 2, k]
            s3 += rows[i + 3, k] * rows[i + 3, k]
        squared_norms[i : i + 4] = (s0, s1, s2, s3)
    for i in range(last, n):
        total = 0.0
        for k in range(d):
            total += rows[i, k] * rows[i, k]
        squared_norms[i] = total


@simd.jit
def _round(
    values: FloatArray,  # IN  (size,)
    per_unit: float,  # IN  a power of two
    rounded: FloatArray,  # OUT  (size,)
    rests: FloatArray,  # OUT  (size,)
) -> None:
    """Fill in rint(v) and rint(2**LIMB_BITS (v - rint(v))), v = K x."""
    for i in range(len(values)):
        value = values[i] * per_unit
        rounded[i] = np.rint(value)
        rests[i] = np.rint((value - rounded[i]) * 2.0**LIMB_BITS)


@simd.jit_reordered
def _largest(values: FloatArray) -> float:
    result = 0.0
    for value in values:
        result = max(result, abs(value))
    return result


def _emit_loop(context: Any, builder: Any, signature: Any, arguments: Any, tall: int) -> Any:
    """Sums over rows of a[row, i : i + tall] (or of 1) times b[row, j : j + WIDE]."""
    (x, _), (y, _), (out, _) = (
        simd.array_data(context, builder, signature.args[k], arguments[k]) for k in (0, 1, 6)
    )
    i, j, d, n = arguments[2:6]
    type_ = simd.vector(DOUBLE, DOUBLES)
    zero = simd.constant(type_, 0.0)
    sums = [[cgutils.alloca_once(builder, type_) for _ in range(2)] for _ in range(max(tall, 1))]
    for total in (total for row in sums for total in row):
        builder.store(zero, total)
    with cgutils.for_range(builder, n) as loop:
        start = builder.mul(loop.index, d)
        at = builder.add(start, j)
        right = [
            simd.load(builder, y, builder.add(at, INT64(h * DOUBLES)), type_) for h in range(2)
        ]
        for r, row in enumerate(sums):
            left = simd.constant(type_, 1.0)
            if tall:
                place = builder.add(start, builder.add(i, INT64(r)))
                value = builder.load(builder.gep(x, [place]))
                left = simd.broadcast(builder, value, DOUBLES)
            for total, other in zip(row, right, strict=True):
                builder.store(simd.fma(builder, left, other, builder.load(total)), total)
    for r, row in enumerate(sums):
        for h, total in enumerate(row):
            simd.store(builder, builder.load(total), out, INT64(r * WIDE + h * DOUBLES))
    return context.get_dummy_value()


@simd.intrinsic
def _sum_products(
    typing_context: Any, a: Any, b: Any, i: Any, j: Any, d: Any, n: Any, out: Any
) -> Any:
    """Fill in out (TALL, WIDE), the sums over rows of a[row, i + r] b[row, j + c]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit_loop(context, builder, signature, arguments, TALL)

    return types.void(a, b, i, j, d, n, out), generate


@simd.intrinsic
def _sum_columns(
    typing_context: Any, a: Any, b: Any, i: Any, j: Any, d: Any, n: Any, out: Any
) -> Any:
    """Fill in the first row of out with the sums over rows of b[row, j + c]."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit_loop(context, builder, signature, arguments, 0)

    return types.void(a, b, i, j, d, n, out), generate


@simd.jit
def _add_columns(values: FloatArray, d: int, n: int, sums: IntArray) -> None:
    """Add the columns of n rows of d integers, and slack of TALL + WIDE numbers, to sums (d,)."""
    tile = np.empty((TALL, WIDE))
    for j in range(0, d, WIDE):
        _sum_columns(values, values, 0, j, d, n, tile)
        for c in range(min(WIDE, d - j)):
            sums[j + c] += np.int64(tile[0, c])


@simd.jit
def _add_products(
    a: FloatArray,  # IN  (n d + slack,) integers, row by row
    b: FloatArray,  # IN  (n d + slack,)
    d: int,
    n: int,
    full: bool,
    sums: IntArray,  # IN/OUT  (d (d + 1) / 2,) or (d,)
) -> None:
    tile = np.empty((TALL, WIDE))
    for i in range(0, d, TALL):
        for j in range(i, d if full else i + 1, WIDE):
            _sum_products(a, b, i, j, d, n, tile)
            for r in range(min(TALL, d - i)):
                for c in range(min(WIDE, d - j)):
                    p, q = i + r, j + c
                    if full and p <= q:
                        sums[p * d - p * (p - 1) // 2 + q - p] += np.int64(tile[r, c])
                    elif p == q:
                        sums[p] += np.int64(tile[r, c])


@simd.jit
def _add_moments(
    plain: FloatArray,  # IN  (n d,) rows times factors
    roots: FloatArray,  # IN  (n d,) rows times roots of factors
    alike: bool,  # IN  the two are equal
    d: int,
    per_unit: float,  # IN  a power of two
    full: bool,
    limbs: IntArray,  # IN/OUT  (3, 2 d + number of products)
) -> None:
    size = STRIP * d
    rounded, rests = np.zeros((2, size + TALL + WIDE))
    for first in range(0, len(plain), size):
        n = min(size, len(plain) - first) // d
        _round(plain[first : first + n * d], per_unit, rounded, rests)
        _add_columns(rounded, d, n, limbs[0, :d])
        _add_columns(rests, d, n, limbs[0, d : 2 * d])
        if not alike:
            _round(roots[first : first + n * d], per_unit, rounded, rests)
        if _largest(rounded[: n * d]) <= EXACT:
            _add_products(rounded, rounded, d, n, full, limbs[0, 2 * d :])
        else:  # in two halves of LIMB_BITS bits
            high = np.rint(rounded * 2.0**-LIMB_BITS)
            low = rounded - high * 2.0**LIMB_BITS
            _add_products(low, low, d, n, full, limbs[0, 2 * d :])
            _add_products(low, high, d, n, full, limbs[1, 2 * d :])
            _add_products(high, low, d, n, full, limbs[1, 2 * d :])
            _add_products(high, high, d, n, full, limbs[2, 2 * d :])


def moments(rows: FloatArray, factors: FloatArray | None, unit: float, *, full: bool) -> IntArray:
    """See :class:`~sketchshift.kernels.contract.Kernel`."""
    d = rows.shape[1]
    limbs = np.zeros((3, 2 * d + (d * (d + 1) // 2 if full else d)), dtype=np.int64)
    plain = roots = rows.ravel()
    if factors is not None:
        plain = (factors[:, None] * rows).ravel()
        roots = (np.sqrt(factors)[:, None] * rows).ravel()
    _add_moments(plain, roots, factors is None, d, 2.0**MOMENT_BITS / unit, full, limbs)
    return limbs
