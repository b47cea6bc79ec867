"""Where kernels for processors keep their rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from sketchshift._typing import ComplexArray, Float32Array, FloatArray, IntArray, RealArray
from sketchshift.kernels.contract import (
    Centers,
    LeftOut,
)

__all__ = ["CellsOnHost", "Correlations", "OnHost"]


class OnHost:
    """NumPy arrays, so few at a time that they stay in cache."""

    chunk = 1 << 16

    def empty(self, shape: tuple[int, ...]) -> FloatArray:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return np.empty(shape)

    def zeros(self, shape: tuple[int, ...]) -> IntArray:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return np.zeros(shape, dtype=np.int64)

    def on_host(self, array: Any) -> Any:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return array


class _SumsCells(Protocol):
    centers: Centers

    def nearest(self, rows: Float32Array) -> tuple[IntArray, Float32Array]: ...

    def sum_at(
        self,
        rows: FloatArray,
        coordinates: FloatArray,
        factors: FloatArray | None,
        labels: IntArray,
        places: IntArray,
        totals: IntArray,
    ) -> None: ...


class CellsOnHost:
    """What every accumulator for cells offers, given its ``nearest`` and ``sum_at``."""

    def add(
        self: _SumsCells,
        rows: FloatArray,
        coordinates: FloatArray,
        factors: FloatArray | None,
        totals: IntArray,
    ) -> LeftOut | None:
        """See :class:`~sketchshift.kernels.contract.CellAccumulator`."""
        labels, squares = self.nearest(rows.astype(np.float32))
        is_out, left_out = squares > np.float32(self.centers.limit), None
        if is_out.any():
            left_out = np.flatnonzero(is_out), labels[is_out]
            rows, coordinates, labels = rows[~is_out], coordinates[~is_out], labels[~is_out]
            factors = None if factors is None else factors[~is_out]
        self.sum_at(rows, coordinates, factors, labels, labels, totals)
        return left_out


# Features, correlation and Hessian for decoders, out of a kernel's one pass of sines.
#
# All kernels share these few products of matrices; what differs is ``correlate``.
#
# Symbols
# -------
# L, d, m   points, dimension, frequencies
# r         residual, complex, shape (m,)
# f_r(c)    Re sum_j conj(r_j) e^{i theta_j(c)} / sqrt(m), theta_j(c) = 2 pi <c, turns_j>

_BLOCK = 1 << 18  # pairs of point and frequency held at a time: they stay in cache
_TURN = 2.0 * math.pi


class _Correlates(Protocol):
    def correlate(
        self, points: FloatArray, turns: Float32Array, residual: RealArray
    ) -> tuple[RealArray, RealArray]: ...


class Correlations:
    """What every kernel offers to decoders, given its ``correlate``."""

    def features(self: _Correlates, points: FloatArray, turns: Float32Array) -> ComplexArray:
        """Features e^{i theta_j(c)} / sqrt(m) of points: shape (L, m), O(L m d)."""
        m = turns.shape[1]
        result = np.empty((len(points), m), dtype=np.complex128)
        residual = np.full(m, 1.0 / math.sqrt(m), dtype=np.complex128)
        for part in _blocks(len(points), m):
            cosines, minus_sines = self.correlate(points[part], turns, residual)
            result.real[part], result.imag[part] = cosines, -minus_sines
        return result

    def correlation(
        self: _Correlates, points: FloatArray, turns: Float32Array, residual: RealArray
    ) -> tuple[FloatArray, FloatArray]:
        """Values f_r(c), shape (L,), and gradients, shape (L, d): O(L m d)."""
        d, m = turns.shape
        values, gradients = np.empty(len(points)), np.empty((len(points), d))
        for part in _blocks(len(points), m):
            real, minus_imag = self.correlate(points[part], turns, residual)
            values[part] = real.sum(axis=1, dtype=np.float64)
            gradients[part] = minus_imag @ turns.T.astype(minus_imag.dtype, copy=False)
        return values / math.sqrt(m), gradients * (_TURN / math.sqrt(m))

    def hessian(
        self: _Correlates, points: FloatArray, turns: Float32Array, residual: RealArray
    ) -> FloatArray:
        """Second derivatives of f_r, shape (L, d, d): O(L m d^2)."""
        d, m = turns.shape
        result = np.empty((len(points), d, d))
        for part in _blocks(len(points), m):
            real, _ = self.correlate(points[part], turns, residual)
            for i, weights in zip(range(part.start, part.stop), real, strict=True):
                result[i] = (turns * weights) @ turns.T
        return result * (-_TURN * _TURN / math.sqrt(m))


def _blocks(n_points: int, m: int) -> Iterator[slice]:
    step = max(1, _BLOCK // m)
    for first in range(0, n_points, step):
        yield slice(first, min(first + step, n_points))
