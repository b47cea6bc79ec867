"""How every file is written: whole, or not at all; and a journal, by whole lines.

What is written lies in a draft beside its target until it is complete. A draft is locked while
its writer lives, so that the next writer of the same file can tell and remove those that killed
writers have left.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO

from sketchshift._paths import RemotePath, parse_path

try:
    import fcntl
except ImportError:  # Windows: drafts of killed writers stay there
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "append_durably",
    "draft_of",
    "hold_new",
    "open_journal",
    "opened_atomically",
    "opened_for_now",
    "publish",
    "put_down",
    "sweep_unheld",
    "write_atomically",
]


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of one.

    A symbolic link is followed: the file it points to is replaced. Who may read it stays.
    """
    target = parse_path(path)
    if isinstance(target, RemotePath):
        target.write(data)
        return
    with opened_atomically(target) as file:
        file.write(data)


@contextmanager
def opened_atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` when the body ends; an exception leaves the old one.

    What is written lies in a draft beside it until then, or for a store on this machine. Drafts
    that killed writers of the same file have left are removed first.
    """
    target = parse_path(path)
    opened = _uploaded(target) if isinstance(target, RemotePath) else _renamed(target)
    with opened as file:
        yield file


@contextmanager
def _uploaded(path: RemotePath) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile(prefix="sketchshift-") as file:
        yield file
        file.flush()
        size = file.seek(0, os.SEEK_END)
        with mmap(file.fileno(), size, access=ACCESS_READ) if size else nullcontext(b"") as data:
            path.write(data)


@contextmanager
def _renamed(path: Path) -> Iterator[IO[bytes]]:
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
    except OSError as error:
        if error.filename is None:  # of a full disk the system does not say which file it was
            error.filename = str(path)
        raise
    _sync_directory(path.parent)


@contextmanager
def opened_for_now(name: str) -> Iterator[IO[bytes]]:
    """A new file of this name, in a folder of its own that is removed when Python ends."""
    folder = tempfile.mkdtemp(prefix="sketchshift-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with (Path(folder) / name).open("xb") as file:
        yield file


def publish(path: Path, data: bytes, drafts: Path) -> bool:
    """Write a file whole if there is none of its name; False where another was first.

    Of several processes that try, on one machine or on several that share the folder, one succeeds.

    Parameters
    ----------
    path : path
        Never replaced once it is there.
    data : bytes
        What it holds.
    drafts : path
        A folder of the same file system that drafts may lie in: to look for those that killed
        writers have left takes as long as the folder has files.
    """
    with draft_of(drafts / "published") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        try:
            os.link(file.name, path)
        except FileExistsError:
            return False
    _sync_directory(path.parent)
    return True


@contextmanager
def hold_new(drafts: Path) -> Iterator[IO[bytes]]:
    """A new file, gone after the body unless :func:`place` gave it a place.

    Whoever writes it holds its lock until the body ends, wherever it lies by then: so files that
    nobody refers to yet can be told from those that nobody will ever refer to.

    Parameters
    ----------
    drafts : path
        A folder on the file system of its place to be.
    """
    with draft_of(drafts / "held") as file:
        yield file


def put_down(file: IO[bytes], path: Path) -> None:
    """Put a file that :func:`hold_new` gave, on the disk as it is now, where it is to lie."""
    file.flush()
    os.fsync(file.fileno())
    if os.name != "posix":
        file.close()  # an open file cannot be renamed there
    Path(file.name).rename(path)
    _sync_directory(path.parent)


def sweep_unheld(folder: Path, is_needed: Callable[[str], bool]) -> list[str]:
    """Remove the files of a folder that nobody holds and nobody needs; their names.

    Parameters
    ----------
    folder : path
        Of files that :func:`put_down` put there.
    is_needed : callable
        Asked for each name once nobody can hold that file any more.
    """
    removed = []
    for path in sorted(folder.iterdir()):
        with suppress(OSError), path.open("r+b") as file:
            if _lock(file.fileno(), wait=False) and not is_needed(path.name):
                path.unlink()
                removed.append(path.name)
    return removed


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


def open_journal(path: Path) -> IO[bytes]:
    """A file to read and to append to, made if it is not there, once no other process has it."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)  # Windows would change line ends
    file = os.fdopen(os.open(path, flags, 0o666), "r+b")
    _lock(file.fileno(), wait=True)
    _sync_directory(path.parent)
    return file


def append_durably(file: IO[bytes], data: bytes) -> None:
    """Append data to a file, and wait until it is on the disk."""
    file.seek(0, os.SEEK_END)
    file.write(data)
    file.flush()
    os.fsync(file.fileno())
