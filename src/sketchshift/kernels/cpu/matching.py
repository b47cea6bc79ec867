"""Moment matching in float32: value and gradient of a fit of Gaussians, fused.

A block of frequencies is gone through twice while it is in cache: phases, envelopes and waves
of all components, with their sum; then, the residual known, the sums that gradients need. No
array of all pairs of component and frequency is ever written.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils

from sketchshift._typing import Float32Array, FloatArray
from sketchshift.kernels.contract import BITS
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.dense import PANEL, VECTORS
from sketchshift.kernels.cpu.simd import FLOAT, INT64, LANES

__all__ = ["ROWS", "TOGETHER", "match"]

ROWS = 4  # components of a tile: their phases and exponents stay in registers
TOGETHER = 8  # panels of a block: summed in float32, then added in float64
_UNIT = 2.0**-BITS  # waves come multiplied by 2**BITS


@simd.intrinsic
def _add_waves(
    typing_context: Any, x: Any, e: Any, alpha: Any, row: Any, panel: Any, waves: Any, model: Any
) -> Any:
    """Write waves[row : row + ROWS] (.., 2, PANEL) at a panel, and add them to model (2, PANEL).

    x, e (T, d): centers, and the halvings an axis has at frequency 1.
    """
    signature = types.void(x, e, alpha, row, panel, waves, model)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (points, shape), (rates, _), (weights, _), (turns, _), (out, _), (sums, _) = (
            simd.array_data(context, builder, signature.args[i], arguments[i])
            for i in (0, 1, 2, 4, 5, 6)
        )
        d, type_ = shape[1], simd.vector(FLOAT)
        rows = [builder.add(arguments[3], INT64(r)) for r in range(ROWS)]
        starts = [builder.mul(row, d) for row in rows]
        t, h = _phases_and_halvings(builder, points, rates, starts, turns, d)
        total = [
            simd.load(builder, sums, INT64(part * PANEL + v * LANES), type_)
            for part in range(2)
            for v in range(VECTORS)
        ]
        for r, row in enumerate(rows):
            weight = builder.load(builder.gep(weights, [row]))
            weight = simd.broadcast(builder, builder.fmul(weight, FLOAT(_UNIT)))
            place = builder.mul(row, INT64(2 * PANEL))
            for v in range(VECTORS):
                pair = _damped(builder, builder.load(t[r][v]), builder.load(h[r][v]))
                for part, wave in enumerate(pair):
                    at = builder.add(place, INT64(part * PANEL + v * LANES))
                    simd.store(builder, wave, out, at)
                    n = part * VECTORS + v
                    total[n] = simd.fma(builder, weight, wave, total[n])
        for n, value in enumerate(total):
            part, v = divmod(n, VECTORS)
            simd.store(builder, value, sums, INT64(part * PANEL + v * LANES))
        return context.get_dummy_value()

    return signature, generate


def _phases_and_halvings(
    builder: Any, points: Any, rates: Any, starts: list[Any], turns: Any, d: Any
) -> tuple[Any, Any]:
    """Registers t = <c, turns> and h = <e, turns^2> of a tile, ROWS by VECTORS."""
    type_ = simd.vector(FLOAT)
    zero = simd.constant(type_, 0.0)
    t, h = (
        [[simd.variable(builder, zero) for _ in range(VECTORS)] for _ in range(ROWS)]
        for _ in range(2)
    )
    with cgutils.for_range(builder, d) as loop:
        omega = _panel_row(builder, turns, loop.index)
        squares = [builder.fmul(turn, turn) for turn in omega]
        for r, start in enumerate(starts):
            at = builder.add(start, loop.index)
            for data, registers, factors in ((points, t[r], omega), (rates, h[r], squares)):
                value = simd.broadcast(builder, builder.load(builder.gep(data, [at])))
                for register, factor in zip(registers, factors, strict=True):
                    total = simd.fma(builder, value, factor, builder.load(register))
                    builder.store(total, register)
    return t, h


def _damped(builder: Any, t: Any, h: Any) -> tuple[Any, Any]:
    """2**-h times cosine and sine of t turns, times 2**BITS."""
    rest, sign = simd.rest_and_sign(builder, [t])
    envelope = simd.power_of_half(builder, h)
    envelope = builder.bitcast(builder.xor(builder.bitcast(envelope, sign.type), sign), rest.type)
    cosine, sine = simd.cos_sin(builder, rest)
    return builder.fmul(cosine, envelope), builder.fmul(sine, envelope)


@simd.intrinsic
def _add_slopes(
    typing_context: Any, waves: Any, row: Any, panel: Any, re: Any, im: Any, sums: Any
) -> Any:
    """Add a panel to sums (ROWS, 1 + 2 d, LANES): by weight, by center, by squared spread.

    waves (.., 2, PANEL), of which rows row : row + ROWS; re, im (PANEL,), the residual.
    """
    signature = types.void(waves, row, panel, re, im, sums)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (psi, _), (turns, shape), (a, _), (b, _), (out, _) = (
            simd.array_data(context, builder, signature.args[i], arguments[i])
            for i in (0, 2, 3, 4, 5)
        )
        d, type_ = shape[0], simd.vector(FLOAT)
        residual = [
            [simd.load(builder, part, INT64(v * LANES), type_) for part in (a, b)]
            for v in range(VECTORS)
        ]
        per_row = builder.mul(builder.add(builder.mul(d, INT64(2)), INT64(1)), INT64(LANES))
        tile = []
        for r in range(ROWS):
            row = builder.mul(builder.add(arguments[1], INT64(r)), INT64(2 * PANEL))
            pairs = [_times(builder, psi, row, v, residual[v]) for v in range(VECTORS)]
            tile.append((builder.mul(per_row, INT64(r)), pairs))
        for place, pairs in tile:
            total = simd.load(builder, out, place, type_)
            for real, _ in pairs:
                total = builder.fadd(total, real)
            simd.store(builder, total, out, place)
        with cgutils.for_range(builder, d) as loop:
            omega = _panel_row(builder, turns, loop.index)
            squares = [builder.fmul(turn, turn) for turn in omega]
            column = builder.mul(builder.add(loop.index, INT64(1)), INT64(LANES))
            later = builder.mul(d, INT64(LANES))
            for place, pairs in tile:
                at = builder.add(place, column)
                _accumulate(builder, out, at, [im for _, im in pairs], omega)
                _accumulate(builder, out, builder.add(at, later), [re for re, _ in pairs], squares)
        return context.get_dummy_value()

    return signature, generate


def _times(builder: Any, psi: Any, row: Any, v: int, residual: list[Any]) -> tuple[Any, Any]:
    """Real and imaginary part of conj(residual) psi."""
    a, b = residual
    c, s = (
        simd.load(builder, psi, builder.add(row, INT64(part * PANEL + v * LANES)), a.type)
        for part in range(2)
    )
    real = simd.fma(builder, a, c, builder.fmul(b, s))
    return real, builder.fsub(builder.fmul(a, s), builder.fmul(b, c))


def _accumulate(builder: Any, out: Any, at: Any, left: list[Any], right: list[Any]) -> None:
    total = simd.load(builder, out, at, left[0].type)
    for x, y in zip(left, right, strict=True):
        total = simd.fma(builder, x, y, total)
    simd.store(builder, total, out, at)


def _panel_row(builder: Any, turns: Any, k: Any) -> list[Any]:
    start = builder.mul(k, INT64(PANEL))
    at = [builder.add(start, INT64(v * LANES)) for v in range(VECTORS)]
    return [simd.load(builder, turns, place, simd.vector(FLOAT)) for place in at]


@simd.jit
def match(
    x: Float32Array,  # IN  (T, d), T a multiple of ROWS
    e: Float32Array,  # IN  (T, d)
    alpha: Float32Array,  # IN  (T,)
    panels: Float32Array,  # IN  (panels, d, PANEL)
    z: Float32Array,  # IN  (panels, 2, PANEL)
    weights: Float32Array,  # IN  (panels, PANEL)
    waves: Float32Array,  # SCRATCH  (TOGETHER, T, 2, PANEL)
    residual: Float32Array,  # SCRATCH  (TOGETHER, 2, PANEL)
    sums: Float32Array,  # SCRATCH  (ROWS, 1 + 2 d, LANES)
    part: Float32Array,  # SCRATCH  (ROWS, 1 + 2 d)
    result: FloatArray,  # OUT  (T, 1 + 2 d)
) -> float:
    """The misfit; fills in the sums that its gradient is made of."""
    value = 0.0
    result[:] = 0.0
    for first in range(0, panels.shape[0], TOGETHER):
        n = min(TOGETHER, panels.shape[0] - first)
        residual[:] = 0.0
        for p in range(n):
            for row in range(0, x.shape[0], ROWS):
                _add_waves(x, e, alpha, row, panels[first + p], waves[p], residual[p])
            for j in range(PANEL):
                for c in range(2):
                    rest = z[first + p, c, j] - residual[p, c, j]
                    weighted = weights[first + p, j] * rest
                    value += float(weighted) * float(rest)
                    residual[p, c, j] = weighted
        for row in range(0, x.shape[0], ROWS):
            sums[:] = 0.0
            for p in range(n):
                _add_slopes(waves[p], row, panels[first + p], residual[p, 0], residual[p, 1], sums)
            simd.lane_sums(sums, ROWS * result.shape[1], part)
            for r in range(ROWS):
                for k in range(result.shape[1]):
                    result[row + r, k] += _UNIT * part[r, k]
    return value
