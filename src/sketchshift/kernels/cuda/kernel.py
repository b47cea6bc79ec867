"""The kernel that :func:`~sketchshift.kernels.select_kernel` loads for ``"cuda"``."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from sketchshift._typing import Float32Array, FloatArray, IntArray, RealArray
from sketchshift.kernels.contract import (
    BITS,
    CELL_WEIGHT_BITS,
    LIMB_BITS,
    MOMENT_BITS,
    SQUARE_BITS,
    Accumulator,
    CellAccumulator,
    Centers,
    LeftOut,
    Runs,
)
from sketchshift.kernels.cpu import CpuCells, CpuKernel
from sketchshift.kernels.cpu.library import Variant
from sketchshift.kernels.cuda import kernel_of

try:
    import cupy
except ImportError as cause:
    msg = 'it needs CuPy: pip install "sketchshift[gpu]"'
    raise ImportError(msg) from cause
if not cupy.is_available():
    raise ImportError("CuPy finds no GPU; nvidia-smi tells whether the driver does")

__all__ = [
    "KERNEL",
    "LARGEST_BLOCK",
    "MOST_COLUMNS",
    "THREADS",
    "CudaCells",
    "CudaDense",
    "CudaKernel",
    "CudaStructured",
    "blocks_down",
    "moments",
    "normalise",
    "own_stream",
]

# How work is laid out on a GPU.

THREADS = 256
"""Of every block, here and in the source."""

BLOCKS = 16  # for each multiprocessor: enough to keep it busy


def own_stream() -> Any:
    """The stream of this thread: threads need not wait for each other."""
    return cupy.cuda.Stream.ptds


def blocks_down(across: int, n_rows: int, at_a_time: int) -> int:
    """How many blocks share the rows, so that with those across they fill the GPU."""
    processors: int = cupy.cuda.Device().attributes["MultiProcessorCount"]
    return max(1, min(-(-n_rows // at_a_time), -(-BLOCKS * processors // across), 65535))


# Rows in normalised coordinates, on a GPU.


def normalise(
    X: RealArray, center: FloatArray, per_unit: FloatArray, rows: Any, squared_norms: Any
) -> None:
    """See :class:`~sketchshift.kernels.contract.Kernel`; what is OUT lies on the GPU.

    The stream of this thread is taken for all that the thread does with them later.
    """
    own_stream().use()
    n, d = X.shape
    add = kernel_of("normalise", "float" if X.dtype == np.float32 else "double")
    arguments = (cupy.asarray(X), cupy.asarray(center), cupy.asarray(per_unit))
    add(
        (-(-n // THREADS),),
        (THREADS,),
        (*arguments, np.int64(n), np.int32(d), rows, squared_norms),
    )


# First and second moments on a GPU.

MOMENT_NUMBERS = 2048  # of rows that a block holds at a time: 16 bytes each
MOST_COLUMNS = MOMENT_NUMBERS


@cache
def _columns(d: int, *, full: bool) -> tuple[Any, Any]:
    """The columns of each sum, on the GPU."""
    each = np.arange(d)
    i, j = np.triu_indices(d) if full else (each, each)
    pairs = (np.concatenate([each, each, k]).astype(np.int32) for k in (i, j))
    first, second = (cupy.asarray(pair) for pair in pairs)
    return first, second


def moments(rows: FloatArray, factors: FloatArray | None, unit: float, *, full: bool) -> IntArray:
    """See :class:`~sketchshift.kernels.contract.Kernel`; for up to 2048 columns."""
    n, d = rows.shape
    first, second = _columns(d, full=full)
    n_sums, tile = len(first), max(1, MOMENT_NUMBERS // d)
    lanes = min(THREADS, 1 << (n_sums - 1).bit_length())
    across = -(-n_sums // lanes)
    sizes = (("TILE", tile), ("SUM_LANES", lanes), ("LIMB_BITS", LIMB_BITS))
    add = kernel_of("add_moments", "double", sizes)
    with own_stream():
        limbs = cupy.zeros((3, n_sums), dtype=np.int64)
        weights = np.uintp(0) if factors is None else cupy.asarray(factors)
        numbers = np.float64(2.0**MOMENT_BITS / unit), np.int64(n), np.int32(d), np.int32(n_sums)
        add(
            (across, blocks_down(across, n, tile)),
            (THREADS,),
            (cupy.asarray(rows), weights, first, second, *numbers, limbs),
            shared_mem=16 * tile * d,
        )
        found: IntArray = limbs.get()
    return found


# Exact sums on a GPU: rows go there, integers come back.

ROWS, FREQUENCIES = 128, 128  # of a block of the source's add_dense
NUMBERS = 2048  # of rows that a block of structured frequencies holds at a time, at least a row
LARGEST_BLOCK = 4096  # structured frequencies whose rows fit into shared memory


def _real(rows: Any) -> str:
    return "float" if rows.dtype == np.float32 else "double"


class _OnGpu:
    """Rows go to the GPU on a stream of this thread, and 2 m integers come back."""

    n_frequencies: int

    def __call__(
        self,
        rows: RealArray,
        weights: Float32Array,
        totals: IntArray,
        runs: Runs | None = None,
    ) -> None:
        """See :class:`~sketchshift.kernels.contract.Accumulator`."""
        spans = [(slice(None), totals)] if runs is None else [(s, totals[i]) for s, i in runs]
        with own_stream():
            rows, weights = cupy.asarray(rows), cupy.asarray(weights)
            for some, own in spans:
                sums = cupy.zeros((2, self.n_frequencies), dtype=np.int64)
                self.add(rows[some], weights[some], sums)
                own += sums.get()

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


SIDE = 128  # rows of a tile of the source's find_nearest
WARPS = THREADS // 32


class CudaCells(CpuCells):
    """See :class:`~sketchshift.kernels.contract.CellAccumulator`; rows are added on the GPU."""

    def __init__(self, variant: Variant, centers: Centers) -> None:
        super().__init__(variant, centers)
        self._limit = np.float32(centers.limit)
        arrays = (centers.centers, centers.starts, centers.middles)
        self._on_gpu = tuple(cupy.asarray(np.ascontiguousarray(array)) for array in arrays)
        self._along = None if centers.axes is None else cupy.asarray(self._middles_along)

    def add(
        self,
        rows: FloatArray,
        coordinates: FloatArray,
        factors: FloatArray | None,
        totals: IntArray,
    ) -> LeftOut | None:
        """See :class:`~sketchshift.kernels.contract.CellAccumulator`."""
        n, d = rows.shape
        with own_stream():
            here, along = cupy.asarray(rows), cupy.asarray(coordinates)
            labels, squares = self._find(here)
            is_here = isinstance(totals, np.ndarray)
            sums: Any = cupy.zeros(totals.shape, dtype=np.int64) if is_here else totals
            weights = np.uintp(0) if factors is None else cupy.asarray(factors)
            has_axes = self._along is not None
            middles, p = (self._along, along.shape[1]) if has_axes else (np.uintp(0), 0)
            unit = 2.0 ** (BITS if has_axes else CELL_WEIGHT_BITS)
            steps = np.float64(self.centers.per_unit), self._limit, np.float64(unit)
            add = kernel_of("add_cells", "double", (("SQUARE_BITS", SQUARE_BITS),))
            arguments = (here, along, weights, self._on_gpu[0], middles, labels, squares, *steps)
            sizes = np.int64(n), np.int32(d), np.int32(p)
            add((blocks_down(1, n, WARPS),), (THREADS,), (*arguments, *sizes, sums))
            if is_here:
                totals += sums.get()
            # as integers: CuPy's own comparisons take subnormals for 0
            out = cupy.flatnonzero(squares.view(np.int32) > self._limit.view(np.int32))
            return (out.get(), labels[out].get().astype(np.int64)) if len(out) else None

    def _find(self, rows: Any) -> tuple[Any, Any]:
        """The nearest center of each row on the GPU, and the squared distance: both (n,)."""
        (n, d), (centers, starts, middles) = rows.shape, self._on_gpu
        labels, squares = cupy.empty(n, dtype=np.int32), cupy.empty(n, dtype=np.float32)
        found, size = (labels, squares), (np.int64(n), np.int32(d))
        if self.centers.probes > 1:
            find = kernel_of("find_in_groups", "double", (("PROBES", self.centers.probes),))
            groups = centers, starts, middles, np.int32(len(middles))
            find((blocks_down(1, n, THREADS),), (THREADS,), (rows, *groups, *size, *found))
            return labels, squares
        table = centers if len(middles) == 1 else middles
        find = kernel_of("find_nearest", "double")
        arguments = (rows, table, *size, np.int32(len(table)), *found)
        find((blocks_down(1, n, SIDE),), (THREADS,), arguments)
        if len(middles) > 1:
            find, grid = kernel_of("find_in_group", "double"), (blocks_down(1, n, WARPS),)
            find(grid, (THREADS,), (rows, centers, starts, *size, *found))
        return labels, squares


class CudaKernel(CpuKernel):
    """The processor's kernel, but for the sums that take nearly all of its time.

    Rows go to the GPU as they are, and integers come back; every thread has a stream of its own.
    """

    name = "cuda"
    chunk = 1 << 21

    def empty(self, shape: tuple[int, ...]) -> Any:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return cupy.empty(shape)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return cupy.zeros(shape, dtype=np.int64)

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

    def project(self, rows: FloatArray, axes: Float32Array) -> Any:
        """See :class:`~sketchshift.kernels.contract.Kernel`: where the rows are."""
        if isinstance(rows, np.ndarray):
            return super().project(rows, axes)
        (n, d), p = rows.shape, len(axes)
        with own_stream():
            result = cupy.empty((n, p))
            sizes = np.int64(n), np.int32(d), np.int32(p)
            along = kernel_of("project", "double", (("SQUARE_BITS", SQUARE_BITS),))
            arguments = (rows, cupy.asarray(np.ascontiguousarray(axes)), *sizes, result)
            along((blocks_down(1, n * p, THREADS),), (THREADS,), arguments)
        return result

    def dense(self, turns: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return CudaDense(turns)

    def structured(self, signs: Float32Array, radii: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`; very wide rows come back for it."""
        if signs.shape[-1] <= LARGEST_BLOCK:
            return CudaStructured(signs, radii)
        here = super().structured(signs, radii)

        def accumulate(
            rows: RealArray, weights: Float32Array, totals: IntArray, runs: Runs | None = None
        ) -> None:
            here(self.on_host(rows), self.on_host(weights), totals, runs)

        return accumulate

    def moments(
        self,
        rows: FloatArray,
        factors: FloatArray | None,
        unit: float,
        limbs: IntArray,
        runs: Runs,
        *,
        full: bool,
    ) -> None:
        """See :class:`~sketchshift.kernels.contract.Kernel`; very wide rows come back for it."""
        if rows.shape[1] > MOST_COLUMNS:
            factors = None if factors is None else self.on_host(factors)
            super().moments(self.on_host(rows), factors, unit, limbs, runs, full=full)
            return
        for some, slot in runs:
            of_some = None if factors is None else factors[some]
            limbs[slot] += moments(rows[some], of_some, unit, full=full)

    def cells(self, centers: Centers) -> CellAccumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return CudaCells(self.variant, centers)


KERNEL = CudaKernel()
