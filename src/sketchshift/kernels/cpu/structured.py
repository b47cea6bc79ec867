"""Exact sums at structured frequencies: blocks S H D1 H D2 H D3 by fast Hadamard transforms.

Here a lane is a row: a vector holds one coordinate of ``LANES`` rows. The butterflies of
three or four levels are done in registers before memory is written, small strides while the
rows are in the nearest cache; the last three levels go straight into the cosines and sines.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from sketchshift._typing import Float32Array, IntArray, RealArray
from sketchshift.kernels.contract import BITS
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.dense import pad_rows
from sketchshift.kernels.cpu.simd import DOUBLE, FLOAT, INT32, INT64, LANES

__all__ = ["StructuredAccumulator"]

GROUP = 256  # vectors of rows whose integers a lane of int32 can hold
NEAR = 512  # vectors that fit the nearest cache: all levels but the last pass over these in turn
TOGETHER = 4  # vectors of rows that pass a block of frequencies while its sums are in cache
assert GROUP << BITS < 2**31


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
def _add_rows(
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
def _widen(
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
        padded = simd.aligned_zeros((TOGETHER, size, LANES), rows.dtype)
        y = simd.aligned_zeros((size, LANES), rows.dtype)
        for first in range(0, len(rows), GROUP * LANES):
            part = slice(first, first + GROUP * LANES)
            filled, of_part = pad_rows(rows[part], weights[part], LANES)
            sums = simd.aligned_zeros((len(self._radii), 2, LANES), np.int32)
            _add_rows(filled, of_part, signs, self._radii, self._radix, padded, y, sums)
            magic = np.array([len(filled) // LANES * simd.MAGIC_BITS]).astype(np.int32)
            _widen(sums, magic[0], totals)
