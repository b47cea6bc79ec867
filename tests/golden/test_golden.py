"""Values change on purpose alone: see README.md beside this file."""

from __future__ import annotations

import json
import math
import platform
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CLOSE = 1e-9
"""Relative: room for another version of a library that rounds otherwise, and for nothing else."""
THOROUGH = [
    pytest.param(name, marks=pytest.mark.thorough) for name in ("decodings", "paper", "planned")
]
FEWEST = {"totals": 40, "decodings": 100, "paper": 60, "planned": 40, "commands": 20, "errors": 10}


def golden(name):
    return json.loads((HERE / f"{name}.json").read_text())


def made(name, tmp_path, *options):
    words = [sys.executable, HERE / "make.py", name, tmp_path / "made.json", *options]
    subprocess.run(words, check=True)
    return json.loads((tmp_path / "made.json").read_text())


def leaves(value, at=()):
    """Yield the plain values in a JSON value, and empty lists and objects, with their places."""
    if not isinstance(value, dict | list) or not value:
        yield at, value
        return
    for name, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves(part, (*at, name))


def is_close(found, expected):
    if type(found) is type(expected) is float:
        return math.isclose(found, expected, rel_tol=CLOSE, abs_tol=1e-12)
    return type(found) is type(expected) and found == expected


def differences(found, expected):
    """Return what stands in each of two JSON values (... for nothing) where they differ."""
    found, expected = dict(leaves(found)), dict(leaves(expected))
    pairs = {at: (found.get(at, ...), expected.get(at, ...)) for at in expected | found}
    return {at: pair for at, pair in pairs.items() if not is_close(*pair)}


@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_totals_are_those_of_the_golden_file(kernel, tmp_path):
    assert differences(made("totals", tmp_path, kernel), golden("totals")) == {}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="floats are pinned for x86_64")
@pytest.mark.parametrize("name", ["commands", "errors", *THOROUGH])
def test_values_are_those_of_the_golden_file(name, tmp_path):
    assert differences(made(name, tmp_path), golden(name)) == {}


def test_golden_files_have_cases_enough_and_every_kind_of_row():
    for name, fewest in FEWEST.items():
        assert len(golden(name)) >= fewest, name
    case = golden("totals")["cells in groups, within; scattered"]
    zones = {(zone, center == -1) for zone, center, *_ in case["far"]}
    assert any(weight for weight, *_ in case["cells"])
    assert zones == {(1, False), (1, True), (2, True)}  # in shells, beyond cells, beyond waves
    assert 0 < case["partial"][0] < case["count"]


def test_any_digit_that_changes_is_seen():
    expected = {"a": [10**12, 0.25, 1.0], "text": "x", "none": None, "empty": [], "gone": 0}
    found = {"a": [10**12 + 1, 0.25 * (1 + 1e-8), 1], "text": "y", "none": 0, "empty": {}, "new": 0}
    places = {("a", 0), ("a", 1), ("a", 2), ("text",), ("none",), ("empty",), ("gone",), ("new",)}

    assert differences(found, expected).keys() == places
    assert differences({"a": [0.5 + 1e-12, 1]}, {"a": [0.5, 1]}) == {}
