"""The script of the documentation reads our files without this library."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import sketchshift as ss
from sketchshift.features import Ball, Cells
from sketchshift.sketch.family import families_of

SCRIPT = Path(__file__).parents[2] / "docs" / "read_sketch.py"
RNG = np.random.default_rng(3)
X = RNG.normal(size=(300, 3)) * np.array([1.0, 40.0])[RNG.integers(2, size=300), None]
PLAIN = ss.SketchSpec(n_features=3, sketch_size=12, bandwidth=0.5, scale=2.0)
CELLS = PLAIN.replaced(cells=replace(Cells.of(X[:5]), within=1.0))


NAMES = ["waves", "cells and outliers", "axes", "cells alone", "private", "no moments"]


@cache
def specs():
    wide = RNG.normal(size=(400, 90))
    return {
        "waves": PLAIN,
        "cells and outliers": CELLS,
        "axes": ss.plan(wide, n_clusters=3),
        "cells alone": CELLS.replaced(waves=None),
        "private": CELLS.replaced(rows=replace(PLAIN.rows, onto=Ball("declared", 20.0))),
        "no moments": CELLS.replaced(spread=None),
    }


def read(path):
    """What the script prints, where sketchshift cannot be imported."""
    code = f"import sys; sys.modules['sketchshift'] = None; exec(open({str(SCRIPT)!r}).read())"
    words = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    found = []
    for line in done.stdout.splitlines():
        head, integers = line.rsplit(" {", 1)
        found.append((head, ast.literal_eval("{" + integers)))
    return found


def expected(totals):
    """The first integers of each family of one slice, from their digits."""
    found = {}
    for family in families_of(totals.layout.spec):
        if family.id_width:
            own = totals.entries[family.name]
            names, digits = own.names[:, 1:].tolist(), own.digits.astype(object)
        else:
            digits = totals.dense[family.name].astype(object)
            names = [[]] * len(digits)
        n = family.n_digits
        numbers = sum(digits[:, i::n] << 32 * i for i in range(n))
        rows = [[*a, *b][:9] for a, b in zip(names, numbers.tolist(), strict=True)]
        found[family.name] = rows[:2]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_of_sixty_lines_finds_the_integers_of_a_sketch_and_a_table(name, tmp_path):
    spec = specs()[name]
    rows = X if spec.n_features == 3 else RNG.normal(size=(300, 90)) * 3.0
    weights = None if spec.rows.ball else np.arange(300) / 4
    table = ss.sketch_by(rows, np.arange(300) % 3, spec, sample_weight=weights)
    table.save(tmp_path / "t.parquet")
    table[1].save(tmp_path / "t.sketch")

    found, (one,) = read(tmp_path / "t.parquet"), read(tmp_path / "t.sketch")

    for i, (head, integers) in enumerate(found):
        assert head.startswith(f"{{'key': {i}, 'count': 100}} [100, 0] mean")
        assert integers == expected(table.totals[i])
    assert one[1] == found[1][1]
    assert len(SCRIPT.read_text().splitlines()) <= 60
