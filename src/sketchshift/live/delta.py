"""Delta tables: at a version, and what came and went from one version to another.

The package ``deltalake`` says which files, and which rows of them, a version has. What a commit
changed is read from its own actions: files added and removed, or the change data feed where it has
one; a commit that only moves rows into other files says so, and nothing is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from sketchshift._paths import Place, arrow_file, map_ahead
from sketchshift.data.source import Request, Source, report_damage
from sketchshift.errors import DataError
from sketchshift.live.lakes import (
    ELSEWHERE,
    ChangedRows,
    DataFile,
    Kept,
    LakeChanges,
    LakeRows,
    column_numbers,
    import_lake,
    local_path,
    make_constant,
    name_place,
    store_path,
)
from sketchshift.live.stores import Broken, Storage, fill_s3, retry

__all__ = ["follow_delta", "open_delta", "open_delta_table"]

T = TypeVar("T")
LOG = "_delta_log"
KNOWN_FEATURES = {
    "columnMapping",
    "deletionVectors",
    "domainMetadata",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
"""What a reader must understand, if a table has it, and what is understood here."""

CAME, WENT = ("insert", "update_postimage"), ("delete", "update_preimage")
MODE, NUMBER, PHYSICAL = (f"delta.columnMapping.{name}" for name in ("mode", "id", "physicalName"))


def open_delta(table: str, version: str | None, request: Request) -> Source:
    """Open a Delta table at a version.

    Parameters
    ----------
    table : str
        A folder, or an address that ``deltalake`` reads.
    version : str or None
        Such as ``"v12"`` or ``"12"``; None: the newest.
    request : Request
        What is asked for.
    """
    return load_delta(table, parse_version(table, version)).rows().open_rows(request)


def open_delta_table(table: Any, request: Request) -> Source:
    """Open a ``deltalake.DeltaTable`` at the version that it is loaded at."""
    return DeltaVersion(table).rows().open_rows(request)


def follow_delta(table: Any, version: str | None = None) -> LakeChanges:
    """A Delta table as a source that changes, up to a version or to the newest.

    Parameters
    ----------
    table : str or deltalake.DeltaTable
        As in :func:`open_delta`; of an object, its place and its options are taken.
    version : str or None
        The version to follow to.
    """
    place, options = (table, None) if isinstance(table, str) else _place_of(table)
    last = parse_version(place, version)

    def load(version: int | None) -> DeltaVersion:
        return load_delta(place, last if version is None else version, options)

    return LakeChanges(load(None).name, load)


def _place_of(table: Any) -> tuple[str, Any]:
    return table.table_uri, table._storage_options


def parse_version(table: str, version: str | None) -> int | None:
    """The number of a version."""
    if version is None:
        return None
    digits = version.removeprefix("v")
    if not digits.isascii() or not digits.isdigit():
        msg = f"{version!r} is no version of the Delta table {table!r}. As in: {table}@v12"
        raise DataError(msg)
    return int(digits)


def load_delta(table: str, version: int | None = None, options: Any = None) -> DeltaVersion:
    """A Delta table at a version; None: the newest."""
    store_path(table)  # refuses one with a password in it
    name = name_place(table)
    library = import_lake("deltalake", "deltalake", f"the Delta table {name!r}")
    options = _make_options(table) if options is None else options
    make = partial(library.DeltaTable, table, version=version, storage_options=options)
    return DeltaVersion(ask(make, name, version))


def ask(request: Callable[[], T], name: str, version: int | None) -> T:
    """What ``deltalake`` answers; of a store it is asked again when an answer was cut off.

    It makes requests again that are refused, but not those whose answers break off.
    """

    def ask_once() -> T:
        try:
            with _report(name, version):
                return request()
        except DataError as error:
            if FINAL.search(str(error)):
                raise
            raise Broken(str(error)) from None

    if local_path(name.removeprefix("delta:")) != ELSEWHERE:
        with _report(name, version):
            return request()
    return retry(ask_once, name, Storage.current())


FINAL = re.compile(r"No files in log segment|end version|\b4(?!08|29)\d\d [A-Z]|credentials")
"""Answers that would be the same next time."""

OPTIONS = {
    "endpoint": "AWS_ENDPOINT_URL",
    "region": "AWS_REGION",
    "key": "AWS_ACCESS_KEY_ID",
    "secret": "AWS_SECRET_ACCESS_KEY",
    "token": "AWS_SESSION_TOKEN",
}
"""Settings of S3, as ``deltalake`` calls them; what they do not say, it finds itself."""

ALIASES = {
    **{option.removeprefix("AWS_").lower(): name for name, option in OPTIONS.items()},
    **dict.fromkeys(("endpoint", "endpoint_url_s3"), "endpoint"),
    "default_region": "region",
}
OF_OTHERS = re.compile("allow_http|skip_signature|.*timeout|max_retries|conditional_put|s3_.*")
"""Options that say nothing of where files lie and how requests are signed, but for one."""


def _make_options(table: str) -> dict[str, str] | None:
    """What ``deltalake`` is told of a store; None: nothing, as of tables of this machine."""
    if not re.match("s3a?://", table):
        return None
    settings = fill_s3(Storage.current())
    said = {option: getattr(settings, name) for name, option in OPTIONS.items()}
    options = {option: value for option, value in said.items() if value is not None}
    if (settings.endpoint or "").startswith("http://"):
        options["AWS_ALLOW_HTTP"] = "true"
    if settings.anonymous:
        options["AWS_SKIP_SIGNATURE"] = "true"
    return options | {"timeout": f"{settings.timeout:.3f}s", "max_retries": str(settings.tries)}


def _settings_of(options: Mapping[str, str]) -> Storage | None:
    """How a store is reached whose options ``deltalake`` was told; None if only it knows."""
    said: dict[str, Any] = {}
    for option, value in options.items():
        word = option.lower().removeprefix("aws_")
        if word in ALIASES:
            said[ALIASES[word]] = value
        elif not OF_OTHERS.fullmatch(word):
            return None
        elif word == "skip_signature":
            said["anonymous"] = value.lower() in ("true", "1")
    return replace(Storage.current(), **said)


NOISE = re.compile(r"\x1b\[[0-9;]*m|^\s*\d+: <unknown>$", re.MULTILINE)  # colours, call stacks


@contextmanager
def _report(table: str, version: int | None) -> Iterator[None]:
    """Name the table and the version whenever ``deltalake`` cannot read it."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except Exception as cause:
        errors = import_lake("deltalake", "deltalake.exceptions", table)
        if not isinstance(cause, errors.DeltaError | OSError | ValueError):
            raise
        at = "" if version is None else f" at version {version}"
        hint = "" if version is None else ". Versions that are not there yet, or no longer, cannot"
        hint += " be read" if hint else ""
        words = " ".join(NOISE.sub("", str(cause)).split()).rstrip(".")
        raise DataError(f"cannot read the Delta table {table!r}{at}: {words}{hint}.") from cause


@dataclass(frozen=True)
class DeltaVersion:
    """A Delta table at a version.

    Parameters
    ----------
    table : deltalake.DeltaTable
        Loaded at that version.
    """

    table: Any

    @property
    def version(self) -> int:
        """Its number."""
        return int(self.table.version())

    @cached_property
    def uri(self) -> str:
        """Where the table lies."""
        return str(self.table.table_uri).rstrip("/")

    @cached_property
    def name(self) -> str:
        """The table, for messages and ledgers."""
        return f"delta:{name_place(self.uri)}"

    @cached_property
    def identity(self) -> str:
        """What tells it from a table that was made anew in the same place."""
        return str(self.table.metadata().id)

    @property
    def keeping(self) -> str:
        """What makes the table keep old files for longer, in words."""
        return "the table property delta.deletedFileRetentionDuration"

    @cached_property
    def schema(self) -> Any:
        """The columns, as Arrow has them."""
        return pa.schema(self.table.schema().to_arrow())

    @cached_property
    def physical(self) -> dict[str, str]:
        """The names that columns have in files."""
        named = ((field["name"], field["metadata"]) for field in self._fields)
        return {name: metadata.get(PHYSICAL, name) for name, metadata in named}

    @cached_property
    def _fields(self) -> list[dict[str, Any]]:
        fields: list[dict[str, Any]] = json.loads(self.table.schema().to_json())["fields"]
        return fields

    @property
    def column_ids(self) -> dict[str, str]:
        """Names in files, by the names of columns: the same until one is renamed."""
        return self.physical

    @cached_property
    def folder(self) -> Place | None:
        """Where the table lies, here or in a store; None if only ``deltalake`` can reach it."""
        here = local_path(self.uri)
        if here.is_absolute():
            return here
        settings = _settings_of(self.table._storage_options or {})
        return None if settings is None else store_path(self.uri, settings)

    @cached_property
    def filesystem(self) -> Any:
        """What opens files by their paths below the table, as ``deltalake`` reaches it."""
        handler = import_lake("deltalake", "deltalake.fs", self.name).DeltaStorageHandler
        return pafs.PyFileSystem(handler.from_table(self.table._table, self.table._storage_options))

    def rows(self, files: tuple[DataFile, ...] | None = None) -> LakeRows:
        """All rows of the table, or those of some files."""
        self._refuse_features()
        files = self.files() if files is None else files
        return LakeRows(self.name, self.schema, files, self.open_file, self._find_columns)

    def _find_columns(self, there: Any) -> dict[str, str]:
        """Names of columns in a file; by their numbers, where the table is told to go by these."""
        numbers = column_numbers(there)
        if self.table.metadata().configuration.get(MODE) != "id" or not numbers:
            return self.physical
        ids = {field["name"]: field["metadata"].get(NUMBER) for field in self._fields}
        return {name: numbers[number] for name, number in ids.items() if number in numbers}

    def open_file(self, path: str) -> Any:
        """A file of the table, by its path below it, or as :meth:`files` has it."""
        if self.folder is None:
            return self.filesystem.open_input_file(path)
        return arrow_file(self.folder / path)

    def _is_there(self, path: str) -> bool:
        if self.folder is None:
            return bool(self.filesystem.get_file_info(path).type != pafs.FileType.NotFound)
        return (self.folder / path).is_file()

    def files(self) -> tuple[DataFile, ...]:
        """The files of the table, in the order of their names, with the rows that count."""
        actions = pa.table(ask(self.table.get_add_actions, self.name, self.version))
        vectors = pa.table(ask(self._read_vectors, self.name, self.version))
        left_out = dict(self._left_out(vectors))
        bounds = [name for name in ("min", "max", "null_count") if name in actions.column_names]
        files = [
            DataFile(
                self._place(action["path"]),
                action["size_bytes"],
                action["num_records"],
                self._constants(action.get("partition") or {}),
                left_out.get(action["path"]),
            )
            for action in actions.drop_columns(bounds).to_pylist()
        ]
        return tuple(sorted(files, key=lambda file: file.path))

    def _read_vectors(self) -> Any:
        return self.table.deletion_vectors().read_all()

    def _left_out(self, vectors: Any) -> Iterator[tuple[str, Kept]]:
        """Rows that do not count, by the paths of their files in the log."""
        for path, flags in zip(*vectors.columns, strict=True):
            positions = np.flatnonzero(~flags.values.to_numpy(zero_copy_only=False))
            yield path.as_py().removeprefix(f"{self.uri}/"), Kept(positions, are_kept=False)

    def _constants(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values of partition columns, which no file has; an empty text is null, as in the log."""
        logical = {own: name for name, own in self.physical.items()}
        named = {logical.get(name, name): value for name, value in values.items()}
        return {
            name: make_constant(None if value == "" else value, self.schema.field(name).type)
            for name, value in named.items()
            if name in self.schema.names
        }

    def _place(self, path: str) -> str:
        """Where a file lies; its path in the log is written as in an address."""
        if "://" in path or path.startswith("/"):
            msg = f"{self.name} has files of another table, such as {path!r}: read that one."
            raise DataError(msg)
        folder = local_path(self.uri)
        return str(folder / unquote(path)) if folder.is_absolute() else unquote(path)

    def _refuse_features(self) -> None:
        unknown = set(self.table.protocol().reader_features or ()) - KNOWN_FEATURES
        if unknown:
            msg = (
                f"{self.name} needs a reader that knows {', '.join(sorted(unknown))}, and this one "
                "does not. Rewrite the table without, or read it elsewhere and pass Arrow batches."
            )
            raise DataError(msg)

    # What a commit changed.

    def _actions(self, version: int) -> list[dict[str, Any]]:
        """The actions of a commit."""
        path = f"{LOG}/{version:020d}.json"
        try:
            with (
                report_damage(f"{path} of {self.name}", ValueError),
                self.open_file(path) as file,
            ):
                return [json.loads(line) for line in file.read().splitlines() if line.strip()]
        except DataError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            msg = (
                f"version {version} of {self.name} is no longer in its log, which is cleaned up "
                "from time to time. The state is as it was. Start again with a new one, and follow "
                "more often (the table property delta.logRetentionDuration)."
            )
            raise DataError(msg) from error

    def commits_since(self, version: int) -> Iterator[tuple[int, ChangedRows | None]]:
        """Versions after another one up to this, each with what it changed, or None: compare."""
        if version > self.version:  # asked for an older one than the state has
            yield self.version, None
        known = self._files_at(version) if version < self.version else None
        for later in range(version + 1, self.version + 1):
            actions = self._actions(later)
            is_plain = known is None or self._is_plain(actions, known)
            yield later, self._changed_files(actions) if is_plain else None

    def _files_at(self, version: int) -> dict[str, int | None] | None:
        """The files of a version, with how many rows count; None if its log was cleaned up."""
        with suppress(DataError):
            before = load_delta(self.uri, version, self.table._storage_options)
            return {file.path: file.n_rows_kept for file in before.files()}
        return None

    def _is_plain(self, actions: list[dict[str, Any]], known: dict[str, int | None]) -> bool:
        """Whether a commit says what it changes in the files known, which are brought up to it.

        Not if a file comes that is there, or goes that is not, nor if files that are said to hold
        the same rows as others hold more or fewer.
        """
        added, removed = (
            {self._place(a[kind]["path"]): a[kind] for a in actions if kind in a}
            for kind in ("add", "remove")
        )
        again = added.keys() & known.keys()
        is_plain = removed.keys() <= known.keys() and not any(_is_change(added[p]) for p in again)
        came = {path: _count_kept(one) for path, one in added.items()}
        went = {path: known.pop(path, None) for path in removed.keys() | again}
        known |= came
        actions_of = {**added, **removed}
        in_and_out = (
            [n for path, n in counts.items() if not _is_change(actions_of[path])]
            for counts in (came, went)
        )
        return is_plain and _is_balanced(*in_and_out)

    def _changed_files(self, actions: list[dict[str, Any]]) -> ChangedRows | None:
        """Files with rows that came and went in a commit.

        None for deletion vectors, which have rows go without a file that holds them or the rest,
        and for files removed of which the commit does not say the partition.
        """
        feed = [action["cdc"] for action in actions if "cdc" in action]
        if feed:
            files = [self._file(one) for one in feed]
            came = [replace(file, change_types=CAME) for file in files]
            went = [replace(file, change_types=WENT) for file in files]
            return ChangedRows(tuple(came), tuple(went))
        added, removed = (
            [a[kind] for a in actions if kind in a and _is_change(a[kind])]
            for kind in ("add", "remove")
        )
        has_vectors = any(one.get("deletionVector") for one in (*added, *removed))
        if has_vectors or any(one.get("partitionValues") is None for one in removed):
            return None
        return ChangedRows(tuple(map(self._file, added)), tuple(map(self._file, removed)))

    def _file(self, action: Mapping[str, Any]) -> DataFile:
        constants = self._constants(action.get("partitionValues") or {})
        place, size = self._place(action["path"]), action.get("size") or 0
        return DataFile(place, size, _count_rows(action), constants)

    def find_gone(self, files: Sequence[DataFile]) -> list[str]:
        """Those of the files that are no longer there."""
        paths = [file.path for file in files]
        found = map_ahead(self._is_there, paths, self.folder or Path())
        return [path for path, is_there in zip(paths, found, strict=True) if not is_there]


def _is_change(action: Mapping[str, Any]) -> bool:
    """Whether rows came or went with a file, or are only said to lie elsewhere now."""
    return bool(action.get("dataChange", True))


def _count_rows(action: Mapping[str, Any]) -> int | None:
    """Rows of a file that comes, before any are left out; None if nothing says it."""
    n_rows: int | None = json.loads(action.get("stats") or "{}").get("numRecords")
    return n_rows


def _count_kept(action: Mapping[str, Any]) -> int | None:
    n_rows, vector = _count_rows(action), action.get("deletionVector") or {}
    return None if n_rows is None else n_rows - int(vector.get("cardinality", 0))


def _is_balanced(came: Sequence[int | None], went: Sequence[int | None]) -> bool:
    """Whether as many rows came as went, as far as it is known."""
    sums = [sum(n for n in counts if n is not None) for counts in (came, went)]
    return None in (*came, *went) or sums[0] == sums[1]
