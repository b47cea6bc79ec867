"""Where the numbers of a spec come from: what a private release has to know of its plan.

A spec is published with every release. Center, scale and bandwidths that were computed from
private rows would tell of these rows, so that a spec says where they come from, or nothing.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sketchshift._validation import check_choice, check_integer, check_number, parameter_error

__all__ = ["ADJACENCIES", "KINDS", "SCALES", "Charge", "Origin"]

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


def _fields(cls: type[Charge] | type[Origin], content: Any) -> dict[str, Any]:
    names = [field.name for field in dataclasses.fields(cls)]
    if not isinstance(content, Mapping) or set(content) != set(names):
        must = f"an object with exactly {', '.join(names)}"
        raise parameter_error(cls.__name__, "content", must, content)
    return dict(content)
