from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift.errors import SketchshiftError

spark = pytest.importorskip("sketchshift.engines.spark")
NAMELESS = ss.SketchSpec(n_features=2, sketch_size=10, bandwidth=1.0)


@pytest.mark.parametrize("n_partitions", [None, 7])
def test_any_partitioning_gives_the_bytes_of_one_thread(frame, files, spec, n_partitions):
    cut = frame if n_partitions is None else frame.repartition(n_partitions)
    weighted = {"columns": ["x", "y"], "sample_weight": "w"}

    assert ss.sketch(cut, spec, **weighted) == ss.sketch(files, spec, **weighted)
    km = ss.CompressiveKMeans(2, spec=spec).fit(cut)
    assert km.sketch_ == ss.sketch(files, spec)


def test_columns_with_odd_names_are_read(session):
    table = pa.table({"a.b": [0.0, 1.0], "c `d`": [2.0, 3.0]})

    assert ss.sketch(session.createDataFrame(table), NAMELESS) == ss.sketch(table, NAMELESS)


def test_columns_that_differ_in_case_are_told_apart(session):
    """As features and as keys, also from the columns that a table of sketches has."""
    table = pa.table({"x": [0.0, 1.0], "X": [9.0, 8.0], "Sketch": [1, 2], "COUNT": [5, 5]})
    spec = ss.SketchSpec(n_features=1, sketch_size=10, bandwidth=1.0, columns=("x",))
    frame, by = session.createDataFrame(table), table.column_names

    assert ss.sketch_by(frame, by, spec) == ss.sketch_by(table, by, spec)
    assert ss.plan(frame, 2, columns=["X"]) == ss.plan(table, 2, columns=["X"])


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


def test_a_table_by_key_is_that_of_one_thread(frame, files, spec):
    """Keys of two columns, one of them with missing values, over several partitions."""
    by = ["day", "shop"]

    assert ss.sketch_by(frame.repartition(5), by, spec) == ss.sketch_by(files, by, spec)


def test_times_are_keys_as_without_spark(session, times, spec, time_key, far_from_utc):
    frame = session.read.parquet(str(times))

    assert ss.sketch_by(frame, time_key, spec) == ss.sketch_by(times, time_key, spec)


def test_days_are_those_of_utc_and_by_a_cast_those_of_the_session(
    session, times, spec, far_from_utc
):
    """The oracle is pandas."""
    frame = session.read.parquet(str(times)).where("at IS NOT NULL")
    at = pq.read_table(times)["at"].to_pandas().dropna()

    for there, here in (
        (frame, at),
        (
            frame.withColumn("at", frame["at"].cast("timestamp_ntz")),
            at.dt.tz_convert(far_from_utc).dt.tz_localize(None),
        ),
    ):
        table = ss.sketch_by(there, "day(at)", spec)
        found = dict(zip(table.keys["day"].to_pylist(), table.counts, strict=True))
        assert found == here.dt.date.value_counts().to_dict()


def test_stored_sketches_merge_in_sql(session, frame, files, spec, tmp_path):
    """The table is written by the executors, and read by Spark and without it."""
    stored = str(tmp_path / "stored")
    spark.sketch_frame(frame, ["day", "shop"], spec).write.parquet(stored)
    by_day = ss.sketch_by(files, "day", spec)
    parts = sorted(Path(stored).glob("*.parquet"))
    assert sum(ss.SketchTable.from_parquet(part) for part in parts).merge_by("day") == by_day

    spark.register(session)
    session.read.parquet(stored).createOrReplaceTempView("stored")
    found = session.sql(
        """
        SELECT day, s, sketch_count(s) AS n FROM (
            SELECT day, sketch_merge_agg(sketch) AS s
            FROM (SELECT day, sketch FROM stored UNION ALL SELECT d, NULL FROM VALUES (0), (9) t(d))
            GROUP BY day
        )
        """
    ).collect()

    expected = {day: (s.to_bytes(), s.count) for day, s in by_day}
    assert {row.day: (row.s, row.n) for row in found} == {**expected, 9: (None, None)}


WRONG = [
    (lambda df, spec: ss.sketch(df, NAMELESS, columns=["x", "z"]), "no column 'z'"),
    (lambda df, spec: ss.sketch(df, NAMELESS), "column 'shop' .*cannot be read as numbers"),
    (lambda df, spec: ss.sketch(df, spec, sample_weight=[1.0]), "the name of a column"),
    (lambda df, spec: ss.sketch(df.select("x"), NAMELESS), "partition .*n_features=2"),
    (lambda df, spec: ss.sketch(df, spec, kernel="abacus"), "no kernel named 'abacus'"),
    (lambda df, spec: ss.sketch(df.where("x > 1e9"), spec), "no rows to sketch"),
    (lambda df, spec: ss.sketch(stream(df), spec), "micro-batches"),
    (
        lambda df, spec: ss.sketch(df.selectExpr("x", "y", "interval 2 months AS i"), spec),
        r"YearMonthInterval.*Leave such columns out with df\.select",
    ),
    (
        lambda df, spec: ss.sketch(df.selectExpr("x", "IF(day = 0, NULL, y) AS y"), spec),
        r"partition \d: .*row \d+ of .*column 'y'.*skip",
    ),
    (lambda df, spec: ss.plan(df.where("x > 1e9"), 2, columns=["x"]), "no rows to plan on"),
    (lambda df, spec: ss.sketch_by(df, "month(x)", spec), "needs a column of dates"),
    (lambda df, spec: ss.sketch_by(df, "day", spec, max_slices=3), "more than 3 slices by day"),
    (
        lambda df, spec: ss.sketch_by(df.repartitionByRange(4, "day"), "day", spec, max_slices=3),
        "there are more than 3 slices",
    ),
    (lambda df, spec: ss.sketch_by(df.where("x > 1e9"), "day", spec), "no rows to sketch"),
    (
        lambda df, spec: ss.sketch_by(df.withColumnRenamed("day", "sketch"), "sketch", spec),
        "cannot be named 'sketch', as the table has such a column. Rename it",
    ),
    (lambda df, spec: spark.register("session"), "must be a SparkSession. Got 'session'"),
]


def stream(frame):
    return frame.sparkSession.readStream.format("rate").load()


def test_wrong_uses_end_in_a_sentence(frame, spec):
    for call, message in WRONG:
        with pytest.raises(SketchshiftError, match=message):
            call(frame, spec)


def test_a_plan_of_few_rows_is_that_of_one_process(session):
    rows = pa.table({"x": np.arange(900.0) % 97, "y": np.arange(900.0) % 13})
    frame = session.createDataFrame(rows).repartition(3)

    assert ss.plan(frame, 3, seed=5) == ss.plan(rows, 3, seed=5)


def test_a_plan_looks_all_along_every_partition(session):
    """Sorted rows, thirty batches in each partition: the plan's center is their mean."""
    frame = session.range(0, 600_000, 1, 2).selectExpr("double(id) AS x")

    first = ss.plan(frame, 3)

    assert first == ss.plan(frame, 3)
    assert first.center[0] == pytest.approx(300_000, rel=0.1)  # seven sd of a mean of 2000


PLAIN = {
    "as read": lambda df: df.select("x"),
    "filtered": lambda df: df.where("id >= 0").where("x < 99").select("x"),
    "projected": lambda df: df.withColumn("x", df["x"] + df["id"]).alias("a").select("a.x"),
    "cut anew": lambda df: df.repartition(3).repartition(2, "id").sort("x").coalesce(1).drop("id"),
}


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_a_plan_reads_64_of_many_files(session, damaged_files, make):
    frame = make(session.read.schema("id long, x double").parquet(str(damaged_files)))

    assert ss.plan(frame, 3).columns == ("x",)


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


@pytest.mark.parametrize("make", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_a_plan_of_what_is_no_plain_scan_looks_at_all_rows(session, many_files, make):
    """Few rows: the plan is that of the rows in memory. Rows of 64 files are not all of them."""
    frame = make(session.read.parquet(str(many_files)))

    assert ss.plan(frame, 3) == ss.plan(frame.toArrow(), 3)


def test_connect_gives_the_same_bytes(
    session, connect_port, files, times, many_files, damaged_files, spec, expected, tmp_path
):
    """A process has frames of one kind, classic or Connect: so in one of its own."""
    script, url = Path(__file__).parent / "connect_client.py", f"sc://127.0.0.1:{connect_port}"
    by_time = tmp_path / "by_time.parquet"
    command = [sys.executable, script, url, files, times, many_files, damaged_files, by_time]

    done = subprocess.run(
        [*map(str, command), spec.to_json()],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    by_day = ss.sketch_by(files, "day", spec)
    assert bytes.fromhex(found["sketch"]) == expected.to_bytes()
    assert found["by_day"] == {str(day): s.to_bytes().hex() for day, s in by_day}
    assert found["sql"] == {str(day): s.count for day, s in by_day}
    assert found["error"].startswith("InvalidRowsError: partition ")
    key = ["at", "month(at)", "hour(at)", "day(local)", "date"]
    assert ss.SketchTable.from_parquet(by_time) == ss.sketch_by(times, key, spec)
    assert ss.SketchSpec.from_json(found["plan"]) == ss.plan(
        session.read.parquet(str(files)), 3, columns=["x", "y"]
    )
    assert found["columns_of_64_files"] == ["x"]
    joined = NOT_PLAIN["rows without a match"](session.read.parquet(str(many_files)))
    assert ss.SketchSpec.from_json(found["plan_of_join"]) == ss.plan(joined.toArrow(), 3)


def test_a_column_of_vectors_is_read_as_rows(session):
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    table = pa.table({"day": ["a", "b"] * 30, "v": pa.array(list(X))})
    frame, spec = session.createDataFrame(table).repartition(4), ss.plan(X, 2)

    assert ss.plan(frame, 2, columns=["v"]) == spec
    assert ss.sketch(frame, spec, columns=["v"]) == ss.sketch(X, spec)
    assert ss.sketch_by(frame, "day", spec).merge() == ss.sketch(X, spec)
