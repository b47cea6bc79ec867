"""Exact sums at structured frequencies: blocks S H D1 H D2 H D3 by fast Hadamard transforms.

Here a lane is a row: a vector holds one coordinate of ``LANES`` rows. The butterflies of
several levels are done in registers before memory is written (radix 8), which changes
nothing in the order of the additions.
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
assert GROUP << BITS < 2**31


def _parts(element: Any) -> list[tuple[Any, int]]:
    """Vectors, with their offsets, that hold LANES numbers: one of float32, two of float64."""
    count = LANES if element == FLOAT else LANES // 2
    return [(simd.vector(element, count), offset) for offset in range(0, LANES, count)]


def _emit_butterflies(builder: Any, values: list[Any]) -> list[Any]:
    stride = 1
    while stride < len(values):
        result = list(values)
        for i in range(len(values)):
            if not i & stride:
                a, b = values[i], values[i + stride]
                result[i], result[i + stride] = builder.fadd(a, b), builder.fsub(a, b)
        values, stride = result, 2 * stride
    return values


def _butterflies(radix: int) -> Any:
    """Intrinsic for the butterflies of log2(radix) levels among rows i, i + h, i + 2 h, ..."""

    def emit(typing_context: Any, source: Any, signs: Any, target: Any, i: Any, h: Any) -> Any:
        signature = types.void(source, signs, target, i, h)
        element = FLOAT if target.dtype == types.float32 else DOUBLE
        is_signed = not isinstance(signs, types.NoneType)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            i, h = arguments[3], arguments[4]
            (x, _), (y, _) = (
                simd.array_data(context, builder, signature.args[a], arguments[a]) for a in (0, 2)
            )
            rows = [builder.add(i, builder.mul(h, INT64(r))) for r in range(radix)]
            for type_, offset in _parts(element):
                at = [builder.add(builder.mul(row, INT64(LANES)), INT64(offset)) for row in rows]
                values = [simd.load(builder, x, a, type_) for a in at]
                if is_signed:
                    s, _ = simd.array_data(context, builder, signature.args[1], arguments[1])
                    of_row = [builder.load(builder.gep(s, [row])) for row in rows]
                    values = [
                        builder.fmul(value, simd.broadcast(builder, sign, type_.count))
                        for value, sign in zip(values, of_row, strict=True)
                    ]
                for value, a in zip(_emit_butterflies(builder, values), at, strict=True):
                    simd.store(builder, value, y, a)
            return context.get_dummy_value()

        return signature, generate

    return simd.intrinsic(emit)


_butterflies_2, _butterflies_4, _butterflies_8 = (_butterflies(radix) for radix in (2, 4, 8))


@simd.intrinsic
def _add_vector(
    typing_context: Any, y: Any, j: Any, radius: Any, weights: Any, sums: Any, at: Any
) -> Any:
    """Add the integers of the phases y[j] times radius to sums (m, 2, LANES), row ``at``."""
    signature = types.void(y, j, radius, weights, sums, at)
    element = FLOAT if y.dtype == types.float32 else DOUBLE

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (source, _), (w, _), (out, _) = (
            simd.array_data(context, builder, signature.args[i], arguments[i]) for i in (0, 3, 4)
        )
        radius = arguments[2] if element == FLOAT else builder.fpext(arguments[2], DOUBLE)
        start = builder.mul(arguments[1], INT64(LANES))
        phases = [
            builder.fmul(
                simd.load(builder, source, builder.add(start, INT64(offset)), type_),
                simd.broadcast(builder, radius, type_.count),
            )
            for type_, offset in _parts(element)
        ]
        weight = simd.load(builder, w, INT64(0), simd.vector(FLOAT))
        waves = simd.weighted_integers(builder, phases, weight)
        for wave, value in enumerate(waves):
            to = builder.add(builder.mul(arguments[5], INT64(2 * LANES)), INT64(wave * LANES))
            total = simd.load(builder, out, to, simd.vector(INT32))
            simd.store(builder, builder.add(total, value), out, to)
        return context.get_dummy_value()

    return signature, generate


@simd.jit
def _hadamard(source: RealArray, signs: RealArray, y: RealArray) -> None:
    """Signs, then the transform, of each lane of source (D, LANES); y may be source."""
    size, h = y.shape[0], 8
    for i in range(0, size, 8):
        _butterflies_8(source, signs, y, i, 1)
    while h < size:
        radix = min(8, size // h)
        for start in range(0, size, radix * h):
            for i in range(start, start + h):
                if radix == 8:
                    _butterflies_8(y, None, y, i, h)
                elif radix == 4:
                    _butterflies_4(y, None, y, i, h)
                else:
                    _butterflies_2(y, None, y, i, h)
        h *= radix


@simd.jit
def _add_rows(
    rows: RealArray,  # IN  (n, d), n a multiple of LANES, at most GROUP * LANES
    weights: Float32Array,  # IN  (n,)
    signs: RealArray,  # IN  (blocks, 3, D), in the dtype of rows
    radii: Float32Array,  # IN  (m,)
    padded: RealArray,  # SCRATCH  (D, LANES), zero below row d
    y: RealArray,  # SCRATCH  (D, LANES)
    sums: NDArray[np.int32],  # IN/OUT  (m, 2, LANES)
) -> None:
    n, d = rows.shape
    size = signs.shape[2]
    for first in range(0, n, LANES):
        for lane in range(LANES):
            for k in range(d):
                padded[k, lane] = rows[first + lane, k]
        for block in range(signs.shape[0]):
            _hadamard(padded, signs[block, 0], y)
            _hadamard(y, signs[block, 1], y)
            _hadamard(y, signs[block, 2], y)
            start = block * size
            for j in range(min(size, radii.shape[0] - start)):
                at = start + j
                _add_vector(y, j, radii[at], weights[first : first + LANES], sums, at)


class StructuredAccumulator:
    """Rows to integers at the frequencies of blocks ``signs`` with radii ``radii``."""

    def __init__(self, signs: Float32Array, radii: Float32Array) -> None:
        self._signs, self._radii = signs, radii

    def __call__(self, rows: RealArray, weights: Float32Array, totals: IntArray) -> None:
        """See :class:`~sketchshift.kernels.contract.Accumulator`."""
        signs = self._signs.astype(rows.dtype)
        scratch = simd.aligned_zeros((2, signs.shape[2], LANES), rows.dtype)
        for first in range(0, len(rows), GROUP * LANES):
            part = slice(first, first + GROUP * LANES)
            filled, of_part = pad_rows(rows[part], weights[part], LANES)
            sums = simd.aligned_zeros((len(self._radii), 2, LANES), np.int32)
            _add_rows(filled, of_part, signs, self._radii, scratch[0], scratch[1], sums)
            magic = np.array(len(filled) // LANES * simd.MAGIC_BITS)
            sums -= magic.astype(np.int32)  # wraps modulo 2^32, as the lanes did
            totals += sums.sum(axis=2, dtype=np.int64).T
