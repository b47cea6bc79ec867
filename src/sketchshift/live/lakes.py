"""Tables of lakes: Parquet files, and a log that says which of them, and which rows, count.

What Delta and Iceberg have in common. Their modules hand over a :class:`LakeRows`: files, the rows
of them that count, and values that stand in the log alone. It opens as any source does, reads the
columns asked for, and never holds more than a few pages. Also how the files of two versions become
rows that came and rows that went. Knows neither log.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sketchshift._places import Place, place
from sketchshift._stores import ARROW, Storage
from sketchshift._text import counted, listed
from sketchshift._typing import IntArray
from sketchshift.data.arrow import (
    BUFFER_BYTES,
    ROWS_SHOWN,
    batch_blocks,
    fetched,
    fields_of,
    give_width,
    pick_blocks,
)
from sketchshift.data.sample import share_out, spread
from sketchshift.data.source import (
    Access,
    Block,
    Piece,
    Request,
    Source,
    choose,
    report_damage,
)
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.live.changes import Change

__all__ = [
    "ELSEWHERE",
    "ChangedRows",
    "DataFile",
    "Kept",
    "LakeChanges",
    "LakeRows",
    "LakeVersion",
    "column_numbers",
    "import_lake",
    "local_path",
    "make_constant",
    "name_place",
    "store_path",
]

GROUP_BYTES = 2**28  # files of so many bytes are one change


class Kept(NamedTuple):
    """Which rows of a file count: those at some positions, or all others."""

    positions: IntArray
    are_kept: bool = True


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table.

    Parameters
    ----------
    path : str
        As the log has it.
    n_bytes : int
        Its size.
    n_rows : int or None
        Its rows, before any are left out; None if the log does not say it.
    constants : mapping of str to Arrow scalar
        Columns that the file does not have, such as those of its partition. One that it has is
        read from it.
    kept : Kept or None
        Which of its rows count; None: all.
    change_types : tuple of str
        Of a file of a change data feed: which kinds of its rows count.
    """

    path: str
    n_bytes: int
    n_rows: int | None = None
    constants: Mapping[str, Any] = field(default_factory=dict)
    kept: Kept | None = None
    change_types: tuple[str, ...] = ()

    @property
    def n_rows_kept(self) -> int | None:
        """The rows that count, where that is known."""
        if self.kept is not None and self.kept.are_kept:
            return len(self.kept.positions)
        if self.n_rows is None or self.change_types:
            return None
        return self.n_rows - (0 if self.kept is None else len(self.kept.positions))


FIELD_ID = b"PARQUET:field_id"
CHANGE_TYPE = "_change_type"  # a column of the files of a change data feed


@dataclass(frozen=True)
class LakeRows:
    """Rows of a table at a version, or those that came or went on the way to it.

    Parameters
    ----------
    name : str
        Of the table, for messages.
    schema : Arrow schema
        Of the table at the version.
    files : tuple of DataFile
        Where the rows lie.
    open_file : callable
        ``open_file(path)`` opens a file for reading here and there.
    find_columns : callable
        ``find_columns(schema of a file)`` gives the names that columns of the table have in it.
    """

    name: str
    schema: Any
    files: tuple[DataFile, ...]
    open_file: Callable[[str], Any] = field(repr=False)
    find_columns: Callable[[Any], Mapping[str, str]] = field(repr=False)

    def open_blocks(self, request: Request) -> Source:
        """A source of these rows.

        Parameters
        ----------
        request : Request
            Other columns than those asked for are not read, nor is any row before the first block
            (but of a column of vectors, whose length is looked for).

        Returns
        -------
        source : Source
            Memory: as for one Parquet file, and the positions of rows left out of that file.
        """
        request.refuse_weight_array("a table")
        choice = choose(fields_of(self.schema), request, self.name)
        with self._report():
            shown = (
                batch
                for file in self.files
                for batch in self._batches(file, list(choice.columns), ROWS_SHOWN)
            )
            choice = give_width(choice, shown, request)
        d, rows = choice.n_features, request.rows_for(choice.n_features)
        sizes = [file.n_bytes for file in self.files]
        before, total = [0, *accumulate(sizes)], max(sum(sizes), 1)
        counts = [file.n_rows_kept for file in self.files]
        known = [count for count in counts if count is not None]
        n_rows = sum(known) if len(known) == len(counts) else None

        def read_file(i: int, _: int = 0) -> Iterator[Block]:
            file = self.files[i]

            def done(n_read: int) -> float:
                share = min(1.0, n_read / max(counts[i] or n_read, 1))
                return (before[i] + share * sizes[i]) / total

            with self._report(file):
                batches = self._batches(file, choice.names, rows)
                yield from batch_blocks(batches, choice, rows, source=self._where(file), done=done)

        def read() -> Iterator[Block]:
            for i in range(len(self.files)):
                yield from read_file(i)

        def pieces() -> Iterator[Piece]:
            for i, file in enumerate(self.files):
                path = local_path(file.path)
                if file.kept is not None or not path.is_absolute():
                    raise self._no_checkpoint()
                yield Piece(path, ((0, file.n_bytes),), partial(read_file, i))

        def across(n_rows_wanted: int, n_places: int, seed: int) -> Iterator[Block]:
            for i, n, _ in share_out(known, n_rows_wanted, n_places, seed):
                file, positions = self.files[i], spread(n, known[i], seed + i)
                with self._report(file):
                    batches = self._batches(file, choice.names, rows)
                    where = self._where(file)
                    yield from pick_blocks(batches, positions, choice, source=where, first_row=0)

        return Source(
            choice.labels,
            d,
            n_rows,
            read,
            Access.DISK,
            sum(sizes),
            None if n_rows is None else across,
            pieces,
            choice.vector,
        )

    def _no_checkpoint(self) -> DataError:
        msg = (
            f"a pass over {self.name} cannot go on from a checkpoint: its files are elsewhere, or "
            "have rows left out. Leave the checkpoint out, or follow the table into a state."
        )
        return DataError(msg)

    def _where(self, file: DataFile) -> str:
        return f"{file.path} of {self.name}"

    def _report(self, file: DataFile | None = None) -> Any:
        where = self.name if file is None else self._where(file)
        return report_damage(where, pa.ArrowException, UnicodeDecodeError)

    def _batches(self, file: DataFile, names: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of some columns of the table, of those rows of a file that count."""
        opened, is_here = self.open_file(file.path), local_path(file.path).is_absolute()
        size = BUFFER_BYTES if is_here else fetched(len(names))
        with opened, pq.ParquetFile(opened, pre_buffer=False, buffer_size=size) as parquet:
            there = parquet.schema_arrow
            found = {
                name: own
                for name, own in self.find_columns(there).items()
                if name in names and own in there.names
            }
            wanted = [*dict.fromkeys(found.values()), *([CHANGE_TYPE] * bool(file.change_types))]
            fields, first = [self.schema.field(name) for name in names], 0
            for batch in parquet.iter_batches(batch_size=rows, columns=wanted):
                columns = {name: batch.column(own) for name, own in found.items()}
                arrays = [
                    _column(columns.get(f.name), f, file.constants, batch.num_rows) for f in fields
                ]
                part = pa.record_batch(arrays, schema=pa.schema(fields))
                yield _keep(part, batch, file, first)
                first += batch.num_rows


def _column(found: Any, wanted: Any, constants: Mapping[str, Any], n_rows: int) -> Any:
    """A column as the table has it: from the file, from the log, or missing in all rows."""
    if found is None:
        value = constants.get(wanted.name)
        is_missing = value is None or not value.is_valid
        return pa.nulls(n_rows, wanted.type) if is_missing else pa.repeat(value, n_rows)
    return found if found.type == wanted.type else found.cast(wanted.type)


def _keep(part: Any, batch: Any, file: DataFile, first: int) -> Any:
    """The rows of a batch that count."""
    if file.change_types:
        kinds = pa.array(file.change_types, batch.column(CHANGE_TYPE).type)
        part = part.filter(pc.is_in(batch.column(CHANGE_TYPE), value_set=kinds))
    if file.kept is None:
        return part
    start, stop = np.searchsorted(file.kept.positions, [first, first + batch.num_rows])
    is_kept = np.full(batch.num_rows, not file.kept.are_kept)
    is_kept[file.kept.positions[start:stop] - first] = file.kept.are_kept
    return part.filter(pa.array(is_kept))


def column_numbers(there: Any) -> dict[int, str]:
    """Names of the columns of a Parquet file, by the numbers that it has for them."""
    noted = ((field.name, (field.metadata or {}).get(FIELD_ID)) for field in there)
    return {int(number): name for name, number in noted if number is not None}


def make_constant(value: Any, kind: Any) -> Any:
    """A value of the log as an Arrow scalar: text as Delta writes it, or a number of Iceberg's."""
    if value is None:
        return pa.scalar(None, kind)
    if isinstance(value, str) and pa.types.is_timestamp(kind) and kind.tz is not None:
        plain = pa.array([value.removesuffix("Z")]).cast(pa.timestamp(kind.unit))
        return pc.assume_timezone(plain, "UTC").cast(kind)[0]
    if isinstance(value, int) and pa.types.is_date32(kind):
        return pa.array([value], pa.int32()).cast(kind)[0]
    return pa.array([value]).cast(kind)[0]


def store_path(address: str, settings: Storage | None = None) -> Place | None:
    """Where a file lies in a store; None if it is here, or in a store that only others know."""
    address = re.sub("^s3[an]://", "s3://", address)
    return place(address, settings) if address.partition("://")[0] in ARROW else None


ELSEWHERE = Path("elsewhere")


def local_path(path: str) -> Path:
    """The path of a file on this machine; a relative one for an address elsewhere."""
    parts = urlsplit(path)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return ELSEWHERE if len(parts.scheme) > 1 else Path(path)


def name_place(address: str) -> str:
    """Where a table lies, for messages and ledgers: without a password or a token."""
    path, parts = local_path(address), urlsplit(address)
    if path.is_absolute():
        return str(path)
    user, _, host = parts.netloc.rpartition("@")
    place = host if ":" in user else parts.netloc  # else it is a container of Azure
    return f"{parts.scheme}://{place}{parts.path}".rstrip("/")


# From one version of a table to another: which rows came, which went.


class ChangedRows(NamedTuple):
    """Files with the rows that came, and files with those that went."""

    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()

    @property
    def n_bytes(self) -> int:
        """Size of all of them."""
        return sum(file.n_bytes for file in (*self.added, *self.removed))


def add_up(changes: Iterable[ChangedRows]) -> ChangedRows:
    """Several changes as one: a file that came and went on the way is in neither."""
    times: Counter[tuple[str, tuple[str, ...]]] = Counter()
    files = {}
    for changed in changes:
        for sign, some in ((1, changed.added), (-1, changed.removed)):
            for file in some:
                key = (file.path, file.change_types)
                times[key] += sign
                files[key] = file
    added = (files[key] for key, n in times.items() for _ in range(n))
    removed = (files[key] for key, n in times.items() for _ in range(-n))
    return ChangedRows(_in_order(added), _in_order(removed))


def compare_files(before: Iterable[DataFile], after: Iterable[DataFile]) -> ChangedRows:
    """What changed between two versions, from the files of each.

    Parameters
    ----------
    before, after : iterable of DataFile
        Rows that do not count are given as those left out.

    Returns
    -------
    changed : ChangedRows
        A file of both is in it only if other rows of it count now, and then with these alone.
    """
    old, new, added, removed = _by_path(before), _by_path(after), [], []
    for path in old.keys() | new.keys():
        was, now = old.get(path, []), new.get(path, [])
        added += now[len(was) :]
        removed += was[len(now) :]
        for one, same in zip(was, now, strict=False):
            out_before, out_now = _left_out(one), _left_out(same)
            for gone, rest, into in ((out_now, out_before, removed), (out_before, out_now, added)):
                positions = np.setdiff1d(gone, rest)
                if len(positions):
                    into.append(replace(same, kept=Kept(positions)))
    return ChangedRows(_in_order(added), _in_order(removed))


def _by_path(files: Iterable[DataFile]) -> dict[str, list[DataFile]]:
    """Files by their paths: a table may have one several times, and then its rows so often."""
    found: dict[str, list[DataFile]] = {}
    for file in files:
        found.setdefault(file.path, []).append(file)
    return found


def _left_out(file: DataFile) -> IntArray:
    return np.empty(0, np.int64) if file.kept is None else file.kept.positions


def _in_order(files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    return tuple(sorted(files, key=lambda file: file.path))


class LakeVersion(Protocol):
    """A table at a version."""

    @property
    def name(self) -> str:
        """The table, for messages and ledgers."""

    @property
    def identity(self) -> str:
        """What tells it from a table that was made anew in the same place."""

    @property
    def version(self) -> Any:
        """Which one it is, for JSON and for messages."""

    @property
    def keeping(self) -> str:
        """What makes the table keep old files for longer, in words."""

    @property
    def column_ids(self) -> Mapping[str, Any]:
        """By the names of columns, what stays when these are renamed, for JSON."""

    def files(self) -> tuple[DataFile, ...]:
        """The files of the table, in one order, with the rows that count."""

    def rows(self, files: tuple[DataFile, ...]) -> LakeRows:
        """The rows of some files."""

    def find_gone(self, files: Sequence[DataFile]) -> list[str]:
        """Those of the files that are no longer there."""

    def commits_since(self, version: Any) -> Iterator[tuple[Any, ChangedRows | None]]:
        """Versions after another one up to this, each with what it changed.

        None instead, where only a comparison with the version before can say what that is.
        """


@dataclass(frozen=True)
class LakeChanges:
    """A table as a source that changes: rows that came and went since a version.

    A position is ``{"table": identity, "version": version, "columns": ids}``. While the first load
    of a large table is on its way it has ``"loading": version, "files": n``: the first n were read.

    Parameters
    ----------
    name : str
        The table, in ledgers.
    load : callable
        ``load(version)`` gives the table at a version; None: the one to be followed to.
    """

    name: str
    load: Callable[[Any], LakeVersion] = field(repr=False)

    def changes(self, since: Mapping[str, Any] | None) -> Iterator[Change]:
        """What came and went since a position; None: from nothing.

        Parameters
        ----------
        since : mapping or None
            Where reading goes on.

        Yields
        ------
        change : Change
            Commits whose files have up to 256 MiB are one. Nothing is read before its rows are.
        """
        now = self.load(None)
        if since is None:
            yield from self._read_all(now, 0)
            return
        _refuse_other_table(since, now)
        _refuse_other_columns(since, now)
        reached = since["loading"] if "files" in since else since["version"]
        if "files" in since:
            yield from self._read_all(self.load(reached), since["files"])
        for version, changed in self._steps(reached, now):
            added, removed = (now.rows(files) if files else None for files in changed)
            yield Change(added, removed, _position(now, {"version": version}, since))

    def up_to(self, until: Mapping[str, Any]) -> LakeChanges:
        """The same table, as if the version of a position were its newest."""
        if "version" not in until:
            return self
        load, last = self.load, until["version"]
        return replace(self, load=lambda version: load(last if version is None else version))

    def _read_all(self, at: LakeVersion, n_read: int) -> Iterator[Change]:
        """All rows of a version, in pieces; the files read before are left out."""
        files = at.files()
        for group in cut_files(files[n_read:]):
            n_read += len(group)
            if n_read < len(files):
                begun = _position(at, {"loading": at.version, "files": n_read})
                yield Change(at.rows(group), None, begun)
        last = at.rows(group) if files else None
        yield Change(last, None, _position(at, {"version": at.version}))

    def _steps(self, version: Any, now: LakeVersion) -> Iterator[tuple[Any, ChangedRows]]:
        """Versions up to now, not all of them, and what changed on the way to each."""
        start = reached = version
        held: list[ChangedRows] = []
        for version, changed in now.commits_since(start):
            if changed is None:
                if held:
                    yield reached, self._find_rows(start, reached, add_up(held), now)
                yield version, self._compare(reached, version, now)
                start, held = version, []
            else:
                held.append(changed)
            reached = version
            if sum(changed.n_bytes for changed in held) > GROUP_BYTES:
                yield reached, self._find_rows(start, reached, add_up(held), now)
                start, held = reached, []
        if held:
            yield reached, self._find_rows(start, reached, add_up(held), now)

    def _find_rows(
        self, start: Any, version: Any, changed: ChangedRows, now: LakeVersion
    ) -> ChangedRows:
        """The change, if its files are there; else one of files that hold the same rows.

        Small files that came are soon rewritten into larger ones, and removed.
        """
        if not now.find_gone((*changed.added, *changed.removed)):
            return changed
        return self._compare(start, version, now)

    def _compare(self, start: Any, version: Any, now: LakeVersion) -> ChangedRows:
        before, after = self.load(start), self.load(version)
        changed = compare_files(before.files(), after.files())
        gone = now.find_gone((*changed.added, *changed.removed))
        if gone:
            raise _rows_are_gone(start, version, gone, now)
        return changed


def _position(
    at: LakeVersion, reached: Mapping[str, Any], since: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Where reading goes on; columns that are gone are remembered, for others of their names."""
    columns = {**(since or {}).get("columns", {}), **at.column_ids}
    return {"table": at.identity, **reached, "columns": columns}


def _refuse_other_columns(since: Mapping[str, Any], now: LakeVersion) -> None:
    """Refuse a column that took the name of another: rows before had that one's values."""
    known = since["columns"]
    others = [name for name, own in now.column_ids.items() if known.get(name, own) != own]
    if others:
        msg = (
            f"{listed(others)} of {now.name} is another column than when the state was made: it "
            "was dropped or renamed, and another has its name now. The state is as it was. Rename "
            "the columns back, or start again with a new state."
        )
        raise DataError(msg)


def _refuse_other_table(since: Mapping[str, Any], now: LakeVersion) -> None:
    if since["table"] == now.identity:
        return
    msg = (
        f"{now.name} is another table than the one that the state follows: it was made anew.\n"
        f"  state: {since['table']}\n  table: {now.identity}\n"
        "The state is as it was. Start again with a new one."
    )
    raise DataError(msg)


def _rows_are_gone(start: Any, version: Any, gone: Sequence[str], now: LakeVersion) -> DataError:
    msg = (
        f"cannot bring the state from version {start} to {version} of {now.name}: "
        f"{counted(len(gone), 'file')} with rows that came or went on the way can no longer be "
        f"read, such as {gone[0]!r}. The state is as it was. Start again with a new one, and "
        f"follow more often than old files are removed ({now.keeping})."
    )
    return DataError(msg)


def cut_files(files: Sequence[DataFile]) -> Iterator[tuple[DataFile, ...]]:
    """Files in groups of so many bytes that losing the work on one costs little."""
    ends = accumulate(file.n_bytes for file in files)
    groups: dict[int, list[DataFile]] = {}
    for file, end in zip(files, ends, strict=True):
        groups.setdefault(max(end - 1, 0) // GROUP_BYTES, []).append(file)
    return map(tuple, groups.values())


def import_lake(package: str, module: str, table: str) -> Any:
    """Import a module of an optional package, or say which extra has it."""
    try:
        return import_module(module)
    except ImportError as cause:
        msg = f"{table} is read by {package}, which is not here: pip install 'sketchshift[lakes]'."
        raise MissingDependencyError(msg) from cause
