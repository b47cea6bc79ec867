"""Paths in stores: what readers use of a path, for an address.

What is read is read in ranges. Each is checked for its length and asked for again when it fails,
so that a reader gets all bytes or an error; and a file that changes meanwhile is refused.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, TypeVar
from urllib.parse import unquote

from sketchshift._paths import CHUNK_BYTES, Place, RemotePath, Status, Way, changed, map_ahead
from sketchshift.errors import DataError
from sketchshift.live.stores import ARROW, WEB, Broken, Handle, Storage, Store, open_store, retry

__all__ = ["StorePath", "parse_address"]

ALIASES = {"gcs": "gs", "abfs": "az", "abfss": "az"}
WINDOW_BYTES = 2**16  # fetched at least where a reader takes a few bytes at a time

T = TypeVar("T")


def parse_address(address: str, settings: Storage | None = None) -> StorePath:
    """The file or folder in a store that an address means; nothing is looked at.

    Parameters
    ----------
    address : str
        Such as ``s3://bucket/key``.
    settings : Storage or None
        How its store is reached; None: as it is said here.
    """
    scheme, _, rest = address.partition("://")
    settings = settings or Storage.current()
    query = ""
    if scheme in WEB:
        rest, sign, behind = rest.partition("?")
        query = sign + behind
    user, _, host = rest.partition("/")[0].rpartition("@")
    if scheme in ARROW and ":" in user:
        msg = (
            f"an address of {scheme}:// holds no key and no secret. Leave out what stands "
            "before the @, and say them: `with ss.live.storage(key=..., secret=...):`."
        )
        raise DataError(msg)
    if scheme not in ARROW and "@" in rest.removeprefix(f"{user}@{host}") + query:
        _check_host(scheme, host)
    if user and scheme not in ARROW:
        name, _, password = user.partition(":")
        settings = replace(settings, key=unquote(name), secret=unquote(password))
        rest = rest.removeprefix(f"{user}@")
    elif user and scheme in ("abfs", "abfss"):  # container@account.dfs.core.windows.net/path
        settings = replace(settings, key=settings.key or host.partition(".")[0])
        rest = user + rest.removeprefix(f"{user}@{host}")
    return StorePath(scheme, rest, settings, query)


class StorePath(RemotePath):
    """A file or folder in a store, with what readers use of :class:`pathlib.Path`.

    Its text has no user, no password and nothing behind a question mark of the web, where signed
    addresses have their signature. Size and mark are asked for once: from then on it means the
    file as it was then, also in other processes.

    Attributes
    ----------
    trace : str or None
        What a listing said of it that another content will not have; None: nothing.
    """

    trace: str | None = None
    _is_listed = False

    def __init__(self, scheme: str, key: str, settings: Storage, query: str = "") -> None:
        self._scheme, self._key, self._settings, self._query = scheme, key, settings, query
        self._handle: Handle | None = None
        self._pinned: Status | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_handle": None}

    def _at(self, key: str) -> StorePath:
        return StorePath(self._scheme, key, self._settings)

    @property
    def _store(self) -> Store:
        is_one = self._scheme in (*ARROW, *WEB)  # for all buckets and servers
        return open_store(self._scheme, self._settings, "" if is_one else str(self.root))

    def __str__(self) -> str:
        return f"{self._scheme}://{self._key}"

    __fspath__ = as_posix = __str__

    def __repr__(self) -> str:
        return f"StorePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorePath) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self._scheme, self._key, self._query, self._settings.endpoint

    def __truediv__(self, name: str) -> StorePath:
        return self._at(f"{self._key.rstrip('/')}/{name}")

    @property
    def _pure(self) -> PurePosixPath:
        return PurePosixPath(self._key)

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self._pure.name

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return self._pure.stem

    @property
    def suffix(self) -> str:
        """The end of the name, from its last dot on."""
        return self._pure.suffix

    @property
    def parent(self) -> StorePath:
        """The folder it lies in."""
        return self._at(str(self._pure.parent))

    @property
    def parts(self) -> tuple[str, ...]:
        """What stands between the slashes."""
        return self._pure.parts

    @property
    def root(self) -> StorePath:
        """The bucket, container or server."""
        return self._at(self.parts[0] if self.parts else "")

    def relative_to(self, other: Place) -> PurePosixPath:
        """What follows a folder."""
        return self._pure.relative_to(other._pure if isinstance(other, StorePath) else other)

    def absolute(self) -> StorePath:
        """Return the path itself, which is whole."""
        return self

    resolve = absolute

    def as_folder(self) -> StorePath:
        """The same folder as it is always written, however it was typed."""
        scheme = ALIASES.get(self._scheme, self._scheme)
        return StorePath(scheme, self._key.rstrip("/"), self._settings, self._query)

    def is_fifo(self) -> bool:
        """Never so."""
        return False

    def stat(self) -> Status:
        """Size and mark, as they were when they were first asked for."""
        if self._pinned is None:
            opened = self._open()
            self._pinned = Status(opened.size, opened.mark)
        return self._pinned

    def look(self) -> Status:
        """Size and mark as they are now."""
        opened = self._try(lambda: self._store.open(self._address))
        return Status(opened.size, opened.mark)

    def as_of(self, status: Status) -> StorePath:
        """The file as it was: another one in its place is refused."""
        file = self._at(self._key)
        file._pinned = status
        return file

    def is_file(self) -> bool:
        """Whether there is such a file."""
        if self._is_listed:
            return True
        if len(self.parts) < 2:  # a bucket or a server
            return False
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Whether there are files below it."""
        if self._scheme in WEB or self._pinned is not None:
            return False
        return self._try(lambda: self._store.is_folder(self._key))

    def exists(self) -> bool:
        """Whether there is such a file or folder."""
        return self.is_file() or self.is_dir()

    def rglob(self, pattern: str) -> list[StorePath]:
        """All files below it whose names match."""
        if self._scheme in WEB:
            msg = f"cannot list the files of {self}: the web has no folders. Name each file."
            raise DataError(msg)
        traces = self._try(lambda: self._store.list(self._key))
        files = [self._at(key) for key in sorted(traces)]
        for file in files:
            file.trace, file._is_listed = traces[file._key], True
        return [file for file in files if fnmatchcase(file.name, pattern)]

    def check_listed(self) -> None:
        """Refuse a folder without files that is not there; object stores have no empty ones."""
        if self.is_file():
            raise DataError(f"{self} is a file. Name the folder that it lies in.")
        above = self.root if self._scheme in ARROW else self
        if not above.is_dir():
            raise DataError(f"there is no {str(above)!r} to list. Check the address.")

    def matches(self) -> list[StorePath]:
        """The files and folders that it means as a glob; ``**`` are any folders."""
        fixed = list(takewhile(lambda part: not set("*?[") & set(part), self.parts))
        if not fixed:
            msg = f"cannot read {self}: the name of a bucket cannot hold signs of a glob."
            raise DataError(msg)
        is_meant = re.compile(_pattern_of(self.parts)).fullmatch
        below = self._at("/".join(fixed)).rglob("*")
        files = {str(file): file for file in below if is_meant(file._key)}
        folders = {self._at(str(folder)) for file in below for folder in file._pure.parents}
        files |= {str(folder): folder for folder in folders if is_meant(folder._key)}
        return [files[name] for name in sorted(files)]

    def open(
        self,
        mode: str = "r",
        buffering: int = WINDOW_BYTES,
        *,
        encoding: str | None = None,
        newline: str | None = None,
    ) -> Any:
        """A file to read from, at any place; so many bytes are fetched at a time, or more."""
        file = io.BufferedReader(RemoteFile(self), buffering)
        return file if "b" in mode else io.TextIOWrapper(file, encoding, newline=newline)

    def arrow_file(self, way: Way = "ranges", stop: int | None = None) -> Any:
        """For Arrow to read from, at any place."""
        import pyarrow as pa

        opened = self.open("rb") if way == "bits" else RemoteFile(self, way == "through", stop)
        return pa.PythonFile(opened, "r")

    def read_bytes(self) -> bytes:
        """All of it."""
        return self.read_range(0, self.stat().st_size)

    def read_text(self, encoding: str = "utf-8") -> str:
        """All of it."""
        return self.read_bytes().decode(encoding)

    def read_range(self, start: int, stop: int) -> bytes:
        """Some bytes of it: all of these, or an error."""
        if stop <= start:
            return b""

        def fetch() -> bytes:
            try:
                data = self._open().read(start, stop)
            except FileNotFoundError:  # it was there
                raise changed(self) from None
            if len(data) != stop - start:
                raise Broken(f"of {stop - start} bytes asked for {len(data)} came")
            return data

        self.stat()
        return self._try(fetch)

    def write(self, data: Any) -> None:
        """Make it hold these bytes: all of them, or nothing changes.

        A store shows an object once it is complete. What it says of it afterwards is compared.
        """
        if self._scheme in WEB:
            self.check_writable()
        size = memoryview(data).nbytes
        self._handle = self._pinned = None

        def put() -> None:
            self._store.put(self._key, data)
            if self.look().st_size != size:
                raise Broken(f"{size} bytes were written, and other bytes are there")

        self._try(put)

    def check_writable(self) -> None:
        """Refuse what nothing can be written to, before anything is."""
        if self._scheme in WEB:
            raise DataError(f"cannot write {self}: the web is only read. Name a file or a bucket.")
        if len(self.parts) < 2 or self._key.endswith("/"):
            raise DataError(f"cannot write {str(self)!r}: it is a folder. Give the name of a file.")
        if not self.root.is_dir():
            fact = f"there is no bucket {str(self.root)!r}"
            raise DataError(f"cannot write {str(self)!r}: {fact}. Make it first.")

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove it."""
        self._try(lambda: self._store.remove(self._key))
        self._handle = self._pinned = None

    @property
    def _address(self) -> str:
        return f"{self._scheme}://{self._key}{self._query}" if self._scheme in WEB else self._key

    def _open(self) -> Handle:
        if self._handle is None:
            handle = self._try(lambda: self._store.open(self._address))
            if self._pinned not in (None, Status(handle.size, handle.mark)):
                raise changed(self)
            self._handle = handle
        return self._handle

    def _try(self, request: Callable[[], T]) -> T:
        return retry(request, str(self), self._settings, self._query)


def _check_host(scheme: str, host: str) -> None:
    """Refuse an address whose password would be taken for a port, and be shown."""
    if not re.fullmatch(r"(\[[^]]*\]|[^:]*)(:\d*)?", host):
        msg = (
            f"cannot read an address of {scheme}://: its user or password holds one of the signs "
            "'/' or '?'. Write them as %2F and %3F."
        )
        raise DataError(msg)


def _pattern_of(parts: Iterable[str]) -> str:
    """A regular expression of a glob: ``*`` stops at a slash, and ``**`` are any folders."""
    pattern = "".join("(?:[^/]+/)*" if part == "**" else _one_part(part) + "/" for part in parts)
    return pattern.removesuffix("/")


def _one_part(part: str) -> str:
    """Of what stands between two slashes."""
    pieces = re.split(r"(\*+|\?|\[!?\]?[^]]*\])", part)
    signs = {"*": "[^/]*", "?": "[^/]"}
    return "".join(
        signs.get(piece[:1], "[" + piece[1:].replace("!", "^", 1)) if i % 2 else re.escape(piece)
        for i, piece in enumerate(pieces)
    )


class RemoteFile(io.RawIOBase):
    """A file in a store, to be read at any place.

    Parameters
    ----------
    path : StorePath
        Which.
    ahead : bool
        Whether it is read on from somewhere, so that the next ranges are fetched meanwhile.
    stop : int, optional
        Where that ends. Default: the end of the file.
    """

    def __init__(self, path: StorePath, ahead: bool = False, stop: int | None = None) -> None:
        self._path, self._at, self._size = path, 0, path.stat().st_size
        self._stop = self._size if stop is None else stop
        self._ahead = ahead
        self._chunks: Iterator[bytes] = iter(())
        self._chunk, self._next = memoryview(b""), -1

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where reading goes on."""
        return self._at

    def size(self) -> int:
        """Bytes of the whole file."""
        return self._size

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go elsewhere."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Some bytes; fewer only at the end."""
        stop = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if stop <= self._at:
            return b""
        is_near = self._ahead and stop <= self._stop
        data = self._read_on(stop) if is_near else self._path.read_range(self._at, stop)
        self._at = stop
        return data

    def readinto(self, buffer: Any) -> int:
        """As :meth:`read`."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _read_on(self, stop: int) -> bytes:
        """Bytes up to ``stop``, of chunks that follow each other."""
        if self._at != self._next:
            starts = range(self._at, self._stop, CHUNK_BYTES)
            ranges = ((start, min(start + CHUNK_BYTES, self._stop)) for start in starts)
            self._chunks = map_ahead(lambda r: self._path.read_range(*r), ranges, self._path)
            self._chunk = memoryview(b"")
        parts, missing = [], stop - self._at
        while missing:
            self._chunk = self._chunk or memoryview(next(self._chunks))
            parts.append(self._chunk[:missing])
            self._chunk = self._chunk[missing:]
            missing -= len(parts[-1])
        self._next = stop
        return b"".join(parts)
