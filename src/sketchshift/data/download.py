"""One file from the network: resumed where it broke off, checked, then put in place.

Knows servers, bytes and digests; what a file is for is the business of ``public``. Bytes are
kept in ``NAME.part`` until they are whole, so that a second call goes on from there. Written on
the standard library: pooch, the ecosystem's downloader, begins anew after every break.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from sketchshift.errors import DataError

__all__ = ["Progress", "RemoteFile", "download", "file_digest"]

TIMEOUT = 30.0
"""Seconds without a byte before a connection counts as broken."""
WAITS = (1.0, 3.0, 9.0)
"""Seconds before the second, third and fourth try."""
BLOCK = 1 << 16
BUSY = {408, 425, 429, 500, 502, 503, 504}

Progress = Callable[[int, int | None], None]
"""Called with the bytes so far and those of the whole file, where these are known."""


@dataclass(frozen=True)
class RemoteFile:
    """A file with the places it can be had from.

    Attributes
    ----------
    name : str
        What it is called in the folder.
    urls : tuple of str
        The same bytes everywhere; tried in this order.
    size : int or None
        In bytes, where it is known.
    sha256 : str or None
        Of the bytes, where it is known.
    """

    name: str
    urls: tuple[str, ...]
    size: int | None = None
    sha256: str | None = None


class _Refused(Exception):
    """The file cannot be had from a place, whatever is tried."""


class _WrongBytes(_Refused):
    """All of it came, and its digest is not the one pinned."""


class _Broken(Exception):
    """Something that may be better in a moment."""


def download(
    file: RemoteFile,
    folder: Path,
    *,
    progress: Progress | None = None,
    wait: Callable[[float], Any] = time.sleep,
) -> Path:
    """Fetch a file unless it is there already.

    Parameters
    ----------
    file : RemoteFile
        What, and from where.
    folder : Path
        Where it goes.
    progress : callable or None
        Called with the bytes so far and all.
    wait : callable
        Called with seconds between two tries.

    Returns
    -------
    path : Path
        ``folder / file.name``: there only if its size and its digest are right.
    """
    target = folder / file.name
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f"{file.name}.part"
    faults = []
    for url in file.urls:
        try:
            _fetch_patiently(file, url, part, progress, wait)
        except (_Refused, _Broken) as fault:
            faults.append(f"{_host(url)} {fault}")
            continue
        part.replace(target)
        return target
    kept = ""
    if part.exists():
        kept = f" The {part.stat().st_size:,} bytes so far are kept: run it again to go on."
    msg = f"cannot fetch {file.name!r}: {'; '.join(faults)}.{kept}"
    raise DataError(msg)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _fetch_patiently(
    file: RemoteFile,
    url: str,
    part: Path,
    progress: Progress | None,
    wait: Callable[[float], Any],
) -> None:
    """Try a few times, going on from what is there; what is complete is checked."""
    is_begun = part.exists()
    for seconds in (*WAITS, None):
        try:
            _fetch_rest(file, url, part, progress)
            _check(file, part)
        except _WrongBytes:
            if not is_begun:
                raise
            is_begun = False  # the fault may lie in bytes of an earlier call: begin anew, once
        except _Broken:
            if seconds is None:
                raise
            wait(seconds)
        else:
            return


def _fetch_rest(file: RemoteFile, url: str, part: Path, progress: Progress | None) -> None:
    """One request for what is missing."""
    have = part.stat().st_size if part.exists() else 0
    if have and have == file.size:
        return
    headers = {"User-Agent": "sketchshift", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with urlopen(Request(url, headers=headers), timeout=TIMEOUT) as answer:
            _receive(answer, file, part, have, progress)
    except HTTPError as error:
        _judge_status(error, part)
    except URLError as error:
        _judge_connection(error)
    except (OSError, http.client.HTTPException) as error:
        raise _Broken(f"broke the connection ({error})") from error


def _receive(
    answer: Any, file: RemoteFile, part: Path, have: int, progress: Progress | None
) -> None:
    """Append to what is there, or begin anew where the server cannot go on in the middle."""
    start, total = _place(answer, have)
    if file.size is not None and total is not None and total != file.size:
        part.unlink(missing_ok=True)
        raise _Refused(f"offers {total:,} bytes and not {file.size:,}: it is another file")
    with part.open("ab" if start else "wb") as stream:
        done = start
        while block := answer.read(BLOCK):
            stream.write(block)
            done += len(block)
            if progress is not None:
                progress(done, total or file.size)
    whole = file.size if total is None else total
    if whole is not None and done < whole:
        raise _Broken(f"broke the connection after {done:,} of {whole:,} bytes")


def _place(answer: Any, have: int) -> tuple[int, int | None]:
    """Where the answer begins, and the length of the whole file."""
    length = answer.headers.get("Content-Length")
    if answer.status != 206:
        return 0, None if length is None else int(length)
    found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
    if not found or int(found[1]) != have:
        raise _Refused("answers with another part of the file than was asked for")
    return have, None if found[2] == "*" else int(found[2])


def _judge_status(error: HTTPError, part: Path) -> None:
    if error.code == 416:  # what is there is longer than the file
        part.unlink(missing_ok=True)
        raise _Broken("has less than was fetched before") from error
    said = f"answers {error.code} ({error.reason})"
    raise (_Broken if error.code in BUSY else _Refused)(said) from error


def _judge_connection(error: URLError) -> None:
    """A name that is not known will not be known in a moment either."""
    reason = error.reason
    if isinstance(reason, socket.gaierror):
        raise _Refused("cannot be found (is there a network?)") from error
    said = getattr(reason, "strerror", None) or reason
    raise _Broken(f"cannot be reached ({said}; is there a network?)") from error


def _check(file: RemoteFile, part: Path) -> None:
    """The size and the digest; bytes that are wrong are thrown away."""
    size = part.stat().st_size
    if file.size is not None and size != file.size:
        part.unlink()
        raise _Broken(f"sent {size:,} bytes and not {file.size:,}")
    if file.sha256 is None:
        return
    found = file_digest(part)
    if found != file.sha256:
        part.unlink()
        msg = f"sent other bytes than those pinned: SHA-256 {found}, and not {file.sha256}"
        raise _WrongBytes(msg)


def _host(url: str) -> str:
    return urlsplit(url).netloc
