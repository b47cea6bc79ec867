"""Specs that are refused, each with its sentence."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sketchshift.errors import SpecError
from sketchshift.features import Rows, SketchSpec, Waves

BASE = {"n_features": 2, "sketch_size": 20, "bandwidth": 0.3}
INTEGER, NUMBER = "an integer from {} to {}", "a finite number from {} to {}"
BANDWIDTH, SCALE = NUMBER.format("1e-20", "1e+20"), NUMBER.format("1e-150", "1e+150")
COORDINATE = NUMBER.format("-1e+150", "1e+150")
LAWS = "one of 'gaussian', 'folded_gaussian', 'adapted_radius'"
VECTOR = "2 numbers, one a column, or None"
inf, nan = math.inf, math.nan


def spec_of(**changes):
    return SketchSpec(**(BASE | changes))


REFUSED = [
    ("n_features", INTEGER.format(1, 2**20), [0, 2**20 + 1, 2.0]),
    ("sketch_size", INTEGER.format(1, 2**24), [0, 2**24 + 1, False]),
    ("bandwidth", BANDWIDTH, [0, nan, 1e21, True, "0.3", 10**400]),
    ("bandwidth", BANDWIDTH, [(0, 1.0), (1.0, inf), np.array(0.3)]),
    ("bandwidth", "a number or a pair (low, high)", [(), (1, 2, 3)]),
    ("bandwidth", "a pair (low, high) with low < high", [(2, 1), (1.0, 1.0)]),
    ("seed", INTEGER.format(0, 2**64 - 1), [-1, 2**64]),
    ("law", LAWS, ["normal", None, "gaussian("]),
    ("law", "a law with numbers in brackets, such as 'gaussian(2.5)'", ["gaussian(a)"]),
    ("structured", "True or False", [1, "True"]),
    ("columns", "2 different column names", [["a"], ["a", "a"], "ab", [1, 2], 3]),
    ("center", VECTOR, [[1], "ab", 1.0, np.array(1.0)]),
    ("center", COORDINATE, [[0, nan], [1e151, 0], [True, 0], np.eye(2)]),
    ("scale", SCALE, [0, inf, "2", [1, -1.0], np.array(2.0)]),
    ("scale", COORDINATE, [[1, nan]]),
    ("scale", VECTOR, [[1], ()]),
    ("precision", "one of 'float32', 'float64'", ["float16", np.float32]),
]


def test_a_parameter_out_of_range_is_refused():
    """One sentence for all: what it is called, what it must be, what it was."""
    for name, must, values in REFUSED:
        sentence = f"The {name!r} parameter of SketchSpec must be {must}"
        for value in values:
            with pytest.raises(SpecError, match=f"^{re.escape(sentence)}"):
                spec_of(**{name: value})


def test_parameters_that_do_not_go_together_are_refused():
    for changes, text in (
        (
            {"n_features": 63, "structured": True},
            "structured frequencies need at least 64 columns, and there are 63. Leave",
        ),
        (
            {"n_features": 2**20, "sketch_size": 2**12},
            "n_features x sketch_size = 1048576 x 4096 is more than 2147483648 numbers. Use a",
        ),
    ):
        with pytest.raises(SpecError, match=f"^{re.escape(text)}"):
            spec_of(**changes)


def test_structured_frequencies_may_be_more_than_can_be_written_out():
    """Neither the spec nor its JSON draws any frequency."""
    spec = spec_of(n_features=2**20, sketch_size=2**24, structured=True)

    assert SketchSpec.from_json(spec.to_json()) == spec


ROWS, WAVES = '"rows":{"n_features":2}', '"waves":{"size":20,"bandwidth":0.3}'
UNREADABLE = {
    "": "a sketch spec must be JSON, and this is not: ",
    "[" * 100_000: "a sketch spec must be JSON, and this is not: ",
    "[]": "a sketch spec must be a JSON object. Got list.",
    f"{{{ROWS}}}": 'this spec has schema None, and this version of sketchshift reads "schema": 1.',
    f'{{"schema":2,{ROWS}}}': "this spec has schema 2, and this version of sketchshift reads",
    f'{{"schema":1,{ROWS},"mode":1,"a":2}}': "this is not a sketch spec (unknown: a, mode).",
    f'{{"schema":1,{WAVES}}}': "this is not a sketch spec (missing: rows).",
    '{"schema":1,"rows":[]}': "the part Rows of a sketch spec must be an object. Got list.",
    '{"schema":1,"rows":{"x":1}}': (
        "this is not a sketch spec: of the part Rows, unknown: 'x'; missing: 'n_features'."
    ),
    f'{{"schema":1,{ROWS}}}': "a sketch sums waves, cells or both, and this spec has neither.",
    f'{{"schema":1,{ROWS},{WAVES},"families":[]}}': "The 'families' parameter of SketchSpec must",
    f'{{"schema":1,{ROWS},"families":{{"a":NaN}}}}': """The "families['a']" parameter of SketchSpec""",
    f'{{"schema":1,{WAVES},"rows":{{"n_features":2,"scale":NaN}}}}': (
        "The 'scale' parameter of SketchSpec must be a finite"
    ),
    f'{{"schema":1,{WAVES},"rows":{{"n_features":2,"center":{{"a":1}}}}}}': (
        "The 'center' parameter of SketchSpec must"
    ),
}


def test_anything_but_a_spec_is_refused():
    """Files come from anywhere: every fault is a SpecError that names it."""
    for text, message in UNREADABLE.items():
        with pytest.raises(SpecError, match=f"^{re.escape(message)}"):
            SketchSpec.from_json(text)


FIELDS = {
    "rows": [field.name for field in dataclasses.fields(Rows)],
    "waves": [field.name for field in dataclasses.fields(Waves)],
}


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.sampled_from(
            [f"{part}.{name}" for part, names in FIELDS.items() for name in names]
            + [field.name for field in dataclasses.fields(SketchSpec)]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
            max_leaves=4,
        ),
        max_size=3,
    )
)
def test_any_json_gives_a_spec_or_a_spec_error(changes):
    """No exception of another kind, whatever a file holds."""
    content = {"rows": {"n_features": 2}, "waves": {"size": 20, "bandwidth": 0.3}}
    for place, value in changes.items():
        part, _, name = place.partition(".")
        if not name:
            content[part] = value
        elif isinstance(content[part], dict):
            content[part][name] = value
    text = json.dumps({"schema": 1} | content)

    try:
        spec = SketchSpec.from_json(text)
    except SpecError:
        return
    assert SketchSpec.from_json(spec.to_json()) == spec
