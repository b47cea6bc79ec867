"""Everything that must be equal for two sketches to add up.

A :class:`SketchSpec` is frozen and small; frequencies are drawn from it where they are
needed. It goes into every sketch file, and its fingerprint guards every merge.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from sketchshift._html import Cell, card, facts, grid, note
from sketchshift._text import counted
from sketchshift._typing import FloatArray, RealArray
from sketchshift._validation import (
    check_choice,
    check_flag,
    check_integer,
    check_names,
    check_number,
    parameter_error,
)
from sketchshift.errors import SpecError
from sketchshift.features.cells import Axes, Cells
from sketchshift.features.frequencies import (
    LAWS,
    MIN_FEATURES,
    Frequencies,
    draw_frequencies,
    most_saturation,
    usual_saturation,
)
from sketchshift.features.landmarks import Landmarks
from sketchshift.kernels import (
    CELL_REACH,
    MOMENT_BITS,
    PHASE_LIMIT,
    Kernel,
    select_kernel,
)
from sketchshift.recipe import Cycle, Recipe

__all__ = [
    "ADJACENCIES",
    "CALLER",
    "FULL_COVARIANCE_FEATURES",
    "KINDS",
    "MAX_FEATURES",
    "MAX_NUMBERS",
    "MAX_PRIVATE_CELLS",
    "MAX_SKETCH_SIZE",
    "METRICS",
    "SCALES",
    "Charge",
    "Origin",
    "SketchSpec",
    "Spectrum",
    "check_bandwidth",
    "check_scale",
    "check_vector",
    "directions_of",
]

# Checks of the parameters of a spec that are more than one number.

CALLER = "SketchSpec"


def _is_list(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def check_bandwidth(value: Any) -> float | tuple[float, float]:
    """One positive number, or a pair with the lower end first."""

    def check(number: Any) -> float:
        return check_number(CALLER, "bandwidth", number, low=1e-20, high=1e20)  # float32 turns

    if not _is_list(value):
        return check(value)
    if len(value) != 2:
        raise parameter_error(CALLER, "bandwidth", "a number or a pair (low, high)", value)
    low, high = check(value[0]), check(value[1])
    if not low < high:
        raise parameter_error(CALLER, "bandwidth", "a pair (low, high) with low < high", value)
    return low, high


def check_vector(name: str, value: Any, d: int) -> tuple[float, ...] | None:
    """As many finite numbers as there are columns, or None."""
    if value is None:
        return None
    if not _is_list(value) or len(value) != d:
        raise parameter_error(CALLER, name, f"{d} numbers, one a column, or None", value)
    checked = (check_number(CALLER, name, number, low=-1e150, high=1e150) for number in value)
    return tuple(number + 0.0 for number in checked)  # -0.0, equal to 0.0, is written as it


def check_scale(value: Any, d: int) -> float | tuple[float, ...] | None:
    """One positive number, one a column, or None."""
    if value is None or _is_list(value):
        numbers = check_vector("scale", value, d)
        positive = [check_number(CALLER, "scale", n, low=1e-150, high=1e150) for n in numbers or ()]
        return tuple(positive) if numbers is not None else None
    return check_number(CALLER, "scale", value, low=1e-150, high=1e150)


# Where the numbers of a spec come from: what a private release has to know of its plan.
#
# A spec is published with every release. Center, scale and bandwidths that were computed from
# private rows would tell of these rows, so that a spec says where they come from, or nothing.

KINDS = ("declared", "public", "private")
ADJACENCIES = ("add_remove", "replace_one")
SCALES = (2.0**-20, 2.0**100)
"""Of noise: wider than any release has them, and their squares far from where floats end."""

_LIMITS = {"rho": (1e-20, 1e5), "delta": (1e-30, 1e-2), "sensitivity": SCALES, "scale": SCALES}


@dataclass(frozen=True)
class Charge:
    """What one look at private rows cost.

    Parameters
    ----------
    id : str
        32 hexadecimal digits, drawn anew for each look: the same charge twice counts once.
    purpose : str
        What was looked at: "release", "plan: mean", "plan: radii".
    rho : float
        Of zero-concentrated differential privacy.
    delta : float
        That the caller had in mind.
    sensitivity, scale : float
        L2 sensitivity of what was released, and scale of the discrete Gaussian noise.
    adjacency : {"add_remove", "replace_one"}
        Which datasets are neighbours.
    rows_per_person : int
        How many rows a person has at most.
    mechanism : str
        The software that drew the noise.
    """

    id: str
    purpose: str
    rho: float
    delta: float
    sensitivity: float
    scale: float
    adjacency: str
    rows_per_person: int
    mechanism: str

    def __post_init__(self) -> None:
        for name, (low, high) in _LIMITS.items():
            value = check_number("Charge", name, getattr(self, name), low=low, high=high)
            object.__setattr__(self, name, value)
        check_choice("Charge", "adjacency", self.adjacency, ADJACENCIES)
        check_integer("Charge", "rows_per_person", self.rows_per_person, 1, 2**31)
        if not isinstance(self.id, str) or not re.fullmatch("[0-9a-f]{32}", self.id):
            raise parameter_error("Charge", "id", "32 hexadecimal digits", self.id)
        for name in ("purpose", "mechanism"):
            if not isinstance(getattr(self, name), str):
                raise parameter_error("Charge", name, "a string", getattr(self, name))

    @classmethod
    def from_dict(cls, content: Any) -> Charge:
        """What ``content``, a JSON object already parsed, describes."""
        return cls(**_fields(cls, content))


@dataclass(frozen=True)
class Origin:
    """That a spec may be published, and why; its rows are clipped to a public ball.

    Parameters
    ----------
    kind : {"declared", "public", "private"}
        Numbers declared by a person, taken from a public sample, or from private rows with
        noise, which is charged.
    radius : float
        Of the ball around the center, in the units of x': a row outside is moved to its
        border before it is sketched.
    charges : tuple of Charge
        What the plan cost, for "private".
    """

    kind: str
    radius: float
    charges: tuple[Charge, ...] = ()

    def __post_init__(self) -> None:
        check_choice("Origin", "kind", self.kind, KINDS)
        radius = check_number("Origin", "radius", self.radius, low=1e-20, high=1e20)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "charges", tuple(self.charges))
        are_charges = all(isinstance(charge, Charge) for charge in self.charges)
        if not are_charges or bool(self.charges) != (self.kind == "private"):
            must = 'charges for the kind "private", and none for others'
            raise parameter_error("Origin", "charges", must, self.charges)

    @classmethod
    def from_dict(cls, content: Any) -> Origin:
        """What ``content``, a JSON object already parsed, describes."""
        fields = _fields(cls, content)
        if not isinstance(fields["charges"], list):
            raise parameter_error("Origin", "charges", "a list", fields["charges"])
        charges = tuple(Charge.from_dict(charge) for charge in fields["charges"])
        return cls(fields["kind"], fields["radius"], charges)


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
        if not _is_list(self.leading) or len(self.leading) > MAX_SKETCH_SIZE:
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
        """What ``content``, a JSON object already parsed, describes."""
        return cls(**_fields(cls, content))


def _fields(cls: type[Charge] | type[Origin] | type[Spectrum], content: Any) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(cls)]
    if not isinstance(content, Mapping) or set(content) != set(names):
        must = f"an object with exactly {', '.join(names)}"
        raise parameter_error(cls.__name__, "content", must, content)
    return dict(content)


MAX_FEATURES = 2**20
MAX_SKETCH_SIZE = 2**24
MAX_NUMBERS = 2**31  # d m for frequencies drawn one by one
MAX_PRIVATE_CELLS = 2**12
SHORTEST = 2.0**-900  # squared length of a row that has a direction; of less, digits are lost
METRICS = ("euclidean", "cosine")
FULL_COVARIANCE_FEATURES = 64  # beyond, the diagonal alone is kept
COLUMNS_SHOWN = 20  # in a notebook
_SCHEMA = 1


@dataclass(frozen=True)
class SketchSpec:
    r"""The sketching operator: which features are summed, and in which integers.

    A row x is normalised to x' = (x - center) / scale and adds, for each frequency
    :math:`\omega_j`, the integers nearest to :math:`2^{22} \cos\langle\omega_j, x'\rangle` and
    :math:`2^{22} \sin\langle\omega_j, x'\rangle`.

    Parameters
    ----------
    n_features : int
        Dimension d of a row.
    sketch_size : int
        Number m of frequencies; about 10 k d for k clusters. With cells or landmarks it may be 0.
    bandwidth : float or pair of float
        Bandwidth of the Gaussian kernel, in the units of x'. A pair (low, high) gives each
        frequency a bandwidth of its own, log-uniform between the two.
    seed : int, default=0
        From 0 to 2**64 - 1. Sketches add up only if it is the same.
    law : str, default="gaussian"
        Law of the length of the frequencies: the paper's, "folded_gaussian", "adapted_radius",
        "leverage", or one of :func:`register_law`.
    structured : bool, default=False
        Fast Hadamard blocks instead of independent directions; needs d >= 64.
    columns : sequence of str or None
        Names of the columns: sources that have names are read by them.
    center : sequence of float or None
        Subtracted from each row.
    scale : float, sequence of float or None
        Divides each row: one number keeps the distances of k-means, one a column
        standardises.
    far_share : float, default=0
        With a range of bandwidths: the share of frequencies with bandwidths beyond it, up to
        100 times its upper end.
    precision : {"float32", "float64"}
        Of the phases. float32 has an error of about 4e-8 :math:`|\langle\omega, x'\rangle|`
        radians a row; take float64 for data far from the center.
    origin : Origin or None
        That these numbers may be published, for private releases: see
        :mod:`sketchshift.privacy`. Rows are then clipped to a ball, and NaN dropped in silence.
    cells : Cells or None
        Centers by which rows are counted and summed as well. Rows out of reach are then counted
        apart instead of refused. None is the paper's sketch.
    axes : Axes or None
        Directions along which waves are taken, and squares of cells summed, instead of along every
        column: for rows of many columns. A sketch then has cells, or serves drift alone.
    metric : {"euclidean", "cosine"}
        "cosine" divides every row by its length first: distances are then those of directions,
        and :math:`|x - y|^2 = 2 - 2 \\cos(x, y)`. A row of length 0 has none, and is invalid.
    moments : {"full", "none"}
        Whether mean and covariance of the rows are kept (beyond 64 columns, variances alone), or
        their weight alone.
    spectrum : Spectrum or None
        What :func:`sketchshift.drift.plan_drift` found of the noise of sampling, for comparisons
        that need neither rows nor a decoder. It changes no integer of a sketch.
    recipe : Recipe or None
        How the columns of a table become the d columns of numbers, whose names are ``columns``;
        None where these are columns of the table. Arrays are taken as these numbers.
    saturation : float or None
        Of the law "leverage", which draws frequencies by their ridge leverage scores: the length,
        at bandwidth 1, up to which they are drawn evenly; exp(-saturation^2 / 2) is the ridge as a
        share of the largest eigenvalue. From 0 to sqrt(0.69 d + 6), beyond which few
        frequencies have most of the weight; None is sqrt(0.69 d + 1) for this law.
    landmarks : Landmarks or None
        Places whose Gaussian kernels, of the bandwidth of the spec, rows are summed with as well:
        Nyström features. Such a spec has one bandwidth, and no cells, axes or origin.

    Examples
    --------
    >>> import sketchshift as ss
    >>> spec = ss.SketchSpec(n_features=2, sketch_size=100, bandwidth=0.3)
    >>> ss.SketchSpec.from_json(spec.to_json()) == spec
    True
    """

    n_features: int
    sketch_size: int
    bandwidth: float | tuple[float, float]
    seed: int = 0
    law: str = "gaussian"
    structured: bool = False
    columns: tuple[str, ...] | None = None
    center: tuple[float, ...] | None = None
    scale: float | tuple[float, ...] | None = None
    far_share: float = 0.0
    precision: str = "float32"
    origin: Origin | None = None
    cells: Cells | None = None
    axes: Axes | None = None
    metric: str = "euclidean"
    moments: str = "full"
    spectrum: Spectrum | None = None
    recipe: Recipe | None = None
    saturation: float | None = None
    landmarks: Landmarks | None = None

    def __post_init__(self) -> None:
        d = check_integer(CALLER, "n_features", self.n_features, 1, MAX_FEATURES)
        m = check_integer(CALLER, "sketch_size", self.sketch_size, self._fewest, MAX_SKETCH_SIZE)
        checked: dict[str, Any] = {
            "n_features": d,
            "sketch_size": m,
            "bandwidth": check_bandwidth(self.bandwidth),
            "seed": check_integer(CALLER, "seed", self.seed, 0, 2**64 - 1),
            "law": check_choice(CALLER, "law", self.law, LAWS),
            "structured": check_flag(CALLER, "structured", self.structured),
            "center": check_vector("center", self.center, d),
            "scale": check_scale(self.scale, d),
            "far_share": check_number(CALLER, "far_share", self.far_share, low=0.0, high=1.0),
            "precision": check_choice(CALLER, "precision", self.precision, ("float32", "float64")),
            "metric": check_choice(CALLER, "metric", self.metric, METRICS),
            "moments": check_choice(CALLER, "moments", self.moments, ("full", "none")),
        }
        if self.columns is not None:
            checked["columns"] = check_names(CALLER, "columns", self.columns, d)
        if self.origin is not None and not isinstance(self.origin, Origin):
            raise parameter_error(CALLER, "origin", "an Origin or None", self.origin)
        if self.spectrum is not None and not isinstance(self.spectrum, Spectrum):
            raise parameter_error(CALLER, "spectrum", "a Spectrum or None", self.spectrum)
        if self.recipe is not None and not (
            isinstance(self.recipe, Recipe) and self.recipe.names == checked.get("columns")
        ):
            must = "a Recipe that makes the columns of the spec, or None"
            raise parameter_error(CALLER, "recipe", must, self.recipe)
        if self.cells is not None and not (
            isinstance(self.cells, Cells) and self.cells.n_features == d
        ):
            raise parameter_error(CALLER, "cells", f"Cells of {d} columns, or None", self.cells)
        if self.axes is not None and not (
            isinstance(self.axes, Axes) and self.axes.n_features == d
        ):
            raise parameter_error(CALLER, "axes", f"Axes of {d} columns, or None", self.axes)
        if self.landmarks is not None and not (
            isinstance(self.landmarks, Landmarks) and self.landmarks.n_features == d
        ):
            must = f"Landmarks of {d} columns, or None"
            raise parameter_error(CALLER, "landmarks", must, self.landmarks)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.law == "leverage" or self.saturation is not None:
            object.__setattr__(self, "saturation", self._checked_saturation())
        self._check_together()

    def _checked_saturation(self) -> float:
        """The one given, or that of the law; an error where the law has none."""
        p = self.n_coordinates
        if self.law != "leverage":
            msg = (
                f"saturation={self.saturation} belongs to the law 'leverage', and this spec has "
                f"the law {self.law!r}. Leave it out, or pass law='leverage'."
            )
            raise SpecError(msg)
        if self.saturation is None:
            return usual_saturation(p)
        return check_number(CALLER, "saturation", self.saturation, low=0.0, high=most_saturation(p))

    def _check_together(self) -> None:
        d, m = self.n_coordinates, self.sketch_size
        if self.axes is not None and self.origin is not None:
            raise SpecError("a spec with axes makes no private release: leave out the axes.")
        if self.axes is not None and self.moments == "full":
            raise SpecError('a spec with axes keeps no moments: pass moments="none".')
        if self.axes is not None and isinstance(self.scale, tuple):
            msg = (
                "a spec with axes has one scale for all columns: leave out the axes or the scales."
            )
            raise SpecError(msg)
        if self.structured and d < MIN_FEATURES:
            msg = (
                f"structured frequencies need at least {MIN_FEATURES} columns, and there are {d}. "
                "Leave structured=False: at this dimension it is as fast."
            )
            raise SpecError(msg)
        if not self.structured and d * m > MAX_NUMBERS:
            msg = (
                f"n_features x sketch_size = {d} x {m} is more than {MAX_NUMBERS} numbers. "
                "Use a smaller sketch_size or structured=True."
            )
            raise SpecError(msg)
        if self.cells is not None and self.origin is not None:
            self._check_private_cells(self.cells.n_cells)
        if self.origin is not None and (self.metric, self.moments) != ("euclidean", "full"):
            msg = (
                "a spec for private releases has the Euclidean metric, and moments that no release "
                'holds: leave out metric="cosine" and moments="none". Divide rows by their length '
                "before they are sketched."
            )
            raise SpecError(msg)
        if self.landmarks is not None:
            self._check_landmarks()
        if self.far_share and not isinstance(self.bandwidth, tuple):
            msg = (
                f"far_share={self.far_share} needs a range of bandwidths, and bandwidth="
                f"{self.bandwidth} is one number. Give a pair (low, high) or leave far_share=0."
            )
            raise SpecError(msg)

    def _check_landmarks(self) -> None:
        """Kernels of landmarks are those of the rows themselves, and of one bandwidth."""
        if isinstance(self.bandwidth, tuple):
            low, high = self.bandwidth
            msg = (
                f"landmarks have the kernel of one bandwidth, and this spec has {low} to {high}. "
                f"Give one number, as bandwidth={math.sqrt(low * high):.6g}."
            )
            raise SpecError(msg)
        besides = [n for n in ("cells", "axes", "origin") if getattr(self, n) is not None]
        if besides:
            msg = f"a spec with landmarks has no {' and no '.join(besides)}. Leave that out."
            raise SpecError(msg)

    def _check_private_cells(self, J: int) -> None:
        """Noise falls on every cell, and leaves nothing of many; waves must be there as well."""
        if J > MAX_PRIVATE_CELLS or self.sketch_size == 0:
            msg = (
                f"a spec for private releases has at most {MAX_PRIVATE_CELLS} cells, and waves "
                f"beside them: here are {J} cells and {self.sketch_size} frequencies. Plan with "
                "ss.privacy.plan_public."
            )
            raise SpecError(msg)

    @property
    def _fewest(self) -> int:
        """Frequencies that a spec has at least: something is to be summed."""
        return 1 if self.cells is None and self.landmarks is None else 0

    @property
    def n_coordinates(self) -> int:
        """Dimension of what waves see: the number of axes, or of columns."""
        return self.n_features if self.axes is None else self.axes.n_axes

    @property
    def frequencies(self) -> Frequencies:
        """The frequencies, drawn on first use: O(m d)."""
        return _frequencies(self)

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that two sketches must share to be merged.

        BLAKE2b-128 of the canonical JSON, a zero byte, and the bytes of the frequencies.
        """
        digest = hashlib.blake2b(digest_size=16)
        digest.update(self.to_json().encode() + b"\0")
        digest.update(self.frequencies.to_bytes())
        return digest.hexdigest()

    @property
    def moment_unit(self) -> float:
        """Unit of the moments' integers: the power of two just below (low) bandwidth / sqrt(d)."""
        low = self.bandwidth[0] if isinstance(self.bandwidth, tuple) else self.bandwidth
        return math.ldexp(1.0, math.frexp(low / math.sqrt(self.n_features))[1] - 1)

    @cached_property
    def reach(self) -> float:
        """The norm of x' must be below this: phases then stay exact and integers in range."""
        reach = 2.0 ** (40 - MOMENT_BITS) * self.moment_unit
        if self.sketch_size:
            reach = min(reach, PHASE_LIMIT / self.frequencies.largest)
        return reach

    @cached_property
    def cell_reach(self) -> float:
        """With cells: rows whose norm is below this belong to them, others are far."""
        of_cells = math.inf if self.cells is None else CELL_REACH * self.cells.unit
        return min(self.reach, of_cells)

    @property
    def has_moments(self) -> bool:
        """Whether mean and variances of the rows are kept."""
        return self.moments == "full"

    @property
    def has_full_covariance(self) -> bool:
        """Whether all products of two columns are kept, or the squares alone."""
        return self.has_moments and self.n_features <= FULL_COVARIANCE_FEATURES

    @cached_property
    def center_vector(self) -> FloatArray:
        """The center as an array of shape (d,)."""
        return np.array(self.center if self.center is not None else np.zeros(self.n_features))

    @cached_property
    def scale_vector(self) -> FloatArray:
        """The scale as an array of shape (d,)."""
        scale = 1.0 if self.scale is None else self.scale
        return np.array(np.broadcast_to(scale, self.n_features), dtype=np.float64)

    @cached_property
    def per_unit(self) -> FloatArray:
        """What a centered row is multiplied by: 1 / scale, rounded once, shape (d,)."""
        return 1.0 / self.scale_vector

    def normalise(
        self, X: RealArray, kernel: Kernel, rows: FloatArray, squared_norms: FloatArray
    ) -> None:
        """Center and scale rows, for "cosine" of length 1 first, and square their norms.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows as they are.
        kernel : Kernel
            Where it is computed.
        rows, squared_norms : arrays of shapes (n, d) and (n,)
            To be filled.
        """
        values = to_directions(X, kernel) if self.metric == "cosine" else X
        kernel.normalise(values, self.center_vector, self.per_unit, rows, squared_norms)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the cached fingerprint: who receives a spec draws the frequencies itself, and
        # its sketches do not merge with others if they should not be the same there.
        return SketchSpec.from_json, (self.to_json(),)

    def prefix(self, sketch_size: int) -> SketchSpec:
        """The spec of the first ``sketch_size`` frequencies: they are the same ones."""
        check_integer(
            CALLER + ".prefix", "sketch_size", sketch_size, self._fewest, self.sketch_size
        )
        spectrum = self.spectrum if sketch_size == self.sketch_size else None  # is that of all
        return dataclasses.replace(self, sketch_size=sketch_size, spectrum=spectrum)

    def describe(self) -> str:
        """One line for messages: what differs between specs that do not match."""
        parts = [f"d={self.n_features}", f"m={self.sketch_size}"]
        shown = (
            "bandwidth",
            "seed",
            "law",
            "saturation",
            "structured",
            "columns",
            "center",
            "scale",
            "far_share",
            "precision",
            "origin",
            "metric",
            "moments",
            "spectrum",
        )
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        for name in shown:
            value = getattr(self, name)
            if name in ("bandwidth", "seed") or value != defaults[name]:
                text = repr(value)
                parts.append(f"{name}={text if len(text) <= 60 else text[:57] + '...'}")
        if self.cells is not None:
            parts.append(f"cells={self.cells.n_cells}")
        if self.axes is not None:
            parts.append(f"axes={self.axes.n_axes}")
        if self.landmarks is not None:
            parts.append(f"landmarks={self.landmarks.n_landmarks}")
        if self.recipe is not None:
            kinds = dict.fromkeys(part.kind for part in self.recipe.parts)
            parts.append(f"recipe={'+'.join(kinds)}")
        return ", ".join([*parts, f"fingerprint={self.fingerprint[:8]}"])

    @property
    def facts(self) -> dict[str, str]:
        """What a person may want to know of it, by name."""
        known = {"metric": self.metric, "standardised": "yes" if self.is_standardised else "no"}
        if self.cells is not None:
            known["cells"] = f"{self.cells.n_cells:,}"
        if self.landmarks is not None:
            known["landmarks"] = f"{self.landmarks.n_landmarks:,}"
        known["waves"] = f"{self.sketch_size:,}"
        return {**known, "seed": str(self.seed), "fingerprint": self.fingerprint[:8]}

    @property
    def is_standardised(self) -> bool:
        """Whether each column has a scale of its own, so that none outweighs the others."""
        return isinstance(self.scale, tuple)

    def _repr_html_(self) -> str:
        title = f"Plan for sketches of {counted(self.n_features, 'column')}"
        parts = [facts(self.facts)]
        if self.recipe is not None:
            how = [
                [
                    Cell(part.column, is_text=True),
                    Cell(part.unit if isinstance(part, Cycle) else part.kind, is_text=True),
                ]
                for part in self.recipe.parts
            ]
            parts.append(grid(["column", "read as"], how[:COLUMNS_SHOWN]))
            more = len(how) - COLUMNS_SHOWN
            parts.append(note(f"{counted(more, 'more column')}." if more > 0 else ""))
        elif self.columns is not None:
            more = len(self.columns) - COLUMNS_SHOWN
            names = ", ".join(self.columns[:COLUMNS_SHOWN])
            parts.append(note(f"{names}{f' and {more} more' if more > 0 else ''}"))
        return card(title, *parts)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no blanks, parameters at their defaults left out."""
        content: dict[str, Any] = {"schema": _SCHEMA}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                is_noun = isinstance(value, Origin | Spectrum)
                content[field.name] = dataclasses.asdict(value) if is_noun else value
        if self.cells is not None:
            content["cells"] = self.cells.to_dict()
        if self.axes is not None:
            content["axes"] = self.axes.to_text()
        if self.landmarks is not None:
            content["landmarks"] = self.landmarks.to_text()
        if self.recipe is not None:
            content["recipe"] = self.recipe.to_list()
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> SketchSpec:
        """Read what :meth:`to_json` wrote; anything else is a :class:`SpecError`.

        Parameters
        ----------
        text : str
            JSON object with ``"schema": 1``, n_features, sketch_size and bandwidth at least.

        Returns
        -------
        spec : SketchSpec
            Equal to the one written, fingerprint included.
        """
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SpecError(f"a sketch spec must be JSON, and this is not: {error}.") from None
        if not isinstance(content, dict):
            raise SpecError(f"a sketch spec must be a JSON object. Got {type(content).__name__}.")
        return cls.from_dict(content)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> SketchSpec:
        """The spec that a JSON object, already parsed, describes.

        Parameters
        ----------
        content : mapping
            With ``"schema": 1``, n_features, sketch_size and bandwidth at least.

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
        names = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(content) - names)
        missing = sorted({"n_features", "sketch_size", "bandwidth"} - set(content))
        if unknown or missing:
            facts = [f"unknown: {', '.join(unknown)}"] * bool(unknown)
            facts += [f"missing: {', '.join(missing)}"] * bool(missing)
            raise SpecError(f"this is not a sketch spec ({'; '.join(facts)}).")
        if content.get("origin") is not None:
            content["origin"] = Origin.from_dict(content["origin"])
        if content.get("spectrum") is not None:
            content["spectrum"] = Spectrum.from_dict(content["spectrum"])
        if content.get("cells") is not None:
            d = check_integer(CALLER, "n_features", content["n_features"], 1, MAX_FEATURES)
            content["cells"] = Cells.from_dict(content["cells"], d)
        if content.get("axes") is not None:
            d = check_integer(CALLER, "n_features", content["n_features"], 1, MAX_FEATURES)
            content["axes"] = Axes.from_text(content["axes"], d)
        if content.get("landmarks") is not None:
            d = check_integer(CALLER, "n_features", content["n_features"], 1, MAX_FEATURES)
            content["landmarks"] = Landmarks.from_text(content["landmarks"], d)
        if content.get("recipe") is not None:
            content["recipe"] = Recipe.from_list(content["recipe"])
        return cls(**content)


def directions_of(X: RealArray) -> FloatArray:
    """Rows (n, d) divided by their lengths, as :func:`to_directions` has them, on the host."""
    kernel = select_kernel()
    wide = np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
    return np.asarray(kernel.on_host(to_directions(wide, kernel)))


def to_directions(X: RealArray, kernel: Kernel) -> FloatArray:
    """Rows divided by their lengths, the same to the bit with every kernel; NaN for length 0.

    Squares are summed from the first column, in float64; a root and a division follow. O(n d).
    """
    values, squares = kernel.empty(X.shape), kernel.empty((len(X),))
    d = X.shape[1]
    kernel.normalise(X, np.zeros(d), np.ones(d), values, squares)
    squares[~((squares > SHORTEST) & (squares < math.inf))] = math.nan
    values /= np.sqrt(squares)[:, None]
    return values


@lru_cache(maxsize=4)
def _frequencies(spec: SketchSpec) -> Frequencies:
    return draw_frequencies(
        spec.n_coordinates,
        spec.sketch_size,
        spec.bandwidth,
        law=spec.law,
        seed=spec.seed,
        structured=spec.structured,
        far_share=spec.far_share,
        saturation=spec.saturation,
    )
