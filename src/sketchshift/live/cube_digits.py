"""Slices of a cube as digits, which are added up by the thousand.

An integer of a slice is written as a few *digits* d_0, d_1, ... from -2**31 to 2**31 - 1, of which
it is the sum of d_i 2**(32 i): so sums of slices are sums of digits, whatever the signs, and
carries are left to the end. All digits of a slice that are always there stand in one row of a
matrix. Cells and far rows, of which a slice has few, are *entries*: a name, then their digits.

Symbols
-------
n, G      slices, groups that slices are added up in
D         digits of a slice that are always there
E         entries of one family
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sketchshift._typing import IntArray
from sketchshift.errors import DataError, SketchFormatError
from sketchshift.features import SketchSpec
from sketchshift.sketch.cells import FarPart, FarSums
from sketchshift.sketch.measure import Measure, Part, WideArray, parts_of, wide_to_bytes

__all__ = [
    "Block",
    "Digits",
    "Entries",
    "Family",
    "Layout",
    "SliceRows",
    "SliceSums",
    "block_of",
    "far_entries",
    "in_range",
    "join_entries",
    "merge_entries",
    "spread",
]

BITS = 32
_FAR_KEY = 5  # numbers that a far row's cell is named by
_WAITING_BYTES = 2**23  # of slices of several parts that are added up at once

Digits = NDArray[np.int32]


@dataclass(frozen=True)
class Family:
    """One part of a measure as digits.

    Attributes
    ----------
    part : Part
        Its definition.
    n_integers : int
        Of a slice, or of an entry.
    n_digits : int
        That an integer has at most.
    id_width : int
        Numbers that name an entry; 0 where the integers of a slice are always there.
    """

    part: Part
    n_integers: int
    n_digits: int
    id_width: int = 0

    @property
    def name(self) -> str:
        """Of the part."""
        return self.part.name

    @property
    def width(self) -> int:
        """Digits of a slice or an entry, at most."""
        return self.n_integers * self.n_digits


class Layout:
    """What slices of a spec are made of.

    Parameters
    ----------
    spec : SketchSpec
        Of all slices.
    """

    def __init__(self, spec: SketchSpec) -> None:
        self.spec = spec
        families = [_family_of(part) for part in parts_of(spec)]
        self.dense = [family for family in families if not family.id_width]
        self.tables = [family for family in families if family.id_width]
        self.places: dict[str, slice] = {}
        self.width = 0
        for family in self.dense:
            self.places[family.name] = slice(self.width, self.width + family.width)
            self.width += family.width
        self._known: dict[str, tuple[IntArray, list[IntArray]]] = {}

    def places_in(self, digits: Mapping[str, Any]) -> tuple[IntArray, list[IntArray]]:
        """Where the digits of a file stand among all: those always there, those of each table.

        The file has what :meth:`digits_in` gave. Most parts have the same, and get the same arrays.
        """
        text = json.dumps(digits, sort_keys=True)
        if text not in self._known:
            families = [*self.dense, *self.tables]
            needed = {family.name: _lengthen(digits[family.name], family) for family in families}
            tables = [_places_of(family, needed[family.name]) for family in self.tables]
            self._known[text] = _dense_places(self, needed), tables
        return self._known[text]

    def digits_in(self, slices: SliceRows) -> dict[str, list[list[int]]]:
        """How many digits the integers of each family have in a file, in runs of equal numbers."""
        found = {f.name: _digits_at(slices.places, f, self.places[f.name]) for f in self.dense}
        for family in self.tables:
            places = slices.entries[family.name][2]
            found[family.name] = _digits_at(places, family, slice(0, family.width))
        return {name: _shorten(numbers) for name, numbers in found.items()}

    @cached_property
    def n_bytes(self) -> int:
        """Of a slice in memory while it is summed, without entries."""
        return 8 * self.width


def _family_of(part: Part) -> Family:
    n_digits = 4 if part.is_wide else 2
    if isinstance(part, FarPart):
        return Family(part, part.width, n_digits, _FAR_KEY)
    if part.name in ("cells", "clipped"):
        return Family(part, part.shape[1], n_digits, 1)
    return Family(part, math.prod(part.shape), n_digits)


@dataclass
class Entries:
    """Cells or far rows of some slices, in the order of their owners and names.

    Attributes
    ----------
    names : int64 array of shape (E, 1 + id_width)
        The slice or group that an entry belongs to, and its name.
    digits : int64 array of shape (E, width)
        Its integers.
    """

    names: IntArray
    digits: IntArray

    @classmethod
    def none(cls, family: Family) -> Entries:
        """Not one."""
        return cls(
            np.zeros((0, 1 + family.id_width), np.int64), np.zeros((0, family.width), np.int64)
        )

    def renumbered(self, numbers: IntArray) -> Entries:
        """The entries of slices that have got other numbers."""
        owners = numbers[self.names[:, 0]]
        return Entries(np.column_stack([owners, self.names[:, 1:]]), self.digits)


@dataclass
class Block:
    """Slices as digits.

    Attributes
    ----------
    counts : int64 array of shape (n, 2)
        Rows, and rows left out.
    dense : int64 array of shape (n, D)
        Digits of the integers that are always there.
    entries : dict of str to Entries
        Of each family of entries; none is all zeros.
    """

    counts: IntArray
    dense: IntArray
    entries: dict[str, Entries]

    def without_zeros(self) -> tuple[Block, IntArray]:
        """The slices that are not all zeros, and their numbers."""
        is_left = np.asarray(self.counts.any(axis=1) | self.dense.any(axis=1))
        for own in self.entries.values():
            is_left[own.names[:, 0]] = True
        left = np.flatnonzero(is_left)
        numbers = np.cumsum(is_left) - 1
        entries = {name: own.renumbered(numbers) for name, own in self.entries.items()}
        return Block(self.counts[left], self.dense[left], entries), left


def _carry(digits: IntArray, n_digits: int) -> None:
    """Bring digits (n, integers n_digits) into their range, in place."""
    by_integer = digits.reshape(len(digits), digits.shape[1] // n_digits, n_digits)
    for i in range(n_digits - 1):
        low = by_integer[..., i].astype(np.int32)
        by_integer[..., i + 1] += (by_integer[..., i] - low) >> BITS
        by_integer[..., i] = low
    top = by_integer[..., -1]
    if top.size and (top.max() >= 2**31 or top.min() < -(2**31)):
        raise DataError("the integers of a slice are too large for a cube. Keep several cubes.")


# From sketches to digits.


def block_of(layout: Layout, measures: Sequence[Measure]) -> Block:
    """Slices as digits, one by one: O(m + d^2) Python integers each."""
    counts = np.array([(m.count, m.n_invalid) for m in measures], dtype=np.int64).reshape(-1, 2)
    dense = np.zeros((len(measures), layout.width), np.int64)
    for family in layout.dense:
        place = layout.places[family.name]
        for i, measure in enumerate(measures):
            dense[i, place] = _digits_of(measure.parts[family.name].ravel(), family.n_digits)
    entries = {}
    for family in layout.tables:
        own = [measure.parts[family.name] for measure in measures]
        entries[family.name] = (
            far_entries(layout, {i: array[0] for i, array in enumerate(own)})
            if isinstance(family.part, FarPart)
            else _entries_of(family, own)
        )
    return Block(counts, dense, entries)


def _entries_of(family: Family, arrays: Sequence[Any]) -> Entries:
    found = Entries.none(family)
    names, digits = [found.names], [found.digits]
    for i, array in enumerate(arrays):
        own = np.flatnonzero((array != 0).any(axis=1))
        names.append(np.column_stack([np.full(len(own), i), own]))
        digits.append(_digits_of(array[own], family.n_digits).reshape(len(own), family.width))
    return Entries(np.concatenate(names), np.concatenate(digits))


def far_entries(layout: Layout, sums: Mapping[int, FarSums]) -> Entries:
    """Far rows of slices, by the numbers of these."""
    (family,) = (family for family in layout.tables if isinstance(family.part, FarPart))
    found = Entries.none(family)
    names, digits = [found.names], [found.digits]
    for i in sorted(sums):
        for key, integers in sums[i].rows.items():
            names.append(np.array([[i, *key]]))
            digits.append(_digits_of(integers, family.n_digits)[None])
    return Entries(np.concatenate(names), np.concatenate(digits))


def _digits_of(integers: Any, n_digits: int) -> IntArray:
    """Digits of integers of any shape, flat."""
    if integers.dtype == object:
        words = np.frombuffer(wide_to_bytes(integers), dtype="<u4").astype(np.int64)
        words = words.reshape(-1, 4)
        words[:, 3] = words[:, 3].astype(np.int32)  # the sign
    else:
        flat = integers.ravel()
        words = np.column_stack([flat & 2**BITS - 1, flat >> BITS])
    _carry(words.reshape(1, -1), n_digits)
    return words.ravel()


# From digits to sketches.


class SliceSums:
    """Sums of slices in G groups.

    Parameters
    ----------
    layout : Layout
        Of the slices.
    n_groups : int
        G.
    """

    def __init__(self, layout: Layout, n_groups: int) -> None:
        self._layout, self.n_groups = layout, n_groups
        self._counts = np.zeros((n_groups, 2), np.int64)
        self._dense = np.zeros((n_groups, layout.width), np.int64)
        self._entries = {family.name: [Entries.none(family)] for family in layout.tables}
        self._waiting: list[tuple[SliceRows, IntArray]] = []
        self._sign, self._n_bytes = 1, 0  # of those that wait

    def add(self, slices: SliceRows, groups: IntArray, sign: int) -> None:
        """Add slices to the groups (n,) they belong to, or take them away.

        A few of each of many parts are added up at once: a call of NumPy costs as much as ten
        slices.
        """
        waiting = self._waiting
        if waiting and not (sign == self._sign and slices.is_like(waiting[0][0])):
            self._add_waiting()
        self._waiting.append((slices, groups))
        self._sign = sign
        self._n_bytes += slices.n_bytes
        if self._n_bytes > _WAITING_BYTES:
            self._add_waiting()

    def _add_waiting(self) -> None:
        if self._waiting:
            slices = SliceRows.join([each for each, _ in self._waiting])
            groups = np.concatenate([each for _, each in self._waiting])
            self._waiting, self._n_bytes = [], 0
            self._add(slices, groups, self._sign)

    def _add(self, slices: SliceRows, groups: IntArray, sign: int) -> None:
        order, starts = _runs(groups[:, None])
        present = groups[order[starts]]
        self._counts[present] += sign * np.add.reduceat(slices.counts[order], starts, axis=0)
        if slices.dense.shape[1]:
            sums = _add_up(slices.dense, order, starts)
            self._dense[np.ix_(present, slices.places)] += sign * sums
        for family in self._layout.tables:
            owners, entries, places = slices.entries[family.name]
            if len(owners):
                names = np.column_stack([groups[owners], entries[:, : family.id_width]])
                found = merge_entries(names, entries[:, family.id_width :])
                digits = np.zeros((len(found.names), family.width), np.int64)
                digits[:, places] = found.digits if sign > 0 else -found.digits
                self._put(family, Entries(found.names, digits))

    def _put(self, family: Family, entries: Entries) -> None:
        """Keep entries, merged with those before once these are many more."""
        pieces = self._entries[family.name]
        pieces.append(entries)
        if sum(len(piece.names) for piece in pieces[1:]) > 2 * len(pieces[0].names) + 10_000:
            self._entries[family.name] = [join_entries(pieces)]

    def block(self) -> Block:
        """The sums as digits in their range."""
        self._add_waiting()
        entries = {name: join_entries(pieces) for name, pieces in self._entries.items()}
        return in_range(self._layout, Block(self._counts, self._dense, entries))

    def measures(self) -> list[Measure]:
        """The sums as those of rows: O(m + d^2) Python integers each."""
        block, parts = self.block(), {}
        for family in self._layout.dense:
            place = self._layout.places[family.name]
            numbers = _integers_of(block.dense[:, place], family)
            parts[family.name] = list(numbers.reshape(-1, *family.part.shape))
        for family in self._layout.tables:
            parts[family.name] = self._arrays_of(family, block.entries[family.name])
        return [
            Measure(int(rows), int(left_out), {name: arrays[i] for name, arrays in parts.items()})
            for i, (rows, left_out) in enumerate(block.counts)
        ]

    def _arrays_of(self, family: Family, entries: Entries) -> list[Any]:
        integers = _integers_of(entries.digits, family)
        ends = np.searchsorted(entries.names[:, 0], np.arange(self.n_groups + 1))
        arrays = []
        for first, last in pairwise(ends.tolist()):
            array = family.part.zero()
            if family.id_width == 1:
                array[entries.names[first:last, 1]] = integers[first:last]
            else:
                keys = map(tuple, entries.names[first:last, 1:].tolist())
                array[0] = FarSums(dict(zip(keys, integers[first:last], strict=True)))
            arrays.append(array)
        return arrays


def in_range(layout: Layout, sums: Block) -> Block:
    """Sums of digits as digits in their range, with entries of one name added up; in place."""
    for family in layout.dense:
        place = layout.places[family.name]
        own = np.ascontiguousarray(sums.dense[:, place])
        _carry(own, family.n_digits)
        sums.dense[:, place] = own
    for family in layout.tables:
        joined = join_entries([sums.entries[family.name]])
        _carry(joined.digits, family.n_digits)
        some = np.flatnonzero(joined.digits.any(axis=1))
        if len(some) < len(joined.names):
            joined = Entries(joined.names[some], joined.digits[some])
        sums.entries[family.name] = joined
    return sums


def spread(layout: Layout, block: Block, places: Sequence[int], n: int) -> Block:
    """The slices of a block at some places among n, of which the others are zeros."""
    at = np.array(places, dtype=np.int64)
    counts, dense = np.zeros((n, 2), np.int64), np.zeros((n, layout.width), np.int64)
    counts[at], dense[at] = block.counts, block.dense
    entries = {name: own.renumbered(at) for name, own in block.entries.items()}
    return Block(counts, dense, entries)


def _integers_of(digits: IntArray, family: Family) -> Any:
    """Integers (n, integers) of digits (n, integers n_digits) in their range."""
    by_integer = digits.reshape(len(digits), family.n_integers, family.n_digits)
    low = by_integer[..., 0] + (by_integer[..., 1] << BITS)
    if not family.part.is_wide:
        return low
    wide: WideArray = low.astype(object)
    high = by_integer[..., 2] + (by_integer[..., 3] << BITS)
    some = np.nonzero(high)
    wide[some] += high[some].astype(object) << 2 * BITS
    return wide


def _runs(names: IntArray) -> tuple[IntArray, IntArray]:
    """An order of names (n, w) in which equal ones follow each other, and where each begins."""
    order = np.lexsort(names.T[::-1]) if names.shape[1] > 1 else _sorted(names[:, 0])
    is_new = (names[order[1:]] != names[order[:-1]]).any(axis=1)
    return order, np.concatenate([[0], np.flatnonzero(is_new) + 1])


def _sorted(numbers: IntArray) -> IntArray:
    if (numbers[1:] >= numbers[:-1]).all():
        return np.arange(len(numbers))
    return np.argsort(numbers, kind="stable")


def _add_up(rows: Any, order: IntArray, starts: IntArray) -> IntArray:
    """Sums of rows from each start to the next, in an order; a run of all is one sum."""
    if len(starts) == 1:
        return np.asarray(np.add.reduce(rows, axis=0, dtype=np.int64))[None]
    return np.asarray(np.add.reduceat(_take(rows, order), starts, axis=0, dtype=np.int64))


def _take(rows: Any, order: IntArray) -> Any:
    """Rows in an order; themselves where it is theirs."""
    return rows if (order == np.arange(len(order))).all() else rows[order]


def merge_entries(names: IntArray, digits: Any) -> Entries:
    """Entries of which those of one name are added up."""
    order, starts = _runs(names)
    if len(starts) < len(names):
        return Entries(names[order[starts]], _add_up(digits, order, starts))
    return Entries(_take(names, order), _take(digits, order))


def join_entries(pieces: Sequence[Entries]) -> Entries:
    """The entries of all pieces, of which those of one name are added up."""
    some = [piece for piece in pieces if len(piece.names)] or [pieces[0]]
    names = np.concatenate([piece.names for piece in some]) if some[1:] else some[0].names
    digits = np.concatenate([piece.digits for piece in some]) if some[1:] else some[0].digits
    return merge_entries(names, digits) if len(names) else Entries(names, digits)


# Digits in a file.


@dataclass
class SliceRows:
    """Slices as they lie in a file.

    Attributes
    ----------
    counts : int64 array of shape (n, 2)
        Rows, and rows left out.
    dense : int32 array of shape (n, digits in the file)
        Those that are always there.
    places : int array
        Where these stand among all digits of a slice.
    entries : dict of str to tuple
        Of each family: the slice (E,) each entry belongs to; entries, their names first; and where
        their digits stand among all.
    """

    counts: IntArray
    dense: Digits
    places: IntArray
    entries: dict[str, tuple[IntArray, Digits, IntArray]]

    @classmethod
    def of(cls, layout: Layout, block: Block) -> SliceRows:
        """Slices as they are written: digits that are 0 in all of them are left out."""
        needed = {
            f.name: _digits_needed(block.dense[:, layout.places[f.name]], f) for f in layout.dense
        }
        places = _dense_places(layout, needed)
        entries = {}
        for family in layout.tables:
            found = block.entries[family.name]
            own = _places_of(family, _digits_needed(found.digits, family))
            table = np.hstack([found.names[:, 1:], found.digits[:, own]]).astype("<i4")
            entries[family.name] = found.names[:, 0], table, own
        return cls(block.counts, block.dense[:, places].astype("<i4"), places, entries)

    def in_order(self, order: IntArray) -> SliceRows:
        """The slices in another order, with their entries in that of their names."""
        if (order == np.arange(len(order))).all():
            return self
        ranks = np.argsort(order)
        entries = {}
        for name, (owners, table, places) in self.entries.items():
            moved = ranks[owners]
            by_owner = np.argsort(moved, kind="stable")
            entries[name] = moved[by_owner], table[by_owner], places
        return SliceRows(self.counts[order], self.dense[order], self.places, entries)

    @property
    def n_bytes(self) -> int:
        """Of all digits."""
        return self.dense.nbytes + sum(table.nbytes for _, table, _ in self.entries.values())

    def is_like(self, other: SliceRows) -> bool:
        """Whether both have the same digits."""
        pairs = [(self.places, other.places)]
        pairs += [(self.entries[name][2], other.entries[name][2]) for name in self.entries]
        return all(one is two or np.array_equal(one, two) for one, two in pairs)

    @classmethod
    def join(cls, pieces: Sequence[SliceRows]) -> SliceRows:
        """Slices of pieces that are alike, one after the other."""
        first = pieces[0]
        if len(pieces) == 1:
            return first
        starts = np.cumsum([0, *(len(piece.counts) for piece in pieces)]).tolist()
        entries = {}
        for name, (_, _, places) in first.entries.items():
            own = [piece.entries[name] for piece in pieces]
            owners = [each[0] + start for each, start in zip(own, starts, strict=False)]
            tables = np.concatenate([each[1] for each in own])
            entries[name] = np.concatenate(owners), tables, places
        counts = np.concatenate([piece.counts for piece in pieces])
        dense = np.concatenate([piece.dense for piece in pieces])
        return cls(counts, dense, first.places, entries)


def _digits_needed(digits: IntArray, family: Family) -> IntArray:
    """How many digits each integer takes in the file, shape (integers,); 0 where all are 0."""
    some = digits.any(axis=0).reshape(family.n_integers, family.n_digits)
    return np.asarray((some * np.arange(1, family.n_digits + 1)).max(axis=1))


def _places_of(family: Family, needed: IntArray) -> IntArray:
    """Where the digits in the file stand among all of a family."""
    return np.flatnonzero((np.arange(family.n_digits) < needed[:, None]).ravel())


def _dense_places(layout: Layout, digits: dict[str, IntArray]) -> IntArray:
    found = [layout.places[f.name].start + _places_of(f, digits[f.name]) for f in layout.dense]
    return np.concatenate(found)


def _digits_at(places: IntArray, family: Family, own: slice) -> IntArray:
    """How many digits each integer of a family has, by the places of all digits."""
    found = places[(places >= own.start) & (places < own.stop)] - own.start
    return np.bincount(found // family.n_digits, minlength=family.n_integers)


def _shorten(numbers: IntArray) -> list[list[int]]:
    """Runs of equal numbers, as pairs of the number and how often it stands there."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    lengths = np.diff(np.append(starts, len(numbers)))
    return [[int(numbers[at]), int(n)] for at, n in zip(starts, lengths, strict=True)]


def _lengthen(runs: Any, family: Family) -> IntArray:
    try:
        numbers, lengths = np.array(runs, dtype=np.int64).reshape(-1, 2).T
    except (TypeError, ValueError, OverflowError):
        numbers = lengths = np.full(1, -1)
    is_sound = ((numbers >= 0) & (numbers <= family.n_digits)).all()
    is_sound &= ((lengths >= 0) & (lengths <= family.n_integers)).all()
    if not is_sound or lengths.sum() != family.n_integers:
        raise SketchFormatError(f"the digits of {family.name} are not those of the spec.")
    return np.repeat(numbers, lengths)
