"""The integers of a sketch while rows come in.

A *measure* is a row of wide integers: the total weight as the waves see it, and once more in
finer steps; the sums of the columns; what rounding left of these, over all rows and over the
rows of partial weight; the sums of the products. There is one of the rows as they are and,
with a tilt, one of the rows times their tilt. Python's own integers hold them, so they never
overflow.

Symbols
-------
u         rows that were added, a whole weight counted as often as it says
W, F      weight, fine weight (2**-22 and 2**-52)
S, R, Q   sums, their rests and those of rows of partial weight (1 and 2**-20 steps)
P         products (squared steps)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import FloatArray, IntArray
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, LIMB_BITS, MOMENT_ROWS

__all__ = [
    "CAPACITY_BITS",
    "WEIGHT_BITS",
    "MomentSums",
    "Totals",
    "WideArray",
    "check_capacity",
    "fine_weight",
    "n_measures",
    "n_wide",
]

WideArray = NDArray[np.object_]

CAPACITY_BITS = 40
"""A sketch holds a total weight below 2**CAPACITY_BITS: the int64 totals cannot overflow."""


WEIGHT_BITS = 52
"""The finer total weight counts 2**-WEIGHT_BITS."""

_LARGEST = 2 ** (CAPACITY_BITS + BITS)
_REACH_BITS = 40  # a row of weight 1 lies within 2**_REACH_BITS steps of the center


def fine_weight(factors: FloatArray) -> int:
    """The sum of rint(2**WEIGHT_BITS f), exactly."""
    scaled = factors * 2.0 ** (WEIGHT_BITS // 2)
    high = np.floor(scaled)
    low = np.rint((scaled - high) * 2.0 ** (WEIGHT_BITS // 2))
    halves = (int(half.astype(np.int64).sum()) for half in (high, low))
    return (next(halves) << WEIGHT_BITS // 2) + next(halves)


def n_measures(spec: SketchSpec) -> int:
    """One of the plain rows, one more of the tilted ones."""
    return 1 if spec.tilt is None else 2


def n_wide(spec: SketchSpec) -> int:
    """Length of a measure: 2 weights, 3 d sums and rests, d (d + 1) / 2 products or d squares."""
    d = spec.n_features
    return 2 + 3 * d + (d * (d + 1) // 2 if spec.has_full_covariance else d)


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

    @classmethod
    def total(cls, parts: Sequence[Totals]) -> Totals:
        """The sum of one or more."""
        result = parts[0].copy()
        for part in parts[1:]:
            result.count += part.count
            result.n_invalid += part.n_invalid
            result.measures += part.measures
            check_capacity(max(*result.measures[:, 0], result.count << BITS))
            result.waves += part.waves
        return result

    def copy(self) -> Totals:
        """The same integers in arrays of their own."""
        return Totals(self.count, self.n_invalid, self.waves.copy(), self.measures.copy())

    def __add__(self, other: Totals) -> Totals:
        return self._combine(other, 1)

    def __sub__(self, other: Totals) -> Totals:
        return self._combine(other, -1)

    def is_sound(self, spec: SketchSpec) -> bool:
        """Whether rows could have left these integers, as far as that is cheap to see: O(m + d^2).

        What is checked holds for all rows, for sums of what is sound, and for differences that
        leave rows (``docs/format.md``). Not all that is impossible is found; but weights are
        positive where rows are, and means, variances and z are numbers to work with.
        """
        weights = self.measures[:, 0]
        is_in_range = (
            0 <= self.count < _LARGEST
            and 0 <= self.n_invalid < _LARGEST
            and all(0 <= weight < _LARGEST for weight in weights)
        )
        if not is_in_range or (self.count == 0 and self.measures.any()):
            return False
        u = self.count + (weights[0] >> BITS)
        exponents = (0, spec.tilt_exponent)
        return (
            all(
                _is_sound_measure(measure, u, exponent, spec)
                for measure, exponent in zip(self.measures, exponents, strict=False)
            )
            and _are_sound_waves(self, u)
            and _is_sound_tilt(self, u, spec)
        )

    def _combine(self, other: Totals, sign: int) -> Totals:
        measures = self.measures + sign * other.measures
        check_capacity(max(*measures[:, 0], (self.count + sign * other.count) << BITS))
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


def _are_sound_waves(totals: Totals, u: int) -> bool:
    """A row adds a point of the disk whose radius is its weight, rounded in both parts."""
    weight = int(totals.measures[-1, 0])
    if int(totals.waves.max()) > weight or int(totals.waves.min()) < -weight:
        return False
    return bool(np.hypot(*totals.waves.astype(np.float64)).max() <= 1.001 * weight + 2.0 * u)


def _is_sound_tilt(totals: Totals, u: int, spec: SketchSpec) -> bool:
    """Tilts are from 1/2 to the cap, and rounded: weights and squares, too, lie so."""
    if spec.tilt is None:
        return True
    plain, tilted, cap = totals.measures[0, 1], totals.measures[1, 1], 2**spec.tilt_exponent
    if plain > 2 * tilted + 3 * u or tilted > cap * plain + (2 * cap + 1) * u:
        return False
    squares, weighted = (_squares(measure, spec) for measure in totals.measures)
    is_low, is_high = squares > 8 * (weighted + u), weighted > 4 * cap * (squares + u)
    return not bool(is_low.any() or is_high.any())


def _squares(measure: WideArray, spec: SketchSpec) -> WideArray:
    """Those of each column, among the products."""
    d, products = spec.n_features, measure[2 + 3 * spec.n_features :]
    k = np.arange(d)
    return products[k * d - k * (k - 1) // 2] if spec.has_full_covariance else products


def _is_sound_measure(measure: WideArray, u: int, exponent: int, spec: SketchSpec) -> bool:
    """Each weight against the other, sums within reach, products as of real numbers."""
    d, (W, F) = spec.n_features, measure[:2]
    S, R, Q = measure[2 : 2 + 3 * d].reshape(3, d)
    unit = 2 ** (WEIGHT_BITS - BITS + exponent)
    if F < 0 or abs(W * unit - F) > u * unit:
        return False
    rests = max(abs(R).max(), abs(Q).max())
    sums = abs(S * 2**LIMB_BITS + R).max()
    in_reach = F * 2 ** (_REACH_BITS + LIMB_BITS - WEIGHT_BITS) + u * 2**9  # float64 rounds F x'
    if rests > u * 2 ** (LIMB_BITS - 1) or sums > in_reach:
        return False
    return _are_sound_products(measure, S * 2**LIMB_BITS + Q, u, spec)


def _are_sound_products(measure: WideArray, sums: WideArray, u: int, spec: SketchSpec) -> bool:
    """Squares are positive and within reach; Cauchy and Schwarz hold, but for rounding."""
    d, F, squares = spec.n_features, measure[1], _squares(measure, spec)
    largest = F * 2 ** (2 * _REACH_BITS - WEIGHT_BITS) + u * 2 ** (_REACH_BITS + 3)
    if squares.min() < 0 or squares.max() > largest:
        return False
    rounded = np.maximum(abs(sums) - u * 2**9, 0)
    if (rounded**2 * 2 ** (WEIGHT_BITS - 2 * LIMB_BITS) > (F + u) * (2 * squares + u)).any():
        return False
    if not spec.has_full_covariance:
        return True
    (i, j), products = np.triu_indices(d), measure[2 + 3 * d :]
    return not bool((squares[i] * squares[j] < products**2).any())


class MomentSums:
    """Moments of many calls, in int64 limbs that are folded into wide integers in time.

    ``is_partial`` says whether the rows have weights of their own: then what rounding left
    of their sums is kept apart as well.
    """

    def __init__(self, spec: SketchSpec, *, is_partial: bool) -> None:
        d = spec.n_features
        self._limbs = np.zeros((3, n_wide(spec) - 2 - d), dtype=np.int64)
        self._d, self._is_partial, self._n_rows = d, is_partial, 0

    def add(self, limbs: IntArray, n_rows: int, measure: WideArray) -> None:
        """Add the moments of a few rows; sometimes write them to ``measure``."""
        self._limbs += limbs
        self._n_rows += n_rows
        if self._n_rows >= MOMENT_ROWS:
            self.fold(measure)

    def add_times(self, limbs: IntArray, measure: WideArray, times: int) -> None:
        """Write the moments of a few rows to ``measure``, so many times."""
        self.fold(measure)
        self._limbs += limbs
        self.fold(measure, times)

    def fold(self, measure: WideArray, times: int = 1) -> None:
        """Write all that is pending to ``measure``, so many times."""
        d, sums = self._d, wide(self._limbs) * times
        measure[2 : 2 + 2 * d] += sums[: 2 * d]
        if self._is_partial:
            measure[2 + 2 * d : 2 + 3 * d] += sums[d : 2 * d]
        measure[2 + 3 * d :] += sums[2 * d :]
        self._limbs[:] = 0
        self._n_rows = 0


def wide(limbs: IntArray) -> WideArray:
    """Python integers from limbs."""
    low, middle, high = limbs.astype(object)
    result: WideArray = low + middle * 2**LIMB_BITS + high * 2 ** (2 * LIMB_BITS)
    return result
