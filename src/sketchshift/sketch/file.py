"""Files: the container of ours, the sketch file (``docs/format.md``), and all kinds we read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchshift._paths import Place, RemotePath, parse_path
from sketchshift._registry import first_answer
from sketchshift.errors import DataError, SketchFormatError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.sketch.totals import Layout, Totals

__all__ = [
    "CUBE_HEAD",
    "MAGIC",
    "MAX_HEADER",
    "PRIVATE_MAGIC",
    "check_fingerprint",
    "decode",
    "decode_alike",
    "encode",
    "is_cube",
    "load",
    "name_file",
    "pack",
    "read_header",
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


# The sketch file: a container of the spec, the counts and the integers (``docs/format.md``).

MAGIC = b"\x89SKS\r\n\x1a\n"
PRIVATE_MAGIC = b"\x89SKP\r\n\x1a\n"
_KINDS = {"count": int, "fingerprint": str, "n_invalid": int, "spec": dict}


def encode(fingerprint: str, totals: Totals, i: int = 0) -> bytes:
    """Bytes of slice i as a sketch: a function of its content alone."""
    layout = totals.layout
    counts = totals.counts[i].tolist()
    header = _header_of(counts, fingerprint, layout)
    return pack(MAGIC, header, b"".join(f.to_bytes(totals, i) for f in layout.families))


def _header_of(counts: Sequence[int], fingerprint: str, layout: Layout) -> bytes:
    """The header of a sketch as canonical JSON."""
    start = f'{{"count":{counts[0]},"fingerprint":"{fingerprint}","n_invalid":{counts[1]},"spec":'
    return start.encode() + layout.header_end + b"}"


def decode(files: Sequence[bytes]) -> tuple[SketchSpec, str, Totals]:
    """Read sketches of one spec, which is read once; refuse anything unsound.

    Parameters
    ----------
    files : sequence of bytes
        At least one.

    Returns
    -------
    spec, fingerprint : SketchSpec, str
        Of the first. That the others have them is checked by :func:`decode_alike`.
    totals : Totals
        A slice of each.
    """
    text, _ = _open(files[0])
    header = read_header(text, _KINDS)
    check_fingerprint(header["fingerprint"])
    layout = Layout.of(read_spec(header["spec"]))
    if text != _header_of((header["count"], header["n_invalid"]), header["fingerprint"], layout):
        raise SketchFormatError("the header is not written in the canonical way.")
    totals = decode_alike(files, layout, header["fingerprint"])
    if totals is None:
        raise SketchFormatError("the sketches are of several plans.")
    return layout.spec, header["fingerprint"], totals


def decode_alike(files: Sequence[bytes], layout: Layout, fingerprint: str) -> Totals | None:
    """Read sketches that have one spec and fingerprint; None if one of them has others."""
    start = re.compile(
        rb'\{"count":(-?\d+),"fingerprint":"%s","n_invalid":(-?\d+),"spec":' % fingerprint.encode()
    )
    counts, rest, end = [], [], layout.header_end + b"}"
    for data in files:
        text, payload = _open(data)
        found = start.match(text)
        if found is None or text[found.end() :] != end:
            return None
        counts.append([int(found[1]), int(found[2])])
        if text[: found.end()] != _header_of(counts[-1], fingerprint, layout)[: found.end()]:
            raise SketchFormatError("the header is not written in the canonical way.")
        rest.append(payload)
    if max(abs(n) for pair in counts for n in pair) >= 2**63:
        raise SketchFormatError("the integers are not those of any rows.")
    totals = Totals(layout, np.array(counts, dtype=np.int64))
    try:
        for family in layout.families:
            own, rest = family.from_bytes(rest)
            (totals.entries if family.id_width else totals.dense)[family.name] = own
        is_sound = totals.is_sound()
    except (ValueError, DataError) as error:
        raise SketchFormatError(str(error)) from None
    if left := max(map(len, rest)):
        raise SketchFormatError(f"there are {left} bytes more than the header announces.")
    if not is_sound:
        raise SketchFormatError("the integers are not those of any rows.")
    return totals


def _open(data: bytes) -> tuple[bytes, memoryview]:
    if bytes(data[: len(PRIVATE_MAGIC)]) == PRIVATE_MAGIC:
        msg = "this is a private sketch. Read it with ss.load; tables hold raw ones."
        raise SketchFormatError(msg)
    return unpack(data, MAGIC)


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

_SHOWN = 8  # bytes of an unknown file that its error shows


@dataclass(frozen=True)
class _Kind:
    name: str
    read: Callable[[Place], Any]


_KINDS_BY_START: dict[bytes, _Kind] = {}


def register_kind(start: bytes, name: str, read: Callable[[Place], Any]) -> None:
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


def load(path: str | os.PathLike[str]) -> Any:
    """Read any file that this library wrote.

    Parameters
    ----------
    path : path
        Its first bytes say what it is, whatever its name. A folder is read as a table, unless it
        is a cube.

    Returns
    -------
    content : Sketch, PrivateSketch, SketchTable, SketchSpec, Sketcher or Cube
        Of a sketch, a private sketch, a table of sketches (Parquet) or a plan (JSON), what was
        saved. Of a checkpoint the :class:`Sketcher` that was saved, or the sketch or the table
        of the rows that a pass has read so far. A damaged file, or one of another kind, is an
        error that names it.
    """
    file = parse_path(path)
    if file.is_dir():
        if is_cube(file):
            return first_answer("states", file)
        return _KINDS_BY_START[PARQUET_START].read(file)
    if file.is_fifo():
        msg = f"{path} is a pipe, which can be read once only. Save it to a file first."
        raise SketchFormatError(msg)
    longest = max(map(len, _KINDS_BY_START))
    with file.open("rb") as opened:
        start = opened.read(longest)
    for magic, kind in _KINDS_BY_START.items():
        if start.startswith(magic) or start.lstrip().startswith(magic):  # JSON may begin so
            return kind.read(file)
    raise SketchFormatError(f"{path}: {_unknown(start)}")


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


PARQUET_START = b"PAR1"
"""How a table of sketches begins, as all files of Parquet do."""


def _read_plan(path: Place) -> SketchSpec:
    with name_file(path):
        try:
            return SketchSpec.from_json(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise SpecError("a plan must be JSON, and this is not text.") from None


register_kind(b"{", "a plan", _read_plan)
