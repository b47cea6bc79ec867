"""The file of a private sketch: its own magic, a header that no row has touched, noisy integers."""

from __future__ import annotations

import json

import numpy as np

from sketchshift.errors import PrivacyError, SketchFormatError, SpecError
from sketchshift.features import SketchSpec
from sketchshift.features.origin import SCALES
from sketchshift.privacy.ledger import Ledger
from sketchshift.privacy.mechanism import LARGEST
from sketchshift.privacy.noisy_totals import NoisyTotals
from sketchshift.sketch.container import pack, read_header, unpack
from sketchshift.sketch.format import PRIVATE_MAGIC, check_fingerprint, read_spec

__all__ = ["VERSION", "decode", "encode"]

VERSION = 1
_KINDS = {"count_factor": int, "fingerprint": str, "ledger": dict, "scale": float, "spec": dict}


def encode(spec: SketchSpec, fingerprint: str, totals: NoisyTotals, ledger: Ledger) -> bytes:
    """Bytes of a private sketch: a function of its content alone."""
    header = {
        "count_factor": totals.count_factor,
        "fingerprint": fingerprint,
        "ledger": ledger.to_dict(),
        "scale": totals.scale,
        "spec": json.loads(spec.to_json()),
    }
    numbers = np.append(totals.waves.ravel(), totals.scaled_count)
    return pack(PRIVATE_MAGIC, VERSION, header, numbers.astype("<i8").tobytes())


def decode(data: bytes) -> tuple[SketchSpec, str, NoisyTotals, Ledger]:
    """Spec, fingerprint, totals and ledger; :class:`SketchFormatError` for anything unsound."""
    text, payload = unpack(data, PRIVATE_MAGIC, VERSION)
    header = read_header(text, _KINDS)
    fingerprint, factor, scale = (header[n] for n in ("fingerprint", "count_factor", "scale"))
    check_fingerprint(fingerprint)
    spec = read_spec(header["spec"])
    try:
        ledger = Ledger.from_dict(header["ledger"])
    except (SpecError, PrivacyError) as error:
        raise SketchFormatError(f"the header holds no usable ledger: {error}") from None
    expected = 8 * (2 * spec.sketch_size + 1)
    if len(payload) != expected:
        msg = f"the header announces {expected} bytes of integers, and there are {len(payload)}."
        raise SketchFormatError(msg)
    if spec.origin is None or spec.tilt is not None:
        raise SketchFormatError("the spec is none of a release: that has an origin, and no tilt.")
    if not 0 < factor < LARGEST or not SCALES[0] <= scale <= SCALES[1]:
        raise SketchFormatError("count_factor and scale must be positive numbers in range.")
    numbers = np.frombuffer(payload, dtype="<i8").astype(np.int64)
    if not ((numbers > -LARGEST) & (numbers < LARGEST)).all():
        raise SketchFormatError("the integers are not those of a release: they reach 2**62.")
    totals = NoisyTotals(numbers[:-1].reshape(2, -1), int(numbers[-1]), factor, scale)
    if encode(spec, fingerprint, totals, ledger) != data:
        raise SketchFormatError("the header is not written in the canonical way.")
    return spec, fingerprint, totals, ledger
