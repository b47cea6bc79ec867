"""The integers of a sketch, and how rows add to them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sketchshift._text import column_in_words
from sketchshift._typing import FloatArray, IntArray, RealArray
from sketchshift.data import Block
from sketchshift.data.source import not_finite
from sketchshift.errors import DataError, InvalidRowsError
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, CELL_WEIGHT_BITS, LIMB_BITS, MOMENT_ROWS, Kernel
from sketchshift.kernels.contract import G2, Accumulator

__all__ = [
    "CAPACITY_BITS",
    "CELL_PARTS",
    "LANDMARK_PARTS",
    "PARTS",
    "WEIGHT_BITS",
    "AdderFactories",
    "Measure",
    "MomentPart",
    "Moments",
    "Part",
    "PartAdder",
    "RowAdder",
    "WavePart",
    "WeightedRows",
    "Zone",
    "check_capacity",
    "check_weights",
    "chunk_rows",
    "clip_rows",
    "make_accumulator",
    "parts_of",
    "wide_from_bytes",
    "wide_to_bytes",
]

# A *measure* is what rows add up to: how many they are, and named families of integers, its
# *parts*. Each part is defined once, below: its shape, how rows add to it, what its integers can
# be, how they are stored, and whether a private release may hold them. Everything else (threads,
# slices, merges, files, checkpoints, releases) goes through all parts without knowing them.
#
# Symbols
# -------
# d, m      columns, frequencies
# u         rows that were added, a whole weight counted as often as it says
# W, F      weight, fine weight (2**-22 and 2**-52)
# S, R, Q   sums, their rests and those of rows of partial weight (1 and 2**-20 steps)
# P         products (squared steps)

WideArray = NDArray[np.object_]
"""Integers of Python, which never overflow."""

Integers = NDArray[Any]
"""The integers of a part: int64, or Python's own."""

CAPACITY_BITS = 40
"""A sketch holds a total weight below 2**CAPACITY_BITS: the int64 totals cannot overflow."""

WIDE_CAPACITY_BITS = 32
"""The same of a sketch with cells and axes."""

WEIGHT_BITS = 52
"""The finer total weight counts 2**-WEIGHT_BITS."""

_LARGEST = 2 ** (CAPACITY_BITS + BITS)
_REACH_BITS = 40  # a row of weight 1 lies within 2**_REACH_BITS steps of the center
_WEIGHT, _FINE_WEIGHT = 0, 1  # where the two weights stand among the integers of moments


class Zone(IntEnum):
    """Where a row lies: in a cell perhaps, in none, or beyond the reach of waves, too."""

    NEAR = 0
    OUTER = 1
    BEYOND = 2


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Some normalised rows of a chunk, each to be added 2**digit times with its share.

    Attributes
    ----------
    values : array of shape (n, d)
        x', where the kernel computes.
    coordinates : array of shape (n, p)
        The same along the axes of the spec; x' itself where it has none.
    shares : array of shape (n,) or None
        Weights up to 1; None where all are 1.
    digit : int
        Power of two.
    zone : Zone
        Where all of them lie.
    cells : int array of shape (n,) or None
        The nearest centers of rows that lie near enough to have one.
    """

    values: FloatArray
    coordinates: FloatArray
    shares: FloatArray | None
    digit: int
    zone: Zone
    cells: IntArray | None = None

    def outside(self, rows: IntArray, cells: IntArray) -> WeightedRows:
        """Some of the rows, which have a nearest center each and lie in no cell."""
        shares = None if self.shares is None else self.shares[rows]
        places = self.values[rows], self.coordinates[rows]
        return WeightedRows(*places, shares, self.digit, Zone.OUTER, cells)


class PartAdder(Protocol):
    """Adds rows to one part; one for each thread."""

    def add(self, rows: WeightedRows, integers: Integers) -> WeightedRows | None:
        """Add rows to the integers, now or by the next :meth:`flush`; those left for far rows."""

    def flush(self, integers: Integers) -> None:
        """Add all that is pending to the integers."""


AdderFactories = dict[str, Callable[[], PartAdder]]
"""What makes an adder for each part, by its name; threads share the tables behind it."""


class Part(ABC):
    """One family of integers in a measure: a definition that follows from the spec.

    Attributes
    ----------
    name : str
        Its key in :attr:`Measure.parts`.
    shape : tuple of int
        Of the array of its integers.
    is_wide : bool
        Whether these are Python's integers, of 16 bytes in a file; else int64. A row of weight 1
        must change an int64 by at most 2**BITS, so that none overflows.
    row_square : int or None
        The largest squared L2 norm of what one row of weight 1 adds. None keeps the part out
        of private releases.
    zones : frozenset of Zone
        Where rows lie that are added to this part.
    """

    name: str
    shape: tuple[int, ...]
    is_wide = False
    row_square: int | None = None
    zones = frozenset({Zone.NEAR, Zone.OUTER})

    @abstractmethod
    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """What makes adders, one for each thread, around tables that they share."""

    @abstractmethod
    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """Whether rows could have left these integers, beside the others of the measure."""

    def cut(self, integers: Integers) -> Integers:
        """Those integers that this part has too, where it belongs to a prefix of a spec."""
        return integers

    def zero(self) -> Integers:
        """The integers of no rows."""
        zeros = np.zeros(self.shape, dtype=np.int64)
        return zeros.astype(object) if self.is_wide else zeros

    @property
    def n_bytes(self) -> int:
        """Size in a file, where it is the same for all rows."""
        return math.prod(self.shape) * (16 if self.is_wide else 8)

    def to_bytes(self, integers: Integers) -> bytes:
        """The integers in their order, little endian, with signs."""
        return wide_to_bytes(integers) if self.is_wide else integers.astype("<i8").tobytes()

    def from_bytes(self, data: memoryview) -> tuple[Integers, int]:
        """What :meth:`to_bytes` gave, at the beginning of the data, and how many bytes that are."""
        n, own = self.n_bytes, data[: self.n_bytes]
        if len(own) < n:
            msg = f"the header announces {n} bytes of {self.name}, and there are {len(own)}."
            raise ValueError(msg)
        if not self.is_wide:
            return np.frombuffer(own, dtype="<i8").astype(np.int64).reshape(self.shape), n
        return wide_from_bytes(own).reshape(self.shape), n


def wide_to_bytes(integers: WideArray, width: int = 16) -> bytes:
    """Python's integers, of some bytes each, little endian, with signs."""
    return b"".join(n.to_bytes(width, "little", signed=True) for n in integers.ravel())


def wide_from_bytes(data: memoryview, width: int = 16) -> WideArray:
    """What :func:`wide_to_bytes` gave, in one dimension."""
    wide = np.empty(len(data) // width, dtype=object)
    wide[:] = [
        int.from_bytes(data[at : at + width], "little", signed=True)
        for at in range(0, len(data), width)
    ]
    return wide


class WavePart(Part):
    """Cosines and sines of the rows at each frequency: int64 of shape (2, m)."""

    name = "waves"

    def __init__(self, spec: SketchSpec) -> None:
        self._spec = spec
        self.shape = (2, spec.sketch_size)
        self.row_square = spec.sketch_size * G2

    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """Adders that share the kernel's tables of the frequencies."""
        accumulate = self.accumulator(kernel)
        return lambda: _WaveAdder(self._spec, kernel, accumulate)

    def accumulator(self, kernel: Kernel) -> Accumulator:
        """The kernel's function for the frequencies of the spec."""
        structure = self._spec.frequencies.structure
        if structure is None:
            return kernel.dense(self._spec.frequencies.turns)
        return kernel.structured(structure.signs, structure.radii)

    def cut(self, integers: Integers) -> Integers:
        """Those of the first frequencies."""
        return np.ascontiguousarray(integers[:, : self.shape[1]])

    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """A row adds a point of the disk whose radius is its weight, rounded in both parts."""
        weight = measure.weight
        if int(integers.max()) > weight or int(integers.min()) < -weight:
            return False
        return bool(np.hypot(*integers.astype(np.float64)).max() <= 1.001 * weight + 2.0 * u)


class _WaveAdder:
    def __init__(self, spec: SketchSpec, kernel: Kernel, accumulate: Any) -> None:
        self._accumulate, self._narrow = accumulate, None
        if spec.precision == "float32":
            shape = chunk_rows(spec, kernel), spec.n_coordinates
            self._narrow = np.empty(shape, dtype=np.float32)

    def add(self, rows: WeightedRows, integers: Integers) -> None:
        """Add the waves of the rows at once."""
        values: RealArray = rows.coordinates
        weights = np.ones_like(values[:, 0], dtype=np.float32)
        if rows.shares is not None:
            weights = rows.shares.astype(np.float32)
        if self._narrow is not None:
            values = self._narrowed(rows.coordinates, self._narrow)
        if rows.digit == 0:
            self._accumulate(values, weights, integers)
            return
        waves = np.zeros_like(integers)
        self._accumulate(values, weights, waves)
        integers += waves << rows.digit

    def flush(self, integers: Integers) -> None:
        """Nothing is ever pending."""

    @staticmethod
    def _narrowed(values: FloatArray, buffer: RealArray) -> RealArray:
        """Rows as float32; on the processor in a buffer that is in cache already."""
        if not isinstance(values, np.ndarray):
            return values.astype(np.float32)
        narrow = buffer[: len(values)]
        narrow[:] = values
        return narrow


@dataclass(frozen=True, eq=False)
class Moments:
    """The integers of moments by name; arrays are views, so that writing to them is lasting.

    Attributes
    ----------
    weight, fine_weight : int
        Total weight as the waves see it, in steps of 2**-BITS, and in steps of 2**-WEIGHT_BITS.
    sums : object array of shape (d,)
        Of the columns, in whole steps of moment_unit / 2**MOMENT_BITS.
    rests, partial_rests : object arrays of shape (d,)
        What rounding left of the sums, in steps of 2**-LIMB_BITS of these: of all rows, and of
        rows of partial weight.
    products : object array
        Of the columns a <= b, row by row, in squared steps; beyond 64 columns the squares alone.
    diagonal : int array of shape (d,)
        Where the squares of the columns stand among the products.
    """

    weight: int
    fine_weight: int
    sums: WideArray
    rests: WideArray
    partial_rests: WideArray
    products: WideArray
    diagonal: IntArray

    @staticmethod
    def size(spec: SketchSpec) -> int:
        """Number of integers: 2 weights and, if moments are kept, 3 d sums and rests, products."""
        d = spec.n_features
        if not spec.has_moments:
            return 2
        return 2 + 3 * d + (d * (d + 1) // 2 if spec.has_full_covariance else d)

    @classmethod
    def of(cls, integers: WideArray, spec: SketchSpec) -> Moments:
        """The names for integers as they stand in the array of the part."""
        d = spec.n_features if spec.has_moments else 0
        return cls(
            integers[_WEIGHT],
            integers[_FINE_WEIGHT],
            sums=integers[2 : 2 + d],
            rests=integers[2 + d : 2 + 2 * d],
            partial_rests=integers[2 + 2 * d : 2 + 3 * d],
            products=integers[2 + 3 * d :],
            diagonal=_diagonal(d, spec.has_full_covariance),
        )

    @property
    def squares(self) -> WideArray:
        """Those of each column among the products, as a copy."""
        return self.products[self.diagonal]

    def is_sound(self, u: int) -> bool:
        """Each weight against the other, sums within reach, products as of real numbers."""
        W, F, S, R, Q = self.weight, self.fine_weight, self.sums, self.rests, self.partial_rests
        unit = 2 ** (WEIGHT_BITS - BITS)
        if F < 0 or abs(W * unit - F) > u * unit:
            return False
        if not len(S):
            return True
        rests = max(abs(R).max(), abs(Q).max())
        sums = abs(S * 2**LIMB_BITS + R).max()
        in_reach = (
            F * 2 ** (_REACH_BITS + LIMB_BITS - WEIGHT_BITS) + u * 2**9
        )  # float64 rounds F x'
        if rests > u * 2 ** (LIMB_BITS - 1) or sums > in_reach:
            return False
        return self._are_sound_products(S * 2**LIMB_BITS + Q, u)

    def _are_sound_products(self, sums: WideArray, u: int) -> bool:
        """Squares are positive and within reach; Cauchy and Schwarz hold, but for rounding."""
        F, squares = self.fine_weight, self.squares
        largest = F * 2 ** (2 * _REACH_BITS - WEIGHT_BITS) + u * 2 ** (_REACH_BITS + 3)
        if squares.min() < 0 or squares.max() > largest:
            return False
        rounded = np.maximum(abs(sums) - u * 2**9, 0)
        if (rounded**2 * 2 ** (WEIGHT_BITS - 2 * LIMB_BITS) > (F + u) * (2 * squares + u)).any():
            return False
        if len(self.products) == len(squares):
            return True
        i, j = np.triu_indices(len(squares))
        return not bool((squares[i] * squares[j] < self.products**2).any())


@lru_cache(maxsize=64)
def _diagonal(d: int, has_full_covariance: bool) -> IntArray:
    k = np.arange(d)
    return k * d - k * (k - 1) // 2 if has_full_covariance else k


class MomentPart(Part):
    """First and second moments of the rows: see Moments."""

    name = "moments"
    is_wide = True

    def __init__(self, spec: SketchSpec) -> None:
        self.shape = (Moments.size(spec),)
        self._spec = spec

    def adders(self, kernel: Kernel) -> Callable[[], PartAdder]:
        """Adders that share nothing."""
        return lambda: _MomentAdder(self._spec, kernel)

    def is_sound(self, integers: Integers, measure: Measure, u: int) -> bool:
        """As moments of rows."""
        return Moments.of(integers, self._spec).is_sound(u)


class _MomentAdder:
    """Moments of many calls, in int64 limbs that are added to the wide integers in time."""

    def __init__(self, spec: SketchSpec, kernel: Kernel) -> None:
        self._spec, self._kernel = spec, kernel
        # of rows of weight 1, and of rows of partial weight, whose rests are kept apart as well
        n_sums = Moments.size(spec) - 2 - spec.n_features if spec.has_moments else 0
        limbs = np.zeros((3, n_sums), dtype=np.int64)
        self._pending, self._n_pending = (limbs, limbs.copy()), [0, 0]

    def add(self, rows: WeightedRows, integers: Integers) -> None:
        """Add the weights of the rows, and their moments to what is pending."""
        spec, digit, n, shares = self._spec, rows.digit, len(rows.values), rows.shares
        weight, fine = n << BITS, n << WEIGHT_BITS
        if shares is not None:
            narrow = shares.astype(np.float32).astype(np.float64)
            weight = int(np.rint(narrow * 2.0**BITS).sum())  # as a frequency of zero would add
            fine = _fine_weight(shares)
        integers[_WEIGHT] += weight << digit
        integers[_FINE_WEIGHT] += fine << digit
        if not spec.has_moments:
            return
        limbs: IntArray = self._kernel.moments(
            rows.values, shares, spec.moment_unit, full=spec.has_full_covariance
        )
        kind = int(shares is not None)
        if digit:
            self._write(limbs, integers, kind, 2**digit)
            return
        self._pending[kind][:] += limbs
        self._n_pending[kind] += n
        if self._n_pending[kind] >= MOMENT_ROWS:
            self.flush(integers)

    def flush(self, integers: Integers) -> None:
        """Add all that is pending to the wide integers."""
        for kind, limbs in enumerate(self._pending):
            if self._n_pending[kind]:
                self._write(limbs, integers, kind)
                limbs[:] = 0
                self._n_pending[kind] = 0

    def _write(self, limbs: IntArray, integers: Integers, kind: int, times: int = 1) -> None:
        d, moments = self._spec.n_features, Moments.of(integers, self._spec)
        low, middle, high = limbs.astype(object)
        wide = (low + middle * 2**LIMB_BITS + high * 2 ** (2 * LIMB_BITS)) * times
        moments.sums[:] += wide[:d]
        moments.rests[:] += wide[d : 2 * d]
        if kind:
            moments.partial_rests[:] += wide[d : 2 * d]
        moments.products[:] += wide[2 * d :]


def _fine_weight(shares: FloatArray) -> int:
    """The sum of rint(2**WEIGHT_BITS f), exactly."""
    scaled = shares * 2.0 ** (WEIGHT_BITS // 2)
    high = np.floor(scaled)
    low = np.rint((scaled - high) * 2.0 ** (WEIGHT_BITS // 2))
    return (int(high.astype(np.int64).sum()) << WEIGHT_BITS // 2) + int(low.astype(np.int64).sum())


def _waves(spec: SketchSpec) -> Part | None:
    return WavePart(spec) if spec.sketch_size else None


PARTS: list[Callable[[SketchSpec], Part | None]] = [_waves, MomentPart]
"""What makes each part that a spec asks for, or None, in the order of the file."""

CELL_PARTS: list[Callable[[SketchSpec], Part | None]] = []
"""What makes those that follow where a spec has cells: ``sketch.cells`` adds them."""

LANDMARK_PARTS: list[Callable[[SketchSpec], Part]] = []
"""The same where it has landmarks: ``sketch.landmarks`` adds one."""


def parts_of(spec: SketchSpec) -> list[Part]:
    """The parts of a measure: what is summed with a spec. Draws and allocates nothing."""
    makers = PARTS if spec.cells is None else [*PARTS, *CELL_PARTS]
    makers = makers if spec.landmarks is None else [*makers, *LANDMARK_PARTS]
    return [part for make in makers if (part := make(spec)) is not None]


@dataclass(eq=False)
class Measure:
    """What rows add up to: ``a + b`` of both, ``a - b`` without those of b.

    Attributes
    ----------
    count, n_invalid : int
        Rows added, rows left out.
    parts : dict of str to array
        The integers of each part that the spec has.
    """

    count: int
    n_invalid: int
    parts: dict[str, Integers]

    @classmethod
    def zero(cls, spec: SketchSpec) -> Measure:
        """The measure of no rows."""
        return cls(0, 0, {part.name: part.zero() for part in parts_of(spec)})

    @classmethod
    def total(cls, measures: Sequence[Measure]) -> Measure:
        """The sum of one or more."""
        result = measures[0].copy()
        for measure in measures[1:]:
            result.count += measure.count
            result.n_invalid += measure.n_invalid
            for name, integers in measure.parts.items():
                result.parts[name] += integers
            result._check_capacity()
        return result

    @property
    def waves(self) -> IntArray:
        """Cosines and sines, shape (2, m)."""
        return self.parts["waves"]

    @property
    def total_weight(self) -> float:
        """Sum of the rows' weights."""
        return float(self.parts["moments"][_FINE_WEIGHT] / 2**WEIGHT_BITS)

    @property
    def weight(self) -> int:
        """Total weight of the rows, in steps of 2**-BITS."""
        return int(self.parts["moments"][_WEIGHT])

    @property
    def total_units(self) -> int:
        """Total weight of the rows, far ones included, in steps of 2**-BITS."""
        far = self.parts.get("far")
        beyond = 0 if far is None else far[0].weight(Zone.BEYOND) >> CELL_WEIGHT_BITS - BITS
        return self.weight + int(beyond)

    @property
    def n_bytes(self) -> int:
        """Memory of the integers, about."""
        return sum(
            16 * integers.size if integers.dtype == object else integers.nbytes
            for integers in self.parts.values()
        )

    def copy(self) -> Measure:
        """The same integers in arrays of their own."""
        parts = {name: integers.copy() for name, integers in self.parts.items()}
        return Measure(self.count, self.n_invalid, parts)

    def prefix(self, spec: SketchSpec) -> Measure:
        """What is left of it with a prefix of its spec."""
        parts = {part.name: part.cut(self.parts[part.name]) for part in parts_of(spec)}
        return Measure(self.count, self.n_invalid, parts).copy()

    def __add__(self, other: Measure) -> Measure:
        return self._combine(other, 1)

    def __sub__(self, other: Measure) -> Measure:
        return self._combine(other, -1)

    def _combine(self, other: Measure, sign: int) -> Measure:
        result = Measure(
            self.count + sign * other.count,
            self.n_invalid + sign * other.n_invalid,
            {name: own + sign * other.parts[name] for name, own in self.parts.items()},
        )
        result._check_capacity()
        return result

    @property
    def capacity_bits(self) -> int:
        """The total weight is below 2 to this power."""
        cells = self.parts.get("cells")
        return CAPACITY_BITS if cells is None or cells.dtype == object else WIDE_CAPACITY_BITS

    def _check_capacity(self) -> None:
        weight = max(self.total_units, self.count << BITS)
        check_capacity(weight, self.capacity_bits)

    def to_bytes(self, spec: SketchSpec) -> bytes:
        """The integers of all parts; the two counts stand in the header of a file."""
        return b"".join(part.to_bytes(self.parts[part.name]) for part in parts_of(spec))

    @classmethod
    def from_bytes(
        cls, data: memoryview, spec: SketchSpec, *, count: int, n_invalid: int
    ) -> Measure:
        """What :meth:`to_bytes` gave; ValueError for bytes of another length."""
        parts = {}
        for part in parts_of(spec):
            parts[part.name], n_read = part.from_bytes(data)
            data = data[n_read:]
        if len(data):
            raise ValueError(f"there are {len(data)} bytes more than the header announces.")
        return cls(count, n_invalid, parts)

    def is_sound(self, spec: SketchSpec) -> bool:
        """Whether rows could have left these integers, as far as that is cheap to see: O(m + d^2).

        What is checked holds for all rows, for sums of what is sound, and for differences that
        leave rows (``docs/format.md``). Not all that is impossible is found; but weights are
        positive where rows are, and means, variances and z are numbers to work with.
        """
        numbers = (self.count, self.n_invalid, self.weight, self.total_units)
        if not all(0 <= n < _LARGEST for n in numbers):
            return False
        if self.count == 0 and any(integers.any() for integers in self.parts.values()):
            return False
        u = self.count + (self.weight >> BITS)
        return all(part.is_sound(self.parts[part.name], self, u) for part in parts_of(spec))


def check_capacity(weight: int, bits: int = CAPACITY_BITS) -> None:
    """Refuse a total weight, in units of 2**-BITS, that the int64 totals could not hold."""
    if weight >= 2 ** (bits + BITS):
        msg = (
            f"a sketch holds a total weight below 2**{bits}, and this would be "
            f"{weight / 2**BITS:.4g}. Divide the weights by a constant, or keep several sketches."
        )
        raise DataError(msg)


# Rows that cannot be sketched.


def _find_zones(
    block: Block,
    rows: FloatArray,
    squared_norms: FloatArray,
    spec: SketchSpec,
    columns: tuple[str, ...] | None,
    *,
    skip: bool,
) -> dict[Zone, IntArray]:
    """Indices of the rows of each zone, or an exception naming those that cannot be added.

    Rows beyond reach are refused where no part can hold them: leaving them out would change what
    the sketch means. Rows with NaN or infinity, in a value or as the weight, are left out when
    ``skip``.
    """
    is_finite = np.asarray(np.isfinite(block.values).all(axis=1))
    if spec.metric == "cosine":
        is_finite &= np.isfinite(squared_norms)
    if block.weights is not None:
        is_finite &= np.isfinite(block.weights)
    is_within = is_finite & (squared_norms < spec.reach * spec.reach)
    is_near = is_within & (squared_norms < spec.cell_reach * spec.cell_reach)
    is_beyond = is_finite & ~is_within
    is_held = np.asarray(np.isfinite(rows).all(axis=1))
    is_held &= any(Zone.BEYOND in part.zones for part in parts_of(spec))
    if not is_held[is_beyond].all():
        raise _too_far(block, rows, int(np.argmax(is_beyond & ~is_held)), spec, columns)
    if not skip and not is_finite.all():
        raise not_finite(block, is_finite, columns)
    zones = (is_near, is_within & ~is_near, is_beyond)
    return {zone: np.flatnonzero(there) for zone, there in zip(Zone, zones, strict=True)}


def _too_far(
    block: Block, rows: FloatArray, at: int, spec: SketchSpec, columns: tuple[str, ...] | None
) -> InvalidRowsError:
    """The exception that names a row that no part can hold."""
    k, norm = int(np.argmax(np.abs(rows[at]))), math.hypot(*rows[at].tolist())
    msg = (
        f"row {block.first_row + at} of {block.source} lies too far out: after "
        f"normalisation its norm is {norm:.4g}, mostly from {column_in_words(k, columns)}, "
        f"and this spec reaches {spec.reach:.4g}. Leave the row out if it is broken; otherwise "
        "plan on a sample that has such rows, or choose center and scale nearer to the data."
    )
    return InvalidRowsError(msg)


# From rows to integers: normalise, check, weigh, add to each part.
#
# A weight w is split into its whole part and its fraction: a row of weight 2.5 adds its integers
# twice and once more those of weight 0.5. So whole weights are the same as repeated rows, bit for
# bit, and no product of a weight ever leaves the registers' range.

_TILE = 192  # rows that fill the kernels' tiles, whatever their height


def make_accumulator(spec: SketchSpec, kernel: Kernel) -> AdderFactories:
    """What makes the adders of all parts, with the tables that threads share."""
    return {part.name: part.adders(kernel) for part in parts_of(spec)}


def chunk_rows(spec: SketchSpec, kernel: Kernel) -> int:
    """Rows that are summed at a time."""
    if spec.n_features > kernel.chunk:
        return 16  # of very wide rows a few
    return min(max(1, kernel.chunk // spec.n_features // _TILE) * _TILE, MOMENT_ROWS)


class RowAdder:
    """Adds blocks of rows to totals of its own; one for each thread.

    Parameters
    ----------
    spec : SketchSpec
        What is summed.
    kernel : Kernel
        Where it is summed.
    accumulate : AdderFactories
        What :func:`make_accumulator` gave for both; threads may share it.
    columns : tuple of str or None
        Names for messages.
    skip_invalid : bool
        Leave rows out, and count them, where a value or the weight is NaN or infinite, instead
        of refusing them.
    """

    def __init__(
        self,
        spec: SketchSpec,
        kernel: Kernel,
        accumulate: AdderFactories,
        *,
        columns: tuple[str, ...] | None = None,
        skip_invalid: bool = False,
    ) -> None:
        self._spec, self._kernel = spec, kernel
        self._columns, self._skip_invalid = columns, skip_invalid
        self._totals = Measure.zero(spec)
        n_rows = chunk_rows(spec, kernel)
        self._rows, self._norms = kernel.empty((n_rows, spec.n_features)), kernel.empty((n_rows,))
        self._adders = {name: new_adder() for name, new_adder in accumulate.items()}
        parts = parts_of(spec)
        self._takers = [[part.name for part in parts if zone in part.zones] for zone in Zone]

    def totals(self) -> Measure:
        """What the rows so far add up to."""
        for name, adder in self._adders.items():
            adder.flush(self._totals.parts[name])
        return self._totals

    def take(self) -> Measure:
        """What the rows so far add up to, and begin anew."""
        totals, self._totals = self.totals(), Measure.zero(self._spec)
        return totals

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
        spec.normalise(X, self._kernel, rows, squared_norms)
        is_near = squared_norms < spec.cell_reach * spec.cell_reach  # False for NaN, too
        if spec.origin is not None or weights is not None or not is_near.all():
            rows, squared_norms, is_near = map(self._kernel.on_host, (rows, squared_norms, is_near))
        if spec.origin is not None:
            self._add_private(rows, squared_norms, spec.origin.radius)
            return
        if weights is not None:
            is_near &= np.isfinite(weights)
        zones = {Zone.NEAR: np.arange(len(X))}
        if not is_near.all():
            chunk = Block(X, weights, block.source, block.first_row + first)
            zones = _find_zones(
                chunk, rows, squared_norms, spec, self._columns, skip=self._skip_invalid
            )
        kept = np.sort(np.concatenate(list(zones.values())))
        if weights is not None:
            check_weights(weights[kept], kept, block.source, block.first_row + first)
            units = totals.total_units + int(weights[kept].sum() * 2**BITS)
            check_capacity(units, totals.capacity_bits)
        totals.n_invalid += len(X) - len(kept)
        totals.count += len(kept)
        for zone, some in zones.items():
            if len(some) == len(X):
                self._add_weighted(rows, weights, zone)
            elif len(some):
                of_some = None if weights is None else weights[some]
                self._add_weighted(rows[some], of_some, zone)

    def _add_weighted(self, rows: FloatArray, weights: FloatArray | None, zone: Zone) -> None:
        """Add rows of one zone."""
        if weights is None:
            self._add(rows, None, 0, zone)
            return
        for some, shares, digit in _digits(weights):
            self._add(rows[some], shares, digit, zone)

    def _add_private(self, rows: FloatArray, squared_norms: FloatArray, radius: float) -> None:
        """Add rows, each judged alone: no error and no number tells of one of them."""
        clipped = clip_rows(rows, squared_norms, radius)
        self._totals.count += len(clipped)
        self._add(clipped, None, 0, Zone.NEAR)

    def _add(self, rows: FloatArray, shares: FloatArray | None, digit: int, zone: Zone) -> None:
        """Add rows of weights ``shares`` (None: 1), 2**digit times."""
        if not len(rows):
            return
        axes, coordinates = self._spec.axes, rows
        if axes is not None and zone != Zone.BEYOND:
            coordinates = self._kernel.project(rows, axes.table)
        weighted = WeightedRows(rows, coordinates, shares, digit, zone)
        parts = self._totals.parts
        for name in self._takers[zone]:
            left = self._adders[name].add(weighted, parts[name])
            if left is not None:
                self._adders["far"].add(left, parts["far"])


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
