"""Files: the container of ours, the sketch file (``docs/format.md``), and all kinds we read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath
from typing import Any

import numpy as np

from sketchshift._paths import Place, RemotePath, parse_path
from sketchshift._registry import first_answer
from sketchshift._text import listed
from sketchshift.errors import DataError, SketchFormatError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.sketch.totals import Layout, Totals

__all__ = [
    "CUBE_HEAD",
    "MAGIC",
    "MAX_HEADER",
    "PRIVATE_MAGIC",
    "check_ending",
    "check_fingerprint",
    "decode",
    "encode",
    "is_cube",
    "load",
    "name_file",
    "pack",
    "plan_text",
    "read_header",
    "read_plan",
    "read_spec",
    "register_kind",
    "unpack",
]

# The container of all our files: magic, version 1, JSON header, payload, digest.
#
# Reading never unpickles and never allocates by a number that the file only claims: lengths
# are compared with the bytes at hand before anything else, and the digest before any content.

MAX_HEADER = 1 << 27
_PREFIX = struct.Struct("<8sHHI")  # magic, version, zero, length of the header
_DIGEST = 32
_VERSION = 1


def pack(magic: bytes, header: Mapping[str, Any] | bytes, payload: bytes) -> bytes:
    """Bytes of a file: a function of its content alone; a header of bytes is JSON already."""
    if isinstance(header, bytes):
        text = header
    else:
        text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > MAX_HEADER:
        raise SketchFormatError(
            f"a header has at most {MAX_HEADER:,} bytes, and here {len(text):,}."
        )
    body = b"".join([_PREFIX.pack(magic, _VERSION, 0, len(text)), text, payload])
    return body + hashlib.blake2b(body, digest_size=_DIGEST).digest()


def unpack(data: bytes, magic: bytes) -> tuple[bytes, memoryview]:
    """Header and payload of an intact file."""
    view = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)
    if len(view) < _PREFIX.size + _DIGEST:
        msg = f"{len(view)} bytes are too few for a sketch. Was the file cut off?"
        raise SketchFormatError(msg)
    found, written, zero, length = _PREFIX.unpack_from(view)
    if found != magic:
        raise SketchFormatError("the first bytes are not those of a sketch file.")
    if written > _VERSION:
        msg = (
            f"this file has format version {written}, and this sketchshift reads version "
            f"{_VERSION}. Upgrade sketchshift."
        )
        raise SketchFormatError(msg)
    if written != _VERSION or zero != 0 or length > MAX_HEADER:
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


# The sketch file: a container of a plan and one slice (``docs/format.md``).

MAGIC = b"\x89SKS\r\n\x1a\n"
PRIVATE_MAGIC = b"\x89SKP\r\n\x1a\n"
_KINDS = {"fingerprint": str, "spec": dict}


def plan_text(fingerprint: str, layout: Layout) -> bytes:
    """The header of a sketch, and the plan of each row of a table: canonical JSON."""
    return b'{"fingerprint":"%s","spec":%s}' % (fingerprint.encode(), layout.header_end)


@lru_cache(maxsize=4)
def read_plan(text: bytes) -> tuple[Layout, str]:
    """Layout and fingerprint from what :func:`plan_text` gave; anything else is refused."""
    if len(text) > MAX_HEADER:
        raise SketchFormatError(f"a plan has at most {MAX_HEADER:,} bytes, and here {len(text):,}.")
    header = read_header(text, _KINDS)
    check_fingerprint(header["fingerprint"])
    layout = Layout.of(read_spec(header["spec"]))
    if text != plan_text(header["fingerprint"], layout):
        raise SketchFormatError("the plan is not written in the canonical way.")
    return layout, header["fingerprint"]


def encode(fingerprint: str, totals: Totals) -> bytes:
    """Bytes of one slice as a sketch: a function of its content alone."""
    from sketchshift.sketch.packing import pack_slices

    ((data, _),) = pack_slices(totals, fingerprint)
    return pack(MAGIC, plan_text(fingerprint, totals.layout), data.tobytes())


def decode(data: bytes) -> tuple[SketchSpec, str, Totals]:
    """Read spec, fingerprint and totals of a sketch; refuse anything unsound."""
    if bytes(data[: len(PRIVATE_MAGIC)]) == PRIVATE_MAGIC:
        raise SketchFormatError("this is a private sketch. Read it with ss.load.")
    from sketchshift.sketch.packing import unpack_slices

    text, payload = unpack(data, MAGIC)
    layout, fingerprint = read_plan(text)
    edges = np.array([0, len(payload)])
    octets = np.frombuffer(payload, dtype=np.uint8)
    totals = unpack_slices(octets, edges[:1], edges[1:], layout, fingerprint)
    return layout.spec, fingerprint, totals


def read_spec(content: dict[str, Any]) -> SketchSpec:
    """The spec of a header."""
    try:
        return SketchSpec.from_dict(content)
    except (SpecError, RecursionError) as error:
        raise SketchFormatError(f"the header holds no usable spec: {error}") from None


def check_fingerprint(fingerprint: str) -> None:
    """Refuse anything but 32 hexadecimal digits."""
    if not re.fullmatch("[0-9a-f]{32}", fingerprint):
        raise SketchFormatError("the fingerprint in the header must be 32 hexadecimal digits.")


# All kinds of files that we write, and how to tell them apart.

_ENDINGS = (".sketch", ".parquet", ".json", ".csv", ".arrow", ".npy")
_SHOWN = 8  # bytes of an unknown file that its error shows


@dataclass(frozen=True)
class _Kind:
    name: str
    read: Callable[..., Any]


_KINDS_BY_START: dict[bytes, _Kind] = {}


def register_kind(start: bytes, name: str, read: Callable[..., Any]) -> None:
    """Let :func:`load` read one more kind of file.

    Parameters
    ----------
    start : bytes
        How all files of this kind begin, and no others.
    name : str
        What such a file is, with its article.
    read : callable
        From the path to what the file holds; its errors name the path.
    """
    _KINDS_BY_START[start] = _Kind(name, read)


@contextmanager
def name_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the content name the file."""
    try:
        yield
    except (SketchFormatError, SpecError) as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None


def load(
    path: str | os.PathLike[str], *, where: str | None = None, max_bytes: int | None = None
) -> Any:
    """Read any file that this library wrote.

    Parameters
    ----------
    path : path
        Its first bytes say what it is, whatever its name. A folder is read as a table, unless it
        is a cube.
    where : str or None
        Of a table the slices to read, as :meth:`SketchTable.where` takes it. Other sketches are not
        looked at, unless the condition names ``count``.
    max_bytes : int or None
        What the slices of a table and their keys may take together, 2**30 by default. A small file
        may hold a large table; one that holds more is refused.

    Returns
    -------
    content : Sketch, PrivateSketch, SketchTable, SketchSpec, Sketcher or Cube
        Of a sketch, a private sketch, a table of sketches (Parquet) or a plan (JSON), what was
        saved. Of a checkpoint the :class:`Sketcher` that was saved, or the sketch or the table
        of the rows that a pass has read so far. A damaged file, or one of another kind, is an
        error that names it.
    """
    file, given = parse_path(path), {"where": where, "max_bytes": max_bytes}
    options = {name: value for name, value in given.items() if value is not None}
    kind = _kind_of(file)
    if options and kind is not _KINDS_BY_START[PARQUET_START]:
        which = listed(list(options))
        msg = f"{path}: {which} applies to tables of sketches alone, and this is {kind.name}."
        raise DataError(f"{msg} Leave that out.")
    return kind.read(file, **options)


def _kind_of(file: Place) -> _Kind:
    if file.is_dir():
        return _CUBE if is_cube(file) else _KINDS_BY_START[PARQUET_START]
    if file.is_fifo():
        msg = f"{file} is a pipe, which can be read once only. Save it to a file first."
        raise SketchFormatError(msg)
    longest = max(map(len, _KINDS_BY_START))
    with file.open("rb") as opened:
        start = opened.read(longest)
    for magic, kind in _KINDS_BY_START.items():
        if start.startswith(magic) or start.lstrip().startswith(magic):  # JSON may begin so
            return kind
    raise SketchFormatError(f"{file}: {_unknown(start)}")


def check_ending(path: str | os.PathLike[str], ending: str, content: str) -> None:
    """Refuse to save content under a name that ends as files of another kind do."""
    name = parse_path(path).name
    found = PurePath(name).suffix
    if found.lower() in _ENDINGS and found.lower() != ending:
        better = name.removesuffix(found) + ending
        msg = (
            f"{content} is saved as *{ending}, and {name!r} ends in {found!r}. Name it {better!r}."
        )
        raise DataError(msg)


def _unknown(start: bytes) -> str:
    """What is wrong with a file that begins as none of ours does."""
    cut_off = [kind.name for magic, kind in _KINDS_BY_START.items() if magic.startswith(start)]
    if not start:
        return "the file is empty. Was it cut off?"
    if cut_off:
        return f"{len(start)} bytes are too few for {cut_off[0]}. Was the file cut off?"
    *most, last = (kind.name for kind in _KINDS_BY_START.values())
    return (
        f"the first bytes are not those of a sketch file but {start[:_SHOWN]!r}. `ss.load` reads "
        f"{', '.join(most)} and {last}; ss.sketch reads data."
    )


CUBE_HEAD = "cube"
"""The file that makes a folder a cube."""


def is_cube(path: str | os.PathLike[str] | Place) -> bool:
    """Whether a path is the folder of a cube; no address is."""
    folder = path if isinstance(path, RemotePath) else parse_path(path)
    return not isinstance(folder, RemotePath) and (folder / CUBE_HEAD).is_file()


_CUBE = _Kind("a cube", lambda path: first_answer("states", path))

PARQUET_START = b"PAR1"
"""How a table of sketches begins, as all files of Parquet do."""


def _read_plan(path: Place) -> SketchSpec:
    with name_file(path):
        try:
            return SketchSpec.from_json(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise SpecError("a plan must be JSON, and this is not text.") from None


register_kind(b"{", "a plan", _read_plan)
