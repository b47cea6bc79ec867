"""``sketchshift monitor``: new files or rows as they come, alarms, and metrics for Prometheus.

Looks for files, opens standard input, or follows data that changes, and shows what
``live.monitor`` remembers and finds.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sketchshift._paths import is_address
from sketchshift._text import counted
from sketchshift._threads import one_blas_thread
from sketchshift._writing import write_atomically
from sketchshift.cli.command import command, sentence
from sketchshift.cli.inputs import load_raw, read_spec
from sketchshift.cli.options import (
    KEYS,
    columns_option,
    list_typed,
    turnkey_arguments,
    turnkey_options,
)
from sketchshift.cli.output import Output, note
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch
from sketchshift.sketch import plan as plan_on
from sketchshift.sketch.reading import Planning, Reading

if TYPE_CHECKING:
    from sketchshift.data import Block, Source
    from sketchshift.live.cube import Cube
    from sketchshift.live.messages import RowPipe
    from sketchshift.live.monitor import CubeMonitor, Evaluation, FileMark, Monitor

__all__ = ["METRICS", "monitor"]

T = TypeVar("T")
PLAN = "plan.json"
STANDARD_INPUT = "-"
GLANCE = 0.1  # seconds between two looks at whether to stop
TABLE_SHARE = 0.05  # of the time that may go into writing the table of slices


@command
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--state",
    required=True,
    metavar="FOLDER",
    help="Where plan, slices, journal and alarms are kept; made if it is not there.",
)
@click.option("--plan", metavar="PATH", help="Plan written by `sketchshift plan`.")
@click.option(
    "--reference",
    metavar="PATH",
    help="A sketch that slices are compared with; it brings its plan. Default: earlier slices.",
)
@turnkey_options
@click.option(
    "-m",
    "--sketch-size",
    type=click.IntRange(min=1),
    default=1000,
    help="With -k: number m of frequencies. Default: 10·k·d.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, help="With -k: seed of the plan. Default: 0."
)
@columns_option
@click.option(
    "--by",
    type=KEYS,
    metavar="NAME",
    help="A slice is a value of this column: day, or day(time). It is complete once a later one "
    "has rows. For tables of lakes, streams and stores; also for a folder.",
)
@click.option(
    "--slice-rows",
    type=click.IntRange(min=1),
    help="A slice is so many rows. Default: one file, one slice.",
)
@click.option(
    "--slice-seconds",
    type=click.FloatRange(min=1),
    help="A slice is what came in so many seconds; of files, by the time of their last change.",
)
@click.option(
    "--false-alarm",
    type=click.FloatRange(1e-12, 0.5),
    default=0.001,
    show_default=True,
    help="The rate of alarms without drift: for each slice, all windows together.",
)
@click.option(
    "--on-invalid",
    type=click.Choice(["raise", "skip"]),
    default="skip",
    show_default=True,
    help="Leave rows with missing or infinite values out and count them, or refuse their file.",
)
@click.option(
    "--stream",
    type=click.Choice(["continued", "replayed"]),
    help="Standard input, when some of it was read before: it goes on behind that, or it begins "
    "again, and the rows that are in already are skipped.",
)
@click.option("--once", is_flag=True, help="Read what is there, and end.")
@click.option(
    "--poll",
    type=click.FloatRange(min=0.01),
    default=1.0,
    show_default=True,
    help="Seconds between two looks for what is new.",
)
@click.option(
    "--settle",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    help="Seconds that a file must not have changed for before it is read; not with --once.",
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65_535),
    help="Serve metrics for Prometheus at this port; 0 takes any that is free.",
)
@click.option(
    "--metrics-address",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Who may ask: 0.0.0.0 is every machine.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    help="Default: the processors at hand. The bytes do not depend on it.",
)
@click.pass_context
def monitor(
    ctx: click.Context,
    /,
    inputs: tuple[str, ...],
    state: str,
    plan: str | None,
    reference: str | None,
    columns: tuple[str, ...] | None,
    by: tuple[str, ...] | None,
    slice_rows: int | None,
    slice_seconds: float | None,
    false_alarm: float,
    on_invalid: str,
    stream: str | None,
    once: bool,
    poll: float,
    settle: float,
    metrics_port: int | None,
    metrics_address: str,
    threads: int | None,
    out: Output,
    **_: Any,
) -> None:
    """Read new files or rows as they come, and tell when, and since when, they differ.

    INPUT is a folder, quoted globs or files ({formats}), looked at again and
    again until Ctrl-C; or - for standard input: CSV with a header, JSON lines, or a stream of
    Arrow; or, with --by, whatever `sketchshift follow` takes, such as a table of Delta or Iceberg,
    where rows that went are taken out of their slices. Rows are kept in slices. After each slice,
    the last 1, 2, 4, 8, ... slices are compared with those before them. Alarms are lines of JSON in
    FOLDER/alarms.jsonl, and are told here; with --json too, before the object at the end. Whatever
    stops the program, the same command goes on: no row is lost and none counts twice.

    Examples
    --------
      sketchshift monitor 'part-*.parquet' --state watched --plan plan.json --once
      sketchshift monitor events.parquet --columns x,y -k 3 --state watched --once --json
      sketchshift monitor incoming --by day --columns x,y -k 3 --state by-day --once

    Without --once it goes on until it is stopped; --metrics-port 9105 serves Prometheus.

    Then: `sketchshift watch watched/slices.parquet --by slice`.
    """
    if slice_rows is not None and slice_seconds is not None:
        raise click.UsageError("give --slice-rows or --slice-seconds, not both.")
    folder = _make_folder(state)
    if any(Path(given).is_dir() and folder.samefile(given) for given in inputs):
        msg = f"--state {state} is the folder that is watched. Give it a folder of its own."
        raise click.UsageError(msg)
    stop, is_followed = _Stop(), _is_followed(ctx, folder)
    if not is_followed:
        _check_inputs(inputs, slice_rows is not None or slice_seconds is not None, stream)
    with _stopped_by_signals(stop):
        kept = None if reference is None else load_raw(Path(reference))
        spec = _known_spec(ctx, folder, plan, kept)
        options: dict[str, Any] = {"false_alarm": false_alarm, "reference": kept}
        if is_followed:
            n_failed = _monitor_changes(ctx, folder, spec, stop, options, out)
        else:
            n_failed = _monitor_files(ctx, folder, spec, stop, options, out)
    ctx.exit(1 if once and n_failed else 0)


def _monitor_files(
    ctx: click.Context,
    folder: Path,
    spec: SketchSpec | None,
    stop: _Stop,
    options: dict[str, Any],
    out: Output,
) -> int:
    """Watch files, or standard input; how many files could not be read."""
    from sketchshift.live.monitor import Monitor, Slicing

    given = ctx.params
    inputs, columns, once = given["inputs"], given["columns"], given["once"]
    slicing = Slicing(given["slice_rows"], given["slice_seconds"])
    look = _Look(inputs, folder, stop, 0.0 if once else given["settle"])
    pipe = _open_pipe(columns, spec, stop) if STANDARD_INPUT in inputs else None
    if spec is None:
        spec = _make_plan(ctx, folder, pipe, look, once, given["poll"])
    if spec is None:
        return 0
    options |= {"on_invalid": given["on_invalid"], "n_threads": given["threads"]}
    with Monitor(folder, spec, slicing, **options) as opened:
        reading = Reading(spec, columns, on_invalid=given["on_invalid"])
        session = _FileSession(opened, reading, look, out)
        with session.served(given["metrics_port"], given["metrics_address"]):
            session.catch_up()
            if pipe is None:
                session.read_files(None if once else given["poll"])
            else:
                session.read_stream(pipe, given["stream"])
            session.finish(given["state"])
    return session.n_failed


def _monitor_changes(
    ctx: click.Context,
    folder: Path,
    spec: SketchSpec | None,
    stop: _Stop,
    options: dict[str, Any],
    out: Output,
) -> int:
    """Watch data that changes; how often it could not be read."""
    from sketchshift.live.monitor import CubeMonitor

    follower = _Follower(ctx, folder, spec, stop)
    poll = None if ctx.params["once"] else ctx.params["poll"]
    cube = follower.wait_for_first(poll)
    if cube is None:
        note(
            "Stopped before the first rows were in: none counts yet. The same command begins anew."
        )
        return follower.n_failed
    with CubeMonitor(folder, cube, **options) as opened:
        session = _FollowSession(opened, out, follower)
        with session.served(ctx.params["metrics_port"], ctx.params["metrics_address"]):
            session.go_on(poll)
            session.finish(ctx.params["state"])
    return follower.n_failed


def _is_followed(ctx: click.Context, folder: Path) -> bool:
    """Whether slices are values of a column; refuse what goes only with the other kind."""
    from sketchshift.live.changes import is_changing
    from sketchshift.live.monitor import CUBE, is_of_files
    from sketchshift.sketch.file import is_cube

    inputs, by = ctx.params["inputs"], ctx.params["by"]
    if by is not None and is_of_files(folder):
        msg = f"the monitor in {folder} was begun without --by."
        raise DataError(f"{msg} Leave --by out, or name another --state.")
    if by is None and (is_of_files(folder) or not is_cube(folder / CUBE)):
        changing = [given for given in inputs if given != STANDARD_INPUT and is_changing(given)]
        if changing:
            msg = (
                f"rows of {changing[0]} come and go, so say which column tells their slice: "
                "--by day, or --by 'day(time)'."
            )
            raise click.UsageError(msg)
        return False
    others = list_typed(ctx, ["slice_rows", "slice_seconds", "stream", "settle"])
    if others:
        raise click.UsageError(f"give --by or {', '.join(others)}, not both.")
    if len(inputs) > 1 or STANDARD_INPUT in inputs:
        raise click.UsageError("--by takes one input, a folder or an address.")
    return True


def _check_inputs(inputs: Sequence[str], is_sliced: bool, stream: str | None) -> None:
    """Refuse what could never be read, before anything is waited for."""
    from sketchshift.data.open import expand

    if STANDARD_INPUT in inputs:
        if len(inputs) > 1:
            raise click.UsageError("standard input, -, goes with no other input.")
        if not is_sliced:
            msg = "say how long a slice of standard input is: --slice-rows or --slice-seconds."
            raise click.UsageError(msg)
        return
    if stream is not None:
        raise click.UsageError("--stream is for standard input, -.")
    for given in inputs:
        if is_address(given):
            msg = f"say which column tells the slice of a row of {given}: --by day."
            raise click.UsageError(msg)
        path = Path(given).expanduser()
        is_glob = any(sign in given for sign in "*?[")
        if path.is_file() or not (path.is_dir() or is_glob):
            expand(given)


def _make_folder(state: str) -> Path:
    folder = Path(state).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"cannot keep the state in {state!r}: {error.strerror}. Name another folder."
        raise DataError(msg) from error
    return folder


# Stopping: what is under way is brought to an end, and what was read is kept.


@dataclass
class _Stop:
    """Whether the program was asked to stop."""

    is_asked: bool = False

    def wait(self, seconds: float) -> None:
        """Sleep, but not beyond the moment of being asked."""
        end = time.monotonic() + seconds
        while not self.is_asked and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, GLANCE))


class _StoppedError(Exception):
    """A file is not read to its end: it will be read from its start another time."""


@contextmanager
def _stopped_by_signals(stop: _Stop) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask to stop; a second one ends at once, as it always does."""
    numbers = [signal.SIGTERM, signal.SIGINT]
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}

    def ask(number: int, frame: Any) -> None:
        stop.is_asked = True
        signal.signal(number, before[number])

    for number, handler in before.items():
        if handler not in (signal.SIG_IGN, None):  # as nohup has it
            signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)


# The plan: given, kept from before, or made of the first rows.


def _known_spec(
    ctx: click.Context, folder: Path, plan: str | None, reference: Sketch | None
) -> SketchSpec | None:
    """The plan that is given or kept; None where it is to be made of data."""
    if plan is not None and reference is not None:
        raise click.UsageError("give --plan or --reference, not both: a sketch has its plan.")
    given = reference.spec if reference is not None else None
    given = read_spec(plan) if plan is not None else given
    if given is not None and ctx.params["n_clusters"] is not None:
        msg = "give -k or a plan, not both: -k makes a plan of the first rows."
        raise click.UsageError(msg)
    path = folder / PLAN
    if not path.exists():
        if given is None and ctx.params["n_clusters"] is None:
            msg = "give -k, the number of clusters to plan for, or --plan plan.json."
            raise click.UsageError(msg)
        if given is not None:
            _keep_plan(folder, given)
        return given
    kept = read_spec(path)
    if given is not None and given != kept:
        msg = f"{path} holds another plan. Leave yours out, or name another --state."
        raise DataError(msg)
    return kept


def _keep_plan(folder: Path, spec: SketchSpec) -> None:
    write_atomically(folder / PLAN, spec.to_json().encode())


def _make_plan(
    ctx: click.Context, folder: Path, pipe: _Pipe | None, look: _Look, once: bool, poll: float
) -> SketchSpec | None:
    """Plan on the first rows of a stream, or on the first files; None if none came."""
    arguments = turnkey_arguments(ctx) | {"standardize": ctx.params["standardize"]}
    on_invalid = ctx.params["on_invalid"]
    reading = Reading(columns=ctx.params["columns"], on_invalid=on_invalid)
    files = [] if pipe is not None else look.wait_for_first(None if once else poll, reading)
    if not files and (pipe is None or pipe.is_empty):
        what = "file" if pipe is None else "row"
        note(f"There is no {what} yet to plan on. Give a --plan, or wait for {what}s.")
        return None
    if pipe is not None:
        spec = pipe.plan(Planning(**arguments), on_invalid)
    else:
        columns = ctx.params["columns"]
        spec = plan_on(files, columns=columns, on_invalid=on_invalid, **arguments)
    _keep_plan(folder, spec)
    return spec


# Files that come.


@dataclass
class _Look:
    """Looks for files, in the order in which they were last changed."""

    inputs: Sequence[str]
    state: Path
    stop: _Stop
    settle: float

    def files(self) -> list[tuple[Path, FileMark]]:
        """All files that are there, and how they are now; none of our own."""
        from sketchshift.live.monitor import FileMark

        paths = [path for given in self.inputs for path in _expand(given)]
        folders = {folder: folder.resolve() for folder in {path.parent for path in paths}}
        own, found = self.state.resolve(), {}
        for full in (folders[path.parent] / path.name for path in paths):
            if own not in full.parents and (mark := _if_there(partial(FileMark.of, full))):
                found[full] = mark
        return sorted(found.items(), key=lambda each: (each[1].mtime_ns, each[0]))

    def is_settled(self, mark: FileMark) -> bool:
        """Whether it has not been changed for a while; clocks of other machines may be ahead."""
        return abs(time.time() - mark.time) >= self.settle

    def wait_for_first(self, poll: float | None, reading: Reading) -> list[Path]:
        """The files that can be read, once there are any; only one look without ``poll``."""
        while True:
            settled = [path for path, mark in self.files() if self.is_settled(mark)]
            files = [path for path in settled if _is_readable(path, reading)]
            if files or poll is None or self.stop.is_asked:
                return files
            self.stop.wait(poll)


def _is_readable(path: Path, reading: Reading) -> bool:
    """Whether a file can be opened; one that cannot is told of when its turn comes."""
    try:
        reading.open(path)
    except (DataError, OSError):
        return False
    return True


def _expand(given: str) -> list[Path]:
    """Files meant by a folder or glob; none if there are none yet."""
    from sketchshift.data.open import expand

    try:
        return [file for file in expand(given) if isinstance(file, Path)]
    except DataError:
        return []


def _if_there(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except FileNotFoundError:
        return None


class _Session:
    """One run: rows go in, alarms and metrics come out."""

    def __init__(self, kept: Monitor | CubeMonitor, out: Output) -> None:
        self.kept, self._out = kept, out
        self.waiting_since: float | None = None

    def catch_up(self) -> None:
        """Evaluate what is complete, and tell the alarms."""
        for found in self.kept.evaluate():
            self._tell(found)

    def _tell(self, found: Evaluation) -> None:
        if found.drifted:
            self._out.report(found.to_alarm(), [f"Alarm: {found.sentence}"])
            sys.stdout.flush()

    @contextmanager
    def served(self, port: int | None, address: str) -> Iterator[None]:
        """Serve the metrics while the body runs, if there is a port to do so."""
        if port is None:
            yield
            return
        server = _serve(self, port, address)
        note(f"Metrics at http://{address}:{server.server_port}/metrics")
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()

    def _report(
        self, state: str, facts: dict[str, Any], inputs: list[str], more: list[str], then: list[str]
    ) -> None:
        """Tell what there is now."""
        kept, total = self.kept, self.kept.total
        record = {
            "command": "monitor",
            "state": state,
            "rows": total.count,
            "left_out": total.n_invalid,
            **facts,
            "slices": kept.n_slices,
            "rows_of_next_slice": kept.n_open_rows,
            "alarms": kept.n_alarms,
            "last": None if kept.last is None else kept.last.to_alarm(),
        }
        parts = [*inputs, counted(total.count, "row"), counted(kept.n_slices, "slice")]
        left_out = [f"{counted(total.n_invalid, 'row')} left out"] if total.n_invalid else []
        alarms = counted(kept.n_alarms, "alarm") if kept.n_alarms else "no alarms"
        lines = [f"In {state}: {', '.join(parts + left_out)}, {alarms}."]
        lines += [kept.last.sentence] if kept.last is not None else []
        if kept.n_open_rows:
            lines += [f"{counted(kept.n_open_rows, 'row')} wait for the end of their slice."]
        self._out.report(record, lines + more, then=then)


class _FileSession(_Session):
    """Takes rows of files, or of standard input."""

    kept: Monitor

    def __init__(self, kept: Monitor, reading: Reading, look: _Look, out: Output) -> None:
        super().__init__(kept, out)
        self._reading, self._look = reading, look
        self.n_failed = 0
        self._failed: dict[str, FileMark] = {}  # of this run: the next one tries them again
        self._next_table = 0.0

    @one_blas_thread
    def read_files(self, poll: float | None) -> None:
        """Read files as they come, until asked to stop; only one look without ``poll``."""
        while True:
            self._read_new(is_last=poll is None)
            self.kept.close_if_over(time.time() - self._look.settle - (poll or 0.0))
            self.catch_up()
            self._write_table_sometimes()
            if poll is None or self._look.stop.is_asked:
                return
            self._look.stop.wait(poll)

    def _read_new(self, is_last: bool) -> None:
        waiting = [each for each in self._look.files() if self._is_new(*each)]
        for number, (path, mark) in enumerate(waiting):
            self.waiting_since = waiting[number][1].time
            if self._look.stop.is_asked:
                return
            if self._look.is_settled(mark):
                self._read_file(path, mark, is_last)
                self.catch_up()
                self._write_table_sometimes()
        left = [mark.time for path, mark in waiting if not self._is_known(path, mark)]
        self.waiting_since = min(left, default=None)

    def _is_known(self, path: Path, mark: FileMark) -> bool:
        return mark in (self.kept.marks.get(str(path)), self._failed.get(str(path)))

    def _is_new(self, path: Path, mark: FileMark) -> bool:
        """Whether to read a file; one that changed after it was read is told, and left."""
        if self._is_known(path, mark):
            return False
        if str(path) not in self.kept.marks:
            return True
        self.kept.enter_change(str(path), mark)
        note(
            f"Warning: {path} changed after it was read. Its rows count as they were then, and "
            "what is new in it is not read. Write new rows to new files."
        )
        return False

    def _read_file(self, path: Path, mark: FileMark, is_last: bool) -> None:
        from sketchshift.live.monitor import FileMark

        try:
            source = self._reading.open(path)
            draft = self.kept.sum_file(source, _until_stopped(source, self._look.stop), mark.time)
        except (_StoppedError, FileNotFoundError):
            return
        except (DataError, OSError) as error:
            self.n_failed += 1
            if _if_there(partial(FileMark.of, path)) == mark:
                self._failed[str(path)] = mark
                if self.kept.failed.get(str(path)) != mark:
                    self.kept.enter_failure(str(path), mark, sentence(error))
            note(f"Warning: {path} is left out: {sentence(error)}")
            return
        if _if_there(partial(FileMark.of, path)) == mark:
            self.kept.enter_file(str(path), mark, draft)
        elif is_last:
            self.n_failed += 1
            note(f"Warning: {path} changed while it was read, and is left for the next run.")

    @one_blas_thread
    def read_stream(self, pipe: _Pipe, stream: str | None) -> None:
        """Take rows of standard input, until it ends or we are asked to stop."""
        n_in = self.kept.n_stream_rows
        if pipe.is_empty:
            return
        if n_in and stream is None:
            msg = (
                f"{counted(n_in, 'row')} of standard input are in already. Say --stream replayed "
                "if it begins again with these rows, or --stream continued if it goes on behind "
                "them."
            )
            raise DataError(msg)
        source = pipe.open()
        blocks: Iterable[Block] = source
        if n_in and stream == "replayed":
            blocks = _skip_rows(source, n_in)
        for _ in self.kept.take_stream(source, blocks):
            self.catch_up()
            self._write_table_sometimes()

    def _write_table_sometimes(self) -> None:
        """Write the table of slices, as often as it costs little."""
        start = time.monotonic()
        if start >= self._next_table:
            self.kept.write_table()
            end = time.monotonic()
            self._next_table = end + max(5.0, (end - start) / TABLE_SHARE)

    def finish(self, state: str) -> None:
        """Leave everything in order, and tell what there is now."""
        kept = self.kept
        self.catch_up()
        kept.write_table()
        facts = {
            "files": kept.n_files,
            "files_failed": kept.n_failed,
            "files_changed": kept.n_changed,
            "stream_rows": kept.n_stream_rows,
        }
        files = [counted(kept.n_files, "file")] if kept.n_files else []
        self._report(state, facts, files, [], ["watch", f"{state}/slices.parquet", "--by", "slice"])


def _until_stopped(source: Source, stop: _Stop) -> Iterator[Block]:
    for block in source:
        if stop.is_asked:
            raise _StoppedError
        yield block


def _skip_rows(blocks: Iterable[Block], n_rows: int) -> Iterator[Block]:
    """The blocks behind the first rows."""
    for block in blocks:
        n = min(n_rows, len(block.values))
        n_rows -= n
        if n < len(block.values):
            yield replace(block, values=block.values[n:], first_row=block.first_row + n)


# Data that changes: rows come, and rows go.


class _Follower:
    """Brings the cube of a state up to the newest rows of what is followed."""

    def __init__(
        self, ctx: click.Context, folder: Path, spec: SketchSpec | None, stop: _Stop
    ) -> None:
        from sketchshift.live.monitor import CUBE

        given = ctx.params
        self._planning = turnkey_arguments(ctx) | {"standardize": given["standardize"]}
        self._folder, self._path, self._spec = folder, folder / CUBE, spec
        (self._source,) = given["inputs"]
        self._reading = {"columns": given["columns"], "on_invalid": given["on_invalid"]}
        self._options = {**self._reading, "by": given["by"], "n_threads": given["threads"]}
        self.stop, self.n_failed, self._told = stop, 0, ""

    def wait_for_first(self, poll: float | None) -> Cube | None:
        """The cube, once there are rows; None if asked to stop before. Once, without ``poll``."""
        while (cube := self.bring_up(poll)) is None and poll is not None and not self.stop.is_asked:
            self.stop.wait(poll)
        return cube

    def bring_up(self, poll: float | None) -> Cube | None:
        """Follow once; None if that failed, which is told, or if asked to stop.

        Without ``poll`` there is no other time, and an error is one.
        """
        from sketchshift.live.following import follow

        if self.stop.is_asked:
            return None
        try:
            spec, looked = self._known_plan(), self._look_up
            cube = follow(self._source, self._path, spec=spec, progress=looked, **self._options)
        except _StoppedError:
            return None
        except (DataError, OSError) as error:
            if poll is None:
                raise
            self.n_failed += 1
            if sentence(error) != self._told:  # once, as long as it stays the same
                note(f"Warning: nothing is read of {self._source}: {sentence(error)}")
            self._told = sentence(error)
            return None
        self._told = ""
        return cube

    def _known_plan(self) -> SketchSpec:
        """The plan of the state; made of the first rows that come, and kept."""
        from sketchshift.live.changes import open_changes
        from sketchshift.live.following import plan_changes

        if self._spec is None:
            source, reading = open_changes(self._source), Reading(**self._reading)
            planning = Planning(**self._planning)
            self._spec = plan_changes(source, reading, planning, self._options["by"])
            _keep_plan(self._folder, self._spec)
        return self._spec

    def _look_up(self, *_: object) -> None:
        """Called as rows are read: none of what is under way counts, and it is read again."""
        if self.stop.is_asked:
            raise _StoppedError


class _FollowSession(_Session):
    """Takes slices of a cube that is kept up with data that changes."""

    kept: CubeMonitor

    def __init__(self, kept: CubeMonitor, out: Output, follower: _Follower) -> None:
        super().__init__(kept, out)
        self._follower = follower

    @one_blas_thread
    def go_on(self, poll: float | None) -> None:
        """Compare what is complete and look for more, until asked to stop."""
        stop = self._follower.stop
        while True:
            self.catch_up()
            if poll is None or stop.is_asked:
                return
            stop.wait(poll)
            asked = time.time()
            is_read = self._follower.bring_up(poll) is not None
            self.waiting_since = None if is_read else self.waiting_since or asked

    def finish(self, state: str) -> None:
        """Tell what there is now."""
        kept, more, then = self.kept, [], ["watch", f"{state}/slices", "--by", self.kept.by]
        facts = {
            "by": kept.by,
            "positions": kept.cube.positions,
            "rows_without_slice": kept.n_timeless,
        }
        if kept.n_timeless:
            more += [f"{counted(kept.n_timeless, 'row')} have no {kept.by}, and are in no slice."]
            then += ["--where", f'"{kept.by}" IS NOT NULL']
        self._report(state, facts, [], more, then if kept.n_slices or kept.n_open_rows else [])


# Standard input.


class _Pipe:
    """Rows of standard input, as they come."""

    def __init__(self, rows: RowPipe, reading: Reading) -> None:
        self._rows, self._reading = rows, reading
        self._source: Source | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it ends before its first byte, or was to be stopped before that came."""
        return self._source is None and self._rows.is_empty

    def plan(self, planning: Planning, on_invalid: str) -> SketchSpec:
        """Plan on the first rows; they are still delivered."""
        from sketchshift.sketch.plan import plan_source

        spec, self._source = plan_source(self.open(), planning, on_invalid)
        return spec

    def open(self) -> Source:
        """All rows, once."""
        if self._source is None:
            self._source = self._reading.open(self._rows.tables())
        return self._source


def _open_pipe(columns: Sequence[str] | None, spec: SketchSpec | None, stop: _Stop) -> _Pipe:
    from sketchshift.live.messages import RowPipe

    names = columns if columns is not None or spec is None else spec.columns
    rows = RowPipe(sys.stdin.fileno(), names, lambda: stop.is_asked)
    return _Pipe(rows, Reading(spec, columns))


# Metrics, in the form that Prometheus reads, by its own library.

PREFIX = "sketchshift_monitor_"

METRICS: dict[str, tuple[str, str, Callable[[_Session], float | None]]] = {
    "rows": ("counter", "Rows read, those left out not counted.", lambda s: s.kept.total.count),
    "invalid_rows": ("counter", "Rows left out as invalid.", lambda s: s.kept.total.n_invalid),
    "files": ("counter", "Files read.", lambda s: s.kept.n_files),
    "files_changed": ("counter", "Files changed after reading.", lambda s: s.kept.n_changed),
    "slices": ("counter", "Complete slices.", lambda s: s.kept.n_slices),
    "alarms": ("counter", "Alarms: slices since which drift is seen.", lambda s: s.kept.n_alarms),
    "files_failed": (
        "gauge",
        "Files that cannot be read as they are.",
        lambda s: s.kept.n_failed,
    ),
    "drifted": ("gauge", "1 if the last slice raised an alarm.", lambda s: _last(s, "drifted")),
    "distance": ("gauge", "Distance of the strongest window.", lambda s: _last(s, "distance")),
    "threshold": ("gauge", "Threshold of that window.", lambda s: _last(s, "threshold")),
    "p_value": ("gauge", "P-value of all windows together.", lambda s: _last(s, "p_value")),
    "behind_seconds": (
        "gauge",
        "Age of the oldest file that waits to be read, or for how long data could not be followed.",
        lambda s: 0.0 if s.waiting_since is None else max(0.0, time.time() - s.waiting_since),
    ),
    "last_slice_timestamp_seconds": (
        "gauge",
        "When the newest complete slice ended.",
        lambda s: s.kept.last_time,
    ),
    "since_timestamp_seconds": (
        "gauge",
        "When the data began to differ, as the last alarm says.",
        lambda s: s.kept.since_time,
    ),
}
"""Kind, meaning and value of each metric; one without a value yet is not served."""


def _last(session: _Session, name: str) -> float | None:
    value = getattr(session.kept.last, name, None)
    return None if value is None else float(value)


class _Collector:
    """The metrics as they are when somebody asks."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    def collect(self) -> Iterator[Any]:
        """One family for each metric that has a value."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        families = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}
        for name, (kind, meaning, value_of) in METRICS.items():
            value, falls = value_of(self._session), name in self._session.kept.falling
            if value is not None:
                yield families["gauge" if falls else kind](PREFIX + name, meaning, value=value)


def _serve(session: _Session, port: int, address: str) -> Any:
    """The server of the metrics, in a thread of its own."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as cause:
        msg = 'metrics need prometheus_client. Run: pip install "sketchshift[monitor]"'
        raise MissingDependencyError(msg) from cause
    registry = CollectorRegistry()
    registry.register(_Collector(session))
    server, _ = start_http_server(port, address, registry)
    return server
