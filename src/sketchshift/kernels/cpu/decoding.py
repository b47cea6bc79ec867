"""Correlations for decoders, in float32: what a climb asks for again and again.

``correlate`` gives every pair of point and frequency: a matrix product for the phases, then one
pass of sines. ``correlation`` sums the pairs up as it goes, values and gradients, so that no
array of pairs is ever written.
"""

from __future__ import annotations

import math
import weakref
from typing import Any, cast

import numpy as np
from numba import types
from numba.core import cgutils

from sketchshift._typing import Float32Array, FloatArray, RealArray
from sketchshift.kernels.contract import BITS
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.dense import PANEL, VECTORS, pack_panels
from sketchshift.kernels.cpu.simd import FLOAT, INT64, LANES

__all__ = ["correlate", "correlation"]

TOGETHER = 32  # panels summed in float32 before their sum is added in float64
ROWS = 4  # points of a tile: their phases and slopes stay in registers


def _rotated(builder: Any, t: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Real part and minus the imaginary part of (a - i b) e^{2 pi i t}, times 2**BITS."""
    rest, sign = simd.rest_and_sign(builder, [t])
    c, s = (
        builder.bitcast(builder.xor(builder.bitcast(wave, sign.type), sign), rest.type)
        for wave in simd.cos_sin(builder, rest)
    )
    real = simd.fma(builder, a, c, builder.fmul(b, s))
    return real, builder.fsub(builder.fmul(b, c), builder.fmul(a, s))


@simd.intrinsic
def _rotate_row(
    typing_context: Any, t: Any, re: Any, im: Any, real: Any, minus_imag: Any, n: Any
) -> Any:
    """Real part and minus the imaginary part of (re - i im) e^{2 pi i t}, n a multiple of LANES."""
    signature = types.void(t, re, im, real, minus_imag, n)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        t, re, im, real, minus_imag = (
            simd.array_data(context, builder, signature.args[i], arguments[i])[0] for i in range(5)
        )
        type_ = simd.vector(FLOAT)
        with cgutils.for_range_slice(builder, INT64(0), arguments[5], INT64(LANES), inc=True) as (
            at,
            _,
        ):
            a, b = simd.load(builder, re, at, type_), simd.load(builder, im, at, type_)
            parts = _rotated(builder, simd.load(builder, t, at, type_), a, b)
            for part, to in zip(parts, (real, minus_imag), strict=True):
                simd.store(builder, part, to, at)
        return context.get_dummy_value()

    return signature, generate


@simd.intrinsic
def _add_panel(
    typing_context: Any, x: Any, row: Any, panel: Any, re: Any, im: Any, sums: Any
) -> Any:
    """Add a panel of frequencies to sums (ROWS, 1 + d, LANES): the value, then the gradient.

    Rows x[row : row + ROWS]; panel (d, PANEL); re, im (PANEL,), the residual.
    """
    signature = types.void(x, row, panel, re, im, sums)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (points, shape), (turns, _), (a, _), (b, _), (out, _) = (
            simd.array_data(context, builder, signature.args[i], arguments[i])
            for i in (0, 2, 3, 4, 5)
        )
        d, type_ = shape[1], simd.vector(FLOAT)
        per_row = builder.mul(builder.add(d, INT64(1)), INT64(LANES))
        starts = [builder.mul(builder.add(arguments[1], INT64(r)), d) for r in range(ROWS)]
        zero = simd.constant(type_, 0.0)
        t = [[simd.variable(builder, zero) for _ in range(VECTORS)] for _ in range(ROWS)]
        with cgutils.for_range(builder, d) as loop:
            omega = _panel_row(builder, turns, loop.index)
            for start, phases in zip(starts, t, strict=True):
                value = builder.load(builder.gep(points, [builder.add(start, loop.index)]))
                value = simd.broadcast(builder, value)
                for phase, turn in zip(phases, omega, strict=True):
                    builder.store(simd.fma(builder, value, turn, builder.load(phase)), phase)
        slopes = []
        for r, phases in enumerate(t):
            place = builder.mul(per_row, INT64(r))
            total, of_row = simd.load(builder, out, place, type_), []
            for v, phase in enumerate(phases):
                at = INT64(v * LANES)
                z = simd.load(builder, a, at, type_), simd.load(builder, b, at, type_)
                real, minus_imag = _rotated(builder, builder.load(phase), *z)
                total = builder.fadd(total, real)
                of_row.append(minus_imag)
            simd.store(builder, total, out, place)
            slopes.append(of_row)
        with cgutils.for_range(builder, d) as loop:
            omega = _panel_row(builder, turns, loop.index)
            column = builder.mul(builder.add(loop.index, INT64(1)), INT64(LANES))
            for r, of_row in enumerate(slopes):
                place = builder.add(builder.mul(per_row, INT64(r)), column)
                total = simd.load(builder, out, place, type_)
                for slope, turn in zip(of_row, omega, strict=True):
                    total = simd.fma(builder, slope, turn, total)
                simd.store(builder, total, out, place)
        return context.get_dummy_value()

    return signature, generate


def _panel_row(builder: Any, turns: Any, k: Any) -> list[Any]:
    start = builder.mul(k, INT64(PANEL))
    at = [builder.add(start, INT64(v * LANES)) for v in range(VECTORS)]
    return [simd.load(builder, turns, place, simd.vector(FLOAT)) for place in at]


@simd.jit
def _correlate(
    points: Float32Array,  # IN  (L, d), L a multiple of ROWS
    panels: Float32Array,  # IN  (panels, d, PANEL)
    re: Float32Array,  # IN  (panels, PANEL)
    im: Float32Array,  # IN  (panels, PANEL)
    sums: Float32Array,  # SCRATCH  (ROWS, 1 + d, LANES)
    result: FloatArray,  # OUT  (L, 1 + d)
) -> None:
    part = np.empty((ROWS, result.shape[1]), dtype=np.float32)
    result[:] = 0.0
    for row in range(0, points.shape[0], ROWS):
        for first in range(0, panels.shape[0], TOGETHER):
            sums[:] = 0.0
            for p in range(first, min(first + TOGETHER, panels.shape[0])):
                _add_panel(points, row, panels[p], re[p], im[p], sums)
            simd.lane_sums(sums, ROWS * result.shape[1], part)
            for r in range(ROWS):
                for k in range(result.shape[1]):
                    result[row + r, k] += part[r, k]


_last: tuple[Any, Any] = (lambda: None, None)


def _packed(turns: Float32Array) -> Float32Array:
    """Panels of these frequencies; a climb asks for the same ones hundreds of times."""
    global _last
    of, panels = _last
    if of() is not turns:
        panels = pack_panels(turns)
        _last = (weakref.ref(turns), panels)
    return cast(Float32Array, panels)


def correlation(
    points: FloatArray, turns: Float32Array, residual: RealArray
) -> tuple[FloatArray, FloatArray]:
    """Values and gradients in one pass, without an array of pairs: see ``Kernel.correlation``."""
    (L, d), m = points.shape, turns.shape[1]
    panels = _packed(turns)
    re, im = simd.aligned_zeros((2, len(panels), PANEL), np.float32)
    re.ravel()[:m] = residual.real * 2.0**-BITS
    im.ravel()[:m] = residual.imag * 2.0**-BITS
    rows = np.zeros((-(-L // ROWS) * ROWS, d), dtype=np.float32)
    rows[:L] = points
    sums = simd.aligned_zeros((ROWS, 1 + d, LANES), np.float32)
    result = np.empty((len(rows), 1 + d))
    _correlate(rows, panels, re, im, sums, result)
    return result[:L, 0] / math.sqrt(m), result[:L, 1:] * (2.0 * math.pi / math.sqrt(m))


@simd.jit
def _rotate(
    t: Float32Array,  # IN  (L, m), m a multiple of LANES
    re: Float32Array,  # IN  (m,)
    im: Float32Array,  # IN  (m,)
    real: Float32Array,  # OUT  (L, m)
    minus_imag: Float32Array,  # OUT  (L, m)
) -> None:
    for row in range(t.shape[0]):
        _rotate_row(t[row], re, im, real[row], minus_imag[row], t.shape[1])


def correlate(
    points: FloatArray, turns: Float32Array, residual: RealArray
) -> tuple[RealArray, RealArray]:
    """See :class:`~sketchshift.kernels.contract.Kernel`."""
    d, m = turns.shape
    width = -(-m // LANES) * LANES
    padded = np.zeros((d, width), dtype=np.float32)
    padded[:, :m] = turns
    re, im = np.zeros((2, width), dtype=np.float32)
    # the polynomials come multiplied by 2**BITS: take it off here, once
    re[:m] = residual.real * 2.0**-BITS
    im[:m] = residual.imag * 2.0**-BITS
    t = np.asarray(points, dtype=np.float32) @ padded
    real, minus_imag = np.empty_like(t), np.empty_like(t)
    _rotate(t, re, im, real, minus_imag)
    return real[:, :m], minus_imag[:, :m]
