"""What a request to the explorer can say: a few whole numbers, each with its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from sketchshift.errors import SpecError

__all__ = ["Wish"]

MOST_PAGE = 999_999_999
"""The largest number that a page draws for itself."""


@dataclass(frozen=True)
class Wish:
    """Numbers of a request.

    Attributes
    ----------
    k : int
        Number of clusters.
    choice : int
        Place in the list of choices.
    before, after : int
        Places of two choices to compare; ``after`` may be one further, for all other rows.
    page : int
        Who asks: a number that a page draws when it is opened.
    """

    k: int = 1
    choice: int = 0
    before: int = 0
    after: int = 0
    page: int = 0

    @classmethod
    def of(cls, query: Mapping[str, str], max_clusters: int, n_choices: int) -> Wish:
        """Read a query; anything but the known numbers within their limits is refused.

        Parameters
        ----------
        query : mapping of str to str
            Names and values as they came.
        max_clusters, n_choices : int
            The limits.

        Returns
        -------
        wish : Wish
            What was not said has its default.
        """
        limits = {
            "k": (1, max_clusters),
            "choice": (0, n_choices - 1),
            "before": (0, n_choices - 1),
            "after": (0, n_choices),
            "page": (0, MOST_PAGE),
        }
        unknown = set(query) - {field.name for field in fields(cls)}
        if unknown:
            raise SpecError(f"a request has {', '.join(limits)}, and nothing else.")
        return cls(**{name: _number(name, text, *limits[name]) for name, text in query.items()})


def _number(name: str, text: str, low: int, high: int) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= 9
    if not is_number or not low <= int(text) <= high:
        raise SpecError(f"{name} must be a whole number from {low} to {high}.")
    return int(text)
