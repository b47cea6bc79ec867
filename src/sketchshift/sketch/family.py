"""Families of integers: what rows add up to, one definition for each.

A family says which integers a slice has, how rows add to them, what they can be, how a file holds
them, and whether a private release may. Threads, slices, merges, files, checkpoints and releases go
through all families without knowing them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import Kernel, Runs
from sketchshift.sketch.digits import Digits, into_digits, to_integers

if TYPE_CHECKING:
    from sketchshift.sketch.totals import Entries, Totals

__all__ = [
    "FAMILIES",
    "AdderFactories",
    "Family",
    "FamilyAdder",
    "SlotSums",
    "WeightedRows",
    "Zone",
    "families_of",
]


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
    slots : int64 array of shape (n,)
        Number of the slice that each row belongs to; rows of one slice follow each other.
    shares : array of shape (n,) or None
        Weights up to 1; None where all are 1.
    digit : int
        Power of two.
    zone : Zone
        Where all of them lie.
    n_slots : int
        Slices there are so far.
    cells : int array of shape (n,) or None
        The nearest centers of rows that lie near enough to have one.
    """

    values: FloatArray
    coordinates: FloatArray
    slots: IntArray
    shares: FloatArray | None
    digit: int
    zone: Zone
    n_slots: int = 1
    cells: IntArray | None = None

    @cached_property
    def runs(self) -> Runs:
        """The rows of each slice."""
        return Runs.of(self.slots)

    def outside(self, rows: IntArray, cells: IntArray) -> WeightedRows:
        """Select some of the rows, which have a nearest center each and lie in no cell."""
        shares = None if self.shares is None else self.shares[rows]
        places = self.values[rows], self.coordinates[rows], self.slots[rows]
        return WeightedRows(*places, shares, self.digit, Zone.OUTER, self.n_slots, cells)

    def on_host(self, kernel: Kernel) -> WeightedRows:
        """Bring the rows from where the kernel computes."""
        places = kernel.on_host(self.values), kernel.on_host(self.coordinates)
        return replace(self, values=places[0], coordinates=places[1])


class FamilyAdder(Protocol):
    """Adds rows to the integers of one family; one for each thread."""

    def add(self, rows: WeightedRows) -> WeightedRows | None:
        """Add rows to their slices; return those that are left for outliers."""

    def take(self, n: int) -> Digits | Entries:
        """Return the digits of all n slices, or their entries, and begin anew."""


AdderFactories = dict[str, Callable[[], FamilyAdder]]
"""What makes an adder for each family, by its name; threads share the tables behind it."""


class SlotSums:
    """Sums in int64 by slot, of which there are as many as were reached."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape
        self._array: IntArray = np.zeros((0, *shape), dtype=np.int64)

    def reach(self, n: int) -> IntArray:
        """Make room for n slots; return the array of these."""
        if n > len(self._array):
            size = n if n == 1 else n + n // 4  # memory that is not touched costs nothing
            grown = np.zeros((size, *self.shape), dtype=np.int64)
            grown[: len(self._array)] = self._array
            self._array = grown
        return self._array[:n]

    def take_sums(self, n: int) -> IntArray:
        """Return the sums of n slots, and begin anew."""
        found = self.reach(n)
        self._array = np.zeros((0, *self.shape), dtype=np.int64)
        return found

    def take(self, n: int) -> Digits:
        """Return the sums of n slots as two digits each, in the same memory; begin anew."""
        found = self.take_sums(n)
        return into_digits(found.reshape(n, found[0].size if n else 0))


class Family(ABC):
    """One family of integers: a definition that follows from the spec.

    Attributes
    ----------
    name : str
        Of the family.
    shape : tuple of int
        Of the integers of a slice, and of an entry where there are entries.
    n_digits : int
        Of each integer: 2 where a row of weight 1 changes none by more than 2**22, so that they
        stay below 2**62; else 4.
    id_width : int
        Numbers that name an entry; 0 where every slice has all integers.
    row_square : int or None
        The largest squared L2 norm of what one row of weight 1 adds. None keeps the family out
        of private releases.
    zones : frozenset of Zone
        Where rows lie that are added.
    """

    name: str
    shape: tuple[int, ...]
    n_digits = 2
    id_width = 0
    row_square: int | None = None
    zones = frozenset({Zone.NEAR, Zone.OUTER})

    @property
    def n_integers(self) -> int:
        """Integers of a slice, or of an entry."""
        return math.prod(self.shape)

    @property
    def full_shape(self) -> tuple[int, ...]:
        """Of the integers of a slice, were there all entries."""
        return self.shape

    @property
    def width(self) -> int:
        """Digits of a slice or an entry."""
        return self.n_integers * self.n_digits

    @abstractmethod
    def adders(self, kernel: Kernel) -> Callable[[], FamilyAdder]:
        """Return what makes adders, one for each thread, around tables that they share."""

    @abstractmethod
    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """Say of n slices whether rows could have left these integers.

        Bounds are of float64, and wider by 1e-9: what rows leave is never refused.

        Parameters
        ----------
        totals : Totals
            All families of the slices.
        u : array of shape (n,)
            Rows of each, a whole weight counted as often as it says.
        """

    def cut(self, digits: Digits, prefix: Family) -> Digits:
        """Return those digits that the family of a prefix of the spec has too."""
        return digits

    def integers(self, totals: Totals, i: int = 0) -> Any:
        """The integers of slice i: int64, or Python's own where an integer has four digits."""
        own = to_integers(totals.dense[self.name][i], self.n_digits)
        return own.reshape(self.shape)

    @property
    def groups(self) -> tuple[int, ...]:
        """Numbers of integers that follow each other and are about as large: one width in a file.

        Those of a slice, or of an entry.
        """
        return (self.n_integers,)

    def are_names(self, names: IntArray) -> BoolArray:
        """Say of names (E, 1 + id_width) of entries whether rows could have them."""
        return np.ones(len(names), dtype=bool)


FAMILIES: list[Callable[[SketchSpec], Family | None]] = []
"""What makes each family that a spec asks for, or None, in the order of the file."""


def families_of(spec: SketchSpec) -> list[Family]:
    """Return the families that are summed with a spec. Draws and allocates nothing."""
    return [family for make in FAMILIES if (family := make(spec)) is not None]
