"""Where a file lies: on this machine, or behind an address that a registered room reads.

:func:`parse_path` makes of what a user typed a path of pathlib or a :class:`RemotePath`, which has
the methods of a path that readers and commands use. Readers that map files ask :func:`arrow_file`
instead, and know no store. A file of a store that changes while it is read is refused
(:func:`check_unchanged`).
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar
from urllib.parse import unquote

from sketchshift._registry import first_answer
from sketchshift._threads import pool_of_threads
from sketchshift.errors import DataError

__all__ = [
    "CHUNK_BYTES",
    "Place",
    "RemotePath",
    "Status",
    "Way",
    "arrow_file",
    "changed",
    "check_unchanged",
    "expand_home",
    "folder_values",
    "map_ahead",
    "mark_of",
    "parse_path",
    "shown",
]

# Not those of tables of lakes, which their own packages open.
ADDRESS = re.compile(r"(?!(?:delta|iceberg)[+:])[a-z][a-z0-9+.-]*://")
FILE = "file://"

CHUNK_BYTES = 2**22  # fetched at a time where a file is read from start to end
N_AHEAD = 4  # ranges under way at a time

Way: TypeAlias = Literal["ranges", "bits", "through"]
"""How a file is read: in ranges, and no others are fetched; a few bytes here and there, so that
more are fetched at a time; from somewhere on to the end, so that the next ranges are fetched
meanwhile."""


@dataclass(frozen=True)
class Status:
    """What a store says of a file: its size, and a mark that another content does not have."""

    st_size: int
    mark: str


class RemotePath(ABC):
    """A file or folder behind an address, with what readers use of :class:`pathlib.Path`.

    Its size and mark are asked for once, by ``stat``: from then on it means the file as it was.
    """

    if TYPE_CHECKING:  # the methods of a path

        def __getattr__(self, name: str) -> Any: ...

    @abstractmethod
    def __fspath__(self) -> str:
        """The address, without secrets."""

    @abstractmethod
    def __truediv__(self, name: str) -> RemotePath:
        """What has this name in the folder."""

    @abstractmethod
    def look(self) -> Status:
        """Size and mark as they are now."""

    @abstractmethod
    def matches(self) -> Sequence[RemotePath]:
        """The files and folders that it means as a glob."""

    @abstractmethod
    def read_range(self, start: int, stop: int) -> bytes:
        """Some bytes of it: all of these, or an error."""

    @abstractmethod
    def arrow_file(self, way: Way, stop: int | None) -> Any:
        """See :func:`arrow_file`."""

    @abstractmethod
    def write(self, data: Any) -> None:
        """Make it hold these bytes: all of them, or nothing changes."""

    @abstractmethod
    def check_writable(self) -> None:
        """Refuse what nothing can be written to, before anything is."""


Place: TypeAlias = Path | RemotePath
T = TypeVar("T")
S = TypeVar("S")


def _is_address(path: Any) -> bool:
    """Whether a text is an address in a store and no path of this machine."""
    return isinstance(path, str) and ADDRESS.match(path) is not None and not path.startswith(FILE)


def shown(path: str) -> str:
    """A path as it was typed; an address without what nobody may read."""
    return str(parse_path(path)) if _is_address(path) else path


def parse_path(path: str | os.PathLike[str]) -> Place:
    """The file or folder meant by what a user gave.

    Parameters
    ----------
    path : str or path
        An address (``s3://bucket/key``) or a path.

    Returns
    -------
    place : Path or RemotePath
        Nothing has been looked at yet. A leading ``~`` is the home folder, if there is such a user.
    """
    if isinstance(path, RemotePath):
        return path
    if not _is_address(path):
        return expand_home(path.removeprefix(FILE) if isinstance(path, str) else path)
    found: RemotePath | None = first_answer("addresses", path)
    if found is None:
        msg = f"nothing that is installed reads addresses such as {str(path).partition(':')[0]}://."
        raise DataError(f"{msg} Install sketchshift as a package, or name a file of this machine.")
    return found


def expand_home(path: str | os.PathLike[str]) -> Path:
    """Return a path of this machine in which ``~`` is the home folder, if there is such a user.

    Parameters
    ----------
    path : str or path
        As a user gave it.

    Returns
    -------
    path : Path
        With ``~name`` as it stands where ``name`` is no user.
    """
    path = Path(path)
    try:
        return path.expanduser()
    except RuntimeError:  # a file named ~draft.csv, and no user of that name
        return path


MISSING = ("", "__HIVE_DEFAULT_PARTITION__")


def folder_values(path: Place) -> dict[str, str | None]:
    """The values in the names of the folders that a file lies in, as Hive writes them.

    Parameters
    ----------
    path : Path or RemotePath
        The file, as in ``day=2026-01-05/country=FR/x.parquet``. Signs in names are decoded
        (``%3A``). Of two folders with one name, the inner one counts.

    Returns
    -------
    values : dict
        By the names of columns; None where one is missing.
    """
    pairs = (part.partition("=") for part in path.parts[:-1])
    return {
        unquote(name): None if value in MISSING else unquote(value)
        for name, sign, value in pairs
        if name and sign
    }


# One way to read for all: files of this machine and of stores.


def arrow_file(file: Place, way: Way = "ranges", stop: int | None = None) -> Any:
    """A file for Arrow to read from, at any place.

    Parameters
    ----------
    file : Path or RemotePath
        Which.
    way : {"ranges", "bits", "through"}
        How it will be read (:data:`Way`).
    stop : int, optional
        Where that end is. Default: that of the file.
    """
    if isinstance(file, RemotePath):
        return file.arrow_file(way, stop)
    import pyarrow as pa

    return pa.OSFile(str(file))


def mark_of(file: Place) -> tuple[int, int | str]:
    """Size of a file now, and what changes when it does: its time, or the mark of the store."""
    if isinstance(file, RemotePath):
        found = file.look()
        return found.st_size, found.mark
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def check_unchanged(file: Place) -> None:
    """Refuse a file of a store that is not what it was when it was first looked at.

    Ranges that were read before and after such a change do not belong together.
    """
    if isinstance(file, RemotePath) and file.look() != file.stat():
        raise changed(file)


def changed(file: RemotePath) -> DataError:
    """The exception for a file that is another one now."""
    return DataError(f"{file} changed while it was read. Read it again, once it is complete.")


def map_ahead(
    function: Callable[[S], T], items: Iterable[S], file: Place, n_ahead: int = N_AHEAD
) -> Iterator[T]:
    """As ``map``, with some calls under way at a time where each waits for a store.

    Parameters
    ----------
    function : callable
        Reads what an item names.
    items : iterable
        Results come in their order.
    file : Path or RemotePath
        What is read; files of this machine are read one item at a time, as they are asked for.
    n_ahead : int
        Most results that wait.
    """
    if not isinstance(file, RemotePath):
        yield from map(function, items)
        return
    waiting: deque[Future[T]] = deque()
    with pool_of_threads(n_ahead) as pool:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > n_ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
