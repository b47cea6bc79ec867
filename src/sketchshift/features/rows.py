"""How a row becomes the numbers that are summed: normalisation, and where rows are moved.

Symbols
-------
d         columns
x, x'     a row as it is, and normalised
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sketchshift._text import nameless_columns
from sketchshift._typing import FloatArray, RealArray
from sketchshift._validation import (
    check_choice,
    check_integer,
    check_names,
    check_number,
    frozen,
    parameter_error,
    read_fields,
)
from sketchshift.kernels import Kernel, select_kernel
from sketchshift.recipe import Recipe

__all__ = [
    "ADJACENCIES",
    "KINDS",
    "MAX_FEATURES",
    "METRICS",
    "SCALES",
    "Ball",
    "Charge",
    "Rows",
    "directions_of",
    "unit_for",
]

MAX_FEATURES = 2**20
METRICS = ("euclidean", "cosine")
KINDS = ("declared", "public", "private")
ADJACENCIES = ("add_remove", "replace_one")
SCALES = (2.0**-20, 2.0**100)
"""Of noise: wider than any release has them, and their squares far from where floats end."""

SHORTEST = 2.0**-900  # squared length of a row that has a direction; of less, digits are lost
_LIMITS = {"rho": (1e-20, 1e5), "delta": (1e-30, 1e-2), "sensitivity": SCALES, "scale": SCALES}
_CALLER = "SketchSpec"  # people pass these numbers to it


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
        """Read ``content``, what JSON holds of it."""
        return cls(**read_fields(cls, content))


@dataclass(frozen=True)
class Ball:
    """Rows of private releases are clipped to a public ball; the spec may be published.

    A spec is published with every release. Center, scale and bandwidths that were computed from
    private rows would reveal these rows, so a spec states where its numbers come from.

    Parameters
    ----------
    kind : {"declared", "public", "private"}
        The numbers were declared by a person, taken from a public sample, or from private rows with
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
        check_choice("Ball", "kind", self.kind, KINDS)
        radius = check_number("Ball", "radius", self.radius, low=1e-20, high=1e20)
        object.__setattr__(self, "radius", radius)
        if not isinstance(self.charges, tuple | list):
            raise parameter_error("Ball", "charges", "a tuple of Charge", self.charges)
        object.__setattr__(self, "charges", tuple(self.charges))
        are_charges = all(isinstance(charge, Charge) for charge in self.charges)
        if not are_charges or bool(self.charges) != (self.kind == "private"):
            must = 'charges for the kind "private", and none for others'
            raise parameter_error("Ball", "charges", must, self.charges)

    @classmethod
    def from_dict(cls, content: Any) -> Ball:
        """Read ``content``, what JSON holds of it."""
        fields = read_fields(cls, content)
        charges = fields.get("charges", [])
        if not isinstance(charges, list):
            raise parameter_error("Ball", "charges", "a list", charges)
        return cls(**fields | {"charges": tuple(map(Charge.from_dict, charges))})


@dataclass(frozen=True)
class Rows:
    """How a row x becomes x' = (x - center) / scale, and how exactly.

    Parameters
    ----------
    n_features : int
        Dimension d of a row.
    columns : sequence of str, Recipe or None
        Names of the columns, by which sources that have names are read; or how the columns of a
        table become d columns of numbers. Arrays are taken as these numbers.
    center : sequence of float or None
        Subtracted from each row.
    scale : float, sequence of float or None
        Divides each row: one number keeps the distances of k-means, one a column
        standardises.
    unit : float, default=1
        A power of two: rows are exact in steps of unit / 2**20, and lie within 2**20 units.
    onto : "sphere", Ball or None
        "sphere" divides every row by its length before it is normalised: distances are then those
        of directions, and a row of length 0 is invalid. A ball is for private releases: rows are
        clipped to it, and NaN is dropped without a word.
    """

    n_features: int
    columns: tuple[str, ...] | Recipe | None = None
    center: tuple[float, ...] | None = None
    scale: float | tuple[float, ...] | None = None
    unit: float = 1.0
    onto: str | Ball | None = None

    def __post_init__(self) -> None:
        d = check_integer(_CALLER, "n_features", self.n_features, 1, MAX_FEATURES)
        columns = self.columns
        if isinstance(columns, Recipe):
            if len(columns.names) != d:
                must = f"a Recipe that makes {d} columns of numbers"
                raise parameter_error(_CALLER, "columns", must, columns)
        elif columns is not None:
            columns = check_names(_CALLER, "columns", columns, d)
        unit = check_number(_CALLER, "unit", self.unit, low=2.0**-500, high=2.0**500)
        if math.frexp(unit)[0] != 0.5:
            raise parameter_error(_CALLER, "unit", "a power of two", self.unit)
        is_sphere = isinstance(self.onto, str) and self.onto == "sphere"
        if not (self.onto is None or is_sphere or isinstance(self.onto, Ball)):
            raise parameter_error(_CALLER, "onto", "'sphere', a Ball or None", self.onto)
        checked = {
            "n_features": d,
            "columns": columns,
            "center": check_vector("center", self.center, d),
            "scale": check_scale(self.scale, d),
            "unit": unit,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the d columns of numbers."""
        return self.columns.names if isinstance(self.columns, Recipe) else self.columns

    @property
    def labels(self) -> Sequence[str]:
        """Names of the columns, or where there are none their positions in words."""
        return self.names or nameless_columns(self.n_features)

    @property
    def recipe(self) -> Recipe | None:
        """How a table becomes numbers, where its columns are not these numbers."""
        return self.columns if isinstance(self.columns, Recipe) else None

    @property
    def ball(self) -> Ball | None:
        """What rows of private releases are clipped to."""
        return self.onto if isinstance(self.onto, Ball) else None

    @property
    def metric(self) -> str:
        """Distances of which rows: "euclidean", or "cosine" of their directions."""
        return "cosine" if self.onto == "sphere" else "euclidean"

    @property
    def is_standardised(self) -> bool:
        """Whether each column has a scale of its own, so that none outweighs the others."""
        return isinstance(self.scale, tuple)

    @cached_property
    def center_vector(self) -> FloatArray:
        """The center as an array of shape (d,)."""
        return frozen(np.array(np.zeros(self.n_features) if self.center is None else self.center))

    @cached_property
    def scale_vector(self) -> FloatArray:
        """The scale as an array of shape (d,)."""
        scale = 1.0 if self.scale is None else self.scale
        return frozen(np.array(np.broadcast_to(scale, self.n_features), dtype=np.float64))

    @cached_property
    def per_unit(self) -> FloatArray:
        """What a centered row is multiplied by: 1 / scale, rounded once, shape (d,)."""
        return frozen(1.0 / self.scale_vector)

    def normalise(
        self, X: RealArray, kernel: Kernel, rows: FloatArray, squared_norms: FloatArray
    ) -> None:
        """Center and scale rows, divided by their lengths for the sphere, and square their norms.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows as they are.
        kernel : Kernel
            Where it is computed.
        rows, squared_norms : arrays of shapes (n, d) and (n,)
            To be filled.
        """
        values = _to_directions(X, kernel) if self.onto == "sphere" else X
        kernel.normalise(values, self.center_vector, self.per_unit, rows, squared_norms)

    def normalised(self, X: RealArray) -> FloatArray:
        """Return rows ``X`` (n, d) normalised, as they are summed to the bit: O(n d)."""
        values = np.ascontiguousarray(X)
        rows, squared_norms = np.empty(values.shape), np.empty(len(values))
        self.normalise(values, select_kernel("cpu"), rows, squared_norms)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds: what has its default is left out."""
        content: dict[str, Any] = {"n_features": self.n_features}
        if self.columns is not None:
            own = self.columns
            content["columns"] = own.to_list() if isinstance(own, Recipe) else list(own)
        for name, default in (("center", None), ("scale", None), ("unit", 1.0)):
            if getattr(self, name) != default:
                content[name] = getattr(self, name)
        if isinstance(self.onto, Ball):
            charges = [vars(charge) for charge in self.onto.charges]
            content["onto"] = vars(self.onto) | {"charges": charges}
        elif self.onto is not None:
            content["onto"] = self.onto
        return content

    @classmethod
    def from_dict(cls, content: Any) -> Rows:
        """Read ``content``, what :meth:`to_dict` gave."""
        fields = read_fields(cls, content)
        columns = fields.get("columns")
        if isinstance(columns, list) and columns and isinstance(columns[0], dict):
            fields["columns"] = Recipe.from_list(columns)
        if isinstance(fields.get("onto"), dict):
            fields["onto"] = Ball.from_dict(fields["onto"])
        return cls(**fields)


def unit_for(bandwidth: float, d: int) -> float:
    """Return the power of two just below bandwidth / sqrt(d): steps that no kernel sees."""
    return math.ldexp(1.0, math.frexp(bandwidth / math.sqrt(d))[1] - 1)


def is_list(value: Any) -> bool:
    """Whether somebody passed several values."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def check_vector(name: str, value: Any, d: int) -> tuple[float, ...] | None:
    """As many finite numbers as there are columns, or None."""
    if value is None:
        return None
    if not is_list(value) or len(value) != d:
        raise parameter_error(_CALLER, name, f"{d} numbers, one a column, or None", value)
    checked = (check_number(_CALLER, name, number, low=-1e150, high=1e150) for number in value)
    return tuple(number + 0.0 for number in checked)  # -0.0, equal to 0.0, is written as it


def check_scale(value: Any, d: int) -> float | tuple[float, ...] | None:
    """One positive number, one a column, or None."""
    if value is None or is_list(value):
        numbers = check_vector("scale", value, d)
        positive = [
            check_number(_CALLER, "scale", n, low=1e-150, high=1e150) for n in numbers or ()
        ]
        return tuple(positive) if numbers is not None else None
    return check_number(_CALLER, "scale", value, low=1e-150, high=1e150)


def directions_of(X: RealArray) -> FloatArray:
    """Rows (n, d) divided by their lengths, on the host; NaN for length 0."""
    kernel = select_kernel()
    wide = np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
    return np.asarray(kernel.on_host(_to_directions(wide, kernel)))


def _to_directions(X: RealArray, kernel: Kernel) -> FloatArray:
    """Rows divided by their lengths, the same to the bit with every kernel; NaN for length 0.

    Squares are summed from the first column, in float64; a root and a division follow. O(n d).
    """
    values, squares = kernel.empty(X.shape), kernel.empty((len(X),))
    d = X.shape[1]
    kernel.normalise(X, np.zeros(d), np.ones(d), values, squares)
    squares[~((squares > SHORTEST) & (squares < math.inf))] = math.nan
    values /= np.sqrt(squares)[:, None]
    return values
