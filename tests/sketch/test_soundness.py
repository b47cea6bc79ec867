"""What rows leave is sound, however extreme they are; what nobody's rows left is refused."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.sketch.file import encode
from sketchshift_papers import landmarks

SPECS = {
    "plain": ss.SketchSpec(n_features=2, sketch_size=6, bandwidth=1.0),
    "precise": ss.SketchSpec(n_features=2, sketch_size=6, bandwidth=0.7, precision="float64"),
    "far": ss.SketchSpec(n_features=3, sketch_size=6, bandwidth=(0.1, 3.0)),
    "one column": ss.SketchSpec(n_features=1, sketch_size=6, bandwidth=1e-20),
    "wide": ss.SketchSpec(n_features=70, sketch_size=6, bandwidth=1.0),
    "landmarks": ss.SketchSpec(n_features=2, sketch_size=3, bandwidth=0.7).replaced(
        families={"landmarks": landmarks.parameters(np.eye(2), 0.7)}
    ),
}
WEIGHTS = [0.0, 1.0, 2.0**-60, 2.0**-53, 2.0**-24, 2.0**-23, 0.3, 0.5, 1 - 2.0**-53, 1.5, 7.25]
WEIGHTS += [1e-3, 2.0**20 - 0.5, 2.0**39]


@st.composite
def weighted_rows(draw, spec):
    """A few rows, some at the border of what is reached, and their weights."""
    d, n = spec.n_features, draw(st.integers(1, 6))
    shares = draw(
        st.lists(st.sampled_from([0.0, 1e-9, 1e-3, 0.4, 0.99999]), min_size=n, max_size=n)
    )
    seed = draw(st.integers(0, 2**32))
    directions = np.random.default_rng(seed).normal(size=(n, d))
    directions[draw(st.integers(0, n - 1))] = np.eye(d)[0]
    rows = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    weights = draw(st.lists(st.sampled_from(WEIGHTS), min_size=n, max_size=n))
    return rows * (spec.reach * np.array(shares))[:, None], np.array(weights)


@pytest.mark.parametrize("name", SPECS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_rows_leave_is_sound_and_so_are_sums_and_parts(name, data):
    spec = SPECS[name]
    rows, weights = data.draw(weighted_rows(spec))
    cut = data.draw(st.integers(0, len(rows)))
    if weights.sum() >= 2.0**40:
        weights = weights / 4

    sketcher = ss.Sketcher(spec, n_threads=1).update(rows, sample_weight=weights)
    assert sketcher.sketch()._totals.is_sound()
    assert ss.Sketcher(spec).update(rows).sketch()._totals.is_sound()
    if weights.sum() < 2.0**39:
        twice = sketcher.sketch() + sketcher.sketch()
        assert twice._totals.is_sound()
    rest = sketcher.remove(rows[:cut], sample_weight=weights[:cut]).sketch()
    assert ss.Sketch.from_bytes(rest.to_bytes()) == rest


def forged(sketch: ss.Sketch, place: int, number: int) -> bytes:
    """The file with one of the moments replaced."""
    totals = copy.deepcopy(sketch._totals)
    (octets,) = np.frombuffer(number.to_bytes(16, "little", signed=True), "<i4")[None]
    digits, carries = totals.dense["moments"][0, 4 * place : 4 * place + 4], 0
    for i, word in enumerate(octets.tolist()):
        digits[i] = (word + carries + 2**31) % 2**32 - 2**31
        carries = int(word < 0)
    assert totals.integers("moments")[place] == number
    return encode(sketch.fingerprint, totals)


X = np.random.default_rng(0).normal(size=(50, 2))
FORGERIES = {
    "a weight apart from the fine one": (1, 2**40),
    "a negative fine weight": (1, -1),
    "no fine weight": (1, 0),
    "a sum beyond reach": (2, 2**100),
    "a rest that is more than a rest": (4, 2**40),
    "a negative square": (8, -1),
    "a square beyond reach": (8, 2**110),
    "a square too small for its sum": (10, 0),
    "a product beyond its squares": (9, 2**90),
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_integers_that_no_rows_left_are_refused(forgery):
    sketch = ss.sketch(X + 3.0, SPECS["plain"])

    assert ss.Sketch.from_bytes(forged(sketch, 0, sketch._totals.weight)) == sketch
    with pytest.raises(ss.errors.SketchFormatError, match="the integers are not those of any rows"):
        ss.Sketch.from_bytes(forged(sketch, *forgery))
