"""The container of all our files: magic, version, JSON header, payload, digest.

Reading never unpickles and never allocates by a number that the file only claims: lengths
are compared with the bytes at hand before anything else, and the digest before any content.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any

from sketchshift.errors import SketchFormatError

__all__ = ["MAX_HEADER", "pack", "read_header", "unpack"]

MAX_HEADER = 1 << 24
_PREFIX = struct.Struct("<8sHHI")  # magic, version, zero, length of the header
_DIGEST = 32


def pack(magic: bytes, version: int, header: Mapping[str, Any], payload: bytes) -> bytes:
    """Bytes of a file: a function of its content alone."""
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > MAX_HEADER:
        raise SketchFormatError(
            f"a header has at most {MAX_HEADER:,} bytes, and here {len(text):,}."
        )
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
