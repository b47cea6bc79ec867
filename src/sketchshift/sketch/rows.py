"""From rows to integers: normalise, check, weigh, accumulate.

The one place that says what a row adds to a sketch. A weight w is taken apart into its
whole part and its fraction: a row of weight 2.5 adds its integers twice and once more those
of weight 0.5. So whole weights are the same as repeated rows, bit for bit, and no product
of a weight ever leaves the registers' range.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift.data import Block
from sketchshift.errors import DataError, InvalidRowsError
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, MOMENT_ROWS, Accumulator, Kernel
from sketchshift.sketch.invalid import split_invalid
from sketchshift.sketch.totals import (
    CAPACITY_BITS,
    WEIGHT_BITS,
    MomentSums,
    Totals,
    check_capacity,
    fine_weight,
)

__all__ = ["RowAdder", "clip_rows", "make_accumulator"]

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
