"""The choice of columns that every source with names makes.

A source describes its columns as :class:`Field` and gets a :class:`Choice`, or an
error that names the missing, repeated or non-numeric ones. Knows no library of tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from sketchshift.data.request import NAMES_SHOWN, Request, listed
from sketchshift.errors import DataError

__all__ = ["Choice", "Field", "choose"]


@dataclass(frozen=True)
class Field:
    """A column that exists: its name, its type in words, and whether it holds numbers."""

    name: str
    type: str
    is_number: bool


@dataclass(frozen=True)
class Choice:
    """The columns to deliver, in order, that of weights if there is one, and those of keys."""

    columns: tuple[str, ...]
    weights: str | None
    keys: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """Every column that has to be read, each once."""
        return [*self.numeric, *(key for key in self.keys if key not in self.numeric)]

    @property
    def numeric(self) -> list[str]:
        """Those that have to be read as numbers."""
        return [*self.columns, *([self.weights] if self.weights is not None else [])]


def choose(fields: Sequence[Field], request: Request, where: str) -> Choice:
    """Columns and weights to read from ``where``, or an error naming what is wrong.

    Parameters
    ----------
    fields : sequence of Field
        Every column there is.
    request : Request
        Without columns, all but the columns of weights and of keys are taken.
    where : str
        Name of the data for messages.

    Returns
    -------
    choice : Choice
        Names that exist exactly once and hold numbers.
    """
    weights = request.weights if isinstance(request.weights, str) else None
    columns, keys = request.columns, request.key_names
    if columns is None:
        columns = tuple(f.name for f in fields if f.name != weights and f.name not in keys)
    elif weights in columns:
        msg = f"column {weights!r} cannot be both in columns= and the weights. Leave one out."
        raise DataError(msg)
    choice = Choice(columns, weights, keys)
    _refuse_missing(choice, fields, where)
    if not columns:
        others = " beside the weights or the keys." if weights or keys else "."
        raise DataError(f"{where} has no columns to read{others}")
    _refuse_repeated(choice, fields, where)
    is_given_by_spec = request.columns is not None and not request.names_needed
    _refuse_not_numbers(choice, fields, where, is_given_by_spec=is_given_by_spec)
    return choice


def _refuse_missing(choice: Choice, fields: Sequence[Field], where: str) -> None:
    there = [field.name for field in fields]
    known = set(there)
    missing = [name for name in choice.names if name not in known]
    if not missing:
        return
    close = [match for name in missing for match in get_close_matches(name, there, n=1)]
    hint = f" Did you mean {listed(close)}?" if close else ""
    noun = "column" if len(missing) == 1 else "columns"
    msg = f"{where} has no {noun} {listed(missing)}.{hint} It has {listed(there)}."
    raise DataError(msg)


def _refuse_repeated(choice: Choice, fields: Sequence[Field], where: str) -> None:
    times = Counter(field.name for field in fields)
    repeated = [name for name in choice.names if times[name] > 1]
    if repeated:
        msg = (
            f"{where} has more than one column named {listed(repeated)}. Rename them, "
            "or choose other columns with columns=[...]."
        )
        raise DataError(msg)


def _refuse_not_numbers(
    choice: Choice, fields: Sequence[Field], where: str, *, is_given_by_spec: bool
) -> None:
    by_name = {field.name: field for field in fields}
    others = [by_name[name] for name in choice.numeric if not by_name[name].is_number]
    if not others:
        return
    if others[-1].name == choice.weights:  # they come last
        msg = (
            f"{where}: column {choice.weights!r} ({others[-1].type}) cannot be read as weights. "
            "Name a column of numbers in sample_weight."
        )
        raise DataError(msg)
    found = ", ".join(f"{f.name!r} ({f.type})" for f in others[:NAMES_SHOWN])
    noun = "column" if len(others) == 1 else "columns"
    apart = (choice.weights, *choice.keys)
    numeric = [f.name for f in fields if f.is_number and f.name not in apart]
    if is_given_by_spec:
        advice = "The spec needs it: convert it to numbers, or make a spec of other columns."
    elif numeric:
        advice = f"Choose numeric ones with columns=[{listed(numeric)}]."
    else:
        advice = "It has no numeric column."
    msg = f"{where}: {noun} {found} cannot be read as numbers. {advice}"
    raise DataError(msg)
