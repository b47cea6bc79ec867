"""Totals: the integers of n slices of one spec, which add, subtract and travel.

Digits that every slice has stand in a row of a *dense* matrix. Cells and outliers, of which a slice
has few, are *entries*: the slice, a name, then digits. Both are in one order and in their
range, so that equal sums are equal arrays.

Symbols
-------
n, G      slices, groups that slices are added up in
D         digits of a slice of one family
E         entries of one family
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift.data.source import spans
from sketchshift.errors import DataError
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, CELL_WEIGHT_BITS
from sketchshift.sketch import family as registered
from sketchshift.sketch.digits import Digits, carry, shifted, to_floats, to_integers
from sketchshift.sketch.family import Family, Zone, families_of

__all__ = [
    "CAPACITY_BITS",
    "WEIGHT_BITS",
    "AnyTotals",
    "Entries",
    "EntrySums",
    "Layout",
    "Sums",
    "Totals",
    "check_capacity",
    "sum_entries",
    "to_digits",
]

CAPACITY_BITS = 40
"""A sketch holds a total weight below 2**CAPACITY_BITS: the int64 totals cannot overflow."""

WIDE_CAPACITY_BITS = 32
"""The same of a sketch with cells and axes."""

WEIGHT_BITS = 52
"""The finer total weight counts 2**-WEIGHT_BITS."""

_LARGEST = 2 ** (CAPACITY_BITS + BITS)
_AT_ONCE = 2**18  # numbers that are added up at a time: they stay in cache
_WAITING_BYTES = 2**23  # of totals that are added up at once


class Layout:
    """What slices of a spec are made of; :meth:`of` gives one for all users of a spec.

    Attributes
    ----------
    families, dense, sparse, released : list of Family
        All; those that every slice has; those with entries; those to which a row adds a bounded
        amount, which private releases hold.
    by_name : dict of str to Family
        All by name.
    width : int
        Digits that every slice has.
    """

    def __init__(self, spec: SketchSpec) -> None:
        self.spec = spec
        self.families = families_of(spec)
        self.dense = [family for family in self.families if not family.id_width]
        self.sparse = [family for family in self.families if family.id_width]
        self.released = [family for family in self.families if family.row_square is not None]
        self.by_name: dict[str, Any] = {family.name: family for family in self.families}
        self.width = sum(family.width for family in self.dense)

    @staticmethod
    def of(spec: SketchSpec) -> Layout:
        """Return the layout of a spec."""
        return _layout_of(spec, tuple(registered.FAMILIES))

    @cached_property
    def capacity_bits(self) -> int:
        """The total weight is below 2 to this power."""
        return CAPACITY_BITS if self.spec.axes is None else WIDE_CAPACITY_BITS

    def bytes_of(self, n_slices: int, n_entries: int) -> int:
        """Memory of some slices that have so many cells with rows in all, but for outliers."""
        of_cell = sum(4 + family.width for family in self.sparse if family.id_width == 1)
        return 4 * (n_slices * self.width + n_entries * of_cell)

    @cached_property
    def header_end(self) -> bytes:
        """The spec as the header of a file has it."""
        return self.spec.to_json().encode()


@lru_cache(maxsize=32)
def _layout_of(spec: SketchSpec, families: tuple[Any, ...]) -> Layout:
    return Layout(spec)


@dataclass
class Entries:
    """Cells or outliers of some slices.

    Attributes
    ----------
    names : int64 array of shape (E, 1 + id_width)
        The slice that an entry belongs to, and its name.
    digits : int array of shape (E, width)
        Its integers.
    """

    names: IntArray
    digits: Any

    @classmethod
    def none(cls, family: Family) -> Entries:
        """Return no entries, in range."""
        names = np.zeros((0, 1 + family.id_width), dtype=np.int64)
        return cls(names, np.zeros((0, family.width), dtype=np.int32))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_bytes(self) -> int:
        """Memory of names and integers."""
        return int(self.names.nbytes + self.digits.nbytes)

    def __getitem__(self, some: Any) -> Entries:
        return Entries(self.names[some], self.digits[some])

    def renumbered(self, numbers: IntArray) -> Entries:
        """Return the entries of slices that have got other numbers."""
        owners = numbers[self.names[:, 0]]
        return Entries(np.column_stack([owners, self.names[:, 1:]]), self.digits)

    @classmethod
    def join(cls, pieces: Sequence[Entries]) -> Entries:
        """Return the entries of all pieces one after the other."""
        some = [piece for piece in pieces if len(piece)] or list(pieces[:1])
        if len(some) == 1:
            return some[0]
        arrays = ([piece.names for piece in some], [piece.digits for piece in some])
        return cls(*map(np.concatenate, arrays))


def _drop_zeros(entries: Entries) -> Entries:
    has_some = entries.digits.any(axis=1)
    return entries if has_some.all() else entries[has_some]


def to_digits(sums: IntArray, order: IntArray, family: Any) -> Digits:
    """Sums (E, w) of entries, in an order, as digits in their range."""
    digits = np.empty((len(order), family.width), dtype=np.int32)
    for span in spans(len(order), max(1, _AT_ONCE // family.width)):
        digits[span] = carry(family.lanes(sums[order[span]]), family.n_digits)
    return digits


class EntrySums:
    """Entries that come in pieces; those of one name are added up in time."""

    def __init__(self, family: Family) -> None:
        self._family, self._pieces = family, [Entries.none(family)]

    @property
    def n_bytes(self) -> int:
        """Memory of all pieces."""
        return sum(piece.n_bytes for piece in self._pieces)

    def add(self, entries: Entries, digit: int = 0) -> None:
        """Add entries in range, 2**digit times."""
        if digit:
            n_digits = self._family.n_digits
            times = carry(shifted(entries.digits, n_digits, digit), n_digits)
            entries = Entries(entries.names, times)
        self._pieces.append(entries)
        if sum(map(len, self._pieces[1:])) > 2 * len(self._pieces[0]) + 10_000:
            self._pieces = [sum_entries(self._pieces, self._family.n_digits)]

    def take(self) -> Entries:
        """Return the sums of all, and begin anew."""
        found = sum_entries(self._pieces, self._family.n_digits)
        self._pieces = [Entries.none(self._family)]
        return found


class AnyTotals(ABC):
    """Integers of the families of a spec, exact or with noise, and what they say of the rows.

    Attributes
    ----------
    layout : Layout
        Of the spec.
    scale : float
        Standard deviation of the noise in each integer.
    cell_factor : int
        What integers of clipped cells were multiplied by before.
    """

    layout: Layout
    scale = 0.0
    cell_factor = 1

    @abstractmethod
    def integers(self, name: str, i: int = 0) -> Any:
        """The integers of a family in slice i, as :meth:`Family.integers` gives them."""

    @property
    @abstractmethod
    def weight(self) -> float:
        """Weight of the rows of a single slice, in steps of 2**-BITS."""

    def decode(self, name: str) -> Any:
        """What ``decode`` of a family makes of a single slice, made once."""
        if name not in self._decoded:
            self._decoded[name] = self.layout.by_name[name].decode(self)
        return self._decoded[name]

    @cached_property
    def _decoded(self) -> dict[str, Any]:
        return {}


@dataclass(eq=False)
class Totals(AnyTotals):
    """What the rows of n slices add up to.

    Attributes
    ----------
    layout : Layout
        Of the spec.
    counts : int64 array of shape (n, 2)
        Rows added, rows left out.
    dense : dict of str to int32 array of shape (n, D)
        Of each family that every slice has.
    entries : dict of str to Entries
        Of each other family.
    """

    layout: Layout
    counts: IntArray
    dense: dict[str, Digits] = field(default_factory=dict)
    entries: dict[str, Entries] = field(default_factory=dict)

    @classmethod
    def zero(cls, spec: SketchSpec | Layout, n: int = 1) -> Totals:
        """Return n slices of no rows."""
        layout = spec if isinstance(spec, Layout) else Layout.of(spec)
        dense = {f.name: np.zeros((n, f.width), np.int32) for f in layout.dense}
        entries = {f.name: Entries.none(f) for f in layout.sparse}
        return cls(layout, np.zeros((n, 2), np.int64), dense, entries)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def count(self) -> int:
        """Rows added, of all slices."""
        return int(self.counts[:, 0].sum())

    @property
    def n_invalid(self) -> int:
        """Rows left out, of all slices."""
        return int(self.counts[:, 1].sum())

    def integers(self, name: str, i: int = 0) -> Any:
        """See :class:`AnyTotals`."""
        return self.layout.by_name[name].integers(self, i)

    def entry_floats(self, name: str) -> tuple[IntArray, FloatArray]:
        """The slice of each entry of a family, and its integers, rounded: (E,) and (E, w)."""
        own, family = self.entries[name], self.layout.by_name[name]
        return own.names[:, 0], to_floats(own.digits, family.n_digits)

    @property
    def n_bytes(self) -> int:
        """Memory of the integers."""
        dense = sum(own.nbytes for own in self.dense.values())
        return int(dense + sum(own.n_bytes for own in self.entries.values()))

    def __getitem__(self, i: int) -> Totals:
        """Return slice i alone."""
        return self.span(i, i + 1)

    def span(self, first: int, last: int) -> Totals:
        """Return slices that follow each other, which share their digits with these."""
        entries = {}
        for name, own in self.entries.items():
            some = slice(*np.searchsorted(own.names[:, 0], [first, last]))
            names = own.names[some].copy()
            names[:, 0] -= first
            entries[name] = Entries(names, own.digits[some])
        dense = {name: own[first:last] for name, own in self.dense.items()}
        return Totals(self.layout, self.counts[first:last], dense, entries)

    def take(self, rows: IntArray) -> Totals:
        """Return some slices, in any order."""
        entries = {}
        for name, own in self.entries.items():
            ends = np.searchsorted(own.names[:, 0], np.arange(len(self) + 1))
            lengths = np.diff(ends)[rows]
            numbers = np.repeat(np.arange(len(rows)), lengths)
            offsets = np.arange(len(numbers)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            some = own[np.repeat(ends[:-1][rows], lengths) + offsets]
            entries[name] = Entries(np.column_stack([numbers, some.names[:, 1:]]), some.digits)
        dense = {name: own[rows] for name, own in self.dense.items()}
        return Totals(self.layout, self.counts[rows], dense, entries)

    @classmethod
    def join(cls, pieces: Sequence[Totals]) -> Totals:
        """Return the slices of all pieces, one after the other."""
        first = pieces[0]
        if len(pieces) == 1:
            return first
        starts = np.cumsum([0, *map(len, pieces)]).tolist()
        entries = {
            name: Entries.join(
                [
                    piece.entries[name].renumbered(np.arange(start, start + len(piece)))
                    for piece, start in zip(pieces, starts, strict=False)
                ]
            )
            for name in first.entries
        }
        dense = {name: np.concatenate([p.dense[name] for p in pieces]) for name in first.dense}
        return cls(first.layout, np.concatenate([p.counts for p in pieces]), dense, entries)

    @classmethod
    def sum(
        cls, pieces: Sequence[tuple[Totals, IntArray, int]], n_groups: int, *, emptied: bool = False
    ) -> Totals:
        """Add up slices in groups.

        Parameters
        ----------
        pieces : sequence of tuple
            Of one layout: totals, the group (n,) of each of their slices, and 1 or -1.
        n_groups : int
            G.
        emptied : bool
            Whether to empty the pieces on the way: at most one family is held twice.

        Returns
        -------
        totals : Totals
            Of G slices. Time is linear in the digits.
        """
        result = cls.zero(pieces[0][0].layout, n_groups)
        sizes = np.zeros(n_groups, dtype=np.int64)
        if sum(float(np.abs(own.counts).sum(dtype=np.float64)) for own, *_ in pieces) > _LARGEST:
            raise DataError("the counts are too large to be held. Keep several sketches.")
        for own, groups, sign in pieces:
            np.add.at(result.counts, groups, sign * own.counts)
            sizes += (2 if sign < 0 else 1) * np.bincount(groups, minlength=n_groups)
        several = np.flatnonzero(sizes > 1)  # all others are copied
        numbers = np.full(n_groups, -1)
        numbers[several] = np.arange(len(several))
        for family in result.layout.dense:
            digits = result.dense[family.name]
            lanes = np.zeros((len(several), family.width), dtype=np.int64)
            for own, groups, sign in pieces:
                _put(own.dense[family.name], groups, numbers[groups], digits, lanes, sign)
                if emptied:
                    del own.dense[family.name]
            digits[several] = carry(lanes, family.n_digits)
        for family in result.layout.sparse:
            found = [Entries.none(family)]
            for own, groups, sign in pieces:
                moved = own.entries[family.name].renumbered(groups)
                if sign < 0:
                    moved.digits = carry(-moved.digits.astype(np.int64), family.n_digits)
                found.append(moved)
                if emptied:
                    del own.entries[family.name]
                del moved
            result.entries[family.name] = sum_entries(found, family.n_digits)
        return result

    def sum_by(self, groups: IntArray, n_groups: int) -> Totals:
        """Return the sums of the slices of each group, of which none is too heavy."""
        found = Totals.sum([(self, groups, 1)], n_groups)
        found.check_capacity()
        return found

    def merged(self) -> Totals:
        """Return the sum of all slices, as one."""
        return self if len(self) == 1 else self.sum_by(np.zeros(len(self), dtype=np.int64), 1)

    @classmethod
    def difference(cls, pieces: Sequence[tuple[Totals, int]]) -> Totals:
        """Return the sum of all slices of pieces, each times its 1 or -1, as one slice.

        As :meth:`sum` gives it, in less time where the slices are few.
        """
        layout = pieces[0][0].layout
        counts = sum(sign * own.counts.sum(axis=0) for own, sign in pieces)
        found = cls(layout, np.asarray(counts)[None])
        for f in layout.dense:
            sums = ((own.dense[f.name].sum(axis=0, dtype=np.int64), sign) for own, sign in pieces)
            lanes = np.add.reduce([one if sign > 0 else -one for one, sign in sums])
            found.dense[f.name] = carry(lanes[None], f.n_digits)
        for f in layout.sparse:
            some = [(own.entries[f.name], sign) for own, sign in pieces if own.entries[f.name]]
            if not some:
                found.entries[f.name] = Entries.none(f)
                continue
            names = np.concatenate([own.names for own, _ in some])
            names[:, 0] = 0
            lanes = np.concatenate([own.digits for own, _ in some], dtype=np.int64)
            signs = np.repeat([sign for _, sign in some], [len(own) for own, _ in some])
            order, starts = _runs(names)
            lanes = np.add.reduceat(lanes[order] * signs[order, None], starts)
            entries = Entries(names[order[starts]], carry(lanes, f.n_digits))
            found.entries[f.name] = _drop_zeros(entries)
        return found

    def running(self) -> Totals:
        """Return the sum of each slice and all before it, in time and memory of n times all names.

        None but sums of a few hundred slices: in many, each would have the names of all before.
        """
        n = len(self)
        dense = {
            f.name: carry(np.cumsum(self.dense[f.name], axis=0, dtype=np.int64), f.n_digits)
            for f in self.layout.dense
        }
        entries = {}
        for f in self.layout.sparse:
            own = self.entries[f.name]
            order, starts = _runs(own.names[:, 1:])
            places = np.empty(len(own), dtype=np.int64)
            places[order] = np.repeat(np.arange(len(starts)), np.diff([*starts, len(own)]))
            lanes = np.zeros((n, len(starts), f.width), dtype=np.int64)
            lanes[own.names[:, 0], places] = own.digits
            digits = carry(np.cumsum(lanes, axis=0, out=lanes), f.n_digits)
            slices, names = np.nonzero(digits.any(axis=2))
            names_of = np.column_stack([slices, own.names[order[starts[names]], 1:]])
            entries[f.name] = Entries(names_of, digits[slices, names])
        return Totals(self.layout, np.cumsum(self.counts, axis=0), dense, entries)

    def __add__(self, other: Totals) -> Totals:
        return self._combine(other, 1)

    def __sub__(self, other: Totals) -> Totals:
        return self._combine(other, -1)

    def _combine(self, other: Totals, sign: int) -> Totals:
        each = np.arange(len(self))
        result = Totals.sum([(self, each, 1), (other, each, sign)], len(self))
        result.check_capacity()
        return result

    def prefix(self, spec: SketchSpec) -> Totals:
        """Return what is left with a prefix of the spec."""
        layout = Layout.of(spec)
        dense = {
            f.name: self.layout.by_name[f.name].cut(self.dense[f.name], f) for f in layout.dense
        }
        return Totals(layout, self.counts, dense, self.entries)

    @cached_property
    def weights(self) -> IntArray:
        """Weight of the rows of each slice, but those beyond reach, in steps of 2**-BITS: (n,)."""
        found: IntArray = to_integers(self.dense["moments"][:, :2], 2)[:, 0]
        return found

    @property
    def _all_weight(self) -> FloatArray:
        """The weights as they are beyond capacity, too."""
        n = self.layout.by_name["moments"].n_digits
        return to_floats(self.dense["moments"][:, :n], n)[:, 0]

    @property
    def weight(self) -> int:
        """See :class:`AnyTotals`."""
        return int(self.weights[0])

    @property
    def fine_weights(self) -> FloatArray:
        """The same from the finer weights, in rows: shape (n,)."""
        return np.asarray(to_floats(self.dense["moments"][:, 4:8], 4)[:, 0] / 2**WEIGHT_BITS)

    def outlying(self, zone: Zone) -> FloatArray:
        """Weight of the outliers of a zone, in rows: shape (n,)."""
        own = self.entries.get("outliers")
        if own is None:
            return np.zeros(len(self))
        some = own[own.names[:, 1] == zone]
        weights = to_floats(some.digits[:, :4], 4)[:, 0] / 2**CELL_WEIGHT_BITS
        found = np.bincount(some.names[:, 0], weights, minlength=len(self))
        return found.astype(np.float64)

    def check_capacity(self) -> None:
        """Refuse slices whose weight the totals could not hold."""
        weights = self._all_weight * 2.0**-BITS + self.outlying(Zone.BEYOND)
        heaviest = np.maximum(weights, self.counts[:, 0]).max(initial=0.0)
        check_capacity(float(heaviest), self.layout.capacity_bits)

    def are_sound(self) -> BoolArray:
        """Say of each slice whether rows could have left its integers: shape (n,).

        What is checked holds for all rows, for sums of what is sound, and for differences that
        leave rows (``docs/format.md``). Not all that is impossible is found; but weights are
        positive where rows are, and means, variances and z are numbers to work with.
        """
        counts, weights = self.counts, self.weights
        total = weights + 2.0**BITS * self.outlying(Zone.BEYOND)
        sound = ((counts >= 0) & (counts < _LARGEST)).all(axis=1)
        sound &= np.abs(self._all_weight) < 2.0 * _LARGEST
        sound &= (weights >= 0) & (weights < _LARGEST) & (total >= 0) & (total < _LARGEST)
        sound &= (counts[:, 0] > 0) | ~self._have_some()
        u = counts[:, 0] + np.floor(weights * 2.0**-BITS)
        with np.errstate(over="ignore", invalid="ignore"):
            for family in self.layout.families:
                sound &= family.are_sound(self, u)
        return np.asarray(sound)

    def is_sound(self) -> bool:
        """Whether all slices are sound."""
        return bool(self.are_sound().all())

    def _have_some(self) -> BoolArray:
        """Whether integers of slices are not 0."""
        found = np.zeros(len(self), dtype=bool)
        for digits in self.dense.values():
            found |= digits.any(axis=1)
        for own in self.entries.values():
            found[own.names[:, 0]] = True
        return found

    def without_zeros(self) -> tuple[Totals, IntArray]:
        """Return the slices that are not all zeros, and their numbers."""
        left = np.flatnonzero(self.counts.any(axis=1) | self._have_some())
        return (self if len(left) == len(self) else self.take(left)), left


def check_capacity(weight: float, bits: int = CAPACITY_BITS) -> None:
    """Refuse a total weight that the totals could not hold."""
    if weight >= 2.0**bits:
        msg = (
            f"a sketch holds a total weight below 2**{bits}, and this would be "
            f"{weight:.4g}. Divide the weights by a constant, or keep several sketches."
        )
        raise DataError(msg)


class Sums:
    """Sums of slices in G groups, which come in pieces.

    Parameters
    ----------
    layout : Layout
        Of the slices.
    n_groups : int
        G.
    """

    def __init__(self, layout: Layout, n_groups: int) -> None:
        self._sum, self._waiting = Totals.zero(layout, n_groups), []  # type: tuple[Totals, list[tuple[Totals, IntArray, int]]]
        self._n_bytes = 0

    def add(self, totals: Totals, groups: IntArray, sign: int = 1) -> None:
        """Add slices to the groups (n,) they belong to, or take them away."""
        self._waiting.append((totals, groups, sign))
        self._n_bytes += totals.n_bytes
        if self._n_bytes > max(_WAITING_BYTES, self._sum.n_bytes):
            self.totals()

    def totals(self) -> Totals:
        """Return the sums so far."""
        if self._waiting:
            each = np.arange(len(self._sum))
            self._sum = Totals.sum([(self._sum, each, 1), *self._waiting], len(self._sum))
            self._waiting, self._n_bytes = [], 0
        return self._sum


def sum_entries(given: list[Entries], n_digits: int) -> Entries:
    """Add up the entries of one name; none of the sums is 0, and the list is emptied."""
    pieces = [piece for piece in given if len(piece)] or given[:1]
    given.clear()
    joined = np.concatenate([piece.names for piece in pieces])
    order, starts = _runs(joined)
    if len(pieces) == 1 and len(starts) == len(order) and _is_identity(order):
        return _drop_zeros(pieces[0])
    lengths = np.diff(np.append(starts, len(order)))
    places = np.empty(len(order), dtype=np.int64)  # of each entry among the sums
    places[order] = np.repeat(np.arange(len(starts)), lengths)
    digits = np.empty((len(starts), pieces[0].digits.shape[1]), dtype=np.int32)
    several = np.flatnonzero(lengths > 1)
    numbers = np.full(len(starts), -1)
    numbers[several] = np.arange(len(several))
    lanes = np.zeros((len(several), digits.shape[1]), dtype=np.int64)
    while pieces:  # the last first: each is let go as soon as it is added
        piece = pieces.pop()
        own, places = places[-len(piece) :], places[: -len(piece)]
        _put(piece.digits, own, numbers[own], digits, lanes)
    digits[several] = carry(lanes, n_digits)
    return _drop_zeros(Entries(joined[order[starts]], digits))


def _put(
    rows: Any, places: IntArray, numbers: IntArray, alone: Digits, lanes: IntArray, sign: int = 1
) -> None:
    """Copy rows that are alone at their place; add the others to the lanes of their number."""
    is_alone = numbers < 0
    for span in spans(len(rows), max(64, _AT_ONCE // max(1, rows.shape[1]))):
        some = is_alone[span]
        if some.all():
            alone[places[span]] = rows[span]
        else:
            alone[places[span][some]] = rows[span][some]
    if not is_alone.all():
        others = np.flatnonzero(~is_alone)
        order, starts = _runs(numbers[others][:, None])
        added = _sum_runs(rows, others[order], starts)
        lanes[numbers[others[order[starts]]]] += added if sign > 0 else -added


def _sum_runs(rows: Any, order: IntArray, starts: IntArray) -> IntArray:
    """Sums in int64 of rows from each start to the next, in an order."""
    sums = np.zeros((len(starts), rows.shape[1]), dtype=np.int64)
    is_identity = len(order) == len(rows) and _is_identity(order)
    for span in spans(len(order), max(64, _AT_ONCE // max(1, rows.shape[1]))):
        first, last = np.searchsorted(starts, [span.start, span.stop - 1], "right") - 1
        own = rows[span] if is_identity else rows[order[span]]
        if first == last:
            sums[first] += own.sum(axis=0, dtype=np.int64)
            continue
        local = np.maximum(starts[first : last + 1] - span.start, 0)
        sums[first : last + 1] += np.add.reduceat(own.astype(np.int64, copy=False), local, axis=0)
    return sums


def _runs(names: IntArray) -> tuple[IntArray, IntArray]:
    """An order of names (n, w) in which equal ones follow each other, and where each begins."""
    n, width = names.shape
    if not n:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    keys = names[:, 0]
    if width > 1:
        lows, highs = names.min(axis=0), names.max(axis=0)
        sizes = (highs - lows + 1).tolist()
        if math.prod(sizes) < 2**63:  # one number for all of a name
            keys = np.ravel_multi_index(tuple((names - lows).T), sizes)
        else:
            order = np.lexsort(names.T[::-1])
            is_new = (names[order[1:]] != names[order[:-1]]).any(axis=1)
            return order, np.concatenate([[0], np.flatnonzero(is_new) + 1])
    order = np.arange(n) if (keys[1:] >= keys[:-1]).all() else np.argsort(keys, kind="stable")
    own = keys[order]
    return order, np.concatenate([[0], np.flatnonzero(own[1:] != own[:-1]) + 1])


def _is_identity(order: IntArray) -> bool:
    return bool((order[1:] == order[:-1] + 1).all() and (not len(order) or order[0] == 0))
