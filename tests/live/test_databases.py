"""PostgreSQL, DuckDB and SQLite as sources: rows, types, snapshots, refusals, and no password."""

from __future__ import annotations

import datetime
import gc
import sqlite3
from contextlib import closing
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import sketchshift as ss
from sketchshift._text import without_password
from sketchshift.cli import main
from sketchshift.data import open_source
from sketchshift.errors import DataError, InvalidRowsError, MissingDependencyError, SpecError
from sketchshift.live.database import Query, without_credentials

SECRET = "5ecret"
N = 3000
ENGINES = ("postgres", "duckdb", "sqlite")


def events():
    rng = np.random.default_rng(0)
    start = datetime.date(2026, 1, 1)
    return pa.table(
        {
            "id": np.arange(N),
            "x": rng.normal(size=N),
            "y": rng.normal(size=N) + 4.0 * (np.arange(N) % 3),
            "w": rng.integers(1, 4, size=N).astype(float),
            "shop": rng.choice(["north", "it's"], size=N),
            "day": [start + datetime.timedelta(days=i % 60) for i in range(N)],
        }
    )


def make(database, name, rows):
    """A table with rows, by the engine's own means."""
    if str(database).startswith("postgresql"):
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(database) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name.strip('"'), rows, mode="replace")
            connection.commit()
    elif str(database).endswith(".duckdb"):
        with duckdb.connect(str(database)) as connection:
            connection.from_arrow(rows).create(name.strip('"'))
    else:
        frame = rows.to_pandas()
        if "day" in frame:
            frame["day"] = frame["day"].astype(str)
        with closing(sqlite3.connect(database)) as connection:
            frame.to_sql(name.strip('"'), connection, index=False)


@pytest.fixture(scope="module", params=ENGINES)
def database(request, tmp_path_factory):
    """An address or a path with the table ``events``, and another one."""
    if request.param == "postgres":
        place = request.getfixturevalue("postgres")
    else:
        place = tmp_path_factory.mktemp("databases") / f"shop.{request.param}"
    make(place, "events", events())
    make(place, '"Other Table"', pa.table({"a": [1.0, 2.0]}))
    return place


@pytest.fixture
def server(postgres):
    """Runs statements on a server of PostgreSQL."""
    from adbc_driver_postgresql import dbapi

    def run(*statements):
        connect = dbapi.connect(postgres, autocommit=True)
        with connect as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    return run


def test_plans_sketches_and_slices_of_a_query_are_those_of_the_rows_in_memory(database):
    columns = {"n_clusters": 3, "columns": ["x", "y"]}
    spec = ss.plan(events(), **columns)
    assert ss.plan(database, query="events", **columns) == spec
    assert ss.profiling.survey(database, query="events", columns=["x", "y"]).choice == ("x", "y")

    for query in ("events", "SELECT y, x FROM events -- all;"):
        assert ss.sketch(database, spec, query=query) == ss.sketch(events(), spec)
    weighted = ss.sketch(str(database), spec, query="events", sample_weight="w")
    assert weighted == ss.sketch(events(), spec, sample_weight="w")
    by, where = ["month(day)", "shop"], "w >= 2"
    table = ss.sketch_by(database, by, query="SELECT * FROM events", where=where, **columns)
    assert table == ss.sketch_by(events(), by, table.spec, where=where)
    assert table.counts.sum() == (events()["w"].to_numpy() >= 2).sum()


def test_a_large_table_is_sampled_the_same_way_every_time(database, monkeypatch):
    """Fewer rows than there are: the server draws them, or they are picked as they come."""
    monkeypatch.setattr("sketchshift.live.database.FEWEST_PAGES", 3)
    for query in ("events", "SELECT * FROM events"):
        source = open_source(Query(database, query), columns=["x", "y"])
        first, again = (list(source.across(500, 64, 7)) for _ in range(2))
        drawn = np.concatenate([block.values for block in first])

        assert np.array_equal(drawn, np.concatenate([block.values for block in again]))
        assert 200 < len(drawn) < 900
        assert len(np.unique(drawn[:, 0])) == len(drawn)
        assert set(drawn[:, 0]) <= set(events()["x"].to_pylist())


def test_two_passes_see_one_state_of_the_table(postgres, server):
    server("DROP TABLE IF EXISTS moving", "CREATE TABLE moving AS SELECT 1.0::float8 AS x")
    source = open_source(Query(postgres, "moving"))
    list(source)
    server("INSERT INTO moving VALUES (2.0)")

    assert [block.values.tolist() for block in source] == [[[1.0]]]
    assert sum(len(block.values) for block in open_source(Query(postgres, "moving"))) == 2


def test_sqlite_shows_one_state_too(tmp_path):
    path = tmp_path / "moving.sqlite"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE moving AS SELECT 1.0 AS x")
    writer.commit()
    source = open_source(path)
    list(source)
    writer.execute("INSERT INTO moving VALUES (2.0)")
    writer.commit()
    writer.close()

    assert [block.values.tolist() for block in source] == [[[1.0]]]


def test_a_query_can_only_read(postgres, server):
    server("DROP TABLE IF EXISTS kept", "CREATE TABLE kept AS SELECT 1.0::float8 AS x")
    server(
        "CREATE OR REPLACE FUNCTION wipe() RETURNS float8 LANGUAGE sql AS "
        "'DELETE FROM kept RETURNING x'"
    )

    with pytest.raises(DataError, match="read-only transaction"):
        ss.sketch(postgres, n_clusters=1, query="SELECT wipe() AS x")


def test_types_of_postgres_become_numbers_and_keys(postgres):
    query = """SELECT 0.1::numeric AS a, 'NaN'::numeric AS nan, 3::smallint AS b, true AS c,
        NULL::float8 AS d, 2.5::real AS e, DATE '2026-02-03' AS day, 'a'::char(1) AS letter,
        TIMESTAMP '2026-02-03 04:05' AS at, '1 day'::interval AS wait, '{}'::jsonb AS j,
        'f81d4fae-7dec-11d0-a765-00a0c91e6bf6'::uuid AS u, 12.50::numeric(8, 2) AS price"""
    numbers = ["a", "nan", "b", "c", "d", "e"]

    (block,) = open_source(
        Query(postgres, query), columns=numbers, keys=["day", "at", "wait", "j", "u", "price"]
    )

    expected = [[float(Decimal("0.1")), np.nan, 3.0, 1.0, np.nan, 2.5]]
    assert np.array_equal(block.values, expected, equal_nan=True)
    (keys,) = block.keys.to_pylist()
    assert keys["day"] == datetime.date(2026, 2, 3)
    assert keys["at"] == datetime.datetime(2026, 2, 3, 4, 5)
    assert (keys["wait"], keys["j"], keys["price"]) == ("1 day", "{}", 12.5)
    assert keys["u"] == "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"


def test_arrays_are_vectors_and_nulls_are_refused_by_row(postgres):
    query = "SELECT ARRAY[i, 2 * i]::float8[] AS v FROM generate_series(1, 5) AS s(i)"
    (block,) = open_source(Query(postgres, query))
    assert block.values.tolist() == [[i, 2.0 * i] for i in range(1, 6)]

    missing = "SELECT nullif(i, 3)::float8 AS x FROM generate_series(1, 5) AS s(i)"
    with pytest.raises(InvalidRowsError, match=r"row 2 of the query of postgresql:///postgres has"):
        ss.sketch(postgres, n_clusters=1, query=missing)
    assert ss.sketch(postgres, n_clusters=1, query=missing, on_invalid="skip").n_invalid == 1


def test_columns_nobody_asked_for_are_not_fetched(postgres):
    """Dividing by zero would be an error of the server."""
    query = "SELECT i::float8 AS x, 1 / (i - i) AS broken FROM generate_series(1, 50) AS s(i)"

    assert ss.sketch(postgres, n_clusters=2, query=query, columns=["x"]).count == 50
    with pytest.raises(DataError, match=r"cannot answer: division by zero\."):
        ss.sketch(postgres, n_clusters=2, query=query)


def test_sqlite_values_decide_what_a_column_is(tmp_path):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x, late, words, empty)")
    rows = [
        (1 if i < 2000 else 0.5, None if i < 1500 else 2.0, i if i % 2 else "a", None)
        for i in range(4000)
    ]
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)

    blocks = list(open_source(connection, columns=["x", "late", "empty"], keys=["words"]))

    values = np.concatenate([block.values for block in blocks])
    assert values[:, 0].tolist() == [float(row[0]) for row in rows]
    assert np.isnan(values[:1500, 1]).all()
    assert (values[1500:, 1] == 2.0).all()
    assert np.isnan(values[:, 2]).all()
    assert blocks[0].keys.column("words").to_pylist()[:3] == ["a", "1", "a"]
    connection.execute("INSERT INTO t VALUES ('many', 2, 'a', NULL)")
    with pytest.raises(DataError, match=r"row 4000 of table t .* has 'many' in the column 'x'"):
        list(open_source(connection, columns=["x"]))
    connection.close()


def test_a_connection_of_duckdb_is_asked_too():
    connection = duckdb.connect()
    connection.execute("CREATE TEMP TABLE t AS SELECT i::DOUBLE AS x FROM range(100) AS r(i)")

    assert ss.sketch(connection, n_clusters=2, query="SELECT x FROM t WHERE x < 50").count == 50
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


def test_of_several_tables_one_is_chosen(database):
    with pytest.raises(DataError, match=r"tables: .*'events'.*Choose one with query="):
        ss.sketch(database, n_clusters=1)
    assert ss.sketch(database, n_clusters=1, query='"Other Table"').count == 2


def test_a_table_that_is_not_there_is_named_with_those_that_are(database):
    with pytest.raises(DataError, match=r"Did you mean events\? It has .*events") as caught:
        ss.sketch(database, n_clusters=2, query="SELECT * FROM event")
    assert SECRET not in str(caught.value)
    with pytest.raises(DataError, match="A query is one SELECT, or the name of a table"):
        ss.sketch(database, n_clusters=2, query="SELECT x FROM events WHERE")
    with pytest.raises(DataError, match=r"has no column 'z'\..* It has 'id', 'x', 'y'"):
        ss.sketch(database, n_clusters=2, query="events", columns=["x", "z"])


def test_what_is_no_query_or_no_database_is_refused(tmp_path):
    (tmp_path / "x.db").write_bytes(b"neither of them, and long enough")

    with pytest.raises(DataError, match="a file of neither DuckDB nor SQLite"):
        ss.sketch(tmp_path / "x.db", n_clusters=1, query="t")
    with pytest.raises(DataError, match=r"a query is asked of a database, and 'x\.csv' is none"):
        ss.sketch("x.csv", n_clusters=1, query="t")
    with pytest.raises(DataError, match="and ndarray is none"):
        ss.plan(np.zeros((3, 1)), n_clusters=1, query="t")
    with pytest.raises(SpecError, match="must be a SELECT, or the name of a table"):
        ss.sketch("x.db", n_clusters=1, query=" ; ")
    with pytest.raises(DataError, match="No such file"):
        ss.sketch(tmp_path / "nowhere.duckdb", n_clusters=1, query="t")


def test_a_checkpoint_of_a_query_is_refused(database, tmp_path):
    with pytest.raises(DataError, match="a checkpoint needs data in files"):
        ss.sketch(
            database, n_clusters=2, query="events", columns=["x"], checkpoint=tmp_path / "c.ckpt"
        )


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql.dbapi", None)

    with pytest.raises(MissingDependencyError, match=r"sketchshift\[postgres\]"):
        ss.sketch("postgresql://localhost/x", n_clusters=1, query="t")


def test_quoted_names_of_tables_are_names(postgres, server):
    """Quotes within, points and capitals."""
    for name in ('"My ""own"" table"', '"a.b"', 'public."C d"'):
        server(f"CREATE TABLE {name} AS SELECT 1.0::float8 AS x")

        assert ss.sketch(postgres, ss.SketchSpec(1, 10, 1.0), query=name).count == 1


def test_the_only_table_of_a_file_needs_no_name_whatever_it_is_called(tmp_path):
    for connect, end in ((duckdb.connect, "duckdb"), (sqlite3.connect, "db")):
        path = tmp_path / f"shop.{end}"
        with connect(str(path)) as connection:
            connection.execute('CREATE TABLE "my ""own"" table" AS SELECT 1.0 AS x')

        assert ss.sketch(path, ss.SketchSpec(1, 10, 1.0)).count == 1


# Credentials.


ADDRESSES = [
    "postgresql://anna:5ecret@localhost:1/db",
    "postgresql://anna:5e/5ecret@localhost:1/db",
    "postgresql://anna:5e@5ecret@localhost:1/db",
    "postgresql://localhost:1/db?password=5ecret",
    "postgresql://anna:5%65cret5ecret@localhost:1/db",
    "postgresql://anna:5ecret@localhost:1/db?5ecret=1",
    "postgresql://anna:5e?5ecret@localhost:1/db",
    "postgresql://anna:5e/x?5ecret=5ecret@localhost:1/db",
    "postgresql://localhost:1/db?user=anna&password=a+b%zz5ecret",
    "postgresql://localhost:1/db?user=anna&password=a&5ecret",
    "postgresql://localhost:1/db?user=anna&password=a&5ecret=b",
    "host=localhost port=1 user=anna password=5ecret dbname=db",
    "host=localhost password = '5ec ret 5ecret'",
    "postgres:/anna:5ecret@localhost/db",
    "postgresql+psycopg2://anna:5ecret@localhost:1/db",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_error_and_no_name_has_a_password(address):
    pytest.importorskip("adbc_driver_postgresql")
    shown = []
    if address.startswith("postgresql://"):
        shown = [without_credentials(address), repr(Query(address, "t")), str(Query(address))]
    if address.startswith("postgresql://anna"):
        shown.append(without_password(address).removesuffix("?5ecret=1"))

    for query in ("t", None):
        with pytest.raises(DataError) as caught:
            ss.sketch(address, n_clusters=2, query=query)
        assert caught.value.__cause__ is None
        shown.append(str(caught.value))
    assert not [text for text in shown if SECRET in text]


def test_a_wrong_password_is_said_without_it(postgres):
    wrong = postgres.replace(SECRET, "wr0ng")

    with pytest.raises(DataError, match=r"authentication failed.*PGPASSWORD") as caught:
        ss.sketch(wrong, n_clusters=2, query="t")
    assert "wr0ng" not in str(caught.value)


@pytest.fixture
def shop(postgres):
    """A server with a table that the commands read."""
    make(postgres, "shop", events())
    return postgres


def run(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert SECRET not in done.output, words[0]
    return done.output


def test_commands_ask_databases_and_print_no_password(shop, tmp_path):
    plan, centroids, whole = (tmp_path / name for name in ("p.json", "c.csv", "s.sketch"))
    asked = (shop, "--query", "SELECT x, y, shop FROM shop")

    told = run("plan", *asked, "-k", "3", "-o", plan)
    address = without_password(shop)
    assert f"Next: sketchshift sketch '{address}' --query 'SELECT x, y, shop FROM shop'" in told
    run("sketch", *asked, "--plan", plan, "-o", whole)
    assert ss.load(whole) == ss.sketch(events(), ss.load(plan))
    run("sketch", *asked, "--by", "shop", "-k", "3", "-o", tmp_path / "t.parquet", "--json")
    assert len(ss.load(tmp_path / "t.parquet")) == 2
    assert "--query" in run("cluster", *asked, "-k", "3", "-o", centroids)
    assert "postgresql:///postgres" in run("cluster", *asked, "-k", "3", "--json")
    assert "3,000 rows" in run(
        "assign", *asked, "--centroids", centroids, "-o", tmp_path / "labels.parquet"
    )


def test_commands_refuse_databases_without_a_password_in_the_message(shop, server, tmp_path):
    server("CREATE TABLE IF NOT EXISTS another AS SELECT 1.0::float8 AS x")  # one would be read
    target = tmp_path / "s.sketch"

    assert "--query" in run("sketch", shop, "-k", "3", "-o", target)
    told = run("sketch", shop, "--query", "sho", "-k", "3", "-o", target)
    assert 'relation "sho" does not exist. Did you mean shop?' in told
    assert "is read by itself" in run("sketch", shop, "x.csv", "-k", "3", "-o", target)
    for command in ("inspect", "merge", "compare"):
        assert "Error" in run(command, shop) or "Usage" in run(command, shop)
    assert "a query is asked of a database" in run(
        "sketch", tmp_path / "x.csv", "--query", "t", "-k", "3", "-o", target
    )
    server("DROP TABLE another")


def test_nothing_is_left_open(postgres, server):
    """A session ends with its source: otherwise the table could not be dropped."""
    server("DROP TABLE IF EXISTS dropped", "CREATE TABLE dropped AS SELECT 1.0::float8 AS x")
    source = open_source(Query(postgres, "dropped"))
    next(iter(source))
    del source
    gc.collect()

    server("SET lock_timeout = '5s'", "DROP TABLE dropped")


def test_a_password_that_is_a_usual_word_leaves_the_message_readable():
    address = "postgresql://anna:postgres@localhost:1/postgres"

    with pytest.raises(DataError, match=r"^postgresql://localhost:1/postgres cannot answer"):
        ss.sketch(address, n_clusters=2, query="t")


# What ordinary databases hold.


def test_a_table_of_a_schema_is_named_as_a_query_has_it(postgres, server):
    server('CREATE SCHEMA IF NOT EXISTS "My S"', 'CREATE TABLE "My S"."T t" AS SELECT 1.0 AS x')
    try:
        with pytest.raises(DataError, match=r'\'"My S"\."T t"\''):
            ss.sketch(postgres, n_clusters=1, query="nowhere")
    finally:
        server('DROP SCHEMA "My S" CASCADE')


def test_infinite_days_are_the_first_and_the_last_ones(postgres):
    """The driver makes days of long ago of those that never end."""
    query = (
        "SELECT 1.0 AS x, day::{0} FROM (VALUES ('infinity'), ('-infinity'), ('2026-01-01')) t(day)"
    )
    spec = ss.SketchSpec(n_features=1, sketch_size=10, bandwidth=1.0, columns=("x",))

    for kind in ("date", "timestamp", "timestamptz"):
        asked = {"query": query.format(kind)}
        assert ss.sketch(postgres, spec, where="day > '2026-06-01'", **asked).count == 1
        years = ss.sketch_by(postgres, "year(day)", spec, **asked).keys
        assert [day.year for day in years.column(0).to_pylist()] == [1, 2026, 9999]


def test_columns_of_one_name_are_told_apart_by_the_user(postgres):
    with pytest.raises(DataError, match=r"ambiguous\. Give each column a name of its own"):
        ss.sketch(postgres, n_clusters=1, query="SELECT 1.0, 2.0")


@pytest.mark.parametrize("end", ["; -- done", ";\n;\n", "; -- a\n-- b\n", " -- ;", "; --"])
def test_a_query_may_end_as_a_script_does(database, end):
    spec = ss.SketchSpec(n_features=1, sketch_size=10, bandwidth=1.0, columns=("x",))
    where = "SELECT x FROM events WHERE shop <> '; -- no end'"

    assert ss.sketch(database, spec, query=where + end).count == N
    assert ss.sketch(database, spec, query=where).count == N


def test_an_error_of_duckdb_amid_the_rows_is_told():
    query = """SELECT CASE WHEN i = 199999 THEN error('boom')::DOUBLE ELSE i END AS x
        FROM range(200000) AS r(i)"""

    with duckdb.connect() as connection, pytest.raises(DataError, match=r"cannot answer.*boom"):
        ss.sketch(connection, n_clusters=1, query=query)


def test_sqlite_rows_are_tuples_whatever_a_connection_makes_of_them():
    connection = sqlite3.connect(":memory:", detect_types=sqlite3.PARSE_DECLTYPES)
    sqlite3.register_converter("yesno", lambda octets: octets == b"1")
    connection.execute("CREATE TABLE t (x REAL, day DAY_OF_OURS, sure YESNO)")
    sqlite3.register_converter("day_of_ours", lambda o: datetime.date.fromisoformat(o.decode()))
    connection.execute("INSERT INTO t VALUES (1.5, '2026-01-02', 1)")
    connection.row_factory = lambda cursor, row: dict(enumerate(row))

    (block,) = open_source(connection, columns=["x", "sure"], keys=["day"])
    connection.close()

    assert block.values.tolist() == [[1.5, 1.0]]
    assert block.keys.to_pylist() == [{"day": "2026-01-02"}]


def test_sqlite_integers_beyond_floats_are_the_nearest_ones():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (?)", [(2**60 + 1,), (0.5,), (None,)])

    (block,) = open_source(connection)
    assert np.array_equal(block.values, [[2.0**60], [0.5], [np.nan]], equal_nan=True)
    connection.close()


def test_a_number_among_blobs_of_sqlite_is_named_with_the_cast_to_take():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE k (x REAL, b)")
    connection.executemany("INSERT INTO k VALUES (?, ?)", [(1.0, b"0"), (2.0, 7)])

    with pytest.raises(DataError, match=r"row 1 .* has 7 in the column 'b'.* AS TEXT\)"):
        list(open_source(Query(connection, "k"), columns=["x"], keys=["b"]))
    connection.close()
