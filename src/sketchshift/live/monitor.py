"""Rows as they come, kept in slices, each compared with those before it: across crashes.

Hands an :class:`Evaluation` of each slice. A :class:`Monitor` takes blocks of rows from files or
from a stream; a :class:`CubeMonitor` takes the slices of a cube, which somebody else keeps up with
data that changes. All that is remembered lies in one folder:

    plan.json        what is summed
    journal.jsonl    what was read, with the sums of all rows so far; only ever appended to
    alarms.jsonl     one line an alarm
    slices.parquet   the slices as a table, made of the journal for other commands
    slices           the cube instead, whose journal has no sums

What was read and the sums that it led to are written in one step: a line for each complete slice,
and behind them the line that says where the rows came from, without which they do not count. A line
ends in a digest of itself and of all lines before it. What a crash leaves at the end, half a line
or slices alone, is cut off. The sums are those of all rows so far, so that any slices are the
difference of two lines, and a window needs no more than these.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from base64 import b64decode, b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Self

from sketchshift._text import finite
from sketchshift._threads import one_blas_thread
from sketchshift._writing import append_durably, open_journal
from sketchshift.data import Block, Source
from sketchshift.drift.compare import check_false_alarm
from sketchshift.drift.noise import Noise
from sketchshift.drift.since_when import SinceWhen, compare_windows, learn_noise
from sketchshift.drift.watch import check_order
from sketchshift.errors import DataError, PlanWarning, SketchFormatError
from sketchshift.features import SketchSpec
from sketchshift.live.cube import Cube
from sketchshift.sketch import Sketch, Sketcher, SketchTable
from sketchshift.sketch.table import from_parts

__all__ = ["CUBE", "CubeMonitor", "Evaluation", "FileMark", "Monitor", "Slicing", "is_of_files"]

ALARMS, JOURNAL, TABLE, CUBE = "alarms.jsonl", "journal.jsonl", "slices.parquet", "slices"
VERSION = 1
EVALUATED = "evaluated"
SLICE = "slice"  # lines that count only with the line behind them that is none
SEAL = b', "digest": "'  # what the digest of a line stands behind
BY_TIME = "Begin a new folder with slices by a time or a day."
TOTALS_HELD = 64  # sketches kept in memory, of all that the journal has


@dataclass(frozen=True)
class Slicing:
    """When a slice is complete: after each file, after so many rows, or every so many seconds.

    Attributes
    ----------
    rows : int or None
        Files and streams are cut after exactly so many rows.
    seconds : float or None
        Files belong to the time at which they were last changed, rows of a stream to the time at
        which they came. Slices begin at multiples of so many seconds since 1970.
    """

    rows: int | None = None
    seconds: float | None = None

    def period_of(self, when: float) -> int:
        """Number of the period that a time belongs to."""
        return 0 if self.seconds is None else int(when // self.seconds)

    def end_of(self, when: float) -> float | None:
        """The end of the period that a time belongs to; None without periods."""
        return None if self.seconds is None else (self.period_of(when) + 1) * self.seconds


@dataclass(frozen=True)
class FileMark:
    """What tells one state of a file from another."""

    size: int
    mtime_ns: int

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> FileMark:
        """As the file is now."""
        status = os.stat(path)  # noqa: PTH116  one call for each file and look
        return cls(status.st_size, status.st_mtime_ns)

    @property
    def time(self) -> float:
        """When it was last changed, in seconds since 1970."""
        return self.mtime_ns / 1e9


@dataclass(frozen=True)
class Evaluation:
    """What the windows that end with a slice say.

    Attributes
    ----------
    slice : int, float or str
        Number of the slice, from 0; of a cube, its key.
    time, since : str
        When the slice ended, and when the data began to differ; since is None without drift. Of a
        cube, the keys of these slices.
    drifted : bool
        Whether any window is beyond its threshold.
    since_slice, n_slices : int, float or str, and int; or None
        The first slice, and the number of slices, of the window with the strongest evidence.
    rows, rows_before : int
        In that window, and what it is compared with.
    distance, threshold, p_value : float or None
        Of that window; the p-value is that of all windows together.
    false_alarm : float
        The rate of alarms of one slice without drift.
    sentence : str
        For people.
    next_first : int, float or str
        The first slice that later windows reach back to.
    """

    slice: Any
    time: str
    since: str | None
    drifted: bool
    since_slice: Any
    n_slices: int | None
    rows: int
    rows_before: int
    distance: float | None
    threshold: float | None
    p_value: float | None
    false_alarm: float
    sentence: str
    next_first: Any

    def to_alarm(self) -> dict[str, Any]:
        """The line that is written about an alarm."""
        facts = asdict(self)
        del facts["drifted"], facts["next_first"]
        return facts


@dataclass(frozen=True)
class _Slice:
    """The span of a slice: times of its first and last rows, and how many were read."""

    begun: float
    ended: float
    rows: int

    def grow(self, n_rows: int, when: float) -> _Slice:
        return _Slice(self.begun, max(self.ended, when), self.rows + n_rows)


class Draft:
    """Rows that were summed and are not in the journal yet."""

    def __init__(self, total: Sketch, begun: _Slice | None) -> None:
        self.total, self.open = total, begun
        self.closed: list[tuple[_Slice, Sketch]] = []
        self._n_before = total.count + total.n_invalid

    @property
    def n_rows(self) -> int:
        """Rows that this adds, those left out included."""
        return self.total.count + self.total.n_invalid - self._n_before

    def add(self, part: Sketch, when: float) -> None:
        """Add rows to the slice under way."""
        n = part.count + part.n_invalid
        self.open = _Slice(when, when, n) if self.open is None else self.open.grow(n, when)
        self.total = self.total + part

    def close(self) -> None:
        """End the slice under way."""
        if self.open is not None:
            self.closed.append((self.open, self.total))
            self.open = None

    def slice_lines(self) -> list[dict[str, Any]]:
        """A line for each complete slice, with the sums of all rows up to its end."""
        return [
            {"kind": SLICE, **asdict(span), "total": _text(total)} for span, total in self.closed
        ]

    def to_json(self) -> dict[str, Any]:
        """The slice under way, and the sums of all rows; None where the last slice has them."""
        is_new = self.open is not None or not self.closed
        return {
            "open": None if self.open is None else asdict(self.open),
            "total": _text(self.total) if is_new else None,
        }


class _Judging:
    """What all monitors have: a journal, which one program holds at a time, and what it says."""

    falling: tuple[str, ...] = ()  # counts that may fall
    _journal: _SealedLines

    def __init__(self, folder: Path, false_alarm: float, reference: Sketch | None) -> None:
        self.folder, self._reference = folder, reference
        self.false_alarm = check_false_alarm("monitor", false_alarm)
        self.n_alarms = 0
        self.last: Evaluation | None = None
        self.last_alarm: Evaluation | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the folder."""
        self._journal.close()

    def _go_on(self) -> None:
        """Take the folder, and go on from what is there."""
        self._journal = _SealedLines(self.folder / JOURNAL)
        try:
            self._replay()
            self._alarms = _Alarms(self.folder / ALARMS)
        except BaseException:
            self.close()
            raise

    def _replay(self) -> None:
        """Go through the journal, or begin one."""
        raise NotImplementedError

    def _apply_evaluation(self, found: Evaluation) -> None:
        self.last = found
        self.n_alarms += found.drifted
        self.last_alarm = found if found.drifted else self.last_alarm


class Monitor(_Judging):
    """Slices of rows as they come, in a folder, each compared with those before it.

    Parameters
    ----------
    folder : Path
        Where all of it lies. What is there already is gone on with.
    spec : SketchSpec
        What is summed.
    slicing : Slicing
        When a slice is complete. Like the reference, it cannot change later.
    false_alarm : float
        The rate, without drift, of an alarm at a slice: for all of its windows together.
    reference : Sketch or None
        What slices are compared with; None takes all slices before a window. An alarm begins
        the history anew: with its window, or with a reference behind it.
    on_invalid, n_threads
        As in :func:`sketchshift.sketch`.
    """

    def __init__(
        self,
        folder: Path,
        spec: SketchSpec,
        slicing: Slicing,
        *,
        false_alarm: float = 0.001,
        reference: Sketch | None = None,
        on_invalid: str = "skip",
        n_threads: int | None = None,
    ) -> None:
        super().__init__(folder, false_alarm, reference)
        self.spec, self.slicing = spec, slicing
        self._sketcher = Sketcher(spec, n_threads=n_threads, on_invalid=on_invalid)
        self._empty = self._sketcher.sketch()
        self.marks: dict[str, FileMark] = {}
        self.failed: dict[str, FileMark] = {}
        self.n_files = self.n_changed = self.n_stream_rows = 0
        self._spans: list[_Slice] = []
        self._places: list[int] = []  # where their lines begin
        self._begun: list[str] = []
        self._open: _Slice | None = None
        self._first = self._n_evaluated = 0
        self._read_total = lru_cache(TOTALS_HELD)(self._decode_total)
        self._windows = _Windows("time", self._total_of, self.false_alarm, reference)
        self.total = self._empty
        self._go_on()

    @property
    def n_slices(self) -> int:
        """Complete slices."""
        return len(self._spans)

    @property
    def n_failed(self) -> int:
        """Files that cannot be read as they are."""
        return len(self.failed)

    @property
    def n_open_rows(self) -> int:
        """Rows of the slice that is not complete yet."""
        return 0 if self._open is None else self._open.rows

    @property
    def last_time(self) -> float | None:
        """When the newest complete slice ended."""
        return self._spans[-1].ended if self._spans else None

    @property
    def since_time(self) -> float | None:
        """When the data began to differ, as the last alarm says."""
        alarm = self.last_alarm
        if alarm is None or alarm.since_slice is None:
            return None
        return self._spans[int(alarm.since_slice)].begun

    # What comes in.

    def sum_file(self, source: Source, blocks: Iterable[Block], when: float) -> Draft:
        """Sum the rows of a file; nothing is remembered before :meth:`enter_file`."""
        draft = self._draft()
        if draft.open is not None and self._is_over(draft.open, when):
            draft.close()
        rows = _RowsOf(blocks)
        while not rows.are_over:
            self._add(draft, source, rows, when)
        if self.slicing == Slicing():
            draft.close()
        return draft

    def enter_file(self, path: str, mark: FileMark, draft: Draft) -> None:
        """Remember a file together with its sums."""
        facts = {"path": path, **asdict(mark), "rows": draft.n_rows}
        self._append("file", facts, draft)

    def take_stream(self, source: Source, blocks: Iterable[Block]) -> Iterator[None]:
        """Take rows as they come; yields whenever a slice is complete, and at the end."""
        rows = _RowsOf(blocks)
        while not rows.are_over:
            draft, now = self._draft(), time.time()
            if draft.open is not None and self._is_over(draft.open, now):
                draft.close()
            self._add(draft, source, rows, now, until=self.slicing.end_of(now))
            if self.slicing.seconds is not None and not rows.are_over:
                draft.close()
            if draft.n_rows or draft.closed:
                self._append("stream", {"rows": draft.n_rows}, draft)
            yield

    def close_if_over(self, now: float) -> None:
        """Complete the slice under way, if its time is over."""
        if self._open is not None and self._is_over(self._open, now):
            draft = self._draft()
            draft.close()
            self._append("over", {}, draft)

    def enter_failure(self, path: str, mark: FileMark, reason: str) -> None:
        """Remember a file that could not be read, in this state of it."""
        self._append("failed", {"path": path, **asdict(mark), "reason": reason})

    def enter_change(self, path: str, mark: FileMark) -> None:
        """Remember that a file changed after it was read; its rows stay as they were."""
        self._append("changed", {"path": path, **asdict(mark)})

    def _draft(self) -> Draft:
        return Draft(self.total, self._open)

    def _is_over(self, span: _Slice, now: float) -> bool:
        return self.slicing.period_of(span.begun) < self.slicing.period_of(now)

    def _add(
        self,
        draft: Draft,
        source: Source,
        rows: _RowsOf,
        when: float,
        until: float | None = None,
    ) -> None:
        """Add rows up to the end of the slice, of the time or of all; close a full slice."""
        begun, most = 0 if draft.open is None else draft.open.rows, self.slicing.rows
        left = None if most is None else most - begun
        totals = self._sketcher.total(source, rows.take(left, until))
        part = Sketch(self.spec, self._empty.fingerprint, totals)
        if part.count + part.n_invalid:
            draft.add(part, when)
        if draft.open is not None and draft.open.rows == most:
            draft.close()

    # What the windows say.

    def evaluate(self) -> Iterator[Evaluation]:
        """Compare all complete slices that were not compared yet; alarms are written once."""
        while self._n_evaluated < self.n_slices:
            number = self._n_evaluated
            judged = self._windows.judge(self._first, number, self._begun)
            found = replace(judged, time=_iso(self._spans[number].ended))
            self._alarms.tell(found)
            self._append(EVALUATED, asdict(found))
            yield found

    # What is remembered.

    def table(self) -> SketchTable:
        """All slices, that under way last; the key has their numbers and times."""
        import pyarrow as pa

        under_way = [] if self._open is None else [(self._open, self.total)]
        complete = zip(self._spans, map(self._total_of, range(1, self.n_slices + 1)), strict=True)
        before, spans, sketches = self._empty, [], []
        for span, total in [*complete, *under_way]:
            spans.append(span)
            sketches.append(total - before)
            before = total
        keys = {"slice": pa.array(range(len(spans)), pa.int64())}
        for name in ("begun", "ended"):
            micros = pa.array([round(1e6 * getattr(span, name)) for span in spans], pa.int64())
            keys[name] = micros.cast(pa.timestamp("us", "UTC"))
        return from_parts(pa.table(keys), sketches)

    def write_table(self) -> None:
        """Write all slices as a table, for other commands."""
        self.table().to_parquet(self.folder / TABLE)

    def _total_of(self, n_slices: int) -> Sketch:
        """The sketch of all rows of the first slices."""
        return self._read_total(n_slices) if n_slices else self._empty

    def _decode_total(self, n_slices: int) -> Sketch:
        return _sketch(self._journal.read(self._places[n_slices - 1])["total"])

    def _append(self, kind: str, facts: dict[str, Any], draft: Draft | None = None) -> None:
        """Remember something, with the sums that it led to: all of it or nothing."""
        lines = [] if draft is None else draft.slice_lines()
        lines.append({"kind": kind, **facts, **({} if draft is None else draft.to_json())})
        places = self._journal.append(*lines)
        self._apply(list(zip(places, lines, strict=True)))
        self.total = self.total if draft is None else draft.total

    def _replay(self) -> None:
        settings = {
            **_begin(self._empty.fingerprint, self._reference),
            "slicing": asdict(self.slicing),
        }
        total = known = ""
        lines: list[tuple[int, dict[str, Any]]] = []
        for place, record in self._journal.replay():
            total = record.get("total") or total
            if place == 0:
                _check_settings(self.folder, record, settings)
                continue
            lines.append((place, record))
            if record["kind"] != SLICE:
                self._apply(lines)
                known, lines = total, []
        if not self._journal.length:
            self._journal.append(settings)
        if self._spans or self._open is not None:
            self.total = _sketch(known)

    def _apply(self, lines: list[tuple[int, dict[str, Any]]]) -> None:
        """Bring what is known up to date with lines of the journal that belong together."""
        *slices, (_, record) = lines
        kind = record["kind"]
        for place, line in slices:
            self._spans.append(_Slice(line["begun"], line["ended"], line["rows"]))
            self._places.append(place)
            self._begun.append(_iso(line["begun"]))
        if "open" in record:
            self._open = None if record["open"] is None else _Slice(**record["open"])
        if kind in ("file", "changed", "failed"):
            mark = FileMark(record["size"], record["mtime_ns"])
            (self.failed if kind == "failed" else self.marks)[record["path"]] = mark
        if kind == "file":
            self.failed.pop(record["path"], None)
            self.n_files += 1
        elif kind == "changed":
            self.n_changed += 1
        elif kind == "stream":
            self.n_stream_rows += record["rows"]
        elif kind == EVALUATED:
            found = _read_evaluation(record)
            self._n_evaluated, self._first = found.slice + 1, found.next_first
            self._apply_evaluation(found)


class CubeMonitor(_Judging):
    """Slices of a cube by its first key, each compared with those before it.

    A slice is complete once a later one has rows, and is judged then, once. Rows that come or go
    later count in all windows that are compared from then on.

    Parameters
    ----------
    folder : Path
        Where journal and alarms lie. What is there already is gone on with.
    cube : Cube
        Its first key is the time: dates, times, numbers or text that ascends with time.
    false_alarm, reference
        As in :class:`Monitor`.
    """

    n_files = n_changed = n_failed = last_time = None  # these are facts of files
    falling = ("rows", "invalid_rows", "slices")  # counts that fall where rows go

    def __init__(
        self,
        folder: Path,
        cube: Cube,
        *,
        false_alarm: float = 0.001,
        reference: Sketch | None = None,
    ) -> None:
        if not cube.by:
            raise DataError(f"the cube {cube.path} has no slices to compare. {BY_TIME}")
        super().__init__(folder, false_alarm, reference)
        self.cube, self.by = cube, cube.keys[0]
        self.n_slices = self.n_timeless = self.n_open_rows = 0
        self.total = cube.merge()
        self._version = -1
        self._go_on()

    @property
    def since_time(self) -> float | None:
        """When the data began to differ, as the last alarm says; None if keys are no times."""
        try:
            since = datetime.fromisoformat(str(getattr(self.last_alarm, "since", "")))
        except ValueError:
            return None
        return (since if since.tzinfo else since.replace(tzinfo=UTC)).timestamp()

    def evaluate(self) -> Iterator[Evaluation]:
        """Compare all slices that are complete and newer than the last one that was compared."""
        version = self.cube.version
        if version == self._version:
            return
        self.total = self.cube.merge()
        keys, sums = self._sum_up()
        judge = _Windows(self.by, sums.__getitem__, self.false_alarm, self._reference).judge
        start = 0 if self.last is None else bisect_right(keys, self.last.slice)
        for number in range(start, self.n_slices):
            first = 0 if self.last is None else bisect_left(keys, self.last.next_first)
            first = min(first, number)  # a slice may have come before the one that was to be next
            found = _name_slices(judge(first, number, keys), keys)
            self._alarms.tell(found)
            self._journal.append({"kind": EVALUATED, **asdict(found)})
            self._apply_evaluation(found)
            yield found
        self._version = version

    def _sum_up(self) -> tuple[list[Any], list[Sketch]]:
        """Keys of all slices, and sums of the first n of them for every n."""
        table = self.cube.table(by=self.by)
        check_order(self.by, table.keys.column(0).drop_null())
        slices = [(key, sketch) for key, sketch in table if key is not None]
        keys = [_name_key(key, self.by) for key, _ in slices]
        if any(later <= key for key, later in pairwise(keys)):
            raise DataError(f"slices by {self.by} are in no order of time. {BY_TIME}")
        empty = self.total - self.total
        sums = list(accumulate((sketch for _, sketch in slices), initial=empty))
        self.n_slices = max(0, len(keys) - 1)
        self.n_timeless = self.total.count - sums[-1].count
        self.n_open_rows = sums[-1].count - sums[self.n_slices].count
        return keys, sums

    def _replay(self) -> None:
        settings = {**_begin(self.total.fingerprint, self._reference), "by": self.by}
        for place, record in self._journal.replay():
            if place == 0:
                _check_settings(self.folder, record, settings)
            else:
                self._apply_evaluation(_read_evaluation(record))
        if not self._journal.length:
            self._journal.append(settings)


def _name_key(key: Any, by: str) -> Any:
    """A key as JSON holds it; in this form, too, it ascends with time.

    Times with a zone are in UTC: where clocks are set back, hours of the zone do not ascend.
    """
    if isinstance(key, datetime) and key.tzinfo is not None:
        return key.astimezone(UTC).isoformat()
    if isinstance(key, date):
        return key.isoformat()
    if isinstance(key, int | float | str) and not isinstance(key, bool):
        return key
    raise DataError(f"slices by {by} have keys such as {key!r}, which are no times. {BY_TIME}")


def _name_slices(found: Evaluation, keys: Sequence[Any]) -> Evaluation:
    """The same with keys for the numbers of slices; these change when older slices come or go."""
    since = None if found.since_slice is None else keys[found.since_slice]
    ended, first = keys[found.slice], keys[found.next_first]
    return replace(
        found, slice=ended, time=str(ended), since_slice=since, next_first=first, since=since
    )


# What the windows say.


class _Windows:
    """Compares the windows that end with a slice with what came before them."""

    def __init__(
        self,
        by: str,
        total_of: Callable[[int], Sketch],
        false_alarm: float,
        reference: Sketch | None,
    ) -> None:
        self._by, self._total_of = by, total_of
        self._false_alarm, self._reference = false_alarm, reference
        self._noise: tuple[Any, Noise | None] = (None, None)
        self._has_warned = False

    @one_blas_thread
    def judge(self, first: int, number: int, keys: Sequence[Any]) -> Evaluation:
        """What the windows that end with a slice say; they reach back to the first at most."""
        span = first, number + 1
        with warnings.catch_warnings():
            if self._has_warned:
                warnings.simplefilter("ignore", PlanWarning)
            windows = compare_windows(
                self._total_of,
                span,
                noise=self._noise_of(span),
                false_alarm=self._false_alarm,
                reference=self._reference,
                keys=keys,
                only_strongest=True,
            )
            self._has_warned = True
        found = SinceWhen(self._by, windows, self._false_alarm)
        best = found.strongest
        since = None if best is None or not found.drifted else number + 1 - best.n_slices
        if since is not None:
            first = since if self._reference is None else number + 1
        return Evaluation(
            slice=number,
            time=str(keys[number]),
            since=found.since,
            drifted=found.drifted,
            since_slice=since,
            n_slices=None if best is None else best.n_slices,
            rows=0 if best is None else best.counts[1],
            rows_before=0 if best is None else best.counts[0],
            distance=None if best is None else best.test.distance,
            threshold=None if best is None else best.test.threshold,
            p_value=None if best is None else found.p_value,
            false_alarm=self._false_alarm,
            sentence=found.sentence,
            next_first=first,
        )

    def _noise_of(self, span: tuple[int, int]) -> Noise | None:
        """Learned anew whenever the number of slices has doubled: a fit costs more than windows.

        It depends on the slices alone, and not on when the program was started.
        """
        first, last = span
        doubled = 2 ** ((last - first).bit_length() - 1)
        key = "reference" if self._reference is not None else (first, doubled)
        if self._noise[0] != key:
            population = self._reference
            if population is None:
                population = self._total_of(first + doubled) - self._total_of(first)
            has_rows = population.total_weight > 0.0
            self._noise = key, learn_noise(population) if has_rows else None
        return self._noise[1]


class _Alarms:
    """A line for each alarm, in a file that others read and may move away."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = _last_alarm_in(path)

    def tell(self, found: Evaluation) -> None:
        """Write an alarm, unless a run that was killed has written it."""
        is_alike = type(found.slice) is type(self._last)  # else of a history before this one
        if not found.drifted or (is_alike and found.slice <= self._last):
            return
        with open_journal(self._path) as file:
            line = json.dumps(finite(found.to_alarm()), allow_nan=False).encode()
            append_durably(file, line + b"\n")
        self._last = found.slice


# What is remembered, across crashes.


def _begin(fingerprint: str, reference: Sketch | None) -> dict[str, Any]:
    """The first line of a journal, which all runs in a folder agree in."""
    digest = None if reference is None else _digest(reference.to_bytes())
    return {"kind": "begin", "version": VERSION, "plan": fingerprint, "reference": digest}


def is_of_files(folder: Path) -> bool:
    """Whether the journal in a folder is that of a :class:`Monitor`, which keeps no cube.

    Parameters
    ----------
    folder : Path
        Of a monitor, or of none yet.
    """
    try:
        with (folder / JOURNAL).open("rb") as file:
            return "slicing" in json.loads(file.readline())
    except (FileNotFoundError, ValueError):
        return False


def _read_evaluation(record: dict[str, Any]) -> Evaluation:
    return Evaluation(**{name: value for name, value in record.items() if name != "kind"})


def _check_settings(folder: Path, then: dict[str, Any], now: dict[str, Any]) -> None:
    words = {
        "plan": "plan",
        "slicing": "length of a slice",
        "by": "key of slices",
        "reference": "reference",
    }
    if then.get("kind") != "begin" or then.get("version") != VERSION:
        msg = f"{folder / JOURNAL} is no journal of a monitor. Name another folder."
        raise SketchFormatError(msg)
    for name, what in words.items():
        if then.get(name) != now.get(name):
            msg = (
                f"the monitor in {folder} was begun with another {what}: {then.get(name)} then, "
                f"{now.get(name)} now. Give what was given then, or name another folder."
            )
            raise DataError(msg)


class _RowsOf:
    """Blocks of which so many rows can be taken at a time."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        self._blocks = iter(blocks)
        self._rest: Block | None = None
        self.are_over = False

    def take(self, n_rows: int | None, until: float | None = None) -> Iterator[Block]:
        """Blocks of so many rows in all, or of all, that came before some time."""
        while n_rows is None or n_rows > 0:
            block = next(self._blocks, None) if self._rest is None else self._rest
            self._rest = None
            if block is None:
                self.are_over = True
                return
            if until is not None and time.time() >= until:
                self._rest = block
                return
            if n_rows is not None and len(block.values) > n_rows:
                self._rest = replace(
                    block, values=block.values[n_rows:], first_row=block.first_row + n_rows
                )
                block = replace(block, values=block.values[:n_rows])
            n_rows = None if n_rows is None else n_rows - len(block.values)
            yield block


class _SealedLines:
    """A file of JSON objects, one a line, each with a digest of it and of those before it."""

    def __init__(self, path: Path) -> None:
        self._path, self._digest, self.length = path, "", 0
        try:
            self._file = open_journal(path)
        except BlockingIOError as error:
            msg = f"another monitor is running in {path.parent}. Stop it, or name another folder."
            raise DataError(msg) from error

    def close(self) -> None:
        self._file.close()

    def replay(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """All lines, and where they begin; what a crash left at the end is cut off.

        That is half a line, or slices without the line that says where their rows came from.
        """
        self._file.seek(0)
        place, digest = 0, ""
        while line := self._file.readline():
            body, sealed = _unseal(line, digest)
            if sealed is None:
                if self._file.readline():
                    raise self._damage(place)
                break
            record = json.loads(body)
            yield place, record
            place, digest = place + len(line), sealed
            if record["kind"] != SLICE:
                self.length, self._digest = place, digest
        self._file.seek(self.length)
        self._file.truncate()

    def append(self, *records: dict[str, Any]) -> list[int]:
        """Where the new lines begin; they are on the disk."""
        lines = []
        for record in records:
            body = json.dumps(finite(record), allow_nan=False).encode()
            self._digest = _digest(self._digest.encode(), body)
            lines.append(body[:-1] + SEAL + self._digest.encode() + b'"}\n')
        place = append_durably(self._file, b"".join(lines))
        ends = list(accumulate(map(len, lines), initial=place))
        self.length = ends[-1]
        return ends[:-1]

    def read(self, place: int) -> Any:
        """The line that begins there."""
        self._file.seek(place)
        return json.loads(self._file.readline())

    def _damage(self, place: int) -> SketchFormatError:
        msg = (
            f"{self._path}: the line at byte {place:,} is not as it was written. Restore "
            "the file from a copy, or name another folder to begin anew."
        )
        return SketchFormatError(msg)


def _unseal(line: bytes, before: str) -> tuple[bytes, str | None]:
    """What a line says, and its digest; None if that is not the one it should have."""
    text, _, end = line.rpartition(SEAL)
    body = text + b"}"
    digest = _digest(before.encode(), body)
    return body, digest if end == digest.encode() + b'"}\n' else None


def _digest(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _last_alarm_in(path: Path) -> Any:
    """The slice of the last alarm that was written, None of none; half a line is cut off."""
    if not path.exists():
        return None
    with open_journal(path) as file:
        whole = file.read().rpartition(b"\n")[0]
        end = len(whole) + bool(whole)
        if file.tell() > end:
            file.seek(end)
            file.truncate()
    last = whole.rpartition(b"\n")[2]
    try:
        return json.loads(last)["slice"] if last else None
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{path}: its last line is no alarm. Move the file away, and a new one is begun."
        raise DataError(msg) from error


def _text(sketch: Sketch) -> str:
    return b64encode(sketch.to_bytes()).decode()


def _sketch(text: str) -> Sketch:
    return Sketch.from_bytes(b64decode(text))


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
