"""Landmarks as a part of a measure: sums of the kernels of rows with each of them.

Symbols
-------
J         landmarks
u         rows that were added, a whole weight counted as often as it says
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import LOG2_E, Kernel, LandmarkAccumulator
from sketchshift.sketch.measure import (
    LANDMARK_PARTS,
    Integers,
    Measure,
    Part,
    PartAdder,
    WeightedRows,
)

__all__ = ["LandmarkPart", "kernel_means"]


class LandmarkPart(Part):
    """Gaussian kernels of the rows with each landmark, in steps of 2**-22: int64, (J,)."""

    name = "landmarks"

    def __init__(self, spec: SketchSpec) -> None:
        assert spec.landmarks is not None
        assert isinstance(spec.bandwidth, float)
        self._places = spec.landmarks.table
        self._rate = 0.5 * LOG2_E / (spec.bandwidth * spec.bandwidth)
        self.shape = (len(self._places),)

    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """Adders that share the places."""
        accumulate = kernel.landmarks(self._places, self._rate)
        return lambda: _LandmarkAdder(accumulate)

    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """A kernel is between 0 and 1: a sum of them between 0 and the weight of the rows."""
        return bool(integers.min() >= 0 and int(integers.max()) <= measure.weight + u)


class _LandmarkAdder:
    def __init__(self, accumulate: LandmarkAccumulator) -> None:
        self._accumulate = accumulate

    def add(self, rows: WeightedRows, integers: Integers) -> None:
        """Add the kernels of the rows at once."""
        if rows.digit == 0:
            self._accumulate(rows.values, rows.shares, integers)
            return
        totals = np.zeros_like(integers)
        self._accumulate(rows.values, rows.shares, totals)
        integers += totals << rows.digit

    def flush(self, integers: Integers) -> None:
        """Nothing is ever pending."""


LANDMARK_PARTS.append(LandmarkPart)


def kernel_means(measure: Measure) -> FloatArray:
    """Mean of the kernels of the rows with each landmark, shape (J,): their density there."""
    means: FloatArray = measure.parts[LandmarkPart.name] / float(measure.weight)
    return means
