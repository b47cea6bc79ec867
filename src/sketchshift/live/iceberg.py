"""Iceberg tables: at a snapshot, and what came and went from one snapshot to another.

The package ``pyiceberg`` reads metadata and manifests. Columns are found in files by their numbers,
so that a renamed one is still found. Rows deleted by position, and by vectors, are left out;
deletions by equality, which ``pyiceberg`` cannot apply, are refused. A snapshot that only moves
rows into other files says so, and nothing is read for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sketchshift._paths import Place, arrow_file, map_ahead
from sketchshift._typing import IntArray
from sketchshift.data.source import Request, Source
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
from sketchshift.live.stores import Storage

__all__ = ["follow_iceberg", "open_iceberg", "open_iceberg_table"]

METADATA = ".metadata.json"
NO_SNAPSHOT = -1  # of a table to which nothing was ever written


def open_iceberg(table: str, version: str | None, request: Request) -> Source:
    """Open an Iceberg table at a snapshot.

    Parameters
    ----------
    table : str
        A folder with ``metadata``, a file of metadata, or ``//catalog/namespace.table``.
    version : str or None
        The number of a snapshot, or the name of a branch or tag; None: the current one.
    request : Request
        What is asked for.
    """
    return at_snapshot(load_table(table), version).rows().open_rows(request)


def open_iceberg_table(table: Any, request: Request) -> Source:
    """Open a ``pyiceberg.table.Table`` at its current snapshot."""
    return at_snapshot(table, None).rows().open_rows(request)


def follow_iceberg(table: Any, version: str | None = None) -> LakeChanges:
    """An Iceberg table as a source that changes: its current snapshot, or that of a branch.

    Parameters
    ----------
    table : str or pyiceberg.table.Table
        As in :func:`open_iceberg`; an object is refreshed.
    version : str or None
        A branch, a tag or the number of a snapshot to follow to.
    """

    def load(snapshot: Any) -> IcebergVersion:
        if isinstance(table, str):
            loaded = load_table(table)
        else:
            loaded = table
            what = f"the Iceberg table {'.'.join(table.name())!r}"
            with _report(what), suppress(NotImplementedError):  # metadata alone stay as they are
                table.refresh()
        return at_snapshot(loaded, version if snapshot is None else snapshot)

    return LakeChanges(load(None).name, load)


def load_table(table: str) -> Any:
    """A table of a catalog, or one of files of metadata alone."""
    what = f"the Iceberg table {table!r}"
    if table.startswith("//"):
        catalog, _, name = table[2:].partition("/")
        if not catalog or not name:
            msg = f"'iceberg:{table}' names no table. As in: iceberg://catalog/namespace.table"
            raise DataError(msg)
        with _report(what):
            library = import_lake("pyiceberg", "pyiceberg.catalog", what)
            opened = library.load_catalog(catalog)
            opened.properties.setdefault(IO, OUR_IO)
            return opened.load_table(name.replace("/", "."))
    with _report(what):
        library = import_lake("pyiceberg", "pyiceberg.table", what)
        return library.StaticTable.from_metadata(_metadata_of(table), {IO: OUR_IO})


# How pyiceberg reads files of stores: through ours, whose ranges are checked and asked for again.

IO, OUR_IO = "py-io-impl", f"{__name__}.StoreIO"
SETTINGS = {
    "endpoint": "endpoint",
    "region": "region",
    "access-key-id": "key",
    "secret-access-key": "secret",
    "session-token": "token",
}
"""What catalogs call the settings of S3, with "s3." or "client." before it."""

OF_LIBRARY = re.compile(r"(s3|client)\.(signer|profile-name|role-arn|proxy-uri|force)|gcs\.|adls\.")
"""What only ``pyiceberg`` knows how to use."""


class StoreIO:
    """Files by their locations, as ``pyiceberg`` asks for them.

    Parameters
    ----------
    properties : mapping of str to str
        What the catalog and the table say of their store. What they do not say, the settings of
        :func:`sketchshift.live.storage` say.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = {name: value for name, value in properties.items() if name != IO}
        said: dict[str, Any] = {
            own: self.properties[f"{kind}.{name}"]
            for kind in ("client", "s3")
            for name, own in SETTINGS.items()
            if self.properties.get(f"{kind}.{name}")
        }
        current = Storage.current()
        is_public = str(self.properties.get("s3.anonymous", current.anonymous)).lower() == "true"
        self._settings = replace(current, anonymous=is_public, **said)
        self._is_library = any(map(OF_LIBRARY.match, self.properties))
        self._library: dict[str, Any] = {}

    def new_input(self, location: str) -> Any:
        """A file to be read."""
        at = store_path(location, self._settings)
        if at is not None and not self._is_library:
            return StoredFile(location, at)
        scheme = location.partition("://")[0]
        if scheme not in self._library:
            library = import_lake("pyiceberg", "pyiceberg.io", "a table of Iceberg")
            self._library[scheme] = library.load_file_io(self.properties, location)
        return self._library[scheme].new_input(location)


@dataclass(frozen=True)
class StoredFile:
    """A file of a store, as ``pyiceberg`` asks for it."""

    location: str
    at: Place

    def __len__(self) -> int:
        return self.at.stat().st_size

    def exists(self) -> bool:
        """Whether it is there."""
        return self.at.is_file()

    def open(self, seekable: bool = True) -> Any:
        """To be read in ranges."""
        return arrow_file(self.at)


def _metadata_of(table: str) -> str:
    """The newest file of metadata of a folder; a file is itself."""
    at = store_path(table) or local_path(table)
    if table.endswith(METADATA) or at == ELSEWHERE:
        return table
    folder = at / "metadata"
    hint = folder / "version-hint.text"
    if hint.exists():
        version = hint.read_text(encoding="utf-8").strip()
        return str(folder / f"{'v' * version.isdigit()}{version.removesuffix(METADATA)}{METADATA}")
    numbers: dict[int, list[Place]] = {}
    for path in folder.rglob(f"*{METADATA}"):
        found = re.match(r"v?(\d+)", path.name)
        if found:
            numbers.setdefault(int(found[1]), []).append(path)
    newest = numbers[max(numbers)] if numbers else []
    if len(newest) != 1:
        msg = (
            f"cannot tell which metadata of the Iceberg table {table!r} counts: there are "
            f"{len(newest)} files of the newest number. Name one of metadata/*{METADATA}, or read "
            "the table through its catalog: iceberg://catalog/namespace.table"
        )
        raise DataError(msg)
    return str(newest[0])


@contextmanager
def _report(what: str) -> Iterator[None]:
    """Name the table whenever ``pyiceberg`` cannot read it."""
    try:
        yield
    except (DataError, ImportError):
        raise
    except Exception as cause:  # there is no common class, and catalogs raise their own
        raise DataError(f"cannot read {what}: {cause}") from cause


def at_snapshot(table: Any, version: str | int | None) -> IcebergVersion:
    """A table at a snapshot: by a number, by the text of a name or number, or the current one."""
    table, name = _read_by_us(table), _name_of(table)
    if version is None:
        current = table.metadata.current_snapshot_id
        return IcebergVersion(name, table, NO_SNAPSHOT if current is None else current)
    if version == NO_SNAPSHOT:
        return IcebergVersion(name, table, NO_SNAPSHOT)
    refs, is_named = table.metadata.refs, isinstance(version, str)
    version = str(version)
    if is_named and version in refs:  # names may look like numbers
        is_tag = refs[version].snapshot_ref_type.value == "tag"
        return IcebergVersion(name, table, refs[version].snapshot_id, is_pinned=is_tag)
    is_there = version.isascii() and version.isdigit() and table.snapshot_by_id(int(version))
    if not is_there:
        msg = (
            f"{name} has no snapshot, branch or tag {version!r}: it may have expired. It has "
            f"{len(table.metadata.snapshots)} snapshots and the branches and tags "
            f"{', '.join(sorted(refs)) or 'none'}. A state that stands at an expired snapshot is "
            "as it was; start again with a new one, and follow more often."
        )
        raise DataError(msg)
    return IcebergVersion(name, table, int(version), is_pinned=True)


def _read_by_us(table: Any) -> Any:
    """The table, with our way to files of stores in place of the library's."""
    if not type(table.io).__module__.startswith("pyiceberg."):
        return table
    own = copy(table)
    own.io = StoreIO(table.io.properties)
    return own


def _name_of(table: Any) -> str:
    """A table, for messages and ledgers: the place of its files."""
    return f"iceberg:{name_place(plain_path(str(table.metadata.location)))}"


def plain_path(location: str) -> str:
    """A location, as a path if it is on this machine; a % in it is no escape, as in addresses."""
    return re.sub("^file:(//)?(?=/)", "", location)


@dataclass(frozen=True)
class IcebergVersion:
    """An Iceberg table at a snapshot.

    Parameters
    ----------
    name : str
        The table, for messages and ledgers.
    table : pyiceberg.table.Table
        With the metadata to be read.
    version : int
        Number of the snapshot; -1 for a table without any.
    is_pinned : bool
        Whether it has the columns of that time; else those that the table has now.
    """

    name: str
    table: Any = field(repr=False)
    version: int
    is_pinned: bool = False

    @cached_property
    def identity(self) -> str:
        """What tells it from a table that was made anew in the same place."""
        return str(self.table.metadata.table_uuid)

    @property
    def keeping(self) -> str:
        """What makes the table keep old files for longer, in words."""
        return "the table property history.expire.max-snapshot-age-ms"

    @cached_property
    def snapshot(self) -> Any:
        """The snapshot; None for a table without any."""
        return self.table.snapshot_by_id(self.version)

    @cached_property
    def _columns(self) -> Any:
        metadata = self.table.metadata
        if not self.is_pinned or self.snapshot is None or self.snapshot.schema_id is None:
            return metadata.schema()
        return metadata.schema_by_id(self.snapshot.schema_id) or metadata.schema()

    @cached_property
    def column_ids(self) -> dict[str, int]:
        """Numbers of columns, by their names."""
        return {field.name: field.field_id for field in self._columns.fields}

    @cached_property
    def schema(self) -> Any:
        """The columns, as Arrow has them."""
        library = import_lake("pyiceberg", "pyiceberg.io.pyarrow", self.name)
        return library.schema_to_pyarrow(self._columns, include_field_ids=False)

    def rows(self, files: tuple[DataFile, ...] | None = None) -> LakeRows:
        """All rows of the table, or those of some files."""
        files = self.files() if files is None else files
        return LakeRows(self.name, self.schema, files, self._open, self._find_columns)

    def _open(self, path: str) -> Any:
        return self.table.io.new_input(path).open()

    def _find_columns(self, there: Any) -> dict[str, str]:
        """Names of columns in a file, by their numbers; by mapped names in a file without."""
        numbers = column_numbers(there)
        mapping = self.table.name_mapping()
        if not numbers and mapping is None:
            msg = (
                f"{self.name} has files without the numbers of its columns, and nothing says by "
                "which names they are found there. Set its property schema.name-mapping.default."
            )
            raise DataError(msg)
        if not numbers:
            names = [(one.field_id, name) for one in mapping.root for name in one.names]
            numbers = {number: name for number, name in names if name in there.names}
        return {f.name: numbers[f.field_id] for f in self._columns.fields if f.field_id in numbers}

    def files(self) -> tuple[DataFile, ...]:
        """The files of the table, in the order of their names, with the rows that count."""
        if self.version == NO_SNAPSHOT:
            return ()
        with self._report():
            tasks = list(self.table.scan(snapshot_id=self.version).plan_files())
        deleted = self._deleted_rows(tasks)
        files = []
        for task in tasks:
            ways = [deleted[one.file_path].get(task.file.file_path) for one in task.delete_files]
            found = [positions for positions in ways if positions is not None]
            files.append(self._file(task.file, np.unique(np.concatenate(found)) if found else None))
        return tuple(sorted(files, key=lambda file: file.path))

    @contextmanager
    def _report(self) -> Iterator[None]:
        try:
            with _report(self.name):
                yield
        except DataError as error:
            if "equality deletes" not in str(error):
                raise
            msg = (
                f"{self.name} has rows deleted by equality, which pyiceberg cannot apply. Compact "
                "the table with the engine that wrote it, which writes them out, and read it then."
            )
            raise DataError(msg) from error

    def _deleted_rows(self, tasks: Sequence[Any]) -> dict[str, dict[str, IntArray]]:
        """By files of deletions, each read once, and by files of data: positions of rows."""
        files = {one.file_path: one for task in tasks for one in task.delete_files}
        with self._report():
            return {path: dict(self._read_deletes(file)) for path, file in files.items()}

    def _read_deletes(self, deletes: Any) -> Iterator[tuple[str, IntArray]]:
        with self._open(deletes.file_path) as opened:
            if deletes.file_format.value == "PUFFIN":
                puffin = import_lake("pyiceberg", "pyiceberg.table.puffin", self.name)
                vectors = import_lake("pyiceberg", "pyiceberg.table.deletion_vector", self.name)
                content = puffin.PuffinFile(opened.read())
                for vector in vectors.deletion_vectors_from_puffin_file(content):
                    yield vector.referenced_data_file, vector.to_vector().to_numpy()
                return
            self._refuse_format(deletes)
            table = pq.read_table(opened, columns=["file_path", "pos"])
        for path in table.column("file_path").unique().to_pylist():
            is_here = pc.equal(table.column("file_path"), path)
            yield path, table.column("pos").filter(is_here).to_numpy()

    def _refuse_format(self, file: Any) -> None:
        if file.file_format.value != "PARQUET":
            msg = (
                f"{self.name} has files that are not Parquet, such as {file.file_path!r} "
                f"({file.file_format.value}). Rewrite the table, or read it with pyiceberg and "
                "pass Arrow batches."
            )
            raise DataError(msg)

    def _file(self, file: Any, left_out: IntArray | None = None) -> DataFile:
        self._refuse_format(file)
        kept = None if left_out is None else Kept(left_out, are_kept=False)
        path, n_bytes = plain_path(file.file_path), file.file_size_in_bytes
        return DataFile(path, n_bytes, file.record_count, self._constants(file), kept)

    def _constants(self, file: Any) -> dict[str, Any]:
        """Values of columns that the file may not have: of its partition, or by default."""
        constants = {
            f.name: make_constant(f.initial_default, self.schema.field(f.name).type)
            for f in self._columns.fields
            if f.initial_default is not None
        }
        spec = self.table.metadata.specs()[file.spec_id or 0]
        names = {f.field_id: f.name for f in self._columns.fields}
        for i, part in enumerate(spec.fields):
            name = names.get(part.source_id)
            if name is not None and str(part.transform) == "identity":
                constants[name] = make_constant(file.partition[i], self.schema.field(name).type)
        return constants

    # What a snapshot changed.

    def commits_since(self, version: int) -> Iterator[tuple[int, ChangedRows | None]]:
        """Snapshots after another one up to this, each with what it changed, or None: compare.

        They are compared where the way between them is not known, as after a rollback, and where
        rows are deleted without a file that holds them or the rest.
        """
        if version == self.version:
            return
        way = self._way_from(version)
        if way is None:
            yield self.version, None
            return
        for snapshot in way:
            yield snapshot.snapshot_id, self._changed_files(snapshot)

    def _way_from(self, version: int) -> list[Any] | None:
        """Snapshots from another one, without it, to this; None if it is no ancestor of this."""
        way: list[Any] = []
        snapshot = self.snapshot
        while snapshot is not None:
            way.append(snapshot)
            parent = snapshot.parent_snapshot_id  # None also if the parent expired
            if parent == version:
                return way[::-1]
            snapshot = None if parent is None else self.table.snapshot_by_id(parent)
        return None

    def _changed_files(self, snapshot: Any) -> ChangedRows | None:
        """Files with rows that came and went in a snapshot; None if they do not tell all.

        So it is if rows went in another way, if files came that an earlier snapshot had added
        elsewhere, and if the table counts other rows than they have.
        """
        entries = import_lake("pyiceberg", "pyiceberg.manifest", self.name)
        status, content = entries.ManifestEntryStatus, entries.ManifestContent
        operation = None if snapshot.summary is None else snapshot.summary.operation.value
        n_more = self._count_more(snapshot)
        if operation == "replace":
            return ChangedRows() if n_more in (None, 0) else None
        with self._report():
            manifests = snapshot.manifests(self.table.io)
            if any(manifest.content == content.DELETES for manifest in manifests):
                return None
            before = self.table.snapshot_by_id(snapshot.parent_snapshot_id or NO_SNAPSHOT)
            known = () if before is None else before.manifests(self.table.io)
            new = {one.manifest_path for one in manifests} - {one.manifest_path for one in known}
            ids = {one.added_snapshot_id for one in manifests if one.manifest_path in new}
            if before is not None and not ids <= {snapshot.snapshot_id}:
                return None
            found = [
                entry
                for manifest in manifests
                if manifest.added_snapshot_id == snapshot.snapshot_id
                for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=False)
                if entry.snapshot_id == snapshot.snapshot_id
            ]
        added, removed = (
            tuple(self._file(entry.data_file) for entry in found if entry.status == kind)
            for kind in (status.ADDED, status.DELETED)
        )
        n_rows = sum(file.n_rows or 0 for file in added) - sum(file.n_rows or 0 for file in removed)
        return ChangedRows(added, removed) if n_more in (None, n_rows) else None

    def _count_more(self, snapshot: Any) -> int | None:
        """How many rows more a snapshot has than the one before, if both say how many they have."""
        before = self.table.snapshot_by_id(snapshot.parent_snapshot_id or NO_SNAPSHOT)
        summaries = [one.summary for one in (before, snapshot) if one is not None and one.summary]
        totals = [one.additional_properties.get("total-records") for one in summaries]
        if len(totals) < 2 or None in totals:
            return None
        return int(totals[1]) - int(totals[0])

    def find_gone(self, files: Sequence[DataFile]) -> list[str]:
        """Those of the files that are no longer there."""
        inputs = [self.table.io.new_input(file.path) for file in files]
        at = next((file.at for file in inputs if isinstance(file, StoredFile)), Path())
        found = map_ahead(lambda file: file.exists(), inputs, at)
        return [file.path for file, is_there in zip(files, found, strict=True) if not is_there]
