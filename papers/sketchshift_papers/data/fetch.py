"""Public datasets: fetched from where they are published, checked, and made into arrays.

``public.toml`` pins addresses, sizes and digests; here is how files become the ``.npz`` files
that are read. What a server sends is never trusted: the arrays have digests of their own.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import time
import tomllib
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
from numpy.typing import NDArray

from sketchshift.cli import opened_atomically, write_atomically
from sketchshift.errors import DataError

__all__ = [
    "PublicSet",
    "RemoteFile",
    "array_digest",
    "download",
    "fetch",
    "public_sets",
    "write_arrays",
]

TIMEOUT = 30.0  # seconds without a byte before a connection counts as broken
WAITS = (1.0, 3.0, None)  # seconds before the next try


@dataclass(frozen=True)
class RemoteFile:
    """A file with the places it can be had from, tried in this order.

    Attributes
    ----------
    name : str
        What it is called.
    urls : tuple of str
        The same bytes everywhere.
    size : int or None
        In bytes, where it is known.
    sha256 : str or None
        Of the bytes, where it is known.
    """

    name: str
    urls: tuple[str, ...]
    size: int | None = None
    sha256: str | None = None


def download(file: RemoteFile, folder: Path, *, wait: Callable[[float], Any] = time.sleep) -> Path:
    """Fetch a file unless it is there already.

    Parameters
    ----------
    file : RemoteFile
        What, and from where.
    folder : Path
        Where it goes.
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
    faults = []
    for url in file.urls:
        for seconds in WAITS:
            try:
                content = _content(file, url)
            except (OSError, HTTPException) as fault:
                if seconds is not None and getattr(fault, "code", 500) >= 500:
                    wait(seconds)
                    continue
                faults.append(f"{urlsplit(url).netloc}: {fault}")
                break
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(target, content)
            return target
    raise DataError(f"cannot fetch {file.name!r} from {'; '.join(faults)}.")


def _content(file: RemoteFile, url: str) -> bytes:
    """All bytes of a file, which are those that are pinned."""
    request = Request(url, headers={"User-Agent": "sketchshift"})
    with urlopen(request, timeout=TIMEOUT) as answer:
        content: bytes = answer.read()
    if file.size not in (None, len(content)):
        raise OSError(f"{len(content):,} bytes came, and not {file.size:,}")
    digest = hashlib.sha256(content).hexdigest()
    if file.sha256 not in (None, digest):
        raise OSError(f"other bytes came than those pinned: SHA-256 {digest}, not {file.sha256}")
    return content


TABLE = Path(__file__).with_name("public.toml")
UNREADABLE = (EOFError, LookupError, OSError, TypeError, UserWarning, ValueError, zlib.error)
"""What parsers raise when bytes are not what they should be; of nothing, NumPy warns."""

Arrays = dict[str, NDArray[Any]]
Files = Mapping[str, Path]


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


def fetch(wanted: PublicSet, folder: Path) -> Path:
    """Fetch a dataset unless it is there already.

    Parameters
    ----------
    wanted : PublicSet
        Which.
    folder : Path
        Where its ``.npz`` file goes, at once and only when all of it is right. Until then its
        files lie in ``downloads``.

    Returns
    -------
    path : Path
        Of the ``.npz`` file.
    """
    target = folder / f"{wanted.name}.npz"
    if target.exists():
        return target
    downloads = folder / "downloads" / wanted.name
    files = {file.name: download(file, downloads) for file in wanted.files}
    try:
        arrays = _convert(wanted, files)
        write_arrays(target, FINISHERS.get(wanted.name, dict)(arrays))
    finally:
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


def _convert(wanted: PublicSet, files: Files) -> Arrays:
    """The arrays in the files, if they are those that were pinned."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            arrays = CONVERTERS[wanted.name](files)
    except UNREADABLE as fault:
        msg = (
            f"cannot make {wanted.name!r} of what was sent ({fault}). The files were thrown away: "
            "run it again; if it fails again, the publisher has changed them."
        )
        raise DataError(msg) from fault
    for name, pinned in wanted.digests.items():
        found = array_digest(arrays[name]) if name in arrays else "of nothing"
        if found != pinned:
            msg = (
                f"the array {name!r} of {wanted.name!r} is not the one pinned: SHA-256 {found}, "
                f"and not {pinned}. The publisher may have changed it. Nothing was put in place."
            )
            raise DataError(msg)
    return arrays


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
