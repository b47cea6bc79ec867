"""What plans, decoders and commands give changes only on purpose (see behaviour.py)."""

from __future__ import annotations

import importlib.util
import json
import math
import platform
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("golden_behaviour", HERE / "behaviour.py")
behaviour = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(behaviour)

CLOSE = 1e-9
"""Relative: room for another version of a library that rounds otherwise, and for no other end."""


def differences(found, golden, at=""):
    """Where two JSON values differ."""
    if isinstance(found, dict) and isinstance(golden, dict):
        for name in {**golden, **found}:
            if name not in found or name not in golden:
                yield f"{at}/{name}: only in the {'golden' if name in golden else 'new'} one"
            else:
                yield from differences(found[name], golden[name], f"{at}/{name}")
    elif isinstance(found, list) and isinstance(golden, list) and len(found) == len(golden):
        for i, pair in enumerate(zip(found, golden, strict=True)):
            yield from differences(*pair, f"{at}/{i}")
    elif type(found) is type(golden) is float:
        if not math.isclose(found, golden, rel_tol=CLOSE, abs_tol=CLOSE):
            yield f"{at}: {found} was {golden}"
    elif found != golden:
        yield f"{at}: {found!r} was {golden!r}"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="floats are pinned for x86_64")
def test_plans_clusters_and_outputs_are_those_of_the_golden_file():
    found = json.loads(behaviour.run_pinned())
    golden = json.loads((HERE / "behaviour.json").read_text())

    assert len(golden["decoded"]) >= 12
    assert list(differences(found, golden))[:20] == []


def test_any_digit_that_changes_is_seen():
    golden = json.loads((HERE / "behaviour.json").read_text())
    other = json.loads((HERE / "behaviour.json").read_text())
    other["decoded"]["iris"]["3"]["centroids"][0][0] *= 1 + 1e-8
    del other["commands"]["inspect both.sketch"]["rows"]

    assert len(list(differences(other, golden))) == 2
