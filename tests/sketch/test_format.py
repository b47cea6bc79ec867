"""The file: intact or refused, never believed."""

from __future__ import annotations

import hashlib
import json
import struct
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import sketchshift as ss
from sketchshift import _writing
from sketchshift.sketch import file as file_format

PLAIN = ss.SketchSpec(n_features=2, sketch_size=8, bandwidth=0.3)
PLACES = [[-0.5, 0.0], [0.25, 0.5]]
SMALL = {
    "plain": PLAIN,
    "cells": replace(PLAIN, cells=replace(ss.features.Cells.of(PLACES), within=2.0**-8)),
    "landmarks": replace(PLAIN, landmarks=ss.features.Landmarks.of(PLACES)),
}
CONSTANT = 1 << 14  # bytes a reader may allocate beside the file: JSON, exceptions; used: 2 kB


def canonical(header: dict[str, object]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


def forge(
    header: dict[str, object] | bytes, payload: bytes = b"", version: int = 1, zero: int = 0
) -> bytes:
    """A file with a valid digest around any content."""
    text = header if isinstance(header, bytes) else canonical(header)
    body = struct.pack("<8sHHI", file_format.MAGIC, version, zero, len(text)) + text + payload
    return body + hashlib.blake2b(body, digest_size=32).digest()


def header_of(data: bytes) -> tuple[dict[str, object], bytes]:
    (length,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[16 : 16 + length]), data[16 + length : -32]


def test_what_is_written_is_read_back_equal(spec, X):
    s = ss.sketch(X, spec, sample_weight=np.linspace(0, 3, len(X)))

    back = ss.Sketch.from_bytes(s.to_bytes())

    assert back == s
    assert (back.spec, back.to_bytes()) == (s.spec, s.to_bytes())


def test_empty_sketches_and_bytes_like_objects_are_read_too(spec, X):
    for s in (ss.Sketcher(spec).sketch(), ss.sketch(X, spec)):
        assert ss.Sketch.from_bytes(bytearray(s.to_bytes())) == s
        assert ss.Sketch.from_bytes(memoryview(s.to_bytes())) == s


def small_file(name: str) -> bytes:
    """Of rows in cells, in shells, and beyond the reach of both where the spec holds such rows."""
    far = 1e9 if name == "cells" else 1.0
    rows = (
        np.linspace(-1.0, 1.0, 20).reshape(10, 2)
        * np.array([0.01, 1.0, far])[np.arange(10) % 3, None]
    )
    return ss.sketch(rows, SMALL[name], sample_weight=np.arange(10) / 4).to_bytes()


@pytest.mark.parametrize("name", SMALL)
def test_every_flip_of_a_byte_is_noticed_and_allocates_little(name):
    data = bytearray(small_file(name))

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
    assert ss.Sketch.from_bytes(bytes(data))  # all flips are undone: it was the flips


@pytest.mark.parametrize("name", SMALL)
def test_every_truncation_is_noticed(name):
    data = small_file(name)

    for length in range(len(data)):
        with pytest.raises(ss.errors.SketchFormatError):
            ss.Sketch.from_bytes(data[:length])
    with pytest.raises(ss.errors.SketchFormatError):
        ss.Sketch.from_bytes(data + b"\0")


@pytest.mark.parametrize("m", [10**12, 2**24, 2**24 + 1, 10**30])
def test_a_header_that_announces_too_much_is_refused_at_once(m):
    """Digest and all are valid: the lie itself has to be noticed, before any allocation."""
    spec = {"schema": 1, "n_features": 2, "sketch_size": m, "bandwidth": 0.3}
    header = {"count": 1, "fingerprint": "0" * 32, "n_invalid": 0, "spec": spec}

    tracemalloc.start()
    with pytest.raises(ss.errors.SketchFormatError):
        ss.Sketch.from_bytes(forge(header, b"\0" * 64))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < CONSTANT


def test_a_header_length_beyond_the_file_is_refused():
    data = struct.pack("<8sHHI", file_format.MAGIC, 1, 0, 2**23) + b"{}" * 50

    with pytest.raises(ss.errors.SketchFormatError, match="header is longer than the file"):
        ss.Sketch.from_bytes(data)


SPEC_TEXT = (
    b'{"bandwidth":' + b"[" * 900 + b"]" * 900 + b',"n_features":2,"schema":1,"sketch_size":3}'
)
NESTED = b'{"count":0,"fingerprint":"' + b"0" * 32 + b'","n_invalid":0,"spec":' + SPEC_TEXT + b"}"
LARGEST = (2**127 - 1).to_bytes(16, "little", signed=True)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"nan", b"[" * 100_000, b"\xff", b'{"count":1}', NESTED]
)
def test_a_header_that_is_no_json_object_is_refused(text):
    with pytest.raises(ss.errors.SketchFormatError):
        ss.Sketch.from_bytes(forge(text))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        *[({name: x}, "must hold exactly") for name in ("count", "n_invalid") for x in (True, 1.5)],
        *[({"spec": []}, "must hold exactly"), ({"extra": 0}, "must hold exactly")],
        *[({"count": x}, "not those of any rows") for x in (-1, 2**62)],
        *[({"n_invalid": x}, "not those of any rows") for x in (-3, 2**62)],
        ({"spec": {"schema": 1}}, "n_features"),
        *[
            ({"fingerprint": x}, "fingerprint")
            for x in ("", "zz" * 16, "AB" * 16, "a" * 31 + "\x1b")
        ],
    ],
)
def test_a_header_that_makes_no_sense_is_refused(change, words, spec, X):
    header, payload = header_of(ss.sketch(X, spec).to_bytes())

    with pytest.raises(ss.errors.SketchFormatError, match=words):
        ss.Sketch.from_bytes(forge(header | change, payload))


@pytest.mark.parametrize(
    ("forged", "words"),
    [
        (lambda h, p: forge(h, p, version=2), r"format version 2, .* Upgrade sketchshift"),
        (lambda h, p: forge(h, p, version=0), "prefix of the sketch file is damaged"),
        (lambda h, p: forge(h, p, zero=1), "prefix of the sketch file is damaged"),
        # equal sketches have equal bytes: there is one way to write a header
        (lambda h, p: forge(json.dumps(h, indent=1).encode(), p), "canonical"),
        # a total larger than the weight, or a weight that could overflow the next sum
        (lambda h, p: forge(h, struct.pack("<q", 2**62) + p[8:]), "not those of any rows"),
        (lambda h, p: forge(h, p[:-16] + LARGEST), "not those of any rows"),
    ],
)
def test_files_with_a_valid_digest_are_refused_for_what_they_say(forged, words, spec, X):
    with pytest.raises(ss.errors.SketchFormatError, match=words):
        ss.Sketch.from_bytes(forged(*header_of(ss.sketch(X, spec).to_bytes())))


def test_saving_replaces_what_a_link_points_at_and_leaves_nothing_else(tmp_path, spec, X):
    path, link = tmp_path / "day1.sketch", tmp_path / "link.sketch"
    link.symlink_to(path)
    ss.sketch(X[:10], spec).save(link)
    path.chmod(0o600)

    ss.sketch(X, spec).save(link)

    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert ss.load(path) == ss.sketch(X, spec)
    assert {p.name for p in tmp_path.iterdir()} == {"day1.sketch", "link.sketch"}
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        ss.sketch(X, spec).save(tmp_path / "nowhere" / "day1.sketch")


def test_a_failed_save_keeps_the_old_file(tmp_path, spec, X, monkeypatch):
    """The disk fills up while the new file is written."""
    path = tmp_path / "day1.sketch"
    old = ss.sketch(X[:10], spec)
    old.save(path)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_writing.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        ss.sketch(X, spec).save(path)

    monkeypatch.undo()
    assert ss.load(path) == old
    assert [p.name for p in tmp_path.iterdir()] == ["day1.sketch"]


def test_a_sketch_whose_frequencies_cannot_be_drawn_again_says_so(spec, X):
    """Written elsewhere with another stream: it may be merged with its like, not decoded."""
    header, payload = header_of(ss.sketch(X, spec).to_bytes())
    foreign = ss.Sketch.from_bytes(forge(header | {"fingerprint": "ab" * 16}, payload))

    assert (foreign + foreign).count == 2 * len(X)
    with pytest.raises(ss.errors.SketchFormatError, match="frequencies abababab"):
        _ = foreign.frequencies
