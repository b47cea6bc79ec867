"""The file: intact or refused, never believed."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.sketch.file import MAGIC
from sketchshift_papers import landmarks

PLAIN = ss.SketchSpec(n_features=2, sketch_size=8, bandwidth=0.3)
PLACES = [[-0.5, 0.0], [0.25, 0.5]]
SMALL = {
    "plain": PLAIN,
    "cells": PLAIN.replaced(cells=replace(ss.features.Cells.of(PLACES), within=2.0**-8)),
    "landmarks": PLAIN.replaced(families={"landmarks": landmarks.parameters(PLACES, 0.3)}),
}
CONSTANT = 1 << 14  # bytes a reader may allocate beside the file: JSON, exceptions; used: 2 kB


@pytest.fixture(params=SMALL)
def sketch(request):
    """Rows in cells, in shells, and beyond the reach of both where the spec holds such rows."""
    far = 1e9 if request.param == "cells" else 1.0
    scales = np.array([0.01, 1.0, far])[np.arange(10) % 3, None]
    rows = np.linspace(-1.0, 1.0, 20).reshape(10, 2) * scales
    return ss.sketch(rows, SMALL[request.param], sample_weight=np.arange(10) / 4)


def forge(
    header: dict[str, object] | bytes, payload: bytes = b"", version: int = 1, zero: int = 0
) -> bytes:
    """A file with a valid digest around any content."""
    if isinstance(header, dict):
        header = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    body = struct.pack("<8sHHI", MAGIC, version, zero, len(header)) + header + payload
    return body + hashlib.blake2b(body, digest_size=32).digest()


def content_of(sketch: ss.Sketch) -> tuple[dict[str, object], bytes]:
    """Header and payload of the file of a sketch."""
    data = sketch.to_bytes()
    (length,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[16 : 16 + length]), data[16 + length : -32]


def mended(header: dict[str, object], content: bytes) -> bytes:
    """A payload: the content of a slice, and its digest."""
    key = bytes.fromhex(str(header["fingerprint"]))
    return content + hashlib.blake2b(content, digest_size=16, key=key).digest()


def test_sketches_are_read_from_bytes_of_any_kind(sketch):
    for written in (sketch, ss.Sketcher(sketch.spec).sketch()):
        for kind in (bytes, bytearray, memoryview):
            read = ss.Sketch.from_bytes(kind(written.to_bytes()))
            assert (read, read.spec) == (written, written.spec)
    assert forge(*content_of(sketch)) == sketch.to_bytes()


def test_every_flip_of_a_byte_is_noticed_and_allocates_little(sketch):
    data = bytearray(sketch.to_bytes())

    refused = 0
    tracemalloc.start()
    for at in range(len(data)):
        data[at] ^= 1 << (at % 8)
        try:  # pytest.raises keeps tracebacks, which are not the reader's
            ss.Sketch.from_bytes(bytes(data))
        except ss.errors.SketchFormatError:
            refused += 1
        data[at] ^= 1 << (at % 8)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert refused == len(data)
    assert peak < 2 * len(data) + CONSTANT  # the copy with the flip, and the constant


def test_every_truncation_is_noticed_also_under_a_valid_digest(sketch):
    data, (header, payload) = sketch.to_bytes(), content_of(sketch)
    cut = [*[data[:n] for n in range(len(data))], data + b"\0"]
    cut += [
        *[forge(header, payload[:n]) for n in range(len(payload))],
        *[forge(header, mended(header, payload[:n])) for n in range(len(payload) - 16)],
        forge(header, payload + b"\0"),
        forge(header, mended(header, payload[:-16] + b"\0")),
    ]

    for damaged in cut:
        with pytest.raises(ss.errors.SketchFormatError):
            ss.Sketch.from_bytes(damaged)


@pytest.mark.parametrize("m", [10**12, 2**24, 2**24 + 1, 10**30])
def test_a_header_that_announces_too_much_is_refused_at_once(m):
    """Digest and all are valid: the lie itself has to be noticed, before any allocation."""
    spec = {"schema": 1, "n_features": 2, "sketch_size": m, "bandwidth": 0.3}
    header = {"fingerprint": "0" * 32, "spec": spec}
    widths = b"\1" * 7  # of waves and six groups of moments
    data = forge(header, mended(header, b"\0" * 16 + widths + b"\0" * 64))

    tracemalloc.start()
    with pytest.raises(ss.errors.SketchFormatError):
        ss.Sketch.from_bytes(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < CONSTANT


def test_a_header_length_beyond_the_file_is_refused():
    data = struct.pack("<8sHHI", MAGIC, 1, 0, 2**23) + b"{}" * 50

    with pytest.raises(ss.errors.SketchFormatError, match="header is longer than the file"):
        ss.Sketch.from_bytes(data)


DEEP = b'{"bandwidth":%b,"n_features":2,"schema":1,"sketch_size":3}' % (b"[" * 900 + b"]" * 900)
NESTED = b'{"fingerprint":"%b","spec":%b}' % (b"0" * 32, DEEP)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"nan", b"[" * 100_000, b"\xff", b'{"count":1}', NESTED]
)
def test_a_header_that_is_no_json_object_is_refused(text):
    with pytest.raises(ss.errors.SketchFormatError):
        ss.Sketch.from_bytes(forge(text))


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("spec", [[]], "must hold exactly"),
        ("spec", [{"schema": 1}], "missing: rows"),
        ("extra", [0], "must hold exactly"),
        ("fingerprint", ["", "zz" * 16, "AB" * 16, "a" * 31 + "\x1b"], "fingerprint"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(sketch, name, values, words):
    header, payload = content_of(sketch)

    for value in values:
        with pytest.raises(ss.errors.SketchFormatError, match=words):
            ss.Sketch.from_bytes(forge(header | {name: value}, payload))


def test_files_with_a_valid_digest_are_refused_for_what_they_say():
    header, payload = content_of(ss.sketch(np.eye(2), PLAIN))
    content = payload[:-16]

    def changed(at: int, octets: bytes) -> bytes:
        return forge(header, mended(header, content[:at] + octets + content[at + len(octets) :]))

    assert changed(0, content) == forge(header, payload)
    waves = 16 + 7  # counts, widths
    width, n_waves = content[16], 2 * PLAIN.sketch_size
    integers = [content[waves + i * width :][:width] for i in range(n_waves)]
    padded = b"".join(i + (b"\xff" if i[-1] > 127 else b"\0") for i in integers)
    longer = content[:16] + bytes([width + 1]) + content[17:waves] + padded
    wider = forge(header, mended(header, longer + content[waves + n_waves * width :]))
    for forged, words in (
        (forge(header, payload, version=2), r"format version 2, .* Upgrade sketchshift"),
        (forge(header, payload, version=0), "prefix of the sketch file is damaged"),
        (forge(header, payload, zero=1), "prefix of the sketch file is damaged"),
        # equal sketches have equal bytes: there is one way to write a header
        (forge(json.dumps(header, indent=1).encode(), payload), "canonical"),
        # a total larger than the weight, counts of no rows
        (changed(waves, b"\xff" * (width - 1) + b"\x7f"), "not those of any rows"),
        *[(changed(0, struct.pack("<q", n)), "not those of any rows") for n in (-1, 2**62)],
        *[(changed(8, struct.pack("<q", n)), "not those of any rows") for n in (-3, 2**62)],
        # integers of another width than they need, or of none
        (changed(16, bytes([width - 1])), "integers of another length"),
        *[(changed(16, bytes([n])), "not written in the canonical way") for n in (0, 9, 255)],
        (wider, "not written in the canonical way"),
        # another plan
        (forge(header | {"fingerprint": "0" * 32}, payload), "digest .* another plan"),
    ):
        with pytest.raises(ss.errors.SketchFormatError, match=words):
            ss.Sketch.from_bytes(forged)


def test_a_failed_save_keeps_the_old_file_and_names_it(tmp_path, sketch, monkeypatch):
    """The disk fills up while the new file is written."""
    path = tmp_path / "day1.sketch"
    sketch.save(path)

    def fill_up(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fill_up)
    with pytest.raises(OSError, match=r"No space left on device: .*day1\.sketch"):
        (sketch + sketch).save(path)
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        sketch.save(tmp_path / "nowhere" / "day1.sketch")
    assert ss.load(path) == sketch
    assert list(tmp_path.iterdir()) == [path]


def test_a_sketch_whose_frequencies_cannot_be_drawn_again_says_so(sketch):
    """Written elsewhere with another stream: it may be merged with its like, not decoded."""
    header, payload = content_of(sketch)
    header["fingerprint"] = "ab" * 16
    foreign = ss.Sketch.from_bytes(forge(header, mended(header, payload[:-16])))

    assert (foreign + foreign).count == 2 * sketch.count
    with pytest.raises(ss.errors.SketchFormatError, match="frequencies abababab"):
        _ = foreign.frequencies
