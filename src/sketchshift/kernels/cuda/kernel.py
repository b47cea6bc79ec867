"""The kernel that :func:`~sketchshift.kernels.select_kernel` loads for ``"cuda"``."""

from __future__ import annotations

from sketchshift._typing import Float32Array
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

__all__ = ["KERNEL", "CudaKernel"]


class CudaKernel(CpuKernel):
    """The processor's kernel, but for the sums that take nearly all of its time.

    Rows are normalised and their moments taken by the processor's threads; each hands its rows
    to the GPU on a stream of its own, and waits for 2 m integers.
    """

    name = "cuda"
    chunk = 1 << 22

    def dense(self, turns: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return CudaDense(turns)

    def structured(self, signs: Float32Array, radii: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`; very wide rows stay here."""
        if signs.shape[-1] > LARGEST_BLOCK:
            return super().structured(signs, radii)
        return CudaStructured(signs, radii)


KERNEL = CudaKernel()
