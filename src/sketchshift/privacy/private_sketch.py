"""The private sketch: noisy totals with their ledger, to be handed to anybody.

Made by :func:`~sketchshift.privacy.release`. All that is done with it afterwards, decoding for
any k included, is post-processing: it costs nothing more.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sketchshift._typing import ComplexArray
from sketchshift.errors import IncompatibleSketchesError, PrivacyError, SketchFormatError
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS
from sketchshift.privacy import format as file_format
from sketchshift.privacy.ledger import Ledger
from sketchshift.privacy.noisy_totals import NoisyTotals
from sketchshift.sketch import AnySketch
from sketchshift.sketch.format import MAGIC as RAW_MAGIC

__all__ = ["PrivateSketch", "load"]

_NOT_RELEASED = ("covariance", "mean", "mean_tilt", "n_invalid", "remove", "update", "variance")


@dataclass(frozen=True, eq=False)
class PrivateSketch(AnySketch):
    """A sketch whose numbers carry the noise of a private release.

    Made by :func:`sketchshift.privacy.release`, not by hand. ``a + b`` and ``a - b`` add the
    noise and the ledgers of both.

    Attributes
    ----------
    spec : SketchSpec
        What was summed; public.
    fingerprint : str
        That of the spec; sketches with different ones do not merge.
    ledger : Ledger
        What this sketch cost the people in it.
    """

    spec: SketchSpec
    fingerprint: str
    _totals: NoisyTotals
    ledger: Ledger

    @property
    def total_weight(self) -> float:
        """The noisy number of rows; negative, perhaps, when there are few."""
        return self._totals.scaled_count / self._totals.count_factor

    @property
    def count(self) -> int:
        """The noisy number of rows, as a whole number that is not negative."""
        return max(0, round(self.total_weight))

    @property
    def count_std(self) -> float:
        """Standard deviation of the noise in :attr:`count`."""
        return self._totals.scale / self._totals.count_factor

    @property
    def z(self) -> ComplexArray:
        """The noisy sketch in the paper's normalisation, shape (m,)."""
        if self.total_weight <= 0.0:
            msg = f"z is a mean over rows, and there are about {self.total_weight:.0f} of them."
            raise PrivacyError(msg)
        cosines, sines = self._totals.waves / (self.total_weight * 2.0**BITS)
        return np.asarray((cosines + 1j * sines) / math.sqrt(self.spec.sketch_size))

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise in the real, and imaginary, parts of sqrt(m) z."""
        return self._totals.scale / (max(self.total_weight, 1.0) * 2.0**BITS)

    @property
    def statement(self) -> str:
        """What is promised, and about how many rows, in one line."""
        epsilon = float(f"{self.ledger.epsilon():.4g}")
        return (
            f"epsilon {epsilon!r} at delta {self.ledger.delta:g}; "
            f"about {self.count:,} +- {self.count_std:,.0f} rows"
        )

    def prefix(self, sketch_size: int) -> PrivateSketch:
        """The sketch at the first ``sketch_size`` frequencies, at no cost."""
        spec = self.spec.prefix(sketch_size)
        totals = self._totals.prefix(sketch_size)
        return PrivateSketch(spec, spec.fingerprint, totals, self.ledger)

    def merge(self, other: PrivateSketch, *, disjoint: bool = False) -> PrivateSketch:
        """The private sketch of both datasets: counts and variances of the noise add up.

        Parameters
        ----------
        other : PrivateSketch
            Taken with the same spec.
        disjoint : bool, default=False
            Whether no person has rows in both: then the dearer ledger counts, else their sum.

        Returns
        -------
        merged : PrivateSketch
            O(m).
        """
        right = self._check(other, "merge")
        mine, others = self.ledger, right.ledger
        ledger = mine.beside(others) if disjoint else mine + others
        return PrivateSketch(self.spec, self.fingerprint, self._totals + right._totals, ledger)

    def __add__(self, other: object) -> PrivateSketch:
        if isinstance(other, int) and other == 0:  # the start of sum()
            return self
        if not isinstance(other, AnySketch):
            return NotImplemented
        return self.merge(other)  # type: ignore[arg-type]  # checked there

    __radd__ = __add__

    def __sub__(self, other: object) -> PrivateSketch:
        if not isinstance(other, AnySketch):
            return NotImplemented
        right = self._check(other, "subtract")
        ledger = self.ledger + right.ledger
        return PrivateSketch(self.spec, self.fingerprint, self._totals - right._totals, ledger)

    def __rsub__(self, other: object) -> PrivateSketch:
        if not isinstance(other, AnySketch):
            return NotImplemented
        raise _of_both_kinds("subtract")

    def _check(self, other: AnySketch, verb: str) -> PrivateSketch:
        if not isinstance(other, PrivateSketch):
            raise _of_both_kinds(verb)
        if self.fingerprint != other.fingerprint or self.spec != other.spec:
            msg = (
                f"cannot {verb} private sketches taken with different specs:\n"
                f"  left : {self.spec.describe()}\n"
                f"  right: {other.spec.describe()}\n"
                "Sketch every part of the data with one plan, then release."
            )
            raise IncompatibleSketchesError(msg)
        shared = self._releases() & other._releases()
        if shared:
            msg = (
                f"cannot {verb} these private sketches: both hold the release {min(shared)[:8]}, "
                "whose rows would count twice. Take every release once."
            )
            raise IncompatibleSketchesError(msg)
        return other

    def _releases(self) -> set[str]:
        return {charge.id for charge in self.ledger.charges if charge.purpose == "release"}

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_RELEASED:
            msg = (
                f"a private sketch has no {name!r}: z and the number of rows alone are released. "
                "Decode it for the clusters, or ask the keeper of the raw sketch."
            )
            raise AttributeError(msg)
        raise AttributeError(f"'PrivateSketch' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return (
            f"<PrivateSketch: {self.statement} x {self.spec.n_features} columns, "
            f"m={self.spec.sketch_size}, fingerprint {self.fingerprint[:8]}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return PrivateSketch.from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        """The sketch as bytes, the same on every machine (``docs/format.md``)."""
        return file_format.encode(self.spec, self.fingerprint, self._totals, self.ledger)

    @classmethod
    def from_bytes(cls, data: bytes) -> PrivateSketch:
        """Read a private sketch; anything but an intact one is a :class:`SketchFormatError`.

        Parameters
        ----------
        data : bytes
            What :meth:`to_bytes` gave, in this version or an earlier one.

        Returns
        -------
        sketch : PrivateSketch
            With the integers, the scale and the ledger of the one written.
        """
        return cls(*file_format.decode(data))


def load(path: str | os.PathLike[str]) -> PrivateSketch:
    """Read the file of a private sketch.

    Parameters
    ----------
    path : path
        What :meth:`PrivateSketch.save` or the ``sketchshift release`` command wrote.

    Returns
    -------
    sketch : PrivateSketch
        A damaged file is a :class:`SketchFormatError` that names it.
    """
    data = Path(path).read_bytes()
    if data.startswith(RAW_MAGIC):
        msg = f"{os.fspath(path)}: this is a raw sketch, with no noise. Read it with ss.load."
        raise SketchFormatError(msg)
    try:
        return PrivateSketch.from_bytes(data)
    except SketchFormatError as error:
        raise SketchFormatError(f"{os.fspath(path)}: {error}") from None


def _of_both_kinds(verb: str) -> IncompatibleSketchesError:
    msg = (
        f"cannot {verb} a raw sketch and a private one: the sum would carry raw rows under a "
        "private ledger. Release the raw sketch first, or merge raw sketches and release once."
    )
    return IncompatibleSketchesError(msg)
