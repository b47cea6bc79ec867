"""The sketch file: a container of the spec, the counts and the integers (``docs/format.md``)."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from sketchshift.errors import SketchFormatError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.sketch.container import pack, read_header, unpack
from sketchshift.sketch.totals import Totals, WideArray, n_measures, n_wide

__all__ = [
    "MAGIC",
    "PRIVATE_MAGIC",
    "VERSION",
    "check_fingerprint",
    "decode",
    "encode",
    "read_spec",
]

MAGIC = b"\x89SKS\r\n\x1a\n"
PRIVATE_MAGIC = b"\x89SKP\r\n\x1a\n"
VERSION = 1
_WIDE = 16
_KINDS = {"count": int, "fingerprint": str, "n_invalid": int, "spec": dict}


def encode(spec: SketchSpec, fingerprint: str, totals: Totals) -> bytes:
    """Bytes of a sketch: a function of its content alone."""
    header = {
        "count": totals.count,
        "fingerprint": fingerprint,
        "n_invalid": totals.n_invalid,
        "spec": json.loads(spec.to_json()),
    }
    wide = (n.to_bytes(_WIDE, "little", signed=True) for n in totals.measures.ravel())
    return pack(MAGIC, VERSION, header, totals.waves.astype("<i8").tobytes() + b"".join(wide))


def decode(data: bytes) -> tuple[SketchSpec, str, Totals]:
    """Spec, fingerprint and totals; :class:`SketchFormatError` for anything unsound."""
    if bytes(data[: len(PRIVATE_MAGIC)]) == PRIVATE_MAGIC:
        msg = "this is a private sketch. Read it with ss.privacy.load; tables hold raw ones."
        raise SketchFormatError(msg)
    text, payload = unpack(data, MAGIC, VERSION)
    header = read_header(text, _KINDS)
    check_fingerprint(header["fingerprint"])
    spec = read_spec(header["spec"])
    expected = 16 * spec.sketch_size + _WIDE * n_measures(spec) * n_wide(spec)
    if len(payload) != expected:
        msg = f"the header announces {expected} bytes of integers, and there are {len(payload)}."
        raise SketchFormatError(msg)
    waves = np.frombuffer(payload, dtype="<i8", count=2 * spec.sketch_size).astype(np.int64)
    measures = _read_wide(payload[16 * spec.sketch_size :]).reshape(n_measures(spec), -1)
    totals = Totals(header["count"], header["n_invalid"], waves.reshape(2, -1), measures)
    if not totals.is_sound(spec):
        raise SketchFormatError("the integers are not those of any rows.")
    if encode(spec, header["fingerprint"], totals) != data:
        raise SketchFormatError("the header is not written in the canonical way.")
    return spec, header["fingerprint"], totals


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


def _read_wide(payload: memoryview) -> WideArray:
    integers = [
        int.from_bytes(payload[at : at + _WIDE], "little", signed=True)
        for at in range(0, len(payload), _WIDE)
    ]
    wide = np.empty(len(integers), dtype=object)
    wide[:] = integers
    return wide
