"""Spark: what its frames, its SQL and Connect have of their own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift.engines.driver import choose_partitions
from sketchshift.errors import SketchshiftError

pytestmark = pytest.mark.engines
NAMELESS = ss.SketchSpec(n_features=2, sketch_size=10, bandwidth=1.0)
X_ALONE = ss.SketchSpec(n_features=1, sketch_size=10, bandwidth=1.0, columns=("x",))


@pytest.fixture
def spark():
    return pytest.importorskip("sketchshift.engines.spark")


@pytest.fixture
def frame(session, files):
    return session.read.parquet(str(files))


@pytest.fixture(scope="module")
def many_files(tmp_path_factory):
    """Eighty of one row each: more than a plan looks into."""
    folder = tmp_path_factory.mktemp("many") / "files"
    folder.mkdir()
    for i in range(80):
        pq.write_table(pa.table({"id": [i], "x": [float(i)]}), folder / f"{i:02}.parquet")
    return folder


@pytest.fixture(scope="module")
def damaged_files(many_files, tmp_path_factory):
    """The same, but those that a plan leaves out are zeros: a pass over all would fail."""
    folder = shutil.copytree(many_files, tmp_path_factory.mktemp("damaged") / "files")
    left_out = set(range(80)) - set(choose_partitions(80, seed=0).tolist())
    assert len(left_out) == 16
    for i in left_out:
        path = folder / f"{i:02}.parquet"
        path.write_bytes(bytes(path.stat().st_size))
    return folder


def test_columns_are_told_apart_by_their_full_names(session):
    """As features and as keys: odd signs, case, and the columns that a table of sketches has."""
    numbers = {"x": [0.0, 1.0], "X": [9.0, 8.0], "a.b": [2.0, 4.0], "c `d`": [2.0, 3.0]}
    table = pa.table(numbers | {"Sketch": [1, 2], "COUNT": [5, 5]})
    frame, by = session.createDataFrame(table), table.column_names

    assert ss.sketch_by(frame, by, X_ALONE) == ss.sketch_by(table, by, X_ALONE)
    assert ss.plan(frame, 2, columns=["X", "a.b"]) == ss.plan(table, 2, columns=["X", "a.b"])


def test_a_task_that_fails_once_is_tried_again_and_nothing_counts_twice(frame, spec, expected):
    """Each partition's first try fails after it has handed rows on."""

    def flaky(batches):
        from pyspark import TaskContext

        for batch in batches:
            yield batch
            if TaskContext.get().attemptNumber() == 0:
                raise RuntimeError("lost")

    failing = frame.select("x", "y").mapInArrow(flaky, "x float, y float")

    assert ss.sketch(failing, spec).to_bytes() == expected.to_bytes()


def test_days_after_a_cast_are_those_of_the_session(session, frame, files, spec):
    """The oracle is pandas."""
    zone = session.conf.get("spark.sql.session.timeZone")
    local = frame.where("at IS NOT NULL").selectExpr("CAST(at AS timestamp_ntz) AS at", "x", "y")
    at = pq.read_table(files)["at"].to_pandas().dropna().dt.tz_convert(zone)

    table = ss.sketch_by(local, "day(at)", spec)

    found = dict(zip(table.keys["day"].to_pylist(), table.counts, strict=True))
    assert found == at.dt.date.value_counts().to_dict()


def test_stored_sketches_merge_in_sql(spark, session, frame, files, spec, tmp_path):
    """The table is written by the executors, and read by Spark and without it."""
    stored = str(tmp_path / "stored")
    spark.sketch_frame(frame, ["day", "shop"], spec).write.parquet(stored)
    by_day = ss.sketch_by(files, "day", spec)
    parts = sorted(Path(stored).glob("*.parquet"))
    assert sum(ss.load(part) for part in parts).merge_by("day") == by_day

    spark.register(session)
    session.read.parquet(stored).createOrReplaceTempView("stored")
    found = session.sql(
        """
        SELECT day, s, sketch_count(s) AS n FROM (
            SELECT day, sketch_merge_agg(plan, sketch) AS s
            FROM (SELECT day, plan, sketch FROM stored
                  UNION ALL SELECT d, NULL, NULL FROM VALUES (0), (9) t(d))
            GROUP BY day
        )
        """
    ).collect()

    expected = {day: (s.to_bytes(), s.count) for day, s in by_day}
    assert {row.day: (row.s, row.n) for row in found} == {**expected, 9: (None, None)}
    with pytest.raises(SketchshiftError, match=r"must be a SparkSession. Got 'session'"):
        spark.register("session")


WRONG = [
    (lambda df, spec: ss.sketch(df.select("x"), NAMELESS), "partition .*n_features=2"),
    (lambda df, spec: ss.sketch(df, spec, kernel="abacus"), "no kernel named 'abacus'"),
    (lambda df, spec: ss.sketch(stream(df), spec), "micro-batches"),
    (
        lambda df, spec: ss.sketch(df.selectExpr("x", "y", "interval 2 months AS i"), spec),
        r"YearMonthInterval.*Leave such columns out with df\.select",
    ),
    (
        lambda df, spec: ss.sketch_by(df.withColumnRenamed("day", "sketch"), "sketch", spec),
        "cannot be named 'sketch', as the table has such a column. Rename it",
    ),
]


def stream(frame):
    return frame.sparkSession.readStream.format("rate").load()


def test_wrong_uses_end_in_a_sentence(frame, spec):
    for call, message in WRONG:
        with pytest.raises(SketchshiftError, match=message):
            call(frame, spec)


def test_a_plan_looks_all_along_every_partition(session):
    """Sorted rows, thirty batches in each partition: the plan's center is their mean."""
    frame = session.range(0, 600_000, 1, 2).selectExpr("double(id) AS x")

    first = ss.plan(frame, 3)

    assert first == ss.plan(frame, 3)
    assert first.rows.center[0] == pytest.approx(300_000, rel=0.1)  # seven sd of a mean of 2000


PLAIN = {
    "as read": lambda df: df.select("x"),
    "filtered": lambda df: df.where("id >= 0").where("x < 99").select("x"),
    "projected": lambda df: df.withColumn("x", df["x"] + df["id"]).alias("a").select("a.x"),
    "cut anew": lambda df: df.repartition(3).repartition(2, "id").sort("x").coalesce(1).drop("id"),
}


def test_a_plan_reads_64_of_many_files(session, damaged_files):
    scan = session.read.schema("id long, x double").parquet(str(damaged_files))

    for name, make in PLAIN.items():
        assert ss.plan(make(scan), 3).rows.names == ("x",), name


def rows_of(df):
    """Ten times as many as the files have, at another place from row 80 on."""
    return df.sparkSession.range(800).selectExpr("id", "IF(id < 80, 0, 100) + id % 7 AS z")


NOT_PLAIN = {
    "rows without a match": lambda df: rows_of(df).join(df, "id", "left").fillna(-9.0),
    "rows above each other": lambda df: df.select("x").union(df.selectExpr("x + 1000")),
    "groups": lambda df: df.groupBy((df["id"] % 70).alias("id")).sum("x"),
    "the first rows": lambda df: df.sort("x").limit(70),
    "a view, which hides its files": lambda df: df.sparkSession.sql("SELECT * FROM {df}", df=df),
    "rows that others allow": lambda df: df.where("id < (SELECT 79)"),
}


def test_a_plan_of_what_is_no_plain_scan_looks_at_all_rows(session, many_files):
    """Few rows: the plan is that of the rows in memory. Rows of 64 files are not all of them."""
    scan = session.read.parquet(str(many_files))

    for name, make in NOT_PLAIN.items():
        assert ss.plan(make(scan), 3) == ss.plan(make(scan).toArrow(), 3), name


def test_connect_gives_the_same_bytes(
    session, connect_port, files, many_files, damaged_files, spec, expected, tmp_path
):
    """A process has frames of one kind, classic or Connect: so in one of its own."""
    script, by_time = Path(__file__).with_name("connect_client.py"), tmp_path / "by_time.parquet"
    words = [f"sc://127.0.0.1:{connect_port}", files, many_files, damaged_files, by_time]
    command = [sys.executable, script, *words, spec.to_json()]

    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    by_day = ss.sketch_by(files, "day", spec)
    assert bytes.fromhex(found["sketch"]) == expected.to_bytes()
    assert found["sql"] == {str(day): s.count for day, s in by_day}
    assert found["error"].startswith("InvalidRowsError: partition ")
    key = ["at", "month(at)", "hour(at)", "day(local)", "date"]
    assert ss.load(by_time) == ss.sketch_by(files, key, spec)
    assert found["columns_of_64_files"] == ["x"]
    joined = NOT_PLAIN["rows without a match"](session.read.parquet(str(many_files)))
    assert ss.SketchSpec.from_json(found["plan_of_join"]) == ss.plan(joined.toArrow(), 3)
