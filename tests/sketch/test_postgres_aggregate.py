"""Sketches made inside a PostgreSQL server are those that are made outside, to the bit."""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sketchshift as ss

COLUMNS = [f"x{i}" for i in range(3)]


def run(address: str, *statements: str) -> list[tuple]:
    """The rows of the last statement."""
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with dbapi.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall()


@pytest.fixture(scope="module")
def server(postgres: str) -> str:
    """A database whose PL/Python finds this package, with a table of rows."""
    folders = [str(Path(ss.__file__).parents[1]), *filter(os.path.isabs, sys.path)]
    found = [folder for folder in folders if "site-packages" in folder or "src" in folder]
    path = ", ".join(f"('{folder}')" for folder in dict.fromkeys(found))
    script = (files("sketchshift.sketch") / "postgres.sql").read_text()
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    try:
        run(postgres, "CREATE EXTENSION IF NOT EXISTS plpython3u", "SELECT 1 AS one")
    except dbapi.Error as error:
        pytest.skip(f"there is no PL/Python here, postgresql-plpython3-15 of Debian ({error})")
    with dbapi.connect(postgres, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.executescript(script)
        rows = pa.table({"day": np.arange(20_000) % 3, **columns()})
        cursor.adbc_ingest("inside", rows, mode="create")
    run(postgres, f"INSERT INTO sketchshift.path VALUES {path}", "SELECT 1 AS one")
    try:
        run(postgres, "SELECT sketchshift.load()::text AS loaded")
    except dbapi.Error as error:
        pytest.skip(f"the Python of PL/Python cannot load the packages of this one ({error})")
    return postgres


def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.normal(size=20_000) + 5.0 * (np.arange(20_000) % 2) for name in COLUMNS}


@pytest.fixture(scope="module")
def spec(server: str) -> ss.SketchSpec:
    """A plan, which the server has under the name 'plan'."""
    spec = ss.plan(pa.table(columns()), n_clusters=3)
    text = spec.to_json().replace("'", "''")
    run(server, f"INSERT INTO sketchshift.plan VALUES ('plan', '{text}')", "SELECT 1 AS one")
    return spec


def of_days() -> dict[int, np.ndarray]:
    X = np.column_stack(list(columns().values()))
    return {day: X[np.arange(20_000) % 3 == day] for day in range(3)}


def test_an_aggregate_by_key_gives_the_bytes_of_each_slice(server, spec):
    sql = (
        "SELECT day, sketchshift.sketch('plan', x0, x1, x2) AS s FROM inside GROUP BY day "
        "ORDER BY day"
    )

    found = run(server, sql)

    assert [bytes(data) for _, data in found] == [
        ss.sketch(X, spec).to_bytes() for X in of_days().values()
    ]


@pytest.mark.parametrize(
    "made",
    [
        "sketchshift.sketch_query('plan', 'SELECT * FROM inside -- all of them')",
        "(SELECT sketchshift.sketch_packed('plan', string_agg(array_send(ARRAY[x0, x1, x2]), '')) "
        "FROM inside)",
        "sketchshift.merge(ARRAY(SELECT sketchshift.sketch('plan', x0, x1, x2) FROM inside "
        "GROUP BY day))",
    ],
)
def test_faster_ways_give_the_same_bytes(server, spec, made):
    ((data,),) = run(server, f"SELECT {made} AS s")

    assert bytes(data) == ss.sketch(np.concatenate(list(of_days().values())), spec).to_bytes()


def test_rows_of_the_layout_are_made_and_summed_in_the_server(server, spec):
    query = """SELECT day, part, i, j, limb, SUM(value) AS value FROM (
        SELECT day, (sketchshift.rows(s)).* FROM (
            SELECT day, sketchshift.sketch('plan', x0, x1, x2) AS s FROM inside GROUP BY day
        ) AS slices
    ) AS state GROUP BY day, part, i, j, limb"""

    table = ss.SketchTable.from_sql(server, spec, query=query)

    assert dict(iter(table)) == {day: ss.sketch(X, spec) for day, X in of_days().items()}


def test_no_rows_and_no_plan_are_said(server, spec):
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")

    ((none,),) = run(server, "SELECT sketchshift.sketch('plan', x0) AS s FROM inside WHERE false")
    assert none is None
    with pytest.raises(
        dbapi.Error, match=r"no plan 'plans' in sketchshift\.plan, which has: 'plan'"
    ):
        run(server, "SELECT sketchshift.sketch('plans', x0) AS s FROM inside")
    with pytest.raises(dbapi.Error, match="without NULL: use coalesce"):
        run(server, "SELECT sketchshift.sketch_packed('plan', '\\x00') AS s")


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [("x0, x1, NULL", "float8"), ("1, 2, 3", "int8"), ("[x0, x1, x2]", "float8")],
)
def test_rows_packed_in_another_way_are_refused(server, spec, numbers, kind):
    """Of 14 rows with a NULL there are as many bytes as of 12 without, of int8 as of float8."""
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    packed = f"string_agg(array_send(ARRAY[{numbers}]::{kind}[]), '')"

    with pytest.raises(dbapi.Error, match="rows must be array_send of 3 float8 each"):
        run(
            server,
            f"SELECT sketchshift.sketch_packed('plan', {packed}) AS s "
            "FROM (SELECT * FROM inside LIMIT 14) AS few",
        )


def test_a_group_of_two_plans_is_refused(server, spec):
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    plan = "CASE WHEN day = 1 THEN 'plan' ELSE 'other' END"
    text = spec.to_json().replace("'", "''")
    run(server, f"INSERT INTO sketchshift.plan VALUES ('other', '{text}')", "SELECT 1 AS one")

    with pytest.raises(dbapi.Error, match="a group has the plans"):
        run(server, f"SELECT sketchshift.sketch({plan}, x0, x1, x2) AS s FROM inside")
    run(server, "DELETE FROM sketchshift.plan WHERE name = 'other'", "SELECT 1 AS one")


def test_no_session_says_where_the_server_finds_programs(server, spec):
    """A setting that everybody may change would let them run theirs as the server's user."""
    sql = "SELECT length(sketchshift.sketch('plan', x0, x1, x2)) AS n FROM inside"

    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "sketchshift.py").write_text("raise ImportError('a program of mine')")
        ((n,),) = run(server, f"SET sketchshift.path = '{folder}'", sql)

    assert n > 0


def test_a_query_inside_the_server_may_end_in_a_semicolon(server, spec):
    sql = "SELECT sketchshift.sketch_query('plan', 'SELECT * FROM inside;') AS s"

    ((data,),) = run(server, sql)

    assert ss.Sketch.from_bytes(bytes(data)).count == 20_000
