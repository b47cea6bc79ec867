"""The integers of a sketch, and how rows add to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sketchshift._text import column_in_words
from sketchshift._typing import BoolArray, FloatArray, IntArray, RealArray
from sketchshift.data import Block
from sketchshift.errors import DataError, InvalidRowsError
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, LIMB_BITS, MOMENT_ROWS, Accumulator, Kernel

__all__ = [
    "CAPACITY_BITS",
    "WEIGHT_BITS",
    "MomentSums",
    "RowAdder",
    "Totals",
    "WideArray",
    "check_capacity",
    "clip_rows",
    "fine_weight",
    "make_accumulator",
    "n_measures",
    "n_wide",
    "not_finite",
    "split_invalid",
]

# The integers of a sketch while rows come in.
#
# A *measure* is a row of wide integers: the total weight as the waves see it, and once more in
# finer steps; the sums of the columns; what rounding left of these, over all rows and over the
# rows of partial weight; the sums of the products. There is one of the rows as they are and,
# with a tilt, one of the rows times their tilt. Python's own integers hold them, so they never
# overflow.
#
# Symbols
# -------
# u         rows that were added, a whole weight counted as often as it says
# W, F      weight, fine weight (2**-22 and 2**-52)
# S, R, Q   sums, their rests and those of rows of partial weight (1 and 2**-20 steps)
# P         products (squared steps)

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


# Rows that cannot be sketched: the sentence that names them, or their number.

_SHOWN = 5


def split_invalid(
    block: Block,
    rows: FloatArray,
    is_valid: BoolArray,
    spec: SketchSpec,
    columns: tuple[str, ...] | None,
    *,
    skip: bool,
) -> IntArray:
    """Indices of the valid rows, or an exception naming the others.

    Rows out of reach are always refused: leaving them out would change what the sketch
    means. Rows with NaN or infinity, be it their weight, are left out when ``skip``.
    """
    is_finite = np.asarray(np.isfinite(block.values).all(axis=1))
    if block.weights is not None:
        is_finite &= np.isfinite(block.weights)
    is_far = is_finite & ~is_valid
    if is_far.any():
        at = int(np.argmax(is_far))
        k, norm = int(np.argmax(np.abs(rows[at]))), math.hypot(*rows[at].tolist())
        column = column_in_words(k, columns)
        msg = (
            f"row {block.first_row + at} of {block.source} lies too far out: after "
            f"normalisation its norm is {norm:.4g}, mostly from {column}, and this spec "
            f"reaches {spec.reach:.4g}. Leave the row out if it is broken; otherwise plan on a "
            "sample that has such rows, or choose center and scale nearer to the data."
        )
        raise InvalidRowsError(msg)
    if not skip:
        raise not_finite(block, is_finite, columns)
    return np.flatnonzero(is_valid)


def not_finite(
    block: Block, is_finite: BoolArray, columns: tuple[str, ...] | None
) -> InvalidRowsError:
    """The exception that names the rows of a block that are not finite."""
    bad, offset = np.flatnonzero(~is_finite), block.first_row
    named = ", ".join(str(offset + i) for i in bad[:_SHOWN])
    more = (
        f" and {len(bad) - _SHOWN} more of the {len(is_finite)} rows around it"
        if len(bad) > _SHOWN
        else ""
    )
    msg = (
        f"rows with missing or infinite values cannot be sketched: row {offset + bad[0]} of "
        f"{block.source} has {_fault(block, bad[0], columns)} (such rows: {named}{more}; the first "
        'row is 0). Clean the data, or leave such rows out with on_invalid="skip" '
        "(--on-invalid skip)."
    )
    return InvalidRowsError(msg)


def _fault(block: Block, row: int, columns: tuple[str, ...] | None) -> str:
    is_bad = ~np.isfinite(block.values[row])
    if block.weights is not None and not is_bad.any():
        return f"weight {block.weights[row]}"
    k = int(np.argmax(is_bad))
    return f"{block.values[row, k]} in {column_in_words(k, columns)}"


# From rows to integers: normalise, check, weigh, accumulate.
#
# The one place that says what a row adds to a sketch. A weight w is taken apart into its
# whole part and its fraction: a row of weight 2.5 adds its integers twice and once more those
# of weight 0.5. So whole weights are the same as repeated rows, bit for bit, and no product
# of a weight ever leaves the registers' range.

_TILE = 192  # rows that fill the kernels' tiles, whatever their height


def make_accumulator(spec: SketchSpec, kernel: Kernel) -> Accumulator:
    """The kernel's accumulator for the frequencies of a spec."""
    frequencies = spec.frequencies
    if frequencies.structure is None:
        return kernel.dense(frequencies.turns)
    return kernel.structured(frequencies.structure.signs, frequencies.structure.radii)


class RowAdder:
    """Adds blocks of rows to totals of its own; one for each thread.

    Parameters
    ----------
    spec : SketchSpec
        What is summed.
    kernel : Kernel
        Where it is summed.
    accumulate : Accumulator
        The kernel's accumulator for the spec's frequencies; threads may share it.
    columns : tuple of str or None
        Names for messages.
    skip_invalid : bool
        Leave rows with NaN or infinity out, be it their weight, and count them, instead of
        refusing them.
    """

    def __init__(
        self,
        spec: SketchSpec,
        kernel: Kernel,
        accumulate: Accumulator,
        *,
        columns: tuple[str, ...] | None = None,
        skip_invalid: bool = False,
    ) -> None:
        self._spec, self._kernel, self._accumulate = spec, kernel, accumulate
        self._columns, self._skip_invalid = columns, skip_invalid
        self._totals = Totals.zero(spec)
        step = max(1, kernel.chunk // spec.n_features // _TILE) * _TILE
        step = step if spec.n_features <= kernel.chunk else 16  # very wide rows: a few at a time
        step = min(step, MOMENT_ROWS)
        self._rows, self._norms = kernel.empty((step, spec.n_features)), kernel.empty((step,))
        self._narrow = np.empty((step, spec.n_features), dtype=np.float32)
        self._moments = {
            (i, is_partial): MomentSums(spec, is_partial=is_partial)
            for i in range(len(self._totals.measures))
            for is_partial in (False, True)
        }

    def totals(self) -> Totals:
        """What the rows so far add up to."""
        for (i, _), sums in self._moments.items():
            sums.fold(self._totals.measures[i])
        return self._totals

    def take(self) -> Totals:
        """What the rows so far add up to, and begin anew."""
        taken, self._totals = self.totals(), Totals.zero(self._spec)
        return taken

    def add(self, block: Block) -> None:
        """Add the rows of a block; raises before anything of a bad chunk is added."""
        d = self._spec.n_features
        if block.values.shape[1] != d:
            msg = (
                f"{block.source} has {block.values.shape[1]} columns, and the spec has "
                f"n_features={d}. Select the columns, or make a spec for this data."
            )
            raise DataError(msg)
        if self._spec.origin is not None and block.weights is not None:
            msg = (
                f"{block.source} comes with weights, and the spec is for private releases, where "
                "every row counts 1. Leave the weights out."
            )
            raise DataError(msg)
        step = len(self._norms)
        dtype = np.float32 if block.values.dtype == np.float32 else np.float64
        for first in range(0, len(block.values), step):
            X = np.ascontiguousarray(block.values[first : first + step], dtype=dtype)
            weights = None if block.weights is None else block.weights[first : first + step]
            self._add_chunk(X, weights, block, first)

    def _add_chunk(
        self, X: RealArray, weights: FloatArray | None, block: Block, first: int
    ) -> None:
        spec, totals = self._spec, self._totals
        rows, squared_norms = self._rows[: len(X)], self._norms[: len(X)]
        self._kernel.normalise(X, spec.center_vector, spec.per_unit, rows, squared_norms)
        is_valid = squared_norms < spec.reach * spec.reach  # False for NaN, too
        if spec.origin is not None or weights is not None or not is_valid.all():
            rows, squared_norms, is_valid = map(
                self._kernel.on_host, (rows, squared_norms, is_valid)
            )
        if spec.origin is not None:
            self._add_private(rows, squared_norms, spec.origin.radius)
            return
        if weights is not None:
            is_valid &= np.isfinite(weights)
        if not is_valid.all():
            chunk = Block(X, weights, block.source, block.first_row + first)
            keep = split_invalid(
                chunk, rows, is_valid, spec, self._columns, skip=self._skip_invalid
            )
            totals.n_invalid += len(X) - len(keep)
            rows, squared_norms = rows[keep], squared_norms[keep]
            weights = None if weights is None else weights[keep]
        else:
            keep = np.arange(len(X))
        if weights is not None:
            check_weights(weights, keep, block.source, block.first_row + first)
        totals.count += len(rows)
        tilts = None if spec.tilt is None else spec.tilt(squared_norms)
        if weights is None:
            self._add(rows, tilts, None, 0)
            return
        check_capacity(totals.measures[0, 0] + int(weights.sum() * 2**BITS))
        for chosen, shares, digit in _digits(weights):
            self._add(rows[chosen], None if tilts is None else tilts[chosen], shares, digit)

    def _add_private(self, rows: FloatArray, squared_norms: FloatArray, radius: float) -> None:
        """Add rows, each judged alone: no error and no number tells of one of them."""
        clipped = clip_rows(rows, squared_norms, radius)
        self._totals.count += len(clipped)
        self._add(clipped, None, None, 0)

    def _add(
        self, rows: FloatArray, tilts: FloatArray | None, shares: FloatArray | None, digit: int
    ) -> None:
        """Add rows of weights ``shares`` (None: 1), 2**digit times."""
        if not len(rows):
            return
        tilted = tilts if shares is None or tilts is None else tilts * shares
        factors = [shares] if tilts is None else [shares, tilted]
        for i, f in enumerate(factors):
            self._add_moments(rows, f, i, digit)
        last, exponent = factors[-1], self._spec.tilt_exponent
        weights = np.ones_like(rows[:, 0], dtype=np.float32)
        if last is not None:
            weights = (last * 2.0**-exponent).astype(np.float32)
        narrow: RealArray = rows
        if self._spec.precision == "float32":
            narrow = self._narrowed(rows)
        waves = self._totals.waves if digit == 0 else np.zeros_like(self._totals.waves)
        self._accumulate(narrow, weights, waves)
        if digit:
            self._totals.waves += waves << digit

    def _narrowed(self, rows: FloatArray) -> RealArray:
        """Rows as float32; on the processor in a buffer that is in cache already."""
        if not isinstance(rows, np.ndarray):
            return rows.astype(np.float32)
        narrow = self._narrow[: len(rows)]
        narrow[:] = rows
        return narrow

    def _add_moments(
        self, rows: FloatArray, factors: FloatArray | None, i: int, digit: int
    ) -> None:
        spec, measure = self._spec, self._totals.measures[i]
        weight, fine = len(rows) << BITS, len(rows) << WEIGHT_BITS
        if factors is not None:
            exponent = spec.tilt_exponent if i == 1 else 0
            narrow = (factors * 2.0**-exponent).astype(np.float32).astype(np.float64)
            weight = int(np.rint(narrow * 2.0**BITS).sum())  # as a frequency of zero would add
            fine = fine_weight(factors)
        measure[0] += weight << digit
        measure[1] += fine << digit
        limbs: IntArray = self._kernel.moments(
            rows, factors, spec.moment_unit, full=spec.has_full_covariance
        )
        sums = self._moments[i, factors is not None]
        if digit:
            sums.add_times(limbs, measure, 2**digit)
        else:
            sums.add(limbs, len(rows), measure)


def clip_rows(rows: FloatArray, squared_norms: FloatArray, radius: float) -> FloatArray:
    """Rows moved to the nearest point of a ball around 0; those that are not finite are dropped."""
    is_finite = np.isfinite(squared_norms)
    if not is_finite.all():
        rows, squared_norms = rows[is_finite], squared_norms[is_finite]
    outside = squared_norms > radius * radius
    if outside.any():
        rows = rows.copy()
        rows[outside] *= (radius / np.sqrt(squared_norms[outside]))[:, None]
    return rows


def check_weights(weights: FloatArray, rows: IntArray, source: str, first_row: int) -> None:
    """Refuse weights that are negative, not finite, or too large to be held."""
    is_bad = ~((weights >= 0) & (weights < 2.0**CAPACITY_BITS))
    if is_bad.any():
        at = int(np.argmax(is_bad))
        msg = (
            f"weights must be numbers from 0 to 2**{CAPACITY_BITS}: row {first_row + rows[at]} of "
            f"{source} has weight {weights[at]}. To take rows away, use `remove` or subtract."
        )
        raise InvalidRowsError(msg)


def _digits(weights: FloatArray) -> Iterator[tuple[IntArray, FloatArray | None, int]]:
    """Rows, their shares (None: 1) and the power of two they count: sums up to the weights."""
    whole = np.floor(weights)
    fractions = weights - whole
    partial = np.flatnonzero(fractions)
    yield partial, fractions[partial], 0
    digits = whole.astype(np.int64)
    for digit in range(int(digits.max(initial=0)).bit_length()):
        yield np.flatnonzero(digits >> digit & 1), None, digit
