"""The integers of a sketch while rows come in.

A *measure* is a row of wide integers: the total weight, the sums of the columns, those of
the rests that rounding left of them, and the sums of their products. There is one of the
rows as they are and, with a tilt, one of the rows times their tilt. Python's own integers
hold them, so they never overflow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import IntArray
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, LIMB_BITS, MOMENT_ROWS

__all__ = ["CAPACITY_BITS", "Totals", "WideArray", "n_measures", "n_wide"]

WideArray = NDArray[np.object_]

CAPACITY_BITS = 40
"""A sketch holds a total weight below 2**CAPACITY_BITS: the int64 totals cannot overflow."""


def n_measures(spec: SketchSpec) -> int:
    """One of the plain rows, one more of the tilted ones."""
    return 1 if spec.tilt is None else 2


def n_wide(spec: SketchSpec) -> int:
    """Length of a measure: the weight, d sums, d rests, d (d + 1) / 2 products or d squares."""
    d = spec.n_features
    return 1 + 2 * d + (d * (d + 1) // 2 if spec.has_full_covariance else d)


@dataclass
class Totals:
    """What adds up.

    Attributes
    ----------
    count, n_invalid : int
        Rows added, rows left out.
    waves : int64 array of shape (2, m)
        Cosines and sines.
    measures : object array of shape (n_measures, n_wide)
        Python integers.
    """

    count: int
    n_invalid: int
    waves: IntArray
    measures: WideArray

    @classmethod
    def zero(cls, spec: SketchSpec) -> Totals:
        """Nothing added yet."""
        waves = np.zeros((2, spec.sketch_size), dtype=np.int64)
        measures = np.zeros((n_measures(spec), n_wide(spec)), dtype=np.int64).astype(object)
        return cls(0, 0, waves, measures)

    def copy(self) -> Totals:
        """The same integers in arrays of their own."""
        return Totals(self.count, self.n_invalid, self.waves.copy(), self.measures.copy())

    def __add__(self, other: Totals) -> Totals:
        return self._combine(other, 1)

    def __sub__(self, other: Totals) -> Totals:
        return self._combine(other, -1)

    def _combine(self, other: Totals, sign: int) -> Totals:
        measures = self.measures + sign * other.measures
        check_capacity(measures[0, 0])
        return Totals(
            self.count + sign * other.count,
            self.n_invalid + sign * other.n_invalid,
            self.waves + sign * other.waves,
            measures,
        )


def check_capacity(weight: int) -> None:
    """Refuse a total weight, in units of 2**-BITS, that the int64 totals could not hold."""
    if weight >= 2 ** (CAPACITY_BITS + BITS):
        msg = (
            f"a sketch holds a total weight below 2**{CAPACITY_BITS}, and this would be "
            f"{weight / 2**BITS:.4g}. Divide the weights by a constant, or keep several sketches."
        )
        raise DataError(msg)


class MomentSums:
    """Moments of many calls, in int64 limbs that are folded into wide integers in time."""

    def __init__(self, spec: SketchSpec) -> None:
        self._limbs = np.zeros((3, n_wide(spec) - 1), dtype=np.int64)
        self._n_rows = 0

    def add(self, limbs: IntArray, n_rows: int, measure: WideArray) -> None:
        """Add the moments of a few rows; sometimes write them to ``measure``."""
        self._limbs += limbs
        self._n_rows += n_rows
        if self._n_rows >= MOMENT_ROWS:
            self.fold(measure)

    def fold(self, measure: WideArray) -> None:
        """Write all that is pending to ``measure``."""
        measure[1:] += wide(self._limbs)
        self._limbs[:] = 0
        self._n_rows = 0


def wide(limbs: IntArray) -> WideArray:
    """Python integers from limbs."""
    low, middle, high = limbs.astype(object)
    result: WideArray = low + middle * 2**LIMB_BITS + high * 2 ** (2 * LIMB_BITS)
    return result
