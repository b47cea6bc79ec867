"""The sketch file: magic, version, JSON header, integers, digest (``docs/format.md``).

Reading never unpickles and never allocates by a number that the file only claims: lengths
are compared with the bytes at hand before anything else, and the digest before any content.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import struct
from pathlib import Path
from typing import Any

import numpy as np

from sketchshift.errors import SketchFormatError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.sketch.totals import Totals, WideArray, n_measures, n_wide

__all__ = ["MAGIC", "MAX_HEADER", "VERSION", "decode", "encode", "write_atomically"]

MAGIC = b"\x89SKS\r\n\x1a\n"
VERSION = 1
MAX_HEADER = 1 << 24
_PREFIX = struct.Struct("<8sHHI")  # magic, version, zero, length of the header
_DIGEST = 32
_WIDE = 16


def encode(spec: SketchSpec, fingerprint: str, totals: Totals) -> bytes:
    """Bytes of a sketch: a function of its content alone."""
    header = {
        "count": totals.count,
        "fingerprint": fingerprint,
        "n_invalid": totals.n_invalid,
        "spec": json.loads(spec.to_json()),
    }
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    body = b"".join(
        [
            _PREFIX.pack(MAGIC, VERSION, 0, len(text)),
            text,
            totals.waves.astype("<i8").tobytes(),
            *(n.to_bytes(_WIDE, "little", signed=True) for n in totals.measures.ravel()),
        ]
    )
    return body + hashlib.blake2b(body, digest_size=_DIGEST).digest()


def decode(data: bytes) -> tuple[SketchSpec, str, Totals]:
    """Spec, fingerprint and totals; :class:`SketchFormatError` for anything unsound."""
    text, payload = _open(data)
    header = _read_json(text)
    try:
        spec = SketchSpec.from_dict(header["spec"])
    except (SpecError, RecursionError) as error:
        raise SketchFormatError(f"the header holds no usable spec: {error}") from None
    expected = 16 * spec.sketch_size + _WIDE * n_measures(spec) * n_wide(spec)
    if len(payload) != expected:
        msg = f"the header announces {expected} bytes of integers, and there are {len(payload)}."
        raise SketchFormatError(msg)
    waves = np.frombuffer(payload, dtype="<i8", count=2 * spec.sketch_size).astype(np.int64)
    measures = _read_wide(payload[16 * spec.sketch_size :]).reshape(n_measures(spec), -1)
    totals = Totals(header["count"], header["n_invalid"], waves.reshape(2, -1), measures)
    if not totals.is_sound():
        raise SketchFormatError("the integers are not those of any rows.")
    if encode(spec, header["fingerprint"], totals) != data:
        raise SketchFormatError("the header is not written in the canonical way.")
    return spec, header["fingerprint"], totals


def _open(data: bytes) -> tuple[bytes, memoryview]:
    """Header and payload of an intact file."""
    view = memoryview(data).cast("B") if not isinstance(data, bytes) else memoryview(data)
    if len(view) < _PREFIX.size + _DIGEST:
        msg = f"{len(view)} bytes are too few for a sketch. Was the file cut off?"
        raise SketchFormatError(msg)
    magic, version, zero, length = _PREFIX.unpack_from(view)
    if magic != MAGIC:
        raise SketchFormatError("the first bytes are not those of a sketch file.")
    if version > VERSION:
        msg = (
            f"this sketch has format version {version}, and this sketchshift reads up to "
            f"{VERSION}. Upgrade sketchshift."
        )
        raise SketchFormatError(msg)
    if version < 1 or zero != 0 or length > MAX_HEADER:
        raise SketchFormatError("the prefix of the sketch file is damaged.")
    if length > len(view) - _PREFIX.size - _DIGEST:
        raise SketchFormatError("the header is longer than the file. Was the file cut off?")
    body, digest = view[:-_DIGEST], view[-_DIGEST:]
    if hashlib.blake2b(body, digest_size=_DIGEST).digest() != digest:
        msg = "the digest does not match: the file was damaged or cut off. Copy it again."
        raise SketchFormatError(msg)
    return bytes(body[_PREFIX.size : _PREFIX.size + length]), body[_PREFIX.size + length :]


def _read_json(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise SketchFormatError("the header is not JSON.") from None
    kinds = {"count": int, "fingerprint": str, "n_invalid": int, "spec": dict}
    is_sound = isinstance(header, dict) and set(header) == set(kinds)
    is_sound = is_sound and all(type(header[name]) is kind for name, kind in kinds.items())
    if not is_sound or not re.fullmatch("[0-9a-f]{32}", header["fingerprint"]):
        msg = f"the header must hold exactly {', '.join(kinds)}."
        raise SketchFormatError(msg)
    return dict(header)


def _read_wide(payload: memoryview) -> WideArray:
    integers = [
        int.from_bytes(payload[at : at + _WIDE], "little", signed=True)
        for at in range(0, len(payload), _WIDE)
    ]
    wide = np.empty(len(integers), dtype=object)
    wide[:] = integers
    return wide


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of one.

    A symbolic link is followed: the file it points to is replaced.
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except FileNotFoundError:
        msg = f"cannot write {path}: the folder {path.parent} does not exist."
        raise FileNotFoundError(msg) from None
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
