"""Waves: cosines and sines of the rows at each frequency."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sketchshift._typing import BoolArray, ComplexArray, Float32Array, FloatArray, RealArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import Kernel, Runs
from sketchshift.kernels.contract import G2, Accumulator
from sketchshift.sketch.digits import Digits, to_floats
from sketchshift.sketch.family import Family, FamilyAdder, SlotSums, WeightedRows
from sketchshift.sketch.totals import AnyTotals, Totals

__all__ = ["WaveFamily"]


class WaveFamily(Family):
    """Cosines and sines of the rows at each frequency: shape (2, m)."""

    name = "waves"

    def __init__(self, spec: SketchSpec) -> None:
        self._spec = spec
        self.shape = (2, spec.sketch_size)
        self.row_square = spec.sketch_size * G2

    def adders(self, kernel: Kernel) -> Callable[[], FamilyAdder]:
        """Adders that share the kernel's tables of the frequencies."""
        structure = self._spec.frequencies.structure
        if structure is None:
            accumulate = kernel.dense(self._spec.frequencies.turns)
        else:
            accumulate = kernel.structured(structure.signs, structure.radii)
        return lambda: _WaveAdder(self._spec, accumulate)

    def decode(self, totals: AnyTotals) -> ComplexArray:
        """Their mean over the rows, divided by the root of m: shape (m,)."""
        cosines, sines = totals.integers(self.name) / totals.weight
        return np.asarray((cosines + 1j * sines) / math.sqrt(self.shape[1]))

    def cut(self, digits: Digits, prefix: Family) -> Digits:
        """Those of the first frequencies."""
        by_wave = digits.reshape(len(digits), 2, -1)
        m = 2 * prefix.shape[1]
        return by_wave[:, :, :m].reshape(len(digits), -1)

    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """A row adds a point of the disk whose radius is its weight, rounded in both parts."""
        waves = to_floats(totals.dense[self.name], 2)
        weights = totals.weights.astype(np.float64)
        cosines, sines = waves.reshape(len(totals), 2, -1).transpose(1, 0, 2)
        sound = np.abs(waves).max(axis=1) <= weights
        reach = 1.001 * weights + 2.0 * u
        squares = cosines * cosines
        squares += sines * sines
        sound &= squares.max(axis=1) <= reach * reach * (1.0 + 1e-9)
        return np.asarray(sound)


class _WaveAdder(SlotSums):
    def __init__(self, spec: SketchSpec, accumulate: Accumulator) -> None:
        assert spec.waves is not None
        super().__init__(2, spec.sketch_size)
        self._accumulate = accumulate
        self._precision, self._buffer = (
            np.dtype(spec.waves.precision),
            np.empty((0, spec.n_coordinates)),
        )

    def add(self, rows: WeightedRows) -> None:
        """Add the waves of the rows at once."""
        values: RealArray = self._narrowed(rows.coordinates)
        weights: Float32Array = np.ones(len(rows.slots), dtype=np.float32)
        if rows.shares is not None:
            weights = rows.shares.astype(np.float32)
        totals, runs = self.reach(rows.n_slots), rows.runs
        if rows.digit == 0:
            self._accumulate(values, weights, totals, runs)
            return
        waves = np.zeros((len(runs.slots), *totals.shape[1:]), dtype=np.int64)
        self._accumulate(values, weights, waves, Runs(runs.starts, np.arange(len(runs.slots))))
        totals[runs.slots] += waves << rows.digit

    def _narrowed(self, values: Any) -> Any:
        """Rows in the precision of the spec; on the processor in a buffer that is in cache."""
        if values.dtype == self._precision:
            return values
        if not isinstance(values, np.ndarray):
            return values.astype(self._precision)
        if len(self._buffer) < len(values):
            self._buffer = np.empty(values.shape, dtype=self._precision)
        narrow = self._buffer[: len(values)]
        narrow[:] = values
        return narrow
