from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.errors import SpecError
from sketchshift.features import Axes, Ball, Cells, Range, Rows, SketchSpec, Spectrum, Waves
from sketchshift.features.rows import unit_for
from sketchshift.recipe import Log, Recipe

BASE = {"n_features": 2, "sketch_size": 20, "bandwidth": 0.3}


def spec_of(**changes):
    return SketchSpec(**(BASE | changes))


LENGTHS = st.floats(1e-20, 1e20)
NUMBERS = st.floats(-1e150, 1e150)
SCALES = st.floats(1e-150, 1e150)


@st.composite
def specs(draw):
    """Any spec of a few columns (or 64, structured) and few frequencies."""
    structured = draw(st.booleans())
    d = 64 if structured else draw(st.integers(1, 5))
    is_range = draw(st.booleans())
    low = draw(st.floats(1e-20, 1e19))
    high = low * draw(st.floats(1.001, 10))
    return SketchSpec(
        n_features=d,
        sketch_size=draw(st.integers(1, 30)),
        bandwidth=Range(low, high, draw(st.floats(0, 1))) if is_range else low,
        seed=draw(st.integers(0, 2**64 - 1)),
        law=draw(st.sampled_from(["gaussian", "folded_gaussian", "adapted_radius"])),
        structured=structured,
        columns=draw(st.none() | st.lists(st.text(), min_size=d, max_size=d, unique=True)),
        center=draw(st.none() | st.lists(NUMBERS, min_size=d, max_size=d)),
        scale=draw(st.none() | SCALES | st.lists(SCALES, min_size=d, max_size=d)),
        precision=draw(st.sampled_from(["float32", "float64"])),
    )


@settings(max_examples=25)
@given(specs())
def test_a_spec_survives_its_canonical_json(spec):
    """Sorted keys, no blanks outside strings, ASCII, and nothing that is at its default.

    Read again, the spec is equal, and so are its fingerprint and its JSON.
    """
    text = spec.to_json()
    read = SketchSpec.from_json(text)

    assert read == spec
    assert hash(read) == hash(spec)
    assert read.to_json() == text
    assert read.fingerprint == spec.fingerprint
    content = json.loads(text)
    assert text == json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert text.isascii()
    assert content.pop("schema") == 1
    for own, default in ((spec.rows, Rows(1)), (spec.waves, Waves(1, 1.0))):
        written = content.pop("rows" if own is spec.rows else "waves")
        for name in [field.name for field in dataclasses.fields(own)][2:]:
            assert (name in written) == (getattr(own, name) != getattr(default, name))
    assert not content


def test_the_json_of_a_small_spec_is_this():
    """Golden: files and fingerprints are made of it."""
    spec = spec_of(seed=7, scale=2, center=[0, 1.5])

    assert spec.to_json() == (
        '{"rows":{"center":[0.0,1.5],"n_features":2,"scale":2.0,"unit":0.125},"schema":1,'
        '"waves":{"bandwidth":0.3,"seed":7,"size":20}}'
    )


def test_a_fingerprint_never_changes():
    """Golden: if this fails, no sketch on disk can be merged with a new one."""
    assert spec_of(seed=7).fingerprint == "e5016018944d120d308b1e4136b495c4"


NAMES = tuple(f"c{k}" for k in range(64))
FULL = SketchSpec.of(
    Rows(64, NAMES, (0.5,) * 64, 2.0, unit_for(0.3, 64)),
    Waves(20, Range(0.3, 5.0, 0.1), 1, structured=True),
)


def rows_of(**changes):
    return {"rows": dataclasses.replace(FULL.rows, **changes)}


def waves_of(**changes):
    return {"waves": dataclasses.replace(FULL.waves, **changes)}


CHANGES = {
    "n_features": rows_of(n_features=65, columns=None, center=None),
    "a name": rows_of(columns=["x", *NAMES[1:]]),
    "order of names": rows_of(columns=NAMES[::-1]),
    "recipe": rows_of(columns=Recipe([Log(name) for name in NAMES])),
    "center": rows_of(center=[0.5] * 63 + [0.6]),
    "scale": rows_of(scale=np.nextafter(2.0, 3)),
    "scales": rows_of(scale=[2.0] * 64),
    "unit": rows_of(unit=2.0),
    "sphere": rows_of(onto="sphere"),
    "ball": rows_of(onto=Ball("declared", 3.0)),
    "size": waves_of(size=21),
    "bandwidth": waves_of(bandwidth=Range(0.3, 5.1, 0.1)),
    "one bandwidth": waves_of(bandwidth=0.3),
    "beyond": waves_of(bandwidth=Range(0.3, 5.0, 0.2)),
    "seed": waves_of(seed=2),
    "law": waves_of(law="folded_gaussian"),
    "structured": waves_of(structured=False),
    "precision": waves_of(precision="float64"),
    "cells": {"cells": Cells.of(np.eye(3, 64))},
    "axes": waves_of(structured=False) | {"spread": Axes.of(np.eye(64)[:63])},
    "no moments": {"spread": None},
    "noise": {"noise": Spectrum((0.2, 0.1), 30.0)},
    "families": {"families": {"other": {"places": [1, 2]}}},
}


def test_every_change_changes_the_fingerprint_and_the_description():
    """Whatever says what the numbers mean is covered: sketches of unlike specs never merge.

    Messages about two specs show what differs, not their fingerprints alone. A field that is added
    later must be added to ``CHANGES``.
    """
    for name, change in CHANGES.items():
        other = FULL.replaced(**change)

        assert other != FULL
        assert other.fingerprint != FULL.fingerprint
        assert len(other.fingerprint) == 32
        assert SketchSpec.from_json(other.to_json()) == other
        line, _, digits = other.describe().partition(", fingerprint=")
        assert digits == other.fingerprint[:8]
        is_shown = not FULL.describe().startswith(line)
        assert is_shown == (name != "center"), name  # of long lists only the start is shown

    changed = {name for change in CHANGES.values() for name in change}
    assert changed == {field.name for field in dataclasses.fields(SketchSpec)}
    for part, own in (("rows", FULL.rows), ("waves", FULL.waves)):
        for field in dataclasses.fields(own):
            values = [
                getattr(change[part], field.name) for change in CHANGES.values() if part in change
            ]
            assert any(value != getattr(own, field.name) for value in values), field.name


PLAIN = {
    "bandwidth": (0.5, 2.0),
    "seed": 7,
    "columns": ("a", "b"),
    "center": (0.0, -2.0),
    "scale": (3.0, 0.25),
}
OTHERS = {
    "n_features": np.int64(2),
    "sketch_size": np.uint16(20),
    "bandwidth": np.array([0.5, 2.0], dtype=np.float32),
    "seed": np.uint64(7),
    "columns": iter(["a", "b"]),
    "center": np.array([-0.0, -2.0], dtype=np.float32),  # would be written otherwise
    "scale": np.array([3, 0.25], dtype=np.float32),
}


def test_numbers_and_sequences_of_any_kind_are_kept_as_those_of_python():
    """Whatever made them, equal numbers give equal specs, JSON and fingerprints."""
    spec = spec_of(**PLAIN)
    other = spec_of(**OTHERS)

    assert other == spec
    assert other.to_json() == spec.to_json()
    assert other.fingerprint == spec.fingerprint
    assert type(other.n_features) is int
    assert type(other.waves.bandwidth.low) is float


def test_a_prefix_longer_than_the_spec_is_refused():
    text = "The 'sketch_size' parameter of SketchSpec.prefix must be an integer from 1 to 20."
    for size in (0, 21, 3.0, True):
        with pytest.raises(SpecError, match=f"^{re.escape(text)}"):
            spec_of().prefix(size)


@settings(max_examples=40)
@given(specs())
def test_rows_within_reach_keep_phases_and_integers_in_range(spec):
    """Phases below 2**20 turns, moments' integers below 2**40, frequencies finite and not zero.

    The unit of moments is the power of two below bandwidth / sqrt(d): in units of the data's
    spread along one axis, and exact to divide by. The range of bandwidths is that of float32: 1e-20
    to 1e20, times 100 for far ones.
    """
    assert 0 < spec.reach < math.inf
    assert spec.reach * spec.frequencies.largest <= 2**20 * (1 + 1e-15)
    assert spec.reach / spec.rows.unit * 2**16 <= 2**40 * (1 + 1e-15)
    assert np.float32(spec.reach) < np.inf

    low = spec.bandwidths[0]
    assert math.frexp(spec.rows.unit)[0] == 0.5
    assert spec.rows.unit <= low / math.sqrt(spec.n_features) < 2 * spec.rows.unit

    turns = spec.frequencies.turns
    assert np.isfinite(turns).all()
    assert (turns != 0).any(axis=0).all()


def test_specs_are_hashable_picklable_and_copiable():
    """Also after frequencies and fingerprint have been computed, which stay behind.

    The receiver of a spec must draw the frequencies to know its fingerprint: another version of the
    library cannot inherit it.
    """
    spec = FULL
    for fingerprint in (None, spec.fingerprint):
        copies = [pickle.loads(pickle.dumps(spec)), copy.copy(spec), copy.deepcopy(spec)]

        assert {spec, *copies} == {spec}
        assert len(pickle.dumps(spec)) < 10_000
        for other in copies:
            assert "fingerprint" not in vars(other)
            assert fingerprint in (None, other.fingerprint)
            assert other.frequencies.to_bytes() == spec.frequencies.to_bytes()


def test_a_spec_is_shown_in_one_line():
    spec = ss.plan(np.random.default_rng(0).normal(size=(2000, 3)), 5, seed=0)

    line = f"SketchSpec(3 columns, 80 waves, 20 cells, {spec.fingerprint[:8]})"
    assert repr(spec) == line
    assert repr(spec.replaced(waves=None)).startswith("SketchSpec(3 columns, 20 cells, ")


def test_families_that_nobody_registered_travel_and_are_refused_when_rows_come():
    spec = spec_of().replaced(families={"unheard": {"a": [1.5], "b": None}})

    assert SketchSpec.from_json(spec.to_json()) == spec
    with pytest.raises(SpecError, match="'unheard', a family that is not known here"):
        ss.sketch(np.eye(2), spec)


def test_equal_specs_share_arrays_that_nobody_can_write_to_and_have_no_negative_zeros():
    spec = spec_of(center=[0.0, 1.0])
    for array in (spec.rows.center_vector, spec.rows.per_unit, spec.frequencies.turns):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1.0
    for zeros in (
        [{"noise": Spectrum((0.5,), 3.0, zero)} for zero in (0.0, -0.0)],
        [{"waves": Waves(9, Range(1.0, 2.0, zero))} for zero in (0.0, -0.0)],
        [{"families": {"other": {"x": zero}}} for zero in (0.0, -0.0)],
    ):
        one, other = (spec.replaced(**change) for change in zeros)
        assert one == other
        assert one.fingerprint == other.fingerprint
        assert "-0.0" not in other.to_json()


def test_a_spec_is_replaced_by_its_parts_alone():
    with pytest.raises(SpecError, match=r"has the parts rows, waves, .* and not sketch_size"):
        spec_of().replaced(sketch_size=3)
    with pytest.raises(SpecError, match="'families' parameter of SketchSpec"):
        SketchSpec.of(spec_of().rows, families=(("other", "{nope"),))


def test_structured_frequencies_are_written_out_for_nobody_who_does_not_ask():
    """Of 784 columns and 8192 frequencies they have 26 MB; a fingerprint needs 0.1."""
    spec = SketchSpec(70, 100, 4.0, structured=True, seed=1234)
    assert spec.fingerprint
    assert spec.reach > 0.0
    assert "turns" not in vars(spec.frequencies.structure)
    for array in (spec.frequencies.turns, spec.frequencies.structure.signs):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1.0
