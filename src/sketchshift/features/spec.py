"""Everything that must be equal for two sketches to add up.

A :class:`SketchSpec` is frozen and small; frequencies are drawn from it where they are
needed. It goes into every sketch file, and its fingerprint guards every merge.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from sketchshift._registry import show_card
from sketchshift._text import counted
from sketchshift._validation import check_integer, check_number, parameter_error, read_fields
from sketchshift.errors import SpecError
from sketchshift.features.cells import Axes, Cells
from sketchshift.features.frequencies import MIN_FEATURES, Frequencies
from sketchshift.features.rows import Rows, is_list, unit_for
from sketchshift.features.waves import MAX_SKETCH_SIZE, Range, Waves
from sketchshift.kernels import CELL_REACH, MOMENT_BITS, PHASE_LIMIT
from sketchshift.recipe import Recipe

__all__ = [
    "CALLER",
    "FULL_COVARIANCE_FEATURES",
    "MAX_NUMBERS",
    "MAX_PRIVATE_CELLS",
    "SketchSpec",
    "Spectrum",
]

CALLER = "SketchSpec"
MAX_NUMBERS = 2**31  # d m for frequencies drawn one by one
MAX_PRIVATE_CELLS = 2**12
FULL_COVARIANCE_FEATURES = 64  # beyond, the diagonal alone is kept
_SCHEMA = 1
_SHOWN = 60  # characters of a value in a message

# What a plan for drift knows beforehand of the distance between two sketches without drift.


@dataclass(frozen=True)
class Spectrum:
    r"""The shape of the noise that sampling leaves in a sketch.

    Eigenvalues :math:`\lambda_i` of the covariance of the features of rows, as shares of their sum:
    the largest one by one, all others by their sum and that of their squares. A sketch knows the
    sum itself exactly.

    Parameters
    ----------
    leading : tuple of float
        The largest shares, in falling order; positive, at most 1 in all.
    freedom : float
        :math:`(\sum \lambda)^2 / \sum \lambda^2` of all others: as many equal ones have their sum
        and their sum of squares.
    trace : float, default=0
        The sum of all eigenvalues, from 0 to 1, of the rows that were measured: a sketch with
        another one is of other data. 0 if it is not known.
    """

    leading: tuple[float, ...]
    freedom: float
    trace: float = 0.0

    def __post_init__(self) -> None:
        must = "positive shares in falling order, at most 1 in all"
        if not is_list(self.leading) or len(self.leading) > MAX_SKETCH_SIZE:
            raise parameter_error("Spectrum", "leading", must, self.leading)
        shares = [check_number("Spectrum", "leading", n, low=1e-20, high=1.0) for n in self.leading]
        if shares != sorted(shares, reverse=True) or sum(shares) > 1.0 + 1e-6:
            raise parameter_error("Spectrum", "leading", must, self.leading)
        object.__setattr__(self, "leading", tuple(shares))
        freedom = check_number("Spectrum", "freedom", self.freedom, low=1.0, high=1e9)
        object.__setattr__(self, "freedom", freedom)
        trace = check_number("Spectrum", "trace", self.trace, low=0.0, high=1.0)
        object.__setattr__(self, "trace", trace)

    @property
    def rest(self) -> float:
        """The share of all eigenvalues that are not leading."""
        return max(0.0, 1.0 - sum(self.leading))

    @classmethod
    def from_dict(cls, content: Any) -> Spectrum:
        """Read ``content``, what JSON holds of it."""
        return cls(**read_fields(cls, content))


@dataclass(frozen=True, init=False, repr=False)
class SketchSpec:
    r"""The sketching operator: which features are summed, and in which integers.

    A row x is normalised to x' = (x - center) / scale and adds, for each frequency
    :math:`\omega_j`, the integers nearest to :math:`2^{22} \cos\langle\omega_j, x'\rangle` and
    :math:`2^{22} \sin\langle\omega_j, x'\rangle`. This constructor makes the paper's sketch;
    :meth:`of` takes the parts.

    Parameters
    ----------
    n_features : int
        Dimension d of a row.
    sketch_size : int
        Number m of frequencies; about 10 k d for k clusters.
    bandwidth : float or pair of float
        Bandwidth of the Gaussian kernel, in the units of x'. A pair (low, high) gives each
        frequency a bandwidth of its own, log-uniform between the two.
    seed : int, default=0
        From 0 to 2**64 - 1. Sketches add up only if it is the same.
    law, structured
        Of the waves: see :class:`~sketchshift.features.Waves`.
    columns, center, scale
        Of the rows: see :class:`~sketchshift.features.Rows`.
    precision : {"float32", "float64"}
        Of the phases.

    Attributes
    ----------
    rows : Rows
        How a row becomes numbers.
    waves : Waves or None
        Frequencies.
    cells : Cells or None
        Centers by which rows are counted and summed. Rows out of reach are then counted apart
        instead of refused.
    spread : "columns", Axes or None
        What is kept of how rows spread: "columns" keeps mean and covariance of the rows (beyond 64
        columns, variances alone). Axes are directions along which waves are taken and squares of
        cells summed, for rows of many columns. None keeps their weight alone.
    families : tuple of (name, JSON)
        Families of integers that others registered, with their parameters: see
        :func:`~sketchshift.sketch.register_family`.
    noise : Spectrum or None
        What :func:`sketchshift.drift.plan_drift` found of the noise of sampling, for comparisons
        that need neither rows nor a decoder. It changes no integer of a sketch.

    Examples
    --------
    >>> import sketchshift as ss
    >>> spec = ss.SketchSpec(n_features=2, sketch_size=100, bandwidth=0.3)
    >>> ss.SketchSpec.from_json(spec.to_json()) == spec
    True
    >>> spec
    SketchSpec(2 columns, 100 waves, c1cc0a42)
    """

    rows: Rows
    waves: Waves | None
    cells: Cells | None
    spread: str | Axes | None
    families: tuple[tuple[str, str], ...]
    noise: Spectrum | None

    def __init__(
        self,
        n_features: int,
        sketch_size: int,
        bandwidth: float | tuple[float, float] | Range,
        seed: int = 0,
        *,
        law: str = "gaussian",
        structured: bool = False,
        columns: Sequence[str] | Recipe | None = None,
        center: Sequence[float] | None = None,
        scale: float | Sequence[float] | None = None,
        precision: str = "float32",
    ) -> None:
        waves = Waves(sketch_size, bandwidth, seed, law, structured, precision)  # type: ignore[arg-type]
        rows = Rows(n_features, columns, center, scale)  # type: ignore[arg-type]
        rows = dataclasses.replace(rows, unit=unit_for(waves.range[0], rows.n_features))
        self._assemble(rows, waves)

    @classmethod
    def of(
        cls,
        rows: Rows,
        waves: Waves | None = None,
        *,
        cells: Cells | None = None,
        spread: str | Axes | None = "columns",
        families: Mapping[str, Any] | None = None,
        noise: Spectrum | None = None,
    ) -> SketchSpec:
        """Put a spec together from its parts.

        Parameters
        ----------
        rows, waves, cells, spread, noise
            See the attributes.
        families : mapping
            Parameters by the name of the family, which JSON must be able to hold.
        """
        spec = cls.__new__(cls)
        spec._assemble(rows, waves, cells, spread, families, noise)
        return spec

    def replaced(self, **parts: Any) -> SketchSpec:
        """Return the spec with other parts; see :meth:`of`."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        own["families"] = {name: self.parameters(name) for name, _ in self.families}
        if unknown := sorted(set(parts) - set(own)):
            msg = (
                f"a spec has the parts {', '.join(own)}, and not {', '.join(unknown)}. Replace "
                "what a part holds in the part: spec.replaced(waves=replace(spec.waves, size=100))."
            )
            raise SpecError(msg)
        return SketchSpec.of(**own | parts)

    def _assemble(
        self,
        rows: Rows,
        waves: Waves | None,
        cells: Cells | None = None,
        spread: str | Axes | None = "columns",
        families: Mapping[str, Any] | None = None,
        noise: Spectrum | None = None,
    ) -> None:
        d = rows.n_features if isinstance(rows, Rows) else 0
        is_word = isinstance(spread, str) and spread == "columns"
        for name, value, is_right, must in (
            ("rows", rows, isinstance(rows, Rows), "Rows(n_features, ...)"),
            ("waves", waves, isinstance(waves, Waves | None), "Waves or None"),
            ("cells", cells, isinstance(cells, Cells | None), "Cells or None"),
            ("noise", noise, isinstance(noise, Spectrum | None), "a Spectrum or None"),
            (
                "spread",
                spread,
                is_word or isinstance(spread, Axes | None),
                "'columns', Axes or None",
            ),
            ("families", families, isinstance(families, Mapping | None), "parameters by name"),
        ):
            if not is_right:
                raise parameter_error(CALLER, name, must, value)
        for name, part in (("cells", cells), ("spread", spread)):
            if isinstance(part, Cells | Axes) and part.n_features != d:
                must = f"made for {counted(d, 'column')}"
                raise parameter_error(CALLER, name, must, part)
        named = (families or {}).items()
        found = tuple(sorted((name, _check_parameters(name, each)) for name, each in named))
        parts: tuple[Any, ...] = (rows, waves, cells, spread, found, noise)
        for field, value in zip(dataclasses.fields(self), parts, strict=True):
            object.__setattr__(self, field.name, value)
        self._check_together()

    def _check_together(self) -> None:
        """Check what the types of the parts cannot say."""
        d, m, waves, ball = self.n_coordinates, self.sketch_size, self.waves, self.rows.ball
        if waves is None and self.cells is None and not self.families:
            msg = (
                "a sketch sums waves, cells or both, and this spec has neither. Give a sketch_size "
                "of 1 at least, or plan with ss.plan."
            )
            raise SpecError(msg)
        if self.axes is not None and ball is not None:
            raise SpecError("a spec with axes makes no private release: leave out the axes.")
        if self.axes is not None and self.rows.is_standardised:
            msg = (
                "a spec with axes has one scale for all columns: leave out the axes or the scales."
            )
            raise SpecError(msg)
        if waves is not None and waves.structured and d < MIN_FEATURES:
            msg = (
                f"structured frequencies need at least {MIN_FEATURES} columns, and there are {d}. "
                "Leave structured=False: at this dimension it is as fast."
            )
            raise SpecError(msg)
        if waves is not None and not waves.structured and d * m > MAX_NUMBERS:
            msg = (
                f"n_features x sketch_size = {d} x {m} is more than {MAX_NUMBERS} numbers. "
                "Use a smaller sketch_size or structured=True."
            )
            raise SpecError(msg)
        if ball is not None and self.cells is not None:
            J = self.cells.n_cells
            if J > MAX_PRIVATE_CELLS or not m:  # noise falls on every cell, and hides many
                msg = (
                    f"a spec for private releases has at most {MAX_PRIVATE_CELLS} cells, and waves "
                    f"beside them: here are {J} cells and {m} frequencies. Plan with "
                    "ss.privacy.plan_public."
                )
                raise SpecError(msg)

    @property
    def n_features(self) -> int:
        """Dimension d of a row."""
        return self.rows.n_features

    @property
    def sketch_size(self) -> int:
        """Number m of frequencies; 0 without waves."""
        return 0 if self.waves is None else self.waves.size

    @property
    def axes(self) -> Axes | None:
        """Directions along which waves are taken, where these are not the columns."""
        return self.spread if isinstance(self.spread, Axes) else None

    @property
    def n_coordinates(self) -> int:
        """Dimension of what waves see: the number of axes, or of columns."""
        return self.n_features if self.axes is None else self.axes.n_axes

    @property
    def bandwidths(self) -> tuple[float, float]:
        """Least and largest bandwidth; without waves, one that has the unit of the rows."""
        of_unit = self.rows.unit * math.sqrt(self.n_features)
        return (of_unit, of_unit) if self.waves is None else self.waves.range

    @property
    def has_moments(self) -> bool:
        """Whether mean and variances of the rows are kept."""
        return self.spread == "columns"

    @property
    def has_full_covariance(self) -> bool:
        """Whether all products of two columns are kept, or the squares alone."""
        return self.has_moments and self.n_features <= FULL_COVARIANCE_FEATURES

    def parameters(self, family: str) -> dict[str, Any]:
        """Parameters of a registered ``family``, by its name."""
        found: dict[str, Any] = json.loads(dict(self.families)[family])
        return found

    @property
    def frequencies(self) -> Frequencies:
        """The frequencies, drawn on first use: O(m d)."""
        return _draw(self.waves, self.n_coordinates)

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that two sketches must share to be merged.

        BLAKE2b-128 of the canonical JSON, a zero byte, and the bytes of the frequencies.
        """
        digest = hashlib.blake2b(digest_size=16)
        digest.update(self.to_json().encode() + b"\0")
        digest.update(self.frequencies.to_bytes())
        return digest.hexdigest()

    @cached_property
    def reach(self) -> float:
        """The norm of x' must be below this: phases then stay exact and integers in range."""
        reach = 2.0 ** (40 - MOMENT_BITS) * self.rows.unit
        return min(reach, PHASE_LIMIT / self.frequencies.largest) if self.waves else reach

    @cached_property
    def cell_reach(self) -> float:
        """With cells: rows whose norm is below this belong to them, others are far."""
        of_cells = math.inf if self.cells is None else CELL_REACH * self.cells.unit
        return min(self.reach, of_cells)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the cached fingerprint: who receives a spec draws the frequencies itself, and
        # its sketches do not merge with others if they should not be the same there.
        return SketchSpec.from_json, (self.to_json(),)

    def prefix(self, sketch_size: int) -> SketchSpec:
        """The spec of the first ``sketch_size`` frequencies: they are the same ones."""
        fewest = 1 if self.cells is None and not self.families else 0
        m = check_integer(CALLER + ".prefix", "sketch_size", sketch_size, fewest, self.sketch_size)
        if m == self.sketch_size:
            return self
        waves = dataclasses.replace(self.waves, size=m) if self.waves and m else None
        return self.replaced(waves=waves, noise=None)  # which was that of all

    def __repr__(self) -> str:
        parts = [counted(self.n_features, "column")]
        parts += [counted(self.sketch_size, "wave")] * bool(self.waves)
        parts += [counted(self.cells.n_cells, "cell")] if self.cells else []
        parts += [name for name, _ in self.families]
        return f"SketchSpec({', '.join([*parts, self.fingerprint[:8]])})"

    def _repr_html_(self) -> str | None:
        return show_card(self)

    def describe(self) -> str:
        """One line for messages: what differs between specs that do not match."""
        rows, waves = self.rows, self.waves
        parts = [f"d={self.n_features}", f"m={self.sketch_size}"]
        usual = unit_for(self.bandwidths[0], rows.n_features)
        for name, value, default in (
            ("bandwidth", waves and waves.bandwidths, None),
            ("seed", waves and waves.seed, None),
            ("law", waves and waves.law, "gaussian"),
            ("structured", waves and waves.structured, False),
            ("columns", rows.names, None),
            ("center", rows.center, None),
            ("scale", rows.scale, None),
            ("far_share", waves and waves.beyond, 0.0),
            ("precision", waves and waves.precision, "float32"),
            ("unit", rows.unit, usual),
            ("onto", rows.onto, None),
            ("noise", self.noise, None),
            ("spread", "nothing" if self.spread is None else None, None),
        ):
            if value is not None and value != default:
                parts.append(f"{name}={_shortened(repr(value))}")
        if self.cells is not None:
            parts.append(f"cells={self.cells.n_cells}")
        if self.axes is not None:
            parts.append(f"axes={self.axes.n_axes}")
        parts += [f"{name}={_shortened(text)}" for name, text in self.families]
        if rows.recipe is not None:
            kinds = dict.fromkeys(part.kind for part in rows.recipe.parts)
            parts.append(f"recipe={'+'.join(kinds)}")
        return ", ".join([*parts, f"fingerprint={self.fingerprint[:8]}"])

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no blanks, what has its default left out."""
        content: dict[str, Any] = {"schema": _SCHEMA, "rows": self.rows.to_dict()}
        if self.waves is not None:
            content["waves"] = self.waves.to_dict()
        if self.cells is not None:
            content["cells"] = self.cells.to_dict()
        if self.spread != "columns":
            content["spread"] = None if self.axes is None else self.axes.to_text()
        if self.families:
            content["families"] = {name: json.loads(text) for name, text in self.families}
        if self.noise is not None:
            content["noise"] = dataclasses.asdict(self.noise)
        return to_canonical(content)

    @classmethod
    def from_json(cls, text: str) -> SketchSpec:
        """Read what :meth:`to_json` wrote; anything else is a :class:`SpecError`.

        Parameters
        ----------
        text : str
            JSON object with ``"schema": 1`` and rows at least.

        Returns
        -------
        spec : SketchSpec
            Equal to the one written, fingerprint included.
        """
        try:
            content = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise SpecError(f"a sketch spec must be JSON, and this is not: {error}.") from None
        if not isinstance(content, dict):
            raise SpecError(f"a sketch spec must be a JSON object. Got {type(content).__name__}.")
        return cls.from_dict(content)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> SketchSpec:
        """Read a JSON object that is already parsed.

        Parameters
        ----------
        content : mapping
            With ``"schema": 1`` and rows at least.

        Returns
        -------
        spec : SketchSpec
            As from :meth:`from_json`.
        """
        content = dict(content)
        schema = content.pop("schema", None)
        if type(schema) is not int or schema != _SCHEMA:
            msg = (
                f"this spec has schema {schema!r}, and this version of sketchshift reads "
                f'"schema": {_SCHEMA}. Add that if it is missing, or upgrade sketchshift.'
            )
            raise SpecError(msg)
        optional = {"waves", "cells", "spread", "families", "noise"}
        unknown = sorted(set(content) - {"rows"} - optional)
        if unknown or "rows" not in content:
            facts = [f"unknown: {', '.join(unknown)}"] * bool(unknown)
            facts += ["missing: rows"] * ("rows" not in content)
            raise SpecError(f"this is not a sketch spec ({'; '.join(facts)}).")
        rows = Rows.from_dict(content.pop("rows"))
        makers: dict[str, Callable[[Any], Any]] = {
            "waves": Waves.from_dict,
            "cells": lambda part: Cells.from_dict(part, rows.n_features),
            "spread": lambda part: part if part is None else Axes.from_text(part, rows.n_features),
            "families": lambda part: part,
            "noise": Spectrum.from_dict,
        }
        return cls.of(rows, **{name: makers[name](part) for name, part in content.items()})


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _check_parameters(name: Any, parameters: Any) -> str:
    """Return parameters of a family as canonical JSON."""
    if not isinstance(name, str) or not isinstance(parameters, Mapping):
        must = "an object of parameters by name, such as {'limit': 1.0}"
        raise parameter_error(CALLER, f"families[{name!r}]", must, parameters)
    try:
        return to_canonical(dict(parameters))
    except (TypeError, ValueError, RecursionError) as cause:
        must = f"what JSON can hold ({cause}): pass arrays as lists, by .tolist()"
        raise parameter_error(CALLER, f"families[{name!r}]", must, parameters) from None


def to_canonical(content: Any) -> str:
    """Return JSON with sorted keys, without blanks and without -0.0."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    if "-0.0" not in text:
        return text
    plain = json.loads(text, parse_float=lambda number: float(number) + 0.0)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)


@lru_cache(maxsize=4)
def _draw(waves: Waves | None, d: int) -> Frequencies:
    if waves is None:
        return Frequencies(np.zeros((d, 0), dtype=np.float32), None)
    return waves.draw(d)
