"""The kernel for processors: compiled when the package is built, threads outside.

Here arrays get the shapes that the compiled functions (``native/``) want, and nothing is computed.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from sketchshift._typing import (
    ComplexArray,
    Digits,
    Float32Array,
    FloatArray,
    IntArray,
    RealArray,
)
from sketchshift.kernels.contract import (
    BITS,
    CELL_WEIGHT_BITS,
    MOMENT_BITS,
    Accumulator,
    CellAccumulator,
    Centers,
    Matcher,
    Runs,
)
from sketchshift.kernels.cpu.library import Variant, aligned_copy, aligned_zeros, load_variant
from sketchshift.kernels.host import CellsOnHost, Correlations, OnHost

__all__ = ["KERNEL", "CpuKernel"]

POINTS = 4  # of a tile: so many are looked at together
HALVINGS = 2.0 * math.pi**2 / math.log(2.0)  # e^{-s^2 omega^2 / 2} = 2^{-HALVINGS s^2 turns^2}
TOLERANCE = 1e-8  # share of the value that an iteration of a descent must gain


class CpuKernel(OnHost, Correlations):
    """The contract in compiled vector code; every method releases the interpreter's lock."""

    name = "cpu"

    def __init__(self, variant: Variant | None = None) -> None:
        self.variant = load_variant() if variant is None else variant
        self._last: tuple[Any, Any] = (lambda: None, None)

    def normalise(
        self,
        X: RealArray,
        center: FloatArray,
        per_unit: FloatArray,
        rows: FloatArray,
        squared_norms: FloatArray,
    ) -> None:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        name = "normalise_32" if X.dtype == np.float32 else "normalise_64"
        self.variant.call(name, X, *X.shape, center, per_unit, rows, squared_norms)

    def project(self, rows: FloatArray, axes: Float32Array) -> FloatArray:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return project(self.variant, rows, axes)

    def dense(self, turns: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        panels, m = pack(turns, self.variant.panel), turns.shape[1]

        def accumulate(
            rows: RealArray, weights: Float32Array, totals: IntArray, runs: Runs | None = None
        ) -> None:
            name = "dense_32" if rows.dtype == np.float32 else "dense_64"
            rows = np.ascontiguousarray(rows)
            given = rows, weights, *_of_runs(runs, len(rows)), rows.shape[1]
            self.variant.call(name, *given, panels, m, totals)

        return accumulate

    def structured(self, signs: Float32Array, radii: Float32Array) -> Accumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        n_blocks, _, size = signs.shape
        m, filled = len(radii), np.zeros(n_blocks * size, dtype=np.float32)
        filled[:m] = radii

        def accumulate(
            rows: RealArray, weights: Float32Array, totals: IntArray, runs: Runs | None = None
        ) -> None:
            name = "structured_32" if rows.dtype == np.float32 else "structured_64"
            rows, of_dtype = np.ascontiguousarray(rows), signs.astype(rows.dtype)
            given = rows, weights, *_of_runs(runs, len(rows)), rows.shape[1]
            self.variant.call(name, *given, of_dtype, filled, n_blocks, size, m, totals)

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
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        rows = np.ascontiguousarray(rows)
        roots = None if factors is None else np.sqrt(factors)
        per_unit = 2.0**MOMENT_BITS / unit
        given = rows, factors, roots, *_of_runs(runs, len(rows)), rows.shape[1]
        self.variant.call("moments", *given, per_unit, full, limbs)

    def distances(self, rows: Float32Array) -> Callable[[Float32Array], Float32Array]:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        panels = pack(rows.T, self.variant.panel, np.inf)

        def to_rows(points: Float32Array) -> Float32Array:
            result = np.empty((len(points), len(panels) * self.variant.panel), dtype=np.float32)
            points = np.ascontiguousarray(points, dtype=np.float32)
            self.variant.call("distances", points, *points.shape, panels, len(panels), result)
            return result[:, : len(rows)]

        return to_rows

    def cells(self, centers: Centers) -> CellAccumulator:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return CpuCells(self.variant, centers)

    def central(
        self,
        products: Digits,
        weights: Digits | None = None,
        left: Digits | None = None,
        right: Digits | None = None,
        bits: int = 0,
    ) -> FloatArray:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        (G, E, n), r = products.shape, 0 if left is None else left.shape[2]
        weights = np.zeros((G, n), dtype=np.int32) if weights is None else weights
        arrays = weights, products, left, right
        given = [None if a is None else np.ascontiguousarray(a) for a in arrays]
        result = np.empty((G, E))
        self.variant.call("central", *given, G, E, r, n, bits, result)
        return result

    def correlate(
        self, points: FloatArray, turns: Float32Array, residual: RealArray
    ) -> tuple[RealArray, RealArray]:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        t = np.asarray(points, dtype=np.float32) @ turns
        re = (residual.real * 2.0**-BITS).astype(np.float32)
        im = (residual.imag * 2.0**-BITS).astype(np.float32)
        real, minus_imag = np.empty_like(t), np.empty_like(t)
        self.variant.call("rotate", t, re, im, *t.shape, real, minus_imag)
        return real, minus_imag

    def correlation(
        self, points: FloatArray, turns: Float32Array, residual: RealArray
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`~sketchshift.kernels.contract.Kernel`: no array of pairs is written."""
        (L, d), m = points.shape, turns.shape[1]
        panels = self._packed(turns)
        re, im = _divided(residual, len(panels) * self.variant.panel)
        rows = np.zeros((-(-L // POINTS) * POINTS, d), dtype=np.float32)
        rows[:L] = points
        result = np.empty((len(rows), 1 + d))
        self.variant.call("correlation", rows, *rows.shape, panels, len(panels), re, im, result)
        return result[:L, 0] / math.sqrt(m), result[:L, 1:] * (2.0 * math.pi / math.sqrt(m))

    def matcher(self, turns: Float32Array, z: ComplexArray, weights: FloatArray) -> Matcher:
        """See :class:`~sketchshift.kernels.contract.Kernel`."""
        return GaussianMatcher(self.variant, pack(turns, self.variant.panel), z, weights)

    def _packed(self, turns: Float32Array) -> Float32Array:
        """Panels of the frequencies; a climb asks for the same ones hundreds of times."""
        of, panels = self._last
        if of() is not turns:
            panels = pack(turns, self.variant.panel)
            self._last = (weakref.ref(turns), panels)
        return cast(Float32Array, panels)


class CpuCells(CellsOnHost):
    """See :class:`~sketchshift.kernels.contract.CellAccumulator`."""

    def __init__(self, variant: Variant, centers: Centers) -> None:
        groups = zip(centers.starts[:-1], centers.starts[1:], strict=True)
        panels = [pack(centers.centers[a:b].T, variant.panel, np.inf) for a, b in groups]
        self._variant, self._probes = variant, centers.probes
        self.centers = centers
        self._places = centers.centers.astype(np.float64)
        if centers.axes is not None:
            self._middles_along = project(variant, self._places, centers.axes)
        # arrays whose addresses are kept by nobody else
        self._panels = aligned_copy(np.concatenate(panels))
        self._firsts = np.cumsum([0, *map(len, panels)], dtype=np.int64)
        self._starts = np.ascontiguousarray(centers.starts, dtype=np.int64)
        self._middles = pack(centers.middles.T, variant.panel, np.inf)

    def nearest(self, rows: Float32Array) -> tuple[IntArray, Float32Array]:
        """See :class:`~sketchshift.kernels.contract.CellAccumulator`."""
        rows = np.ascontiguousarray(rows, dtype=np.float32)
        labels, squares = np.empty(len(rows), np.int32), np.empty(len(rows), np.float32)
        self._variant.call(
            *("nearest", rows, *rows.shape, self._panels, self._firsts, self._starts),
            *(len(self._starts) - 1, self._middles, self._probes, labels, squares),
        )
        return labels.astype(np.int64), squares

    def sum_at(
        self,
        rows: FloatArray,
        coordinates: FloatArray,
        factors: FloatArray | None,
        labels: IntArray,
        places: IntArray,
        totals: IntArray,
    ) -> None:
        """Add every row to one of the totals: the row of cell ``labels`` to that at ``places``."""
        rows, roots = np.ascontiguousarray(rows), None if factors is None else np.sqrt(factors)
        numbers = labels.astype(np.int32), places.astype(np.int32)
        given = (rows, factors, roots, *numbers, *rows.shape, self._places)
        axes = self.centers.axes
        if axes is None:
            steps = self.centers.per_unit, 2.0**CELL_WEIGHT_BITS
            self._variant.call("add_cells", *given, *steps, totals)
        else:
            along = np.ascontiguousarray(coordinates), self._middles_along, len(axes)
            steps = self.centers.per_unit, 2.0**BITS
            self._variant.call("add_wide_cells", *given, *along, *steps, totals)


class GaussianMatcher:
    """See :class:`~sketchshift.kernels.contract.Matcher`: O(T m d), no array of T m pairs."""

    def __init__(
        self, variant: Variant, panels: Float32Array, z: ComplexArray, weights: FloatArray
    ) -> None:
        shape = (len(panels), variant.panel)
        parts = aligned_zeros((len(panels), 2, variant.panel), np.float32)
        for i, part in enumerate((z.real, z.imag)):
            parts[:, i] = _padded(part, shape)
        self._variant = variant
        n_panels, d, _ = panels.shape
        self._problem = panels, parts, _padded(weights, shape), n_panels, d

    def __call__(
        self, alpha: FloatArray, C: FloatArray, variances: FloatArray | None
    ) -> tuple[float, FloatArray]:
        """See :class:`~sketchshift.kernels.contract.Matcher`."""
        T, d = C.shape
        rates = np.zeros((T, d)) if variances is None else variances * HALVINGS
        floats = [np.ascontiguousarray(a, dtype=np.float32) for a in (C, rates, alpha)]
        result = np.empty((T, 1 + 2 * d))
        return self._variant.call("match", *self._problem, *floats, T, result), result

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
        moments = (*map(np.ascontiguousarray, (mean, covariance)), not np.isnan(covariance).any())
        value = self._variant.call(
            *("descend", *self._problem, *moments, strength, x),
            *(T, unit, iterations, TOLERANCE, floor),
        )
        weights, centers, spreads = np.split(x, [T, T + T * d])
        C, S = unit * centers.reshape(T, d), unit * np.abs(spreads).reshape(T, d)
        return value, weights / T, C, S


def _of_runs(runs: Runs | None, n: int) -> tuple[IntArray, IntArray, int]:
    """Starts, slots and number of runs; all n rows are one run where there are none."""
    found = Runs.one(n) if runs is None else runs
    return found.starts, np.ascontiguousarray(found.slots), len(found.slots)


def project(variant: Variant, rows: FloatArray, axes: Float32Array) -> FloatArray:
    """See :class:`~sketchshift.kernels.contract.Kernel`."""
    (n, d), p = rows.shape, len(axes)
    lanes = -(-p // variant.lanes) * variant.lanes
    columns = np.zeros((d, lanes))
    columns[:, :p] = axes.T
    result = np.empty((n, lanes))
    rows = np.ascontiguousarray(rows)
    variant.call("project", rows, n, d, columns, lanes, result)
    return np.ascontiguousarray(result[:, :p])


def pack(columns: Float32Array, panel: int, fill: float = 0.0) -> Float32Array:
    """Vectors that are columns (d, m) in panels (panels, d, panel), the last one filled up."""
    d, m = columns.shape
    n_panels = -(-m // panel)
    padded = np.full((d, n_panels * panel), fill, dtype=np.float32)
    padded[:, :m] = columns
    return aligned_copy(padded.reshape(d, n_panels, panel).transpose(1, 0, 2))


def _divided(residual: RealArray, size: int) -> Float32Array:
    """Real and imaginary part, padded; the polynomials come multiplied by 2**BITS."""
    parts = np.zeros((2, size), dtype=np.float32)
    parts[0, : len(residual)] = residual.real * 2.0**-BITS
    parts[1, : len(residual)] = residual.imag * 2.0**-BITS
    return parts


def _padded(values: FloatArray, shape: tuple[int, int]) -> Float32Array:
    """Numbers (m,) in panels, filled up with zeros."""
    result = aligned_zeros(shape, np.float32)
    result.ravel()[: len(values)] = values
    return result


KERNEL = CpuKernel()
