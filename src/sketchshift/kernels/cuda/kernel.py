"""The kernel that :func:`~sketchshift.kernels.select_kernel` loads for ``"cuda"``."""

from __future__ import annotations

from typing import Any

from sketchshift._typing import Float32Array, FloatArray, IntArray, RealArray
from sketchshift.kernels.contract import Accumulator
from sketchshift.kernels.cpu import CpuKernel

try:
    import cupy
except ImportError as cause:
    msg = 'it needs CuPy: pip install "sketchshift[gpu]"'
    raise ImportError(msg) from cause
if not cupy.is_available():
    raise ImportError("CuPy finds no GPU; nvidia-smi tells whether the driver does")

from sketchshift.kernels.cuda.accumulators import LARGEST_BLOCK, CudaDense, CudaStructured
from sketchshift.kernels.cuda.moments import MOST_COLUMNS, moments
from sketchshift.kernels.cuda.normalise import normalise

__all__ = ["KERNEL", "CudaKernel"]


class CudaKernel(CpuKernel):
    """The processor's kernel, but for the sums that take nearly all of its time.

    Rows go to the GPU as they are, and integers come back; every thread has a stream of its own.
    """

    name = "cuda"
    chunk = 1 << 21

    def empty(self, shape: tuple[int, ...]) -> Any:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return cupy.empty(shape)

    def on_host(self, array: Any) -> Any:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return cupy.asnumpy(array)

    def normalise(
        self,
        X: RealArray,
        center: FloatArray,
        per_unit: FloatArray,
        rows: FloatArray,
        squared_norms: FloatArray,
    ) -> None:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        normalise(X, center, per_unit, rows, squared_norms)

    def dense(self, turns: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return CudaDense(turns)

    def structured(self, signs: Float32Array, radii: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`; very wide rows come back for it."""
        if signs.shape[-1] <= LARGEST_BLOCK:
            return CudaStructured(signs, radii)
        here = super().structured(signs, radii)

        def accumulate(rows: RealArray, weights: Float32Array, totals: IntArray) -> None:
            here(self.on_host(rows), self.on_host(weights), totals)

        return accumulate

    def moments(
        self, rows: FloatArray, factors: FloatArray | None, unit: float, *, full: bool
    ) -> IntArray:
        """See :class:`~sketchshift.kernels.contract.Kernel`; very wide rows come back for it."""
        if rows.shape[1] > MOST_COLUMNS:
            factors = None if factors is None else self.on_host(factors)
            return super().moments(self.on_host(rows), factors, unit, full=full)
        return moments(rows, factors, unit, full=full)


KERNEL = CudaKernel()
