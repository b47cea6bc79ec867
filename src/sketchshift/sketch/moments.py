"""Moments: weights, sums and products of the columns, from which mean and covariance are exact.

Symbols
-------
d         columns
u         rows that were added, a whole weight counted as often as it says
W, F      weight, fine weight (2**-22 and 2**-52)
S, R, Q   sums, their rests and those of rows of partial weight (1 and 2**-20 steps)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift.data.source import spans
from sketchshift.features import SketchSpec
from sketchshift.kernels import (
    BITS,
    LIMB_BITS,
    MOMENT_BITS,
    MOMENT_ROWS,
    Kernel,
    Runs,
    select_kernel,
)
from sketchshift.sketch.digits import Digits, carry, lanes_of, shifted, to_floats
from sketchshift.sketch.family import Family, FamilyAdder, SlotSums, WeightedRows
from sketchshift.sketch.totals import WEIGHT_BITS, AnyTotals, Totals

__all__ = ["MomentFamily", "Moments"]

_REACH_BITS = 40  # a row of weight 1 lies within 2**_REACH_BITS steps of the center
_DIGITS = 4
_CLOSE = 1.0 + 1e-9
_SLOTS_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Moments:
    """What the moments of a slice say of its rows, in the units of the data, each rounded once.

    Rows of weight 1 enter sums and products by the same rounded numbers; rows of partial weight
    enter covariances by sums with their rests, since their products are of other numbers, those
    times the root of the weight. All is NaN where nothing has weight.

    Attributes
    ----------
    spec : SketchSpec
        Of the slice.
    digits : int32 array of shape (integers, 4)
        Weight and finer weight, then d sums, rests and partial rests, and the products.
    """

    spec: SketchSpec
    digits: Digits

    @cached_property
    def weight(self) -> float:
        """Of the rows within the reach of waves."""
        fine = select_kernel().central(self.digits[None, 1:2])
        return float(fine[0, 0]) * 2.0**-WEIGHT_BITS

    @cached_property
    def mean(self) -> FloatArray:
        """Of the rows, shape (d,)."""
        spec = self.spec
        factor = spec.rows.unit * 2.0 ** (WEIGHT_BITS - MOMENT_BITS - LIMB_BITS)
        quotients = self._central(self._sums[0], factor)
        return np.asarray(spec.rows.center_vector + spec.rows.scale_vector * quotients)

    @cached_property
    def variance(self) -> FloatArray:
        """Of the columns, shape (d,)."""
        i, j = self._pairs
        values = self._products[i == j]
        return np.asarray(np.maximum(values, 0.0))  # rounded weights may leave -1e-10 for 0

    @cached_property
    def covariance(self) -> FloatArray:
        """Of the columns, shape (d, d); NaN off the diagonal where squares alone are kept."""
        d, (i, j) = self.spec.n_features, self._pairs
        covariance = np.full((d, d), np.nan)
        covariance[i, j] = covariance[j, i] = self._products
        np.fill_diagonal(covariance, self.variance)
        return covariance

    @property
    def _pairs(self) -> tuple[IntArray, IntArray]:
        return _pairs(self.spec.n_features, self.spec.has_full_covariance)

    @cached_property
    def _sums(self) -> Digits:
        """Sums with their rests, and with those of rows of partial weight, shape (2, d, 4)."""
        d = self.spec.n_features
        sums, *rests = self.digits[2 : 2 + 3 * d].reshape(3, d, _DIGITS)
        return carry(shifted(sums, _DIGITS, LIMB_BITS) + rests, _DIGITS)

    @cached_property
    def _products(self) -> FloatArray:
        """Covariances of columns, from their products p and sums s: (W p - s s^T) / W^2.

        In one unit: W counts 2**WEIGHT_BITS a row, s 2**LIMB_BITS a step, p one a squared step.
        """
        spec, (i, j) = self.spec, self._pairs
        scale = spec.rows.scale_vector
        pairs = [self._sums[1][None, k, None] for k in (i, j)]
        factor = spec.rows.unit**2 * 2.0 ** (WEIGHT_BITS - 2 * MOMENT_BITS)
        bits = WEIGHT_BITS - 2 * LIMB_BITS
        values = self._central(self.digits[2 + 3 * spec.n_features :], factor, *pairs, bits)
        return np.asarray(values * scale[i] * scale[j])

    def _central(self, products: Digits, factor: float, *others: Any) -> FloatArray:
        """What the kernel makes of products (e, 4) and the finer weight, times a power of two."""
        values = select_kernel().central(products[None], self.digits[1:2], *others)[0]
        return np.asarray(values * (factor if self.weight else np.nan))


@lru_cache(maxsize=64)
def _pairs(d: int, has_full_covariance: bool) -> tuple[IntArray, IntArray]:
    """The columns of each product."""
    return np.triu_indices(d) if has_full_covariance else (np.arange(d), np.arange(d))


class MomentFamily(Family):
    """First and second moments of the rows.

    The weight as the waves see it, in steps of 2**-BITS, and in steps of 2**-WEIGHT_BITS; if
    moments are kept, sums of the columns, in whole steps of moment_unit / 2**MOMENT_BITS; what
    rounding left of these, in steps of 2**-LIMB_BITS of them, of all rows and of rows of partial
    weight; and products of the columns a <= b, row by row, in squared steps; beyond 64 columns the
    squares alone.
    """

    name = "moments"
    n_digits = _DIGITS

    def __init__(self, spec: SketchSpec) -> None:
        d = spec.n_features if spec.has_moments else 0
        self.shape = (2 + 3 * d + (d * (d + 1) // 2 if spec.has_full_covariance else d),)
        self._spec = spec

    @property
    def groups(self) -> tuple[int, ...]:
        """Weight, fine weight, sums, rests, partial rests, products."""
        d = self._spec.n_features if self._spec.has_moments else 0
        return 1, 1, d, d, d, self.n_integers - 2 - 3 * d

    def adders(self, kernel: Kernel) -> Callable[[], FamilyAdder]:
        """Adders that share nothing."""
        return lambda: _MomentAdder(self._spec, kernel, self.n_integers)

    def decode(self, totals: AnyTotals) -> Moments:
        """Weight, mean and covariance of the rows."""
        assert isinstance(totals, Totals)
        return Moments(self._spec, totals.dense[self.name][0].reshape(-1, _DIGITS))

    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """Each weight against the other, sums within reach, products as of real numbers."""
        spec = self._spec
        digits = totals.dense[self.name]
        weight, fine = digits[:, :_DIGITS], digits[:, _DIGITS : 2 * _DIGITS]
        one = 2.0 ** (WEIGHT_BITS - BITS)
        apart = carry(shifted(weight, _DIGITS, WEIGHT_BITS - BITS) - fine, _DIGITS)
        numbers = to_floats(digits, _DIGITS)
        F = numbers[:, 1]
        sound = (F >= 0) & ~weight[:, 2:].any(axis=1)
        sound &= np.abs(to_floats(apart, _DIGITS)[:, 0]) <= u * one
        if not spec.has_moments:
            return np.asarray(sound)
        d, limb, count = spec.n_features, 2.0**LIMB_BITS, u[:, None]
        S, R, Q = (numbers[:, 2 + i * d : 2 + (i + 1) * d] for i in range(3))
        P, F = numbers[:, 2 + 3 * d :], F[:, None]
        i, j = _pairs(d, spec.has_full_covariance)
        squares = P[:, i == j]
        is_rest = np.maximum(np.abs(R), np.abs(Q)) <= count * 2.0 ** (LIMB_BITS - 1)
        # float64 rounds F x'
        reach = F * 2.0 ** (_REACH_BITS + LIMB_BITS - WEIGHT_BITS) + count * 2**9
        is_rest &= np.abs(S * limb + R) <= reach * _CLOSE
        largest = F * 2.0 ** (2 * _REACH_BITS - WEIGHT_BITS) + count * 2.0 ** (_REACH_BITS + 3)
        is_rest &= (squares >= 0) & (squares <= largest * _CLOSE)
        # Cauchy and Schwarz hold, but for rounding
        rounded = np.maximum(np.abs(S * limb + Q) - count * 2**9, 0)
        bound = (F + count) * (2.0 * squares + count)
        is_rest &= rounded**2 * 2.0 ** (WEIGHT_BITS - 2 * LIMB_BITS) <= bound * _CLOSE
        sound &= is_rest.all(axis=1)
        if P.shape[1] > d:
            sound &= (squares[:, i] * squares[:, j] * _CLOSE >= P**2).all(axis=1)
        return np.asarray(sound)


class _MomentAdder:
    """Moments of many calls, in int64 limbs that become digits in time."""

    def __init__(self, spec: SketchSpec, kernel: Kernel, size: int) -> None:
        self._spec, self._kernel = spec, kernel
        self._size, self._d = size, spec.n_features if spec.has_moments else 0
        n_sums = self._size - 2 - self._d
        # weight, whole weights, fractions in steps of 2**-26 and 2**-52, rows
        self._weights = SlotSums(5)
        # of rows of weight 1, and of rows of partial weight, whose rests are kept apart as well
        self._limbs = SlotSums(3, n_sums), SlotSums(3, n_sums)
        self._lanes = SlotSums(_DIGITS * self._size)
        self._has_partial = self._has_lanes = False

    @property
    def n_bytes(self) -> int:
        """See :class:`FamilyAdder`."""
        return sum(own.n_bytes for own in (self._weights, *self._limbs, self._lanes))

    def add(self, rows: WeightedRows) -> None:
        """Add the moments of the rows to what is pending."""
        runs, is_partial, added = rows.runs, rows.shares is not None, self._weights_of(rows)
        weights = self._weights.reach(rows.n_slots)
        if (weights[runs.slots, 4] + runs.lengths).max() > MOMENT_ROWS:
            self._write(rows.n_slots)
            weights = self._weights.reach(rows.n_slots)
        if rows.digit:
            limbs = np.zeros((len(runs.slots), *self._limbs[0].shape), dtype=np.int64)
            self._add_limbs(rows, limbs, Runs(runs.starts, np.arange(len(runs.slots))))
            once = carry(self._lanes_of(added, limbs, is_partial=is_partial), _DIGITS)
            times = carry(shifted(once, _DIGITS, rows.digit), _DIGITS)
            self._lanes.reach(rows.n_slots)[runs.slots] += times
            self._has_lanes = True
            return
        weights[runs.slots] += added
        self._add_limbs(rows, self._limbs[is_partial].reach(rows.n_slots), runs)
        self._has_partial |= is_partial

    def _add_limbs(self, rows: WeightedRows, limbs: IntArray, runs: Runs) -> None:
        if self._d:
            unit, full = self._spec.rows.unit, self._spec.has_full_covariance
            self._kernel.moments(rows.values, rows.shares, unit, limbs, runs, full=full)

    @staticmethod
    def _weights_of(rows: WeightedRows) -> IntArray:
        """Weights and rows of each run, shape (runs, 5)."""
        runs, found = rows.runs, np.zeros((len(rows.runs.slots), 5), dtype=np.int64)
        found[:, 4] = runs.lengths
        if rows.shares is None:
            found[:, 0], found[:, 1] = runs.lengths << BITS, runs.lengths
            return found
        narrow = rows.shares.astype(np.float32).astype(np.float64)
        scaled = rows.shares * 2.0 ** (WEIGHT_BITS // 2)
        high = np.floor(scaled)
        low = np.rint((scaled - high) * 2.0 ** (WEIGHT_BITS // 2))
        each = np.rint(narrow * 2.0**BITS), high, low  # the first as a frequency of zero would add
        for column, numbers in zip((0, 2, 3), each, strict=True):
            whole = numbers.astype(np.int64)
            found[:, column] = np.add.reduceat(whole, runs.starts[:-1])
        return found

    def _lanes_of(self, weights: IntArray, limbs: IntArray, *, is_partial: bool) -> IntArray:
        """Weights (n, 5) and limbs (n, 3, sums) as digits that are not in their range."""
        weight, whole, high, low, _ = weights.T[:, :, None]
        fine = [(whole, WEIGHT_BITS), (high, WEIGHT_BITS // 2), (low, 0)]
        sums = lanes_of([(limbs[:, i], i * LIMB_BITS) for i in range(3)], _DIGITS)
        plain, rests, products = np.split(sums, [_DIGITS * self._d, 2 * _DIGITS * self._d], axis=1)
        of_partial = rests if is_partial else np.zeros_like(rests)
        of_weights = lanes_of([(weight, 0)], _DIGITS), lanes_of(fine, _DIGITS)
        return np.concatenate([*of_weights, plain, rests, of_partial, products], axis=1)

    def _written(self, n: int) -> Iterator[tuple[slice, IntArray]]:
        """What is pending of n slots as digits that are not in their range; begin anew."""
        weights, plain = self._weights.take_sums(n), self._limbs[0].take_sums(n)
        partial = self._limbs[1].take_sums(n) if self._has_partial else None
        self._has_partial = False
        for span in spans(n, _SLOTS_AT_ONCE):
            lanes = self._lanes_of(weights[span], plain[span], is_partial=False)
            if partial is not None:
                none = np.zeros_like(weights[span])
                lanes += self._lanes_of(none, partial[span], is_partial=True)
            yield span, lanes

    def _write(self, n: int) -> None:
        """Add all that is pending to the digits."""
        lanes = self._lanes.reach(n)
        for span, pending in self._written(n):
            lanes[span] += carry(pending, _DIGITS)  # a lane is nearly full after a write
        self._has_lanes = True

    def take(self, n: int) -> Digits:
        """See :class:`FamilyAdder`."""
        before = self._lanes.take_sums(n) if self._has_lanes else None
        digits = np.empty((n, _DIGITS * self._size), dtype=np.int32)
        for span, lanes in self._written(n):
            digits[span] = carry(lanes if before is None else lanes + before[span], _DIGITS)
        self._has_lanes = False
        return digits
