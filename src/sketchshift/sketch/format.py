"""The sketch file: magic, version, JSON header, integers, digest (``docs/format.md``).

Reading never unpickles and never allocates by a number that the file only claims: lengths
are compared with the bytes at hand before anything else, and the digest before any content.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from sketchshift.errors import SketchFormatError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS
from sketchshift.sketch.totals import CAPACITY_BITS, Totals, WideArray, n_measures, n_wide

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
        spec = SketchSpec.from_json(json.dumps(header["spec"]))
    except SpecError as error:
        raise SketchFormatError(f"the header holds no usable spec: {error}") from None
    expected = 16 * spec.sketch_size + _WIDE * n_measures(spec) * n_wide(spec)
    if len(payload) != expected:
        msg = f"the header announces {expected} bytes of integers, and there are {len(payload)}."
        raise SketchFormatError(msg)
    waves = np.frombuffer(payload, dtype="<i8", count=2 * spec.sketch_size).astype(np.int64)
    measures = _read_wide(payload[16 * spec.sketch_size :]).reshape(n_measures(spec), -1)
    totals = Totals(header["count"], header["n_invalid"], waves.reshape(2, -1), measures)
    _check_totals(totals)
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
    if not is_sound or any(type(header[name]) is not kind for name, kind in kinds.items()):
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


def _check_totals(totals: Totals) -> None:
    """Integers that rows could have left; else a later sum might overflow or divide by zero."""
    weights = totals.measures[:, 0]
    limit = 2 ** (CAPACITY_BITS + BITS)
    # a row of weight 1 adds at most 2**BITS, rounding of partial weights at most 1 more
    largest = int(weights[-1]) + 2 * totals.count
    is_sound = (
        0 <= totals.count < 2**62
        and 0 <= totals.n_invalid < 2**62
        and all(0 <= weight < limit for weight in weights)
        and -largest <= int(totals.waves.min()) <= int(totals.waves.max()) <= largest
    )
    if not is_sound:
        raise SketchFormatError("the integers are not those of any rows.")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o666 & ~_umask())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
