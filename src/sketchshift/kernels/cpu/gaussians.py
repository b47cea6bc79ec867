"""A fit of Gaussians on this kernel: its misfit, and the descent that lowers it."""

from __future__ import annotations

import math
from threading import local

import numpy as np

from sketchshift._typing import ComplexArray, Float32Array, FloatArray
from sketchshift.kernels.cpu import simd
from sketchshift.kernels.cpu.dense import PANEL, pack_panels
from sketchshift.kernels.cpu.descent import HALVINGS, descend
from sketchshift.kernels.cpu.matching import ROWS, TOGETHER, match
from sketchshift.kernels.cpu.simd import LANES

__all__ = ["GaussianMatcher"]

TOLERANCE = 1e-8  # share of the value that an iteration must gain

_Scratch = tuple[Float32Array, Float32Array, Float32Array, Float32Array]


class GaussianMatcher:
    """See :class:`~sketchshift.kernels.contract.Matcher`: O(T m d), no array of T m pairs."""

    def __init__(self, turns: Float32Array, z: ComplexArray, weights: FloatArray) -> None:
        self._panels = pack_panels(turns)
        n, m = len(self._panels), turns.shape[1]
        self._z = simd.aligned_zeros((n, 2, PANEL), np.float32)
        self._weights = simd.aligned_zeros((n, PANEL), np.float32)
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
        size = -(-T // ROWS) * ROWS
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
                simd.aligned_zeros((TOGETHER, size, 2, PANEL), np.float32),
                simd.aligned_zeros((TOGETHER, 2, PANEL), np.float32),
                simd.aligned_zeros((ROWS, 1 + 2 * d, LANES), np.float32),
                simd.aligned_zeros((ROWS, 1 + 2 * d), np.float32),
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
            self._buffers(-(-T // ROWS) * ROWS, d),
            iterations,
            (TOLERANCE, floor),
        )
        weights, centers, spreads = np.split(x, [T, T + T * d])
        C, S = unit * centers.reshape(T, d), unit * np.abs(spreads).reshape(T, d)
        return value, weights / T, C, S
