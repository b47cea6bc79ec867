"""Cubes: slices in a folder that many writers add to and take away from."""

from __future__ import annotations

import numpy as np
import pytest

import sketchshift as ss

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
DAY = np.arange(600) // 100
SPEC = ss.plan(X, 4, seed=0)


def by_day(rows: np.ndarray) -> ss.SketchTable:
    return ss.sketch_by(X[rows], by=DAY[rows], spec=SPEC)


@pytest.fixture
def cube(tmp_path):
    return ss.Cube.create(tmp_path / "cube", SPEC, by="key")


def test_what_is_left_has_the_bytes_of_a_sketch_that_saw_nothing_else(cube):
    rows = np.arange(600)
    gone = RNG.permutation(600)[:200]

    cube.append(by_day(rows[:300]))
    cube.append(by_day(rows[300:]), by_day(gone[gone < 300]))
    cube.append(removed=by_day(gone[gone >= 300]))

    left = np.setdiff1d(rows, gone)
    assert cube.version == 3
    assert cube.merge() == ss.sketch(X[left], SPEC)
    assert cube.table() == by_day(left)
    assert ss.Cube.open(cube.path).merge().to_bytes() == cube.merge().to_bytes()


def test_a_slice_whose_rows_have_all_gone_is_not_there(cube):
    cube.append(by_day(np.arange(600)))
    cube.append(removed=by_day(np.arange(100, 200)))

    assert cube.table().keys.column("key").to_pylist() == [0, 2, 3, 4, 5]


def test_a_cube_without_keys_is_a_stored_sketch(tmp_path):
    cube = ss.Cube.create(tmp_path / "one", SPEC)

    assert cube.merge().count == 0
    cube.append(ss.sketch(X, SPEC))
    cube.append(removed=ss.sketch(X[:50], SPEC))
    assert cube.merge() == ss.sketch(X[50:], SPEC)
    with pytest.raises(ss.DataError, match="no keys"):
        cube.table()


def test_positions_move_with_the_sums_or_not_at_all(cube):
    cube.append(by_day(np.arange(100)), positions={"log": {"at": 1}}, expected={"log": None})
    with pytest.raises(ss.ConflictError, match="another has moved it"):
        cube.append(by_day(np.arange(100)), positions={"log": {"at": 1}}, expected={"log": None})
    cube.append(by_day(np.arange(100, 200)), positions={"log": {"at": 2}}, expected=cube.positions)

    assert cube.positions == {"log": {"at": 2}}
    assert cube.merge() == ss.sketch(X[:200], SPEC)


def test_kept_sums_are_taken_away_without_their_rows(cube):
    cube.append(kept={"a": by_day(np.arange(100)), "b": by_day(np.arange(100, 300))})
    cube.append(returned=["a"])
    with pytest.raises(ss.DataError, match="does not keep"):
        cube.append(returned=["a"])

    assert cube.merge() == ss.sketch(X[100:300], SPEC)
