"""The private sketch as an object: it adds, travels and decodes, and keeps apart from raw ones."""

from __future__ import annotations

import json
import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sketchshift as ss
from sketchshift.errors import DataError, IncompatibleSketchesError, PrivacyError, SketchFormatError
from sketchshift.features import Cells
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch.file import PRIVATE_MAGIC, pack, unpack


@pytest.fixture
def with_cells(public_spec):
    return public_spec.replaced(cells=Cells.of(np.eye(3)))


@pytest.fixture
def private(X, with_cells, release):
    return release(ss.sketch(X, with_cells))


def altered(private, payload=None, **changes):
    """Its file with other fields in the header or another payload, and a right digest."""
    header, own = unpack(private.to_bytes(), PRIVATE_MAGIC)
    return pack(PRIVATE_MAGIC, json.loads(header) | changes, own if payload is None else payload)


def test_it_is_written_and_read(private, tmp_path):
    private.save(tmp_path / "p.sketch")
    read = ss.privacy.load(tmp_path / "p.sketch")

    assert read.to_bytes() == private.to_bytes() == pickle.loads(pickle.dumps(private)).to_bytes()
    assert (read.ledger, read.statement) == (private.ledger, private.statement)
    assert re.match(r"epsilon 1\.0 at delta 1e-08; about [\d,]+ \+- 54 rows", read.statement)
    assert read.statement in repr(read)


def test_each_reader_names_the_other(private, raw):
    with pytest.raises(SketchFormatError, match=r"private sketch\. Read it with ss\.load"):
        ss.Sketch.from_bytes(private.to_bytes())
    with pytest.raises(SketchFormatError, match=r"raw sketch, .* Read it with ss\.load"):
        PrivateSketch.from_bytes(raw.to_bytes())


def test_an_unsound_header_is_refused(private, raw, release):
    waves = release(raw)
    plain = json.loads(raw.spec.replaced(rows=replace(raw.spec.rows, onto=None)).to_json())
    for sketch, changes, words in (
        (private, {"scale": 2.0**-21}, "must be positive numbers in range"),
        (private, {"scale": 2.0**101}, "must be positive numbers in range"),
        (private, {"scale": 1}, "must hold exactly"),
        (private, {"count_factor": 2**62}, "must be positive numbers in range"),
        (private, {"count_factor": 0}, "must be positive"),
        (private, {"cell_factor": 2**62}, "must be positive"),
        (private, {"cell_factor": 0}, "must be positive"),
        (waves, {"cell_factor": 2}, "must be positive"),
        (private, {"ledger": {}}, "no usable ledger"),
        (private, {"spec": {}}, "no usable spec"),
        (waves, {"spec": plain}, "that has a ball"),
        (private, {"fingerprint": "x"}, "32 hexadecimal digits"),
        (private, {"rows": 3}, "must hold exactly"),
    ):
        with pytest.raises(SketchFormatError, match=words):
            PrivateSketch.from_bytes(altered(sketch, **changes))


def test_integers_that_no_release_has_are_refused(private):
    """Two of 2**62 would not add up in int64."""
    numbers = private._totals.vector
    for at, number in ((0, -(2**62)), (-1, 2**62), (-1, 2**63 - 1)):
        forged = numbers.copy()
        forged[at] = number
        with pytest.raises(SketchFormatError, match=r"reach 2\*\*62"):
            PrivateSketch.from_bytes(altered(private, forged.tobytes()))
    with pytest.raises(SketchFormatError, match="bytes of integers"):
        PrivateSketch.from_bytes(altered(private, numbers[1:].tobytes()))


def test_sums_and_differences_have_the_noise_and_cost_of_both_and_travel(X, with_cells, release):
    a, b = (release(ss.sketch(rows, with_cells)) for rows in (X[:400], X[400:]))
    one, other = a._totals, b._totals

    for found, sign in ((sum([a, b]), 1), (a - b, -1)):
        assert_array_equal(found._totals.vector, one.vector + sign * other.vector)
        assert_allclose(found.cells.sums, a.cells.sums + sign * b.cells.sums)
        assert found._totals.scale == math.hypot(one.scale, other.scale)
        assert found.ledger == a.ledger + b.ledger
        assert PrivateSketch.from_bytes(found.to_bytes()).to_bytes() == found.to_bytes()
    assert a.merge(b, disjoint=True).ledger == a.ledger.beside(b.ledger)


def test_a_prefix_is_free(private):
    part = private.prefix(20)

    assert (part.ledger, part.noise_std) == (private.ledger, private.noise_std)
    assert part.fingerprint == private.spec.prefix(20).fingerprint
    assert_allclose(part.z * math.sqrt(20), private.z[:20] * math.sqrt(50))
    assert_array_equal(part.cells.sums, private.cells.sums)
    assert PrivateSketch.from_bytes(part.to_bytes()).to_bytes() == part.to_bytes()


def test_what_does_not_add_up_is_refused(private, raw, X, public_spec, release):
    other = release(ss.sketch(X, public_spec.replaced(waves=replace(public_spec.waves, seed=1))))
    for mix, words in (
        (lambda: private + raw, "what the private one hides"),
        (lambda: raw + private, "what the private one hides"),
        (lambda: private - raw, "what the private one hides"),
        (lambda: raw - private, "what the private one hides"),
        (lambda: private.merge(raw), "what the private one hides"),
        (lambda: private + other, r"different plans[\s\S]*one plan, then"),
        (lambda: private - private, "rows would count twice"),
    ):
        with pytest.raises(IncompatibleSketchesError, match=words):
            mix()


def test_what_was_not_released_is_not_there(private):
    for name in ("mean", "covariance", "variance", "n_invalid", "update"):
        with pytest.raises(AttributeError, match=f"a private sketch has no '{name}': .* Decode it"):
            getattr(private, name)


def test_noise_can_leave_no_rows(public_spec, release, no_noise):
    empty = release(ss.sketch(np.full((3, 3), np.nan), public_spec))

    assert empty.count == 0
    with pytest.raises(PrivacyError, match="no mean of nothing"):
        _ = empty.z
    with pytest.raises(DataError, match="nothing to decode"):
        ss.decode(empty, 2)


def test_numbers_that_no_cluster_explains_are_not_decoded(raw, release):
    """Waves of zero are those of no rows, whatever the number of rows says."""
    private = release(raw)
    private._totals.parts["waves"][:] = 0
    silent = replace(private, _totals=replace(private._totals, scale=1.0))

    with pytest.raises(DataError, match="no cluster of any weight is like this sketch"):
        ss.decode(silent, 2)
