"""Correlations for decoders: a matrix product for the phases, then one fused pass of sines."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from sketchshift._typing import Float32Array, FloatArray, RealArray
from sketchshift.kernels.contract import BITS
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.simd import FLOAT, INT64, LANES

__all__ = ["correlate"]


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
            rest, sign = simd.rest_and_sign(builder, [simd.load(builder, t, at, type_)])
            c, s = (
                builder.bitcast(builder.xor(builder.bitcast(wave, sign.type), sign), type_)
                for wave in simd.cos_sin(builder, rest)
            )
            a, b = simd.load(builder, re, at, type_), simd.load(builder, im, at, type_)
            simd.store(builder, simd.fma(builder, a, c, builder.fmul(b, s)), real, at)
            minus = builder.fsub(builder.fmul(b, c), builder.fmul(a, s))
            simd.store(builder, minus, minus_imag, at)
        return context.get_dummy_value()

    return signature, generate


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
