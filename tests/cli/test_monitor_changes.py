"""``sketchshift monitor --by``: lakes, folders and other data that changes, watched by a column."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sketchshift as ss

COMMAND = [sys.executable, "-m", "sketchshift", "monitor"]
SPEC = ss.SketchSpec(n_features=2, sketch_size=64, bandwidth=1.0, columns=("x", "y"))
LINE = "monitor in --by day --state st --plan plan.json --once"
HOURS = LINE.replace("--by day", "--by 'hour(time)'")
FIRST = date(2026, 1, 1)
PATIENCE = 60  # seconds, on a busy machine


def rows_of(day: int, n: int = 300, shift: float = 0.0) -> pa.Table:
    x, y = np.random.default_rng(day).normal(size=(2, n)) + shift
    return pa.table({"x": x, "y": y, "day": [FIRST + timedelta(day)] * n})


def write(day: int, **options) -> pa.Table:
    table = rows_of(day, **options)
    pyarrow.parquet.write_table(table, f"in/{day:03d}.parquet")
    return table


def alarms() -> list[dict]:
    path = Path("st/alarms.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_slices_are_values_of_the_column_and_the_last_one_waits(place, run):
    days = pa.concat_tables([rows_of(day) for day in range(4)])
    shuffled = days.take(np.random.default_rng(0).permutation(len(days)))
    pyarrow.parquet.write_table(shuffled, "in/all.parquet")

    lines = run(LINE).stdout.splitlines()
    facts = run.facts(LINE)

    assert lines[0] == "In st: 1,200 rows, 3 slices, no alarms."
    assert lines[2:] == [
        "300 rows wait for the end of their slice.",
        "Next: sketchshift watch st/slices --by day",
    ]
    assert (facts["slices"], facts["rows"], facts["rows_of_next_slice"]) == (3, 1200, 300)
    table = ss.live.Cube.open("st/slices").table()
    assert list(table.sketches) == [ss.sketch(rows_of(day), SPEC) for day in range(4)]


def test_a_change_is_one_alarm_with_its_day_whenever_its_rows_came(place, run):
    for day in range(12):
        write(day, shift=0.6 if day >= 8 else 0.0)
        run(LINE)

    (alarm,) = alarms()
    assert (alarm["slice"], alarm["since"], alarm["rows"]) == ("2026-01-09", "2026-01-09", 300)
    assert alarm["rows_before"] == 2400
    assert alarm["sentence"].startswith("Drift since day 2026-01-09: the last 1 slice")
    assert run.facts(LINE)["alarms"] == 1


def test_an_evaluation_is_what_since_when_says_of_the_complete_slices(place, run):
    for day in range(7):
        write(day)
    last = run.facts(LINE)["last"]

    slices = {day: ss.sketch(rows_of(day), SPEC) for day in range(6)}
    found = ss.drift.since_when(slices)

    assert last["slice"] == "2026-01-06"
    assert last["distance"] == pytest.approx(found.strongest.test.distance)
    assert (last["rows_before"], last["rows"]) == found.strongest.counts


def test_late_rows_and_rows_that_went_count_from_then_on(place, run):
    for day in range(5):
        write(day)
    run(LINE)
    late = rows_of(1, n=50, shift=0.1)
    pyarrow.parquet.write_table(late, "in/late.parquet")
    Path("in/003.parquet").unlink()
    write(5)

    facts = run.facts(LINE)

    left = pa.concat_tables([rows_of(0), rows_of(1), late, rows_of(2), rows_of(4), rows_of(5)])
    assert ss.live.Cube.open("st/slices").merge() == ss.sketch(left, SPEC)
    assert facts["rows"] == len(left) == facts["last"]["rows"] + facts["last"]["rows_before"] + 300


def test_rows_without_a_value_of_the_column_are_counted_and_in_no_slice(place, run):
    table = rows_of(0).append_column("id", pa.array(range(300)))
    blank = pa.array([None] * 300, pa.date32())
    index = table.schema.get_field_index("day")
    for day in range(3):
        write(day)
    pyarrow.parquet.write_table(table.set_column(index, "day", blank), "in/blank.parquet")

    result = run(LINE)

    assert "300 rows have no day, and are in no slice." in result.stdout.splitlines()
    assert run.facts(LINE)["rows_without_slice"] == 300


def test_a_plan_is_made_of_the_first_rows_without_their_key(place, run):
    for day in range(3):
        write(day)

    run("monitor in --by day --state st -k 3 --once")

    assert ss.live.Cube.open("st/slices").spec.columns == ("x", "y")
    assert run.facts("monitor in --state st --once")["slices"] == 2


def test_what_cannot_be_watched_so_is_told_at_once(place, run):
    write(0)
    for words, part in {
        "delta:somewhere --state a --plan plan.json": "--by day",
        "in in --by day --state a --plan plan.json": "one input",
        "- --by day --state a --plan plan.json": "one input",
        "in --by day --slice-rows 5 --state a --plan plan.json": "--by or --slice-rows, not both",
        "in --by day --state a": "give -k",
    }.items():
        result = run(f"monitor {words}", status=2)
        assert part in " ".join(result.stderr.split()), words
    result = run("monitor in --by nothing --state b --plan plan.json --once", status=1)
    assert "nothing" in result.stderr
    run(LINE)
    result = run("monitor in --by x --state st --plan plan.json --once", status=1)
    assert "('day',)" in result.stderr


def test_a_state_of_files_refuses_a_column_and_goes_on_as_it_was(place, run):
    for day in range(2):
        write(day)
    files = LINE.replace(" --by day", "")
    run(files)
    before = Path("st/journal.jsonl").read_bytes()

    told = run.error(LINE)

    assert told.strip() == (
        "Error: the monitor in st was begun without --by. Leave --by out, or name another --state."
    )
    assert run.facts(files)["files"] == 2
    assert Path("st/journal.jsonl").read_bytes() == before


def test_hours_ascend_where_clocks_are_set_back(place, run):
    first = datetime(2026, 10, 24, 22, tzinfo=UTC)
    for hour in range(6):
        times = pa.array([first + timedelta(hours=hour)] * 300, pa.timestamp("us", "Europe/Berlin"))
        table = rows_of(hour, shift=1.5 * (hour == 3)).append_column("time", times)
        pyarrow.parquet.write_table(table, f"in/{hour}.parquet")

    facts = [json.loads(line) for line in run(f"{HOURS} --json").stdout.splitlines()]

    assert facts[-1]["slices"] == 5
    assert alarms()[0]["since"] == "2026-10-25T01:00:00+00:00"  # the second time that it is 02:00


def test_a_slice_that_comes_before_the_next_one_is_compared_with_the_reference(place, run):
    ss.sketch(rows_of(99, n=3000), SPEC).save("reference.sketch")
    line = LINE.replace("--plan plan.json", "--reference reference.sketch")
    for day in (1, 2, 5, 10):
        write(day, shift=2.0 * (day == 5))
    run(line)
    write(7, shift=2.0)
    write(11)
    run(line)

    assert [alarm["since"] for alarm in alarms()] == ["2026-01-06", "2026-01-08"]


def test_a_state_begun_by_a_name_of_no_column_says_how_to_begin_anew(place, run):
    write(0)
    assert "Did you mean 'day'?" in run.error(LINE.replace("day", "dya"))

    told = run.error(LINE)

    assert "Leave --by out, or remove that folder, which has no rows yet." in told
    rmtree("st/slices")
    assert run.facts(LINE)["rows"] == 300


def test_a_stop_before_the_first_rows_are_in_is_told(place, run, monkeypatch):
    write(0)

    def stop_at_once(*_, progress, **options):
        signal.raise_signal(signal.SIGTERM)
        progress(1, None)

    monkeypatch.setattr("sketchshift.live.following.follow", stop_at_once)

    assert "Stopped before the first rows were in: none counts yet." in run(LINE).stderr


def test_dates_in_texts_that_do_not_ascend_are_refused_with_the_key_to_take(place, run):
    for day, text in enumerate(["31.01.2026", "01.02.2026", "02.02.2026"]):
        table = rows_of(day).drop_columns("day").append_column("day", pa.array([text] * 300))
        pyarrow.parquet.write_table(table, f"in/{day}.parquet")

    for told in (run.error(LINE), run.error("watch st/slices --by day")):
        assert "such as '01.02.2026', which are not in the order of time." in told
        assert "Make new slices by 'day(day)', which are dates." in told
    assert (
        run.facts("monitor in --by 'day(day)' --state new --plan plan.json --once")["slices"] == 2
    )


def test_alarms_of_an_older_history_hide_none_of_a_new_one(place, run):
    for day in range(4):
        write(day, shift=3.0 * (day >= 2))
    Path("st").mkdir()
    Path("st/alarms.jsonl").write_text('{"slice": 3}\n', encoding="utf-8")
    run(LINE)

    assert [alarm["slice"] for alarm in alarms()] == [3, "2026-01-03"]


def test_what_is_proposed_next_works_also_with_rows_in_no_slice_and_without_rows(place, run):
    assert "Next:" not in run(LINE).stdout
    told = run.error("monitor in --by day --state other -k 2 --once")
    assert "Follow it once there are some, or give --plan, a plan made on data like it." in told
    for day in range(2):
        write(day)
    blank = rows_of(5).drop_columns("day").append_column("day", pa.nulls(300, pa.date32()))
    pyarrow.parquet.write_table(blank, "in/blank.parquet")

    proposed = run(LINE).stdout.splitlines()[-1].removeprefix("Next: ")

    assert run(proposed).stdout.startswith("2 slices by day, 600 rows: no alarms.")


def test_keys_that_are_no_times_are_refused_with_what_to_do(place, run):
    table = rows_of(0).append_column("flag", pa.array([True, False] * 150))
    pyarrow.parquet.write_table(table, "in/a.parquet")

    result = run("monitor in --by flag --state st --plan plan.json --once", status=1)

    assert "no times. Begin a new folder with slices by a time or a day." in result.stderr


# A lake.


def lake_of(folder: Path):
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(folder), rows_of(0))
    return deltalake.DeltaTable(str(folder))


def change_lake(table, draw: random.Random, day: int, shift: float) -> None:
    """A day of a lake: its rows in pieces, some late ones, a delete, an update, a compaction.

    What goes, and what is mirrored, leaves the distribution of old rows as it is.
    """
    from deltalake import write_deltalake

    for piece in range(draw.randrange(1, 4)):
        rows = rows_of(1000 * (piece + 1) + day, n=draw.randrange(20, 120), shift=shift)
        days = pa.array([FIRST + timedelta(day)] * len(rows))
        write_deltalake(table, rows.set_column(2, "day", days), mode="append")
    if draw.random() < 0.3:
        late = rows_of(9000 + day, n=7)
        days = pa.array([FIRST + timedelta(max(0, day - draw.randrange(1, 9)))] * 7)
        write_deltalake(table, late.set_column(2, "day", days), mode="append")
    if draw.random() < 0.3:
        start = draw.uniform(-2.0, 2.0)
        table.delete(f"x > {start} and x < {start + 0.005}")
    if draw.random() < 0.2:
        start = draw.uniform(-2.0, 2.0)
        table.update(updates={"y": "0 - y"}, predicate=f"x > {start} and x < {start + 0.01}")
    if draw.random() < 0.2:
        table.optimize.compact()


def read_lake(table) -> pa.Table:
    from deltalake import QueryBuilder

    rows = QueryBuilder().register("t", table).execute("select x, y, day from t")
    return pa.table(rows.read_all())


def wait_for(condition, process: subprocess.Popen):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def count_judged(journal: Path) -> int:
    return journal.read_text().count('"evaluated"') if journal.exists() else 0


def watch_lake(place: Path, n_days: int, n_kills: int, jump: int) -> list[dict]:
    """Days of a lake, and monitors of it that are killed; the state is what the lake holds."""
    draw, table = random.Random(0), lake_of(place / "lake")
    words = ["lake", "--by", "day", "--state", "st", "--plan", "plan.json", "--poll", "0.02"]
    journal = place / "st" / "journal.jsonl"
    for kill in range(n_kills):
        n_before = count_judged(journal)
        with subprocess.Popen([*COMMAND, *words], stdout=-1, stderr=-1) as process:
            for day in range(n_days * kill // n_kills, n_days * (kill + 1) // n_kills):
                change_lake(table, draw, day + 1, 0.8 if day + 1 >= jump else 0.0)
            wait_for(lambda n=n_before: count_judged(journal) > n, process)
            time.sleep(draw.uniform(0.0, 0.3))
            process.kill()
            assert process.wait(PATIENCE) == -9

    done = subprocess.run(
        [*COMMAND, *words[:-2], "--once"], capture_output=True, timeout=PATIENCE, check=False
    )

    assert done.returncode == 0, done.stderr
    whole = read_lake(table)
    assert ss.live.Cube.open("st/slices").merge().to_bytes() == ss.sketch(whole, SPEC).to_bytes()
    by_day = ss.sketch_by(whole, "day", spec=SPEC)
    assert ss.live.Cube.open("st/slices").table().sketches == by_day.sketches
    kinds = [json.loads(line)["kind"] for line in journal.read_text().splitlines()]
    judged = [line["slice"] for line in map(json.loads, journal.read_text().splitlines()[1:])]
    assert kinds == ["begin"] + ["evaluated"] * len(judged)
    assert judged == sorted(set(judged))  # each slice once, in the order of time
    return alarms()


def test_a_lake_is_watched_across_kills_and_no_row_is_lost_or_doubled(place):
    told = watch_lake(place, n_days=24, n_kills=4, jump=14)

    assert [alarm["since"] for alarm in told] == [(FIRST + timedelta(14)).isoformat()]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_year_of_a_lake_under_fifty_kills(place):
    told = watch_lake(place, n_days=365, n_kills=50, jump=200)

    assert (FIRST + timedelta(200)).isoformat() in [alarm["since"] for alarm in told]
    assert len({alarm["slice"] for alarm in told}) == len(told) <= 3


def test_a_source_that_fails_is_told_and_looked_at_again(place):
    table = lake_of(place / "lake")
    for day in range(1, 4):
        change_lake(table, random.Random(day), day, 0.0)
    words = ["lake", "--by", "day", "--state", "st", "--plan", "plan.json", "--poll", "0.05"]
    with subprocess.Popen(
        [*COMMAND, *words, "--metrics-port", "0"], stdout=-1, stderr=-1, text=True
    ) as process:
        address = re.search(r"http://127\.0\.0\.1:\d+/metrics", process.stderr.readline())[0]
        wait_for(lambda: read_metrics(address)["slices"] == 3, process)
        Path("lake").rename("away")
        told = process.stderr.readline()
        behind = wait_for(lambda: read_metrics(address)["behind_seconds"] > 0.5, process)
        Path("away").rename("lake")
        wait_for(lambda: read_metrics(address)["behind_seconds"] == 0, process)
        metrics = read_metrics(address)
        process.send_signal(signal.SIGTERM)
        output, more = process.communicate(timeout=PATIENCE)

    assert told.startswith("Warning: nothing is read of lake: ")
    assert more.count("Warning: ") <= 1  # told once a reason: it may go amid a look, then be gone
    assert behind
    assert process.returncode == 0
    assert output.startswith(f"In st: {int(metrics['rows']):,} rows, 3 slices, no alarms.")
    assert "files_total" not in metrics  # a lake has none to count
    assert "rows_total" not in metrics  # a counter must not fall, and rows of a lake go


def read_metrics(address: str) -> dict[str, float]:
    with urlopen(address) as answer:
        text = answer.read().decode()
    pairs = re.findall(r"^sketchshift_monitor_(\w+) (\S+)$", text, flags=re.MULTILINE)
    return {name: float(value) for name, value in pairs}
