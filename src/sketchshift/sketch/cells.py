"""Cells as parts of a measure: rows by their nearest center, and rows beyond all reach.

Symbols
-------
d, J      columns, cells
n, S, Q   weight, sums of offsets, sums of their squares of one cell, in their steps
u         rows that were added, a whole weight counted as often as it says
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift.features import Cells, SketchSpec
from sketchshift.kernels import (
    CELL_BITS,
    CELL_ROWS,
    CELL_WEIGHT_BITS,
    SQUARE_BITS,
    CellAccumulator,
    Kernel,
)
from sketchshift.sketch.measure import (
    PARTS,
    WEIGHT_BITS,
    Integers,
    Measure,
    Moments,
    Part,
    PartAdder,
    WeightedRows,
    WideArray,
    wide_from_bytes,
    wide_to_bytes,
)

__all__ = ["CellPart", "CellSums", "FarPart"]

_STEP_BITS = CELL_BITS + 12  # an offset within reach is below 2**_STEP_BITS steps


@dataclass(frozen=True, eq=False)
class CellSums:
    """What is known of the rows of each cell, in normalised coordinates.

    Attributes
    ----------
    weights : array of shape (J,)
        Total weight of the rows.
    means, variances : arrays of shape (J, d)
        Of the rows, along each column; those of a cell without rows are its center and 0.
    steps : array of shape (J,)
        What coordinates were rounded to.
    """

    weights: FloatArray
    means: FloatArray
    variances: FloatArray
    steps: FloatArray

    def only(self, some: BoolArray) -> CellSums:
        """The same without weight but in some cells."""
        return replace(self, weights=np.where(some, self.weights, 0.0))

    @classmethod
    def of(cls, integers: WideArray, centers: FloatArray, steps: FloatArray) -> CellSums:
        """From integers (J, 1 + 2 d) in steps (J,), around centers (J, d).

        Sums and squares are divided by the weight, and the squares of the former subtracted, in
        integers: each number is rounded once.
        """
        d, one = centers.shape[1], 2**CELL_WEIGHT_BITS
        n, S, Q = integers[:, 0], integers[:, 1 : 1 + d], integers[:, 1 + d :]
        weight = np.maximum(n, 1)[:, None]  # sums of no rows are 0
        offsets = (S * one / weight).astype(np.float64) * steps[:, None]
        squares = ((Q * weight - S * S * one) * one / weight**2).astype(np.float64)
        with np.errstate(over="ignore"):  # of rows beyond 1e154
            variances = np.maximum(squares, 0.0) * steps[:, None] * steps[:, None]
        return cls((n / one).astype(np.float64), centers + offsets, variances, steps)


class CellPart(Part):
    """Weight, offsets and squared offsets of the rows nearest to each center: (J, 1 + 2 d)."""

    name = "cells"
    is_wide = True

    def __init__(self, cells: Cells, spec: SketchSpec) -> None:
        self._cells, self._spec = cells, spec
        self.shape = (cells.n_cells, 1 + 2 * cells.n_features)

    def sums(self, integers: Integers) -> CellSums:
        """What the integers say of the rows."""
        steps = np.full(self.shape[0], self._cells.unit * 2.0**-CELL_BITS)
        return CellSums.of(integers, self._cells.table.astype(np.float64), steps)

    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """Adders that share the kernel's table of centers."""
        accumulate = kernel.cells(self._cells.groups)
        return lambda: _CellAdder(accumulate, self.shape)

    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """Weights that add up to that of the rows; sums within reach; Cauchy and Schwarz."""
        total = Moments.of(measure.parts["moments"], self._spec).fine_weight
        n, one = integers[:, 0], 2 ** (WEIGHT_BITS - CELL_WEIGHT_BITS)
        if abs(int(n.sum()) * one - total) > u * one:
            return False
        return _are_sums(n, integers[:, 1:], u, _STEP_BITS)

    def to_bytes(self, integers: Integers) -> bytes:
        """A byte that says how many an integer takes, the fewest that do; then the integers."""
        width = max(1, *(n.bit_length() // 8 + 1 for n in integers.ravel()))
        return bytes([width]) + wide_to_bytes(integers, width)

    def from_bytes(self, data: memoryview) -> tuple[Integers, int]:
        """See :class:`Part`."""
        width = data[0] if len(data) else 0
        n = 1 + width * math.prod(self.shape)
        if not 1 <= width <= 16 or len(data) < n:
            raise ValueError("the integers of the cells are cut off.")
        return wide_from_bytes(data[1:n], width).reshape(self.shape), n


def _are_sums(n: WideArray, sums: WideArray, u: int, step_bits: int) -> bool:
    """Whether weights, sums and squares of rows can be such, rounding of weights included."""
    d = sums.shape[1] // 2
    S, Q = sums[:, :d], sums[:, d:]
    if n.min() < 0 or Q.min() < 0:
        return False
    # in steps: weights are rounded to 2**-CELL_WEIGHT_BITS, sums and squares to one step each
    mass = (n[:, None] >> CELL_WEIGHT_BITS) + u + 1
    if (abs(S) > mass << step_bits).any() or (mass << 2 * step_bits < Q).any():
        return False
    shrunk = np.maximum(abs(S) - 2 * u, 0)
    return not bool((shrunk**2 << CELL_WEIGHT_BITS > (n[:, None] + u) * (2 * Q + 2 * u)).any())


class _CellAdder:
    """Sums of many calls in int64, that are added to the wide integers in time."""

    def __init__(self, accumulate: CellAccumulator, shape: tuple[int, ...]) -> None:
        J, width = shape
        self._accumulate, self._d = accumulate, (width - 1) // 2
        self._pending, self._n_pending = np.zeros((J, 1 + 3 * self._d), dtype=np.int64), 0

    def add(self, rows: WeightedRows, integers: Integers) -> None:
        """Add rows to what is pending."""
        if rows.digit:
            totals = np.zeros_like(self._pending)
            self._accumulate.add(rows.values, rows.shares, totals)
            self._write(totals, integers, rows.digit)
            return
        if self._n_pending + len(rows.values) > CELL_ROWS:
            self.flush(integers)
        self._accumulate.add(rows.values, rows.shares, self._pending)
        self._n_pending += len(rows.values)

    def flush(self, integers: Integers) -> None:
        """Add all that is pending to the wide integers."""
        if self._n_pending:
            self._write(self._pending, integers, 0)
            self._pending[:] = 0
            self._n_pending = 0

    def _write(self, totals: IntArray, integers: Integers, digit: int) -> None:
        d, some = self._d, np.flatnonzero(totals.any(axis=1))
        narrow, low, high = np.split(totals[some].astype(object), [1 + d, 1 + 2 * d], axis=1)
        integers[some] += np.hstack([narrow, low + (high << SQUARE_BITS)]) << digit


# Rows beyond the reach: by powers of 2**16 of their largest coordinate, each with its own step.

_BAND_BITS = 16
_FAR_BITS = 40  # a coordinate is below 2**_FAR_BITS steps of its band


class FarPart(Part):
    """Weight, coordinates and squares of rows beyond the reach, by their size: (bands, 1 + 2 d).

    Band b has the rows whose largest coordinate is below 2**(e + 16 b), and not in an earlier
    band, with 2**e the power of two at or above the reach; its step is that, divided by 2**40.
    """

    name = "far"
    is_wide = True
    takes_far = True

    def __init__(self, spec: SketchSpec) -> None:
        self._d, self._exponent = spec.n_features, math.frexp(spec.reach)[1]
        n_bands = 1 + -(-(1024 - self._exponent) // _BAND_BITS)
        self.shape = (n_bands, 1 + 2 * self._d)

    def sums(self, integers: Integers) -> CellSums:
        """What the integers say of the rows, for each band that has some."""
        bands = np.flatnonzero(integers[:, 0])
        steps = np.ldexp(1.0, self._exponent + _BAND_BITS * bands - _FAR_BITS)
        return CellSums.of(integers[bands], np.zeros((len(bands), self._d)), steps)

    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """Adders that share nothing."""
        return lambda: _FarAdder(kernel, self._exponent)

    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """As sums of rows; a band without weight is empty."""
        return _are_sums(integers[:, 0], integers[:, 1:], u, _FAR_BITS)

    def to_bytes(self, integers: Integers) -> bytes:
        """How many bands have rows (two bytes), then each: its number (two bytes), its integers."""
        bands = np.flatnonzero(integers.any(axis=1)).tolist()
        words = [len(bands).to_bytes(2, "little")]
        for band in bands:
            words += [band.to_bytes(2, "little"), wide_to_bytes(integers[band])]
        return b"".join(words)

    def from_bytes(self, data: memoryview) -> tuple[Integers, int]:
        """See :class:`Part`."""
        n_bands, size = int.from_bytes(data[:2], "little"), 2 + 16 * self.shape[1]
        end = 2 + n_bands * size
        if len(data) < end or n_bands > self.shape[0]:
            raise ValueError("the integers of far rows are cut off.")
        integers = self.zero()
        for at in range(2, end, size):
            band = int.from_bytes(data[at : at + 2], "little")
            if band >= self.shape[0]:
                raise ValueError(f"there is no band {band} of far rows.")
            integers[band] = wide_from_bytes(data[at + 2 : at + size])
        return integers, end


class _FarAdder:
    def __init__(self, kernel: Kernel, exponent: int) -> None:
        self._kernel, self._exponent = kernel, exponent

    def add(self, rows: WeightedRows, integers: Integers) -> None:
        """Add rows one by one: they are few."""
        values = self._kernel.on_host(rows.values)
        shares = np.ones(len(values)) if rows.shares is None else rows.shares
        for x, f in zip(values, shares.tolist(), strict=True):
            band, added = self._integers(x, f)
            integers[band] += added << rows.digit

    def flush(self, integers: Integers) -> None:
        """Nothing is ever pending."""

    def _integers(self, x: FloatArray, f: float) -> tuple[int, WideArray]:
        """The band of a row of weight f, and what it adds there."""
        excess = math.frexp(float(np.abs(x).max()))[1] - self._exponent
        band = max(0, -(-excess // _BAND_BITS))
        steps = np.ldexp(x, _FAR_BITS - self._exponent - _BAND_BITS * band)
        sums, roots = (
            np.rint(factor * steps).astype(np.int64).astype(object) for factor in (f, math.sqrt(f))
        )
        weight = np.array([round(f * 2**CELL_WEIGHT_BITS)], dtype=object)
        return band, np.concatenate([weight, sums, roots * roots])


def _cells(spec: SketchSpec) -> Part | None:
    return None if spec.cells is None else CellPart(spec.cells, spec)


def _far(spec: SketchSpec) -> Part | None:
    return None if spec.cells is None else FarPart(spec)


PARTS += [_cells, _far]
