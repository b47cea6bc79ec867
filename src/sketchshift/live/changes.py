"""Data that changes: which rows came and which went since a position.

A source of changes knows its own past: a lake has versions, a stream has offsets, a folder has the
files that were there. Whoever follows it keeps the position beside the sums of the rows up to it,
so that no row is lost or counted twice (:func:`sketchshift.live.follow`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from sketchshift._paths import Place, Status, map_ahead, parse_path
from sketchshift._text import listed
from sketchshift.data.open import FILES_AHEAD, pick_files
from sketchshift.errors import DataError
from sketchshift.live.lake_names import find_lake, kind_of_table, lake_function
from sketchshift.live.paths import StorePath

__all__ = [
    "Change",
    "ChangingSource",
    "FolderSource",
    "open_changes",
    "register_changes",
]


@dataclass(frozen=True)
class Change:
    """Rows that came and rows that went on the way to a position.

    Attributes
    ----------
    added, removed : anything that :func:`sketchshift.sketch` reads, or None
        The rows; None for none.
    position : dict
        Where reading goes on after this change: whatever JSON can hold.
    kept : mapping
        More rows that came, by a name under which their sums are kept, so that they can be taken
        away once they cannot be read any more.
    returned : tuple of str
        Names of kept sums whose rows went.
    """

    added: Any
    removed: Any
    position: dict[str, Any]
    kept: Mapping[str, Any] = field(default_factory=dict)
    returned: tuple[str, ...] = ()


@runtime_checkable
class ChangingSource(Protocol):
    """Data that changes.

    It may also have a method ``is_there`` of a change, which says whether its rows can still be
    read. If not, changes are asked for anew.

    Attributes
    ----------
    name : str
        Its identity beside the sums of its rows: the same whenever it is opened, and without
        credentials.
    """

    name: str

    def changes(self, since: Mapping[str, Any] | None) -> Iterator[Change]:
        """What has changed since a position, in order; ends where there is no more for now.

        Parameters
        ----------
        since : mapping or None
            The position of a change; None: from nothing, so that all rows there are come.
        """


Opener = Callable[[str], ChangingSource]


@dataclass(frozen=True)
class _Kind:
    open: Opener
    detects: Callable[[str], bool] | None


_KINDS: dict[str, _Kind] = {}


def register_changes(
    kind: str, opener: Opener, *, detects: Callable[[str], bool] | None = None
) -> None:
    """Make a kind of changing data known to :func:`sketchshift.live.follow`.

    Parameters
    ----------
    kind : str
        What addresses begin with: "delta" for ``delta:/data/events``, and for
        ``delta+s3://bucket/events``.
    opener : callable
        From the whole address to a :class:`ChangingSource`.
    detects : callable or None
        Whether an address without a kind, such as the path of a folder, is of this one. Of
        several, the kind that was registered first is taken.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> from sketchshift.live.changes import Change
    >>> class Dice:
    ...     name = "dice"
    ...
    ...     def changes(self, since):
    ...         for i in range(0 if since is None else since["throws"], 3):
    ...             yield Change(np.full((100, 1), float(i)), None, {"throws": i + 1})
    >>> ss.live.register_changes("dice", lambda address: Dice())
    """
    if not re.fullmatch("[a-z][a-z0-9]+", kind):
        msg = f"a kind of changing data is small letters and digits, and not {kind!r}."
        raise DataError(msg)
    _KINDS[kind] = _Kind(opener, detects)


def open_changes(source: Any) -> ChangingSource:
    """The changing data that is meant by an address.

    Parameters
    ----------
    source : ChangingSource, str, path, deltalake.DeltaTable or pyiceberg.table.Table
        A source is returned as it is.
    """
    if isinstance(source, ChangingSource):
        return source
    lake = kind_of_table(source)
    if lake is not None:
        return lake_function(lake, f"follow_{lake}")(source)  # type: ignore[no-any-return]
    try:
        text = os.fspath(source)
    except TypeError:
        msg = (
            f"cannot follow {type(source).__name__}. Pass an address, a folder, or an object with "
            "a name and a method changes (sketchshift.live.changes.ChangingSource)."
        )
        raise DataError(msg) from None
    kind = _kind_of(text)
    if kind is not None:
        return kind.open(text)
    where = parse_path(text)
    if isinstance(where, StorePath) or where.is_dir():
        return FolderSource(text)
    kinds = listed([f"{kind}:" for kind in _KINDS])
    msg = (
        f"cannot follow {text!r}: it is no folder, and does not begin with one of {kinds}. Check "
        "the address."
    )
    raise DataError(msg)


def _kind_of(address: str) -> _Kind | None:
    """The kind that an address names, or that a folder is found to be of."""
    named = re.match(r"([a-z][a-z0-9]+)(\+[a-z0-9]+)?:", address)
    if named is not None and named[1] in _KINDS:
        return _KINDS[named[1]]
    kinds = (kind for kind in _KINDS.values() if kind.detects is not None)
    return next((kind for kind in kinds if kind.detects(address)), None)  # type: ignore[misc]


MOST_FILES, MOST_BYTES = 256, 2**30
"""Files that are read between two commits, and their bytes; never less than a file."""


Stamp: TypeAlias = list[Any]
"""What tells a file from another one of its name, as JSON has it: the size, and then two times on
this machine, or the mark and the trace of a listing in a store."""


class FolderSource:
    """A folder of data files, of any format that is read: files come, and files go.

    The sums of each file are kept, so that those of a file that is gone, or that was written
    anew, are taken away without it.

    Parameters
    ----------
    address : str
        The path, or ``folder:`` and the path; or the address of a folder in a store. Folders
        within it count, and the values in their names (``day=2026-01-05``) are keys.
    """

    def __init__(self, address: str) -> None:
        folder = parse_path(address.removeprefix("folder:")).resolve()
        self._folder = folder.as_folder() if isinstance(folder, StorePath) else folder
        self.name = f"folder:{self._folder.as_posix()}"
        if str(self._folder).startswith(("http://", "https://")):
            msg = (
                f"cannot follow {self._folder}: the web has no folders that can be listed. Copy "
                "its files into a folder, or name the files to ss.sketch."
            )
            raise DataError(msg)
        if isinstance(self._folder, Path) and not self._folder.is_dir():
            raise DataError(f"there is no folder {str(self._folder)!r} to follow. Check the path.")

    def changes(self, since: Mapping[str, Any] | None) -> Iterator[Change]:
        """Files that came and files that went; one that was written anew is both."""
        known: dict[str, Stamp] = {} if since is None else dict(since["files"])
        found = self._list(known)
        gone = [name for name, stamp in known.items() if not _is_same(found.get(name), stamp)]
        new = [name for name, stamp in found.items() if not _is_same(known.get(name), stamp)]
        for batch in _batches(new, found) or ([[]] if gone else []):
            known = {name: found[name] for name in known if name not in gone}
            returned, gone = tuple(gone), []
            known |= {name: found[name] for name in batch}
            kept = {name: _as_of(self._folder / name, found[name]) for name in batch}
            yield Change(None, None, {"files": known}, kept, returned)

    def is_there(self, change: Change) -> bool:
        """Whether the files that came are still there, and have not been written anew."""
        known = change.position["files"]
        return all(_is_same(_stamp(file), known[name]) for name, file in change.kept.items())

    def _list(self, known: Mapping[str, Stamp]) -> dict[str, Stamp]:
        """What tells each file that is there, by its name."""
        below = _walk(self._folder, known)
        files = pick_files(self._folder, below)
        names = [file.relative_to(self._folder).as_posix() for file in files]

        def stamp(i: int) -> Stamp | None:
            return _stamp(files[i], known.get(names[i]))

        stamps = map_ahead(stamp, range(len(files)), self._folder, FILES_AHEAD)
        return {name: stamp for name, stamp in zip(names, stamps, strict=True) if stamp}


def _stamp(file: Place, known: Stamp | None = None) -> Stamp | None:
    """The stamp of a file, None if it has gone; that of a store is asked for if it may be new."""
    try:
        if isinstance(file, StorePath):
            if known is not None and file.trace is not None and file.trace == known[2]:
                return known
            found = file.look()
            return [found.st_size, found.mark, file.trace]
        status = file.stat()
        return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    except FileNotFoundError:
        return None


def _is_same(stamp: Stamp | None, other: Stamp | None) -> bool:
    """Whether two stamps are of one content; a trace comes with age, and says no more of it."""
    if stamp is None or other is None:
        return stamp is other
    n_telling = 2 if isinstance(stamp[1], str) else 3
    return stamp[:n_telling] == other[:n_telling]


def _as_of(file: Place, stamp: Stamp) -> Place:
    """A file to be read as it was; of this machine, only :meth:`FolderSource.is_there` tells."""
    return file.as_of(Status(*stamp[:2])) if isinstance(file, StorePath) else file


def _walk(folder: Place, known: Iterable[str]) -> list[Place]:
    """All files below a folder; one of which a part cannot be listed is refused.

    What the listing of a store leaves out is looked at before it counts as gone: packages of
    fsspec pass over folders that they cannot list, and a listing may be older than its files.
    """
    if isinstance(folder, Path):
        return _walk_here(folder)
    try:
        below = folder.rglob("*")
    except FileNotFoundError:
        below = []
    there = {str(file) for file in below}
    unlisted = [file for file in (folder / name for name in known) if str(file) not in there]
    stamps = map_ahead(_stamp, unlisted, folder, FILES_AHEAD)
    below += [file for file, stamp in zip(unlisted, stamps, strict=True) if stamp]
    if not below:
        folder.check_listed()
    return [*below]


def _walk_here(folder: Path) -> list[Place]:
    def refuse(cause: OSError) -> None:
        if isinstance(cause, FileNotFoundError) and Path(cause.filename) != folder:
            return  # its files are gone indeed
        msg = (
            f"cannot list {cause.filename!r}: {cause.strerror}. Its files would count as gone, so "
            "nothing was changed. Follow it again once it can be read."
        )
        raise DataError(msg) from cause

    walk = os.walk(folder, onerror=refuse)
    return [Path(above, name) for above, folders, files in walk for name in (*folders, *files)]


def _batches(names: list[str], found: Mapping[str, Stamp]) -> list[list[str]]:
    batches: list[list[str]] = []
    n_bytes = 0
    for name in names:
        if not batches or len(batches[-1]) == MOST_FILES or n_bytes + found[name][0] > MOST_BYTES:
            batches.append([])
            n_bytes = 0
        batches[-1].append(name)
        n_bytes += found[name][0]
    return batches


register_changes("folder", FolderSource)


# Tables of lakes, which their own modules follow.


def _follow_lake(address: str) -> ChangingSource:
    lake = find_lake(address)
    if lake is None:
        raise DataError(f"there is no table {address!r} to follow. Check the address.")
    follower = lake_function(lake.kind, f"follow_{lake.kind}")
    return follower(lake.table, lake.version)  # type: ignore[no-any-return]


def _is_lake(kind: str, address: str) -> bool:
    lake = find_lake(address)
    return lake is not None and lake.kind == kind


for _kind in ("delta", "iceberg"):
    register_changes(_kind, _follow_lake, detects=partial(_is_lake, _kind))


def _open_stream(address: str) -> ChangingSource:
    """A stream of a broker; whoever follows none waits for no client to load."""
    return import_module("sketchshift.live.brokers").open_stream(address)  # type: ignore[no-any-return]


for _broker in ("redis", "rediss", "kafka"):
    register_changes(_broker, _open_stream)
