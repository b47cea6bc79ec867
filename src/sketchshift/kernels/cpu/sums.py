"""Exact sums over rows: waves at frequencies one by one or structured, and moments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from sketchshift._typing import Float32Array, FloatArray, IntArray, RealArray
from sketchshift.kernels.contract import BITS, LIMB_BITS, MOMENT_BITS
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.simd import DOUBLE, FLOAT, INT32, INT64, LANES

__all__ = ["DenseAccumulator", "StructuredAccumulator", "moments", "normalise"]

# Exact sums at frequencies given one by one.
#
# A tile of ``ROWS`` rows by ``VECTORS`` vectors of frequencies keeps its phases in
# registers while the columns go by; cosines and sines are then added as int32 in registers,
# for at most ``GROUP`` rows, and widened to the int64 totals.

ROWS, VECTORS = 6, 2
PANEL = LANES * VECTORS
GROUP = 252  # a multiple of ROWS
assert GROUP << BITS < 2**31  # int32 registers hold a group of rows of weight 1


@simd.intrinsic
def _add_group(
    typing_context: Any, rows: Any, weights: Any, panel: Any, first: Any, stop: Any, totals: Any
) -> Any:
    """Add rows[first:stop] to totals (2, PANEL) at the frequencies panel (d, PANEL)."""
    signature = types.void(rows, weights, panel, first, stop, totals)
    is_float = rows.dtype == types.float32

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, stop = arguments[3], arguments[4]
        (x, shape), (w, _), (omega, _), (out, _) = (
            simd.array_data(context, builder, signature.args[i], arguments[i]) for i in (0, 1, 2, 5)
        )
        d = shape[1]
        phase = simd.vector(FLOAT) if is_float else simd.vector(DOUBLE, LANES // 2)
        parts = LANES // phase.count
        zero, start = simd.constant(simd.vector(INT32), 0), simd.constant(phase, 0.0)
        sums = [[simd.variable(builder, zero) for _ in range(2)] for _ in range(VECTORS)]
        t = [
            [[simd.variable(builder, start) for _ in range(parts)] for _ in range(VECTORS)]
            for _ in range(ROWS)
        ]
        with cgutils.for_range_slice(builder, first, stop, INT64(ROWS), inc=True) as (row, _):
            starts = [builder.mul(builder.add(row, INT64(r)), d) for r in range(ROWS)]
            _phases(builder, x, starts, omega, d, t)
            for r in range(ROWS):
                weight = builder.load(builder.gep(w, [builder.add(row, INT64(r))]))
                for v in range(VECTORS):
                    vectors = [builder.load(part) for part in t[r][v]]
                    waves = simd.weighted_integers(
                        builder, vectors, simd.broadcast(builder, weight)
                    )
                    for total, wave in zip(sums[v], waves, strict=True):
                        builder.store(builder.add(builder.load(total), wave), total)
        _emit_widened(builder, sums, builder.sub(stop, first), out)
        return context.get_dummy_value()

    return signature, generate


def _phases(builder: Any, x: Any, starts: list[Any], omega: Any, d: Any, t: Any) -> None:
    """The chain t <- fma(x_k, turns_k, t) over the columns k in order, for a whole tile."""
    phase = t[0][0][0].type.pointee
    for part in (part for row in t for vector in row for part in vector):
        builder.store(simd.constant(phase, 0.0), part)
    with cgutils.for_range(builder, d) as loop:
        at = builder.mul(loop.index, INT64(PANEL))
        turns = []
        for offset in range(0, PANEL, phase.count):
            narrow = simd.load(
                builder, omega, builder.add(at, INT64(offset)), simd.vector(FLOAT, phase.count)
            )
            turns.append(narrow if phase.element == FLOAT else builder.fpext(narrow, phase))
        for start, row in zip(starts, t, strict=True):
            value = builder.load(builder.gep(x, [builder.add(start, loop.index)]))
            value = simd.broadcast(builder, value, phase.count)
            flat = [part for vector in row for part in vector]
            for part, turn in zip(flat, turns, strict=True):
                builder.store(simd.fma(builder, value, turn, builder.load(part)), part)


def _emit_widened(builder: Any, sums: Any, n_rows: Any, out: Any) -> None:
    """Take the magic number off the int32 sums, modulo 2^32, and add them to the totals."""
    magic = builder.mul(builder.trunc(n_rows, INT32), ir.Constant(INT32, simd.MAGIC_BITS))
    wide = simd.vector(INT64)
    for v, of_vector in enumerate(sums):
        for wave, total in enumerate(of_vector):
            at = INT64(wave * PANEL + v * LANES)
            narrow = builder.sub(builder.load(total), simd.broadcast(builder, magic))
            value = builder.add(simd.load(builder, out, at, wide), builder.sext(narrow, wide))
            simd.store(builder, value, out, at)


@simd.jit
def _add_rows(
    rows: RealArray,  # IN  (n, d), n a multiple of ROWS
    weights: Float32Array,  # IN  (n,)
    panels: Float32Array,  # IN  (panels, d, PANEL)
    totals: IntArray,  # IN/OUT  (panels, 2, PANEL)
) -> None:
    for first in range(0, rows.shape[0], GROUP):
        stop = min(rows.shape[0], first + GROUP)
        for p in range(panels.shape[0]):
            _add_group(rows, weights, panels[p], first, stop, totals[p])


@simd.jit
def _collect(
    sums: IntArray,  # IN  (panels, 2, PANEL)
    totals: IntArray,  # IN/OUT  (2, m)
) -> None:
    for wave in range(2):
        for j in range(totals.shape[1]):
            totals[wave, j] += sums[j // PANEL, wave, j % PANEL]


class DenseAccumulator:
    """Rows to integers at the frequencies ``turns`` (d, m), packed in panels once."""

    def __init__(self, turns: Float32Array) -> None:
        self._panels = pack_panels(turns)

    def __call__(self, rows: RealArray, weights: Float32Array, totals: IntArray) -> None:
        """See :class:`~sketchshift.kernels.contract.Accumulator`."""
        rows, weights = pad_rows(rows, weights, ROWS)
        sums = np.zeros((len(self._panels), 2, PANEL), dtype=np.int64)
        _add_rows(rows, weights, self._panels, sums)
        _collect(sums, totals)


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Zeros that start at a multiple of 64 bytes: no vector then lies across two cache lines."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + 64, dtype=np.uint8)
    start = -buffer.ctypes.data % 64
    zeros: NDArray[Any] = buffer[start : start + size].view(dtype).reshape(shape)
    return zeros


def pack_panels(turns: Float32Array) -> Float32Array:
    """Frequencies (d, m) in panels (panels, d, PANEL), the last filled up with zeros."""
    d, m = turns.shape
    n_panels = -(-m // PANEL)
    padded = np.zeros((d, n_panels * PANEL), dtype=np.float32)
    padded[:, :m] = turns
    panels = aligned_zeros((n_panels, d, PANEL), np.float32)
    panels[:] = padded.reshape(d, n_panels, PANEL).transpose(1, 0, 2)
    return panels


def pad_rows(
    rows: RealArray, weights: Float32Array, multiple: int
) -> tuple[RealArray, Float32Array]:
    """Rows in C order, filled up with rows of weight 0, which add nothing."""
    missing = -len(rows) % multiple
    if missing:
        rows = np.concatenate([rows, np.zeros((missing, rows.shape[1]), dtype=rows.dtype)])
        weights = np.concatenate([weights, np.zeros(missing, dtype=np.float32)])
    return np.ascontiguousarray(rows), weights


# Exact sums at structured frequencies: blocks S H D1 H D2 H D3 by fast Hadamard transforms.
#
# Here a lane is a row: a vector holds one coordinate of ``LANES`` rows. The butterflies of
# three or four levels are done in registers before memory is written, small strides while the
# rows are in the nearest cache; the last three levels go straight into the cosines and sines.

VECTOR_GROUP = 256  # vectors of rows whose integers a lane of int32 can hold
NEAR = 512  # vectors that fit the nearest cache: all levels but the last pass over these in turn
TOGETHER = 4  # vectors of rows that pass a block of frequencies while its sums are in cache
assert VECTOR_GROUP << BITS < 2**31


def _parts(element: Any) -> list[tuple[Any, int]]:
    """Vectors, with their offsets, that hold LANES numbers: one of float32, two of float64."""
    count = LANES if element == FLOAT else LANES // 2
    return [(simd.vector(element, count), offset) for offset in range(0, LANES, count)]


def _emit_butterflies(builder: Any, values: list[Any], *, up: bool) -> list[Any]:
    """All levels among a few vectors: strides 1, 2, 4, ... (up) or ..., 4, 2, 1."""
    strides = [1 << level for level in range(len(values).bit_length() - 1)]
    for stride in strides if up else reversed(strides):
        result = list(values)
        for i in range(len(values)):
            if not i & stride:
                a, b = values[i], values[i + stride]
                result[i], result[i + stride] = builder.fadd(a, b), builder.fsub(a, b)
        values = result
    return values


def _butterflies(radix: int, before: bool | None, after: bool, *, is_signed: bool) -> Any:
    """Intrinsic for rows i, i + h, i + 2 h, ...: butterflies, signs, butterflies.

    ``before`` and ``after`` say whether the strides go up; None leaves the first ones out.
    """

    def emit(typing_context: Any, source: Any, signs: Any, target: Any, i: Any, h: Any) -> Any:
        signature = types.void(source, signs, target, i, h)
        element = FLOAT if target.dtype == types.float32 else DOUBLE

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            i, h = arguments[3], arguments[4]
            (x, _), (s, _), (y, _) = (
                simd.array_data(context, builder, signature.args[a], arguments[a]) for a in range(3)
            )
            rows = [builder.add(i, builder.mul(h, INT64(r))) for r in range(radix)]
            for type_, offset in _parts(element):
                at = [builder.add(builder.mul(row, INT64(LANES)), INT64(offset)) for row in rows]
                values = [simd.load(builder, x, a, type_) for a in at]
                if before is not None:
                    values = _emit_butterflies(builder, values, up=before)
                if is_signed:
                    of_rows = [builder.load(builder.gep(s, [row])) for row in rows]
                    factors = [simd.broadcast(builder, sign, type_.count) for sign in of_rows]
                    values = [builder.fmul(v, f) for v, f in zip(values, factors, strict=True)]
                values = _emit_butterflies(builder, values, up=after)
                for value, a in zip(values, at, strict=True):
                    simd.store(builder, value, y, a)
            return context.get_dummy_value()

        return signature, generate

    return simd.intrinsic(emit)


_start_4, _start_8, _start_16 = (_butterflies(r, None, True, is_signed=True) for r in (4, 8, 16))
_valley_4, _valley_8, _valley_16 = (
    _butterflies(r, False, True, is_signed=True) for r in (4, 8, 16)
)
_peak_8 = _butterflies(8, True, False, is_signed=True)
_up_8, _down_8 = (_butterflies(8, None, up, is_signed=False) for up in (True, False))


@simd.intrinsic
def _finish(
    typing_context: Any, y: Any, i: Any, h: Any, radii: Any, weights: Any, sums: Any, start: Any
) -> Any:
    """Last butterflies of rows i, i + h, ... i + 7 h; add their integers to sums (m, 2, LANES).

    Row r of y belongs to frequency start + r; weights (LANES,) to the lanes.
    """
    signature = types.void(y, i, h, radii, weights, sums, start)
    element = FLOAT if y.dtype == types.float32 else DOUBLE

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        i, h, start = arguments[1], arguments[2], arguments[6]
        (x, _), (radius, _), (w, _), (out, _) = (
            simd.array_data(context, builder, signature.args[a], arguments[a]) for a in (0, 3, 4, 5)
        )
        weight = simd.load(builder, w, INT64(0), simd.vector(FLOAT))
        rows = [builder.add(i, builder.mul(h, INT64(r))) for r in range(8)]
        parts = []
        for type_, offset in _parts(element):
            at = [builder.add(builder.mul(row, INT64(LANES)), INT64(offset)) for row in rows]
            values = [simd.load(builder, x, a, type_) for a in at]
            parts.append(_emit_butterflies(builder, values, up=True))
        for r, row in enumerate(rows):
            frequency = builder.add(start, row)
            length = builder.load(builder.gep(radius, [frequency]))
            length = length if element == FLOAT else builder.fpext(length, DOUBLE)
            phases = [
                builder.fmul(part[r], simd.broadcast(builder, length, part[r].type.count))
                for part in parts
            ]
            for wave, value in enumerate(simd.weighted_integers(builder, phases, weight)):
                to = builder.add(builder.mul(frequency, INT64(2 * LANES)), INT64(wave * LANES))
                total = simd.load(builder, out, to, simd.vector(INT32))
                simd.store(builder, builder.add(total, value), out, to)
        return context.get_dummy_value()

    return signature, generate


@simd.jit
def _climb(y: RealArray, signs: RealArray, first: int, span: int, radix: int) -> None:
    """Strides radix to D / 16 of rows first to first + span."""
    h = radix
    while h < y.shape[0] // 8:
        for start in range(first, first + span, 8 * h):
            for i in range(start, start + h):
                _up_8(y, signs, y, i, h)
        h *= 8


@simd.jit
def _transform(padded: RealArray, signs: RealArray, y: RealArray, radix: int) -> None:
    """H D1 H D2 H D3 of the lanes of padded (D, LANES), but for the last three levels.

    The first transform goes through the strides 1 to D / 2, the second back from D / 2 to 1,
    the third again up: so where two meet, the same rows are at hand. Strides below D / 8 are
    done span by span, while the span is in the nearest cache.
    """
    size = y.shape[0]
    last = size // 8
    span = max(last, min(size, NEAR))
    for first in range(0, size, span):
        for i in range(first, first + span, radix):
            if radix == 8:
                _start_8(padded, signs[0], y, i, 1)
            elif radix == 4:
                _start_4(padded, signs[0], y, i, 1)
            else:
                _start_16(padded, signs[0], y, i, 1)
        _climb(y, signs[0], first, span, radix)
    for i in range(last):
        _peak_8(y, signs[1], y, i, last)
    for first in range(0, size, span):
        h = last // 8
        while h >= radix:
            for start in range(first, first + span, 8 * h):
                for i in range(start, start + h):
                    _down_8(y, signs[1], y, i, h)
            h //= 8
        for i in range(first, first + span, radix):
            if radix == 8:
                _valley_8(y, signs[2], y, i, 1)
            elif radix == 4:
                _valley_4(y, signs[2], y, i, 1)
            else:
                _valley_16(y, signs[2], y, i, 1)
        _climb(y, signs[2], first, span, radix)


@simd.jit
def _transpose(rows: RealArray, padded: RealArray) -> None:
    """Put LANES rows (LANES, d) into lanes (D, LANES), in squares that stay in cache."""
    d = rows.shape[1]
    for first in range(0, d, LANES):
        for lane in range(LANES):
            for k in range(first, min(first + LANES, d)):
                padded[k, lane] = rows[lane, k]


@simd.jit
def _add_structured_rows(
    rows: RealArray,  # IN  (n, d), n a multiple of LANES, at most GROUP * LANES
    weights: Float32Array,  # IN  (n,)
    signs: RealArray,  # IN  (blocks, 3, D), in the dtype of rows
    radii: Float32Array,  # IN  (blocks * D,)
    radix: int,  # IN  of the first pass: 4, 8 or 16, so that D is it times a power of 8
    padded: RealArray,  # SCRATCH  (TOGETHER, D, LANES), zero below row d
    y: RealArray,  # SCRATCH  (D, LANES)
    sums: NDArray[np.int32],  # IN/OUT  (blocks * D, 2, LANES)
) -> None:
    n, size = rows.shape[0], signs.shape[2]
    h = size // 8
    for first in range(0, n, TOGETHER * LANES):
        n_vectors = min(TOGETHER, (n - first) // LANES)
        for v in range(n_vectors):
            _transpose(rows[first + v * LANES :], padded[v])
        for block in range(signs.shape[0]):
            for v in range(n_vectors):
                start = first + v * LANES
                _transform(padded[v], signs[block], y, radix)
                of_lanes = weights[start : start + LANES]
                for i in range(h):
                    _finish(y, i, h, radii, of_lanes, sums, block * size)


@simd.jit
def _widen_lanes(
    sums: NDArray[np.int32],  # IN  (at least m, 2, LANES)
    magic: np.int32,  # IN  what rows of weight 0 would have left in a lane, modulo 2^32
    totals: IntArray,  # IN/OUT  (2, m)
) -> None:
    for j in range(totals.shape[1]):
        for wave in range(2):
            total = np.int64(0)
            for lane in range(LANES):
                total += np.int64(np.int32(sums[j, wave, lane] - magic))
            totals[wave, j] += total


class StructuredAccumulator:
    """Rows to integers at the frequencies of blocks ``signs`` with radii ``radii``."""

    def __init__(self, signs: Float32Array, radii: Float32Array) -> None:
        n_blocks, _, size = signs.shape
        self._signs, self._m = signs, len(radii)
        self._radix = (8, 16, 4)[(size.bit_length() - 1) % 3]
        self._radii = np.zeros(n_blocks * size, dtype=np.float32)  # the last block filled up
        self._radii[: self._m] = radii

    def __call__(self, rows: RealArray, weights: Float32Array, totals: IntArray) -> None:
        """See :class:`~sketchshift.kernels.contract.Accumulator`."""
        signs = self._signs.astype(rows.dtype)
        size = signs.shape[2]
        padded = aligned_zeros((TOGETHER, size, LANES), rows.dtype)
        y = aligned_zeros((size, LANES), rows.dtype)
        for first in range(0, len(rows), VECTOR_GROUP * LANES):
            part = slice(first, first + VECTOR_GROUP * LANES)
            filled, of_part = pad_rows(rows[part], weights[part], LANES)
            sums = aligned_zeros((len(self._radii), 2, LANES), np.int32)
            _add_structured_rows(filled, of_part, signs, self._radii, self._radix, padded, y, sums)
            magic = np.array([len(filled) // LANES * simd.MAGIC_BITS]).astype(np.int32)
            _widen_lanes(sums, magic[0], totals)


# What is done once a row: normalisation and norms, in float64.


@simd.jit
def normalise(
    X: RealArray,  # IN  (n, d), float32 or float64
    center: FloatArray,  # IN  (d,)
    per_unit: FloatArray,  # IN  (d,)
    rows: FloatArray,  # OUT  (n, d)
    squared_norms: FloatArray,  # OUT  (n,)
) -> None:
    """Fill in x' = (x - center) per_unit and the sum of squares in the order of the columns."""
    n, d = X.shape
    for i in range(n):
        for k in range(d):
            rows[i, k] = (np.float64(X[i, k]) - center[k]) * per_unit[k]
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


# Moments of rows as exact integers: sums of integers in float64, below 2^53.

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
