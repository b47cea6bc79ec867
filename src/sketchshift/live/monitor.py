"""Complete slices of a cube, each compared with those before it, and alarms.

Takes a :class:`~sketchshift.live.Cube` that :func:`~sketchshift.live.follow` keeps up with data;
hands an :class:`Evaluation` of each complete slice, once. What was compared is a position of the
cube: so the cube is the whole state, and two programs may watch it at once. Alarms are also lines
of JSON in the folder of the cube.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from sketchshift._text import finite
from sketchshift._threads import one_blas_thread
from sketchshift._writing import append_durably, open_journal
from sketchshift.drift.compare import check_false_alarm
from sketchshift.drift.noise import Noise
from sketchshift.drift.since_when import SinceWhen, compare_windows, learn_noise
from sketchshift.drift.watch import check_order
from sketchshift.errors import Argument, ConflictError, DataError, PlanWarning
from sketchshift.live.cube import Cube
from sketchshift.sketch import Sketch

__all__ = ["Evaluation", "Monitor", "watch"]

ALARMS = "alarms.jsonl"
WATCH = "watch"  # position of a cube that says what was compared
FALSE_ALARM = 0.001
BY_TIME = "Begin a new cube with slices by a time or a day."


@dataclass(frozen=True)
class Evaluation:
    """Result of the windows that end with a slice.

    Attributes
    ----------
    slice : int, float or str
        Key of the slice.
    since : int, float, str or None
        Key of the first slice that differs; None without drift.
    drifted : bool
        Whether any window is beyond its threshold.
    n_slices : int or None
        Of the window with the strongest evidence.
    rows, rows_before : int
        In that window, and in the slices that it is compared with.
    distance, threshold, p_value : float or None
        Of that window; the p-value is that of all windows together.
    false_alarm : float
        The rate of alarms of one slice without drift.
    sentence : str
        All of it in words.
    next_first : int, float or str
        The first slice that later windows reach back to.
    """

    slice: Any
    since: Any
    drifted: bool
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
        """Return the fields of a line of ``alarms.jsonl``."""
        facts = asdict(self)
        del facts["drifted"], facts["next_first"]
        return facts


def watch(
    state: Cube | str | os.PathLike[str],
    *,
    reference: Sketch | None = None,
    false_alarm: float = FALSE_ALARM,
) -> list[Evaluation]:
    """Compare the complete slices of a followed state that were not compared yet.

    A slice is complete when a later one has rows. Each slice is compared once, and rows that come
    or go later count in the windows of later slices. Alarms are appended to ``alarms.jsonl`` in the
    folder of the cube.

    Parameters
    ----------
    state : Cube or path
        Its first key is the time: dates, times, numbers or text that ascends with time.
    reference : Sketch or None
        Sketch of ordinary rows, with the plan of the cube, that slices are compared with. None
        compares with all slices before a window. An alarm begins the history anew: with its window,
        or with a reference behind it. The reference of a state cannot change.
    false_alarm : float
        Rate of alarms for each slice without drift, all of its windows together.

    Returns
    -------
    evaluations : list of Evaluation
        One for each slice, in the order of time.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np, sketchshift as ss
    >>> X = np.random.default_rng(0).normal(size=(6000, 2))
    >>> X[4000:] += 1.0
    >>> table = ss.sketch_by(X, by=np.arange(6000) // 1000, n_clusters=2)
    >>> with TemporaryDirectory() as folder:
    ...     cube = ss.live.Cube.create(folder + "/cube", table.spec, by="key")
    ...     version = cube.append(table)
    ...     found = ss.live.watch(cube)
    >>> [each.slice for each in found if each.drifted]
    [4]
    """
    return list(Monitor(state, reference=reference, false_alarm=false_alarm).evaluate())


class Monitor:
    """Slices of a cube by its first key, each compared with those before it: see :func:`watch`.

    Attributes
    ----------
    cube : Cube
        What is watched.
    total : Sketch
        All rows, as of the last look.
    n_slices, n_open_rows, n_keyless : int
        Complete slices; rows of the newest slice, which is not complete; rows without a key, which
        are in no slice.
    n_alarms : int
        Alarms so far.
    last, last_alarm : Evaluation or None
        Of the newest slice that was compared, and of the newest that raised an alarm.
    """

    def __init__(
        self,
        state: Cube | str | os.PathLike[str],
        *,
        reference: Sketch | None = None,
        false_alarm: float = FALSE_ALARM,
    ) -> None:
        self.cube = cube = state if isinstance(state, Cube) else Cube.open(state)
        if not cube.by:
            raise DataError(f"the cube {cube.path} has no slices to compare. {BY_TIME}")
        if reference is not None and reference.spec != cube.spec:
            msg = (
                f"the reference was made with another plan than the cube {cube.path}. Sketch it "
                "with the plan of the cube, or follow into another folder."
            )
            raise DataError(msg)
        self.by = cube.keys[0]
        self.false_alarm = check_false_alarm("watch", false_alarm)
        self._reference = reference
        self.total = cube.merge()
        self.n_slices = self.n_open_rows = self.n_keyless = 0
        self._version = -1
        self._load()

    @property
    def since_time(self) -> float | None:
        """When the data began to differ, as the last alarm says; None if keys are no times."""
        try:
            since = datetime.fromisoformat(str(getattr(self.last_alarm, "since", "")))
        except ValueError:
            return None
        return (since if since.tzinfo else since.replace(tzinfo=UTC)).timestamp()

    def evaluate(self) -> Iterator[Evaluation]:
        """Compare the slices that are complete and newer than the last one that was compared.

        Commits after each alarm, and after the last slice.
        """
        self._version, before = self.cube.version, self._version
        if self._version == before:
            return
        self._load()
        keys, sums = self._sum_up()
        judge = _Windows(self.by, sums.__getitem__, self.false_alarm, self._reference).judge
        start = 0 if self.last is None else bisect_right(keys, self.last.slice)
        for number in range(start, self.n_slices):
            first = 0 if self.last is None else bisect_left(keys, self.last.next_first)
            first = min(first, number)  # a slice may have come before the one that was to be next
            found = judge(first, number, keys)
            _write_alarm(self.cube.path / ALARMS, found)
            facts = finite(asdict(found))
            more = {"n_alarms": self.n_alarms + 1, "last_alarm": facts} if found.drifted else {}
            self._take({**self._kept, "last": facts, **more})
            try:
                if found.drifted or number == self.n_slices - 1:
                    self._commit()
            except ConflictError:  # another program watches this cube, and was first
                self._version = -1
                yield from self.evaluate()
                return
            yield found

    def _sum_up(self) -> tuple[list[Any], list[Sketch]]:
        """Keys of all slices, and sums of the first n of them for every n."""
        table = self.cube.table(by=self.by)
        check_order(self.by, table.keys.column(0).drop_null())
        slices = [(key, sketch) for key, sketch in table if key is not None]
        keys = [_name_key(key, self.by) for key, _ in slices]
        if any(later <= key for key, later in pairwise(keys)):
            raise DataError(f"slices by {self.by} are in no order of time. {BY_TIME}")
        empty = self.total - self.total
        self.total = sum((sketch for _, sketch in table), start=empty)
        sums = list(accumulate((sketch for _, sketch in slices), initial=empty))
        self.n_slices = max(0, len(keys) - 1)
        self.n_keyless = self.total.count - sums[-1].count
        self.n_open_rows = sums[-1].count - sums[self.n_slices].count
        return keys, sums

    def _load(self) -> None:
        """Take up what the cube says was compared."""
        data = None if self._reference is None else self._reference.to_bytes()
        digest = None if data is None else hashlib.blake2b(data, digest_size=16).hexdigest()
        new: dict[str, Any] = {"reference": digest, "n_alarms": 0, "last": None, "last_alarm": None}
        self._position = self.cube.positions.get(WATCH)
        kept: dict[str, Any] = self._position or new
        if kept["reference"] != digest:
            raise DataError(
                f"the cube {self.cube.path} was watched with another ",
                Argument("reference"),
                f": {kept['reference']} then, {digest} now. Give the same, or follow into another "
                "folder.",
            )
        self._take(kept)

    def _take(self, kept: dict[str, Any]) -> None:
        self._kept, self.n_alarms = kept, kept["n_alarms"]
        self.last, self.last_alarm = (
            None if kept[name] is None else Evaluation(**kept[name])
            for name in ("last", "last_alarm")
        )

    def _commit(self) -> None:
        """Commit what was compared, unless another program has committed meanwhile."""
        at = self.cube.append(positions={WATCH: self._kept}, expected={WATCH: self._position})
        self._position = self._kept
        self._version += at == self._version + 1  # this commit brought no rows


def _name_key(key: Any, by: str) -> Any:
    """Return a key as JSON holds it; in this form, too, it ascends with time.

    Times with a zone are in UTC: where clocks are set back, hours of the zone do not ascend.
    """
    if isinstance(key, datetime) and key.tzinfo is not None:
        return key.astimezone(UTC).isoformat()
    if isinstance(key, date):
        return key.isoformat()
    if isinstance(key, int | float | str) and not isinstance(key, bool):
        return key
    raise DataError(f"slices by {by} have keys such as {key!r}, which are no times. {BY_TIME}")


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
            slice=keys[number],
            since=None if since is None else keys[since],
            drifted=found.drifted,
            n_slices=None if best is None else best.n_slices,
            rows=0 if best is None else best.counts[1],
            rows_before=0 if best is None else best.counts[0],
            distance=None if best is None else best.test.distance,
            threshold=None if best is None else best.test.threshold,
            p_value=None if best is None else found.p_value,
            false_alarm=self._false_alarm,
            sentence=found.sentence,
            next_first=keys[first],
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


def _write_alarm(path: Path, found: Evaluation) -> None:
    """Append an alarm to a file that others may move away, unless it is there already."""
    if not found.drifted:
        return
    with open_journal(path) as file:
        *lines, half = file.read().split(b"\n")
        try:
            is_there = bool(lines) and found.slice <= json.loads(lines[-1])["slice"]
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{path}: its last line is no alarm of this cube. Move the file away."
            raise DataError(msg) from error
        if half:  # of a program that was killed
            file.truncate(file.tell() - len(half))
        if not is_there:
            line = json.dumps(finite(found.to_alarm()), allow_nan=False).encode()
            append_durably(file, line + b"\n")
