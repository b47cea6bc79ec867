"""The ledger: what all looks at the same people cost together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sketchshift._validation import check_number
from sketchshift.errors import PrivacyError, SpecError
from sketchshift.features import Charge
from sketchshift.privacy.zcdp import epsilon_of

__all__ = ["Ledger"]


@dataclass(frozen=True)
class Ledger:
    """Charges that were made, by the parts of the data they concern.

    A person belongs to one part. Charges of a part add up; of several parts, which have no
    person in common, the dearest counts. The same charge twice counts once.

    Parameters
    ----------
    parts : tuple of frozenset of Charge
        One, unless releases of disjoint data were merged.
    """

    parts: tuple[frozenset[Charge], ...]

    @classmethod
    def of(cls, charges: Iterable[Charge]) -> Ledger:
        """The ledger of one part with these ``charges``."""
        return cls((frozenset(charges),))

    def __post_init__(self) -> None:
        promises = {(charge.adjacency, charge.rows_per_person) for charge in self.charges}
        if len(promises) > 1:
            words = " and ".join(f"{a}, rows_per_person={c}" for a, c in sorted(promises))
            msg = (
                f"these releases promise different things ({words}), so that their costs do not "
                "add up. Release both with one adjacency and rows_per_person."
            )
            raise PrivacyError(msg)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """All charges, each once, in the order of their ids."""
        return tuple(sorted(frozenset().union(*self.parts), key=lambda charge: charge.id))

    @property
    def rho(self) -> float:
        """What the dearest part costs."""
        return max(sum(sorted(charge.rho for charge in part)) for part in self.parts)

    @property
    def delta(self) -> float:
        """The largest delta that any release had in mind."""
        return max(charge.delta for charge in self.charges)

    def epsilon(self, delta: float | None = None) -> float:
        """Epsilon of all together, at ``delta``; None takes :attr:`delta`."""
        if delta is None:
            delta = self.delta
        return epsilon_of(
            self.rho, check_number("Ledger.epsilon", "delta", delta, low=1e-300, high=0.99)
        )

    def __add__(self, other: Ledger) -> Ledger:
        """Both, of people who may be in both: charges add up."""
        return Ledger(_largest(a | b for a in self.parts for b in other.parts))

    def beside(self, other: Ledger) -> Ledger:
        """Both this and an ``other``, of people who are in one of them only: the dearer counts."""
        return Ledger(_largest((*self.parts, *other.parts)))

    def to_dict(self) -> dict[str, Any]:
        """For JSON: charges, and the parts as lists of their positions."""
        charges = self.charges
        at = {charge: i for i, charge in enumerate(charges)}
        places = [sorted(at[charge] for charge in part) for part in self.parts]
        return {"charges": [dataclasses.asdict(c) for c in charges], "parts": sorted(places)}

    @classmethod
    def from_dict(cls, content: Any) -> Ledger:
        """The ledger whose :meth:`to_dict` is ``content``; else a :class:`SpecError`."""
        try:
            charges = [Charge.from_dict(charge) for charge in content["charges"]]
            parts = tuple(frozenset(charges[i] for i in part) for part in content["parts"])
        except (KeyError, IndexError, TypeError) as error:
            raise SpecError(f"this is not a ledger: {error!r}.") from None
        if not parts or not all(parts):
            raise SpecError("a ledger has at least one part, and every part a charge.")
        return cls(parts)


def _largest(parts: Iterable[frozenset[Charge]]) -> tuple[frozenset[Charge], ...]:
    """Parts that no other part contains, each once, in a fixed order."""
    distinct = sorted(set(parts), key=lambda part: sorted(charge.id for charge in part))
    return tuple(part for part in distinct if not any(part < other for other in distinct))
