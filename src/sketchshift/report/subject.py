"""What is looked at: a sketch, raw or private, or a table of sketches with its slices.

Takes what the commands read; hands sketches of chosen rows to the other modules of this room.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sketchshift.errors import DataError
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch import AnySketch, SketchTable
from sketchshift.sketch.sketch import merged

__all__ = ["ALL", "MOST_CHOICES", "Choice", "Subject"]

ALL = "all rows"

MOST_CHOICES = 2_000
"""Slices to choose from: a list of more is of no use to a person."""


@dataclass(frozen=True)
class Choice:
    """Rows that can be looked at on their own.

    Attributes
    ----------
    label : str
        For a person: ``"day = 2026-01-05"``.
    column : str or None
        The column of the key that was cut by; None for all rows.
    where : str or None
        The same as a condition for ``--where``.
    members : tuple of int
        Slices of the table.
    """

    label: str
    column: str | None
    where: str | None
    members: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Subject:
    """A sketch, or a table of them, under the name it was asked for by.

    Attributes
    ----------
    name : str
        As the user typed it.
    n_bytes : int
        Of the file.
    sketches : tuple of Sketch, or of one PrivateSketch
        The slices; a single sketch is one.
    table : SketchTable or None
        None for a single sketch.
    """

    name: str
    n_bytes: int
    sketches: tuple[AnySketch, ...]
    table: SketchTable | None = None

    @classmethod
    def of(cls, name: str, n_bytes: int, given: AnySketch | SketchTable) -> Subject:
        """A subject of what was read."""
        if isinstance(given, SketchTable):
            return cls(name, n_bytes, given.sketches, given)
        return cls(name, n_bytes, (given,))

    @cached_property
    def whole(self) -> AnySketch:
        """The sketch of all rows."""
        return self._merged(range(len(self.sketches)))

    @property
    def promise(self) -> str | None:
        """What a private sketch promises, in one line; raw ones promise nothing."""
        whole = self.whole
        return whole.statement if isinstance(whole, PrivateSketch) else None

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns, or their positions in words."""
        spec = self.whole.spec
        return spec.columns or [f"column {i}" for i in range(spec.n_features)]

    @property
    def by(self) -> tuple[str, ...]:
        """Columns of the key; none for a single sketch."""
        return () if self.table is None else self.table.by

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """All rows, then those of each value of each column of the key, at most 2000."""
        everything = Choice(ALL, None, None, tuple(range(len(self.sketches))))
        cuts = [choice for column in self.by for choice in self._cut(column)]
        return (everything, *cuts)[:MOST_CHOICES]

    def sketch_of(self, choice: Choice) -> AnySketch:
        """The sketch of the chosen rows; there must be some."""
        chosen = self._merged(choice.members)
        if chosen.total_weight <= 0:
            raise DataError(f"there are no rows in the slice {choice.label}. Choose another.")
        return chosen

    def _merged(self, members: Iterable[int]) -> AnySketch:
        if self.table is None:
            return self.sketches[0]
        return merged([self.table.sketches[i] for i in members])

    def _cut(self, column: str) -> list[Choice]:
        assert self.table is not None
        members: dict[Any, list[int]] = {}  # by Arrow's scalars: an hour that comes twice is two
        for i, scalar in enumerate(self.table.keys.column(column)):
            members.setdefault(scalar, []).append(i)
        return [
            Choice(f"{column} = {key_text(key)}", column, _condition(column, key), tuple(rows))
            for key, rows in ((scalar.as_py(), rows) for scalar, rows in members.items())
        ]


def key_text(key: Any) -> str:
    """A value of a key for a person."""
    return "(missing)" if key is None else str(key)


def _condition(column: str, key: Any) -> str:
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column)
    name = column if is_plain else '"' + column.replace('"', '""') + '"'
    if key is None:
        return f"{name} IS NULL"
    if isinstance(key, int | float) and not isinstance(key, bool):
        return f"{name} = {key!r}"
    return f"{name} = '" + str(key).replace("'", "''") + "'"
