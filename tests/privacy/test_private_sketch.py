"""The private sketch as an object: it adds, travels and decodes, and keeps apart from raw ones."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.privacy import PrivateSketch
from sketchshift.sketch.file import PRIVATE_MAGIC, pack, unpack


@pytest.fixture
def private(raw, release) -> PrivateSketch:
    return release(raw)


def altered(data: bytes, **changes) -> bytes:
    """The file with other fields in its header, and a right digest."""
    header, payload = unpack(data, PRIVATE_MAGIC)
    return pack(PRIVATE_MAGIC, json.loads(header) | changes, bytes(payload))


def test_it_says_what_is_promised(private):
    pattern = r"epsilon 1\.0 at delta 1e-08; about [\d,]+ \+- 54 rows"

    assert re.fullmatch(pattern, private.statement)
    assert private.statement in repr(private)


def test_it_is_written_and_read(private, tmp_path):
    private.save(tmp_path / "p.sketch")
    read = ss.privacy.load(tmp_path / "p.sketch")

    assert read.to_bytes() == private.to_bytes()
    assert read.ledger == private.ledger
    assert pickle.loads(pickle.dumps(private)).to_bytes() == private.to_bytes()
    assert copy.deepcopy(private).to_bytes() == private.to_bytes()


def test_each_reader_names_the_other(private, raw, tmp_path):
    private.save(tmp_path / "private.sketch")
    raw.save(tmp_path / "raw.sketch")

    with pytest.raises(
        ss.errors.SketchFormatError, match=r"private sketch\. Read it with ss\.load"
    ):
        ss.Sketch.from_bytes(private.to_bytes())
    with pytest.raises(ss.errors.SketchFormatError, match=r"raw sketch, .* Read it with ss\.load"):
        ss.privacy.load(tmp_path / "raw.sketch")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scale": 0.0}, "must be positive"),
        ({"scale": 1}, "must hold exactly"),
        ({"scale": 1.7e308}, "must be positive numbers in range"),
        ({"scale": 1e200}, "must be positive numbers in range"),
        ({"scale": 5e-324}, "must be positive numbers in range"),
        ({"count_factor": 2**62}, "must be positive numbers in range"),
        ({"count_factor": 0}, "must be positive"),
        ({"ledger": {}}, "no usable ledger"),
        ({"spec": {}}, "no usable spec"),
        ({"fingerprint": "x"}, "32 hexadecimal digits"),
        ({"rows": 3}, "must hold exactly"),
    ],
)
def test_an_unsound_header_is_refused(private, changes, words):
    with pytest.raises(ss.errors.SketchFormatError, match=words):
        PrivateSketch.from_bytes(altered(private.to_bytes(), **changes))


@pytest.mark.parametrize("number", [0.0, -1.0, 5e-324, 1e-300, 1e300, 1.7e308, 10**400])
@pytest.mark.parametrize(
    ("place", "name"),
    [("ledger", "delta"), ("spec", "rho"), ("ledger", "sensitivity"), ("spec", "scale")],
)
def test_a_charge_that_nothing_can_be_made_of_is_refused(private, place, name, number):
    """In the ledger, or in the origin of the spec."""
    data = private.to_bytes()
    header = json.loads(unpack(data, PRIVATE_MAGIC)[0])
    charges = [header["ledger"]["charges"][0] | {name: number}]
    if place == "ledger":
        header["ledger"]["charges"] = charges
    else:
        header["spec"]["origin"] = {"kind": "private", "radius": 10.0, "charges": charges}

    with pytest.raises(
        ss.errors.SketchFormatError, match=f"no usable {place}: The '{name}' parameter"
    ):
        PrivateSketch.from_bytes(altered(data, **header))


def test_a_spec_that_no_release_has_is_refused(private):
    spec = json.loads(replace(private.spec, origin=None).to_json())

    with pytest.raises(ss.errors.SketchFormatError, match="that has an origin"):
        PrivateSketch.from_bytes(altered(private.to_bytes(), spec=spec))


@pytest.mark.parametrize("number", [-(2**63), -(2**62), 2**62, 2**63 - 1])
@pytest.mark.parametrize("at", [0, -1])
def test_integers_that_no_release_has_are_refused(private, number, at):
    """Two of them would not add up in int64."""
    header, payload = unpack(private.to_bytes(), PRIVATE_MAGIC)
    numbers = np.frombuffer(payload, dtype="<i8").copy()
    numbers[at] = number
    forged = pack(PRIVATE_MAGIC, json.loads(header), numbers.tobytes())

    with pytest.raises(ss.errors.SketchFormatError, match=r"reach 2\*\*62"):
        PrivateSketch.from_bytes(forged)


def test_a_damaged_file_is_refused(private):
    data = bytearray(private.to_bytes())
    data[-40] ^= 1
    with pytest.raises(ss.errors.SketchFormatError, match="digest does not match"):
        PrivateSketch.from_bytes(bytes(data))
    header, payload = unpack(private.to_bytes(), PRIVATE_MAGIC)
    short = pack(PRIVATE_MAGIC, json.loads(header), bytes(payload[:-8]))
    with pytest.raises(ss.errors.SketchFormatError, match="bytes of integers"):
        PrivateSketch.from_bytes(short)


def test_sums_have_the_rows_noise_and_cost_of_both(X, public_spec, release):
    a, b = (release(ss.sketch(rows, public_spec)) for rows in (X[:400], X[400:]))

    both = sum([a, b])

    assert both.total_weight == pytest.approx(a.total_weight + b.total_weight)
    assert both.count_std == pytest.approx(math.sqrt(2) * a.count_std)
    assert both.ledger.rho == pytest.approx(a.ledger.rho + b.ledger.rho)
    assert a.merge(b, disjoint=True).ledger.rho == max(a.ledger.rho, b.ledger.rho)
    rest = both.total_weight - b.total_weight
    np.testing.assert_array_equal(
        a._totals.waves + b._totals.waves, a.merge(b)._totals.waves, strict=True
    )
    assert rest == pytest.approx(a.total_weight)


def test_a_difference_has_the_noise_and_cost_of_both(X, public_spec, release):
    a, b = (release(ss.sketch(rows, public_spec)) for rows in (X, X[400:]))

    rest = a - b

    assert rest.total_weight == pytest.approx(a.total_weight - b.total_weight)
    assert rest.count_std == pytest.approx(math.sqrt(2) * a.count_std)
    assert rest.ledger.rho == pytest.approx(a.ledger.rho + b.ledger.rho)


def test_a_prefix_is_free(private):
    part = private.prefix(20)

    assert part.ledger == private.ledger
    assert part.fingerprint == private.spec.prefix(20).fingerprint
    np.testing.assert_allclose(part.z * math.sqrt(20), private.z[:20] * math.sqrt(50))
    assert part.noise_std == private.noise_std


def test_raw_and_private_sketches_do_not_mix(private, raw):
    for mix in (
        lambda: private + raw,
        lambda: raw + private,
        lambda: private - raw,
        lambda: raw - private,
        lambda: private.merge(raw),
    ):
        with pytest.raises(
            ss.errors.IncompatibleSketchesError, match=r"what the private one hides"
        ):
            mix()


def test_other_specs_do_not_merge(private, X, public_spec, release):
    other = release(ss.sketch(X, replace(public_spec, seed=1)))

    with pytest.raises(
        ss.errors.IncompatibleSketchesError, match=r"different plans[\s\S]*one plan, then"
    ):
        private + other


def test_moments_are_not_known_of_a_private_sketch(raw, private):
    assert private.moments is None
    assert raw.moments is not None


def test_a_release_is_not_counted_twice(private):
    with pytest.raises(
        ss.errors.IncompatibleSketchesError, match=r"rows would count twice\. Take every"
    ):
        private + private


@pytest.mark.parametrize("name", ["mean", "covariance", "variance", "n_invalid", "update"])
def test_what_was_not_released_is_not_there(private, name):
    with pytest.raises(AttributeError, match=f"a private sketch has no '{name}': .* Decode it"):
        getattr(private, name)


def test_equal_bytes_are_not_equal_sketches(private):
    """A release is one event; whoever compares raw bits compares noise."""
    assert private != PrivateSketch.from_bytes(private.to_bytes())


def test_noise_can_leave_no_rows(public_spec, release, no_noise):
    empty = release(ss.sketch(np.full((3, 3), np.nan), public_spec))

    assert empty.count == 0
    with pytest.raises(ss.errors.PrivacyError, match="no mean of nothing"):
        _ = empty.z
    with pytest.raises(ss.errors.DataError, match="nothing to decode"):
        ss.decode(empty, 2)


def test_numbers_that_no_cluster_explains_are_not_decoded(private):
    """Waves of zero are those of no rows, whatever the number of rows says."""
    waves = np.zeros_like(private._totals.waves)
    totals = replace(private._totals, parts={"waves": waves}, scale=1.0)
    silent = replace(private, _totals=totals)

    with pytest.raises(ss.errors.DataError, match="no cluster of any weight is like this sketch"):
        ss.decode(silent, 2)
