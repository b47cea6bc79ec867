"""Slices as bytes: any integers, whichever digits they have, in the fewest bytes."""

from __future__ import annotations

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.errors import SketchFormatError
from sketchshift.features import Cells
from sketchshift.sketch.packing import pack_slices, unpack_slices
from sketchshift.sketch.totals import Entries, Layout, Totals

SPEC = ss.SketchSpec(n_features=1, sketch_size=2, bandwidth=1.0)
D = 6  # integers of moments: 2 weights, 3 sums and rests, a product


@st.composite
def integers(draw, bits):
    """At the borders of bytes and of digits, and in between."""
    power = draw(st.integers(0, bits))
    near = draw(st.integers(-2, 2)) + draw(st.sampled_from([0, 2**31, -(2**31), 2**32]))
    number = draw(st.sampled_from([1, -1])) * 2**power + near
    most = 2**bits
    return max(-most, min(most - 1, number))


def digits_of(number, n):
    found = []
    for _ in range(n):
        found.append((number + 2**31) % 2**32 - 2**31)
        number = (number - found[-1]) >> 32
    assert number == 0
    return found


def plain(groups):
    """The widths and the integers of groups, number by number."""
    widths = [max(n.bit_length() if n >= 0 else (~n).bit_length() for n in g) for g in groups]
    widths = [w // 8 + 1 for w in widths]
    octets = (
        n.to_bytes(w, "little", signed=True) for w, g in zip(widths, groups, strict=True) for n in g
    )
    return bytes(widths), b"".join(octets)


@pytest.fixture
def anything_is_sound(monkeypatch):
    monkeypatch.setattr(Totals, "are_sound", lambda self: np.ones(len(self), dtype=bool))


@given(st.lists(st.tuples(*[integers(62)] * 4, *[integers(125)] * D), min_size=1, max_size=5))
@settings(max_examples=150)
def test_integers_of_any_size_are_written_as_the_format_says_and_read_back(slices):
    layout, fingerprint, n = Layout.of(SPEC), "ab" * 16, len(slices)
    totals = Totals.zero(layout, n)
    totals.counts[:] = np.arange(2 * n).reshape(n, 2)
    for i, numbers in enumerate(slices):
        totals.dense["waves"][i] = np.ravel([digits_of(x, 2) for x in numbers[:4]])
        totals.dense["moments"][i] = np.ravel([digits_of(x, 4) for x in numbers[4:]])

    ((data, ends),) = pack_slices(totals, fingerprint)

    for i, x in enumerate(slices):
        widths, octets = plain([x[:4], x[4:5], x[5:6], x[6:7], x[7:8], x[8:9], x[9:]])
        body = struct.pack("<2q", 2 * i, 2 * i + 1) + widths + octets
        digest = hashlib.blake2b(body, digest_size=16, key=bytes.fromhex(fingerprint)).digest()
        assert data[ends[i] : ends[i + 1]].tobytes() == body + digest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Totals, "are_sound", lambda self: np.ones(len(self), dtype=bool))
        found = unpack_slices(data, ends[:-1], ends[1:], layout, fingerprint)
    assert (found.counts == totals.counts).all()
    for name, own in totals.dense.items():
        assert (found.dense[name] == own).all()


def test_entries_that_are_zero_twice_there_or_out_of_order_are_refused_by_slice(anything_is_sound):
    spec = SPEC.replaced(cells=Cells.of(np.arange(5.0)[:, None]))
    layout = Layout.of(spec)

    def packed(names, digits):
        totals = Totals.zero(layout, 3)
        names = np.array([[1, name] for name in names], dtype=np.int64)
        own = np.zeros((len(names), layout.by_name["cells"].width), dtype=np.int32)
        own[:, 0] = digits
        totals.entries["cells"] = Entries(names, own)
        ((data, ends),) = pack_slices(totals, spec.fingerprint)
        return unpack_slices(
            data, ends[:-1], ends[1:], layout, spec.fingerprint, "slice {}: ".format
        )

    assert packed([0, 2, 4], [1, 2, 3]).entries["cells"].names.tolist() == [[1, 0], [1, 2], [1, 4]]
    for names, digits in (([2, 0], [1, 1]), ([2, 2], [1, 1]), ([1, 2], [1, 0]), ([0, 5], [1, 1])):
        with pytest.raises(SketchFormatError, match=r"slice 1: .* not written in the canonical"):
            packed(names, digits)
