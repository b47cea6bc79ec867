"""What the messages of a stream hold: rows that came, and rows that went.

A message is an object of JSON (one row), a stream of Arrow's (many rows), or the fields of an entry
of Redis (one row, of texts). An object with ``op`` beside ``before`` or ``after`` tells of a change
in a database, as Debezium writes it: an update takes the row before away and brings the one after.

Takes :class:`Message` from ``brokers``; hands :class:`Rows` to whoever opens data. Which columns
must be numbers is known only then: ``Rows`` open by themselves, and each row remembers the message
that it came in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from sketchshift._text import column_in_words
from sketchshift.data.arrow import open_arrow
from sketchshift.data.source import Block, Request, Source
from sketchshift.errors import DataError, InvalidRowsError

__all__ = ["Message", "Rows", "read_messages"]

ARROW_STREAM, ARROW_FILE = b"\xff\xff\xff\xff", b"ARROW1"
CAME, WENT = "cru", "ud"
"""What ``op`` of a change says: created, read in a first pass, updated; updated, deleted."""


@dataclass(frozen=True)
class Message:
    """One message.

    Parameters
    ----------
    id : str
        Its place in the stream, as the broker calls it.
    body : bytes, mapping of str to bytes, or None
        What it holds: bytes, or named fields.
    """

    id: str
    body: bytes | Mapping[str, bytes] | None

    @property
    def n_bytes(self) -> int:
        """About how much memory it takes."""
        fields = self.body.values() if isinstance(self.body, Mapping) else [self.body or b""]
        return sum(map(len, fields))


@dataclass(frozen=True)
class _Part:
    """What one message brings: a row, a table of rows, or the reason why it cannot be read."""

    id: str
    row: Mapping[str, Any] | None = None
    table: Any = None
    fault: str = ""
    is_text: bool = False  # all its values are texts, which may mean numbers

    @property
    def kind(self) -> str:
        """Parts of one kind that follow each other become one table."""
        return "table" if self.table is not None else "texts" if self.is_text else "values"

    @property
    def n_rows(self) -> int:
        """Rows that it brings."""
        return 1 if self.table is None else int(self.table.num_rows)

    def checked(self, numbers: Sequence[str]) -> _Part:
        """The same, with a fault if a value that must be a number is none."""
        if self.row is None:
            return self
        for name in numbers:
            value = self.row.get(name)
            if not isinstance(value, float | int | None) and not _is_number(value):
                return _Part(self.id, fault=f"column {name!r} holds {value!r}, which is no number")
        return self


def _is_number(value: Any) -> bool:
    """Whether it can be read as one, or as a vector of them."""
    if isinstance(value, list):
        return all(isinstance(item, float | int) for item in value)
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def read_messages(messages: Iterable[Message], stream: str) -> tuple[Rows | None, Rows | None]:
    """The rows that came and the rows that went with some messages.

    Parameters
    ----------
    messages : iterable of Message
        In the order of the stream.
    stream : str
        Its name, for errors.

    Returns
    -------
    added, removed : Rows or None
        None where there are none. A message that cannot be read is among the added: it is refused,
        or counted as an invalid row, by whoever opens them.
    """
    added: list[_Part] = []
    removed: list[_Part] = []
    for message in messages:
        came, went = _read_message(message)
        added += [] if came is None else [came]
        removed += [] if went is None else [went]
    return Rows(stream, added) if added else None, Rows(stream, removed) if removed else None


def _read_message(message: Message) -> tuple[_Part | None, _Part | None]:
    body = message.body
    if isinstance(body, Mapping):
        values = list(body.values())
        if len(values) != 1 or not _begins_known(values[0]):
            texts = {name: value.decode(errors="replace") for name, value in body.items()}
            return _Part(message.id, row=texts, is_text=True), None
        body = values[0]
    if not body:
        return _Part(message.id, fault="it is empty"), None
    if body.startswith((ARROW_STREAM, ARROW_FILE)):
        return _read_arrow(message.id, body), None
    return _read_json(message.id, body)


def _begins_known(value: bytes) -> bool:
    return value.lstrip()[:1] == b"{" or value.startswith((ARROW_STREAM, ARROW_FILE))


def _read_arrow(place: str, body: bytes) -> _Part:
    opener = pa.ipc.open_file if body.startswith(ARROW_FILE) else pa.ipc.open_stream
    try:
        with opener(body) as reader:
            return _Part(place, table=reader.read_all())
    except (pa.ArrowException, OSError) as cause:
        return _Part(place, fault=f"it begins as Arrow's, but is damaged ({cause})")


def _read_json(place: str, body: bytes) -> tuple[_Part | None, _Part | None]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as cause:
        return _Part(place, fault=f"it is neither JSON nor Arrow's ({cause})"), None
    if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
        value = value["payload"]
    if not isinstance(value, dict):
        return _Part(place, fault=f"it is {type(value).__name__}, not an object of JSON"), None
    if "op" in value and ("before" in value or "after" in value):
        return _read_change(place, value)
    return _Part(place, row=value), None


def _read_change(place: str, change: Mapping[str, Any]) -> tuple[_Part | None, _Part | None]:
    """The row after, and the row before."""
    op = change["op"]
    if not isinstance(op, str) or op not in set(CAME + WENT):
        return _Part(place, fault=f"its op is {op!r}, none of c, r, u and d"), None
    sides = {"after": op in CAME, "before": op in WENT}
    for side, is_needed in sides.items():
        if is_needed and not isinstance(change.get(side), dict):
            fault = (
                f"its op is {op!r}, but it has no row {side!r}. Let the database log whole rows "
                "(REPLICA IDENTITY FULL in PostgreSQL)"
            )
            return _Part(place, fault=fault), None
    came = _Part(place, row=change["after"]) if sides["after"] else None
    return came, _Part(place, row=change["before"]) if sides["before"] else None


class Rows:
    """Rows of messages that open themselves, once it is known which columns are wanted.

    Parameters
    ----------
    stream : str
        Name for errors.
    parts : sequence of parts
        What each message brings.
    """

    def __init__(self, stream: str, parts: Sequence[_Part]) -> None:
        self._stream, self._parts = stream, parts

    def __len__(self) -> int:
        """Number of rows; a message that cannot be read counts as one."""
        return sum(part.n_rows for part in self._parts)

    def __repr__(self) -> str:
        return f"<{len(self)} rows of {self._stream}>"

    def open_rows(self, request: Request) -> Source:
        """Open them as one table.

        Parameters
        ----------
        request : Request
            Its columns are read as numbers, from texts too, unless a recipe says otherwise. A value
            that is none makes its message one that cannot be read: an error names the message or,
            with ``skip_invalid``, it counts as an invalid row.
        """
        wanted = _Wanted.of(request)
        parts = [part.checked(wanted.numbers) for part in self._parts]
        good = [part for part in parts if not part.fault]
        bad = [part for part in parts if part.fault]
        if bad and not (request.skip_invalid and (good or wanted.names)):
            raise self._refusal(bad[0], bad[0].fault)
        opened = open_arrow(self._stack(good, wanted), request)
        if not request.skip_invalid:
            return replace(opened, read=lambda: self._refuse_not_finite(opened, good))
        if not bad:
            return opened
        n_rows, keys = len(self), request.key_names
        return replace(opened, n_rows=n_rows, read=lambda: _with_invalid(opened, len(bad), keys))

    def _stack(self, parts: Sequence[_Part], wanted: _Wanted) -> Any:
        """All parts as one Arrow table."""
        runs = groupby(parts, key=lambda part: part.kind)
        try:
            tables = [_stack_run(list(run), wanted) for _, run in runs]
            tables = tables or [_stack_run([], wanted)]
            return pa.concat_tables(tables, promote_options="permissive")
        except (pa.ArrowException, OverflowError) as cause:
            msg = (
                f"messages {parts[0].id} to {parts[-1].id} of {self._stream} do not fit into one "
                f"table: {cause}. Give each column one type."
            )
            raise DataError(msg) from cause

    def _refusal(self, part: _Part, fault: str) -> InvalidRowsError:
        msg = (
            f"message {part.id} of {self._stream} cannot be read: {fault}. Repair what writes such "
            'messages, or leave them out with on_invalid="skip" (--on-invalid skip).'
        )
        return InvalidRowsError(msg)

    def _refuse_not_finite(self, source: Source, parts: Sequence[_Part]) -> Iterator[Block]:
        """The blocks; a row with a missing or infinite value is refused by its message's id."""
        for block in source:
            is_finite = np.isfinite(block.values)
            if not is_finite.all():
                row, column = (int(place) for place in np.argwhere(~is_finite)[0])
                ends = np.cumsum([part.n_rows for part in parts])
                found = int(np.searchsorted(ends, block.first_row + row, side="right"))
                fault = f"{block.values[row, column]} in {column_in_words(column, source.columns)}"
                raise self._refusal(parts[found], f"it has {fault}")
            yield block


def _with_invalid(source: Source, n_invalid: int, keys: Sequence[str]) -> Iterator[Block]:
    """The blocks, and one of rows that nobody could read: they are counted, under no key."""
    yield from source
    values = np.full((n_invalid, source.n_features), np.nan)
    missing = pa.table({name: pa.nulls(n_invalid) for name in keys}) if keys else None
    yield Block(values, source="messages that cannot be read", keys=missing)


@dataclass(frozen=True)
class _Wanted:
    """Columns that are needed, and which of them must be numbers; None: all, as they are."""

    names: tuple[str, ...] | None
    numbers: tuple[str, ...]

    @classmethod
    def of(cls, request: Request) -> _Wanted:
        weights = (request.weights,) if isinstance(request.weights, str) else ()
        if request.columns is None or request.beside != "nothing":
            return cls(None, weights)
        numbers = request.columns if request.recipe is None else request.recipe.numbers
        names = dict.fromkeys((*request.columns, *request.key_names, *weights))
        return cls(tuple(names), (*numbers, *weights))


def _stack_run(parts: Sequence[_Part], wanted: _Wanted) -> Any:
    """Parts of one kind as one Arrow table."""
    names = wanted.names
    if parts and parts[0].table is not None:
        tables = [part.table for part in parts]
        if names is not None:
            tables = [t.select([n for n in names if n in t.column_names]) for t in tables]
        return pa.concat_tables(tables, promote_options="permissive")
    rows = [part.row or {} for part in parts]
    if names is None:
        names = tuple(dict.fromkeys(name for row in rows for name in row))
    are_texts = any(part.is_text for part in parts)
    return pa.table({name: _column(name, rows, wanted, are_texts) for name in names})


def _column(name: str, rows: Sequence[Mapping[str, Any]], wanted: _Wanted, are_texts: bool) -> Any:
    """One column: of numbers where these are wanted, else of the type that its values have."""
    values = [row.get(name) for row in rows]
    if name in wanted.numbers and not any(isinstance(value, list) for value in values):
        return pa.array(np.array(values, np.float64))
    column = pa.array(values)
    if not are_texts or wanted.names is not None:
        return column
    try:
        return column.cast(pa.float64())
    except pa.ArrowInvalid:
        return column
