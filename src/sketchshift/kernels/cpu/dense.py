"""Exact sums at frequencies given one by one.

A tile of ``ROWS`` rows by ``VECTORS`` vectors of frequencies keeps its phases in
registers while the columns go by; cosines and sines are then added as int32 in registers,
for at most ``GROUP`` rows, and widened to the int64 totals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from sketchshift._typing import Float32Array, IntArray, RealArray
from sketchshift.kernels.contract import BITS
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.simd import DOUBLE, FLOAT, INT32, INT64, LANES

__all__ = ["DenseAccumulator"]

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
        _widen(builder, sums, builder.sub(stop, first), out)
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


def _widen(builder: Any, sums: Any, n_rows: Any, out: Any) -> None:
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


def pack_panels(turns: Float32Array) -> Float32Array:
    """Frequencies (d, m) in panels (panels, d, PANEL), the last filled up with zeros."""
    d, m = turns.shape
    n_panels = -(-m // PANEL)
    padded = np.zeros((d, n_panels * PANEL), dtype=np.float32)
    padded[:, :m] = turns
    panels = simd.aligned_zeros((n_panels, d, PANEL), np.float32)
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
