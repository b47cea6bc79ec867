"""What decoders compute again and again, in float32: correlations, misfits and descents."""

from __future__ import annotations

import math
import weakref
from threading import local
from typing import Any, cast

import numpy as np
from numba import types
from numba.core import cgutils

from sketchshift._typing import ComplexArray, Float32Array, FloatArray, RealArray
from sketchshift.kernels.contract import BITS
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.simd import FLOAT, INT64, LANES
from sketchshift.kernels.cpu.sums import PANEL, VECTORS, aligned_zeros, pack_panels

__all__ = [
    "COMPONENTS",
    "HALVINGS",
    "PANELS_OF_BLOCK",
    "GaussianMatcher",
    "correlate",
    "correlation",
    "descend",
    "match",
]

# Correlations for decoders, in float32: what a climb asks for again and again.
#
# ``correlate`` gives every pair of point and frequency: a matrix product for the phases, then one
# pass of sines. ``correlation`` sums the pairs up as it goes, values and gradients, so that no
# array of pairs is ever written.

PANELS_OF_SUM = 32  # panels summed in float32 before their sum is added in float64
POINTS = 4  # points of a tile: their phases and slopes stay in registers


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
    """Add a panel of frequencies to sums (POINTS, 1 + d, LANES): the value, then the gradient.

    Rows x[row : row + POINTS]; panel (d, PANEL); re, im (PANEL,), the residual.
    """
    signature = types.void(x, row, panel, re, im, sums)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (points, shape), (turns, _), (a, _), (b, _), (out, _) = (
            simd.array_data(context, builder, signature.args[i], arguments[i])
            for i in (0, 2, 3, 4, 5)
        )
        d, type_ = shape[1], simd.vector(FLOAT)
        per_row = builder.mul(builder.add(d, INT64(1)), INT64(LANES))
        starts = [builder.mul(builder.add(arguments[1], INT64(r)), d) for r in range(POINTS)]
        zero = simd.constant(type_, 0.0)
        t = [[simd.variable(builder, zero) for _ in range(VECTORS)] for _ in range(POINTS)]
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
    points: Float32Array,  # IN  (L, d), L a multiple of POINTS
    panels: Float32Array,  # IN  (panels, d, PANEL)
    re: Float32Array,  # IN  (panels, PANEL)
    im: Float32Array,  # IN  (panels, PANEL)
    sums: Float32Array,  # SCRATCH  (POINTS, 1 + d, LANES)
    result: FloatArray,  # OUT  (L, 1 + d)
) -> None:
    part = np.empty((POINTS, result.shape[1]), dtype=np.float32)
    result[:] = 0.0
    for row in range(0, points.shape[0], POINTS):
        for first in range(0, panels.shape[0], PANELS_OF_SUM):
            sums[:] = 0.0
            for p in range(first, min(first + PANELS_OF_SUM, panels.shape[0])):
                _add_panel(points, row, panels[p], re[p], im[p], sums)
            simd.lane_sums(sums, POINTS * result.shape[1], part)
            for r in range(POINTS):
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
    re, im = aligned_zeros((2, len(panels), PANEL), np.float32)
    re.ravel()[:m] = residual.real * 2.0**-BITS
    im.ravel()[:m] = residual.imag * 2.0**-BITS
    rows = np.zeros((-(-L // POINTS) * POINTS, d), dtype=np.float32)
    rows[:L] = points
    sums = aligned_zeros((POINTS, 1 + d, LANES), np.float32)
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


# Moment matching in float32: value and gradient of a fit of Gaussians, fused.
#
# A block of frequencies is gone through twice while it is in cache: phases, envelopes and waves
# of all components, with their sum; then, the residual known, the sums that gradients need. No
# array of all pairs of component and frequency is ever written.

COMPONENTS = 4  # components of a tile: their phases and exponents stay in registers
PANELS_OF_BLOCK = 8  # panels of a block: summed in float32, then added in float64
_UNIT = 2.0**-BITS  # waves come multiplied by 2**BITS


@simd.intrinsic
def _add_waves(
    typing_context: Any, x: Any, e: Any, alpha: Any, row: Any, panel: Any, waves: Any, model: Any
) -> Any:
    """Write waves[row : row + COMPONENTS] (.., 2, PANEL) at a panel; add them to model (2, PANEL).

    x, e (T, d): centers, and the halvings an axis has at frequency 1.
    """
    signature = types.void(x, e, alpha, row, panel, waves, model)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (points, shape), (rates, _), (weights, _), (turns, _), (out, _), (sums, _) = (
            simd.array_data(context, builder, signature.args[i], arguments[i])
            for i in (0, 1, 2, 4, 5, 6)
        )
        d, type_ = shape[1], simd.vector(FLOAT)
        rows = [builder.add(arguments[3], INT64(r)) for r in range(COMPONENTS)]
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
    """Registers t = <c, turns> and h = <e, turns^2> of a tile, COMPONENTS by VECTORS."""
    type_ = simd.vector(FLOAT)
    zero = simd.constant(type_, 0.0)
    t, h = (
        [[simd.variable(builder, zero) for _ in range(VECTORS)] for _ in range(COMPONENTS)]
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
    """Add a panel to sums (COMPONENTS, 1 + 2 d, LANES): by weight, by center, by squared spread.

    waves (.., 2, PANEL), of which rows row : row + COMPONENTS; re, im (PANEL,), the residual.
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
        for r in range(COMPONENTS):
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


@simd.jit
def match(
    x: Float32Array,  # IN  (T, d), T a multiple of COMPONENTS
    e: Float32Array,  # IN  (T, d)
    alpha: Float32Array,  # IN  (T,)
    panels: Float32Array,  # IN  (panels, d, PANEL)
    z: Float32Array,  # IN  (panels, 2, PANEL)
    weights: Float32Array,  # IN  (panels, PANEL)
    waves: Float32Array,  # SCRATCH  (PANELS_OF_BLOCK, T, 2, PANEL)
    residual: Float32Array,  # SCRATCH  (PANELS_OF_BLOCK, 2, PANEL)
    sums: Float32Array,  # SCRATCH  (COMPONENTS, 1 + 2 d, LANES)
    part: Float32Array,  # SCRATCH  (COMPONENTS, 1 + 2 d)
    result: FloatArray,  # OUT  (T, 1 + 2 d)
) -> float:
    """The misfit; fills in the sums that its gradient is made of."""
    value = 0.0
    result[:] = 0.0
    for first in range(0, panels.shape[0], PANELS_OF_BLOCK):
        n = min(PANELS_OF_BLOCK, panels.shape[0] - first)
        residual[:] = 0.0
        for p in range(n):
            for row in range(0, x.shape[0], COMPONENTS):
                _add_waves(x, e, alpha, row, panels[first + p], waves[p], residual[p])
            for j in range(PANEL):
                for c in range(2):
                    rest = z[first + p, c, j] - residual[p, c, j]
                    weighted = weights[first + p, j] * rest
                    value += float(weighted) * float(rest)
                    residual[p, c, j] = weighted
        for row in range(0, x.shape[0], COMPONENTS):
            sums[:] = 0.0
            for p in range(n):
                _add_slopes(waves[p], row, panels[first + p], residual[p, 0], residual[p, 1], sums)
            simd.lane_sums(sums, COMPONENTS * result.shape[1], part)
            for r in range(COMPONENTS):
                for k in range(result.shape[1]):
                    result[row + r, k] += _UNIT * part[r, k]
    return value


# A joint descent over all parameters of a fit of Gaussians, without leaving compiled code.
#
# Limited-memory BFGS with a weak Wolfe line search (Nocedal and Wright 2006, chapters 3 and 7).
# At a thousand frequencies an evaluation takes as long as the bookkeeping of a general-purpose
# optimiser, which is why this one is written out.
#
# Symbols
# -------
# T, d      components, dimension
# x         parameters, shape (T (1 + 2 d),): T alpha >= 0, then C / unit, then S / unit

MEMORY = 10  # pairs of steps and changes of the gradient kept
ARMIJO, WOLFE = 1e-4, 0.9
TRIALS = 12  # of a line search
HALVINGS = 2.0 * np.pi**2 / np.log(2.0)  # e^{-s^2 omega^2 / 2} = 2^{-HALVINGS s^2 turns^2}
TURN = 2.0 * np.pi


@simd.jit
def _penalty(
    alpha: FloatArray,  # IN  (T,)
    C: FloatArray,  # IN  (T, d)
    S: FloatArray,  # IN  (T, d)
    mean: FloatArray,  # IN  (d,)
    covariance: FloatArray,  # IN  (d, d)
    full: bool,  # IN  whether the covariance is known off its diagonal
    by_alpha: FloatArray,  # IN/OUT  (T,)
    by_C: FloatArray,  # IN/OUT  (T, d)
    by_S: FloatArray,  # IN/OUT  (T, d)
    strength: float,  # IN
) -> float:
    """Add the penalty of wrong moments, times its strength, to the gradients."""
    T, d = C.shape
    per_square = 0.0
    for k in range(d):
        per_square += covariance[k, k]
    per_square = 1.0 / per_square
    P, bent = np.empty((T, d)), np.zeros((T, d))
    mass, e, E = -1.0, np.zeros(d), np.zeros((d, d))
    for i in range(T):
        mass += alpha[i]
        for k in range(d):
            P[i, k] = C[i, k] - mean[k]
            e[k] += alpha[i] * P[i, k]
            E[k, k] += alpha[i] * S[i, k] * S[i, k]
    for k in range(d):
        for j in range(d):
            if full or k == j:
                for i in range(T):
                    E[k, j] += alpha[i] * P[i, k] * P[i, j]
                E[k, j] -= covariance[k, j]
                for i in range(T):
                    bent[i, k] += E[k, j] * P[i, j]
    value = mass * mass
    for k in range(d):
        value += per_square * e[k] * e[k]
        for j in range(d):
            value += per_square**2 * E[k, j] * E[k, j]
    for i in range(T):
        linear, square = 0.0, 0.0
        for k in range(d):
            linear += P[i, k] * e[k]
            square += bent[i, k] * P[i, k] + S[i, k] * S[i, k] * E[k, k]
            slope = 4.0 * per_square**2 * bent[i, k] + 2.0 * per_square * e[k]
            by_C[i, k] += strength * alpha[i] * slope
            by_S[i, k] += strength * alpha[i] * 4.0 * per_square**2 * S[i, k] * E[k, k]
        by_alpha[i] += strength * 2.0 * (mass + per_square * linear + per_square**2 * square)
    return strength * value


@simd.jit
def _evaluate(
    x: FloatArray,  # IN  (n,)
    gradient: FloatArray,  # OUT  (n,)
    shape: tuple[int, int],
    unit: float,
    moments: tuple[FloatArray, FloatArray, bool, float],
    problem: tuple[Float32Array, Float32Array, Float32Array],
    scratch: tuple[Float32Array, Float32Array, Float32Array, Float32Array],
    padded: tuple[Float32Array, Float32Array, Float32Array, FloatArray],
) -> float:
    """Value and gradient of misfit and penalty."""
    T, d = shape
    alpha, C, S = np.empty(T), np.empty((T, d)), np.empty((T, d))
    centers, rates, weights, result = padded
    for i in range(T):
        alpha[i] = x[i] / T
        weights[i] = alpha[i]
        for k in range(d):
            at = T + i * d + k
            C[i, k], S[i, k] = unit * x[at], unit * x[at + T * d]
            centers[i, k] = C[i, k]
            rates[i, k] = HALVINGS * S[i, k] * S[i, k]
    value = match(
        centers, rates, weights, problem[0], problem[1], problem[2],
        scratch[0], scratch[1], scratch[2], scratch[3], result,
    )  # fmt: skip
    by_alpha, by_C, by_S = np.empty(T), np.empty((T, d)), np.empty((T, d))
    for i in range(T):
        by_alpha[i] = -2.0 * result[i, 0]
        for k in range(d):
            by_C[i, k] = 2.0 * TURN * alpha[i] * result[i, 1 + k]
            by_S[i, k] = 2.0 * TURN**2 * alpha[i] * S[i, k] * result[i, 1 + d + k]
    mean, covariance, full, strength = moments
    if strength > 0.0:
        value += _penalty(alpha, C, S, mean, covariance, full, by_alpha, by_C, by_S, strength)
    for i in range(T):
        gradient[i] = by_alpha[i] / T
        for k in range(d):
            at = T + i * d + k
            gradient[at], gradient[at + T * d] = unit * by_C[i, k], unit * by_S[i, k]
    return value


@simd.jit
def _dot(a: FloatArray, b: FloatArray) -> float:
    """Inner product, in eight sums that fit a vector: no library call, nothing to compile."""
    sums, n = np.zeros(8), a.size - a.size % 8
    for first in range(0, n, 8):
        for i in range(8):
            sums[i] += a[first + i] * b[first + i]
    for i in range(n, a.size):
        sums[0] += a[i] * b[i]
    total: float = sums.sum()
    return total


@simd.jit
def _add(factor: float, a: FloatArray, b: FloatArray) -> None:
    """Add factor * a to b."""
    for i in range(a.size):
        b[i] += factor * a[i]


@simd.jit
def _direction(
    g: FloatArray,  # IN  (n,)
    steps: FloatArray,  # IN  (MEMORY, n)
    changes: FloatArray,  # IN  (MEMORY, n)
    products: FloatArray,  # IN  (MEMORY,), of step and change
    n_pairs: int,
    p: FloatArray,  # OUT  (n,)
) -> None:
    """The quasi-Newton direction, by the two loops over the pairs kept."""
    factors = np.empty(MEMORY)
    for i in range(g.size):
        p[i] = -g[i]
    first = max(0, n_pairs - MEMORY)
    for j in range(n_pairs - 1, first - 1, -1):
        i = j % MEMORY
        factors[i] = _dot(steps[i], p) / products[i]
        _add(-factors[i], changes[i], p)
    if n_pairs:
        i = (n_pairs - 1) % MEMORY
        scale = products[i] / _dot(changes[i], changes[i])
        for k in range(g.size):
            p[k] *= scale
    for j in range(first, n_pairs):
        i = j % MEMORY
        _add(factors[i] - _dot(changes[i], p) / products[i], steps[i], p)


@simd.jit
def _move(
    x: FloatArray,  # IN  (n,)
    p: FloatArray,  # IN  (n,)
    step: float,
    T: int,
    trial: FloatArray,  # OUT  (n,)
    change: FloatArray,  # OUT  (n,)
) -> None:
    """Go a step along p, weights not below 0."""
    for i in range(x.size):
        trial[i] = x[i] + step * p[i]
        if i < T and trial[i] < 0.0:
            trial[i] = 0.0
        change[i] = trial[i] - x[i]


@simd.jit
def descend(
    x: FloatArray,  # IN/OUT  (T (1 + 2 d),)
    shape: tuple[int, int],
    unit: float,
    moments: tuple[FloatArray, FloatArray, bool, float],
    problem: tuple[Float32Array, Float32Array, Float32Array],
    scratch: tuple[Float32Array, Float32Array, Float32Array, Float32Array],
    iterations: int,
    ends: tuple[float, float],  # share of the value to gain at least; value that is enough
) -> tuple[float, int]:
    """Lower misfit and penalty; gives the value reached and the number of evaluations."""
    n, (T, d), (tolerance, floor) = x.size, shape, ends
    size = -(-T // COMPONENTS) * COMPONENTS
    padded = (
        np.zeros((size, d), dtype=np.float32),
        np.zeros((size, d), dtype=np.float32),
        np.zeros(size, dtype=np.float32),
        np.empty((size, 1 + 2 * d)),
    )
    steps, changes, products = np.empty((MEMORY, n)), np.empty((MEMORY, n)), np.empty(MEMORY)
    g, free, p = np.empty(n), np.empty(n), np.empty(n)
    trial, g_trial, change = np.empty(n), np.empty(n), np.empty(n)
    value = _evaluate(x, g, shape, unit, moments, problem, scratch, padded)
    n_pairs, n_evaluations = 0, 1
    for _ in range(iterations):
        if value <= floor:
            break
        for i in range(n):  # weights at 0 that want below it stay there
            free[i] = 0.0 if i < T and x[i] <= 0.0 and g[i] > 0.0 else g[i]
        norm = np.sqrt(_dot(free, free))
        if norm == 0.0:
            break
        _direction(free, steps, changes, products, n_pairs, p)
        for i in range(T):
            if x[i] <= 0.0 and (p[i] < 0.0 or g[i] > 0.0):
                p[i] = 0.0
        if _dot(free, p) >= 0.0:  # rounding has spoilt the pairs: start anew, by the gradient
            n_pairs = 0
            for i in range(n):
                p[i] = -free[i]
        step, low, high, found = 1.0 if n_pairs else 1.0 / norm, 0.0, np.inf, False
        for _ in range(TRIALS):
            _move(x, p, step, T, trial, change)
            reached = _evaluate(trial, g_trial, shape, unit, moments, problem, scratch, padded)
            n_evaluations += 1
            slope = _dot(g, change)
            found = reached <= value + ARMIJO * slope
            if not found:
                high = step
            elif _dot(g_trial, change) < WOLFE * slope:
                low = step
            else:
                break
            step = 2.0 * low if high == np.inf else 0.5 * (low + high)
        if not found or not reached < value:
            if n_pairs == 0:
                break
            n_pairs = 0  # once more, by the gradient alone
            continue
        i = n_pairs % MEMORY
        product = _dot(change, g_trial) - _dot(change, g)
        if product > 0.0:
            products[i] = product
            for k in range(n):
                steps[i, k], changes[i, k] = change[k], g_trial[k] - g[k]
            n_pairs += 1
        gain = value - reached
        value = reached
        for k in range(n):
            x[k], g[k] = trial[k], g_trial[k]
        if gain <= tolerance * value:
            break
    return value, n_evaluations


# A fit of Gaussians on this kernel: its misfit, and the descent that lowers it.

TOLERANCE = 1e-8  # share of the value that an iteration must gain

_Scratch = tuple[Float32Array, Float32Array, Float32Array, Float32Array]


class GaussianMatcher:
    """See :class:`~sketchshift.kernels.contract.Matcher`: O(T m d), no array of T m pairs."""

    def __init__(self, turns: Float32Array, z: ComplexArray, weights: FloatArray) -> None:
        self._panels = pack_panels(turns)
        n, m = len(self._panels), turns.shape[1]
        self._z = aligned_zeros((n, 2, PANEL), np.float32)
        self._weights = aligned_zeros((n, PANEL), np.float32)
        for source, target in ((z.real, self._z[:, 0]), (z.imag, self._z[:, 1])):
            padded = np.zeros(n * PANEL)
            padded[:m] = source
            target[:] = padded.reshape(n, PANEL)
        self._weights.ravel()[:m] = weights
        self._own = local()  # scratch of each thread

    def __call__(
        self, alpha: FloatArray, C: FloatArray, variances: FloatArray | None
    ) -> tuple[float, FloatArray]:
        """See :class:`~sketchshift.kernels.contract.Matcher`."""
        T, d = C.shape
        size = -(-T // COMPONENTS) * COMPONENTS
        x, e = np.zeros((2, size, d), dtype=np.float32)
        weights = np.zeros(size, dtype=np.float32)
        x[:T], weights[:T] = C, alpha
        if variances is not None:
            e[:T] = variances * HALVINGS
        result = np.empty((size, 1 + 2 * d))
        scratch = self._buffers(size, d)
        value = match(x, e, weights, self._panels, self._z, self._weights, *scratch, result)
        return value, result[:T]

    def _buffers(self, size: int, d: int) -> _Scratch:
        """Scratch arrays; a descent asks for the same ones hundreds of times."""
        scratch: _Scratch | None = getattr(self._own, "scratch", None)
        if scratch is None or scratch[0].shape[1] != size:
            scratch = self._own.scratch = (
                aligned_zeros((PANELS_OF_BLOCK, size, 2, PANEL), np.float32),
                aligned_zeros((PANELS_OF_BLOCK, 2, PANEL), np.float32),
                aligned_zeros((COMPONENTS, 1 + 2 * d, LANES), np.float32),
                aligned_zeros((COMPONENTS, 1 + 2 * d), np.float32),
            )
        return scratch

    def descend(
        self,
        alpha: FloatArray,
        C: FloatArray,
        S: FloatArray,
        *,
        mean: FloatArray,
        covariance: FloatArray,
        strength: float,
        iterations: int,
        floor: float = 0.0,
    ) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """See :class:`~sketchshift.kernels.contract.Matcher`."""
        T, d = C.shape
        unit = math.sqrt(float(np.trace(covariance)) / d)
        x = np.concatenate([alpha * T, C.ravel() / unit, S.ravel() / unit])
        full = not np.isnan(covariance).any()
        value, _ = descend(
            x,
            (T, d),
            unit,
            (mean, covariance, full, strength),
            (self._panels, self._z, self._weights),
            self._buffers(-(-T // COMPONENTS) * COMPONENTS, d),
            iterations,
            (TOLERANCE, floor),
        )
        weights, centers, spreads = np.split(x, [T, T + T * d])
        C, S = unit * centers.reshape(T, d), unit * np.abs(spreads).reshape(T, d)
        return value, weights / T, C, S
