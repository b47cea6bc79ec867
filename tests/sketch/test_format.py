"""The file: intact or refused, never believed."""

from __future__ import annotations

import hashlib
import json
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift import _writing
from sketchshift.features import Axes, Cells
from sketchshift.sketch import file as file_format

CELLS = Cells.of([[-0.5, 0.0], [0.25, 0.5]], unit=2.0**-10)
SPECS = {
    "waves": ss.SketchSpec(2, 8, (0.1, 2.0), far_share=0.25, scale=(1.5, 3.0)),
    "cells": ss.SketchSpec(2, 8, 0.5, cells=CELLS),
    "axes": ss.SketchSpec(2, 4, 0.5, moments="none", axes=Axes.of([[0.6, 0.8]]), cells=CELLS),
}
CONSTANT = 1 << 14  # bytes a reader may allocate beside the file: JSON, exceptions; used: 2 kB


def file_of(name: str) -> bytes:
    """A sketch of weighted rows in cells and beyond them."""
    largest = 2.0 if name == "waves" else 1e9
    factors = np.tile([0.01, 0.5, 1.0, 2.0, largest], 4)
    X = np.linspace(-1.5, 1.5, 40).reshape(20, 2) * factors[:, None]
    return ss.sketch(X, SPECS[name], sample_weight=np.linspace(0, 3, len(X))).to_bytes()


def canonical(header: dict[str, object]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


def forge(header: dict[str, object] | bytes, payload: bytes, version: int = 1) -> bytes:
    """A file with a valid digest around any content."""
    text = header if isinstance(header, bytes) else canonical(header)
    body = struct.pack("<8sHHI", file_format.MAGIC, version, 0, len(text)) + text + payload
    return body + hashlib.blake2b(body, digest_size=32).digest()


def header_of(data: bytes) -> tuple[dict[str, object], bytes]:
    (length,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[16 : 16 + length]), data[16 + length : -32]


def test_what_is_written_is_read_back_equal(spec, X):
    s = ss.sketch(X, spec, sample_weight=np.linspace(0, 3, len(X)))

    back = ss.Sketch.from_bytes(s.to_bytes())

    assert back == s
    assert back.to_bytes() == s.to_bytes()
    assert back.spec == s.spec
    assert back.count == s.count
    np.testing.assert_array_equal(back.z, s.z)
    np.testing.assert_array_equal(back.covariance, s.covariance)


def test_an_empty_sketch_is_read_back_equal(spec):
    empty = ss.Sketcher(spec).sketch()

    assert ss.Sketch.from_bytes(empty.to_bytes()) == empty


def test_bytes_like_objects_are_read_too(spec, X):
    s = ss.sketch(X, spec)

    assert ss.Sketch.from_bytes(bytearray(s.to_bytes())) == s
    assert ss.Sketch.from_bytes(memoryview(s.to_bytes())) == s


@pytest.mark.parametrize("name", SPECS)
def test_every_flip_of_a_byte_is_noticed_and_allocates_little(name):
    data = bytearray(file_of(name))

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


@pytest.mark.parametrize("name", SPECS)
def test_every_truncation_is_noticed(name):
    data = file_of(name)

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


def test_a_newer_version_is_refused_by_its_number(spec, X):
    header, payload = header_of(ss.sketch(X, spec).to_bytes())

    with pytest.raises(
        ss.errors.SketchFormatError, match=r"format version 4, .* Upgrade sketchshift"
    ):
        ss.Sketch.from_bytes(forge(header, payload, version=4))


@pytest.mark.parametrize(
    "change",
    [
        {"count": -1},
        {"count": True},
        {"count": 1.5},
        {"n_invalid": -3},
        {"fingerprint": 7},
        {"spec": []},
        {"spec": {"schema": 1}},
        {"extra": 0},
    ],
    ids=str,
)
def test_a_header_that_makes_no_sense_is_refused(change, spec, X):
    header, payload = header_of(ss.sketch(X, spec).to_bytes())

    with pytest.raises(ss.errors.SketchFormatError):
        ss.Sketch.from_bytes(forge(header | change, payload))


@pytest.mark.parametrize("text", [b"", b"[]", b"nan", b"[" * 100_000, b"\xff", b'{"count":1}'])
def test_a_header_that_is_no_json_object_is_refused(text):
    with pytest.raises(ss.errors.SketchFormatError):
        ss.Sketch.from_bytes(forge(text, b""))


def test_integers_that_no_rows_could_leave_are_refused(spec, X):
    """A total larger than the weight, or a weight that could overflow the next sum."""
    header, payload = header_of(ss.sketch(X, spec).to_bytes())
    too_large = struct.pack("<q", 2**62) + payload[8:]

    with pytest.raises(ss.errors.SketchFormatError, match="not those of any rows"):
        ss.Sketch.from_bytes(forge(header, too_large))


def test_a_header_written_another_way_is_refused(spec, X):
    """Equal sketches have equal bytes: there is one way to write a header."""
    header, payload = header_of(ss.sketch(X, spec).to_bytes())

    with pytest.raises(ss.errors.SketchFormatError, match="canonical"):
        ss.Sketch.from_bytes(forge(json.dumps(header, indent=1).encode(), payload))


@pytest.mark.parametrize("fingerprint", ["", "zz" * 16, "AB" * 16, "a" * 31 + "\x1b"])
def test_a_fingerprint_that_is_none_is_refused(fingerprint, spec, X):
    header, payload = header_of(ss.sketch(X, spec).to_bytes())

    with pytest.raises(ss.errors.SketchFormatError):
        ss.Sketch.from_bytes(forge(header | {"fingerprint": fingerprint}, payload))


def test_forged_moments_and_counts_that_would_overflow_are_refused(spec, X):
    header, payload = header_of(ss.sketch(X, spec).to_bytes())
    largest = (2**127 - 1).to_bytes(16, "little", signed=True)

    for forged in (
        forge(header, payload[:-16] + largest),
        forge(header | {"count": 2**62}, payload),
        forge(header | {"n_invalid": 2**62}, payload),
    ):
        with pytest.raises(ss.errors.SketchFormatError, match="not those of any rows"):
            ss.Sketch.from_bytes(forged)


def test_a_deeply_nested_spec_is_refused():
    nested = b"[" * 900 + b"]" * 900
    spec = b'{"bandwidth":' + nested + b',"n_features":2,"schema":1,"sketch_size":3}'
    text = b'{"count":0,"fingerprint":"' + b"0" * 32 + b'","n_invalid":0,"spec":' + spec + b"}"

    with pytest.raises(ss.errors.SketchFormatError):
        ss.Sketch.from_bytes(forge(text, b""))


@given(data=st.binary(max_size=200))
@settings(deadline=None, max_examples=200)
def test_noise_is_never_a_sketch(data):
    for noise in (data, file_format.MAGIC + data):
        with pytest.raises(ss.errors.SketchFormatError):
            ss.Sketch.from_bytes(noise)


def test_load_names_the_damaged_file(tmp_path):
    path = tmp_path / "day1.sketch"
    path.write_bytes(b"not a sketch, but long enough to look at its first bytes")

    with pytest.raises(ss.errors.SketchFormatError, match=r"day1\.sketch: the first bytes"):
        ss.load(path)


def test_saving_replaces_the_file_and_leaves_nothing_else(tmp_path, spec, X):
    path = tmp_path / "day1.sketch"
    ss.sketch(X[:10], spec).save(path)
    s = ss.sketch(X, spec)

    s.save(path)

    assert ss.load(path) == s
    assert [p.name for p in tmp_path.iterdir()] == ["day1.sketch"]


def test_saving_follows_a_link(tmp_path, spec, X):
    target, link = tmp_path / "target.sketch", tmp_path / "link.sketch"
    link.symlink_to(target)
    s = ss.sketch(X, spec)

    s.save(link)

    assert link.is_symlink()
    assert ss.load(target) == s


def test_saving_into_a_folder_that_is_not_there_names_it(tmp_path, spec, X):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        ss.sketch(X, spec).save(tmp_path / "nowhere" / "day1.sketch")


def test_a_file_that_is_written_again_is_read_by_nobody_else_than_before(tmp_path, spec, X):
    path = tmp_path / "kept.sketch"
    ss.sketch(X, spec).save(path)
    path.chmod(0o600)

    ss.sketch(X[1:], spec).save(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert ss.load(path) == ss.sketch(X[1:], spec)


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
