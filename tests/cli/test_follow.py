"""``sketchshift follow --watch``: slices are compared as they become complete, and alarms told."""

from __future__ import annotations

import json
import random
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from shutil import rmtree, which
from unittest.mock import patch
from urllib.parse import quote
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from prometheus_client.parser import text_string_to_metric_families

import sketchshift as ss
from sketchshift.live.command import METRICS, PREFIX
from sketchshift.live.monitor import Monitor
from sketchshift.sketch.file import is_cube

SPEC = ss.SketchSpec(n_features=2, sketch_size=64, bandwidth=1.0, columns=("x", "y"))
LINE = "follow in st --by day --plan plan.json --watch"
COMMAND = [sys.executable, "-m", "sketchshift", *LINE.split()]
FIRST = date(2026, 1, 1)
PATIENCE = 60  # seconds, on a busy machine


@pytest.fixture
def place(here):
    """A working folder: plan.json for columns x and y, a folder ``in`` for files."""
    Path("plan.json").write_text(SPEC.to_json(), encoding="utf-8")
    Path("in").mkdir()


def rows_of(day, n=300, shift=0.0, seed=None):
    x, y = np.random.default_rng(day if seed is None else seed).normal(size=(2, n)) + shift
    return pa.table({"x": x, "y": y, "day": [FIRST + timedelta(day)] * n})


def write(day, **options):
    """A file that is there at once, as a follower may look at any time."""
    draft = Path("in/.draft.parquet")
    pyarrow.parquet.write_table(rows_of(day, **options), draft)
    draft.rename(f"in/{options.get('seed', day):04d}.parquet")


def with_key(table, name, values):
    """A file whose rows have this key instead of a day."""
    number = len(list(Path("in").iterdir()))
    table = table.drop_columns("day").append_column(name, values)
    pyarrow.parquet.write_table(table, f"in/{number:03d}.parquet")


def alarms(state="st"):
    path = Path(state, "alarms.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_slices_are_values_of_the_column_and_the_last_one_waits(place, run):
    """What is said of the others is what ``since_when`` says."""
    days = pa.concat_tables([rows_of(day) for day in (2, 0, 3, 1)])
    pyarrow.parquet.write_table(days, "in/all.parquet")
    with_key(rows_of(7, n=50), "day", pa.nulls(50, pa.date32()))

    run.says(
        LINE,
        "\n3 complete slices by day, no alarms."
        "\nNo drift: of 2 windows up to the last 2 slices none differs",
        "\n300 rows wait for the end of their slice.\n50 rows have no day, and are in no slice.\n",
    )
    facts = run.facts(LINE)

    counts = {"slices": 5, "complete_slices": 3, "rows_of_next_slice": 300}
    counts |= {"rows": 1250, "rows_without_slice": 50}
    assert counts.items() <= facts.items()
    strongest = ss.drift.since_when(
        {day: ss.sketch(rows_of(day), SPEC) for day in range(3)}
    ).strongest
    told = {"slice": "2026-01-03", "distance": pytest.approx(strongest.test.distance)}
    told |= dict(zip(("rows_before", "rows"), strongest.counts, strict=True))
    assert told == {name: facts["last"][name] for name in told}

    write(1, n=50, seed=100)
    write(4)
    later = run.facts(LINE)["last"]
    assert later["rows"] + later["rows_before"] == 1250  # with the late ones


def test_a_change_is_one_alarm_with_its_day_whenever_its_rows_came(place, run):
    for day in range(12):
        write(day, shift=0.6 if day >= 8 else 0.0)
        if day < 8:
            continue
        *new, facts = map(json.loads, run(f"{LINE} --json").stdout.splitlines())
        assert new == (alarms() if day == 9 else [])

    (alarm,) = alarms()
    told = {"slice": "2026-01-09", "since": "2026-01-09", "rows": 300, "rows_before": 2400}
    assert told.items() <= alarm.items()
    assert facts["alarms"] == 1
    assert alarm["distance"] > alarm["threshold"]
    assert alarm["sentence"].startswith("Drift since day 2026-01-09: the last 1 slice")
    assert facts["last"]["rows"] + facts["last"]["rows_before"] == 900  # since the alarm


def test_alarms_last_as_long_as_slices_differ_from_a_reference_also_late_ones(place, run):
    ss.sketch(rows_of(99, n=3000), SPEC).save("reference.sketch")
    line = LINE.replace("--plan plan.json", "--reference reference.sketch")
    for day in (1, 2, 5, 6, 10):
        write(day, shift=2.0 * (day in (5, 6)))
    run(line)
    write(7, shift=2.0)
    write(11)
    run(line)

    told = [(alarm["since"], alarm["rows_before"]) for alarm in alarms()]
    assert told == [(f"2026-01-0{day}", 3000) for day in (6, 7, 8)]
    run.error("follow in st --watch", "was watched with another --reference")


def test_what_cannot_be_compared_is_refused(place, run):
    write(0)
    run("follow in one --plan plan.json")
    run.error("follow in one --watch", "has no slices to compare")
    ss.sketch(rows_of(1), ss.SketchSpec(2, 64, 2.0, columns=("x", "y"))).save("other.sketch")
    run(LINE)
    line = "follow in st --watch --reference other.sketch"
    run.error(line, "made with another plan than the cube")


def test_hours_ascend_where_clocks_are_set_back(place, run):
    first = datetime(2026, 10, 24, 22, tzinfo=UTC)
    for hour in range(6):
        times = pa.array([first + timedelta(hours=hour)] * 300, pa.timestamp("us", "Europe/Berlin"))
        with_key(rows_of(hour, shift=1.5 * (hour == 3)), "time", times)

    line = LINE.replace("day", "'hour(time)'")
    facts = json.loads(run(f"{line} --json").stdout.splitlines()[-1])

    assert facts["complete_slices"] == 5
    assert alarms()[0]["since"] == "2026-10-25T01:00:00+00:00"  # the second time that it is 02:00


def test_keys_that_are_no_times_are_refused_with_what_to_do(place, run):
    for text in ("31.01.2026", "01.02.2026", "02.02.2026"):
        with_key(rows_of(0), "day", pa.array([text] * 300))

    words = "such as '01.02.2026', which are not in the order of time."
    for line in (LINE, "compare st --over day"):
        run.error(line, words, "Make new slices by 'day(day)', which are dates.")
    line = "follow in new --by 'day(day)' --plan plan.json --watch"
    assert run.facts(line)["complete_slices"] == 2
    rmtree("in")
    Path("in").mkdir()
    with_key(rows_of(0), "flag", pa.array([True, False] * 150))
    line = "follow in flags --by flag --plan plan.json --watch"
    run.error(line, "no times. Begin a new cube with slices by a time or a day.")


def test_an_alarm_is_written_once_by_two_programs_and_after_a_crash(place):
    for day in range(6):
        write(day, shift=3.0 * (day in (2, 4)))
    cube = ss.live.follow("in", "st", spec=SPEC, by="day")
    both = Monitor("st"), Monitor("st")
    crash = patch.object(Monitor, "_commit", side_effect=ZeroDivisionError)
    with crash, pytest.raises(ZeroDivisionError):
        ss.live.watch("st")  # at the first alarm
    with Path("st/alarms.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"sli')  # of another that was killed

    ones = both[0].evaluate()
    seen = [next(ones).slice, *(each.slice for each in both[1].evaluate())]
    seen += [each.slice for each in ones]

    days = [f"2026-01-0{day}" for day in range(1, 6)]
    assert seen == [days[0], *days, days[1]]  # days without an alarm may be compared twice
    assert [alarm["slice"] for alarm in alarms()] == days[2:]
    assert [each.n_alarms for each in both] == [3, 3]
    assert ss.live.watch(cube) == []


def test_a_file_of_alarms_that_is_not_ours_is_refused(place, run):
    for day in range(4):
        write(day, shift=3.0 * (day >= 2))
    run("follow in st --by day --plan plan.json")
    Path("st/alarms.jsonl").write_text("mine\n", encoding="utf-8")

    words = "its last line is no alarm of this cube. Move the file away."
    run.error("follow in st --watch", words)


# Programs that go on.


@contextmanager
def process_of(words, **options):
    with subprocess.Popen(words, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(condition, process):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def last_judged():
    """The newest day that was compared, or none."""
    kept = ss.live.Cube.open("st").positions.get("watch") if is_cube("st") else None
    return kept["last"]["slice"] if kept else ""


@pytest.mark.parametrize(
    ("n_days", "n_kills"),
    [(10, 2), pytest.param(365, 50, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
def test_days_are_watched_across_kills_and_no_row_is_lost_or_doubled(n_days, n_kills, place, run):
    moments, jump = random.Random(0), n_days // 2
    for days in np.array_split(range(n_days), n_kills):
        before = last_judged()
        with process_of([*COMMAND, "--every", "0.02"]) as process:
            for day in days.tolist():
                write(day, shift=0.8 if day >= jump else 0.0)
                write(day // 2, n=7, seed=1000 + day)
            wait_for(lambda n=before: last_judged() > n, process)
            time.sleep(moments.uniform(0.0, 0.3))

    run(LINE)

    cube = ss.live.Cube.open("st")
    assert cube.merge().to_bytes() == ss.sketch("in", SPEC).to_bytes()
    assert cube.table().sketches == ss.sketch_by("in", "day", spec=SPEC).sketches
    assert last_judged() == (FIRST + timedelta(n_days - 2)).isoformat()
    told = alarms()
    assert (FIRST + timedelta(jump)).isoformat() in [alarm["since"] for alarm in told]
    assert cube.positions["watch"]["n_alarms"] == len({alarm["slice"] for alarm in told})
    assert len(told) <= 1 + 2 * (n_days > 100)


def test_a_source_that_fails_is_reported_and_metrics_follow_what_comes(place):
    for day in range(4):
        write(day)
    words = [*COMMAND, "--every", "0.05", "--metrics", "0"]
    with process_of(words, stdout=-1, stderr=-1, text=True) as process:
        address = re.search(r"http://127\.0\.0\.1:\d+/metrics", process.stderr.readline())[0]

        def wait(condition):
            return wait_for(lambda: condition(m := read_metrics(address)) and m, process)

        quiet = wait(lambda m: "distance" in m)
        Path("in").rename("away")
        warned = process.stderr.readline()
        wait(lambda m: m["behind_seconds"] > 0.5)
        Path("away").rename("in")
        wait(lambda m: m["behind_seconds"] == 0)
        for day in (4, 5):
            write(day, shift=2.0)
        drifted = wait(lambda m: m["alarms_total"])
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)

    assert warned.startswith("Warning: this look at in failed: ")
    assert process.returncode == 130
    assert output.count("Alarm: ") == 1
    assert {"alarms_total": 0.0, "drifted": 0.0, "invalid_rows": 0.0}.items() <= quiet.items()
    assert quiet["distance"] < quiet["threshold"]
    assert "since_timestamp_seconds" not in quiet
    began = datetime(2026, 1, 5, tzinfo=UTC).timestamp()
    told = {"alarms_total": 1.0, "drifted": 1.0, "since_timestamp_seconds": began}
    assert told.items() <= drifted.items()
    assert drifted["distance"] > drifted["threshold"]
    assert drifted["p_value"] < 0.001
    assert {name.removesuffix("_total") for name in drifted} == set(METRICS)


def read_metrics(address):
    with urlopen(address) as answer:
        families = [*text_string_to_metric_families(answer.read().decode())]
    samples = [sample for family in families for sample in family.samples]
    return {sample.name.removeprefix(PREFIX): sample.value for sample in samples}


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


# The dashboard, and a real Prometheus.

DASHBOARD = PAGE.parents[1] / "examples" / "grafana" / "sketchshift-follow.json"


def test_the_page_and_the_dashboard_have_every_metric():
    """The dashboard is one that Grafana imports: a data source to fill in, and unique numbers."""
    served = {
        PREFIX + name + "_total" * (kind == "counter"): kind for name, (kind, *_) in METRICS.items()
    }
    text = DASHBOARD.read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `({PREFIX}\w+)` \| (\w+) \|", PAGE.read_text(), flags=re.MULTILINE)
    dashboard = json.loads(text)
    panels = dashboard["panels"]

    assert set(re.findall(rf"{PREFIX}\w+", text)) == set(served)
    assert dict(rows) == served
    assert dashboard["id"] is None
    assert [given["name"] for given in dashboard["__inputs"]] == ["DS_PROMETHEUS"]
    assert {panel["datasource"]["uid"] for panel in panels} == {"${DS_PROMETHEUS}"}
    assert len({panel["id"] for panel in panels}) == len(panels)


def expressions():
    """All that the dashboard asks Prometheus for, with its variables filled in."""
    text = DASHBOARD.read_text(encoding="utf-8")
    for name, value in {"$job": ".*", "$instance": ".*", "$__rate_interval": "10s"}.items():
        text = text.replace(name, value)
    return [json.loads(asked) for asked in re.findall(r'"expr": (".*")', text)]


def ask(port, expression):
    """What a server of Prometheus answers, if it has started."""
    url = f"http://127.0.0.1:{port}/api/v1/query?query={quote(expression)}"
    with suppress(OSError), urlopen(url) as answer:
        return [float(each["value"][1]) for each in json.load(answer)["data"]["result"]]


@pytest.mark.prometheus
@pytest.mark.skipif(
    which("prometheus") is None, reason="no prometheus here: `make test-prometheus`"
)
def test_prometheus_sees_the_alarm_in_its_own_query(place):
    for day in range(6):
        write(day)
    configuration, rules = re.findall(
        r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    words = [*COMMAND, "--metrics", "0", "--every", "0.1"]
    with socket.socket() as found, process_of(words, stderr=-1, text=True) as follower:
        port = re.search(r":(\d+)/metrics", follower.stderr.readline())[1]
        Path("rules.yml").write_text(rules)
        ours = configuration.replace(":9105", f":{port}").replace("15s", "1s")
        Path("prometheus.yml").write_text(f"rule_files: [rules.yml]\n{ours}")
        found.bind(("127.0.0.1", 0))
        own = found.getsockname()[1]
        found.close()
        server = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=stored"]
        server += [f"--web.listen-address=127.0.0.1:{own}", "--log.level=error"]
        with process_of(server) as prometheus:

            def wait(expression, value):
                wait_for(lambda: ask(own, expression) == [value], prometheus)

            wait(f"{PREFIX}slices", 5)
            assert ask(own, f"{PREFIX}alarms_total") == [0.0]
            for day in (6, 7):
                write(day, shift=1.0)

            wait(f"{PREFIX}alarms_total", 1)
            assert ask(own, "scrape_samples_scraped") == [len(METRICS)]
            for expression in [*expressions(), *re.findall(r"expr: (.*) > 0", rules)]:
                assert ask(own, expression), expression
