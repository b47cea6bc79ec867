"""Cubes: slices in a folder that many writers add to and take away from."""

from __future__ import annotations

import json
import re
import shutil
import sys
import tracemalloc
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.live import cube_log, cube_parts
from sketchshift.sketch import file as sketch_file
from sketchshift.sketch.file import pack, unpack

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
DAY = np.arange(600) // 100
SPEC = ss.plan(X, 4, seed=0)


def by_day(rows: np.ndarray) -> ss.SketchTable:
    return ss.sketch_by(X[rows], by=DAY[rows], spec=SPEC)


@pytest.fixture
def cube(tmp_path):
    return ss.live.Cube.create(tmp_path / "cube", SPEC, by="key")


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
    assert ss.live.Cube.open(cube.path).merge().to_bytes() == cube.merge().to_bytes()


def test_a_slice_whose_rows_have_all_gone_is_not_there(cube):
    cube.append(by_day(np.arange(600)))
    cube.append(removed=by_day(np.arange(100, 200)))

    assert cube.table().keys.column("key").to_pylist() == [0, 2, 3, 4, 5]


def test_a_cube_without_keys_is_a_stored_sketch(tmp_path):
    cube = ss.live.Cube.create(tmp_path / "one", SPEC)

    assert cube.merge().count == 0
    cube.append(ss.sketch(X, SPEC))
    cube.append(removed=ss.sketch(X[:50], SPEC))
    assert cube.merge() == ss.sketch(X[50:], SPEC)
    with pytest.raises(ss.errors.DataError, match="no keys"):
        cube.table()


def test_positions_move_with_the_sums_or_not_at_all(cube):
    cube.append(by_day(np.arange(100)), positions={"log": {"at": 1}}, expected={"log": None})
    with pytest.raises(ss.errors.ConflictError, match="another has moved it"):
        cube.append(by_day(np.arange(100)), positions={"log": {"at": 1}}, expected={"log": None})
    cube.append(by_day(np.arange(100, 200)), positions={"log": {"at": 2}}, expected=cube.positions)

    assert cube.positions == {"log": {"at": 2}}
    assert cube.merge() == ss.sketch(X[:200], SPEC)


def test_kept_sums_are_taken_away_without_their_rows(cube):
    cube.append(kept={"a": by_day(np.arange(100)), "b": by_day(np.arange(100, 300))})
    cube.append(returned=["a"])
    with pytest.raises(ss.errors.DataError, match="does not keep"):
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
    return ss.live.Cube.create(tmp_path / "sales", plan, by=BY)


def test_rows_go_straight_into_slices_with_the_bytes_of_their_sketches(sales, plan, monkeypatch):
    from sketchshift.live import cube_rows

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


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/io")
def test_parts_whose_keys_cannot_meet_a_condition_are_not_read(sales, plan):
    data = events(4000)
    for day in range(20):
        sales.append_rows(data.filter(pc.equal(data["day"], pa.scalar(date(2026, 1, 1 + day)))))
    records = list(sales._log.state().parts.values())
    sales.merge("day = '2026-01-19'")  # what conditions need is imported
    cube = ss.live.Cube.open(sales.path)
    assert cube.version >= 20  # the log is read
    before = bytes_read()

    found = cube.merge("day = '2026-01-20'")

    n_read, n_stored = bytes_read() - before, sum(record.n_bytes for record in records)
    assert found == ss.sketch_by(data, by=BY, spec=plan).where("day = '2026-01-20'").merge()
    assert n_read < n_stored / 5


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/io")
def test_of_a_part_only_the_slices_asked_for_are_read(sales):
    sales.append_rows(events(4000))
    sales.merge("product = 1")  # the head of the part stays in memory
    record = next(iter(sales._log.state().parts.values()))
    before = bytes_read()

    sales.merge("country = 'AT' AND product = 1")

    assert bytes_read() - before < (record.n_bytes - record.n_head) / 8


@pytest.mark.parametrize("condition", ["day > '2026-01-15'", "country = 'AT'", "product <> 2"])
@pytest.mark.parametrize("missing", ["day", "country", "product"])
def test_missing_keys_are_passed_over_as_sql_has_it(sales, plan, condition, missing):
    data = events(500)
    i = data.column_names.index(missing)
    column = pc.if_else(pa.array(np.arange(500) % 3 == 0), None, data.column(i))
    data = data.set_column(i, missing, column)
    sales.append_rows(data.slice(0, 250))
    sales.append_rows(data.slice(250))
    table = ss.sketch_by(data, by=BY, spec=plan)

    assert sales.table(condition) == table.where(condition)
    assert sales.merge(f"{missing} IS NULL") == table.where(f"{missing} IS NULL").merge()


@pytest.mark.parametrize(
    ("values", "condition", "is_in"),
    [
        (["03.01.2026", "01.02.2026", "05.01.2026"], "key >= '2026-01-04'", [1, 2]),
        (["2026-01-03", "2026-02-01", "2026-01-05"], "key = '2026-01-05'", [2]),
        ([2**53 + 1, 2**53 + 2, 2**53 + 3], f"key > {2**53 + 1}.5", [1, 2]),
        ([20_000_001, 20_000_002, 7], "key > 2.5", [0, 1, 2]),
        ([Decimal("1.00"), Decimal("1.01"), Decimal("2.00")], "key > 1.005", [1, 2]),
        ([Decimal("1.00"), Decimal("1.01"), Decimal("2.00")], "key < 100000000000", [0, 1, 2]),
    ],
)
def test_a_condition_asks_parts_for_what_it_asks_rows(cube, values, condition, is_in):
    for i in range(3):
        columns = dict(zip("xyz", X[i : i + 1].T, strict=True))
        data = pa.table({"key": pa.array(values)[i : i + 1], **columns})
        cube.append_rows(data)

    assert cube.merge(condition) == ss.sketch(X[is_in], SPEC)


LAYOUTS = {
    "dates in one part, words in another": (
        [["2026-01-01", "2026-01-20"], ["north", "south", "west", "2026-01-18"]],
        {
            "key >= '2026-01-15'": ["2026-01-18", "2026-01-20", "north", "south", "west"],
            "key < '2026-01-19'": ["2026-01-01", "2026-01-18"],
            "key <> '2026-01-01' AND key < 'o'": ["2026-01-18", "2026-01-20", "north"],
        },
    ),
    "dates as people write them": (
        [["05.01.2026", "20.01.2026"], ["north", "2026-01-18", "19.01.2026", "NA"]],
        {
            "key >= '2026-01-15'": ["20.01.2026", "2026-01-18", "19.01.2026", "north"],
            "key = '2026-01-19'": ["19.01.2026"],
            "key BETWEEN '2026-01-01' AND '2026-01-18'": ["05.01.2026", "2026-01-18"],
        },
    ),
    "missing in one part": (
        [[1, 2], [None]],
        {"key = 1": [1], "key IS NULL": [None], "NOT key > 1": [1], "count = 1 AND key = 2": [2]},
    ),
    "whole numbers in one part": ([[1, 2], [1.5, 2.0]], {"key < 1.75": [1, 1.5], "key = 2": [2]}),
    "seconds in one part": (
        [
            [np.datetime64("2026-01-01T00:00:00", "s")],
            [np.datetime64("2026-01-01T00:00:00.5", "ms")],
        ],
        {"key < '2026-01-01 00:00:00.25'": [datetime(2026, 1, 1)]},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_condition_means_the_same_whichever_parts_it_rules_out(tmp_path, layout):
    parts, conditions = LAYOUTS[layout]
    cube = ss.live.Cube.create(tmp_path / "cube", SPEC, by=["part", "key"])
    for i, keys in enumerate(parts):
        columns = dict(zip("xyz", X[: len(keys)].T, strict=True))
        rows = pa.table({"part": [i] * len(keys), "key": pa.array(keys), **columns})
        cube.append(ss.sketch_by(rows, by=["part", "key"], spec=SPEC))
    for _ in range(2):
        for condition, expected in conditions.items():
            assert set(cube.summary(condition)[0]["key"].to_pylist()) == set(expected)
            apart = [cube.summary(f"part = {i} AND {condition}")[0] for i in range(len(parts))]
            assert set(pa.concat_tables(apart)["key"].to_pylist()) == set(expected)
        cube.compact()


@pytest.mark.parametrize("value", ["CAST('2.7' AS INTEGER)", "'2.7'::bigint"])
def test_a_cast_that_changes_a_value_is_refused(cube, value):
    cube.append(by_day(np.arange(600)))

    with pytest.raises(ss.errors.DataError, match="another value"):
        cube.merge(f"key < {value}")
    assert cube.merge("key < CAST('3' AS INTEGER)") == ss.sketch(X[DAY < 3], SPEC)


def test_every_flipped_byte_is_found(cube):
    cube.append(by_day(np.arange(600)))
    files = [path for path in cube.path.rglob("*") if path.is_file()]
    rng = np.random.default_rng(0)
    for path in files:
        whole = path.read_bytes()
        for at in rng.integers(0, len(whole), 12):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << rng.integers(8)
            path.write_bytes(damaged)
            with pytest.raises((ss.errors.SketchFormatError, ss.errors.SpecError)):
                ss.live.Cube.open(cube.path).merge()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ss.errors.SketchFormatError):
            ss.live.Cube.open(cube.path).merge()
        path.write_bytes(whole)
    assert len(files) == 3
    assert cube.merge() == ss.sketch(X, SPEC)


def test_rows_that_never_came_are_not_taken_away_unseen(cube):
    """Also where other slices have so many rows that the sum of all is one of rows."""
    cube.append(by_day(np.r_[:100, 100:110, 200:600]))
    cube.append(removed=by_day(np.arange(100, 150)))
    facts = r"never added to it in the slice key = 1: 40 rows more went than came.*as added"

    def check() -> None:
        for read in (cube.table, cube.merge, cube.summary, lambda: cube.merge("key < 3")):
            with pytest.raises(ss.errors.RemovalError, match=facts):
                read()

    check()
    cube.compact()
    check()
    assert cube.merge("key <> 1").count == 500
    cube.append(by_day(np.arange(110, 150)))
    assert cube.merge() == ss.sketch(X[np.r_[:100, 200:600]], SPEC)


def test_other_rows_taken_away_than_came_are_told_with_their_slice(cube):
    far = ss.sketch_by(X[:5] + 1e3, by=DAY[:5] + 2, spec=SPEC)
    cube.append(by_day(np.arange(600)))
    cube.append(removed=far)

    with pytest.raises(
        ss.errors.RemovalError, match=r"in the slice key = 2: 95 rows would be left, with"
    ):
        cube.table()
    with pytest.raises(ss.errors.RemovalError, match=r"never added to it: 595 rows would be left"):
        cube.merge()


def test_a_stored_sketch_tells_that_too_much_was_taken_away(tmp_path):
    cube = ss.live.Cube.create(tmp_path / "one", SPEC)
    cube.append(ss.sketch(X[:5], SPEC))
    cube.append(removed=ss.sketch(X[:8], SPEC))

    with pytest.raises(
        ss.errors.RemovalError, match="never added to it: 3 rows more went than came"
    ):
        cube.merge()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.just(1.0) | st.text("ab", max_size=2),
    lambda values: (
        st.lists(values, max_size=2)
        | st.dictionaries(st.text("ab", max_size=1), values, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(old=JSON, new=JSON)
def test_what_changed_of_a_position_gives_the_new_one_to_the_sign(old, new):
    patch = cube_log._patch(old, new)

    if patch is not None:
        assert json.dumps(cube_log._patched(old, patch), sort_keys=True) == json.dumps(
            new, sort_keys=True
        )


def test_a_commit_has_what_changed_of_a_long_position_alone(cube):
    """A folder of many files has them all in its position."""
    files = {f"{i:05d}.npy": [i, i, i] for i in range(2000)}
    cube.append(positions={"folder:a": {"files": files}, "b": {"at": 1}})
    files = {**files, "new.npy": [1, 2, 3]}
    del files["00007.npy"]
    cube.append(positions={"folder:a": {"files": files}})
    cube.append(positions={"b": {"at": None}})

    sizes = [path.stat().st_size for path in sorted((cube.path / "log").iterdir())]
    assert sizes[0] > 40_000
    assert max(sizes[1:]) < 400
    again = ss.live.Cube.open(cube.path)
    assert again.positions == cube.positions == {"folder:a": {"files": files}, "b": {"at": None}}


def test_hundreds_of_commits_leave_few_parts_and_a_short_log_to_read(tmp_path, plan):
    cube = ss.live.Cube.create(tmp_path / "cube", SPEC)
    parts = [ss.sketch(X[i : i + 1], SPEC) for i in range(600)]
    for sketch in parts:
        cube.append(sketch)

    fresh = ss.live.Cube.open(cube.path)
    assert fresh.merge() == ss.sketch(X, SPEC)
    assert len(list((cube.path / "parts").iterdir())) <= 16
    assert fresh._log._newest_checkpoint().number > fresh.version - 64


def test_parts_that_are_full_are_not_written_again(cube, monkeypatch):
    from sketchshift.live import cube as cubes

    monkeypatch.setattr(cubes, "PART_SLICES", 4)
    for i in range(200):
        cube.append(ss.sketch_by(X[i : i + 1], by=np.array([i]), spec=SPEC))

    records = cube._log.state().parts.values()
    assert sum(record.n_slices for record in records) == 200
    assert sum(record.n_slices < 4 for record in records) < 16
    assert cube.version == 200 + 200 // 16
    assert cube.merge() == ss.sketch(X[:200], SPEC)


def test_slices_that_stand_alone_are_put_together_by_copying_them(cube, monkeypatch):
    from sketchshift.live import cube as cubes

    order = [3, 0, 5, 1]
    for day in order:
        cube.append(by_day(np.arange(100 * day, 100 * day + 100)))
    table = cube.table()
    alike = {len(cube._index(record)._places) for record in cube._log.state().parts.values()}
    assert len(alike) == 1

    with monkeypatch.context() as patched:
        patched.setattr(cubes, "SliceSums", None)
        cube.compact()

    assert len(cube._log.state().parts) == 1
    assert cube.table() == table == by_day(np.flatnonzero(np.isin(DAY, order)))
    assert cube.summary()[0].column("key").to_pylist() == sorted(order)


def commit_single_rows(cube: ss.live.Cube, rows: range) -> list[int]:
    """Commit rows one by one, of which some go again; those that are left."""
    for i in rows:
        one = by_day(np.array([i]))
        if i % 3:
            cube.append(one)
        else:
            cube.append(kept={f"row {i}": one})
        if i % 4 == 0:
            cube.append(removed=one) if i % 3 else cube.append(returned=[f"row {i}"])
    return [i for i in rows if i % 4]


@pytest.mark.parametrize("n", [100, pytest.param(600, marks=pytest.mark.slow)])
def test_single_rows_that_come_and_go_leave_few_parts_and_no_file_that_nobody_needs(cube, n):
    left = commit_single_rows(cube, range(n))

    state = cube._log.state()
    assert len(state.parts) <= 32
    assert {path.name for path in (cube.path / "parts").iterdir()} == state.files
    assert cube.merge() == ss.sketch(X[left], SPEC)


def test_memory_does_not_grow_with_the_slices_of_one_pass(tmp_path, plan, monkeypatch):
    from sketchshift.live import cube as cubes
    from sketchshift.live import cube_rows

    def peak(n: int) -> int:
        rng = np.random.default_rng(n)
        data = pa.table({"key": np.arange(n), "x": rng.normal(size=n), "y": rng.normal(size=n)})
        cube = ss.live.Cube.create(tmp_path / f"{n}", plan, by="key")
        tracemalloc.start()
        cube.append_rows(data)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(cube._log.state().parts) > n // 200
        return most

    monkeypatch.setattr(cube_rows, "HELD_BYTES", 2**20)
    monkeypatch.setattr(cubes, "FEW_PARTS", 10_000)
    peak(200)  # imports
    assert peak(4000) < 1.5 * peak(1000)


def test_what_does_not_belong_to_a_cube_is_refused(cube, tmp_path):
    other = ss.plan(X, 5, seed=1)
    with pytest.raises(ss.errors.IncompatibleSketchesError, match="different plans"):
        cube.append(ss.sketch_by(X, by=DAY, spec=other))
    with pytest.raises(ss.errors.IncompatibleSketchesError, match="given a sketch"):
        cube.append(ss.sketch(X, SPEC))
    cube.append(by_day(np.arange(100)))
    with pytest.raises(ss.errors.IncompatibleSketchesError, match="holds int64 in one and string"):
        cube.append(ss.sketch_by(X, by=DAY.astype(str).astype(object) + np.array("x"), spec=SPEC))
    with pytest.raises(ss.errors.ConflictError, match="already"):
        ss.live.Cube.create(cube.path, SPEC)
    with pytest.raises(ss.errors.DataError, match="no cube"):
        ss.live.Cube.open(tmp_path)
    with pytest.raises(ss.errors.DataError, match="cannot merge by"):
        cube.table(by="weather")
    cube.append(by_day(np.arange(600)))
    with pytest.raises(ss.errors.DataError, match="max_slices"):
        cube.table(max_slices=3)


@pytest.mark.parametrize(
    "change",
    [
        {"cells": None},
        {"precision": "float64"},
        {"sketch_size": 0},
        {"cells": None, "moments": "none"},
        {"metric": "cosine"},
    ],
    ids=str,
)
def test_every_kind_of_spec_goes_through_a_cube(tmp_path, change):
    spec = replace(ss.plan(X, 4, seed=0), spectrum=None)
    spec = replace(spec, **change)
    weights = np.random.default_rng(0).uniform(0.1, 3.0, 600)
    table = ss.sketch_by(X, by=DAY, spec=spec, sample_weight=weights)
    cube = ss.live.Cube.create(tmp_path / "cube", spec, by="key")
    cube.append(table)
    assert cube.table() == table
    rows = pa.table({"key": DAY, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    cube.append_rows(rows)
    cube.append(removed=table)
    assert cube.table() == ss.sketch_by(rows, by="key", spec=spec)


@pytest.mark.parametrize("page", ["cube", "follow"])
def test_the_code_of_the_pages_runs(page, tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    names: dict[str, object] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        exec(block, names)


def test_a_cube_that_was_copied_in_part_is_refused_and_loses_nothing(tmp_path):
    spec = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=1.0)
    rows = np.random.default_rng(0).normal(size=(400, 2))
    cube = ss.live.Cube.create(tmp_path / "cube", spec)
    for part in np.split(rows, 4):
        cube.append_rows(part)
    lost = tmp_path / "cube" / "log" / f"{2:012d}.commit"
    lost.rename(tmp_path / "lost")
    parts = sorted((tmp_path / "cube" / "parts").iterdir())

    for use in (ss.live.Cube.merge, ss.live.Cube.compact, lambda own: own.append_rows(rows)):
        with pytest.raises(
            ss.errors.SketchFormatError, match=r"a commit of the cube is not .*2\.com"
        ):
            use(ss.live.Cube.open(tmp_path / "cube"))
    assert sorted((tmp_path / "cube" / "parts").iterdir()) == parts
    (tmp_path / "lost").rename(lost)
    assert ss.live.Cube.open(tmp_path / "cube").merge() == ss.sketch(rows, spec)


def test_a_lost_part_ends_compaction_with_a_sentence(tmp_path):
    spec = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=1.0)
    cube = ss.live.Cube.create(tmp_path / "cube", spec)
    for seed in range(3):
        cube.append_rows(np.random.default_rng(seed).normal(size=(50, 2)))
    next((tmp_path / "cube" / "parts").iterdir()).unlink()
    (tmp_path / "cube" / "drafts").rmdir()

    with pytest.raises(ss.errors.SketchFormatError, match=r"a part of the cube .* is not there"):
        ss.live.Cube.open(tmp_path / "cube").compact()


CONDITIONS = [
    "country = 'AT' AND product = 3",
    "country = 'AT' OR product IS NULL",
    "NOT (country IN ('AT', 'DE') AND product < 2)",
    "day BETWEEN '2026-01-05' AND '2026-01-09' AND country LIKE 'A%'",
    "day > '2026-01-03' AND country <> 'FR' AND product >= 1",
    "country = 'nowhere'",
    "day = '2026-01-04' OR day IS NULL",
]


def with_missing(data: pa.Table, column: str, every: int) -> pa.Table:
    i = data.column_names.index(column)
    is_missing = pa.array(np.arange(len(data)) % every == 0)
    return data.set_column(i, column, pc.if_else(is_missing, None, data.column(i)))


@pytest.fixture
def gaps(sales):
    """Six parts, of which some lack values that others have, and rows that lack keys."""
    data = with_missing(with_missing(events(900), "product", 7), "day", 11)
    is_at = pc.equal(data["country"], "AT")
    for some in (is_at, pc.invert(is_at)):
        part = data.filter(some)
        for start in range(0, len(part), 200):
            sales.append_rows(part.slice(start, 200))
    return sales, data


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_finds_the_slices_that_a_look_at_each_of_them_finds(gaps, plan, condition):
    """Whether values are few, so that it is asked once for each combination, or many."""
    cube, data = gaps
    every = ss.sketch_by(data, by=BY, spec=plan)
    merged = every.where(condition).merge() if len(every.where(condition)) else None

    for opened in (cube, ss.live.Cube.open(cube.path)):
        assert opened.merge(condition).count == (merged.count if merged else 0)
        assert merged is None or opened.merge(condition) == merged
        assert opened.summary(condition)[1].tolist() == [
            sketch.count for sketch in every.where(condition).sketches
        ]


def test_a_condition_on_keys_that_are_all_different_is_asked_of_each(tmp_path):
    data = pa.table({"key": [f"k{i:03d}" for i in range(300)], "x": X[:300, 0], "y": X[:300, 1]})
    spec = ss.SketchSpec(n_features=2, sketch_size=20, bandwidth=1.0)
    cube = ss.live.Cube.create(tmp_path / "cube", spec, by="key")
    cube.append_rows(data.slice(0, 200))
    cube.append_rows(data.slice(100))
    condition = "key > 'k150' AND key LIKE '%7'"

    table = ss.sketch_by(pa.concat_tables([data.slice(0, 200), data.slice(100)]), "key", spec=spec)
    assert cube.table(condition) == table.where(condition)


def test_a_part_has_as_many_slices_as_memory_is_set_aside_for(cube, monkeypatch):
    from sketchshift.live import cube as cubes

    for day in range(6):
        cube.append(by_day(np.arange(100 * day, 100 * day + 100)))
    monkeypatch.setattr(cubes, "PART_BYTES", 2 * cube._layout.n_bytes)

    cube.compact()

    assert [record.n_slices for record in cube._log.state().parts.values()] == [2, 2, 2]
    assert cube.table() == by_day(np.arange(600))


def by_key(keys: list[object]) -> ss.SketchTable:
    data = pa.table({"key": pa.array(keys), **{f"x{i}": X[: len(keys), i] for i in range(3)}})
    return ss.sketch_by(data, by="key", spec=SPEC)


UNLIKE = {
    "numbers, then texts, in one commit": [[[1, 2], ["x", "y"]]],
    "texts, then times": [[["x"]], [[date(2026, 1, 1)]]],
    "a number too large for a fraction, not in the first row": [[[0.5, 1.5]], [[1, 2**60 + 1]]],
}


@pytest.mark.parametrize("commits", UNLIKE.values(), ids=UNLIKE)
def test_keys_that_no_type_holds_are_refused_before_they_are_in(cube, commits):
    """Else no reader could put them together, and the cube were lost."""
    *before, last = [[by_key(keys) for keys in tables] for tables in commits]
    for tables in before:
        cube.append(*tables)

    with pytest.raises(
        ss.errors.IncompatibleSketchesError, match="no type holds the values of both"
    ):
        cube.append(*last)

    assert cube.version == len(before)
    assert ss.live.Cube.open(cube.path).merge().count == sum(
        len(t.keys) for ts in before for t in ts
    )


def test_keys_of_two_first_writers_that_no_type_holds_are_refused(cube, monkeypatch):
    """Neither sees a part of the other when it writes its own: one commits before the other."""
    publish = cube_log.publish

    def publish_second(*given: object) -> bool:
        monkeypatch.setattr(cube_log, "publish", publish)
        ss.live.Cube.open(cube.path).append(by_key(["a"]))
        return publish(*given)

    monkeypatch.setattr(cube_log, "publish", publish_second)
    with pytest.raises(ss.errors.IncompatibleSketchesError, match="no type holds"):
        cube.append(by_key([date(2026, 1, 1)]))
    assert cube.table() == by_key(["a"])


def test_whole_numbers_become_texts_behind_a_part_whose_keys_are_missing(cube):
    cube.append(by_key([None, None]))
    cube.append(by_key(["x"]))
    cube.append(by_key([5]))

    assert cube.table().keys.column("key").to_pylist() == ["5", "x", None]


def test_bytes_of_any_width_are_keys_and_what_has_no_order_is_none(cube):
    cube.append(by_key(pa.array([b"ab", b"cd"], pa.binary(2))))
    cube.append(by_key(pa.array([b"abc"], pa.binary(3))))

    assert cube.table().keys.column("key").to_pylist() == [b"ab", b"abc", b"cd"]
    with pytest.raises(ss.errors.DataError, match="a key cannot hold month_day_nano_interval"):
        by_key(pa.nulls(2, pa.month_day_nano_interval()))


def test_sums_are_kept_once_and_taken_away_once(cube):
    cube.append(kept={"a": by_day(np.arange(100))})
    for wrong in ({"returned": ["a", "a"]}, {"kept": {"a": by_day(np.arange(100, 200))}}):
        with pytest.raises(
            ss.errors.DataError, match=r"kept under a name once, and taken away once.*'a'"
        ):
            cube.append(**wrong)
    assert ss.live.Cube.open(cube.path).merge() == ss.sketch(X[:100], SPEC)

    cube.append(kept={"a": by_day(np.arange(100, 200))}, returned=["a"])
    assert ss.live.Cube.open(cube.path).merge() == ss.sketch(X[100:200], SPEC)


def test_what_follows_a_commit_cannot_fail_it(cube):
    """Who saw an error would append again, and count rows twice."""
    for i in range(15):
        cube.append(by_day(np.arange(10 * i, 10 * i + 10)))
    part = next((cube.path / "parts").iterdir())
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))

    assert cube.append(by_day(np.arange(150, 160))) == 16  # would put the 16 parts together

    with pytest.raises(ss.errors.SketchFormatError, match="was damaged"):
        cube.merge()
    part.write_bytes(whole)
    assert cube.merge() == ss.sketch(X[:160], SPEC)


def test_a_checkpoint_that_would_be_too_long_is_left_out(cube, monkeypatch):
    monkeypatch.setattr(cube_log, "EVERY", 2)
    monkeypatch.setattr(sketch_file, "MAX_HEADER", 2500)
    for i in range(4):
        cube.append(positions={f"source {i}": "x" * 1000})

    assert cube._log._newest_checkpoint().number == 2
    assert ss.live.Cube.open(cube.path).version == 4


def test_a_file_of_somebody_else_in_the_log_does_no_harm(cube):
    cube.append(by_day(np.arange(100)))
    (cube.path / "log" / "000000000001 (copy).commit").write_bytes(b"")

    assert ss.live.Cube.open(cube.path).merge() == ss.sketch(X[:100], SPEC)


FORGED = {
    "a part outside of the folder": {"added": {"name": "../../treasure.slices"}},
    "a part of no name": {"added": {"name": 5}},
    "a head longer than the file": {"added": {"n_head": 2**40}},
    "a sign of 2": {"added": {"sign": 2}},
    "a range that is no table": {"added": {"keys": "AAAA"}},
    "a range of no text": {"added": {"keys": None}},
    "a part that never was": {"dropped": ["f" * 32 + ".slices"]},
    "no names of parts": {"dropped": [["a"]]},
    "what was not kept": {"returned": ["a"]},
    "files that were not added": {"kept": {"a": ["b"]}},
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_forged_commit_is_refused(cube, change):
    """With a digest that is right: nothing outside of the folder is read or removed."""
    cube.append(by_day(np.arange(100)))
    shutil.copy(next((cube.path / "parts").iterdir()), cube.path.parent / "treasure.slices")
    path = cube.path / "log" / f"{1:012d}.commit"
    header = json.loads(unpack(path.read_bytes(), cube_log.COMMIT_MAGIC)[0])
    if "added" in change:
        header["added"][0] |= change["added"]
    else:
        header |= change
    path.write_bytes(pack(cube_log.COMMIT_MAGIC, header, b""))

    with pytest.raises(ss.errors.SketchFormatError):
        ss.live.Cube.open(cube.path).merge("key >= 0")


HEADS = {
    "more digits than memory holds": lambda head, keys: head["digits"].update(waves=[[1, 2**40]]),
    "digits that are no pairs": lambda head, keys: head["digits"].update(waves=[[1, 1], [2]]),
    "digits without a number": lambda head, keys: head["digits"].update(waves=None),
    "entries below zero": lambda head, keys: head["entries"].update(cells=-1),
    "entries without a number": lambda head, keys: head["entries"].update(cells=None),
    "slices below zero": lambda head, keys: head.update(n_slices=-1),
    "no keys": lambda head, keys: b"",
    "keys of another name": lambda head, keys: cube_log.to_stream(keys.rename_columns(["b"])),
    "a value that is not there": lambda head, keys: cube_log.to_stream(numbered(keys, 99)),
    "a value that is none": lambda head, keys: cube_log.to_stream(numbered(keys, None)),
}


def numbered(keys: pa.Table, number: int | None) -> pa.Table:
    numbers = pa.array([number] * len(keys), pa.int8())
    values = pa.array([0])
    return pa.table({"key": pa.DictionaryArray.from_arrays(numbers, values, safe=False)})


@pytest.mark.parametrize("forge", HEADS.values(), ids=HEADS)
def test_a_forged_head_of_a_part_is_refused(cube, forge):
    """With digests and lengths that are right."""
    cube.append(by_day(np.arange(600)))
    (part,) = (cube.path / "parts").iterdir()
    path, data = cube.path / "log" / f"{1:012d}.commit", part.read_bytes()
    commit = json.loads(unpack(path.read_bytes(), cube_log.COMMIT_MAGIC)[0])
    record = commit["added"][0]
    text, payload = unpack(data[: record["n_head"]], cube_parts.MAGIC)
    head, keys = json.loads(text), pa.ipc.open_stream(pa.py_buffer(payload)).read_all()
    forged = forge(head, keys)
    start = pack(cube_parts.MAGIC, head, bytes(payload) if forged is None else forged)
    part.write_bytes(start + data[record["n_head"] :])
    record |= {"n_head": len(start), "n_bytes": part.stat().st_size}
    path.write_bytes(pack(cube_log.COMMIT_MAGIC, commit, b""))

    with pytest.raises(ss.errors.SketchFormatError, match=re.escape(part.name)):
        ss.live.Cube.open(cube.path).merge("key >= 0")
