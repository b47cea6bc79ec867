"""The container of all our files: magic, version, JSON header, payload, digest.

Reading never unpickles and never allocates by a number that the file only claims: lengths
are compared with the bytes at hand before anything else, and the digest before any content.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from sketchshift.errors import SketchFormatError

try:
    import fcntl
except ImportError:  # Windows: drafts of killed writers stay there
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "MAX_HEADER",
    "draft_of",
    "opened_atomically",
    "pack",
    "read_header",
    "unpack",
    "write_atomically",
]

MAX_HEADER = 1 << 24
_PREFIX = struct.Struct("<8sHHI")  # magic, version, zero, length of the header
_DIGEST = 32


def pack(magic: bytes, version: int, header: Mapping[str, Any], payload: bytes) -> bytes:
    """Bytes of a file: a function of its content alone."""
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    body = b"".join([_PREFIX.pack(magic, version, 0, len(text)), text, payload])
    return body + hashlib.blake2b(body, digest_size=_DIGEST).digest()


def unpack(data: bytes, magic: bytes, version: int) -> tuple[bytes, memoryview]:
    """Header and payload of an intact file of this version or an earlier one."""
    view = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)
    if len(view) < _PREFIX.size + _DIGEST:
        msg = f"{len(view)} bytes are too few for a sketch. Was the file cut off?"
        raise SketchFormatError(msg)
    found, written, zero, length = _PREFIX.unpack_from(view)
    if found != magic:
        raise SketchFormatError("the first bytes are not those of a sketch file.")
    if written > version:
        msg = (
            f"this sketch has format version {written}, and this sketchshift reads up to "
            f"{version}. Upgrade sketchshift."
        )
        raise SketchFormatError(msg)
    if written < 1 or zero != 0 or length > MAX_HEADER:
        raise SketchFormatError("the prefix of the sketch file is damaged.")
    if length > len(view) - _PREFIX.size - _DIGEST:
        raise SketchFormatError("the header is longer than the file. Was the file cut off?")
    body, digest = view[:-_DIGEST], view[-_DIGEST:]
    if hashlib.blake2b(body, digest_size=_DIGEST).digest() != digest:
        msg = "the digest does not match: the file was damaged or cut off. Copy it again."
        raise SketchFormatError(msg)
    return bytes(body[_PREFIX.size : _PREFIX.size + length]), body[_PREFIX.size + length :]


def read_header(text: bytes, kinds: Mapping[str, type]) -> dict[str, Any]:
    """The header as an object with exactly these fields, of exactly these types."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise SketchFormatError("the header is not JSON.") from None
    is_sound = isinstance(header, dict) and set(header) == set(kinds)
    is_sound = is_sound and all(type(header[name]) is kind for name, kind in kinds.items())
    if not is_sound:
        raise SketchFormatError(f"the header must hold exactly {', '.join(kinds)}.")
    return dict(header)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of one.

    A symbolic link is followed: the file it points to is replaced. Who may read it stays.
    """
    with opened_atomically(path) as file:
        file.write(data)


@contextmanager
def opened_atomically(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` when the body ends; an exception leaves the old one.

    What is written lies in a draft beside it until then. Drafts that killed writers of the same
    file have left are removed first.
    """
    path = Path(os.path.realpath(path))
    try:
        with draft_of(path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name != "posix":
                file.close()  # an open file cannot be renamed there
            if path.exists():
                _copy_owner_and_mode(path, Path(file.name))
            Path(file.name).replace(path)
    except FileNotFoundError as error:
        if path.parent.is_dir():
            raise
        msg = f"cannot write {path}: the folder {path.parent} does not exist."
        raise FileNotFoundError(msg) from error
    _sync_directory(path.parent)


@contextmanager
def draft_of(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside ``path`` that is gone after the body, unless it was renamed.

    It is locked while its writer lives, and named after ``path``: so the next writer of
    ``path`` can tell which drafts are nobody's, and removes these.
    """
    prefix = f".{hashlib.blake2b(os.fsencode(path.name), digest_size=8).hexdigest()}-"
    _sweep(path.parent, prefix)
    mode = 0o600 if path.exists() else 0o666  # the old one may be for few eyes
    with _new_draft(path.parent, prefix, mode) as file:
        try:
            yield file
        finally:
            if os.name != "posix":
                file.close()  # an open file cannot be removed there
            Path(file.name).unlink(missing_ok=True)


def _new_draft(folder: Path, prefix: str, mode: int) -> IO[bytes]:
    """A new file, locked; another one where a sweeper took it in the instant before the lock."""
    while True:
        path = folder / f"{prefix}{secrets.token_hex(8)}.tmp"
        file = open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode))  # noqa: SIM115
        _lock(file.fileno(), wait=True)
        if os.name != "posix" or os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def _sweep(folder: Path, prefix: str) -> None:
    """Remove drafts whose writers are dead: nobody holds their locks."""
    with os.scandir(folder) as files:
        names = [f.name for f in files if f.name.startswith(prefix) and f.name.endswith(".tmp")]
    for draft in (folder / name for name in names):
        with suppress(OSError), draft.open("r+b") as file:  # gone meanwhile, or of somebody else
            if _lock(file.fileno(), wait=False):
                draft.unlink()


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Whether this process has the lock of a file now, which ends with the process."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # held by another, or a file system without locks
        return False
    return True


def _copy_owner_and_mode(source: Path, target: Path) -> None:
    status = source.stat()
    with suppress(OSError, AttributeError):  # only an administrator may give files away
        os.chown(target, status.st_uid, status.st_gid)
    target.chmod(stat.S_IMODE(status.st_mode))


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
