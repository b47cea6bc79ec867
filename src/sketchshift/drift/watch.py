"""Drift over time: every slice beside those before it, or beside what is usual."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import reduce
from itertools import accumulate
from operator import add
from typing import Any, Literal

import numpy as np

from sketchshift._colours import colour_of
from sketchshift._html import Cell, Html, Row, card, chip, curve, escape, grid, note
from sketchshift._text import counted, visible
from sketchshift._threads import one_blas_thread
from sketchshift._times import as_times, describe_keys
from sketchshift._typing import BoolArray, FloatArray
from sketchshift._validation import check_integer, check_number, parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.shares import follow_clusters
from sketchshift.drift.compare import (
    Clusters,
    Distance,
    Population,
    check_false_alarm,
    distance_between,
    n_rows,
    name_clusters,
    percent,
)
from sketchshift.drift.noise import AddedNoise, Noise, ratio_quantile, ratio_tail
from sketchshift.errors import DataError, SpecError
from sketchshift.sketch import AnySketch, SketchTable

__all__ = [
    "EFFECT",
    "TIME",
    "Season",
    "Series",
    "Watch",
    "WatchedSlice",
    "has_rows",
    "measure",
    "watch",
]

TIME = "time"
"""What the keys of a mapping are called, if not said."""


SENTENCES_SHOWN = 3
"""Of the last alarms, in a notebook."""

EFFECT = 0.05
"""Share of the rows that a change concerns at least, if it is worth an alarm and none is given."""

Season = Literal["year", "week"]


@dataclass(frozen=True, eq=False)
class WatchedSlice:
    """One slice of those watched.

    Attributes
    ----------
    key : object
        Its time.
    count : int
        Number of its rows, or about that if it is private.
    before : Distance or None
        From the last slice with rows before it; None where there is none, or no rows, or where
        ``usual`` is asked for.
    earlier : Distance or None
        From all earlier slices together.
    shares : array of shape (k,)
        Of the clusters of all slices in this one; NaN without rows.
    share_errors : array of shape (k,)
        Standard errors of these, from sampling and from the noise of a release.
    usual : Distance or None
        From what is usual: from the reference, or from the same season of earlier periods.
    effect : float
        Share of the rows that changed, at least: see :func:`watch`. Of the largest change that is
        beyond its threshold, or of the largest one where none is.
    least_effect : float
        What an alarm needs.
    is_reference : bool
        Whether it belongs to the reference, and is not judged.
    sentence : str
        What changed, in words; empty without a change beyond chance.
    """

    key: Any
    count: int
    before: Distance | None
    earlier: Distance | None
    shares: FloatArray
    share_errors: FloatArray
    usual: Distance | None = None
    effect: float = 0.0
    least_effect: float = 0.0
    is_reference: bool = False
    sentence: str = ""

    @property
    def tests(self) -> tuple[Distance, ...]:
        """The distances there are."""
        found = (self.before, self.earlier, self.usual)
        return tuple(test for test in found if test is not None)

    @property
    def is_significant(self) -> bool:
        """Whether any distance is beyond its threshold."""
        return any(test.drifted for test in self.tests)

    @property
    def drifted(self) -> bool:
        """Whether it alarms: the change is beyond chance, and large enough."""
        return self.is_significant and self.effect >= self.least_effect

    @property
    def is_small(self) -> bool:
        """Whether the change is beyond chance, and too small for an alarm."""
        return self.is_significant and not self.drifted


@dataclass(frozen=True, eq=False)
class Watch:
    """How the data of sketches changed from slice to slice.

    Attributes
    ----------
    by : str
        Name of the time.
    sketches : tuple of Sketch, or of PrivateSketch
        What was watched, one slice for each time.
    whole : Sketch or PrivateSketch
        All of them together; the ledger counts people as if they were in each.
    slices : tuple of WatchedSlice
        How each of them differs from those before it, in the same order.
    decoding : Decoding or None
        The clusters of all slices together.
    false_alarm : float
        The rate, without drift, of any alarm.
    effect : float
        Share of the rows that a change concerns at least, if it is an alarm.
    reference : str or None
        The condition that chose the reference.
    season : "year", "week" or None
        What slices were compared across.
    """

    by: str
    sketches: tuple[AnySketch, ...]
    whole: AnySketch
    slices: tuple[WatchedSlice, ...]
    decoding: Decoding | None
    false_alarm: float
    effect: float = 0.0
    reference: str | None = None
    season: Season | None = None

    @property
    def alarms(self) -> tuple[WatchedSlice, ...]:
        """The slices that changed beyond chance, and by enough."""
        return tuple(each for each in self.slices if each.drifted)

    @property
    def small(self) -> tuple[WatchedSlice, ...]:
        """The slices that changed beyond chance, and by too little for an alarm."""
        return tuple(each for each in self.slices if each.is_small)

    def __len__(self) -> int:
        return len(self.slices)

    def __repr__(self) -> str:
        return f"<Watch of {len(self)} slices by {self.by}: {len(self.alarms)} alarms>"

    def _repr_html_(self) -> str:
        alarms = [each.drifted for each in self.slices]
        keys = describe_keys(self.by, [each.key for each in self.slices])
        title = f"{counted(len(self), 'slice')} by {self.by}: {counted(sum(alarms), 'alarm')}"
        if not self.slices:
            return card(title)
        counts = [float(each.count) for each in self.slices]
        sizes = [counted(each.count, "row") for each in self.slices]
        rows = [
            _curve_row(Cell("rows", is_text=True), counts, sizes, keys),
            _curve_row(
                Cell("drift, in thresholds", is_text=True),
                drift := [_drift(each) for each in self.slices],
                [f"{value:.2g}" for value in drift],
                keys,
                alarms=alarms,
                line=1.0,
            ),
        ]
        clusters = () if self.decoding is None else self.decoding.profile.clusters
        for i, cluster in enumerate(clusters):
            shares = [float(each.shares[i]) for each in self.slices]
            name = Cell(Html(f"{chip(i)} {escape(cluster.name)}"), is_text=True)
            texts = [f"{100 * share:.1f} %" for share in shares]
            rows.append(_curve_row(name, shares, texts, keys, colour=colour_of(i)))
        span = note(
            f"{keys[0]} to {keys[-1]}" + ("; orange dots are alarms" if any(alarms) else "")
        )
        named = zip(keys, self.slices, strict=True)
        told = [f"{key}: {each.sentence}" for key, each in named if each.drifted and each.sentence]
        last = [note(text) for text in told[-SENTENCES_SHOWN:]]
        if len(told) > len(last):
            last.insert(0, note(f"The last {len(last)} of {len(told)} alarms:"))
        return card(title, span, grid(["", "over time", "least", "most", "last"], rows), *last)

    def to_arrow(self) -> Any:
        """The slices as an Arrow table.

        Returns
        -------
        table : Arrow table
            The key, ``count``, ``distance_before``, ``threshold_before``, ``distance_earlier``,
            ``threshold_earlier``, ``distance_usual``, ``threshold_usual``, ``effect``,
            ``drifted``, ``sentence``, and the ``shares`` as lists.
        """
        import pyarrow as pa

        columns: dict[str, Any] = {
            self.by: [each.key for each in self.slices],
            "count": [each.count for each in self.slices],
        }
        for which in ("before", "earlier", "usual"):
            tests = [getattr(each, which) for each in self.slices]
            for number in ("distance", "threshold"):
                values = [None if test is None else getattr(test, number) for test in tests]
                columns[f"{number}_{which}"] = pa.array(values, pa.float64())
        columns["effect"] = [each.effect for each in self.slices]
        columns["drifted"] = [each.drifted for each in self.slices]
        columns["sentence"] = [each.sentence for each in self.slices]
        listed = [each.shares.tolist() for each in self.slices]
        columns["shares"] = pa.array(listed, pa.list_(pa.float64()))
        return pa.table(columns)


def _drift(each: WatchedSlice) -> float:
    """The largest distance of a slice, in thresholds; NaN where there is nothing to compare."""
    ratios = (test.distance / test.threshold for test in each.tests if test.threshold > 0.0)
    return max(ratios, default=math.nan)


def _curve_row(
    name: Cell, values: list[float], texts: list[str], keys: list[str], **looks: Any
) -> Row:
    """One line of the table in a notebook: a curve, and its ends in words."""
    titles = [f"{key}: {text}" for key, text in zip(keys, texts, strict=True)]
    drawn = Cell(curve(values, titles, **looks), is_text=True)
    known = [i for i, value in enumerate(values) if math.isfinite(value)]
    if not known:
        return [name, drawn, "", "", ""]
    ends = min(known, key=values.__getitem__), max(known, key=values.__getitem__), known[-1]
    return [name, drawn, *(Cell(texts[i], title=keys[i]) for i in ends)]


@one_blas_thread
def watch(
    table: SketchTable | Mapping[Any, AnySketch],
    *,
    by: str | None = None,
    n_clusters: Clusters = "auto",
    false_alarm: float = 0.01,
    seed: int = 0,
    reference: str | None = None,
    season: Season | None = None,
    effect: float = EFFECT,
) -> Watch:
    r"""Which slices changed, by more than chance and by enough to matter.

    Every slice is compared with the one before it, which finds jumps, and with all earlier ones
    together, which finds slow drift. With a ``reference`` it is compared with that alone, and must
    differ by more than the slices of the reference do among themselves. With a ``season`` it is
    compared with slices of the same month of other years, or the same day of other weeks.

    Without drift in all of them, the probability of any alarm is at most ``false_alarm``: each
    test has that rate divided by their number (Bonferroni), whatever depends on what.

    Parameters
    ----------
    table : SketchTable, or mapping of times to sketches
        Slices in the order of time, with independent rows. A mapping holds sketches of one spec,
        all raw or all private; of private ones the noise is part of thresholds and errors.
    by : str or None
        The column of time; slices that agree in it are added up. None takes the only one. Of a
        mapping, the name of its times.
    n_clusters : int, "auto" or None
        Clusters of all slices together to follow; None leaves them out.
    false_alarm : float, default=0.01
        The rate, from 1e-12 to 0.5, for all slices together.
    seed : int, default=0
        Of the decoder.
    reference : str or None
        A condition on the times, as in :meth:`SketchTable.where`: ``"month < '2013-07-01'"``. The
        slices for which it holds, at least three, were as they should be. They are not judged.
    season : "year", "week" or None
        For times that are dates. A slice is compared with earlier slices of the same month of
        the year or the same day of the week, and judged by how far such slices were apart so far:
        the first two comparisons only serve to learn that. With a ``reference``, both come from it.
    effect : float, default=0.05
        The least change that is an alarm, as a share of the rows, from 0 to 1. Smaller ones are
        ``small``. The share that changed is at least

        .. math:: \max\Big(\frac12 \sum_i |\alpha_i - \beta_i|, \;
                  \frac{1}{\sqrt 2} \|z_a - z_b\|\Big)

        with :math:`\alpha, \beta` the shares of the clusters on both sides, and what chance adds
        to either taken off: rows that changed clusters, or rows that lie elsewhere.

    Returns
    -------
    watch : Watch
        Costs one decoding of the sum of all slices, and O(m) a slice, O(k^2 m) with clusters:
        noise and clusters are those of all slices together. For private sketches, also
        O(1000^3) a slice. Slices without rows, or with no more than the noise in
        their number, have no distances.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> rng = np.random.default_rng(0)
    >>> X, day = rng.normal(size=(5000, 2)), np.repeat(np.arange(5), 1000)
    >>> X[day == 3] += 1.0
    >>> found = ss.drift.watch(ss.sketch_by(X, by=day, n_clusters=3))
    >>> [each.key for each in found.alarms]
    [3, 4]
    """
    series = Series.of(table, by)
    rate = check_false_alarm("watch", false_alarm)
    check_integer("watch", "seed", seed, 0, 2**64 - 1)
    least = check_number("watch", "effect", effect, low=0.0, high=1.0)
    is_usual = series.find(reference)
    when = _Calendar.of(series, season)
    population = Population.of(series.whole, n_clusters, seed, "watch")
    followed = _Followed(population, series.whole)
    sides = [followed.side(sketch) for sketch in series.sketches]
    if reference is None and season is None:
        tests = _test_in_turn(sides, population.noise, rate)
    else:
        tests = _test_usual(sides, is_usual, when, population.noise, rate)
    slices = tuple(
        followed.judge(key, side, own, least, is_reference=bool(is_reference))
        for key, side, own, is_reference in zip(series.keys, sides, tests, is_usual, strict=True)
    )
    return Watch(
        series.by, series.sketches, series.whole, slices, population.decoding, rate, least,
        reference, season,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Series:
    """What is watched, whichever way it was given."""

    by: str
    keys: tuple[Any, ...]
    sketches: tuple[AnySketch, ...]
    whole: AnySketch

    @classmethod
    def of(
        cls,
        given: SketchTable | Mapping[Any, AnySketch],
        by: str | None,
        caller: str = "watch",
        name: str = "table",
    ) -> Series:
        """The slices of a table, or the sketches of a mapping; refuse anything else."""
        if isinstance(given, SketchTable) and len(given):
            table = _in_time(given, by)
            keys = tuple(key for key, _ in table)
            return cls(table.by[0], keys, table.sketches, table.merge())
        sketches = tuple(given.values()) if isinstance(given, Mapping) else ()
        if not sketches or not all(isinstance(sketch, AnySketch) for sketch in sketches):
            must = "a SketchTable of at least one slice, or a mapping of times to sketches"
            raise parameter_error(caller, name, must, given)
        return cls(by or TIME, tuple(given), sketches, reduce(add, sketches))

    def find(self, condition: str | None) -> BoolArray:
        """Which slices have rows and are the reference: none without a condition."""
        chosen = np.zeros(len(self.keys), dtype=bool)
        if condition is None:
            return chosen
        import pyarrow as pa

        from sketchshift.sketch.where import find_rows

        chosen[find_rows(pa.table({self.by: list(self.keys)}), condition)] = True
        chosen &= [has_rows(sketch) for sketch in self.sketches]
        n = int(chosen.sum())
        if n < FEWEST:
            msg = (
                f"a reference needs at least {FEWEST} slices with rows, to tell how much they "
                f"vary, and {condition!r} chooses {n} of {len(chosen)}. Choose a longer period."
            )
            raise DataError(msg)
        if n == len(chosen):
            msg = f"the reference {condition!r} chooses all slices, and leaves none to judge."
            raise DataError(f"{msg} Choose a shorter period.")
        return chosen


def _in_time(table: SketchTable, by: str | None) -> SketchTable:
    if by is not None:
        table = table.merge_by(by)
    if len(table.by) > 1:
        names = " or ".join(f"by={name!r}" for name in table.by)
        msg = (
            f"this table has slices by {', '.join(table.by)}, and only one of them is the time. "
            f"Say which: {names}; slices are added up over the others."
        )
        raise SpecError(msg)
    name, times = table.by[0], table.keys.column(0)
    if times.null_count:
        msg = (
            f"{table.counts[-1]:,} rows have no {name}, so that nobody knows when they came. Leave "
            f"""them out: table.where('"{name}" IS NOT NULL'), or --where."""
        )
        raise DataError(msg)
    check_order(name, times)
    return table


def check_order(name: str, keys: Any) -> None:
    """Refuse dates in texts that do not ascend with time: 01.02.2026 is before 31.01.2026.

    Parameters
    ----------
    name : str
        Of the key.
    keys : Arrow array
        Of all slices, ascending.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(keys.type):
        return
    try:
        times = pc.cast(as_times(keys), pa.int64())
    except DataError:  # they are no dates
        return
    if np.any(np.diff(times.to_numpy(zero_copy_only=False)) < 0):
        msg = (
            f"slices by {name} are dates in texts, such as {keys[0].as_py()!r}, which are not in "
            f"the order of time. Make new slices by 'day({name})', which are dates."
        )
        raise DataError(msg)


def has_rows(sketch: AnySketch) -> bool:
    """Whether there are any, beyond the noise in their number."""
    return sketch.total_weight > sketch.count_std


# Slices, and what they are compared with: sums of other slices.


@dataclass(frozen=True, eq=False)
class _Side:
    """One slice, or the sum of several: what a test and its words need of it.

    Attributes
    ----------
    sketch : Sketch or PrivateSketch
        Of its rows.
    rows : float
        Their number.
    squares : float
        Sum of the squared numbers of rows of the slices.
    in_clusters : array of shape (k,)
        Rows of each cluster.
    """

    sketch: AnySketch
    rows: float
    squares: float
    in_clusters: FloatArray

    def __add__(self, other: _Side) -> _Side:
        return _Side(
            self.sketch + other.sketch,
            self.rows + other.rows,
            self.squares + other.squares,
            self.in_clusters + other.in_clusters,
        )

    @property
    def shares(self) -> FloatArray:
        """Of the clusters."""
        return self.in_clusters / self.rows

    @property
    def has_rows(self) -> bool:
        """Whether there are any, beyond noise."""
        return has_rows(self.sketch)


@dataclass(frozen=True, eq=False)
class _Test:
    """A slice beside what it is compared with."""

    which: str
    other: _Side
    side: _Side
    distance: Distance

    @property
    def factor(self) -> float:
        """What the spread of one slice is multiplied by beside a mean of others."""
        return 1.0 + self.other.squares / self.other.rows**2


def _test(which: str, a: _Side | None, b: _Side, noise: Noise, level: float) -> list[_Test]:
    if a is None:
        return []
    return [_Test(which, a, b, measure(a.sketch, b.sketch, noise, level))]


def measure(a: AnySketch, b: AnySketch, noise: Noise, level: float) -> Distance:
    """The distance of two sketches, each of as many independent rows as it has."""
    return distance_between(a, b, (n_rows(a), n_rows(b)), noise, level)


def _test_in_turn(sides: Sequence[_Side], noise: Noise, rate: float) -> list[list[_Test]]:
    """Each slice beside the last one with rows, and beside the sum of all before."""
    level = rate / max(1, 2 * (len(sides) - 1))
    tests: list[list[_Test]] = []
    last: _Side | None = None
    total: _Side | None = None
    for side in sides:
        if not side.has_rows:
            tests.append([])
            continue
        own = _test("before", last, side, noise, level)
        tests.append(own + _test("earlier", total, side, noise, level))
        last, total = side, side if total is None else total + side
    return tests


def _test_usual(
    sides: Sequence[_Side], is_usual: BoolArray, when: _Calendar, noise: Noise, rate: float
) -> list[list[_Test]]:
    """Each slice beside the reference, or beside the same season before."""
    pools, has_reference = _Pools(sides, is_usual, when), bool(is_usual.any())
    others = [pools.beside(i) if side.has_rows else None for i, side in enumerate(sides)]
    n_judged = sum(
        other is not None and not own for other, own in zip(others, is_usual, strict=True)
    )
    level = rate / max(1, n_judged if has_reference else n_judged - FEWEST + 1)
    tests = [_test("usual", a, b, noise, level) for a, b in zip(others, sides, strict=True)]
    if not has_reference:
        return _judge_by_earlier(tests)
    if pools.freedom < FEWEST - 1:
        msg = (
            "the reference has too few slices of the same season to tell how much they vary. "
            f"Choose a longer period, of at least {FEWEST} slices of one season."
        )
        raise DataError(msg)
    usual = [test for own, is_own in zip(tests, is_usual, strict=True) if is_own for test in own]
    spread = _Spread.of(usual, pools.freedom)
    return [
        [] if is_reference else [spread.judge(test) for test in own]
        for own, is_reference in zip(tests, is_usual, strict=True)
    ]


def _judge_by_earlier(tests: Sequence[Sequence[_Test]]) -> list[list[_Test]]:
    """Each test by the spread of the last ones before it; the first ones only serve to learn it.

    Without drift, the difference of a slice from the mean of earlier ones does not depend on the
    differences of these: they are recursive residuals.
    """
    judged: list[list[_Test]] = []
    seen: list[_Test] = []
    for own in tests:
        spread = _Spread.of(seen, len(seen)) if len(seen) >= FEWEST - 1 else None
        judged.append([] if spread is None else [spread.judge(test) for test in own])
        seen = [*seen, *own][-REMEMBERED:]
    return judged


# How slices vary that are as they should be: seasons, weather, weekdays.
#
# Let slices differ from their population by more than their rows do by chance, each by a draw of
# its own. The squared distance of a slice from the others has then two parts: what rows add by
# chance, whose mean is known, and a part that is estimated from the slices of the reference. The
# distance is judged by its ratio to both together, as Student's t is: the fewer slices, the larger
# it must be. How many directions slices vary in decides how far such a ratio reaches by chance; the
# eigenvalues of the reference tell them as too few rather than too many, which is the safe side.

REMEMBERED = 60
"""Comparisons with earlier seasons that tell the spread: the last ones."""

FEWEST = 3
"""Slices of a reference: two tell one difference, and no spread of differences."""


@dataclass(frozen=True, eq=False)
class _Spread:
    """How far the slices of a reference lie from each other.

    Attributes
    ----------
    between : float
        Mean squared distance of a slice from its population, that of its rows by chance taken off.
    weights : array of shape (r,)
        How it is spread over directions.
    freedom : int
        Number of independent differences that it is estimated from.
    """

    between: float
    weights: FloatArray
    freedom: int

    @classmethod
    def of(cls, tests: Sequence[_Test], freedom: int) -> _Spread:
        """That of slices beside others like them: O(n^2 m) for n slices."""
        z = np.array([test.side.sketch.z - test.other.sketch.z for test in tests])
        values = np.linalg.eigvalsh((z @ z.conj().T).real)[::-1][:freedom]
        weights = values[values > 1e-9 * values[0]] if values[0] > 0.0 else np.ones(1)
        weights[0] *= 1.0 + math.sqrt(8.0 / freedom)  # by chance it may be as much too small
        total = sum(test.distance.excess for test in tests) / sum(test.factor for test in tests)
        return cls(max(0.0, total), weights, freedom)

    def judge(self, test: _Test) -> _Test:
        """The same distance, with a threshold that allows for the spread."""
        found = test.distance
        squared = found.distance**2
        mean = self.between * test.factor + squared - found.excess
        limit = math.sqrt(mean * ratio_quantile(found.false_alarm, self.weights, self.freedom))
        p_value = ratio_tail(squared / mean, self.weights, self.freedom) if mean > 0.0 else 1.0
        judged = replace(
            found,
            threshold=max(found.threshold, limit),
            p_value=max(found.p_value, p_value),
            bound=None,
        )
        return replace(test, distance=judged)


@dataclass(frozen=True, eq=False)
class _Calendar:
    """Where each slice stands: its season, and which period of seasons it is in.

    Attributes
    ----------
    seasons, periods : tuple
        Month and year, or weekday and week; without seasons all slices are of one, in periods of
        their own.
    """

    seasons: tuple[int, ...]
    periods: tuple[int, ...]

    @classmethod
    def of(cls, series: Series, season: Season | None) -> _Calendar:
        """Where the slices of a series stand."""
        if season is None:
            return cls((0,) * len(series.keys), tuple(range(len(series.keys))))
        if season not in ("year", "week"):
            raise parameter_error("watch", "season", '"year", "week" or None', season)
        days = [_date_of(key, series.by) for key in series.keys]
        if season == "year":
            return cls(tuple(day.month for day in days), tuple(day.year for day in days))
        weeks = tuple((day.toordinal() - 1) // 7 for day in days)
        return cls(tuple(day.weekday() for day in days), weeks)


def _date_of(key: Any, by: str) -> date:
    """The day of a time, or of text such as 2013-07 and 2013-07-31."""
    if isinstance(key, datetime):
        return key.date()
    if isinstance(key, date):
        return key
    try:
        text = str(key)
        return date.fromisoformat(f"{text}-01" if len(text) == len("2013-07") else text[:10])
    except ValueError:
        msg = (
            f"a season needs times that are dates, and {by} has {str(key)!r}. Slice by month(...) "
            "or day(...), or leave the season out."
        )
        raise DataError(msg) from None


class _Pools:
    """Sums of slices that others are set beside: of the same season, and of other periods."""

    def __init__(self, sides: Sequence[_Side], is_usual: BoolArray, when: _Calendar) -> None:
        self._places = list(zip(when.seasons, when.periods, strict=True))
        self._has_reference = bool(is_usual.any())
        sums: dict[int, dict[int, _Side]] = {}
        for (season, period), side, usual in zip(self._places, sides, is_usual, strict=True):
            if side.has_rows and (usual or not self._has_reference):
                own = sums.setdefault(season, {})
                own[period] = own[period] + side if period in own else side
        self.freedom = sum(len(own) - 1 for own in sums.values())
        self._sums = {season: _LeftOut.of(own) for season, own in sums.items()}

    def beside(self, i: int) -> _Side | None:
        """What slice i is compared with: the reference, or else earlier periods."""
        season, period = self._places[i]
        found = self._sums.get(season)
        return None if found is None else found.around(period, only_before=not self._has_reference)


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """Sums over all periods but one, in O(1) after one pass each way."""

    periods: list[int]
    up_to: list[_Side]
    down_to: list[_Side]

    @classmethod
    def of(cls, sums: Mapping[int, _Side]) -> _LeftOut:
        """Those of sums by period."""
        periods = sorted(sums)
        sides = [sums[period] for period in periods]
        down_to = list(accumulate(reversed(sides), add))
        return cls(periods, list(accumulate(sides, add)), down_to[::-1])

    def around(self, period: int, *, only_before: bool) -> _Side | None:
        """The sum without a period, or of those before it; None where nothing is left."""
        first, last = bisect_left(self.periods, period), bisect_right(self.periods, period)
        before = self.up_to[first - 1] if first else None
        after = self.down_to[last] if last < len(self.periods) and not only_before else None
        if before is None or after is None:
            return before or after
        return before + after


class _Followed:
    """The clusters of all slices in one of them: shares, errors, and what changed in words."""

    def __init__(self, population: Population, whole: AnySketch) -> None:
        self.decoding = population.decoding
        self.whole = whole
        self.variances = np.zeros(0)
        if self.decoding is not None:
            self.clusters = follow_clusters(self.decoding, whole.spec, whole)
            self.variances = population.share_variances(self.clusters)

    def side(self, sketch: AnySketch) -> _Side:
        """A slice with its shares; NaN without rows."""
        shares, rows = np.full(len(self.variances), np.nan), n_rows(sketch)
        if self.decoding is not None and has_rows(sketch):
            shares = self.clusters.shares_of(sketch)
        return _Side(sketch, rows, rows**2, rows * shares)

    def judge(
        self, key: Any, side: _Side, tests: Sequence[_Test], least: float, *, is_reference: bool
    ) -> WatchedSlice:
        """What is to be told of one slice."""
        effects = [(t.distance.drifted, self._effect(t, side), i) for i, t in enumerate(tests)]
        is_beyond, effect, i = max(effects, default=(False, 0.0, 0))
        of = {test.which: test.distance for test in tests}
        return WatchedSlice(
            key,
            side.sketch.count,
            of.get("before"),
            of.get("earlier"),
            side.shares,
            self._errors(side),
            usual=of.get("usual"),
            effect=effect,
            least_effect=least,
            is_reference=is_reference,
            sentence=self._sentence(tests[i], side) if is_beyond else "",
        )

    def _errors(self, *sides: _Side) -> FloatArray:
        """Standard errors of shares, or of what two shares differ by."""
        if self.decoding is None or not all(side.has_rows for side in sides):
            return np.full(len(self.variances), np.nan)
        added = AddedNoise.of(*(side.sketch for side in sides)).share_variances(self.clusters)
        scale = sum(1.0 / side.rows for side in sides)
        return np.asarray(np.sqrt(self.variances * scale + added))

    def _effect(self, test: _Test, side: _Side) -> float:
        """Share of the rows that changed clusters, or that lie elsewhere; chance taken off."""
        elsewhere = math.sqrt(max(0.0, test.distance.excess) / 2.0)
        return min(1.0, max(elsewhere, self._changed_clusters(test.other, side)))

    def _changed_clusters(self, other: _Side, side: _Side) -> float:
        changes = np.square(side.shares - other.shares) - np.square(self._errors(other, side))
        return 0.5 * float(np.sqrt(np.maximum(changes, 0.0)).sum())

    def _sentence(self, test: _Test, side: _Side) -> str:
        """What changed: the cluster that did most, or the column where clusters did less."""
        elsewhere = math.sqrt(max(0.0, test.distance.excess) / 2.0)
        if self._changed_clusters(test.other, side) >= elsewhere / 2.0:
            told = self._change_of_cluster(test.other.shares, side.shares)
        else:
            told = self._change_of_column(test.other.sketch, side.sketch)
        return f"{told}, compared with {BESIDE[test.which]}."

    def _change_of_cluster(self, before: FloatArray, after: FloatArray) -> str:
        i = int(np.argmax(np.abs(after - before)))
        word = "grew" if after[i] > before[i] else "shrank"
        name = name_clusters(self.decoding)[i]
        return f"{name} {word} from {percent(before[i])} to {percent(after[i])} of rows"

    def _change_of_column(self, before: AnySketch, after: AnySketch) -> str:
        """The column whose mean moved most, in its standard deviations over all slices."""
        known = [sketch.moments for sketch in (before, after, self.whole)]
        if any(each is None for each in known):
            return "rows lie elsewhere"
        (a, _), (b, _), (_, covariance) = known  # type: ignore[misc]
        std = np.sqrt(np.diagonal(covariance))
        moves = np.divide(b - a, std, out=np.zeros_like(std), where=std > 0.0)
        j = int(np.argmax(np.abs(moves)))
        if abs(moves[j]) < NOTABLE:
            return "rows are spread otherwise, around the same means"
        name = visible(self.whole.spec.rows.labels[j])
        word = "rose" if moves[j] > 0.0 else "fell"
        return f"the mean of {name} {word} by {abs(moves[j]):.2g} standard deviations"


BESIDE = {
    "before": "the slice before",
    "earlier": "all earlier slices",
    "usual": "what is usual",
}
NOTABLE = 0.02
"""Standard deviations that a mean moves by at least, if it is to be told."""
