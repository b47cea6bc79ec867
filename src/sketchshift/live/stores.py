"""Stores: S3, Google, Azure, whatever fsspec knows, and the web, behind five verbs.

Files are opened, read in ranges, listed, put whole and removed. S3, Google and Azure come with
Arrow. Servers of the web are asked through the standard library: what fsspec makes of a server
that answers a range with something else cannot be told from the range. :func:`retry` makes a
request again when it fails. No message shows a secret.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import lru_cache
from threading import Lock
from typing import IO, Any, ClassVar, Protocol, TypeVar
from urllib.parse import quote, unquote
from weakref import ref

from sketchshift._validation import check_flag, check_integer, check_number, parameter_error
from sketchshift.errors import DataError, MissingDependencyError

__all__ = [
    "ARROW",
    "WEB",
    "Broken",
    "Handle",
    "Storage",
    "Store",
    "fill_s3",
    "open_store",
    "retry",
    "storage",
]

ARROW = ("s3", "gs", "gcs", "az", "abfs", "abfss")  # schemes whose stores Arrow speaks with itself
GOOGLE = ("gs", "gcs")
WEB = ("http", "https")
COPIED_BYTES = 2**20

T = TypeVar("T")

# How a store is reached. What nobody says, the environment says.

_READ: dict[str, Callable[[str], Any]] = {
    "anonymous": lambda word: word.lower() in ("true", "1", "yes"),
    "timeout": float,
    "tries": int,
}


@dataclass(frozen=True)
class Storage:
    """How stores are reached; :func:`storage` says what the fields mean."""

    endpoint: str | None = None
    region: str | None = None
    anonymous: bool = False
    key: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout: float = 30.0
    tries: int = 8
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)

    @property
    def secrets(self) -> list[str]:
        """Texts that nobody may read in a message."""
        pairs = (*self.headers, *self.options)
        given = [self.key, self.secret, self.token, *(str(value) for _, value in pairs)]
        return [text for text in given if text]

    @classmethod
    def current(cls) -> Storage:
        """What :func:`storage` says here, or else the environment."""
        return STORAGE.get() or cls.from_environment()

    @classmethod
    def from_environment(cls) -> Storage:
        """What the variable SKETCHSHIFT_STORAGE says: ``endpoint=http://host,anonymous=true``."""
        text, known = os.environ.get("SKETCHSHIFT_STORAGE", ""), {f.name for f in fields(cls)}
        said: dict[str, Any] = {}
        for part in filter(None, text.split(",")):
            name, sign, value = part.partition("=")
            if not sign or name not in known - {"headers", "options"}:
                must = "settings as in endpoint=http://host:9000,region=eu-west-1,anonymous=true"
                msg = f"SKETCHSHIFT_STORAGE must be {must}. Got a part {name!r} instead."
                raise DataError(msg)
            said[name] = _READ.get(name, str)(value)
        return cls(**said)


STORAGE: ContextVar[Storage | None] = ContextVar("STORAGE", default=None)


@contextmanager
def storage(
    *,
    endpoint: str | None = None,
    region: str | None = None,
    anonymous: bool = False,
    key: str | None = None,
    secret: str | None = None,
    token: str | None = None,
    headers: dict[str, str] | None = None,
    timeout: float = 30.0,
    tries: int = 8,
    **options: Any,
) -> Iterator[None]:
    """Say how the stores are reached whose files are read or written inside of a ``with``.

    Parameters
    ----------
    endpoint : str, optional
        Address of the server, as in ``"http://localhost:9000"``. Default: that of the provider, or
        of the environment (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, STORAGE_EMULATOR_HOST).
    region : str, optional
        Of buckets of S3. Default: that of the environment or of the bucket.
    anonymous : bool, default=False
        Whether requests are not signed, as public buckets ask for.
    key, secret, token : str, optional
        Id of the key, the secret key and the session's token (S3); name of the account, its key and
        a shared access signature (Azure); of Google an access token; of the web user name and
        password, or a bearer's token; of other servers user name and password. Default: what each
        provider's own tools find, in the environment, in its files, or on its machines. They are
        never shown.
    headers : dict, optional
        Sent with each request to http and https.
    timeout : float, default=30.0
        Seconds without an answer after which a request counts as failed. Of Google it is always
        two minutes.
    tries : int, default=8
        How often a request is made that fails; between two the pause doubles, up to 5 s.
    **options
        For the package of fsspec that speaks any other protocol.

    Examples
    --------
    >>> import sketchshift as ss
    >>> with ss.live.storage(endpoint="http://localhost:9000", anonymous=True):
    ...     pass  # ss.sketch("s3://bucket/day=*/part-*.parquet", n_clusters=5)
    """
    if endpoint is not None and (not isinstance(endpoint, str) or not endpoint):
        raise parameter_error("storage", "endpoint", "an address as in 'http://host'", endpoint)
    settings = Storage(
        endpoint,
        region,
        check_flag("storage", "anonymous", anonymous),
        key,
        secret,
        token,
        tuple((headers or {}).items()),
        check_number("storage", "timeout", timeout, low=0.001),
        check_integer("storage", "tries", tries, 1, 1000),
        tuple(options.items()),
    )
    reset = STORAGE.set(settings)
    try:
        yield
    finally:
        STORAGE.reset(reset)


# Requests fail. They are made again, unless the answer says that this would not help.

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
REFUSED = re.compile(r"HTTP status 4(?!08|29)\d\d|ACCESS_DENIED|\b(40[13]|530)\b|[Aa]uthentication")
OF_GOOGLE = re.compile(
    r"google::cloud::Status\((\w+: )(?:[\w ]+, with a last message of )?(.*?)"
    r"(?: error_info=.*)?\)(?:\. Detail: .*)?$",
    re.DOTALL,
)


class Broken(OSError):
    """An answer that is not what was asked for; the next one may be."""


class _Refused(OSError):
    """An answer that will be the same next time."""


def retry(request: Callable[[], T], where: str, settings: Storage, query: str = "") -> T:
    """What a request gives, within so many tries; messages hold no secrets."""
    for number in range(int(settings.tries)):
        try:
            return request()
        except (FileNotFoundError, IsADirectoryError):
            raise FileNotFoundError(2, "there is no such file", where) from None
        except Exception as error:  # each store has its own
            fault = _in_words(error, (*settings.secrets, query))
            if isinstance(error, DataError | MissingDependencyError):
                raise
            is_final = isinstance(
                error, _Refused | PermissionError | TypeError | NotImplementedError
            )
            if is_final or REFUSED.search(fault):
                raise _unreachable(where, fault) from None
            pause = min(FIRST_PAUSE_S * 2**number, LONGEST_PAUSE_S)
            if number + 1 < settings.tries:
                time.sleep(pause * random.uniform(0.5, 1.0))
    times = f"{int(settings.tries)} times, at last with: {fault}"
    advice = "Try again later, or allow more tries: `with ss.live.storage(tries=...):`."
    raise DataError(f"cannot reach {where}: the store failed {times}. {advice}")


def _unreachable(where: str, fault: str) -> DataError:
    advice = "Check the address and the credentials; a public bucket needs"
    return DataError(f"cannot reach {where}: {fault}. {advice} `ss.live.storage(anonymous=True)`.")


def _in_words(error: Exception, secrets: Iterable[str]) -> str:
    text = OF_GOOGLE.sub(r"\1\2", str(error)).rstrip(".") or type(error).__name__
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    return text


# Stores: of Arrow (S3, Google, Azure), of fsspec, and the web.


class Handle(Protocol):
    """A file of a store that was looked at."""

    @property
    def size(self) -> int:
        """Bytes of the file."""

    @property
    def mark(self) -> str:
        """What another content does not have."""

    def read(self, start: int, stop: int) -> bytes:
        """Bytes of a range."""


class Store(Protocol):
    """What is asked of any store; keys are what follows the scheme.

    ``list`` gives the files below a key, each with its trace: a text that another content will not
    have, or None where the listing does not tell that.
    """

    def open(self, key: str) -> Handle:
        """A file, once it was looked at."""

    def is_folder(self, key: str) -> bool:
        """Whether there are files below the key."""

    def list(self, key: str) -> dict[str, str | None]:
        """Traces of the files below the key, by their keys."""

    def put(self, key: str, data: Any) -> None:
        """Write a file whole."""

    def remove(self, key: str) -> None:
        """Remove a file."""


@lru_cache(maxsize=32)
def open_store(scheme: str, settings: Storage, root: str = "") -> Store:
    """The store that addresses of a scheme are in; of fsspec, those that begin with a root."""
    if scheme in WEB:
        return _Web(settings)
    if scheme in ARROW:
        reading = _OPENERS[scheme](settings)
        if scheme in GOOGLE:
            return _GoogleStore(reading, reading)
        writing = _open_s3(settings, is_written=True) if scheme == "s3" else reading
        return _ArrowStore(reading, writing)
    filesystem = _open_fsspec(scheme, settings, root)
    return _FsspecStore(filesystem, scheme, nullcontext() if filesystem.async_impl else Lock())


def _split_endpoint(endpoint: str | None) -> dict[str, str]:
    scheme, sign, host = (endpoint or "").partition("://")
    return {"scheme": scheme, "host": host.rstrip("/")} if sign else {"host": scheme}


def _open_s3(settings: Storage, *, is_written: bool = False) -> Any:
    """A range is tried once, since Arrow reads what was tried before into the same buffer.

    What is written is written in the background: else Arrow forgets that a part failed, and closing
    the file makes an object of the other parts.
    """
    from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

    settings = fill_s3(settings)
    signed = {
        "access_key": settings.key,
        "secret_key": settings.secret,
        "session_token": settings.token,
        "endpoint_override": settings.endpoint,
        "region": settings.region,
    }
    return S3FileSystem(
        anonymous=settings.anonymous,
        request_timeout=settings.timeout,
        connect_timeout=settings.timeout,
        background_writes=is_written,
        retry_strategy=AwsStandardS3RetryStrategy(max_attempts=4 if is_written else 1),
        **{name: value for name, value in signed.items() if value is not None},
    )


def fill_s3(settings: Storage) -> Storage:
    """The settings, with the endpoint of the environment where they have none.

    A server that is not Amazon's has no way to ask for the region: it is given one.
    """
    endpoint = settings.endpoint or _find_set("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    if endpoint is None:
        return settings
    region = settings.region or _find_set("AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"
    return replace(settings, endpoint=endpoint, region=region)


def _find_set(*names: str) -> str | None:
    """The first variable of the environment that says something."""
    return next(filter(None, map(os.environ.get, names)), None)


NOT_AGAIN = timedelta(milliseconds=1)  # in which a request may be begun: 0 would be no try at all


def _open_gs(settings: Storage) -> Any:
    """Nobody asks an emulator's users for credentials, nor do Google's own libraries."""
    from datetime import UTC, datetime

    from pyarrow.fs import GcsFileSystem

    emulator = None if settings.endpoint else os.environ.get("STORAGE_EMULATOR_HOST")
    endpoint = _split_endpoint(settings.endpoint or emulator)
    given: dict[str, Any] = {"retry_time_limit": NOT_AGAIN}
    if endpoint["host"]:
        given |= {"endpoint_override": endpoint["host"], "scheme": endpoint.get("scheme", "http")}
    if settings.token:
        until = datetime.now(UTC) + timedelta(hours=1)
        given |= {"access_token": settings.token, "credential_token_expiration": until}
    is_anonymous = settings.anonymous or bool(emulator and not settings.token)
    return GcsFileSystem(anonymous=is_anonymous, **given)


def _open_azure(settings: Storage) -> Any:
    try:
        from pyarrow.fs import AzureFileSystem
    except ImportError:
        msg = "this pyarrow does not speak with Azure. Install a newer one: pip install -U pyarrow"
        raise MissingDependencyError(msg) from None

    say = os.environ.get
    account = settings.key or say("AZURE_STORAGE_ACCOUNT") or say("AZURE_STORAGE_ACCOUNT_NAME")
    secret = settings.secret or say("AZURE_STORAGE_KEY") or say("AZURE_STORAGE_ACCOUNT_KEY")
    token = settings.token or say("AZURE_STORAGE_SAS_TOKEN")
    if not account:
        msg = "an address of Azure needs the name of the account: set AZURE_STORAGE_ACCOUNT, or "
        raise DataError(msg + "`with ss.live.storage(key=...):`.")
    given = {"account_key": secret} if secret else {"sas_token": token} if token else {}
    endpoint = _split_endpoint(settings.endpoint or say("AZURE_STORAGE_ENDPOINT"))
    if endpoint["host"]:
        scheme = endpoint.get("scheme", "https")
        given |= {"blob_storage_authority": endpoint["host"], "blob_storage_scheme": scheme}
        given |= {"dfs_storage_authority": endpoint["host"], "dfs_storage_scheme": scheme}
    return AzureFileSystem(account, **given)


_OPENERS = {
    "s3": _open_s3,
    **dict.fromkeys(GOOGLE, _open_gs),
    **dict.fromkeys(("az", "abfs", "abfss"), _open_azure),
}


TAIL_BYTES = 8  # by which the end of a range is told


class _ArrowFile:
    """A file of a store of Arrow.

    Arrow reads S3 into a buffer, and takes the buffer for full when the body of the answer was
    shorter. So the buffer ends with random bytes before it is read into. Where its last byte
    changed, all came; where it did not, which happens by chance too, the end is read once more.
    """

    def __init__(self, filesystem: Any, key: str) -> None:
        file = filesystem.open_input_file(key)
        notes = {name.lower(): value for name, value in (file.metadata() or {}).items()}
        mark = notes.get("etag") or notes.get("last-modified")
        if mark is None:
            mark = str(filesystem.get_file_info(key).mtime_ns)
        self.size, self.mark = int(file.size()), mark.decode() if type(mark) is bytes else str(mark)
        self._filesystem, self._key = filesystem, key
        self._idle = [file]  # each is read by one thread at a time

    def read(self, start: int, stop: int) -> bytes:
        """All bytes of a range, or an error."""
        if stop - start <= TAIL_BYTES:
            return self._read_few(start, stop)
        end = os.urandom(TAIL_BYTES)
        data = self._fill(bytearray(stop - start - TAIL_BYTES) + end, start)
        if data[-1] == end[-1] and data[-TAIL_BYTES:] != self._read_few(stop - TAIL_BYTES, stop):
            raise Broken(f"of {stop - start} bytes asked for not all came")
        return bytes(data)

    def _read_few(self, start: int, stop: int) -> bytes:
        for byte in (b"\x00", b"\xff"):
            data = self._fill(bytearray(byte * (stop - start)), start)
            if data[-1] != byte[0]:
                return bytes(data)
        raise Broken("the last byte did not come")

    def _fill(self, buffer: bytearray, start: int) -> bytearray:
        try:
            file = self._idle.pop()
        except IndexError:
            file = self._filesystem.open_input_file(self._key)
        file.seek(start)
        count = file.readinto(buffer)
        self._idle.append(file)
        if count != len(buffer):
            raise Broken(f"of {len(buffer)} bytes asked for {count} came")
        return buffer


SETTLED_NS = 900 * 10**9
"""Age from which the time of a file is a trace. Listings have whole seconds, in which a file may be
written twice; and clocks differ, by 15 minutes at most where requests are signed."""


@dataclass(frozen=True)
class _ArrowStore:
    """A file system of Arrow, for what is read, and one for what is written."""

    filesystem: Any
    writing: Any

    def open(self, key: str) -> Handle:
        return _ArrowFile(self.filesystem, key)

    def is_folder(self, key: str) -> bool:
        from pyarrow.fs import FileType

        return bool(self.filesystem.get_file_info(key.rstrip("/")).type == FileType.Directory)

    def list(self, key: str) -> dict[str, str | None]:
        from pyarrow.fs import FileSelector

        below = FileSelector(key.rstrip("/"), recursive=True, allow_not_found=True)
        last = time.time_ns() - SETTLED_NS
        return {
            info.path: f"{info.size} {info.mtime_ns}" if (info.mtime_ns or last) < last else None
            for info in self.filesystem.get_file_info(below)
            if info.is_file
        }

    def put(self, key: str, data: Any) -> None:
        """In one call: nothing can happen between two parts but what the store then refuses."""
        with self.writing.open_output_stream(key, compression=None) as file:
            file.write(data)

    def remove(self, key: str) -> None:
        self.filesystem.delete_file(key)


MOST_OPEN = 16  # files of Google's store, each with a connection


class _GoogleFile:
    """A file of Google's store.

    Arrow asks for the whole file with the first question to an open one, takes as much of the
    answer as its buffers hold, and does so again after a seek. So size and time are asked of the
    store, one open file serves all threads, each range is a request of its own, and few files are
    kept open.
    """

    _recent: ClassVar[deque[ref[_GoogleFile]]] = deque()

    def __init__(self, filesystem: Any, key: str) -> None:
        self._filesystem, self._key, self._lock = filesystem, key, Lock()
        self._file, self._is_checked = None, False
        self.size, self.mark = self._look()

    def _look(self) -> tuple[int, str]:
        info = self._filesystem.get_file_info(self._key)
        if not info.is_file:
            raise FileNotFoundError(self._key)
        return info.size, str(info.mtime_ns)

    def read(self, start: int, stop: int) -> bytes:
        """Bytes of a range, fewer where the answer was cut off."""
        with self._lock:
            file = self._file = self._file or self._open()
            if not self._is_checked:
                self._check()
        data: bytes = file.read_at(stop - start, start)
        return data

    def _open(self) -> Any:
        file = self._filesystem.open_input_file(self._key)
        try:
            file.size()
        except ValueError:  # so Arrow puts it when the answer is not the file
            raise Broken("the store did not give the file") from None
        self._is_checked = False
        self._recent.append(ref(self))
        if len(self._recent) > MOST_OPEN and (oldest := self._recent.popleft()()):
            oldest._file = None
        return file

    def _check(self) -> None:
        """Refuse an open file that came after the one that was looked at."""
        if self._look() != (self.size, self.mark):
            raise FileNotFoundError(self._key)
        self._is_checked = True


class _GoogleStore(_ArrowStore):
    """Google's store, whose open files are dear, and whose buckets are often shown to few."""

    def open(self, key: str) -> Handle:
        return _GoogleFile(self.filesystem, key)

    def is_folder(self, key: str) -> bool:
        """A bucket that may not be looked at is taken to be there: its objects may be allowed."""
        try:
            return super().is_folder(key)
        except PermissionError:
            if "/" in key.rstrip("/"):
                raise
            return True


def _open_fsspec(scheme: str, settings: Storage, root: str) -> Any:
    known = ", ".join(f"{name}://" for name in ("s3", "gs", "az", "http", "https"))
    try:
        import fsspec

        kind = fsspec.get_filesystem_class(scheme)
    except ImportError as cause:
        msg = f"cannot reach {scheme}:// ({cause}). Install sketchshift[fsspec] and what it names."
        raise MissingDependencyError(msg) from None
    except ValueError:
        msg = (
            f"{scheme}:// is no protocol that is known here. Known are {known} and those of fsspec."
        )
        raise DataError(msg) from None
    words = [quote(word, safe="") for word in (settings.key, settings.secret) if word]
    user = ":".join(words) + "@" if words else ""
    found = kind._get_kwargs_from_urls(root.replace("://", f"://{user}", 1))
    given = {name: unquote(word) if type(word) is str else word for name, word in found.items()}
    return kind(**given | dict(settings.options))


@dataclass(frozen=True)
class _FsspecFile:
    store: _FsspecStore
    path: str
    size: int
    mark: str

    def read(self, start: int, stop: int) -> bytes:
        with self.store.lock:
            data: bytes = self.store.filesystem.cat_file(self.path, start=start, end=stop)
            return data


TAGS = ("ETag", "etag", "md5Hash")
MARKS = (*TAGS, "mtime", "LastModified", "last_modified", "modify", "created")


def _first_of(info: Mapping[str, Any], names: Iterable[str]) -> str | None:
    return next((str(info[name]) for name in names if info.get(name) is not None), None)


@dataclass(frozen=True)
class _FsspecStore:
    """A file system of fsspec.

    One that is not asynchronous may have a single connection, as that of FTP has: it gets one
    request at a time.
    """

    filesystem: Any
    scheme: str
    lock: AbstractContextManager[Any]

    def _path_of(self, key: str) -> str:
        """What the file system calls it; where keys begin with a server, it is left out."""
        path: str = self.filesystem._strip_protocol(f"{self.scheme}://{key}")
        return path

    def open(self, key: str) -> _FsspecFile:
        path = self._path_of(key)
        with self.lock:
            self.filesystem.invalidate_cache()
            info = self.filesystem.info(path)
        if info["type"] == "directory":
            raise IsADirectoryError(key)
        return _FsspecFile(self, path, info["size"], _first_of(info, MARKS) or "")

    def is_folder(self, key: str) -> bool:
        with self.lock:
            return bool(self.filesystem.isdir(self._path_of(key)))

    def list(self, key: str) -> dict[str, str | None]:
        above = self._path_of(key).rstrip("/")
        with self.lock:
            self.filesystem.invalidate_cache()
            found = self.filesystem.find(above, detail=True)
        return {
            key.rstrip("/") + name.removeprefix(above): _first_of(info, TAGS)
            for name, info in found.items()
        }

    def put(self, key: str, data: Any) -> None:
        with self.lock:
            self.filesystem.pipe_file(self._path_of(key), bytes(data))

    def remove(self, key: str) -> None:
        with self.lock:
            self.filesystem.rm_file(self._path_of(key))


@dataclass(frozen=True)
class _WebFile:
    """A file of a server that gives ranges."""

    web: _Web
    address: str
    size: int
    mark: str

    def read(self, start: int, stop: int) -> bytes:
        with self.web.ask(self.address, f"bytes={start}-{stop - 1}") as answer:
            wanted = f"bytes {start}-{stop - 1}/{self.size}"
            if _mark_in(answer) != self.mark:
                raise DataError("it changed while it was read. Read it again, once it is complete.")
            if answer.status != 206 or answer.headers.get("Content-Range") != wanted:
                raise Broken(f"asked for {wanted}, the server gave something else")
            data: bytes = answer.read()
            return data


class _SpooledFile:
    """A file of a server that gives no ranges, copied when its first bytes are asked for."""

    def __init__(self, web: _Web, address: str, size: int, mark: str) -> None:
        self.size, self.mark = size, mark
        self._web, self._address, self._lock = web, address, Lock()
        self._file: IO[bytes] | None = None

    def read(self, start: int, stop: int) -> bytes:
        with self._lock:
            self._file = self._file or self._copy()
            self._file.seek(start)
            return self._file.read(stop - start)

    def _copy(self) -> IO[bytes]:
        """In a file without a name, which goes with this object."""
        file = tempfile.TemporaryFile(prefix="sketchshift-")  # noqa: SIM115
        with self._web.ask(self._address) as answer:
            shutil.copyfileobj(answer, file, COPIED_BYTES)
        if (file.tell(), _mark_in(answer)) != (self.size, self.mark):
            fault = f"of {self.size} bytes {file.tell()} came, or those of another file"
            file.close()
            raise Broken(fault)
        return file

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True)
class _Web:
    """Servers that speak HTTP."""

    settings: Storage

    def ask(self, address: str, span: str | None = None) -> Any:
        """The answer to a request for a file, or for some bytes of it."""
        from urllib.error import HTTPError
        from urllib.request import Request, urlopen

        asked = Request(address, headers={"Accept-Encoding": "identity"})
        for name, value in (*self.settings.headers, *self._credentials()):
            asked.add_unredirected_header(name, value)  # they are for this server alone
        if span is not None:
            asked.add_header("Range", span)
        try:
            return urlopen(asked, timeout=self.settings.timeout)
        except HTTPError as answer:
            if answer.code in (404, 410):
                raise FileNotFoundError(address) from None
            if answer.code == 416:
                return answer
            kind = Broken if answer.code >= 500 or answer.code in (408, 429) else _Refused
            raise kind(f"the server answered {answer.code} {answer.reason}") from None

    def open(self, key: str) -> Handle:
        """One request tells whether there is such a file, its size, and whether it has ranges."""
        with self.ask(key, "bytes=0-0") as answer:
            span, mark = answer.headers.get("Content-Range", ""), _mark_in(answer)
            size = span.rpartition("/")[2]
            if answer.status in (206, 416) and size.isdigit():
                return _WebFile(self, key, int(size), mark)
            if answer.status != 200:
                raise Broken(f"the server answered {answer.status}")
            length = answer.headers.get("Content-Length")
            if length is None:
                msg = "the server gives neither ranges nor the length of the file, so that one"
                raise _Refused(f"{msg} cut off would look whole")
            return _SpooledFile(self, key, int(length), mark)

    def is_folder(self, key: str) -> bool:
        return False

    def list(self, key: str) -> dict[str, str | None]:
        raise NotImplementedError

    def put(self, key: str, data: Any) -> None:
        raise NotImplementedError

    def remove(self, key: str) -> None:
        raise NotImplementedError

    def _credentials(self) -> Iterator[tuple[str, str]]:
        from base64 import b64encode

        if self.settings.key is not None:
            pair = f"{self.settings.key}:{self.settings.secret or ''}"
            yield "Authorization", f"Basic {b64encode(pair.encode()).decode()}"
        elif self.settings.token is not None:
            yield "Authorization", f"Bearer {self.settings.token}"


def _mark_in(answer: Any) -> str:
    headers = answer.headers
    return headers.get("ETag") or headers.get("Last-Modified") or ""
