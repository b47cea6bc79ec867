"""``sketchshift follow``: a state kept up with data that changes, alarms, and metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sketchshift._paths import shown
from sketchshift._text import counted, rows_in_words
from sketchshift.cli.command import command, sentence
from sketchshift.cli.inputs import load_raw, read_spec
from sketchshift.cli.options import KEYS, FiniteRange, columns_option, list_typed
from sketchshift.cli.output import Output, note, show_progress
from sketchshift.errors import DataError, MissingDependencyError
from sketchshift.sketch.file import is_cube

if TYPE_CHECKING:
    from sketchshift.live.cube import Cube
    from sketchshift.live.monitor import Monitor

__all__ = ["METRICS", "PREFIX", "follow"]


@command
@click.argument("source")
@click.argument("state")
@click.option(
    "-k",
    "--n-clusters",
    type=click.IntRange(min=1),
    help="For a new STATE: plan on the first rows, for k clusters or fewer. The same again later.",
)
@click.option("--plan", metavar="PATH", help="For a new STATE: plan by `sketchshift plan`.")
@click.option(
    "--by",
    type=KEYS,
    metavar="NAMES",
    help="For a new STATE: a slice for each value of these columns; also day(time), month(time).",
)
@columns_option
@click.option(
    "--where",
    metavar="CONDITION",
    help="For a new STATE: rows that count, as in \"shop = 'a'\".",
)
@click.option(
    "--on-invalid",
    type=click.Choice(["raise", "skip"]),
    help="For a new STATE: leave rows with missing values out, or refuse them. Default: raise.",
)
@click.option(
    "--every",
    type=FiniteRange(min=0.01, max=1e7),
    metavar="SECONDS",
    help="Look again so many seconds after each look, until Ctrl-C. Default: look once.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Compare each complete slice with the slices before it, and report alarms. STATE has "
    "slices by time: --by day.",
)
@click.option(
    "--reference",
    metavar="PATH",
    help="With --watch: compare with this sketch instead. A new STATE takes its plan.",
)
@click.option(
    "--false-alarm",
    type=FiniteRange(1e-12, 0.5),
    default=0.001,
    show_default=True,
    help="With --watch: the rate of alarms without drift, for each slice.",
)
@click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    help="With --watch and --every: serve metrics for Prometheus. Default host: 127.0.0.1.",
)
@click.pass_context
def follow(
    ctx: click.Context,
    /,
    source: str,
    state: str,
    n_clusters: int | None,
    plan: str | None,
    by: tuple[str, ...] | None,
    columns: tuple[str, ...] | None,
    where: str | None,
    on_invalid: str | None,
    every: float | None,
    watch: bool,
    reference: str | None,
    false_alarm: float,
    metrics: str | None,
    out: Output,
) -> None:
    """Bring STATE up to the newest rows of SOURCE, which changes.

    SOURCE is a folder of data files ({formats}), here or in a store (s3://bucket/folder), or an
    address of a kind that is known, such as delta:PATH. Rows that came are added, rows that went
    are subtracted, and only these are read. STATE is a folder, made if it is not there: a sketch,
    or with --by a cube of slices, that `cluster`, `report`, `merge` and `inspect` take like a
    table. Sums and position are one commit. So after a crash the same command goes on, two of them
    may run at once, and no row is lost or counted twice.

    With --watch, a slice is compared when a later slice has rows: the last 1, 2, 4, 8, ... slices
    with those before them. Alarms are printed, and are lines of JSON in STATE/alarms.jsonl.

    Examples
    --------
      sketchshift follow incoming state --columns x,y -k 3
      sketchshift follow incoming cube --by day --plan plan.json --watch --json

    With --every 60 it looks once a minute, and --metrics 9105 serves Prometheus.

    Then: `sketchshift cluster state -k 3`.
    """
    others = list_typed(ctx, ["reference", "false_alarm", "metrics"])
    if others and not watch:
        raise click.UsageError(f"give --watch with {', '.join(others)}.")
    if metrics is not None and every is None:
        raise click.UsageError("give --every with --metrics: metrics of one look have no readers.")
    plans = list_typed(ctx, ["n_clusters", "plan", "reference"])
    if len(plans) > 1:
        raise click.UsageError(f"give one of {', '.join(plans)}: each of them brings a plan.")
    if not is_cube(state) and not plans:
        msg = f"{state!r} is new: give -k, the number of clusters, or --plan plan.json."
        raise click.UsageError(msg)
    if not is_cube(state) and watch and by is None:
        raise click.UsageError(f"{state!r} is new: say by which column slices follow: --by day.")
    options: dict[str, Any] = {"by": by, "columns": columns, "where": where}
    options |= {"on_invalid": on_invalid, "n_clusters": n_clusters}
    known = None if reference is None else load_raw(Path(reference))
    if plan is not None:
        options["spec"] = read_spec(plan)
    elif known is not None and not is_cube(state):
        options["spec"] = known.spec
    watching = {"reference": known, "false_alarm": false_alarm} if watch else None
    run = _Run(source, state, options, watching, out)
    with nullcontext() if metrics is None else _serve(run, metrics):
        run.look()
        while every is not None:
            time.sleep(every)
            run.look_again()


class _Run:
    """One run: rows go into the state; reports, alarms and metrics come out."""

    def __init__(
        self,
        source: str,
        state: str,
        options: dict[str, Any],
        watching: dict[str, Any] | None,
        out: Output,
    ) -> None:
        self._source, self._state, self._options = source, state, options
        self._watching, self._out = watching, out
        self._warned = ""
        self.monitor: Monitor | None = None
        self.waiting_since: float | None = None

    def look(self, *, is_first: bool = True) -> None:
        """Follow once; report the state, unless nothing has changed since the look before."""
        from sketchshift.live.cube import Cube
        from sketchshift.live.following import follow as follow_once

        before = Cube.open(self._state).version if is_cube(self._state) else 0
        with show_progress("rows", "Looking for changes", then="Reading rows") as progress:
            cube = follow_once(self._source, self._state, **self._options, progress=progress)
        n_commits = cube.version - before
        if self._watching is not None:
            self._watch(cube, self._watching)
        if n_commits or is_first:
            record, lines = _describe(self._source, self._state, cube, n_commits)
            if self.monitor is not None:
                more, sentences = _describe_watch(self.monitor)
                record, lines = record | more, lines + sentences
            self._out.report(record, lines, then=["inspect", self._state])

    def look_again(self) -> None:
        """Look once more; a source that fails is reported once a reason, and tried again later."""
        asked = time.time()
        try:
            self.look(is_first=False)
        except (DataError, OSError) as error:
            self.waiting_since = self.waiting_since or asked
            if sentence(error) != self._warned:
                note(f"Warning: this look at {self._source} failed: {sentence(error)}")
            self._warned = sentence(error)
        else:
            self.waiting_since, self._warned = None, ""

    def _watch(self, cube: Cube, watching: dict[str, Any]) -> None:
        from sketchshift.live.monitor import Monitor

        if self.monitor is None:
            self.monitor = Monitor(cube, **watching)
        for found in self.monitor.evaluate():
            if found.drifted:
                self._out.report(found.to_alarm(), [f"Alarm: {found.sentence}"])


def _describe(
    source: str, state: str, cube: Cube, n_commits: int
) -> tuple[dict[str, Any], list[str]]:
    whole = cube.merge()
    n_bytes = sum(file.stat().st_size for file in Path(state).rglob("*") if file.is_file())
    record = {
        "command": "follow",
        "source": shown(source),
        "state": state,
        "version": cube.version,
        "commits": n_commits,
        "positions": cube.positions,
        "by": list(cube.keys),
        "rows": whole.count,
        "left_out": whole.n_invalid,
        "bytes": n_bytes,
    }
    lines = [f"{state}: {rows_in_words(whole)}, {counted(n_commits, 'new commit')}."]
    if cube.by:
        n_slices = len(cube.summary()[1])
        record["slices"] = n_slices
        lines += [f"It has {counted(n_slices, 'slice')} by {', '.join(cube.keys)}."]
    return record, lines


def _describe_watch(monitor: Monitor) -> tuple[dict[str, Any], list[str]]:
    record = {
        "complete_slices": monitor.n_slices,
        "rows_of_next_slice": monitor.n_open_rows,
        "rows_without_slice": monitor.n_keyless,
        "alarms": monitor.n_alarms,
        "last": None if monitor.last is None else monitor.last.to_alarm(),
    }
    alarms = counted(monitor.n_alarms, "alarm") if monitor.n_alarms else "no alarms"
    lines = [f"{counted(monitor.n_slices, 'complete slice')} by {monitor.by}, {alarms}."]
    lines += [] if monitor.last is None else [monitor.last.sentence]
    if monitor.n_open_rows:
        lines += [f"{counted(monitor.n_open_rows, 'row')} wait for the end of their slice."]
    if monitor.n_keyless:
        lines += [f"{counted(monitor.n_keyless, 'row')} have no {monitor.by}, and are in no slice."]
    return record, lines


# Metrics, in the form that Prometheus reads, by its own library.

PREFIX = "sketchshift_follow_"

METRICS: dict[str, tuple[str, str, Callable[[_Run, Monitor], float | None]]] = {
    "rows": ("gauge", "Rows in the state.", lambda _, m: m.total.count),
    "invalid_rows": ("gauge", "Rows left out as invalid.", lambda _, m: m.total.n_invalid),
    "slices": ("gauge", "Complete slices.", lambda _, m: m.n_slices),
    "alarms": ("counter", "Alarms: slices since which drift is seen.", lambda _, m: m.n_alarms),
    "drifted": ("gauge", "1 if the last slice raised an alarm.", lambda _, m: _last(m, "drifted")),
    "distance": ("gauge", "Distance of the strongest window.", lambda _, m: _last(m, "distance")),
    "threshold": ("gauge", "Threshold of that window.", lambda _, m: _last(m, "threshold")),
    "p_value": ("gauge", "P-value of all windows together.", lambda _, m: _last(m, "p_value")),
    "behind_seconds": (
        "gauge",
        "For how long the source could not be read.",
        lambda run, _: 0.0 if run.waiting_since is None else time.time() - run.waiting_since,
    ),
    "since_timestamp_seconds": (
        "gauge",
        "When the data began to differ, as the last alarm says.",
        lambda _, m: m.since_time,
    ),
}
"""Kind, meaning and value of each metric; one without a value yet is not served."""


def _last(monitor: Monitor, name: str) -> float | None:
    value = getattr(monitor.last, name, None)
    return None if value is None else float(value)


class _Collector:
    """The metrics as they are when Prometheus asks."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    def collect(self) -> Iterator[Any]:
        """Yield one family for each metric that has a value."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        families = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}
        monitor = self._run.monitor
        if monitor is None:
            return
        for name, (kind, meaning, value_of) in METRICS.items():
            value = value_of(self._run, monitor)
            if value is not None:
                yield families[kind](PREFIX + name, meaning, value=value)


@contextmanager
def _serve(run: _Run, address: str) -> Iterator[None]:
    """Serve the metrics in a thread of their own while the body runs."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as cause:
        msg = 'metrics need prometheus_client. Run: pip install "sketchshift[prometheus]"'
        raise MissingDependencyError(msg) from cause
    host, _, port = address.rpartition(":")
    if not (port.isdecimal() and int(port) < 2**16):
        msg = f"--metrics takes a port, or a host and a port (0.0.0.0:9105), and not {address!r}."
        raise click.UsageError(msg)
    host = host.strip("[]") or "127.0.0.1"
    registry = CollectorRegistry()
    registry.register(_Collector(run))
    server, _ = start_http_server(int(port), host, registry)
    note(f"Metrics at http://{host}:{server.server_port}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
