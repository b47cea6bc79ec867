"""Exact sums on a GPU: rows go there, integers come back."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from sketchshift._typing import Float32Array, IntArray, RealArray
from sketchshift.kernels.cuda.launch import THREADS, blocks_down, own_stream
from sketchshift.kernels.cuda.source import kernel_of

__all__ = ["LARGEST_BLOCK", "CudaDense", "CudaStructured"]

ROWS, FREQUENCIES = 128, 128  # of a block of the source's add_dense
NUMBERS = 2048  # of rows that a block of structured frequencies holds at a time, at least a row
LARGEST_BLOCK = 4096  # structured frequencies whose rows fit into shared memory


def _real(rows: Any) -> str:
    return "float" if rows.dtype == np.float32 else "double"


class _OnGpu:
    """Rows go to the GPU on a stream of this thread, and 2 m integers come back."""

    n_frequencies: int

    def __call__(self, rows: RealArray, weights: Float32Array, totals: IntArray) -> None:
        """See :class:`~sketchshift.kernels.contract.Accumulator`."""
        with own_stream():
            sums = cupy.zeros((2, self.n_frequencies), dtype=np.int64)
            self.add(cupy.asarray(rows), cupy.asarray(weights), sums)
            totals += sums.get()

    def add(self, rows: Any, weights: Any, sums: Any) -> None:
        """Add the integers of rows on the GPU to sums there."""
        raise NotImplementedError


class CudaDense(_OnGpu):
    """See :class:`~sketchshift.kernels.contract.Accumulator`: O(n m d)."""

    def __init__(self, turns: Float32Array) -> None:
        self._turns = cupy.asarray(np.ascontiguousarray(turns))
        self.n_frequencies = turns.shape[1]

    def add(self, rows: Any, weights: Any, sums: Any) -> None:
        """Add the integers of rows on the GPU to sums there."""
        (n, d), m = rows.shape, self.n_frequencies
        across = -(-m // FREQUENCIES)
        grid = (across, blocks_down(across, n, ROWS))
        sizes = np.int64(n), np.int32(d), np.int32(m)
        kernel = kernel_of("add_dense", _real(rows))
        kernel(grid, (THREADS,), (rows, weights, self._turns, *sizes, sums))


class CudaStructured(_OnGpu):
    """See :class:`~sketchshift.kernels.contract.Accumulator`: O(n m log d)."""

    def __init__(self, signs: Float32Array, radii: Float32Array) -> None:
        self._signs, self._radii = cupy.asarray(signs), cupy.asarray(radii)
        self.n_frequencies = len(radii)

    def add(self, rows: Any, weights: Any, sums: Any) -> None:
        """Add the integers of rows on the GPU to sums there."""
        (n, d), (across, _, size) = rows.shape, self._signs.shape
        together = max(1, NUMBERS // size)
        sizes = np.int64(n), np.int32(d), np.int32(self.n_frequencies)
        kernel = kernel_of("add_structured", _real(rows), (("SIZE", size), ("TOGETHER", together)))
        kernel(
            (across, blocks_down(across, n, together)),
            (THREADS,),
            (rows, weights, self._signs, self._radii, *sizes, sums),
            shared_mem=together * size * rows.dtype.itemsize,
        )
