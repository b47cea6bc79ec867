"""Sketches as rows of SQL: SUM is ``+``, a difference is ``-``, in three engines, to the bit."""

from __future__ import annotations

import sqlite3
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sketchshift as ss
from sketchshift.errors import (
    DataError,
    IncompatibleSketchesError,
    RemovalError,
    SketchFormatError,
)

SUMS = """SELECT {keys} part, i, j, limb, SUM(value) AS value
FROM state WHERE {where} GROUP BY {keys} part, i, j, limb"""
ENGINES = ("duckdb", "sqlite", "postgres")


@cache
def plans() -> dict[str, ss.SketchSpec]:
    """All kinds of parts: waves, moments, cells, shells of far rows, axes."""
    rng = np.random.default_rng(0)
    return {
        "waves": ss.SketchSpec(n_features=3, sketch_size=20, bandwidth=0.7),
        "cells": ss.plan(rng.normal(size=(300, 3)), n_clusters=3),
        "axes": ss.plan(rng.normal(size=(300, 40)) * np.arange(1, 41), n_clusters=3),
        "drift": ss.drift.plan_drift(rng.normal(size=(300, 3)), sketch_size=20),
        "private": ss.privacy.plan_public(rng.normal(size=(300, 3)), n_clusters=3),
    }


def rows_of(plan: str, seed: int, n: int, far: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, plans()[plan].n_features)) * 10.0**far


class Store:
    """A table of an engine, and how it is filled and asked."""

    def __init__(self, engine: str, database: object) -> None:
        self.engine, self.database = engine, database

    def write(self, table: ss.SketchTable) -> None:
        if self.engine == "postgres":
            import adbc_driver_postgresql.dbapi as postgres

            with postgres.connect(self.database) as connection:
                with connection.cursor() as cursor:
                    cursor.execute("DROP TABLE IF EXISTS state")
                connection.commit()
        else:
            self.database.execute("DROP TABLE IF EXISTS state")
        table.to_sql(self.database, "state")

    def read(self, spec: ss.SketchSpec, keys: str = "", where: str = "1 = 1"):
        query = SUMS.format(keys=keys, where=where)
        if keys:
            return ss.SketchTable.from_sql(self.database, spec, query=query)
        return ss.Sketch.from_sql(self.database, spec, query=query)


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest):
    if request.param == "postgres":
        yield Store("postgres", request.getfixturevalue("postgres"))
        return
    connect = duckdb.connect if request.param == "duckdb" else sqlite3.connect
    connection = connect(":memory:")
    yield Store(request.param, connection)
    connection.close()


SLICES = st.lists(
    st.tuples(st.integers(0, 99), st.integers(1, 60), st.sampled_from([-2.0, 0.0, 3.0, 12.0])),
    min_size=1,
    max_size=5,
)


@pytest.fixture
def property_of(store):
    """Hypothesis asks for a test without fixtures inside."""

    def check(plan: str, slices, kept: int) -> None:
        spec = plans()[plan]
        far = {"cells", "axes", "private"}
        parts = [
            ss.sketch(rows_of(plan, seed, n, power if plan in far else min(power, 0.0)), spec)
            for seed, n, power in slices
        ]
        keys = pa.table({"day": list(range(len(parts)))})
        table = ss.SketchTable(keys, tuple(parts))
        store.write(table)

        assert store.read(spec, keys="day,") == table
        assert store.read(spec) == sum(parts)
        gone = sum(parts[:kept], start=0)
        minus = SUMS.format(keys="", where="1 = 1").replace(
            "FROM state",
            "FROM (SELECT part, i, j, limb, value FROM state UNION ALL "
            f"SELECT part, i, j, limb, -value FROM state WHERE day < {kept}) AS both_",
        )
        if 0 < kept < len(parts):
            left = ss.Sketch.from_sql(store.database, spec, query=minus)
            assert left == sum(parts) - gone
            assert left.to_bytes() == sum(parts[kept:]).to_bytes()

    return check


@pytest.mark.parametrize("plan", ["waves", "cells", "axes", "drift", "private"])
def test_sum_in_sql_is_plus_and_a_difference_is_minus_to_the_bit(store, property_of, plan):
    """All integers are linear in the rows; oracle: the addition of Python's integers."""
    n_examples = 2 if store.engine == "postgres" else 6  # of a server, connecting takes the time

    @settings(max_examples=n_examples)
    @given(slices=SLICES, kept=st.integers(0, 4))
    def check(slices, kept):
        property_of(plan, slices, kept)

    check()


@pytest.fixture
def week() -> ss.SketchTable:
    rng = np.random.default_rng(1)
    day, shop = rng.integers(7, size=700), rng.choice(["north", "it's"], size=700)
    x, y = rng.normal(size=(2, 700))
    spec = ss.plan(pa.table({"x": x, "y": y}), n_clusters=3)
    data = pa.table({"day": day, "shop": shop, "x": x, "y": y**9})  # some rows lie far out
    return ss.sketch_by(data, by=["day", "shop"], spec=spec)


def test_any_roll_up_in_sql_is_merge_by(store, week):
    store.write(week)

    assert store.read(week.spec, keys="shop,") == week.merge_by("shop")
    assert store.read(week.spec, where="day < 3") == week.where("day < 3").merge()
    assert store.read(week.spec, keys="day, shop,") == week


def test_rows_that_are_summed_are_stored_again_and_summed_again(store, week):
    """A place has one integer of any size afterwards: the limbs of a sum may be larger."""
    store.write(week)
    rows = store.read(week.spec, keys="shop,")
    store.write(rows)

    assert store.read(week.spec) == week.merge()


def test_rows_that_are_not_summed_are_added_up(week):
    rows = week.to_sql_rows().drop_columns(["day", "shop"])

    assert ss.Sketch.from_sql(rows, week.spec) == week.merge()
    assert ss.SketchTable.from_sql(week.to_sql_rows(), week.spec) == week


def test_a_difference_that_removes_what_was_never_added_is_refused(store, week):
    store.write(week)
    query = SUMS.format(keys="", where="1 = 1").replace(
        "SUM(value)", "SUM(CASE WHEN day < 3 THEN value ELSE -value END)"
    )

    with pytest.raises((SketchFormatError, RemovalError), match="not those of any rows"):
        ss.Sketch.from_sql(store.database, week.spec, query=query)


def test_sums_across_plans_are_refused_whether_the_plan_is_selected_or_not(store, week):
    other = ss.plan(np.random.default_rng(2).normal(size=(300, 2)), n_clusters=3)
    X = np.random.default_rng(3).normal(size=(50, 2))
    stranger = ss.SketchTable(pa.table({"day": [8], "shop": ["east"]}), (ss.sketch(X, other),))
    store.write(week)
    stranger.to_sql(store.database, "state")

    with pytest.raises(IncompatibleSketchesError, match="their seal does not fit"):
        store.read(week.spec)
    with pytest.raises(IncompatibleSketchesError, match="were made with the plans"):
        ss.SketchTable.from_sql(store.database, week.spec, query="state")
    mine = f"plan = '{week.spec.fingerprint}'"
    assert store.read(week.spec, where=mine) == week.merge()


def test_rows_left_out_by_a_condition_are_noticed(store, week):
    store.write(week)

    for where in ("part <> 'moments'", "j = 0", "NOT (part = 'seal' AND i = 1)"):
        with pytest.raises(SketchFormatError, match="are missing, or come more than once"):
            store.read(week.spec, where=where)
    for where in ("part <> 'count'", "limb = 0", "value > 0"):
        with pytest.raises(IncompatibleSketchesError, match="seal"):
            store.read(week.spec, where=where)


@pytest.mark.parametrize("plan", ["waves", "cells", "axes", "drift", "private"])
def test_any_rows_that_are_missing_or_come_twice_are_noticed(plan):
    """The seal of all integers is linear: what is left out must add up to 0 to go unseen."""
    spec = plans()[plan]
    far = 3.0 if plan in {"cells", "axes", "private"} else 0.0
    parts = [ss.sketch(rows_of(plan, seed, 40, far * (seed == 1)), spec) for seed in (0, 1)]
    both = pa.concat_tables([part.to_sql_rows() for part in parts])
    rng = np.random.default_rng(0)

    assert ss.Sketch.from_sql(both, spec) == parts[0] + parts[1]
    for n in (1, 1, 1, 1, 1, 1, 2, 2, 5, 50):
        some = rng.choice(len(both), size=n, replace=False)
        left = both.take(np.setdiff1d(np.arange(len(both)), some))
        for rows in (left, pa.concat_tables([both, both.take(some)])):
            with pytest.raises((SketchFormatError, IncompatibleSketchesError)):
                ss.Sketch.from_sql(rows, spec)


def test_values_that_are_no_integers_are_refused(week):
    rows = week.to_sql_rows().drop_columns(["day", "shop"])
    place = rows.column_names.index("value")
    floats = rows.set_column(place, "value", rows.column("value").cast(pa.float64(), safe=False))

    with pytest.raises(DataError, match=r"CAST\(SUM\(value\) AS BIGINT\)"):
        ss.Sketch.from_sql(floats, week.spec)
    huge = rows.set_column(2, "i", pa.array(["9" * 30] * len(rows)))
    with pytest.raises(SketchFormatError, match="as they were written: one is huge"):
        ss.Sketch.from_sql(huge, week.spec)
    with pytest.raises(DataError, match=r"no column 'limb'.*Select part, i, j, limb"):
        ss.Sketch.from_sql(rows.drop_columns("limb"), week.spec)


def test_keys_say_which_reader_is_meant(week):
    with pytest.raises(DataError, match=r"SketchTable\.from_sql"):
        ss.Sketch.from_sql(week.to_sql_rows(), week.spec)
    with pytest.raises(DataError, match=r"Sketch\.from_sql"):
        ss.SketchTable.from_sql(week.to_sql_rows().drop_columns(["day", "shop"]), week.spec)


def test_the_layout_is_as_documented(week):
    """``docs/databases.md``: balanced limbs of 40 bits, no zeros, counts and seal as integers."""
    rows = week.merge().to_sql_rows()
    values = rows.column("value").to_numpy()
    found = {(r["part"], r["i"], r["j"], r["limb"]): r["value"] for r in rows.to_pylist()}

    assert rows.column_names == ["plan", "part", "i", "j", "limb", "value"]
    assert (values != 0).all()
    assert (values >= -(2**39)).all()
    assert (values < 2**39).all()
    assert found["count", 0, 0, 0] == week.merge().count
    seal = sum(found.get(("seal", 0, 0, limb), 0) << 40 * limb for limb in range(3))
    assert seal == week.merge().count * (int(week.spec.fingerprint[:9], 16) | 1)


def test_a_sketch_of_no_rows_has_no_rows():
    spec = plans()["cells"]
    empty = ss.Sketcher(spec).sketch()

    assert len(empty.to_sql_rows()) == 0
    assert ss.Sketch.from_sql(empty.to_sql_rows(), spec) == empty


def test_a_file_is_made_where_there_is_none(tmp_path, week):
    for name in ("state.duckdb", "state.sqlite"):
        week.to_sql(tmp_path / name, "state")
        week.to_sql(tmp_path / name, "state")

        twice = ss.SketchTable.from_sql(tmp_path / name, week.spec, query="state")
        assert twice == week + week


def test_rows_go_by_the_names_of_their_columns(store):
    """Appended in another order of keys, they are not those of other slices."""
    rng = np.random.default_rng(0)
    given = {"x": rng.normal(size=60), "a": rng.choice(["p", "q"], 60), "b": ["p", "q", "r"] * 20}
    spec = ss.SketchSpec(n_features=1, sketch_size=10, bandwidth=1.0, columns=("x",))
    store.write(ss.sketch_by(pa.table(given), ["a", "b"], spec))
    ss.sketch_by(pa.table(given), ["b", "a"], spec).to_sql(store.database, "state")

    once = ss.sketch_by(pa.table(given), "b", spec)

    assert dict(iter(store.read(spec, keys="b,"))) == {key: s + s for key, s in iter(once)}
    other = pa.table({"x": given["x"], "c": given["a"], "d": given["b"]})
    with pytest.raises(DataError, match="cannot answer"):
        ss.sketch_by(other, ["c", "d"], spec).to_sql(store.database, "state")


def test_a_transaction_of_sqlite_that_is_open_stays_open():
    table = ss.sketch_by(np.arange(20.0).reshape(10, 2), by=np.arange(10) % 2, n_clusters=2)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE mine (x)")
    connection.execute("INSERT INTO mine VALUES (1)")

    table.to_sql(connection, "state")
    assert ss.SketchTable.from_sql(connection, table.spec, query="state") == table
    connection.execute("CREATE TABLE other (x)")
    with pytest.raises(DataError, match="cannot answer"):
        table.to_sql(connection, "other")
    assert connection.in_transaction
    connection.rollback()

    assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)
    table.to_sql(connection, "later")
    connection.rollback()
    assert ss.SketchTable.from_sql(connection, table.spec, query="later") == table
    connection.close()
