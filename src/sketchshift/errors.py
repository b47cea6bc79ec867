"""Every exception and warning raised on purpose: each names the fact and says what to do.

They derive from the built-in exceptions that callers already catch.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from sketchshift._text import visible_lines

__all__ = [
    "DataError",
    "IncompatibleSketchesError",
    "InvalidRowsError",
    "MissingDependencyError",
    "PlanWarning",
    "PrivacyError",
    "PrivacyWarning",
    "RemovalError",
    "ScaleHint",
    "SketchFormatError",
    "SketchshiftError",
    "SpecError",
    "warn",
]


class SketchshiftError(Exception):
    """Parent of all exceptions of this library."""

    def __str__(self) -> str:
        """The sentence, harmless to a terminal whatever names are in it."""
        return visible_lines(super().__str__())


class SpecError(SketchshiftError, ValueError):
    """A parameter of a sketch spec cannot be used, alone or beside the others."""


class DataError(SketchshiftError, ValueError):
    """A data source cannot be read as rows of numbers with the columns asked for."""


class InvalidRowsError(DataError):
    """Some rows hold NaN or infinity, or lie too far out for the exact integers."""


class IncompatibleSketchesError(SketchshiftError, ValueError):
    """Two sketches were taken with different specs, so their numbers do not add up.

    Attributes
    ----------
    verb : str
        What cannot be done with them: "merge", "compare"; empty if they differ in another way.
    left, right : SketchSpec or None
        The specs of both, where these differ.
    """

    def __init__(self, *parts: Any, verb: str = "", left: Any = None, right: Any = None) -> None:
        super().__init__(*parts)
        self.verb, self.left, self.right = verb, left, right


class RemovalError(SketchshiftError, ValueError):
    """More would be removed from a sketch than was ever added to it."""


class SketchFormatError(SketchshiftError, ValueError):
    """Bytes are not an intact sketch of a version this reader knows."""


class PrivacyError(SketchshiftError, ValueError):
    """What was asked for would break the promise of a private release.

    Attributes
    ----------
    ledger : Ledger or None
        What a refusal has cost all the same, since it tells of the rows; None for others.
    """

    def __init__(self, message: str, ledger: Any = None) -> None:
        super().__init__(message)
        self.ledger = ledger


class MissingDependencyError(SketchshiftError, ImportError):
    """An optional package is needed; the message says which extra installs it."""


class PlanWarning(UserWarning):
    """The rows a plan was made from may not be like the rest of the data."""


class PrivacyWarning(UserWarning):
    """A private release has too few rows for its noise, or promises little."""


class ScaleHint(UserWarning):
    """Columns vary so differently that their units probably differ."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn about the line of the caller's code that called into this package."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(visible_lines(message), category, stacklevel=depth)


_PACKAGE = __name__.partition(".")[0] + "."
