"""The log of a cube: numbered commits, of which each is there whole or not at all.

A commit lists the parts that it adds and takes away, and the positions of sources. The state of a
cube is that of its commits in order. Who commits puts a file of the next number if there is none:
of several writers one succeeds, and the others read what it did and try the number after it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sketchshift._writing import publish, write_atomically
from sketchshift.errors import SketchFormatError
from sketchshift.sketch.file import name_file, pack, read_header, unpack
from sketchshift.sketch.keys import to_stream

__all__ = ["WHOLE", "Commit", "Log", "PartRecord", "State", "bounds_of", "read_bounds"]

COMMIT_MAGIC = b"\x89SKL\r\n\x1a\n"
STATE_MAGIC = b"\x89SKT\r\n\x1a\n"

EVERY = 64
"""Commits from one checkpoint of the log to the next."""

WHOLE = "Copy the folder again, as a whole."

_COMMIT = {
    "added": list,
    "dropped": list,
    "kept": dict,
    "moved": dict,
    "number": int,
    "positions": dict,
    "returned": list,
}
_STATE = {"number": int, "parts": list, "kept": dict, "positions": dict}


@dataclass(frozen=True)
class PartRecord:
    """What the log says of one part.

    Attributes
    ----------
    name : str
        Of its file.
    sign : int
        1 where its rows came, -1 where they went.
    n_slices, n_head, n_bytes : int
        How many there are in it, and how large its head and its file are.
    keys : str
        Smallest and largest value of each key: see :func:`bounds_of`.
    """

    name: str
    sign: int
    n_slices: int
    n_head: int
    n_bytes: int
    keys: str

    @property
    def id(self) -> str:
        """Its name in the log: a file may be there as rows that came, and as rows that went."""
        return self.name if self.sign > 0 else f"-{self.name}"


@dataclass(frozen=True)
class Commit:
    """One step of a cube.

    Attributes
    ----------
    added : tuple of PartRecord
        Parts that are there from now on.
    dropped : tuple of str
        Ids of parts whose rows are in those added: they are there no more.
    kept : mapping
        Names under which parts among those added are kept, and lists of the names of their files.
    returned : tuple of str
        Names of kept parts whose rows went.
    positions : mapping
        Where reading goes on, of the sources that have moved.
    """

    added: tuple[PartRecord, ...] = ()
    dropped: tuple[str, ...] = ()
    kept: Mapping[str, Sequence[str]] = field(default_factory=dict)
    returned: tuple[str, ...] = ()
    positions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    """What the commits up to a number add up to.

    Attributes
    ----------
    number : int
        Of the last commit.
    parts : mapping
        Those that count, by id.
    kept : mapping
        By name, parts whose rows came: they stay on the disk, whether they still count or are in
        the sums of others, so that their rows can go.
    positions : mapping
        Of all sources.
    """

    number: int = 0
    parts: Mapping[str, PartRecord] = field(default_factory=dict)
    kept: Mapping[str, tuple[PartRecord, ...]] = field(default_factory=dict)
    positions: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> set[str]:
        """Names of the files that are needed."""
        records = chain(self.parts.values(), *self.kept.values())
        return {record.name for record in records}

    def after(self, commit: Commit) -> State:
        """The state once one more commit is in; one that names what is not there is refused."""
        try:
            return self._after(commit)
        except (KeyError, TypeError) as cause:
            raise SketchFormatError(f"the commit names what is not there: {cause}.") from None

    def _after(self, commit: Commit) -> State:
        parts, kept = dict(self.parts), dict(self.kept)
        for part in commit.dropped:
            del parts[part]
        for record in chain.from_iterable(kept.pop(name) for name in commit.returned):
            if parts.pop(record.id, None) is None:  # its rows are in the sums of another part
                gone = replace(record, sign=-1)
                parts[gone.id] = gone
        added = {record.name: record for record in commit.added}
        parts |= {record.id: record for record in added.values()}
        kept |= {name: tuple(added[f] for f in files) for name, files in commit.kept.items()}
        return State(self.number + 1, parts, kept, {**self.positions, **commit.positions})


class Log:
    """The commits in a folder.

    Parameters
    ----------
    folder : Path
        Of the cube, with folders ``log`` and ``drafts`` in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._drafts = folder / "log", folder / "drafts"
        self._checkpoint = folder / "state"
        self._state = State()
        self._is_checked = False

    def state(self) -> State:
        """The newest state: O(1) commits read beyond those that are known already."""
        if self._state.number == 0:
            self._state = self._newest_checkpoint()
        self._catch_up()
        if not self._is_checked:
            self.check()
        return self._state

    def check(self) -> None:
        """Refuse a log in which a commit is missing before others, as in a copy of a part of it.

        Lists the folder. Commits come one after another, so that one that is there was put behind
        all those before it.
        """
        if not self._folder.is_dir():
            raise SketchFormatError(f"the log of the cube is not there: {self._folder}. {WHOLE}")
        commits = self._folder.glob("[0-9]" * 12 + ".commit")
        newest = max((int(path.stem) for path in commits), default=0)
        self._catch_up()
        if self._state.number < newest:
            lost = self._path(self._state.number + 1)
            raise SketchFormatError(f"a commit of the cube is not there: {lost}. {WHOLE}")
        self._is_checked = True

    def _catch_up(self) -> None:
        while (commit := self._read(self._state.number + 1)) is not None:
            with name_file(self._path(self._state.number + 1)):
                self._state = self._state.after(commit)

    def commit(self, make: Callable[[State], Commit | None]) -> State:
        """Add a commit behind all others.

        Parameters
        ----------
        make : callable
            Gives the commit for a state, and is asked again where another writer was first. What
            it raises is raised, and nothing is written. None for no commit.

        Returns
        -------
        state : State
            With the commit in it, if there was one.
        """
        while True:
            state = self.state()
            commit = make(state)
            if commit is None:
                return state
            number = state.number + 1
            data = _encode(number, commit, state.positions)
            after = state.after(commit)  # raises what every reader would raise from then on
            if publish(self._path(number), data, self._drafts):
                self._state = after
                if number % EVERY == 0:
                    self._write_checkpoint(self._state)
                return self._state

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:012d}.commit"

    def _read(self, number: int) -> Commit | None:
        path = self._path(number)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        with name_file(path):
            text, _ = unpack(data, COMMIT_MAGIC)
            header = read_header(text, _COMMIT)
            if header["number"] != number:
                msg = f"this is commit {header['number']} under the name of commit {number}."
                raise SketchFormatError(msg)
            del header["number"]
            header |= {"added": _records(header["added"])}
            for name, patch in header.pop("moved").items():
                header["positions"][name] = _patched(self._state.positions.get(name), patch)
            return Commit(**header)

    def _newest_checkpoint(self) -> State:
        """A checkpoint that is as new as its writers could make it; the empty state without one."""
        try:
            data = self._checkpoint.read_bytes()
        except FileNotFoundError:  # none yet: all commits are there all the same
            return State()
        with name_file(self._checkpoint):
            header = read_header(unpack(data, STATE_MAGIC)[0], _STATE)
            parts = {record.id: record for record in _records(header["parts"])}
            kept = {name: _records(rows) for name, rows in header["kept"].items()}
            return State(header["number"], parts, kept, header["positions"])

    def _write_checkpoint(self, state: State) -> None:
        header: dict[str, Any] = {"number": state.number, "positions": state.positions}
        header["parts"] = [asdict(part) for part in state.parts.values()]
        kept = state.kept.items()
        header["kept"] = {name: [asdict(part) for part in parts] for name, parts in kept}
        with suppress(OSError, SketchFormatError):  # full, or too long: the commit itself is in
            write_atomically(self._checkpoint, pack(STATE_MAGIC, header, b""))


def _encode(number: int, commit: Commit, before: Mapping[str, Any]) -> bytes:
    """A commit, with what has changed of the positions that there were before."""
    header: dict[str, Any] = {"number": number, **asdict(commit), "moved": {}}
    whole = header["positions"]
    for name, old in before.items():
        patch = _patch(old, whole[name]) if name in whole else None
        if patch is not None:
            header["moved"][name] = patch
            del whole[name]
    return pack(COMMIT_MAGIC, header, b"")


def _patch(old: Any, new: Any) -> Any:
    """What has changed from one JSON value to another, as a merge patch of RFC 7396.

    None where it would be longer, or cannot say it, as of values that are null.
    """
    patch = _difference(old, new)
    texts = [json.dumps(value, sort_keys=True) for value in (patch, new, _patched(old, patch))]
    return patch if texts[1] == texts[2] and len(texts[0]) < len(texts[1]) else None


def _difference(old: Any, new: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    gone = {name: None for name in old if name not in new}
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    return gone | {name: _difference(old.get(name), value) for name, value in changed.items()}


def _patched(old: Any, patch: Any) -> Any:
    """A JSON value with a merge patch applied."""
    if not isinstance(patch, dict):
        return patch
    new = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            new.pop(name, None)
        else:
            new[name] = _patched(new.get(name), value)
    return new


def _records(rows: Sequence[Any]) -> tuple[PartRecord, ...]:
    try:
        records = tuple(PartRecord(**row) for row in rows)
    except TypeError as cause:
        raise SketchFormatError(f"a part of the commit is not described ({cause}).") from None
    for record in records:
        if not _is_sound(record):
            raise SketchFormatError(f"there can be no such part: {record}.")
    return records


def _is_sound(record: PartRecord) -> bool:
    """Whether a part can be so: its file lies in the folder of parts, whoever wrote the log."""
    texts, numbers = (record.name, record.keys), (record.n_slices, record.n_head, record.n_bytes)
    are_texts = all(type(text) is str for text in texts)
    are_numbers = all(type(number) is int for number in (record.sign, *numbers))
    if not (are_texts and are_numbers and re.fullmatch(r"[\w-]+\.slices", record.name)):
        return False
    return record.sign in (1, -1) and record.n_slices >= 0 < record.n_head <= record.n_bytes


# Smallest and largest keys, by which parts are passed over.


def bounds_of(keys: Any) -> str:
    """Smallest and largest value of each key, and whether one is missing.

    Parameters
    ----------
    keys : Arrow table
        Of a part.

    Returns
    -------
    text : str
        An Arrow stream in base64, of a table of three rows: the smallest, the largest, and the
        smallest again, or nothing where a key is missing. All three are missing where no value
        has an order.
    """
    columns = {}
    for name in keys.column_names:
        column = keys.column(name)
        try:
            found = pc.min_max(column)
            ends = [found["min"], found["max"], None if column.null_count else found["min"]]
            ends = [None if end is None or not end.is_valid else end for end in ends]
            columns[name] = pa.array(ends, column.type)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            columns[name] = pa.nulls(3, column.type)
    return base64.b64encode(to_stream(pa.table(columns))).decode()


@lru_cache(maxsize=4096)
def read_bounds(text: str) -> Any:
    """What :func:`bounds_of` gave, as a table of three rows."""
    try:
        bounds = pa.ipc.open_stream(base64.b64decode(text)).read_all()
    except (ValueError, pa.ArrowException) as cause:
        raise SketchFormatError(
            f"the ends of the keys of a part cannot be read ({cause})."
        ) from None
    if len(bounds) != 3:
        raise SketchFormatError(f"the ends of the keys of a part are {len(bounds)} rows, not 3.")
    return bounds
