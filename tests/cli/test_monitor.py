"""``sketchshift monitor``: files and streams as they come, slices, alarms, metrics."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import sketchshift as ss
from sketchshift.cli.monitor import METRICS
from sketchshift.data import Block, open_source
from sketchshift.live.monitor import Monitor, Slicing

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "sketchshift", "monitor"]
SPEC = ss.SketchSpec(n_features=2, sketch_size=64, bandwidth=1.0, columns=("x", "y"))
PATIENCE = 60  # seconds, on a busy machine


def rows(seed: int, n: int = 300, shift: float = 0.0) -> pa.Table:
    x, y = np.random.default_rng(seed).normal(size=(2, n)) + shift
    return pa.table({"x": x, "y": y})


def write(folder: Path, number: int, table: pa.Table) -> Path:
    """A file whose time of change is its number, so that the order of files is known."""
    path = folder / f"{number:03d}.parquet"
    pyarrow.parquet.write_table(table, path)
    os.utime(path, (1_800_000_000 + number, 1_800_000_000 + number))
    return path


def journal(state: Path) -> list[dict]:
    return [json.loads(line) for line in (state / "journal.jsonl").read_text().splitlines()]


def alarms(state: Path) -> list[dict]:
    path = state / "alarms.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


LINE = "monitor in --state st --plan plan.json --once"


def test_every_file_is_a_slice_and_the_table_holds_all_rows(place, run):
    files = [write(place / "in", i, rows(i)) for i in range(5)]

    lines = run(LINE).stdout.splitlines()
    facts = run.facts(LINE)

    table = ss.SketchTable.from_parquet("st/slices.parquet")
    assert lines[0] == "In st: 5 files, 1,500 rows, 5 slices, no alarms."
    assert lines[1].startswith("No drift: of 3 windows up to the last 4 slices none differs")
    assert lines[2] == "Next: sketchshift watch st/slices.parquet --by slice"
    assert (facts["files"], facts["rows"], facts["slices"], facts["alarms"]) == (5, 1500, 5, 0)
    assert table.by == ("slice", "begun", "ended")
    assert list(table.sketches) == [ss.sketch(file, SPEC) for file in files]
    assert table.merge() == ss.sketch("in", SPEC)


def test_files_that_came_since_are_read_and_others_are_not_read_again(place, run):
    for i in range(3):
        write(place / "in", i, rows(i))
        assert run.facts(LINE)["files"] == i + 1

    names = [line["path"] for line in journal(place / "st") if line["kind"] == "file"]
    assert [Path(name).name for name in names] == ["000.parquet", "001.parquet", "002.parquet"]
    assert ss.SketchTable.from_parquet("st/slices.parquet").merge() == ss.sketch("in", SPEC)


def test_a_change_is_one_alarm_with_its_time_and_the_history_begins_anew(place, run):
    for i in range(12):
        write(place / "in", i, rows(i, shift=0.5 if i >= 8 else 0.0))

    printed = run(f"{LINE} --json").stdout.splitlines()

    (alarm,) = alarms(place / "st")
    assert [json.loads(line) for line in printed[:-1]] == [alarm]
    assert json.loads(printed[-1])["alarms"] == 1
    assert (alarm["slice"], alarm["since_slice"], alarm["rows"]) == (8, 8, 300)
    assert alarm["rows_before"] == 2400
    assert alarm["since"] == "2027-01-15T08:00:08.000+00:00"
    assert alarm["sentence"].startswith("Drift since 2027-01-15T08:00:08.000+00:00: the last 1")
    assert alarm["distance"] > alarm["threshold"]
    last = [line for line in journal(place / "st") if line["kind"] == "evaluated"][-1]
    assert last["next_first"] == 8
    assert (last["rows_before"] + last["rows"]) == 1200


def test_an_evaluation_is_what_since_when_says_of_the_same_slices(place, run):
    """Up to the noise, which the monitor learns from the first four of six slices."""
    for i in range(6):
        write(place / "in", i, rows(i))
    last = run.facts(LINE)["last"]

    found = ss.drift.since_when(ss.SketchTable.from_parquet("st/slices.parquet"), by="slice")

    assert last["distance"] == pytest.approx(found.strongest.test.distance)
    assert last["n_slices"] == found.strongest.n_slices
    assert (last["rows_before"], last["rows"]) == found.strongest.counts
    assert last["p_value"] == pytest.approx(found.p_value, rel=0.2)


def test_with_a_reference_alarms_last_as_long_as_rows_differ_from_it(place, run):
    ss.sketch(rows(99, 5000), SPEC).save("reference.sketch")
    for i in range(9):
        write(place / "in", i, rows(i, shift=0.6 if 3 <= i < 6 else 0.0))

    run("monitor in --state st --reference reference.sketch --once")

    assert [alarm["slice"] for alarm in alarms(place / "st")] == [3, 4, 5]
    assert {alarm["rows_before"] for alarm in alarms(place / "st")} == {5000}


def test_the_first_files_make_the_plan_and_it_is_kept(place, run):
    for i in range(3):
        write(place / "in", i, rows(i))
    spec = ss.plan("in", 3, sketch_size=64, cells=False)

    run("monitor in --state st -k 3 -m 64 --no-cells --once")
    write(place / "in", 3, rows(3, shift=9.0))
    run("monitor in --state st -k 3 -m 64 --no-cells --once")

    assert ss.load("st/plan.json") == spec
    assert ss.SketchTable.from_parquet("st/slices.parquet").merge() == ss.sketch("in", spec)


def test_without_a_file_there_is_no_plan_yet(place, run):
    result = run("monitor in --state st -k 3 --once")

    assert "no file yet to plan on" in result.stderr
    assert not (place / "st" / "plan.json").exists()


def test_slices_of_so_many_rows_are_cut_exactly_across_files(place, run):
    for i, n in enumerate((250, 10, 700)):
        write(place / "in", i, rows(i, n))
    X = pa.concat_tables(pyarrow.parquet.read_table(f) for f in sorted((place / "in").iterdir()))

    facts = run.facts(f"{LINE} --slice-rows 300")
    write(place / "in", 3, rows(3, 240))
    later = run.facts(f"{LINE} --slice-rows 300")

    table = ss.SketchTable.from_parquet("st/slices.parquet")
    assert (facts["slices"], facts["rows_of_next_slice"]) == (3, 60)
    assert (later["slices"], later["rows_of_next_slice"]) == (4, 0)
    assert table.counts.tolist() == [300] * 4
    assert table.sketches[1] == ss.sketch(X.slice(300, 300), SPEC)
    assert table.merge() == ss.sketch("in", SPEC)


def test_slices_of_seconds_hold_the_files_changed_in_them(place, run):
    for i in (0, 1, 10, 11, 25):
        write(place / "in", i, rows(i))

    facts = run.facts(f"{LINE} --slice-seconds 10")

    table = ss.SketchTable.from_parquet("st/slices.parquet")
    assert table.counts.tolist() == [600, 600, 300]
    assert facts["slices"] == 2  # the third is in the future, and under way
    assert [key[1].second for key, _ in table] == [0, 10, 25]


def test_a_file_that_grew_is_told_once_and_never_counts_twice(place, run):
    write(place / "in", 0, rows(0))
    run(LINE)
    before = ss.SketchTable.from_parquet("st/slices.parquet")
    write(place / "in", 0, rows(0, 400))

    first, second = run(LINE), run(LINE)

    assert "000.parquet changed after it was read. Its rows count as they were" in first.stderr
    assert second.stderr == ""
    assert ss.SketchTable.from_parquet("st/slices.parquet") == before
    assert run.facts(LINE)["files_changed"] == 1


def test_a_file_that_cannot_be_read_is_left_out_and_every_run_says_so(place, run):
    (place / "in" / "bad.parquet").write_bytes(b"PAR1 and no more")
    write(place / "in", 1, rows(1))

    failed = run(LINE, status=1)
    again = run(LINE, status=1)
    write(place / "in", 2, rows(2)).replace("in/bad.parquet")

    assert "bad.parquet is left out: " in failed.stderr
    assert "bad.parquet is left out: " in again.stderr
    assert run.facts(LINE)["files"] == 2
    assert run.facts(LINE)["files_failed"] == 0


def test_a_first_file_that_cannot_be_read_does_not_stop_the_plan(place, run):
    (place / "in" / "a.csv").write_bytes(b"")
    write(place / "in", 1, rows(1))

    result = run("monitor in --state st -k 3 --once", status=1)

    assert "a.csv is left out: " in result.stderr
    assert "1 file, 300 rows" in result.stdout


def test_the_folder_that_is_watched_keeps_no_state(place, run):
    write(place / "in", 1, rows(1))

    assert "a folder of its own" in run("monitor in --state in --plan plan.json", status=2).stderr


def test_invalid_rows_are_counted_and_left_out(place, run):
    table = rows(0).to_pandas()
    table.loc[:9, "x"] = np.nan
    write(place / "in", 0, pa.Table.from_pandas(table, preserve_index=False))

    result = run(LINE)

    assert result.stdout.startswith("In st: 1 file, 290 rows, 1 slice, 10 rows left out, no alarms")


def test_files_of_the_state_are_not_data(place, run):
    write(place / "in", 0, rows(0))

    run("monitor in --state in/st --plan plan.json --once")

    assert run.facts("monitor in --state in/st --plan plan.json --once")["files"] == 1


@pytest.mark.parametrize("line", [LINE, f"{LINE} --slice-rows 140"])
def test_half_a_line_at_the_end_of_the_journal_never_counted(place, run, line):
    """Nor do slices without the line that names their file, which comes behind them."""
    for i in range(4):
        write(place / "in", i, rows(i, shift=0.8 if i == 3 else 0.0))
    run(line)
    path = place / "st" / "journal.jsonl"
    whole, told = path.read_bytes(), (place / "st" / "alarms.jsonl").read_bytes()
    ends = [found.end() for found in re.finditer(rb"\n", whole)]

    for cut in np.random.default_rng(0).integers(ends[0], len(whole), 8).tolist() + ends[1:]:
        path.write_bytes(whole[:cut])
        (place / "st" / "alarms.jsonl").write_bytes(told + b'{"sl' * (cut % 2))
        run(line)
        assert path.read_bytes() == whole
        assert (place / "st" / "alarms.jsonl").read_bytes() == told
    assert len(told.splitlines()) == 1


def test_a_damaged_journal_is_refused(place, run):
    for i in range(3):
        write(place / "in", i, rows(i))
    run(LINE)
    path = place / "st" / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)

    path.write_bytes(b"".join([*lines[:2], *lines[3:]]))

    assert "is not as it was written. Restore the file" in run.error(LINE)


def test_what_was_begun_in_one_way_does_not_go_on_in_another(place, run):
    write(place / "in", 0, rows(0))
    run(LINE)
    other = ss.SketchSpec(n_features=2, sketch_size=64, bandwidth=2.0, columns=("x", "y"))
    (place / "other.json").write_text(other.to_json())
    ss.sketch(rows(1), SPEC).save("reference.sketch")

    assert "begun with another length of a slice" in run.error(f"{LINE} --slice-rows 9")
    assert "holds another plan" in run.error("monitor in --state st --plan other.json --once")
    error = run.error("monitor in --state st --reference reference.sketch --once")
    assert "begun with another reference" in error


def test_two_monitors_do_not_share_a_folder(place, run):
    write(place / "in", 0, rows(0))
    run(LINE)
    kept = Monitor(place / "st", SPEC, Slicing())

    assert "another monitor is running in st" in run.error(LINE)
    kept.close()
    run(LINE)


def test_misuse_is_told_at_once(place, run):
    assert "give -k" in run.error("monitor in --state st --once", status=2)
    assert "not both" in run.error(f"{LINE} --slice-rows 1 --slice-seconds 1", status=2)
    assert "say how long a slice" in run.error("monitor - --state st -k 3", status=2)
    assert "goes with no other" in run.error("monitor - in --state st -k 3", status=2)
    assert "--stream is for standard input" in run.error(f"{LINE} --stream replayed", status=2)
    assert "not both" in run.error(f"{LINE} -k 3", status=2)
    assert "no file or folder 'nothing'" in run.error("monitor nothing --state st -k 3 --once")
    assert "cannot keep the state" in run.error("monitor in --state plan.json -k 3 --once")


# Standard input.


def as_csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue()


def as_arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    return sink.getvalue().to_pybytes()


def as_json(table: pa.Table) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in table.to_pylist())


def pipe_in(data: bytes, *words: str, status: int = 0) -> tuple[list[dict], str]:
    """What a monitor of standard input prints as JSON, and says."""
    line = [*COMMAND, "-", "--state", "st", "--plan", "plan.json", "--json", *words]
    done = subprocess.run(line, input=data, capture_output=True, timeout=PATIENCE)
    assert done.returncode == status, done.stderr.decode()
    return [json.loads(text) for text in done.stdout.splitlines()], done.stderr.decode()


@pytest.mark.parametrize("encode", [as_csv, as_arrow, as_json])
def test_a_stream_is_cut_into_slices_of_rows(place, encode):
    table = rows(0, 1000).append_column("text", pa.array(["a"] * 1000))

    (*_, facts), _ = pipe_in(encode(table), "--slice-rows", "300")

    kept = ss.SketchTable.from_parquet("st/slices.parquet")
    assert (facts["stream_rows"], facts["slices"], facts["rows_of_next_slice"]) == (1000, 3, 100)
    assert kept.counts.tolist() == [300, 300, 300, 100]
    assert kept.sketches[1] == ss.sketch(table.slice(300, 300), SPEC)
    assert kept.merge() == ss.sketch(table, SPEC)


def test_a_replayed_stream_goes_on_behind_the_rows_that_are_in(place):
    table = rows(0, 1000)
    pipe_in(as_csv(table.slice(0, 430)), "--slice-rows", "300")

    _, error = pipe_in(as_csv(table), "--slice-rows", "300", status=1)
    (*_, facts), _ = pipe_in(as_csv(table), "--slice-rows", "300", "--stream", "replayed")
    assert ss.SketchTable.from_parquet("st/slices.parquet").merge() == ss.sketch(table, SPEC)
    (*_, more), _ = pipe_in(as_csv(rows(5, 50)), "--slice-rows", "300", "--stream", "continued")

    assert "430 rows of standard input are in already. Say --stream replayed" in error
    assert (facts["stream_rows"], more["stream_rows"]) == (1000, 1050)


def test_a_stream_is_planned_on_its_first_rows_and_loses_none(place):
    table = rows(0, 5000)
    words = ["-", "--state", "st", "-k", "2", "--slice-rows", "1000", "--json"]
    line = [*COMMAND, *words]

    done = subprocess.run(line, input=as_csv(table), capture_output=True, timeout=PATIENCE)

    assert done.returncode == 0, done.stderr
    spec = ss.load("st/plan.json")
    assert ss.SketchTable.from_parquet("st/slices.parquet").merge() == ss.sketch(table, spec)


def test_an_empty_stream_is_no_error(place):
    pipe_in(as_csv(rows(0, 400)), "--slice-rows", "300")

    (facts,), said = pipe_in(b"", "--slice-rows", "300")
    line = [*COMMAND, "-", "--state", "new", "-k", "2", "--slice-rows", "300"]
    new = subprocess.run(line, input=b"", capture_output=True, timeout=PATIENCE)

    assert (facts["stream_rows"], said) == (400, "")
    assert new.returncode == 0
    assert new.stderr.startswith(b"There is no row yet to plan on.")


def test_a_stream_of_seconds_is_cut_at_their_ends(place, monkeypatch):
    """By a clock of our own: blocks of 20 rows come at these seconds, and periods have ten."""
    times, now = [3.0, 8.0, 12.0, 35.0, 39.0], [1.0]
    monkeypatch.setattr("sketchshift.live.monitor.time.time", lambda: now[0])
    X = rows(0, 100).to_pandas().to_numpy()

    def blocks():
        for number, when in enumerate(times):
            now[0] = when
            yield Block(X[20 * number : 20 * (number + 1)])

    (place / "st").mkdir()
    with Monitor(place / "st", SPEC, Slicing(seconds=10.0), n_threads=1) as kept:
        for _ in kept.take_stream(open_source(X), blocks()):
            list(kept.evaluate())
        table = kept.table()
        n_complete = kept.n_slices
        kept.close_if_over(41.0)
        assert (n_complete, kept.n_slices) == (2, 3)

    assert table.counts.tolist() == [40, 20, 40]
    assert table.sketches[1] == ss.sketch(X[40:60], SPEC)
    assert table.merge() == ss.sketch(X, SPEC)


def test_standard_input_that_is_not_numbers_is_one_sentence(place):
    _, error = pipe_in(b"x,y\n1,2\n3,zebra\n", "--slice-rows", "300", status=1)
    _, missing = pipe_in(b"x,z\n1,2\n", "--slice-rows", "300", status=1)

    assert error.startswith("Error: cannot read standard input: ")
    assert "zebra" in error
    assert missing.startswith("Error: standard input has no column 'y' in its first line")


# A monitor that runs.


@contextmanager
def running(*words: str, **options):
    """A monitor in a process of its own, which is gone afterwards."""
    pipes = {"stdin": -1, "stdout": -1, "stderr": -1}
    with subprocess.Popen([*COMMAND, *words], **(pipes | options)) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(condition, process: subprocess.Popen | None = None):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def count_slices(state: Path) -> int:
    path = state / "journal.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return sum('"kind": "evaluated"' in line and line.endswith("\n") for line in lines)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(place, number):
    write(place / "in", 0, rows(0))
    words = ["in", "--state", "st", "--plan", "plan.json", "--poll", "0.1", "--settle", "0"]
    with running(*words, text=True) as process:
        wait_for(lambda: count_slices(place / "st") == 1, process)
        write(place / "in", 1, rows(1))
        wait_for(lambda: count_slices(place / "st") == 2, process)
        process.send_signal(number)
        output, errors = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0
    assert errors == ""
    assert output.startswith("In st: 2 files, 600 rows, 2 slices, no alarms.")
    assert ss.SketchTable.from_parquet("st/slices.parquet").merge() == ss.sketch("in", SPEC)


def test_a_stopped_stream_keeps_all_rows_that_came(place):
    words = ["-", "--state", "st", "--plan", "plan.json", "--slice-rows", "100", "--json"]
    with running(*words) as process:
        process.stdin.write(as_csv(rows(0, 250)))
        process.stdin.flush()
        wait_for(lambda: count_slices(place / "st") == 2, process)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
        facts = json.loads(process.stdout.read().splitlines()[-1])

    assert process.returncode == 0
    assert (facts["stream_rows"], facts["rows_of_next_slice"]) == (250, 50)


def test_metrics_are_served_and_follow_what_comes(place):
    for i in range(4):
        write(place / "in", i, rows(i))
    (place / "in" / "bad.csv").write_text("x,y\na,b\n")
    words = ["in", "--state", "st", "--plan", "plan.json", "--poll", "0.1", "--settle", "0"]
    words += ["--metrics-port", "0"]
    with running(*words, text=True) as process:
        address = re.search(r"http://127\.0\.0\.1:\d+/metrics", process.stderr.readline())[0]
        wait_for(lambda: count_slices(place / "st") == 4, process)
        quiet = read_metrics(address)
        write(place / "in", 4, rows(4, shift=1.0))
        wait_for(lambda: count_slices(place / "st") == 5, process)
        wait_for(lambda: read_metrics(address)["behind_seconds"] == 0.0, process)
        drifted = read_metrics(address)
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert quiet["rows_total"] == 1200.0
    assert quiet["alarms_total"] == quiet["drifted"] == quiet["invalid_rows_total"] == 0.0
    assert "since_timestamp_seconds" not in quiet
    assert quiet["distance"] < quiet["threshold"]
    assert (drifted["files_total"], drifted["slices_total"], drifted["files_failed"]) == (5, 5, 1)
    assert drifted["alarms_total"] == drifted["drifted"] == 1.0
    assert drifted["distance"] > drifted["threshold"]
    assert drifted["p_value"] < 0.001
    assert drifted["since_timestamp_seconds"] == 1_800_000_004
    assert drifted["last_slice_timestamp_seconds"] == 1_800_000_004
    assert {name.removesuffix("_total") for name in drifted} == set(METRICS)


def read_metrics(address: str) -> dict[str, float]:
    with urlopen(address) as answer:
        text = answer.read().decode()
    pairs = re.findall(r"^sketchshift_monitor_(\w+) (\S+)$", text, flags=re.MULTILINE)
    return {name: float(value) for name, value in pairs}


# The page.

PAGE = ROOT / "docs" / "monitoring.md"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def test_every_line_of_the_page_runs_in_its_order(place):
    """Installing apart; a monitor that would go on ends when it has read what is there."""
    blocks, names = BLOCK.findall(PAGE.read_text(encoding="utf-8")), {}
    program = f"{sys.executable} -m sketchshift"
    (place / "plan.json").unlink()
    n_run = 0
    for language, text in blocks:
        if language == "python":
            exec(text, names)
            continue
        for line in text.splitlines():
            if line.startswith("pip "):
                continue
            goes_on = " monitor " in line and " - " not in line and "--once" not in line
            line = line.replace(":9105", ":0").replace("--metrics-port 9105", "--metrics-port 0")
            line = line.replace("sketchshift ", f"{program} ") + " --once" * goes_on
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", line], capture_output=True, text=True
            )
            assert done.returncode == 0, (line, done.stderr)
            n_run += 1

    assert n_run == 13
    assert [alarm["since_slice"] for alarm in alarms(place / "watched")] == [5]
    assert [alarm["since"] for alarm in alarms(place / "lake")] == ["2026-01-06"]
    assert [alarm["slice"] for alarm in alarms(place / "fixed")] == [5, 6, 7]
    assert names["found"].since == 4  # the window of four slices is nearest to three
    streamed = ss.SketchTable.from_parquet("stream/slices.parquet").merge()
    both = ss.sketch(["incoming/day1.csv", "incoming/day2.csv"], ss.load("plan.json"))
    assert streamed == both
