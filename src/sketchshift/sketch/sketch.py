"""The sketch: exact integer totals that add, subtract and travel.

Takes totals from ``sketcher``; hands ``z`` and moments to ``objective`` and ``decoders``.
Equal data give equal sketches, bit for bit, however they were cut, ordered or merged.

Symbols
-------
d, m      dimension of a row, sketch size
z         sketch in the paper's normalisation, complex, shape (m,)
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchshift._paths import Place
from sketchshift._registry import show_card
from sketchshift._text import listed
from sketchshift._typing import ComplexArray, FloatArray, IntArray
from sketchshift._writing import write_atomically
from sketchshift.errors import (
    DataError,
    IncompatibleSketchesError,
    RemovalError,
    SharePlan,
    SketchFormatError,
)
from sketchshift.features import Frequencies, SketchSpec
from sketchshift.kernels import select_kernel
from sketchshift.sketch import file as file_format
from sketchshift.sketch.cells import CellSums
from sketchshift.sketch.moments import Moments
from sketchshift.sketch.outliers import Outliers
from sketchshift.sketch.totals import Totals

__all__ = [
    "AnySketch",
    "Sketch",
    "check_removal",
    "check_same_spec",
    "merge_sketches",
]

# What a decoder needs of a sketch, whether its totals are exact or noisy.


class AnySketch(ABC):
    """A vector z with the spec it was taken with, that decodes and travels.

    Attributes
    ----------
    spec : SketchSpec
        What was summed.
    fingerprint : str
        That of the spec; sketches with different ones do not merge.
    """

    spec: SketchSpec
    fingerprint: str
    _plural = "sketches"
    _one_plan: str | SharePlan = SharePlan()

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of rows, or an estimate of it."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """Sum of the rows' weights, or an estimate of it."""

    @property
    @abstractmethod
    def z(self) -> ComplexArray:
        """The sketch as the paper has it, shape (m,)."""

    @abstractmethod
    def __add__(self, other: object) -> AnySketch:
        """The sketch of the rows of both, taken with one spec."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """The sketch as bytes, the same on every machine (``docs/format.md``)."""

    @property
    def noise_std(self) -> float:
        """Standard deviation of noise in the real, and imaginary, parts of sqrt(m) z; 0 if none."""
        return 0.0

    @property
    def count_std(self) -> float:
        """Standard deviation of noise in :attr:`count`; 0 if none."""
        return 0.0

    @property
    def about(self) -> str:
        """What to write before :attr:`count`, which is not exact with noise."""
        return "about " if self.count_std else ""

    @property
    def moments(self) -> tuple[FloatArray, FloatArray] | None:
        """Mean (d,) and covariance (d, d) of the rows, or None where they are not known.

        In the units of the data; entries of the covariance that are not kept are NaN.
        """
        return None

    @property
    def spread(self) -> tuple[FloatArray, FloatArray] | None:
        """Mean and variance of each column, shapes (d,), or None where they are not known."""
        return None

    @property
    def outline(self) -> tuple[FloatArray, FloatArray]:
        """Where the rows lie: mean (d,) and covariance (d, d), in the units of the data."""
        return self.expected_outline

    @property
    def expected_outline(self) -> tuple[FloatArray, FloatArray]:
        """What the spec expects: its center, and a total variance of 1 in normalised units."""
        spec = self.spec
        return spec.rows.center_vector, np.diag(spec.rows.scale_vector**2 / spec.n_features)

    @property
    def frequencies(self) -> Frequencies:
        """The frequencies that were summed, drawn from the spec and checked: O(m d)."""
        if self.spec.fingerprint != self.fingerprint:
            msg = (
                f"this sketch does not belong to its plan: it was made with the frequencies "
                f"{self.fingerprint[:8]}, and the plan has {self.spec.fingerprint[:8]} here. The "
                "program that wrote the file did not follow the format: sketch the data again."
            )
            raise SketchFormatError(msg)
        return self.spec.frequencies

    @property
    def turns(self) -> FloatArray:
        """Frequencies divided by 2 pi, in normalised columns, shape (d, m).

        With axes, those along them as the columns have them: O(m d p).
        """
        turns, axes = self.frequencies.turns.astype(np.float64), self.spec.axes
        return turns if axes is None else axes.table.T.astype(np.float64) @ turns

    def check_addable(self, other: AnySketch, verb: str) -> None:
        """Refuse a sketch that cannot be added to this one.

        Parameters
        ----------
        other : AnySketch
            Of the same kind, raw or private, and of the same spec.
        verb : str
            What is to be done with both, for the message.
        """
        if not isinstance(other, type(self)):
            msg = (
                f"cannot {verb} a raw sketch and a private one: the raw one would give away what "
                "the private one hides. Release the raw sketch first, or merge raw sketches and "
                "release the sum."
            )
            raise IncompatibleSketchesError(msg, verb=verb)
        check_same_spec(self, other, verb)

    @property
    def nbytes(self) -> int:
        """Size of the sketch as a file."""
        return len(self.to_bytes())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sketch to a file: either all of it is there afterwards, or nothing changed.

        Parameters
        ----------
        path : path
            Usually ``*.sketch``; never ``*.parquet``. An existing file is replaced.
        """
        file_format.check_ending(path, ".sketch", "a sketch")
        write_atomically(path, self.to_bytes())


def check_same_spec(a: AnySketch, b: AnySketch, verb: str) -> None:
    """Refuse two sketches whose specs differ: their numbers mean different things.

    Parameters
    ----------
    a, b : AnySketch
        The error has their specs as ``left`` and ``right``.
    verb : str
        What was to be done with both: "merge", "subtract", "compare".
    """
    if a.fingerprint == b.fingerprint and (a.spec is b.spec or a.spec == b.spec):
        return
    msg = (
        f"cannot {verb} {a._plural} that were made with different plans:\n"
        f"  left : {a.spec.describe()}\n"
        f"  right: {b.spec.describe()}\n"
    )
    raise IncompatibleSketchesError(msg, a._one_plan, verb=verb, left=a.spec, right=b.spec)


@dataclass(frozen=True, eq=False)
class Sketch(AnySketch):
    """A dataset in a few kilobytes, as exact integers.

    Made by :func:`sketchshift.sketch` or a :class:`~sketchshift.Sketcher`, not by hand.
    ``a + b`` is the sketch of both datasets, ``a - b`` that of ``a`` without ``b``, both in
    O(m + d^2); ``sum(parts)`` works; ``a == b`` compares bit for bit.

    Attributes
    ----------
    spec : SketchSpec
        What was summed.
    fingerprint : str
        That of the spec; sketches with different ones do not merge.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> spec = ss.SketchSpec(n_features=2, sketch_size=50, bandwidth=0.3)
    >>> X = np.linspace(0, 1, 200).reshape(100, 2)
    >>> whole, part = ss.sketch(X, spec), ss.sketch(X[:30], spec)
    >>> (whole - part) == ss.sketch(X[30:], spec)
    True
    >>> Sketch.from_bytes(whole.to_bytes()) == whole
    True
    """

    spec: SketchSpec
    fingerprint: str
    _totals: Totals

    @property
    def _moments(self) -> Moments:
        return self._totals.decode("moments")  # type: ignore[no-any-return]

    @property
    def count(self) -> int:
        """Number of rows, those removed not counted."""
        return self._totals.count

    @property
    def n_invalid(self) -> int:
        """Number of rows left out because of missing or infinite values."""
        return self._totals.n_invalid

    @property
    def total_weight(self) -> float:
        """Sum of the rows' weights; the count when there are none."""
        within = self._moments.weight
        return within if self.spec.cells is None else within + float(self.far.weights.sum())

    @property
    def cells(self) -> CellSums | None:
        """What is known of the rows nearest to each center of the plan; None without cells.

        First of those in the J cells, then of those farther from their center than any that the
        plan expects, in shells: by center, and by column, sign and power of two of the offset.
        """
        return None if self.spec.cells is None else self._totals.decode("cells")

    def find_cells(self, places: FloatArray) -> IntArray:
        """Number of the cell or shell, as :attr:`cells` has them, that places would be in.

        Parameters
        ----------
        places : array of shape (n, d)
            In normalised coordinates.

        Returns
        -------
        labels : int array of shape (n,)
            The nearest cell, where there is no such shell. O(J d) a place.
        """
        assert self.spec.cells is not None
        cells = self.spec.cells
        labels, squares = select_kernel().cells(cells.groups).nearest(places.astype(np.float32))
        out = np.flatnonzero(squares > np.float32(cells.limit))
        family = self._totals.layout.by_name["outliers"]
        shells = family.find_shells(self._totals, places[out], labels[out])
        labels[out] = np.where(shells < 0, labels[out], cells.n_cells + shells)
        return labels

    @property
    def outer(self) -> CellSums:
        """Rows beyond the reach of cells, but within that of waves."""
        return self._outliers.outer

    @property
    def far(self) -> CellSums:
        """Rows beyond the reach of the spec: in no mean, no variance, no wave, no cell."""
        return self._outliers.beyond

    @property
    def is_far(self) -> bool:
        """Whether all rows lie beyond the reach of the spec."""
        return self._moments.weight == 0.0

    @property
    def n_partial(self) -> int:
        """Rows that had a fraction in their weight; all of them, for all we know, without cells."""
        return self.count if self.spec.cells is None else int(self._totals.decode("partial")[0])

    @property
    def weight_step(self) -> float:
        """What the weights of cells were rounded to, of rows that had a fraction in theirs."""
        return float(2.0 ** -self._totals.layout.by_name["cells"].weight_bits)

    @property
    def _outliers(self) -> Outliers:
        """In normalised coordinates, by their largest one: its column, sign and power of two."""
        if self.spec.cells is None:
            return Outliers(*[CellSums.none(self.spec.n_features)] * 3)
        return self._totals.decode("outliers")  # type: ignore[no-any-return]

    def integers(self, name: str) -> Any:
        """The exact sums of a family by its ``name``: "waves", or one that was registered.

        Returns
        -------
        integers : array
            Of the family's shape, in its steps: of waves and of functions int64 in steps of
            2**-22. Of outliers a mapping.
        """
        if name not in self._totals.layout.by_name:
            names = listed(list(self._totals.layout.by_name))
            raise DataError(f"this sketch has no sums {name!r}, but {names}.")
        return self._totals.integers(name)

    @property
    def z(self) -> ComplexArray:
        r"""The sketch as the paper has it, shape (m,).

        .. math::

            z_j = \frac{1}{\sqrt m} \,
            \frac{\sum_i w_i e^{\mathrm{i}\langle\omega_j, x'_i\rangle}}{\sum_i w_i}

        with all weights 1 unless there are sample weights.
        """
        if self._totals.weight == 0:
            msg = f"there is no mean of nothing: this sketch has {self.count} rows of weight 0."
            raise RemovalError(msg)
        none = np.zeros(0, dtype=np.complex128)
        return self._totals.decode("waves").copy() if self.spec.sketch_size else none

    @property
    def mean(self) -> FloatArray:
        """Mean of the rows, in the units of the data, shape (d,).

        Of a spec without moments, that of its cells.
        """
        if self.spec.has_moments:
            return self._moments.mean.copy()
        if self.cells is None:
            raise _no_moments("mean")
        sums = self.cells + self.outer
        spec, shares = self.spec, sums.weights / (float(sums.weights.sum()) or np.nan)
        return spec.rows.center_vector + spec.rows.scale_vector * (shares @ sums.means)

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the rows (divided by N), in the units of the data, shape (d, d).

        From integers, so that nothing cancels however far the data lies; rows enter rounded to
        steps of about bandwidth / (2**16 sqrt(d)), below which a column's spread is not seen.
        Beyond 64 columns only variances are kept, and the other entries are NaN.
        """
        if not self.spec.has_moments:
            raise _no_moments("covariance")
        return self._moments.covariance.copy()

    @property
    def variance(self) -> FloatArray:
        """Variances of the columns, in the units of the data, shape (d,)."""
        if not self.spec.has_moments:
            raise _no_moments("variance")
        return self._moments.variance.copy()

    @property
    def moments(self) -> tuple[FloatArray, FloatArray] | None:
        """Mean (d,) and covariance (d, d) of the rows; None if the spec does not keep them."""
        return (self.mean, self.covariance) if self.spec.has_moments else None

    @property
    def outline(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of the rows.

        Of a spec without moments, variances are those of its cells, shared out alike within each.
        """
        if (moments := self.moments) is not None:
            return moments
        spread = self.spread
        return self.expected_outline if spread is None else (spread[0], np.diag(spread[1]))

    @property
    def spread(self) -> tuple[FloatArray, FloatArray] | None:
        """Mean and variance of each column, shapes (d,); of a spec without moments, of its cells.

        None where there are neither, or no rows.
        """
        spec = self.spec
        if self.is_far:
            return None
        if spec.has_moments:
            return self.mean, self.variance
        if self.cells is None:
            return None
        sums, mean = self.cells + self.outer, self.mean
        shares = sums.weights / sums.weights.sum()
        rests = sums.means - (mean - spec.rows.center_vector) * spec.rows.per_unit
        variances = shares @ (sums.variances + np.square(rests))
        return mean, variances * spec.rows.scale_vector**2

    def prefix(self, sketch_size: int) -> Sketch:
        """The sketch at the first ``sketch_size`` frequencies, as if it had been taken so."""
        spec = self.spec.prefix(sketch_size)
        return Sketch(spec, spec.fingerprint, self._totals.prefix(spec))

    def __add__(self, other: object) -> Sketch:
        if isinstance(other, int) and other == 0:  # the start of sum()
            return self
        return self._combine(other, "merge", Totals.__add__)

    __radd__ = __add__

    def __sub__(self, other: object) -> Sketch:
        return self._combine(other, "subtract", Totals.__sub__)

    def _combine(
        self, other: object, verb: str, operation: Callable[[Totals, Totals], Totals]
    ) -> Sketch:
        if not isinstance(other, Sketch):
            return NotImplemented  # type: ignore[no-any-return]
        self.check_addable(other, verb)
        totals = operation(self._totals, other._totals)
        check_removal(self._totals, other._totals, totals)
        return Sketch(self.spec, self.fingerprint, totals)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        skipped = f", {self.n_invalid} left out" if self.n_invalid else ""
        weight = "" if self.total_weight == self.count else f", weight {self.total_weight:.6g}"
        return (
            f"<Sketch of {self.count} rows{weight}{skipped} x {self.spec.n_features} columns: "
            f"m={self.spec.sketch_size}, {self.nbytes} bytes, fingerprint {self.fingerprint[:8]}>"
        )

    def _repr_html_(self) -> str | None:
        return show_card(self)

    def __sizeof__(self) -> int:
        # engines weigh by it what to move and what to keep
        return object.__sizeof__(self) + self._totals.n_bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return Sketch.from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        """The sketch as bytes, the same on every machine (``docs/format.md``)."""
        return file_format.encode(self.fingerprint, self._totals)

    @classmethod
    def from_bytes(cls, data: bytes) -> Sketch:
        """Read a sketch; anything but an intact one is a :class:`SketchFormatError`.

        Parameters
        ----------
        data : bytes
            What :meth:`to_bytes` gave.

        Returns
        -------
        sketch : Sketch
            Equal to the one written. Allocates no more than a small multiple of
            ``len(data)``, whatever the bytes say.
        """
        return cls(*file_format.decode(data))


def _no_moments(name: str) -> DataError:
    msg = (
        f"this sketch has no {name}: its plan leaves it out, since drift does not need it. Sketch "
        'the data with a spec that has moments="full".'
    )
    return DataError(msg)


def _load(path: Place) -> Sketch:
    with file_format.name_file(path):
        return Sketch.from_bytes(path.read_bytes())


file_format.register_kind(file_format.MAGIC, "a sketch", _load)


def merge_sketches(sketches: Sequence[Sketch]) -> Sketch:
    """The sum of one or more sketches: as ``sum(sketches)``, with the checks made once."""
    first = sketches[0]
    for sketch in sketches[1:]:
        check_same_spec(first, sketch, "merge")
    if len(sketches) == 1:
        return first
    totals = Totals.join([sketch._totals for sketch in sketches]).merged()
    return Sketch(first.spec, first.fingerprint, totals)


def check_removal(left: Totals, right: Totals, result: Totals) -> None:
    """Refuse what no removal of rows once added could leave behind."""
    if result.count < 0 or result.n_invalid < 0 or result.weight < 0:
        msg = (
            f"cannot remove more than was added: {_amount(right)} from {_amount(left)}. Subtract "
            "only sketches of rows that were added."
        )
        raise RemovalError(msg)
    if not result.is_sound():
        msg = (
            f"some of the rows to remove were never added: {_amount(right)} from {_amount(left)} "
            f"would leave {_amount(result)} with sums that no rows have. Subtract only sketches of "
            "rows that were added, with the weights they had."
        )
        raise RemovalError(msg)


def _amount(totals: Totals) -> str:
    weight = f"weight {totals.fine_weights[0]:.6g}"
    return f"{totals.count} rows ({weight}, {totals.n_invalid} left out)"
