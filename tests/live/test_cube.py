"""Cubes: slices in a folder that many writers add to and take away from."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
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
from sketchshift.errors import (
    ConflictError,
    DataError,
    IncompatibleSketchesError,
    RemovalError,
    SketchFormatError,
)
from sketchshift.features import Cells, Range
from sketchshift.live import Cube, cube_log, cube_parts
from sketchshift.live import cube as cubes
from sketchshift.sketch import file as sketch_file
from sketchshift.sketch.file import pack, unpack

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
day_of = np.arange(600) // 100
SPEC = ss.SketchSpec(3, 67, Range(0.2, 0.7, 0.15), center=(0.0, 0.1, 0.0), scale=1.7).replaced(
    cells=Cells.of(X[:15])
)


def by_day(*rows):
    return ss.sketch_by(X[np.r_[rows]], by=day_of[np.r_[rows]], spec=SPEC)


def one(*rows):
    return ss.sketch(X[np.r_[rows]], SPEC)


def reopen(cube):
    return Cube.open(cube.path)


def parts_of(cube):
    return sorted((cube.path / "parts").iterdir())


@pytest.fixture
def cube(tmp_path):
    return Cube.create(tmp_path / "cube", SPEC, by="key")


@pytest.fixture
def days(cube):
    """The cube with all rows in one part."""
    cube.append(by_day(day_of >= 0))
    return cube


def test_what_is_left_has_the_bytes_of_a_sketch_that_saw_nothing_else(cube):
    gone = np.union1d(RNG.permutation(600)[:200], np.flatnonzero(day_of == 1))  # all of day 1

    cube.append(by_day(slice(300)))
    cube.append(by_day(slice(300, 600)), by_day(gone[gone < 300]))
    cube.append(removed=by_day(gone[gone >= 300]))

    left = np.setdiff1d(np.arange(600), gone)
    assert cube.version == 3
    assert cube.merge() == one(left)
    assert cube.table() == by_day(left)
    assert cube.table().keys.column("key").to_pylist() == [0, 2, 3, 4, 5]
    assert reopen(cube).merge().to_bytes() == cube.merge().to_bytes()


def test_a_cube_without_keys_is_a_stored_sketch(tmp_path):
    cube = Cube.create(tmp_path / "one", SPEC)

    assert cube.merge().count == 0
    cube.append(one(slice(600)))
    cube.append(removed=one(slice(50)))
    assert cube.merge() == one(slice(50, 600))
    with pytest.raises(DataError, match="no keys"):
        cube.table()
    cube.append(removed=one(slice(553)))
    with pytest.raises(RemovalError, match="never added to it: 3 rows more went than came"):
        cube.merge()


def test_positions_move_with_the_sums_or_not_at_all(cube):
    other, first = reopen(cube), {"positions": {"log": {"at": 1}}, "expected": {"log": None}}
    cube.append(by_day(slice(100)), **first)
    with pytest.raises(ConflictError, match="another has moved it"):
        other.append(by_day(slice(100)), **first)
    assert len(parts_of(cube)) == 1
    cube.append(by_day(slice(100, 200)), positions={"log": {"at": 2}}, expected=cube.positions)

    assert other.positions == {"log": {"at": 2}}
    assert other.merge() == one(slice(200))


def test_sums_are_kept_once_and_taken_away_once_without_their_rows(cube):
    a, b = by_day(slice(100)), by_day(slice(100, 300))
    cube.append(kept={"a": a, "b": b})
    for wrong in ({"returned": ["a", "a"]}, {"kept": {"a": b}}):
        with pytest.raises(DataError, match=r"kept under a name once, and taken away once.*'a'"):
            cube.append(**wrong)

    cube.append(returned=["a"])
    with pytest.raises(DataError, match="does not keep"):
        cube.append(returned=["a"])
    assert reopen(cube).merge() == one(slice(100, 300))
    cube.append(kept={"b": a}, returned=["b"])
    assert reopen(cube).merge() == one(slice(100))


def events(n):
    rng = np.random.default_rng(0)
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
    return Cube.create(tmp_path / "sales", plan, by=BY)


def test_rows_go_straight_into_slices_with_the_bytes_of_their_sketches(sales, plan, monkeypatch):
    slices = importlib.import_module("sketchshift.sketch.slices")
    monkeypatch.setattr(slices, "HELD_BYTES", 2**18)  # many small parts
    data = events(3000)
    far = data.slice(0, 3).set_column(3, "x", pa.array([1e3, -1e9, 40.0]))
    data = pa.concat_tables([data, far])

    sales.append_rows(data)

    table = ss.sketch_by(data, by=BY, spec=plan)
    assert len(parts_of(sales)) > 1
    assert sales.table() == table
    assert sales.merge() == table.merge()
    condition = "day >= '2026-01-08' AND country <> 'DE'"
    assert sales.table(condition, by=["product"]) == table.where(condition).merge_by("product")
    assert sales.merge("count > 12") == table.where("count > 12").merge()
    sales.compact()
    assert len(parts_of(sales)) == 1
    assert sales.table() == table


def bytes_read():
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/io")
def test_parts_and_slices_that_cannot_meet_a_condition_are_not_read(sales, plan):
    data = events(4000)
    for day in range(20):
        sales.append_rows(data.filter(pc.equal(data["day"], pa.scalar(date(2026, 1, 1 + day)))))
    n_stored = sum(path.stat().st_size for path in parts_of(sales))
    condition = "day = '2026-01-20'"
    sales.merge(condition)  # what conditions need is imported
    cube = reopen(sales)
    assert cube.version >= 20  # the log is read
    before = bytes_read()

    found = cube.merge(condition)

    assert found == ss.sketch_by(data, by=BY, spec=plan).where(condition).merge()
    assert bytes_read() - before < n_stored / 5
    cube.merge()  # all heads stay in memory
    before = bytes_read()
    cube.merge("country = 'AT' AND product = 1")
    assert bytes_read() - before < n_stored / 8


LAYOUTS = {
    "dates in one part, words in another": (
        [["2026-01-01", "2026-01-20"], ["north", "south", "west", "2026-01-18"]],
        {
            "key >= '2026-01-15'": ["2026-01-18", "2026-01-20", "north", "south", "west"],
            "key <> '2026-01-01' AND key < 'o'": ["2026-01-18", "2026-01-20", "north"],
        },
    ),
    "dates as people write them": (
        [["05.01.2026", "20.01.2026"], ["north", "2026-01-18", "19.01.2026", "NA"]],
        {
            "key >= '2026-01-15'": ["20.01.2026", "2026-01-18", "19.01.2026", "north"],
            "key BETWEEN '2026-01-01' AND '2026-01-18'": ["05.01.2026", "2026-01-18"],
        },
    ),
    "days before months": (
        [["03.01.2026"], ["01.02.2026"], ["05.01.2026"]],
        {"key >= '2026-01-04'": ["01.02.2026", "05.01.2026"]},
    ),
    "missing in one part": (
        [[1, 2], [None]],
        {"key = 1": [1], "key IS NULL": [None], "NOT key > 1": [1], "count = 1 AND key = 2": [2]},
    ),
    "whole numbers in one part": ([[1, 2], [1.5, 2.0]], {"key < 1.75": [1, 1.5], "key = 2": [2]}),
    "whole numbers beyond fractions": (
        [[2**53 + 1], [2**53 + 2]],
        {f"key > {2**53 + 1}.5": [2**53 + 2]},
    ),
    "numbers beyond single precision": ([[20_000_001], [7]], {"key > 7.5": [20_000_001]}),
    "decimals": (
        [[Decimal("1.00")], [Decimal("1.01")]],
        {"key > 1.005": [Decimal("1.01")], "key < 100000000000": [1, Decimal("1.01")]},
    ),
    "seconds in one part": (
        [
            [np.datetime64("2026-01-01T00:00:00", "s")],
            [np.datetime64("2026-01-01T00:00:00.5", "ms")],
        ],
        {"key < '2026-01-01 00:00:00.25'": [datetime(2026, 1, 1)]},
    ),
}


@pytest.mark.parametrize(("parts", "conditions"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_condition_means_the_same_whichever_parts_it_rules_out(tmp_path, parts, conditions):
    cube = Cube.create(tmp_path / "cube", SPEC, by=["part", "key"])

    def found(condition):
        return cube.summary(condition)[0]["key"].to_pylist()

    for i, keys in enumerate(parts):
        columns = dict(zip("xyz", X[: len(keys)].T, strict=True))
        cube.append_rows(pa.table({"part": [i] * len(keys), "key": pa.array(keys), **columns}))
    for _ in range(2):
        for condition, expected in conditions.items():
            assert set(found(condition)) == set(expected)
            apart = [found(f"part = {i} AND {condition}") for i in range(len(parts))]
            assert set().union(*apart) == set(expected)
        cube.compact()


def test_a_cast_that_changes_a_value_is_refused(days):
    with pytest.raises(DataError, match="another value"):
        days.merge("key < CAST('2.7' AS INTEGER)")
    assert days.merge("key < CAST('3' AS INTEGER)") == one(day_of < 3)


def test_every_flipped_byte_is_found(days):
    files = [path for path in days.path.rglob("*") if path.is_file()]
    rng = np.random.default_rng(0)
    for path in files:
        whole = path.read_bytes()
        damaged = [whole[: len(whole) // 2]]
        for at in rng.integers(0, len(whole), 12):
            flipped = bytes([whole[at] ^ 1 << rng.integers(8)])
            damaged.append(whole[:at] + flipped + whole[at + 1 :])
        for content in damaged:
            path.write_bytes(content)
            with pytest.raises((SketchFormatError, ss.errors.SpecError)):
                reopen(days).merge()
        path.write_bytes(whole)
    assert len(files) == 3
    assert days.merge() == one(day_of >= 0)


def test_rows_that_never_came_are_not_taken_away_unseen(cube):
    """Also where other slices have so many rows that the sum of all is one of rows."""
    cube.append(by_day(slice(110), slice(200, 600)))
    cube.append(removed=by_day(slice(100, 150)))
    facts = r"never added to it in the slice key = 1: 40 rows more went than came.*as added"
    for _ in range(2):
        for read in (cube.table, cube.merge, cube.summary, lambda: cube.merge("key < 3")):
            with pytest.raises(RemovalError, match=facts):
                read()
        cube.compact()

    assert cube.merge("key <> 1").count == 500
    cube.append(by_day(slice(110, 150)))
    assert cube.merge() == one(slice(100), slice(200, 600))


def test_other_rows_taken_away_than_came_are_told_with_their_slice(days):
    days.append(removed=ss.sketch_by(X[:5] + 1e3, by=day_of[:5] + 2, spec=SPEC))

    with pytest.raises(RemovalError, match=r"in the slice key = 2: 95 rows would be left, with"):
        days.table()
    with pytest.raises(RemovalError, match=r"never added to it: 595 rows would be left"):
        days.merge()


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

    first, *others = [path.stat().st_size for path in sorted((cube.path / "log").iterdir())]
    assert first > 40_000
    assert max(others) < 400
    expected = {"folder:a": {"files": files}, "b": {"at": None}}
    assert reopen(cube).positions == cube.positions == expected


def test_parts_that_are_full_are_not_written_again(cube, monkeypatch):
    monkeypatch.setattr(cubes, "PART_SLICES", 4)
    for i in range(200):
        cube.append(ss.sketch_by(X[i : i + 1], by=np.array([i]), spec=SPEC))

    sizes = [record.n_slices for record in cube._log.state().parts.values()]
    assert sum(sizes) == 200
    assert sum(size < 4 for size in sizes) < 16
    assert cube.version == 200 + 200 // 16
    assert cube.merge() == one(slice(200))


def test_slices_that_stand_alone_are_put_together_by_key(cube):
    for day in (3, 0, 5, 1):
        cube.append(by_day(day_of == day))
    table = cube.table()

    cube.compact()

    assert len(parts_of(cube)) == 1
    assert cube.table() == table == by_day(np.isin(day_of, (3, 0, 5, 1)))
    assert cube.summary()[0].column("key").to_pylist() == [0, 1, 3, 5]


def test_single_rows_that_come_and_go_leave_few_parts_and_no_file_that_nobody_needs(cube):
    for i in range(100):
        row = by_day(i)
        if i % 3:
            cube.append(row)
        else:
            cube.append(kept={f"row {i}": row})
        if i % 4 == 0:
            cube.append(removed=row) if i % 3 else cube.append(returned=[f"row {i}"])

    state = reopen(cube)._log.state()
    assert len(state.parts) <= 32
    assert {path.name for path in parts_of(cube)} == state.files
    assert reopen(cube).merge() == one(np.flatnonzero(np.arange(100) % 4))
    assert cube._log._newest_checkpoint().number == 128


def test_a_table_that_memory_cannot_hold_is_refused(days, set_free):
    set_free(1000)

    with pytest.raises(DataError, match=r"slices by .* need .* Take fewer keys with by"):
        days.table()


def test_what_does_not_belong_to_a_cube_is_refused(days, tmp_path):
    texts = day_of.astype(str).astype(object) + np.array("x")
    unlike = IncompatibleSketchesError
    for error, words, act in (
        (unlike, "different plans", lambda: days.append(ss.sketch_by(X, by=day_of, n_clusters=5))),
        (unlike, "given a sketch", lambda: days.append(one(slice(5)))),
        (
            unlike,
            "holds int64 in one and string",
            lambda: days.append(ss.sketch_by(X, by=texts, spec=SPEC)),
        ),
        (ConflictError, "already", lambda: Cube.create(days.path, SPEC)),
        (DataError, "no cube", lambda: Cube.open(tmp_path)),
        (DataError, "cannot merge by", lambda: days.table(by="weather")),
    ):
        with pytest.raises(error, match=words):
            act()


@pytest.mark.parametrize(
    "change",
    [
        lambda spec: {"cells": None},
        lambda spec: {"waves": replace(spec.waves, precision="float64")},
        lambda spec: {"waves": None},
        lambda spec: {"cells": None, "spread": None},
        lambda spec: {"rows": replace(spec.rows, onto="sphere")},
    ],
    ids=["waves alone", "float64", "cells alone", "no moments", "cosine"],
)
def test_every_kind_of_spec_goes_through_a_cube(tmp_path, change):
    spec = ss.plan(X, 4, seed=0)
    spec = spec.replaced(**change(spec))
    weights = np.random.default_rng(0).uniform(0.1, 3.0, 600)
    table = ss.sketch_by(X, by=day_of, spec=spec, sample_weight=weights)
    cube = Cube.create(tmp_path / "cube", spec, by="key")
    cube.append(table)
    assert cube.table() == table
    rows = pa.table({"key": day_of, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    cube.append_rows(rows)
    cube.append(removed=table)
    assert cube.table() == ss.sketch_by(rows, by="key", spec=spec)


@pytest.mark.parametrize("page", ["cube", "follow", "lakes"])
def test_the_code_of_the_pages_runs(page, tmp_path, monkeypatch):
    if page == "lakes":
        pytest.importorskip("deltalake", reason="needs the extra lakes")
    text = (Path(__file__).parents[2] / "docs" / f"{page}.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        exec(block, names)


def test_a_cube_that_was_copied_in_part_is_refused_and_loses_nothing(cube):
    for day in range(4):
        cube.append(by_day(day_of == day))
    lost, parts = cube.path / "log" / f"{2:012d}.commit", parts_of(cube)
    away = lost.rename(cube.path / "lost")

    for use in (Cube.merge, Cube.compact, lambda own: own.append(by_day(5))):
        with pytest.raises(SketchFormatError, match=r"a commit of the cube is not .*2\.com"):
            use(reopen(cube))
    assert parts_of(cube) == parts
    away.rename(lost)
    assert reopen(cube).merge() == one(day_of < 4)


def test_a_lost_part_ends_compaction_with_a_sentence(cube):
    for day in range(3):
        cube.append(by_day(day_of == day))
    parts_of(cube)[0].unlink()
    (cube.path / "drafts").rmdir()

    with pytest.raises(SketchFormatError, match=r"a part of the cube .* is not there"):
        reopen(cube).compact()


def with_missing(data, column, every):
    i = data.column_names.index(column)
    is_missing = pa.array(np.arange(len(data)) % every == 0)
    return data.set_column(i, column, pc.if_else(is_missing, None, data.column(i)))


def test_a_condition_finds_the_slices_that_a_look_at_each_of_them_finds(sales, plan):
    """Of parts of which some lack values that others have, and rows that lack keys."""
    data = with_missing(with_missing(events(900), "product", 7), "day", 11)
    data = data.sort_by("country")
    for start in range(0, 900, 200):
        sales.append_rows(data.slice(start, 200))
    table = ss.sketch_by(data, by=BY, spec=plan)

    for condition in (
        "country = 'AT' OR product IS NULL",
        "NOT (country IN ('AT', 'DE') AND product < 2)",
        "day BETWEEN '2026-01-05' AND '2026-01-09' AND country LIKE 'A%'",
        "day > '2026-01-03' AND country <> 'FR' AND product >= 1",
        "country = 'nowhere'",
        "day = '2026-01-04' OR day IS NULL",
    ):
        expected = table.where(condition)
        assert sales.merge(condition).count == expected.counts.sum()
        assert not len(expected) or sales.merge(condition) == expected.merge()
        assert sales.summary(condition)[1].tolist() == expected.counts.tolist()


def test_a_part_has_as_many_slices_as_memory_is_set_aside_for(days, monkeypatch):
    days.append(by_day(slice(1)))
    monkeypatch.setattr(cubes, "PART_BYTES", 2 * 8 * days._layout.width)

    days.compact()

    assert [record.n_slices for record in days._log.state().parts.values()] == [2, 2, 2]
    assert days.merge() == one(0, slice(600))


def by_key(keys):
    data = pa.table({"key": pa.array(keys), **{f"x{i}": X[: len(keys), i] for i in range(3)}})
    return ss.sketch_by(data, by="key", spec=SPEC)


@pytest.mark.parametrize(
    ("before", "last"),
    [([], [[1, 2], ["x", "y"]]), ([["x"]], [[date(2026, 1, 1)]]), ([[0.5]], [[1, 2**60 + 1]])],
)
def test_keys_that_no_type_holds_are_refused_before_they_are_in(cube, before, last):
    """Else no reader could put them together, and the cube were lost."""
    for keys in before:
        cube.append(by_key(keys))

    with pytest.raises(IncompatibleSketchesError, match="no type holds the values of both"):
        cube.append(*map(by_key, last))

    assert cube.version == reopen(cube).merge().count == len(before)


def test_keys_of_two_first_writers_that_no_type_holds_are_refused(cube, monkeypatch):
    """Neither sees a part of the other when it writes its own: one commits before the other."""
    publish = cube_log.publish

    def publish_second(*given):
        monkeypatch.setattr(cube_log, "publish", publish)
        reopen(cube).append(by_key(["a"]))
        return publish(*given)

    monkeypatch.setattr(cube_log, "publish", publish_second)
    with pytest.raises(IncompatibleSketchesError, match="no type holds"):
        cube.append(by_key([date(2026, 1, 1)]))
    assert cube.table() == by_key(["a"])


def test_whole_numbers_become_texts_behind_a_part_whose_keys_are_missing(cube):
    for keys in ([None, None], ["x"], [5]):
        cube.append(by_key(keys))

    assert cube.table().keys.column("key").to_pylist() == ["5", "x", None]


def test_bytes_of_any_width_are_keys_and_what_has_no_order_is_none(cube):
    cube.append(by_key(pa.array([b"ab", b"cd"], pa.binary(2))))
    cube.append(by_key(pa.array([b"abc"], pa.binary(3))))

    assert cube.table().keys.column("key").to_pylist() == [b"ab", b"abc", b"cd"]
    with pytest.raises(DataError, match="a key cannot hold month_day_nano_interval"):
        by_key(pa.nulls(2, pa.month_day_nano_interval()))


def test_what_follows_a_commit_cannot_fail_it(cube):
    """Who saw an error would append again, and count rows twice."""
    for i in range(15):
        cube.append(by_day(i))
    part = parts_of(cube)[0]
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))

    assert cube.append(by_day(15)) == 16  # would put the 16 parts together

    with pytest.raises(SketchFormatError, match="was damaged"):
        cube.merge()
    part.write_bytes(whole)
    assert cube.merge() == one(slice(16))


def test_a_checkpoint_that_would_be_too_long_is_left_out(cube, monkeypatch):
    monkeypatch.setattr(cube_log, "EVERY", 2)
    monkeypatch.setattr(sketch_file, "MAX_HEADER", 2500)
    for i in range(4):
        cube.append(positions={f"source {i}": "x" * 1000})

    assert cube._log._newest_checkpoint().number == 2
    assert reopen(cube).version == 4


def test_a_file_of_somebody_else_in_the_log_does_no_harm(days):
    (days.path / "log" / "000000000001 (copy).commit").write_bytes(b"")

    assert reopen(days).version == 1


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


def commit_of(cube):
    path = cube.path / "log" / f"{1:012d}.commit"
    return path, json.loads(unpack(path.read_bytes(), cube_log.COMMIT_MAGIC)[0])


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_forged_commit_is_refused(days, change):
    """With a digest that is right: nothing outside of the folder is read or removed."""
    shutil.copy(parts_of(days)[0], days.path.parent / "treasure.slices")
    path, header = commit_of(days)
    added = [header["added"][0] | change.get("added", {})]
    path.write_bytes(pack(cube_log.COMMIT_MAGIC, header | change | {"added": added}, b""))

    with pytest.raises(SketchFormatError):
        reopen(days).merge("key >= 0")


def numbered(number):
    """Numbers of values, of which there is one."""
    return pa.DictionaryArray.from_arrays(pa.array([number] * 6, pa.int8()), [0], safe=False)


HEADS = {
    "more columns than there are": {"kept": ["ff" * 1000, "ff", "ff"]},
    "columns of two tables": {"kept": ["ff", "ff"]},
    "columns of no text": {"kept": [1, 2, 3]},
    "an index below zero": {"n_index": -1},
    "an index without bytes": {"n_index": 0},
    "an index longer than the head": {"n_index": 2**60},
    "no keys": pa.table({}),
    "keys of another name": pa.table({"b": range(6)}),
    "a value that is not there": pa.table({"key": numbered(99)}),
    "a value that is none": pa.table({"key": numbered(None)}),
}


@pytest.mark.parametrize("change", HEADS.values(), ids=HEADS)
def test_a_forged_head_of_a_part_is_refused(days, change):
    """With digests and lengths that are right."""
    (part,), (path, commit) = parts_of(days), commit_of(days)
    data, record = part.read_bytes(), commit["added"][0]
    text, payload = unpack(data[: record["n_head"]], cube_parts.MAGIC)
    head, payload = json.loads(text), bytes(payload)
    if isinstance(change, pa.Table):
        payload = payload[: head["n_index"]] + cube_log.to_stream(change)
    else:
        head |= change
    start = pack(cube_parts.MAGIC, head, payload)
    part.write_bytes(start + data[record["n_head"] :])
    record |= {"n_head": len(start), "n_bytes": part.stat().st_size}
    path.write_bytes(pack(cube_log.COMMIT_MAGIC, commit, b""))

    with pytest.raises(SketchFormatError, match=re.escape(part.name)):
        reopen(days).merge("key >= 0")
