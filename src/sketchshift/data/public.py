"""Public datasets: fetched from where they are published, checked, and made into arrays.

``public.toml`` pins addresses, sizes and digests; here is how files become the ``.npz`` files
that ``real`` reads. What a server sends is never trusted: the arrays have digests of their own.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import re
import shutil
import socket
import time
import tomllib
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
from numpy.typing import NDArray

from sketchshift._writing import opened_atomically, write_atomically
from sketchshift.errors import DataError

__all__ = [
    "Count",
    "Progress",
    "PublicSet",
    "RemoteFile",
    "array_digest",
    "download",
    "fetch",
    "file_digest",
    "public_sets",
    "write_arrays",
]

# One file from the network: resumed where it broke off, checked, then put in place.
#
# Knows servers, bytes and digests; what a file is for is the business of ``public``. Bytes are
# kept in ``NAME.part`` until they are whole, so that a second call goes on from there. Written on
# the standard library: pooch, the ecosystem's downloader, begins anew after every break.

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


TABLE = Path(__file__).with_name("public.toml")
UNREADABLE = (EOFError, LookupError, OSError, TypeError, UserWarning, ValueError, zlib.error)
"""What parsers raise when bytes are not what they should be; of nothing, NumPy warns."""

Arrays = dict[str, NDArray[Any]]
Files = Mapping[str, Path]
Count = Callable[[int, int, str], None]
"""Called with the number done, that of all, and what they are."""


@dataclass(frozen=True)
class PublicSet:
    """A dataset that can be fetched.

    Attributes
    ----------
    name : str
        Of its ``.npz`` file.
    about, licence : str
        What it is, and whose.
    files : tuple of RemoteFile
        What it is made of.
    digests : mapping of str to str
        SHA-256 of each of its arrays.
    """

    name: str
    about: str
    licence: str
    files: tuple[RemoteFile, ...]
    digests: Mapping[str, str]

    @property
    def size(self) -> int | None:
        """Bytes to fetch, where all are known."""
        sizes = [file.size for file in self.files if file.size is not None]
        return sum(sizes) if len(sizes) == len(self.files) else None


def public_sets() -> dict[str, PublicSet]:
    """All of the table, by name."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: _read_set(name, entry) for name, entry in table.items()}


def _read_set(name: str, entry: dict[str, Any]) -> PublicSet:
    files = []
    for file in entry["files"]:
        urls = [url + file["name"] for url in entry["urls"]]
        urls += [file["also"]] if "also" in file else []
        files.append(RemoteFile(file["name"], tuple(urls), file.get("size"), file.get("sha256")))
    return PublicSet(name, entry["about"], entry["licence"], tuple(files), entry["arrays"])


def fetch(wanted: PublicSet, folder: Path, *, count: Count | None = None) -> Path:
    """Fetch a dataset unless it is there already.

    Parameters
    ----------
    wanted : PublicSet
        Which.
    folder : Path
        Where its ``.npz`` file goes, at once and only when all of it is right. Until then its
        files lie in ``downloads``; afterwards ``fetched`` says what they were.
    count : callable or None
        Called with the kilobytes so far and all; with files, where sizes are not known.

    Returns
    -------
    path : Path
        Of the ``.npz`` file.
    """
    target = folder / f"{wanted.name}.npz"
    if target.exists():
        return target
    downloads = folder / "downloads" / wanted.name
    files = _download_all(wanted, downloads, count)
    try:
        arrays = _convert(wanted, files)
    except DataError:
        shutil.rmtree(downloads)
        raise
    _record(wanted, files, folder / "fetched")
    write_arrays(target, FINISHERS.get(wanted.name, dict)(arrays))
    shutil.rmtree(downloads)
    return target


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write an ``.npz`` file that is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened_atomically(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def array_digest(array: NDArray[Any]) -> str:
    """SHA-256 of an array: its dtype, its shape, its bytes in C order."""
    digest = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _download_all(wanted: PublicSet, downloads: Path, count: Count | None) -> dict[str, Path]:
    files: dict[str, Path] = {}
    before, total = 0, wanted.size
    for i, file in enumerate(wanted.files):

        def tell(n: int, n_all: int | None, i: int = i, before: int = before) -> None:
            if count is not None and total is not None:
                count((before + n) // 1000, total // 1000, "kB")
            elif count is not None:
                count(i, len(wanted.files), "files")

        files[file.name] = download(file, downloads, progress=tell)
        before += file.size or 0
    return files


def _convert(wanted: PublicSet, files: Files) -> Arrays:
    """The arrays in the files, if they are those that were pinned."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            arrays = CONVERTERS[wanted.name](files)
    except UNREADABLE as fault:
        msg = (
            f"cannot make {wanted.name!r} of what {_hosts(wanted)} sent ({fault}). The files were "
            "thrown away: run it again, and if it fails again, the publisher has changed them."
        )
        raise DataError(msg) from fault
    for name, pinned in wanted.digests.items():
        found = array_digest(arrays[name]) if name in arrays else "of nothing"
        if found != pinned:
            msg = (
                f"the array {name!r} of {wanted.name!r} is not the one pinned: SHA-256 {found}, "
                f"and not {pinned}. {_hosts(wanted)} may have changed it. Nothing was put in place."
            )
            raise DataError(msg)
    return arrays


def _hosts(wanted: PublicSet) -> str:
    return " or ".join(dict.fromkeys(url.split("/")[2] for url in wanted.files[0].urls))


def _record(wanted: PublicSet, files: Files, folder: Path) -> None:
    """Size and digest of each file as it came, pinned or not."""
    folder.mkdir(parents=True, exist_ok=True)
    facts = {
        name: {"size": path.stat().st_size, "sha256": file_digest(path)}
        for name, path in files.items()
    }
    said = {"date": str(date.today()), "licence": wanted.licence, "files": facts}
    path = folder / f"{wanted.name}.json"
    write_atomically(path, (json.dumps(said, indent=1) + "\n").encode())


def _mnist(files: Files) -> Arrays:
    """Images and labels in the IDX format: a header of 16 and 8 bytes, then bytes."""

    def read(part: str, header: int) -> NDArray[np.uint8]:
        data = gzip.decompress(files[part].read_bytes())
        return np.frombuffer(data, dtype=np.uint8, offset=header)

    images = [read(f"{part}-images-idx3-ubyte.gz", 16) for part in ("train", "t10k")]
    labels = [read(f"{part}-labels-idx1-ubyte.gz", 8) for part in ("train", "t10k")]
    return {"X": np.concatenate(images).reshape(-1, 28, 28), "y": np.concatenate(labels)}


def _skin(files: Files) -> Arrays:
    rows = np.loadtxt(files["Skin_NonSkin.txt"], dtype=np.uint8)
    return {"X": rows[:, :3], "y": rows[:, 3]}


def _covertype(files: Files) -> Arrays:
    """The rows of two kinds of trees, 2 and 4, that ADBench's set "cover" has; its numbers."""
    rows = np.loadtxt(
        files["covtype.data.gz"], delimiter=",", usecols=(*range(10), 54), dtype=np.float32
    )
    return {"X": rows[np.isin(rows[:, 10], (2, 4)), :10]}


def _uber_pickups(files: Files) -> Arrays:
    """Places with the number of pick-ups at each: one row a pick-up."""
    places = json.loads(files["uber-pickup-locations.json"].read_text(encoding="utf-8"))
    longitude, latitude, times = np.array(places, dtype=np.float64).T
    order = np.lexsort((latitude, times, longitude))
    where = np.column_stack((longitude, latitude)).astype(np.float32)
    return {"X": np.repeat(where[order], times[order].astype(np.int64), axis=0)}


CELLS = 200_000


def _cytof(files: Files) -> Arrays:
    """Some cells of all samples, in their order; counts, and the kind of each cell."""
    n = len(files) // 2
    counts = [_table(files[f"sample{i}.csv"], np.float32) for i in range(1, n + 1)]
    kinds = [_table(files[f"labels{i}.csv"], np.uint8) for i in range(1, n + 1)]
    X, y = np.concatenate(counts), np.concatenate(kinds)
    chosen = np.sort(np.random.default_rng(0).choice(len(X), min(CELLS, len(X)), replace=False))
    return {"X": X[chosen], "y": y[chosen]}


def _table(path: Path, dtype: Any) -> NDArray[Any]:
    return np.loadtxt(path, delimiter=",", dtype=dtype)


def _arcsinh(arrays: Arrays) -> Arrays:
    """Counts as cytometrists look at them: arcsinh(x / 5)."""
    return arrays | {"X": np.arcsinh(arrays["X"] / np.float32(5))}


def _sipu(files: Files) -> Arrays:
    arrays: Arrays = {}
    for name, path in files.items():
        member, kind = name.split(".")[:2]
        if kind == "data":
            arrays[f"{member}_X"] = np.loadtxt(path, dtype=np.float32)
        else:
            arrays[f"{member}_y"] = np.loadtxt(path, dtype=np.int16)
    return arrays


CONVERTERS: dict[str, Callable[[Files], Arrays]] = {
    "covertype": _covertype,
    "cytof": _cytof,
    "mnist": _mnist,
    "sipu": _sipu,
    "skin": _skin,
    "uber_pickups": _uber_pickups,
}
FINISHERS: dict[str, Callable[[Arrays], Arrays]] = {"cytof": _arcsinh}
