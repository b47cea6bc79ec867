"""Cubes: slices in a folder that many writers add to and take away from."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
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


def events(n: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    days = np.datetime64("2026-01-01") + rng.integers(0, 20, n)
    return pa.table(
        {
            "day": days,
            "country": rng.choice(["AT", "DE", "FR"], n),
            "product": rng.integers(0, 4, n),
            "x": rng.normal(size=n),
            "y": rng.normal(size=n) ** 3,
        }
    )


BY = ["day", "country", "product"]


@pytest.fixture(scope="module")
def plan():
    return ss.plan(events(5000).select(["x", "y"]), 3, seed=0)


@pytest.fixture
def sales(tmp_path, plan):
    return ss.Cube.create(tmp_path / "sales", plan, by=BY)


def test_rows_go_straight_into_slices_with_the_bytes_of_their_sketches(sales, plan, monkeypatch):
    from sketchshift.sketch import cube_rows

    monkeypatch.setattr(cube_rows, "HELD_BYTES", 2**18)  # many small parts
    data = events(3000)
    far = data.slice(0, 3).set_column(3, "x", pa.array([1e3, -1e9, 40.0]))
    data = pa.concat_tables([data, far])

    sales.append_rows(data)

    table = ss.sketch_by(data, by=BY, spec=plan)
    assert len(sales._log.state().parts) > 1
    assert sales.table() == table
    assert sales.merge() == table.merge()
    condition = "day >= '2026-01-08' AND country <> 'DE'"
    assert sales.table(condition, by=["product"]) == table.where(condition).merge_by("product")
    assert sales.merge("count > 12") == table.where("count > 12").merge()
    sales.compact()
    assert len(sales._log.state().parts) == 1
    assert sales.table() == table
