"""``sketchshift follow --watch``: slices are compared as they become complete, and alarms told."""

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
from sketchshift.live import monitor
from sketchshift.live.command import METRICS, PREFIX
from sketchshift.live.monitor import Monitor
from sketchshift.sketch.file import is_cube

COMMAND = [sys.executable, "-m", "sketchshift", "follow"]
SPEC = ss.SketchSpec(n_features=2, sketch_size=64, bandwidth=1.0, columns=("x", "y"))
LINE = "follow in st --by day --plan plan.json --watch"
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


def with_key(table: pa.Table, name: str, values: pa.Array) -> None:
    """A file whose rows have this key instead of a day."""
    number = len(list(Path("in").iterdir()))
    table = table.drop_columns("day").append_column(name, values)
    pyarrow.parquet.write_table(table, f"in/{number:03d}.parquet")


def alarms(state: str = "st") -> list[dict]:
    path = Path(state, "alarms.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_slices_are_values_of_the_column_and_the_last_one_waits(place, run):
    days = pa.concat_tables([rows_of(day) for day in range(4)])
    shuffled = days.take(np.random.default_rng(0).permutation(len(days)))
    pyarrow.parquet.write_table(shuffled, "in/all.parquet")
    blank = pa.nulls(50, pa.date32())
    with_key(rows_of(7, n=50), "day", blank)

    lines = run(LINE).stdout.splitlines()
    facts = run.facts(LINE)

    assert lines[2] == "3 complete slices by day, no alarms."
    assert lines[3].startswith("No drift: of 2 windows up to the last 2 slices none differs")
    assert lines[4:6] == [
        "300 rows wait for the end of their slice.",
        "50 rows have no day, and are in no slice.",
    ]
    assert (facts["slices"], facts["complete_slices"], facts["rows"]) == (5, 3, 1250)
    assert (facts["rows_of_next_slice"], facts["rows_without_slice"]) == (300, 50)


def test_a_change_is_one_alarm_with_its_day_whenever_its_rows_came(place, run):
    for day in range(12):
        write(day, shift=0.6 if day >= 8 else 0.0)
        told = [json.loads(line) for line in run(f"{LINE} --json").stdout.splitlines()]
        assert len(told) == 1 + (day == 9)
        alarm = told[0] if day == 9 else None
        assert alarm is None or alarm == alarms()[0]

    (alarm,) = alarms()
    assert (alarm["slice"], alarm["since"], alarm["rows"]) == ("2026-01-09", "2026-01-09", 300)
    assert alarm["rows_before"] == 2400
    assert alarm["distance"] > alarm["threshold"]
    assert alarm["sentence"].startswith("Drift since day 2026-01-09: the last 1 slice")
    assert told[-1]["alarms"] == 1
    assert told[-1]["last"]["rows"] + told[-1]["last"]["rows_before"] == 900  # since the alarm


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
    assert ss.live.Cube.open("st").merge() == ss.sketch(left, SPEC)
    assert facts["rows"] == len(left) == facts["last"]["rows"] + facts["last"]["rows_before"] + 300


def test_alarms_last_as_long_as_slices_differ_from_a_reference_also_late_ones(place, run):
    ss.sketch(rows_of(99, n=3000), SPEC).save("reference.sketch")
    line = LINE.replace("--plan plan.json", "--reference reference.sketch")
    for day in (1, 2, 5, 6, 10):
        write(day, shift=2.0 * (day in (5, 6)))
    run(line)
    write(7, shift=2.0)
    write(11)
    run(line)

    days = ["2026-01-06", "2026-01-07", "2026-01-08"]
    assert [alarm["since"] for alarm in alarms()] == days
    assert {alarm["rows_before"] for alarm in alarms()} == {3000}
    assert "was watched with another --reference" in run.error(
        LINE.replace(" --plan plan.json", "")
    )


def test_misuse_is_refused_at_once(place, run):
    for words, part in {
        "--by day --watch": "give -k",
        "-k 2 --watch": "say by which column slices follow: --by day",
        "-k 2 --false-alarm 0.1 --reference r.sketch": "give --watch with --reference, --false-alarm",
        "-k 2 --by day --watch --metrics 9105": "give --every with --metrics",
        "-k 2 --by day --watch --metrics here --every 1": "a port, or a host and a port",
        "-k 2 --plan plan.json": "give one of --n-clusters, --plan",
    }.items():
        result = run(f"follow in st {words}", status=2)
        assert part in " ".join(result.stderr.split()), words
    write(0)
    run("follow in one --plan plan.json")
    assert "has no slices to compare" in run.error("follow in one --watch")
    other = ss.SketchSpec(n_features=2, sketch_size=64, bandwidth=2.0, columns=("x", "y"))
    ss.sketch(rows_of(1), other).save("other.sketch")
    run(LINE)
    said = run.error("follow in st --watch --reference other.sketch")
    assert "made with another plan than the cube" in said


def test_hours_ascend_where_clocks_are_set_back(place, run):
    first = datetime(2026, 10, 24, 22, tzinfo=UTC)
    for hour in range(6):
        times = pa.array([first + timedelta(hours=hour)] * 300, pa.timestamp("us", "Europe/Berlin"))
        with_key(rows_of(hour, shift=1.5 * (hour == 3)), "time", times)

    facts = [json.loads(line) for line in run(f"{HOURS} --json").stdout.splitlines()]

    assert facts[-1]["complete_slices"] == 5
    assert alarms()[0]["since"] == "2026-10-25T01:00:00+00:00"  # the second time that it is 02:00


def test_keys_that_are_no_times_are_refused_with_what_to_do(place, run):
    for text in ("31.01.2026", "01.02.2026", "02.02.2026"):
        with_key(rows_of(0), "day", pa.array([text] * 300))

    for told in (run.error(LINE), run.error("compare st --over day")):
        assert "such as '01.02.2026', which are not in the order of time." in told
        assert "Make new slices by 'day(day)', which are dates." in told
    line = LINE.replace(" st ", " new ")
    assert run.facts(line.replace("--by day", "--by 'day(day)'"))["complete_slices"] == 2
    rmtree("in")
    Path("in").mkdir()
    with_key(rows_of(0), "flag", pa.array([True, False] * 150))
    said = run.error("follow in flags --by flag --plan plan.json --watch")
    assert "no times. Begin a new cube with slices by a time or a day." in said


def test_an_alarm_is_written_once_by_two_programs_and_after_a_crash(place, monkeypatch):
    for day in range(6):
        write(day, shift=3.0 * (day in (2, 4)))
    cube = ss.live.follow("in", "st", spec=SPEC, by="day")
    both = Monitor("st"), Monitor("st")
    monkeypatch.setattr(Monitor, "_commit", crash_at("2026-01-03"))
    with pytest.raises(RuntimeError):
        ss.live.watch("st")
    monkeypatch.undo()
    monkeypatch.chdir(place)
    with Path("st/alarms.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"sli')  # of another that was killed

    ones = both[0].evaluate()
    seen = [next(ones).slice, *(each.slice for each in both[1].evaluate())]
    seen += [each.slice for each in ones]

    days = [(FIRST + timedelta(day)).isoformat() for day in range(5)]
    assert seen == [days[0], *days, days[1]]  # days without an alarm may be compared twice
    assert [alarm["slice"] for alarm in alarms()] == days[2:]
    assert [each.n_alarms for each in both] == [3, 3]
    assert ss.live.watch(cube) == []


def crash_at(day: str):
    commit = Monitor._commit

    def crash(self):
        if self.last.slice == day:
            raise RuntimeError(day)
        commit(self)

    return crash


def test_a_file_of_alarms_that_is_not_ours_is_refused(place, run):
    for day in range(4):
        write(day, shift=3.0 * (day >= 2))
    ss.live.follow("in", "st", spec=SPEC, by="day")
    Path("st", monitor.ALARMS).write_text("mine\n", encoding="utf-8")

    assert "its last line is no alarm of this cube. Move the file away." in run.error(
        "follow in st --watch"
    )


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


def last_judged(state: Path) -> str:
    """The newest day that was compared, or none."""
    kept = ss.live.Cube.open(state).positions.get("watch") if is_cube(state) else None
    return "" if kept is None else kept["last"]["slice"]


def watch_lake(place: Path, n_days: int, n_kills: int, jump: int) -> list[dict]:
    """Days of a lake, and programs that watch it and are killed; the state is the lake's."""
    draw, table, state = random.Random(0), lake_of(place / "lake"), place / "st"
    words = ["lake", "st", "--by", "day", "--plan", "plan.json", "--watch"]
    for kill in range(n_kills):
        before = last_judged(state)
        line = [*COMMAND, *words, "--every", "0.02"]
        with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=-1) as process:
            for day in range(n_days * kill // n_kills, n_days * (kill + 1) // n_kills):
                change_lake(table, draw, day + 1, 0.8 if day + 1 >= jump else 0.0)
            wait_for(lambda n=before: last_judged(state) > n, process)
            time.sleep(draw.uniform(0.0, 0.3))
            process.kill()
            assert process.wait(PATIENCE) == -9

    done = subprocess.run([*COMMAND, *words], capture_output=True, timeout=PATIENCE, check=False)

    assert done.returncode == 0, done.stderr
    whole, cube = read_lake(table), ss.live.Cube.open(state)
    assert cube.merge().to_bytes() == ss.sketch(whole, SPEC).to_bytes()
    assert cube.table().sketches == ss.sketch_by(whole, "day", spec=SPEC).sketches
    assert last_judged(state) == (FIRST + timedelta(n_days - 1)).isoformat()
    assert cube.positions["watch"]["n_alarms"] == len(alarms())
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


def test_a_source_that_fails_is_reported_and_metrics_follow_what_comes(place):
    table = lake_of(place / "lake")
    for day in range(1, 4):
        change_lake(table, random.Random(day), day, 0.0)
    words = ["lake", "st", "--by", "day", "--plan", "plan.json", "--watch", "--every", "0.05"]
    with subprocess.Popen(
        [*COMMAND, *words, "--metrics", "0"], stdout=-1, stderr=-1, text=True
    ) as process:
        address = re.search(r"http://127\.0\.0\.1:\d+/metrics", process.stderr.readline())[0]
        quiet = wait_for(lambda: "distance" in (m := read_metrics(address)) and m, process)
        Path("lake").rename("away")
        told = process.stderr.readline()
        wait_for(lambda: read_metrics(address)["behind_seconds"] > 0.5, process)
        Path("away").rename("lake")
        wait_for(lambda: read_metrics(address)["behind_seconds"] == 0, process)
        for day in (4, 5):
            change_lake(table, random.Random(day), day, 2.0)
        drifted = wait_for(lambda: (m := read_metrics(address))["alarms_total"] and m, process)
        process.send_signal(signal.SIGINT)
        output, more = process.communicate(timeout=PATIENCE)

    assert told.startswith("Warning: this look at lake failed: ")
    assert more.count("Warning: ") <= 1  # once a reason: it may go amid a look, then be gone
    assert process.returncode == 130
    assert [line.startswith("Alarm: ") for line in output.splitlines()].count(True) == 1
    assert (quiet["alarms_total"], quiet["drifted"], quiet["invalid_rows"]) == (0.0, 0.0, 0.0)
    assert quiet["distance"] < quiet["threshold"]
    assert "since_timestamp_seconds" not in quiet
    assert (drifted["alarms_total"], drifted["drifted"]) == (1.0, 1.0)
    assert drifted["distance"] > drifted["threshold"]
    assert drifted["p_value"] < 0.001
    assert drifted["since_timestamp_seconds"] == datetime(2026, 1, 5, tzinfo=UTC).timestamp()
    assert {name.removesuffix("_total") for name in drifted} == set(METRICS)


def read_metrics(address: str) -> dict[str, float]:
    with urlopen(address) as answer:
        text = answer.read().decode()
    pairs = re.findall(rf"^{PREFIX}(\w+) (\S+)$", text, flags=re.MULTILINE)
    return {name: float(value) for name, value in pairs}


# The page.

PAGE = Path(__file__).parents[2] / "docs" / "follow.md"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def test_every_line_of_the_page_runs_in_its_order(place, run):
    """Installing apart; a program that would go on looks once."""
    names, n_run = {}, 0
    for language, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language == "python":
            exec(text, names)
            continue
        for line in text.splitlines():
            if not line.startswith("pip ") and " state " not in line:
                run(line.replace(" --every 60 --metrics 9105", ""))
                n_run += 1

    assert n_run == 8
    assert [alarm["since"] for alarm in alarms("watched")] == ["2026-01-06"]
    assert [alarm["slice"][-1] for alarm in alarms("fixed")] == ["6", "7"]
