"""Tables of sketches: written by ``sketch --by``, and taken by all commands that take sketches."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift.cli.output import keys_in_words

A = "--where \"shop = 'a'\""


def test_one_pass_writes_a_sketch_for_each_day(folder, run):
    line = "sketch events.parquet --by day --plan plan.json -o days.parquet"
    run.says(line, "It has 8 slices by day.")

    spec = ss.load("all.sketch").spec
    assert ss.load("days.parquet") == ss.sketch_by("events.parquet", by="day", spec=spec)


def test_slices_are_merged_and_clustered_without_the_data(folder, run):
    run("merge sketches.parquet --where \"day >= '2026-01-05' AND shop = 'a'\" -o some.sketch")
    run(f"merge sketches.parquet --minus sketches.parquet {A} -o rest.sketch")
    line = "cluster sketches.parquet -k 2 --where \"shop <> 'a'\""

    slices = list(ss.load("sketches.parquet"))
    late = [s for (day, shop), s in slices if day >= dt.date(2026, 1, 5) and shop == "a"]
    rest = sum(s for (_, shop), s in slices if shop != "a")
    assert ss.load("some.sketch") == sum(late)
    assert ss.load("rest.sketch") == rest
    found = [c["centroid"] for c in run.facts(line)["clusters"]]
    assert found == ss.decode(rest, 2).centroids.tolist()


def test_inspecting_a_table_lists_its_slices(folder, run):
    line = "inspect sketches.parquet"
    run.says(line, "24 by day, shop", "2026-01-01", "and 4 more: see --json")

    assert sum(part["rows"] for part in run.facts(line)["slices"]) == 200


def test_the_next_step_reads_as_a_person_would_type_it(folder, run):
    text = run.says(f"cluster sketches.parquet -k 2 {A}", f"{A} -o report.html")

    run(text.splitlines()[-1].removeprefix("Next: "))


@pytest.mark.parametrize(
    ("hour", "key"), [(0, "2026-01-02"), (6, "2026-01-02 06:00:00")], ids=["midnight", "morning"]
)
def test_times_that_are_all_midnights_are_shown_as_dates(folder, run, hour, key):
    times = [dt.datetime(2026, 1, 1)] * 30 + [dt.datetime(2026, 1, 2, hour)] * 30
    rows = pyarrow.csv.read_csv("points.csv").append_column("time", pa.array(times))
    pq.write_table(rows, "timed.parquet")
    run("sketch timed.parquet --by time -k 2 -o times.parquet")

    for line in ("inspect times.parquet", "compare times.parquet -k 1"):
        run.says(line, f"\n{key}  ")
    assert run.facts(line)["slices"][1]["key"] == key


def test_a_missing_time_is_a_dash_beside_dates():
    day = dt.datetime(2026, 1, 1)

    assert keys_in_words([day, None]) == ["2026-01-01", None]
    assert keys_in_words([day.replace(tzinfo=dt.UTC)]) == ["2026-01-01 00:00:00+00:00"]
    assert keys_in_words(["2026-01-01 00:00:00", 3]) == ["2026-01-01 00:00:00", "3"]


def test_a_cube_is_taken_where_a_table_is(folder, run):
    run("follow incoming cube --by day --plan plan.json")
    run("follow incoming one --plan plan.json --columns x,y")
    cube, where = ss.load("cube"), "--where \"day < '2026-01-04'\""

    assert cube.table() == ss.sketch_by("events.parquet", by="day", spec=cube.spec)
    assert run.facts("inspect cube")["n_slices"] == 8
    assert run.facts("inspect one")["rows"] == 200
    assert run.facts(f"cluster cube {where} -k 2")["rows"] == 75
    run(f"merge cube {where} -o some.sketch")
    run(f"report cube {where} -k 2 -o page.html")
    assert run.facts("compare cube one -k 2")["rows"] == [200, 200]
    assert ss.load("some.sketch") == cube.table().where("day < '2026-01-04'").merge()
    run.error("cluster cube --where \"day > '2030-01-01'\" -k 2", "no slice by day")
    run.error("inspect incoming", "is a folder")


def test_following_again_reads_only_what_is_new(folder, run):
    first = run.facts("follow incoming state --plan plan.json --columns x,y")
    pq.write_table(pq.read_table("events.parquet").slice(0, 60), "incoming/more.parquet")
    more = [run.facts("follow incoming state") for _ in range(2)]

    told = [(facts["rows"], facts["commits"]) for facts in (first, *more)]
    assert told == [(200, 1), (260, 1), (260, 0)]
    run("plan events.parquet -k 2 --columns x,y -o other.json")
    run("follow incoming planned -k 3 --columns x,y")
    assert run.facts("follow incoming planned -k 3")["commits"] == 0
    run.error("follow incoming other", "is new: give -k", status=2)
    for line, words in {
        "state --by day": "another folder",
        "state -k 3": "Leave -k out",
        "state --plan other.json": "Leave --plan out",
        "planned -k 4": "has its own -k 3",
    }.items():
        run.error(f"follow incoming {line}", words)
