"""Moments of rows as exact integers: sums of integers in float64, below 2^53."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from sketchshift._typing import FloatArray, IntArray
from sketchshift.kernels.contract import LIMB_BITS, MOMENT_BITS
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.simd import DOUBLE, INT64

__all__ = ["moments"]

STRIP, STRIP_NUMBERS = 64, 4096  # rows at a time, and numbers: they stay in the nearest cache
STRIPS = 64  # strips at a time whose columns have exact sums: 2^12 integers of at most 2^40
EXACT = 2.0**52  # integers whose squares sum up to no more have exact sums of products
LONG = 2.0**40  # most that a row of long integers adds to a product of their halves
SHORT = 2.0**44  # squares of a row, in the mean of a strip: 2^18 such rows fit a limb of int64
DOUBLES = simd.LANES // 2
ROW = simd.vector(DOUBLE, DOUBLES)
TALL, WIDE = 4, 2 * DOUBLES  # a tile of products: its sums stay in eight registers


@simd.intrinsic
def _round_vectors(
    typing_context: Any, values: Any, per_unit: Any, rounded: Any, rests: Any, squares: Any, n: Any
) -> Any:
    """The first n numbers of :func:`_round`, n a multiple of DOUBLES; squares (DOUBLES,) is OUT."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, y, z, out = (
            simd.array_data(context, builder, signature.args[i], arguments[i])[0]
            for i in (0, 2, 3, 4)
        )
        type_ = ROW
        factor = simd.broadcast(builder, arguments[1], DOUBLES)
        total = simd.variable(builder, simd.constant(type_, 0.0))
        step = INT64(DOUBLES)
        with cgutils.for_range_slice(builder, INT64(0), arguments[5], step, inc=True) as (at, _):
            value = builder.fmul(simd.load(builder, x, at, type_), factor)
            whole = simd.rint(builder, value)
            rest = builder.fmul(builder.fsub(value, whole), simd.constant(type_, 2.0**LIMB_BITS))
            simd.store(builder, whole, y, at)
            simd.store(builder, simd.rint(builder, rest), z, at)
            builder.store(simd.fma(builder, whole, whole, builder.load(total)), total)
        simd.store(builder, builder.load(total), out, INT64(0))
        return context.get_dummy_value()

    return types.void(values, per_unit, rounded, rests, squares, n), generate


@simd.jit
def _round(
    values: FloatArray,  # IN  (size,)
    per_unit: float,  # IN  a power of two
    rounded: FloatArray,  # OUT  (size,)
    rests: FloatArray,  # OUT  (size,)
) -> float:
    """Fill in rint(v) and rint(2**LIMB_BITS (v - rint(v))), v = K x; return the sum of squares."""
    whole = len(values) - len(values) % DOUBLES
    squares = np.empty(DOUBLES)
    _round_vectors(values, per_unit, rounded, rests, squares, whole)
    for i in range(whole, len(values)):
        value = values[i] * per_unit
        rounded[i] = np.rint(value)
        rests[i] = np.rint((value - rounded[i]) * 2.0**LIMB_BITS)
        squares[0] += rounded[i] * rounded[i]
    return float(squares.sum())


def _sums_over_rows(left: str) -> Any:
    """Intrinsic that adds sums over rows to out: of ``left`` times b[row, j : j + WIDE].

    ``left`` is "tall", the numbers a[row, i : i + TALL], for out (TALL, WIDE); "same", the
    numbers a[row, j : j + WIDE]; or "one"; for out (WIDE,).
    """
    n_lines = TALL if left == "tall" else 1

    def emit(typing_context: Any, a: Any, b: Any, i: Any, j: Any, d: Any, n: Any, out: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            (x, _), (y, _), (to, _) = (
                simd.array_data(context, builder, signature.args[k], arguments[k])
                for k in (0, 1, 6)
            )
            i, j, d, n = arguments[2:6]
            places = [(r, h, INT64(r * WIDE + h * DOUBLES)) for r in range(n_lines) for h in (0, 1)]
            sums = [simd.variable(builder, simd.load(builder, to, at, ROW)) for _, _, at in places]
            with cgutils.for_range(builder, n) as loop:
                start = builder.mul(loop.index, d)
                at = builder.add(start, j)
                right = _pair(builder, y, at)
                if left == "tall":
                    columns = [builder.add(builder.add(start, i), INT64(r)) for r in range(TALL)]
                    values = [builder.load(builder.gep(x, [column])) for column in columns]
                    lefts = [[simd.broadcast(builder, v, DOUBLES)] * 2 for v in values]
                elif left == "same":
                    lefts = [_pair(builder, x, at)]
                else:
                    lefts = [[simd.constant(ROW, 1.0)] * 2]
                for total, (r, h, _) in zip(sums, places, strict=True):
                    value = simd.fma(builder, lefts[r][h], right[h], builder.load(total))
                    builder.store(value, total)
            for total, (_, _, at) in zip(sums, places, strict=True):
                simd.store(builder, builder.load(total), to, at)
            return context.get_dummy_value()

        return types.void(a, b, i, j, d, n, out), generate

    return simd.intrinsic(emit)


def _pair(builder: Any, data: Any, at: Any) -> list[Any]:
    return [simd.load(builder, data, builder.add(at, INT64(h * DOUBLES)), ROW) for h in (0, 1)]


_add_tile, _add_square_line, _add_line = (_sums_over_rows(left) for left in ("tall", "same", "one"))


@simd.jit
def _add_columns(values: FloatArray, d: int, n: int, lines: FloatArray) -> None:
    """Add the columns of n rows of d integers, followed by slack, to lines (tiles, WIDE)."""
    for j in range(0, d, WIDE):
        _add_line(values, values, 0, j, d, n, lines[j // WIDE])


@simd.jit
def _flush_columns(lines: FloatArray, d: int, sums: IntArray) -> None:
    """Move the sums and rests in lines (2, tiles, WIDE) to sums, as integers."""
    for k in range(d):
        sums[k] += np.int64(lines[0, k // WIDE, k % WIDE])
        sums[d + k] += np.int64(lines[1, k // WIDE, k % WIDE])
    lines[:] = 0.0


@simd.jit
def _add_products(
    a: FloatArray,  # IN  (n d + slack,) integers, row by row
    b: FloatArray,  # IN  (n d + slack,)
    d: int,
    n: int,
    full: bool,
    tiles: FloatArray,  # IN/OUT  (tiles, TALL, WIDE)
) -> None:
    at = 0
    for i in range(0, d if full else 0, TALL):
        for j in range(i, d, WIDE):
            _add_tile(a, b, i, j, d, n, tiles[at])
            at += 1
    for j in range(0, 0 if full else d, WIDE):
        _add_square_line(a, b, 0, j, d, n, tiles[j // WIDE, 0])


@simd.jit
def _flush(tiles: FloatArray, d: int, full: bool, sums: IntArray) -> None:
    """Move the products in tiles (3, ...) to sums (3, d (d + 1) / 2) or (3, d), as integers."""
    at = 0
    for i in range(0, d if full else 0, TALL):
        for j in range(i, d, WIDE):
            for p in range(i, min(i + TALL, d)):
                for q in range(max(p, j), min(j + WIDE, d)):
                    place = p * d - p * (p - 1) // 2 + q - p
                    for limb in range(3):
                        sums[limb, place] += np.int64(tiles[limb, at, p - i, q - j])
            at += 1
    for p in range(0 if full else d):
        for limb in range(3):
            sums[limb, p] += np.int64(tiles[limb, p // WIDE, 0, p % WIDE])
    tiles[:] = 0.0


@simd.jit
def _scale(rows: FloatArray, factors: FloatArray, d: int, out: FloatArray) -> None:
    """Fill in out with rows (n d,) times the factors (n,) of each row."""
    for i in range(len(factors)):
        f = factors[i]
        for k in range(i * d, (i + 1) * d):
            out[k] = f * rows[k]


@simd.jit
def _add_moments(
    rows: FloatArray,  # IN  (n d,)
    factors: FloatArray,  # IN  (n,), or (0,) where all are 1
    roots: FloatArray,  # IN  (n,), their roots, likewise
    d: int,
    per_unit: float,  # IN  a power of two
    full: bool,
    limbs: IntArray,  # IN/OUT  (3, 2 d + number of products)
) -> None:
    size = min(max(STRIP_NUMBERS // d, 8), STRIP) * d
    products = limbs[:, 2 * d :]
    rounded, rests = np.zeros((2, size + TALL + WIDE))
    lines = np.zeros((2, -(-d // WIDE), WIDE))
    tiles = np.zeros((3, (-(-d // TALL) if full else 1) * -(-d // WIDE), TALL, WIDE))
    pending = 0.0
    scaled = np.empty(size)
    for first in range(0, len(rows), size):
        n = min(size, len(rows) - first) // d
        strip, at = rows[first : first + n * d], first // d
        values = strip
        if len(factors):
            values = scaled[: n * d]
            _scale(strip, factors[at : at + n], d, values)
        squares = _round(values, per_unit, rounded, rests)
        _add_columns(rounded, d, n, lines[0])
        _add_columns(rests, d, n, lines[1])
        if (first // size + 1) % STRIPS == 0:
            _flush_columns(lines, d, limbs[0])
        if len(factors):
            _scale(strip, roots[at : at + n], d, values)
            squares = _round(values, per_unit, rounded, rests)
        is_short = squares <= n * SHORT
        bound = squares if is_short else n * LONG
        if pending + bound > EXACT:
            _flush(tiles, d, full, products)
            pending = 0.0
        pending += bound
        if is_short:
            _add_products(rounded, rounded, d, n, full, tiles[0])
            continue
        high = np.rint(rounded * 2.0**-LIMB_BITS)
        low = rounded - high * 2.0**LIMB_BITS
        _add_products(low, low, d, n, full, tiles[0])
        _add_products(low, high, d, n, full, tiles[1])
        _add_products(high, low, d, n, full, tiles[1])
        _add_products(high, high, d, n, full, tiles[2])
    _flush(tiles, d, full, products)
    _flush_columns(lines, d, limbs[0])


def moments(rows: FloatArray, factors: FloatArray | None, unit: float, *, full: bool) -> IntArray:
    """See :class:`~sketchshift.kernels.contract.Kernel`."""
    d = rows.shape[1]
    limbs = np.zeros((3, 2 * d + (d * (d + 1) // 2 if full else d)), dtype=np.int64)
    flat = np.ascontiguousarray(rows).ravel()
    f = np.empty(0) if factors is None else factors
    _add_moments(flat, f, np.sqrt(f), d, 2.0**MOMENT_BITS / unit, full, limbs)
    return limbs
