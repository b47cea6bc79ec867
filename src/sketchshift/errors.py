"""Every exception and warning raised on purpose: each names the fact and says what to do.

They derive from the built-in exceptions that callers already catch. A message is made of parts.
Most are text; a :class:`Term` is something that Python and the command line call by different
names. ``str(error)`` has the words of Python, and another surface gives its own to
:meth:`SketchshiftError.worded`.
"""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sketchshift._text import hide_passwords, listed, visible_lines

__all__ = [
    "Argument",
    "ChooseColumns",
    "ConflictError",
    "DataError",
    "IncompatibleSketchesError",
    "InvalidRowsError",
    "LoadSketch",
    "MissingDependencyError",
    "Option",
    "Parameter",
    "PlanWarning",
    "PrivacyError",
    "PrivacyWarning",
    "RemovalError",
    "ScaleHint",
    "SetDialect",
    "SharePlan",
    "SketchFormatError",
    "SketchshiftError",
    "SpecError",
    "Term",
    "warn",
]


@dataclass(frozen=True)
class Argument:
    """The bare name of an argument, within a message; commands have it as a flag.

    Attributes
    ----------
    name : str
        Of the argument.
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ChooseColumns:
    """Name the columns to read.

    Attributes
    ----------
    names : tuple of str
        Which; empty where that is left to the reader.
    """

    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"columns=[{listed(self.names) or '...'}]"


@dataclass(frozen=True)
class LoadSketch:
    """Read a file as the sketch that it is.

    Attributes
    ----------
    path : str
        Of the file.
    """

    path: str

    def __str__(self) -> str:
        return f"Read it with ss.load({self.path!r})."


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function or class, at the beginning of a message.

    Attributes
    ----------
    caller : str
        Of which function or class.
    name : str
        Which one.
    """

    caller: str
    name: str

    def __str__(self) -> str:
        return f"The {self.name!r} parameter of {self.caller}"


@dataclass(frozen=True)
class SetDialect:
    """Say how a text table is written.

    Attributes
    ----------
    field : str
        Of a dialect: "separator", "decimal", "encoding" or "missing".
    value : str
        Empty where that is left to the reader.
    """

    field: str
    value: str = ""

    def __str__(self) -> str:
        value = f"[{self.value!r}]" if self.field == "missing" else repr(self.value)
        return f"`with ss.data.text_dialect({self.field}={value if self.value else '...'}):`"


@dataclass(frozen=True)
class Option:
    """An argument of :func:`sketchshift.profiling.survey` to pass; commands have it as an option.

    Attributes
    ----------
    name : str
        Of the argument.
    value : str or tuple of str
        What to pass.
    """

    name: str
    value: str | tuple[str, ...]

    def __str__(self) -> str:
        """As Python has it."""
        value = self.value if isinstance(self.value, str) else list(self.value)
        return f"{self.name}={value!r}"

    def in_shell(self) -> str:
        """As the command line has it, quoted for a shell."""
        flag = {"on_missing": "on_invalid", "cycles": "categories"}.get(self.name, self.name)
        value = (self.value,) if isinstance(self.value, str) else self.value
        names = (f'"{name}"' if "," in name else name for name in value)
        return f"--{flag.replace('_', '-')} {shlex.quote(','.join(names))}"


@dataclass(frozen=True)
class SharePlan:
    """Take all sketches that are to be merged with one plan."""

    def __str__(self) -> str:
        return "Make one plan with ss.plan, and pass it to every sketch: ss.sketch(part, plan)."


Term = Argument | ChooseColumns | LoadSketch | Option | Parameter | SetDialect | SharePlan
"""What a message is about or advises, named so that each surface can say it in its own words."""


class SketchshiftError(Exception):
    """Parent of all exceptions of this library.

    Parameters
    ----------
    *parts : str or Term
        The message, in the order in which it is read.
    """

    def __str__(self) -> str:
        """The sentence in the words of Python."""
        return self.worded(str)

    def worded(self, words: Callable[[Term], str]) -> str:
        """The sentence in the words of a surface, harmless to a terminal.

        Parameters
        ----------
        words : callable
            What the surface says for a term.

        Returns
        -------
        text : str
            Signs in it that would control a terminal are escapes; addresses have no passwords.
        """
        parts = (words(part) if isinstance(part, Term) else str(part) for part in self.args)
        return visible_lines(hide_passwords("".join(parts)))


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


class ConflictError(SketchshiftError, RuntimeError):
    """Another writer has moved on what this one began from; nothing was written."""


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
    """The data, or the number of clusters, may not be what the plan was made for."""


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
