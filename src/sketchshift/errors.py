"""Every exception raised on purpose: each names the fact and says what to do.

They derive from the built-in exceptions that callers already catch.
"""

from __future__ import annotations

__all__ = [
    "DataError",
    "IncompatibleSketchesError",
    "InvalidRowsError",
    "MissingDependencyError",
    "RemovalError",
    "SketchFormatError",
    "SketchshiftError",
    "SpecError",
]


class SketchshiftError(Exception):
    """Parent of all exceptions of this library."""


class SpecError(SketchshiftError, ValueError):
    """A parameter of a sketch spec cannot be used, alone or beside the others."""


class DataError(SketchshiftError, ValueError):
    """A data source cannot be read as rows of numbers with the columns asked for."""


class InvalidRowsError(DataError):
    """Some rows hold NaN or infinity, or lie too far out for the exact integers."""


class IncompatibleSketchesError(SketchshiftError, ValueError):
    """Two sketches were taken with different specs, so their numbers do not add up."""


class RemovalError(SketchshiftError, ValueError):
    """More would be removed from a sketch than was ever added to it."""


class SketchFormatError(SketchshiftError, ValueError):
    """Bytes are not an intact sketch of a version this reader knows."""


class MissingDependencyError(SketchshiftError, ImportError):
    """An optional package is needed; the message says which extra installs it."""
