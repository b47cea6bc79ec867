"""Families of integers: what rows add up to, one definition for each.

A family says which integers a slice has, how rows add to them, what they can be, how a file holds
them, and whether a private release may. Threads, slices, merges, files, checkpoints and releases go
through all families without knowing them.
"""

from __future__ import annotations

import inspect
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sketchshift._registry import added
from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift._validation import check_integer, parameter_error
from sketchshift.errors import SpecError
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, Kernel, Runs
from sketchshift.sketch.digits import Digits, into_digits, to_floats, to_integers

if TYPE_CHECKING:
    from sketchshift.sketch.totals import AnyTotals, Entries, Totals

__all__ = [
    "FAMILIES",
    "AdderFactories",
    "Family",
    "FamilyAdder",
    "FunctionFamily",
    "SlotSums",
    "WeightedRows",
    "Zone",
    "families_of",
    "register_family",
]


_AT_ONCE = 2**15  # numbers of functions that are held: they stay in cache


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

    @property
    def n_bytes(self) -> int:
        """Memory of the sums so far."""

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

    @property
    def n_bytes(self) -> int:
        """Memory of the sums."""
        return self._array.nbytes

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

    def decode(self, totals: AnyTotals) -> Any:
        """What the integers of a single slice say of its rows: themselves, if they say no more."""
        return totals.integers(self.name)

    @property
    def groups(self) -> tuple[int, ...]:
        """Numbers of integers that follow each other and are about as large: one width in a file.

        Those of a slice, or of an entry.
        """
        return (self.n_integers,)

    def are_names(self, names: IntArray) -> BoolArray:
        """Say of names (E, 1 + id_width) of entries whether rows could have them."""
        return np.ones(len(names), dtype=bool)


class FunctionFamily(Family):
    """Sums of bounded functions of the rows, in steps of 2**-22: :meth:`evaluate` is all there is.

    A row of weight w adds rint(2**22 w f(x')) for each function f; whole weights count as so many
    rows. Private releases hold these sums, too: of private rows, functions are cut to their bounds.

    Parameters
    ----------
    spec : SketchSpec
        Of the sketch.
    *shape : int
        Of the sums; one for each function.

    Attributes
    ----------
    lowest : float
        Lower bound of the functions, -1 or 0; the upper one is 1.
    """

    lowest = -1.0
    zones = frozenset(Zone)

    def __init__(self, spec: SketchSpec, *shape: int) -> None:
        self.shape = tuple(check_integer(self.name, "shape", size, 1, 2**24) for size in shape)
        self.row_square = self.n_integers << (2 * BITS)
        self._is_private = spec.rows.ball is not None

    @abstractmethod
    def evaluate(self, values: FloatArray) -> FloatArray:
        """Return the functions at some normalised rows ``values`` (n, d): (n, w), numbers or bool.

        w is the product of the shape. The numbers must depend on each row alone and be the same on
        every machine: sums, products and square roots are, and ``exponential`` and ``logarithm`` of
        ``features.stream``; ``numpy.exp`` is not. Threads share the family.
        """

    def checked(self, values: FloatArray) -> FloatArray:
        """Return the functions at ``values``, or an error that names this family."""
        values.flags.writeable = False  # the next family sees them, too
        found = np.asarray(self.evaluate(values))
        shape = len(values), self.n_integers
        if found.shape != shape or found.dtype.kind not in "bif":
            msg = (
                f"evaluate of the family {self.name!r} must return numbers of shape {shape}. Got "
                f"{found.dtype} of shape {found.shape}."
            )
            raise SpecError(msg)
        numbers = found.astype(np.float64)
        if self._is_private:  # no error may depend on a private row
            return np.clip(np.nan_to_num(numbers, nan=0.0), self.lowest, 1.0)
        if not ((numbers >= self.lowest) & (numbers <= 1.0)).all():
            worst = numbers[~((numbers >= self.lowest) & (numbers <= 1.0))][0]
            msg = (
                f"evaluate of the family {self.name!r} must return numbers from {self.lowest:g} to "
                f"1. Got {worst}. Divide by a bound, or cut with np.clip."
            )
            raise SpecError(msg)
        return numbers

    def adders(self, kernel: Kernel) -> Callable[[], FamilyAdder]:
        """Adders that evaluate a few rows at a time."""
        return lambda: _FunctionAdder(self, kernel)

    def are_sound(self, totals: Totals, u: FloatArray) -> BoolArray:
        """Sums of what lies within bounds lie within as many times the weight."""
        sums = to_floats(totals.dense[self.name], self.n_digits)
        beyond = 2.0**BITS * totals.outlying(Zone.BEYOND)
        most = (totals.weights + beyond + u) * (1.0 + 1e-9)
        lows, highs = sums.min(axis=1), sums.max(axis=1)
        return np.asarray((lows >= self.lowest * most) & (highs <= most))


class _FunctionAdder(SlotSums):
    def __init__(self, family: FunctionFamily, kernel: Kernel) -> None:
        super().__init__(family.n_integers)
        self._family, self._kernel = family, kernel
        self._step = max(1, _AT_ONCE // family.n_integers)

    def add(self, rows: WeightedRows) -> None:
        """Add the functions of the rows at once."""
        totals, values = self.reach(rows.n_slots), self._kernel.on_host(rows.values)
        for some, slot in rows.runs:
            for first in range(some.start, some.stop, self._step):
                part = slice(first, min(first + self._step, some.stop))
                numbers = 2.0**BITS * self._family.checked(values[part])
                if rows.shares is not None:
                    numbers = numbers * rows.shares[part, None]
                totals[slot] += np.rint(numbers).astype(np.int64).sum(axis=0) << rows.digit


FAMILIES: list[Callable[[SketchSpec], Family | None]] = []
"""What makes each family that a spec asks for, or None, in the order of the file."""


BUILT_IN = ("waves", "moments", "cells", "outliers", "partial", "clipped")
REGISTERED: dict[str, Callable[..., Family]] = {}
"""What makes each family that others registered, by its name."""


def register_family(family: type[Family]) -> type[Family]:
    """Register a family of integers, for ``SketchSpec.of(rows, families={name: parameters})``.

    Parameters
    ----------
    family : type
        A :class:`Family` with a name that no other has, made as ``family(spec, **parameters)``.
        Parameters are what JSON can hold. They are part of the spec, so sketches with others do
        not merge. Whoever reads a sketch must have imported the module that registers its families,
        or have it named by an entry point of the group ``sketchshift.plugins``.

    Returns
    -------
    family : type
        The same, so that this is a decorator, too.
    """
    if not (isinstance(family, type) and issubclass(family, Family)):
        raise parameter_error("register_family", "family", "a class of Family", family)
    name = getattr(family, "name", None)
    if not isinstance(name, str) or not name or name in BUILT_IN:
        must = f"a text, and none of {', '.join(BUILT_IN)}"
        raise parameter_error("register_family", "name", must, name)
    known = REGISTERED.get(name)
    if known is not None and _home_of(known) != _home_of(family):
        must = "one that no family has"
        raise parameter_error("register_family", "name", must, name)
    REGISTERED[name] = family  # the same class once more, where a module is loaded again
    return family


def _home_of(family: Any) -> tuple[str, str]:
    return family.__module__, family.__qualname__


def families_of(spec: SketchSpec) -> list[Family]:
    """Return the families that are summed with a spec. Draws and allocates nothing."""
    found = [family for make in FAMILIES if (family := make(spec)) is not None]
    for name, parameters in spec.families:
        if name not in REGISTERED:
            added("plugins")
        if name not in REGISTERED:
            msg = (
                f"the plan sums {name!r}, a family that is not known here. Import the module that "
                "registers it, or install the package that names this module as an entry point of "
                "the group 'sketchshift.plugins'."
            )
            raise SpecError(msg)
        make, own = REGISTERED[name], json.loads(parameters)
        try:
            inspect.signature(make).bind(spec, **own)
        except TypeError as cause:
            msg = f"the family {name!r} does not take the parameters of this plan ({cause})."
            raise SpecError(msg) from None
        found.append(make(spec, **own))
    return found
