"""A client of Spark Connect: prints what the engine gives there, as one line of JSON."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import sketchshift as ss
from sketchshift.engines import spark


def main(url, files, many, damaged, by_time, text):
    session = SparkSession.builder.remote(url).getOrCreate()
    frame, spec = session.read.parquet(files), ss.SketchSpec.from_json(text)
    spark.register(session)
    spark.sketch_frame(frame, ["day", "shop"], spec).createOrReplaceTempView("stored")
    merged = "(SELECT day, sketch_merge_agg(plan, sketch) AS s FROM stored GROUP BY day)"
    counts = session.sql(f"SELECT day, sketch_count(s) AS n FROM {merged}").collect()
    key = ["at", "month(at)", "hour(at)", "day(local)", "date"]
    ss.sketch_by(frame, key, spec).save(by_time)
    try:
        ss.sketch(frame.selectExpr("x", "CAST('Infinity' AS DOUBLE) AS y"), spec)
    except ss.errors.DataError as error:
        message = f"{type(error).__name__}: {error}"
    scan = session.read.schema("id long, x double").parquet(damaged)
    rows = session.range(800).selectExpr("id", "IF(id < 80, 0, 100) + id % 7 AS z")
    joined = rows.join(session.read.parquet(many), "id", "left")
    found = {
        "sketch": ss.sketch(frame, spec).to_bytes().hex(),
        "sql": {str(row.day): row.n for row in counts},
        "error": message,
        "columns_of_64_files": ss.plan(scan.where("x >= 0").select("x"), 3).rows.names,
        "plan_of_join": ss.plan(joined.fillna(-9.0), 3).to_json(),
    }
    session.stop()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
