"""``sketchshift monitor``: new files or rows as they come, alarms, and metrics for Prometheus.

Looks for files, opens standard input, and shows what ``drift.monitor`` remembers and finds.
"""

from __future__ import annotations

import csv
import io
import os
import select
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

from sketchshift._places import is_address
from sketchshift._text import counted
from sketchshift._threads import one_blas_thread
from sketchshift._writing import write_atomically
from sketchshift.cli.command import command, sentence
from sketchshift.cli.inputs import load_raw, read_spec
from sketchshift.cli.options import columns_option, turnkey_arguments, turnkey_options
from sketchshift.cli.output import Output, note
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.features import SketchSpec
from sketchshift.sketch import Sketch
from sketchshift.sketch import plan as plan_on
from sketchshift.sketch.reading import Planning, Reading

if TYPE_CHECKING:
    from sketchshift.data import Block, Source
    from sketchshift.drift.monitor import Evaluation, FileMark, Monitor

__all__ = ["METRICS", "monitor"]

T = TypeVar("T")
PLAN = "plan.json"
STANDARD_INPUT = "-"
GLANCE = 0.1  # seconds between two looks at whether to stop
CHUNK_BYTES = 2**20  # of text that is parsed at once, where so much has come
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
    help="Seconds between two looks for new files.",
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
    Arrow. Rows are kept in slices. After each slice, the last 1, 2, 4, 8, ... slices are compared
    with those before them. Alarms are lines of JSON in FOLDER/alarms.jsonl, and are told here; with
    --json too, before the object at the end. Whatever stops the program, the same command goes on:
    no row is lost and none counts twice.

    Examples
    --------
      sketchshift monitor 'part-*.parquet' --state watched --plan plan.json --once
      sketchshift monitor events.parquet --columns x,y -k 3 --state watched --once --json

    Without --once it goes on until it is stopped; --metrics-port 9105 serves Prometheus.

    Then: `sketchshift watch watched/slices.parquet --by slice`.
    """
    from sketchshift.drift.monitor import Monitor, Slicing

    if slice_rows is not None and slice_seconds is not None:
        raise click.UsageError("give --slice-rows or --slice-seconds, not both.")
    slicing = Slicing(slice_rows, slice_seconds)
    is_stream = STANDARD_INPUT in inputs
    _check_inputs(inputs, slicing != Slicing(), stream)
    folder = _make_folder(state)
    if any(Path(given).is_dir() and folder.samefile(given) for given in inputs):
        msg = f"--state {state} is the folder that is watched. Give it a folder of its own."
        raise click.UsageError(msg)
    stop = _Stop()
    with _stopped_by_signals(stop):
        look = _Look(inputs, folder, stop, 0.0 if once else settle)
        kept = None if reference is None else load_raw(Path(reference))
        spec = _known_spec(ctx, folder, plan, kept)
        pipe = _open_pipe(columns, spec, stop) if is_stream else None
        if spec is None:
            spec = _make_plan(ctx, folder, pipe, look, once, poll)
        if spec is None:
            ctx.exit(0)
        options: dict[str, Any] = {"on_invalid": on_invalid, "n_threads": threads}
        options |= {"false_alarm": false_alarm, "reference": kept}
        with Monitor(folder, spec, slicing, **options) as opened:
            reading = Reading(spec, columns, on_invalid=on_invalid)
            session = _Session(opened, reading, look, out)
            with session.served(metrics_port, metrics_address):
                session.catch_up()
                if pipe is None:
                    session.read_files(None if once else poll)
                else:
                    session.read_stream(pipe, stream)
                session.finish(state)
    ctx.exit(1 if once and session.n_failed else 0)


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
            msg = (
                "monitor watches files of this machine. Sketch a store's with `sketchshift sketch`."
            )
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
        from sketchshift.drift.monitor import FileMark

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
    """One run: files or rows go in, alarms and metrics come out."""

    def __init__(self, kept: Monitor, reading: Reading, look: _Look, out: Output) -> None:
        self.kept, self._reading, self._look, self._out = kept, reading, look, out
        self.n_failed = 0
        self._failed: dict[str, FileMark] = {}  # of this run: the next one tries them again
        self.waiting_since: float | None = None
        self._next_table = 0.0

    def catch_up(self) -> None:
        """Evaluate what is complete, and tell the alarms."""
        for found in self.kept.evaluate():
            self._tell(found)

    def _tell(self, found: Evaluation) -> None:
        if found.drifted:
            self._out.report(found.to_alarm(), [f"Alarm: {found.sentence}"])
            sys.stdout.flush()

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
        from sketchshift.drift.monitor import FileMark

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
        total = kept.total
        record = {
            "command": "monitor",
            "state": state,
            "rows": total.count,
            "left_out": total.n_invalid,
            "files": kept.n_files,
            "files_failed": len(kept.failed),
            "files_changed": kept.n_changed,
            "stream_rows": kept.n_stream_rows,
            "slices": kept.n_slices,
            "rows_of_next_slice": kept.n_open_rows,
            "alarms": kept.n_alarms,
            "last": None if kept.last is None else kept.last.to_alarm(),
        }
        parts = [counted(kept.n_files, "file")] if kept.n_files else []
        parts += [counted(total.count, "row"), counted(kept.n_slices, "slice")]
        left_out = [f"{counted(total.n_invalid, 'row')} left out"] if total.n_invalid else []
        alarms = counted(kept.n_alarms, "alarm") if kept.n_alarms else "no alarms"
        lines = [f"In {state}: {', '.join(parts + left_out)}, {alarms}."]
        lines += [kept.last.sentence] if kept.last is not None else []
        if kept.n_open_rows:
            lines += [f"{counted(kept.n_open_rows, 'row')} wait for the end of their slice."]
        self._out.report(record, lines, then=["watch", f"{state}/slices.parquet", "--by", "slice"])

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


# Standard input: a stream of Arrow, lines of JSON, or CSV, as its first byte says.


class _RawPipe(io.RawIOBase):
    """Standard input; it seems to end when we are asked to stop."""

    def __init__(self, descriptor: int, stop: _Stop) -> None:
        self._descriptor, self.stop = descriptor, stop

    def readable(self) -> bool:
        return True

    def has_more(self, seconds: float) -> bool:
        """Whether a read would not wait; Windows cannot tell."""
        return os.name != "posix" or bool(select.select([self._descriptor], [], [], seconds)[0])

    def readinto(self, buffer: Any) -> int:
        while not self.has_more(GLANCE):
            if self.stop.is_asked:
                return 0
        data = b"" if self.stop.is_asked else os.read(self._descriptor, len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Pipe:
    """Rows of standard input, as they come."""

    def __init__(self, raw: _RawPipe, columns: Sequence[str] | None, reading: Reading) -> None:
        self._raw, self._columns, self._reading = raw, columns, reading
        self._buffered = io.BufferedReader(raw, CHUNK_BYTES)
        self._source: Source | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it ends before its first byte, or was to be stopped before that came."""
        return self._source is None and not self._buffered.peek(1)

    def plan(self, planning: Planning, on_invalid: str) -> SketchSpec:
        """Plan on the first rows; they are still delivered."""
        from sketchshift.sketch.plan import plan_source

        spec, self._source = plan_source(self.open(), planning, on_invalid)
        return spec

    def open(self) -> Source:
        """All rows, once."""
        if self._source is None:
            self._source = self._reading.open(self._tables())
        return self._source

    def _tables(self) -> Iterator[Any]:
        import pyarrow as pa

        first = self._buffered.peek(1)[:1]
        try:
            if first == b"\xff":
                with pa.ipc.open_stream(self._buffered) as reader:
                    yield from reader
            else:
                yield from self._parse_lines(is_json=first == b"{")
        except pa.ArrowException as cause:
            if self._raw.stop.is_asked:  # in the midst of a batch
                return
            msg = f"cannot read standard input: {cause} Choose columns of numbers with --columns."
            raise DataError(msg) from cause

    def _parse_lines(self, is_json: bool) -> Iterator[Any]:
        lines = self._lines()
        if is_json:
            names = self._columns
            for text in lines:
                table = _parse_json(text, names)
                names = names or table.column_names
                yield table
            return
        header = self._buffered.readline()
        names = next(csv.reader([_decode(header)]), [])
        wanted = self._columns or names
        missing = [name for name in wanted if name not in names]
        if missing:
            msg = f"standard input has no column {missing[0]!r} in its first line: {names}."
            raise DataError(msg)
        for text in lines:
            yield _parse_csv(text, names, wanted)

    def _lines(self) -> Iterator[bytes]:
        """Whole lines: many, where many have come; few, where the sender pauses."""
        rest = b""
        while data := self._buffered.read1(CHUNK_BYTES):
            rest += data
            if len(rest) < CHUNK_BYTES and self._raw.has_more(0.0):
                continue
            lines, _, rest = rest.rpartition(b"\n")
            if lines.strip():
                yield lines
        if rest.strip() and not self._raw.stop.is_asked:
            yield rest


def _open_pipe(columns: Sequence[str] | None, spec: SketchSpec | None, stop: _Stop) -> _Pipe:
    names = columns if columns is not None or spec is None else spec.columns
    raw = _RawPipe(sys.stdin.fileno(), stop)
    return _Pipe(raw, names, Reading(spec, columns))


def _decode(header: bytes) -> str:
    """The first line of a text."""
    try:
        return header.decode("utf-8-sig")
    except UnicodeDecodeError:
        msg = (
            "standard input is neither CSV, nor JSON lines, nor an Arrow stream. Give files by "
            "their names instead of -."
        )
        raise DataError(msg) from None


def _parse_csv(text: bytes, names: Sequence[str], wanted: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    return pyarrow.csv.read_csv(
        pa.BufferReader(text),
        read_options=pyarrow.csv.ReadOptions(column_names=names, use_threads=False),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=wanted, column_types=dict.fromkeys(wanted, pa.float64())
        ),
    )


def _parse_json(text: bytes, wanted: Sequence[str] | None) -> Any:
    import pyarrow as pa
    import pyarrow.json

    options = None
    if wanted is not None:
        schema = pa.schema([(name, pa.float64()) for name in wanted])
        options = pyarrow.json.ParseOptions(schema, unexpected_field_behavior="ignore")
    return pyarrow.json.read_json(pa.BufferReader(text), parse_options=options)


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
        lambda s: len(s.kept.failed),
    ),
    "drifted": ("gauge", "1 if the last slice raised an alarm.", lambda s: _last(s, "drifted")),
    "distance": ("gauge", "Distance of the strongest window.", lambda s: _last(s, "distance")),
    "threshold": ("gauge", "Threshold of that window.", lambda s: _last(s, "threshold")),
    "p_value": ("gauge", "P-value of all windows together.", lambda s: _last(s, "p_value")),
    "behind_seconds": (
        "gauge",
        "Age of the oldest file that waits to be read; 0 if none does.",
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
            value = value_of(self._session)
            if value is not None:
                yield families[kind](PREFIX + name, meaning, value=value)


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
