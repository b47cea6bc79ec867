"""The private sketch: noisy totals with their ledger, to be handed to anybody.

Made by :func:`~sketchshift.privacy.release`. All that is done with it afterwards, decoding for
any k included, is post-processing: it costs nothing more.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sketchshift._paths import parse_path
from sketchshift._registry import show_card
from sketchshift._typing import ComplexArray, IntArray
from sketchshift.errors import IncompatibleSketchesError, PrivacyError, SketchFormatError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.features.rows import SCALES
from sketchshift.kernels import BITS
from sketchshift.privacy.ledger import Ledger
from sketchshift.privacy.mechanism import LARGEST
from sketchshift.sketch import AnySketch
from sketchshift.sketch.clipped import NoisyCells
from sketchshift.sketch.file import MAGIC as RAW_MAGIC
from sketchshift.sketch.file import (
    PRIVATE_MAGIC,
    check_fingerprint,
    name_file,
    pack,
    read_header,
    read_spec,
    register_kind,
    unpack,
)
from sketchshift.sketch.totals import AnyTotals, Layout

__all__ = ["NoisyTotals", "PrivateSketch", "decode", "encode", "load"]

# The integers of a private sketch: what a release of the totals leaves of them.


@dataclass(frozen=True, eq=False)
class NoisyTotals(AnyTotals):
    """What a release holds of totals: integers with noise, which add up as exact ones do.

    Attributes
    ----------
    vector : int64 array
        The integers of all released families, then the number of rows times ``count_factor``.
    layout : Layout
        Of the spec.
    count_factor : int
        From the parts that are released alone.
    scale : float
        Standard deviation of the noise in each of these integers.
    cell_factor : int
        What the integers of cells were multiplied by, where there are some.
    """

    vector: IntArray
    layout: Layout
    count_factor: int
    scale: float
    cell_factor: int = 1

    @property
    def parts(self) -> dict[str, IntArray]:
        """The integers of each released family, which share the memory of the vector."""
        parts = self.layout.released
        ends = np.cumsum([math.prod(part.full_shape) for part in parts])
        pieces = zip(parts, np.split(self.vector, ends), strict=False)
        return {part.name: own.reshape(part.full_shape) for part, own in pieces}

    def integers(self, name: str, i: int = 0) -> IntArray:
        """See :class:`~sketchshift.sketch.totals.AnyTotals`."""
        return self.parts[name]

    @property
    def count(self) -> float:
        """The noisy number of rows."""
        return int(self.vector[-1]) / self.count_factor

    @property
    def weight(self) -> float:
        """See :class:`~sketchshift.sketch.totals.AnyTotals`."""
        return self.count * 2.0**BITS

    def combine(self, other: NoisyTotals, sign: int) -> NoisyTotals:
        """Both, clipped to where two of them still add up in int64: only noise goes beyond."""
        vector = np.clip(self.vector + sign * other.vector, 1 - LARGEST, LARGEST - 1)
        return replace(self, vector=vector, scale=math.hypot(self.scale, other.scale))

    def prefix(self, spec: SketchSpec) -> NoisyTotals:
        """What is left of it with a prefix of its spec."""
        layout, parts = Layout.of(spec), self.parts
        cut = [
            parts[part.name][tuple(map(slice, part.full_shape))].ravel() for part in layout.released
        ]
        return replace(self, layout=layout, vector=np.concatenate([*cut, self.vector[-1:]]))


_NOT_RELEASED = ("covariance", "mean", "n_invalid", "remove", "update", "variance")


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
    _plural = "private sketches"
    _one_plan = "Sketch every part of the data with one plan, then release."

    @property
    def total_weight(self) -> float:
        """The noisy number of rows; negative, perhaps, when there are few."""
        return self._totals.count

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
            msg = f"there is no mean of nothing: there are about {self.total_weight:.0f} rows."
            raise PrivacyError(msg)
        return self._totals.decode("waves").copy()  # type: ignore[no-any-return]

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise in the real, and imaginary, parts of sqrt(m) z."""
        return self._totals.scale / (max(self.total_weight, 1.0) * 2.0**BITS)

    @property
    def cells(self) -> NoisyCells | None:
        """What the release tells of the rows nearest to each center of the plan; None without."""
        return None if self.spec.cells is None else self._totals.decode("clipped")

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
        totals = self._totals.prefix(spec)
        return PrivateSketch(spec, spec.fingerprint, totals, self.ledger)

    def merge(self, other: PrivateSketch, *, disjoint: bool = False) -> PrivateSketch:
        """The private sketch of both datasets: counts and variances of the noise add up.

        Parameters
        ----------
        other : PrivateSketch
            Taken with the same spec.
        disjoint : bool, default=False
            Whether no person has rows in both: then the larger ledger counts, else their sum.

        Returns
        -------
        merged : PrivateSketch
            O(m).
        """
        self.check_addable(other, "merge")
        mine, others = self.ledger, other.ledger
        ledger = mine.beside(others) if disjoint else mine + others
        return PrivateSketch(
            self.spec, self.fingerprint, self._totals.combine(other._totals, 1), ledger
        )

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
        self.check_addable(other, "subtract")
        assert isinstance(other, PrivateSketch)
        ledger = self.ledger + other.ledger
        return PrivateSketch(
            self.spec, self.fingerprint, self._totals.combine(other._totals, -1), ledger
        )

    def __rsub__(self, other: object) -> PrivateSketch:
        if not isinstance(other, AnySketch):
            return NotImplemented
        other.check_addable(self, "subtract")
        return NotImplemented

    def check_addable(self, other: AnySketch, verb: str) -> None:
        """Refuse a sketch of another kind or spec, or one that holds a release of this one."""
        super().check_addable(other, verb)
        assert isinstance(other, PrivateSketch)
        shared = self._releases() & other._releases()
        if shared:
            msg = (
                f"cannot {verb} these private sketches: both hold the release {min(shared)[:8]}, "
                "whose rows would count twice. Take every release once."
            )
            raise IncompatibleSketchesError(msg, verb=verb)

    def _releases(self) -> set[str]:
        return {charge.id for charge in self.ledger.charges if charge.purpose == "release"}

    def __getattr__(self, name: str) -> Any:
        if name in _NOT_RELEASED:
            msg = (
                f"a private sketch has no {name!r}: only the number of rows and the sums that "
                "clusters come from are released. Decode it for the clusters, or ask the keeper of "
                "the raw sketch."
            )
            raise AttributeError(msg)
        raise AttributeError(f"'PrivateSketch' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return (
            f"<PrivateSketch: {self.statement} x {self.spec.n_features} columns, "
            f"m={self.spec.sketch_size}, fingerprint {self.fingerprint[:8]}>"
        )

    def _repr_html_(self) -> str | None:
        return show_card(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return PrivateSketch.from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        """The sketch as bytes, the same on every machine (``docs/format.md``)."""
        return encode(self.fingerprint, self._totals, self.ledger)

    @classmethod
    def from_bytes(cls, data: bytes) -> PrivateSketch:
        """Read a private sketch; anything but an intact one is a :class:`SketchFormatError`.

        Parameters
        ----------
        data : bytes
            What :meth:`to_bytes` gave.

        Returns
        -------
        sketch : PrivateSketch
            With the integers, the scale and the ledger of the one written.
        """
        return cls(*decode(data))


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
    with name_file(path):
        return PrivateSketch.from_bytes(parse_path(path).read_bytes())


register_kind(PRIVATE_MAGIC, "a private sketch", load)


# The file of a private sketch: its own magic, a header that no row has touched, noisy integers.

_KINDS = {
    "cell_factor": int,
    "count_factor": int,
    "fingerprint": str,
    "ledger": dict,
    "scale": float,
    "spec": dict,
}


def encode(fingerprint: str, totals: NoisyTotals, ledger: Ledger) -> bytes:
    """Bytes of a private sketch: a function of its content alone."""
    header = {
        "cell_factor": totals.cell_factor,
        "count_factor": totals.count_factor,
        "fingerprint": fingerprint,
        "ledger": ledger.to_dict(),
        "scale": totals.scale,
        "spec": json.loads(totals.layout.spec.to_json()),
    }
    return pack(PRIVATE_MAGIC, header, totals.vector.astype("<i8").tobytes())


def decode(data: bytes) -> tuple[SketchSpec, str, NoisyTotals, Ledger]:
    """Spec, fingerprint, totals and ledger; :class:`SketchFormatError` for anything unsound."""
    if bytes(data[: len(RAW_MAGIC)]) == RAW_MAGIC:
        raise SketchFormatError("this is a raw sketch, with no noise. Read it with ss.load.")
    text, payload = unpack(data, PRIVATE_MAGIC)
    header = read_header(text, _KINDS)
    fingerprint, factor, scale = (header[n] for n in ("fingerprint", "count_factor", "scale"))
    cell_factor = header["cell_factor"]
    check_fingerprint(fingerprint)
    spec = read_spec(header["spec"])
    try:
        ledger = Ledger.from_dict(header["ledger"])
    except (SpecError, PrivacyError) as error:
        raise SketchFormatError(f"the header holds no usable ledger: {error}") from None
    layout = Layout.of(spec)
    expected = 8 * sum(math.prod(part.full_shape) for part in layout.released) + 8
    if len(payload) != expected:
        msg = f"the header announces {expected} bytes of integers, and there are {len(payload)}."
        raise SketchFormatError(msg)
    if spec.rows.ball is None:
        raise SketchFormatError("the spec is none of a release: that has a ball.")
    most = 1 if spec.cells is None else LARGEST - 1
    are_factors = 0 < factor < LARGEST and 0 < cell_factor <= most
    if not are_factors or not SCALES[0] <= scale <= SCALES[1]:
        raise SketchFormatError("factors and scale must be positive numbers in range.")
    numbers = np.frombuffer(payload, dtype="<i8").astype(np.int64)
    if not ((numbers > -LARGEST) & (numbers < LARGEST)).all():
        raise SketchFormatError("the integers are not those of a release: they reach 2**62.")
    totals = NoisyTotals(numbers, layout, factor, scale, cell_factor)
    if encode(fingerprint, totals, ledger) != data:
        raise SketchFormatError("the header is not written in the canonical way.")
    return spec, fingerprint, totals, ledger
