"""Tables of sketches: written by ``sketch --by``, and taken by all commands that take sketches."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import sketchshift as ss
from sketchshift.cli.output import keys_in_words


def test_one_pass_writes_a_sketch_for_each_day(folder, run):
    result = run("sketch events.parquet --by day --plan plan.json -o days.parquet")

    assert "It has 8 slices by day." in result.stdout
    written = ss.SketchTable.from_parquet("days.parquet")
    spec = ss.SketchSpec.from_json((folder / "plan.json").read_text())
    assert written == ss.sketch_by("events.parquet", by="day", spec=spec)
    assert pq.read_schema("days.parquet").names == ["day", "count", "sketch"]


def test_a_slice_is_merged_without_the_data(folder, run):
    run("merge sketches.parquet --where \"day >= '2026-01-05' AND shop = 'a'\" -o some.sketch")

    table = ss.SketchTable.from_parquet("sketches.parquet")
    chosen = [s for (day, shop), s in table if day >= dt.date(2026, 1, 5) and shop == "a"]
    assert ss.load("some.sketch") == sum(chosen)


def test_a_slice_is_clustered_without_the_data(folder, run):
    facts = run.facts("cluster sketches.parquet --where \"shop <> 'b'\" -k 2")

    some = ss.SketchTable.from_parquet("sketches.parquet", where="shop <> 'b'").merge()
    assert facts["rows"] == some.count
    assert facts["clusters"][0]["centroid"] == ss.decode(some, 2).centroids[0].tolist()


def test_a_whole_table_is_clustered_like_its_sum(folder, run):
    slices, whole = (
        run.facts(f"cluster {name} -k 2") for name in ("sketches.parquet", "all.sketch")
    )

    assert slices["clusters"] == whole["clusters"]


def test_forgetting_a_shop_leaves_the_sketch_of_the_others(folder, run):
    run("merge all.sketch --minus sketches.parquet --where \"shop = 'a'\" -o rest.sketch")

    others = ss.SketchTable.from_parquet("sketches.parquet", where="shop <> 'a'")
    assert ss.load("rest.sketch") == others.merge()


def test_inspecting_a_table_lists_its_slices(folder, run):
    text = run("inspect sketches.parquet").stdout

    assert "24 by day, shop" in text
    assert "2026-01-01" in text
    assert "and 4 more: see --json" in text
    facts = run.facts("inspect sketches.parquet")
    assert facts["n_slices"] == len(facts["slices"]) == 24
    assert sum(part["rows"] for part in facts["slices"]) == facts["rows"] == 200


def test_the_next_step_keeps_the_condition(folder, run):
    text = run("cluster sketches.parquet -k 2 --where \"shop = 'it''s'\" ", status=1).stderr
    assert "no slice by day, shop has shop = 'it''s'" in text
    text = run("cluster sketches.parquet -k 2 --where \"shop = 'a'\"").stdout
    step = text.splitlines()[-1].removeprefix("Next: ")
    run(step)


@pytest.mark.parametrize(
    ("line", "words", "status"),
    [
        (
            "sketch events.parquet --by day --plan plan.json -o days.sketch",
            "must end with .parquet",
            2,
        ),
        ("sketch events.parquet --by dya --plan plan.json -o d.parquet", "Did you mean 'day'", 1),
        ("cluster week.sketch -k 2 --where \"shop = 'a'\"", "is a single sketch", 2),
        ("merge day1.sketch -o m.sketch --where \"shop = 'a'\"", "is a single sketch", 2),
        ('cluster part-1.parquet -k 2 --where "nope = 1"', "has no column 'nope'", 1),
        ("cluster sketches.parquet day1.sketch -k 2 --where \"shop = 'a'\"", "single sketch", 2),
        ("cluster sketches.parquet part-1.parquet -k 2", "is data", 2),
        ("cluster sketches.parquet -k 2 --columns x", "--columns says how data is read", 2),
    ],
)
def test_mixing_up_slices_and_other_files_is_misuse(folder, run, line, words, status):
    assert words in run(line, status=status).stderr


def test_the_next_step_reads_as_a_person_would_type_it(folder, run):
    text = run("cluster sketches.parquet -k 2 --where \"shop = 'a'\"").stdout
    assert "--where \"shop = 'a'\" -o report.html" in text
    text = run("cluster part-1.parquet -k 2 --columns x,y").stdout
    assert "--columns x,y -o report.html" in text


@pytest.mark.parametrize(("hour", "shown"), [(0, "2026-01-02"), (6, "2026-01-02 06:00:00")])
def test_times_that_are_all_midnights_are_shown_as_dates(folder, run, hour, shown):
    times = [dt.datetime(2026, 1, 1 + i // 30, hour * (i // 30)) for i in range(60)]
    rows = pyarrow.csv.read_csv("points.csv").append_column("time", pa.array(times))
    pq.write_table(rows, "timed.parquet")
    run("sketch timed.parquet --by time -k 2 -o times.parquet")

    for line in ("inspect times.parquet", "compare times.parquet -k 1"):
        lines = run(line).stdout.splitlines()
        assert [row for row in lines if row.startswith(f"{shown}  ")], line
    keys = [part["key"] for part in run.facts("inspect times.parquet")["slices"]]
    assert keys == [[f"2026-01-01{' 00:00:00' if hour else ''}"], [shown]]
    watched = run.facts("compare times.parquet -k 1")["slices"]
    assert [[part["key"]] for part in watched] == keys


def test_a_missing_time_is_a_dash_beside_dates():
    day = dt.datetime(2026, 1, 1)

    assert keys_in_words([day, None]) == ["2026-01-01", None]
    assert keys_in_words([day, day.replace(minute=1)])[0] == "2026-01-01 00:00:00"
    assert keys_in_words([day.replace(tzinfo=dt.UTC)]) == ["2026-01-01 00:00:00+00:00"]
    assert keys_in_words(["2026-01-01 00:00:00", 3]) == ["2026-01-01 00:00:00", "3"]


def test_a_cube_is_taken_where_a_table_is(folder, run):
    run("follow incoming cube --by day --plan plan.json")
    run("follow incoming one --plan plan.json --columns x,y")
    spec = ss.SketchSpec.from_json((folder / "plan.json").read_text())
    table = ss.sketch_by(folder / "events.parquet", by="day", spec=spec)
    where = "--where \"day < '2026-01-04'\""

    assert run.facts("inspect cube")["n_slices"] == 8
    assert run.facts("inspect one")["rows"] == 200
    assert run.facts(f"cluster cube {where} -k 2")["rows"] == 75
    run(f"merge cube {where} -o some.sketch")
    run(f"report cube {where} -k 2 -o page.html")
    assert run.facts("compare cube one -k 2")["rows"] == [200, 200]
    assert ss.load("some.sketch") == table.where("day < '2026-01-04'").merge()
    assert ss.load("cube").table() == table
    assert "no slice by day" in run.error("cluster cube --where \"day > '2030-01-01'\" -k 2")
    assert "is a folder" in run.error("inspect incoming")


def test_following_again_reads_only_what_is_new(folder, run):
    first = run.facts("follow incoming state --plan plan.json --columns x,y")
    more = pq.read_table(folder / "events.parquet").slice(0, 60)
    pq.write_table(more, folder / "incoming" / "more.parquet")
    second = run.facts("follow incoming state")
    third = run.facts("follow incoming state")

    assert (first["rows"], second["rows"]) == (200, 260)
    assert (first["commits"], second["commits"], third["commits"]) == (1, 1, 0)
    assert "is new: give -k" in run.error("follow incoming other", 2)
    assert "another folder" in run.error("follow incoming state --by day")
    assert "has its own plan" in (said := run.error("follow incoming state -k 3"))
    assert "Leave -k out" in said
    run("plan events.parquet -k 2 --columns x,y -o other.json")
    assert "Leave --plan out" in run.error("follow incoming state --plan other.json")
    run("follow incoming planned -k 3 --columns x,y")
    assert run.facts("follow incoming planned -k 3")["commits"] == 0
    said = run.error("follow incoming planned -k 4")
    assert "has its own -k 3" in said
    assert "Leave -k out" in said
