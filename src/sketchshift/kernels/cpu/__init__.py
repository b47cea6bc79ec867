"""The kernel for processors: numba, vectors as wide as the machine's, threads outside."""

from __future__ import annotations

from sketchshift._typing import ComplexArray, Float32Array, FloatArray, IntArray, RealArray
from sketchshift.kernels.contract import Accumulator, Matcher
from sketchshift.kernels.cpu.fit import GaussianMatcher, correlate, correlation
from sketchshift.kernels.cpu.sums import DenseAccumulator, StructuredAccumulator, moments, normalise
from sketchshift.kernels.host import Correlations, OnHost

__all__ = ["KERNEL", "CpuKernel"]


class CpuKernel(OnHost, Correlations):
    """The contract in compiled vector code; every method releases the interpreter's lock."""

    name = "cpu"

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
        return DenseAccumulator(turns)

    def structured(self, signs: Float32Array, radii: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return StructuredAccumulator(signs, radii)

    def moments(
        self, rows: FloatArray, factors: FloatArray | None, unit: float, *, full: bool
    ) -> IntArray:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return moments(rows, factors, unit, full=full)

    def correlate(
        self, points: FloatArray, turns: Float32Array, residual: RealArray
    ) -> tuple[RealArray, RealArray]:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return correlate(points, turns, residual)

    def matcher(self, turns: Float32Array, z: ComplexArray, weights: FloatArray) -> Matcher:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return GaussianMatcher(turns, z, weights)

    def correlation(
        self, points: FloatArray, turns: Float32Array, residual: RealArray
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return correlation(points, turns, residual)


KERNEL = CpuKernel()
