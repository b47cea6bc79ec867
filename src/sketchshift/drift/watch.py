"""Drift over time: every slice beside those before it, and since when the newest ones differ."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np

from sketchshift._colours import colour_of
from sketchshift._html import Cell, Html, Row, card, chip, curve, escape, grid, note
from sketchshift._text import counted
from sketchshift._threads import one_blas_thread
from sketchshift._typing import FloatArray
from sketchshift._validation import check_integer, parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.shares import follow_clusters
from sketchshift.drift.compare import (
    Clusters,
    Distance,
    Population,
    check_false_alarm,
    distance_between,
    n_rows,
)
from sketchshift.drift.noise import AddedNoise, Noise
from sketchshift.errors import DataError, SpecError
from sketchshift.sketch import AnySketch, Sketch, SketchTable

__all__ = [
    "SinceWhen",
    "Watch",
    "WatchedSlice",
    "Window",
    "compare_windows",
    "learn_noise",
    "since_when",
    "watch",
]

TIME = "time"
"""What the keys of a mapping are called, if not said."""


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
        From the last slice with rows before it; None where there is none, or no rows.
    earlier : Distance or None
        From all earlier slices together.
    shares : array of shape (k,)
        Of the clusters of all slices in this one; NaN without rows.
    share_errors : array of shape (k,)
        Standard errors of these, from sampling and from the noise of a release.
    """

    key: Any
    count: int
    before: Distance | None
    earlier: Distance | None
    shares: FloatArray
    share_errors: FloatArray

    @property
    def drifted(self) -> bool:
        """Whether either distance is beyond its threshold."""
        return any(test is not None and test.drifted for test in (self.before, self.earlier))


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
    """

    by: str
    sketches: tuple[AnySketch, ...]
    whole: AnySketch
    slices: tuple[WatchedSlice, ...]
    decoding: Decoding | None
    false_alarm: float

    @property
    def alarms(self) -> tuple[WatchedSlice, ...]:
        """The slices that differ from those before them."""
        return tuple(each for each in self.slices if each.drifted)

    @property
    def moments(self) -> tuple[WatchedSlice, ...]:
        """The old name of ``slices``, until the next version."""
        warnings.warn("Watch.moments is now Watch.slices.", DeprecationWarning, stacklevel=2)
        return self.slices

    def __len__(self) -> int:
        return len(self.slices)

    def __repr__(self) -> str:
        return f"<Watch of {len(self)} slices by {self.by}: {len(self.alarms)} alarms>"

    def _repr_html_(self) -> str:
        alarms = [each.drifted for each in self.slices]
        keys = [str(each.key) for each in self.slices]
        title = f"{counted(len(self), 'slice')} by {self.by}: {counted(sum(alarms), 'alarm')}"
        if not self.slices:
            return card(title)
        counts = [float(each.count) for each in self.slices]
        told = [counted(each.count, "row") for each in self.slices]
        rows = [
            _curve_row(Cell("rows", is_text=True), counts, told, keys),
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
        return card(title, span, grid(["", "over time", "least", "most", "last"], rows))

    def to_arrow(self) -> Any:
        """The slices as an Arrow table.

        Returns
        -------
        table : Arrow table
            The key, ``count``, ``distance_before``, ``threshold_before``, ``distance_earlier``,
            ``threshold_earlier``, ``drifted``, and the ``shares`` as lists.
        """
        import pyarrow as pa

        columns: dict[str, Any] = {
            self.by: [each.key for each in self.slices],
            "count": [each.count for each in self.slices],
        }
        for which in ("before", "earlier"):
            tests = [getattr(each, which) for each in self.slices]
            for number in ("distance", "threshold"):
                values = [None if test is None else getattr(test, number) for test in tests]
                columns[f"{number}_{which}"] = pa.array(values, pa.float64())
        columns["drifted"] = [each.drifted for each in self.slices]
        listed = [each.shares.tolist() for each in self.slices]
        columns["shares"] = pa.array(listed, pa.list_(pa.float64()))
        return pa.table(columns)


def _drift(each: WatchedSlice) -> float:
    """The largest distance of a slice, in thresholds; NaN where there is nothing to compare."""
    tests = (test for test in (each.before, each.earlier) if test is not None)
    ratios = (test.distance / test.threshold for test in tests if test.threshold > 0.0)
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
) -> Watch:
    """Every slice beside the one before it, and beside all earlier ones together.

    The first finds jumps, the second slow drift, and what never returns to how it was. Without
    drift in all of them, the probability of any alarm is at most ``false_alarm``: each of the
    2 (n - 1) tests has that rate divided by their number (Bonferroni), whatever depends on what.

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
    >>> found = ss.watch(ss.sketch_by(X, by=day, n_clusters=3))
    >>> [each.key for each in found.alarms]
    [3, 4]
    """
    series = _Series.of(table, by)
    rate = check_false_alarm("watch", false_alarm)
    check_integer("watch", "seed", seed, 0, 2**64 - 1)
    population = Population.of(series.whole, n_clusters, seed, "watch")
    level = rate / max(1, 2 * (len(series.sketches) - 1))
    tests = _tests(series.sketches, population.noise, level)
    followed = _Followed(population, series.whole)
    slices = tuple(
        WatchedSlice(key, sketch.count, before, earlier, *followed(sketch))
        for key, sketch, (before, earlier) in zip(series.keys, series.sketches, tests, strict=True)
    )
    return Watch(series.by, series.sketches, series.whole, slices, population.decoding, rate)


@dataclass(frozen=True, eq=False)
class _Series:
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
    ) -> _Series:
        if isinstance(given, SketchTable) and len(given):
            table = _in_time(given, by)
            keys = tuple(key for key, _ in table)
            return cls(table.by[0], keys, table.sketches, table.merge())
        sketches = tuple(given.values()) if isinstance(given, Mapping) else ()
        if not sketches or not all(isinstance(sketch, AnySketch) for sketch in sketches):
            must = "a SketchTable of at least one slice, or a mapping of times to sketches"
            raise parameter_error(caller, name, must, given)
        return cls(by or TIME, tuple(given), sketches, reduce(add, sketches))


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
            f"them out: table.where('{name} IS NOT NULL'), or --where."
        )
        raise DataError(msg)
    return table


def _tests(
    sketches: Sequence[AnySketch], noise: Noise, level: float
) -> list[tuple[Distance | None, Distance | None]]:
    """Distances of each slice from the last one with rows, and from the sum of all before."""
    tests: list[tuple[Distance | None, Distance | None]] = []
    last: AnySketch | None = None
    total: AnySketch | None = None
    for sketch in sketches:
        if not _has_rows(sketch):
            tests.append((None, None))
            continue
        tests.append((_test(last, sketch, noise, level), _test(total, sketch, noise, level)))
        last, total = sketch, sketch if total is None else total + sketch
    return tests


def _has_rows(sketch: AnySketch) -> bool:
    """Whether there are any, beyond the noise in their number."""
    return sketch.total_weight > sketch.count_std


def _test(a: AnySketch | None, b: AnySketch, noise: Noise, level: float) -> Distance | None:
    if a is None:
        return None
    return distance_between(a, b, (n_rows(a), n_rows(b)), noise, level)


class _Followed:
    """The shares of the clusters of all slices in one of them, and their errors."""

    def __init__(self, population: Population, whole: AnySketch) -> None:
        self.decoding = population.decoding
        self.variances = np.zeros(0)
        if self.decoding is not None:
            self.clusters = follow_clusters(self.decoding, whole.spec, whole)
            self.variances = population.share_variances(self.clusters)

    def __call__(self, sketch: AnySketch) -> tuple[FloatArray, FloatArray]:
        if self.decoding is None or not _has_rows(sketch):
            nothing = np.full(len(self.variances), np.nan)
            return nothing, nothing
        added = AddedNoise.of(sketch).share_variances(self.clusters)
        return self.clusters.shares_of(sketch), np.sqrt(self.variances / n_rows(sketch) + added)


# Since when: the last 1, 2, 4, 8, ... slices beside what came before them.
#
# A window is a difference of two sums over all slices up to a boundary, and so is what came before
# it: sketches subtract exactly, and nothing is read again. Without drift the squared distance has
# the law of (1/n_a + 1/n_b) sum_i lambda_i chi^2, the same lambda for all windows: divided by that
# factor it orders the windows as their p-values do, also where these are too small for a float.


@dataclass(frozen=True)
class Window:
    """The last slices of a series beside what came before them.

    Attributes
    ----------
    n_slices : int
        How many slices: a power of two.
    since : object
        Time of the first of them.
    counts : pair of int
        Number of rows before them, or in the reference, and in them.
    test : Distance
        Between the two; its rate of false alarms is the joint one divided by the number of
        windows.
    """

    n_slices: int
    since: Any
    counts: tuple[int, int]
    test: Distance

    @property
    def evidence(self) -> float:
        r"""Squared distance divided by :math:`1/n_a + 1/n_b`: the larger, the less by chance."""
        return self.test.distance**2 / sum(1.0 / n for n in self.counts)


@dataclass(frozen=True, eq=False)
class SinceWhen:
    """Whether the newest slices differ from what came before them, and since when.

    Attributes
    ----------
    by : str
        Name of the time.
    windows : tuple of Window
        The last 1, 2, 4, 8, ... slices, where both sides have rows.
    false_alarm : float
        The rate, without drift, of any window beyond its threshold.
    """

    by: str
    windows: tuple[Window, ...]
    false_alarm: float

    @property
    def strongest(self) -> Window | None:
        """The window with the strongest evidence; None where there is nothing to compare."""
        return max(self.windows, key=lambda window: window.evidence, default=None)

    @property
    def drifted(self) -> bool:
        """Whether any window is beyond its threshold."""
        return any(window.test.drifted for window in self.windows)

    @property
    def since(self) -> Any:
        """Time of the slice since which the data differs; None without drift.

        Windows double, so that the true one may be up to a factor of two nearer or farther.
        """
        return self.strongest.since if self.drifted and self.strongest is not None else None

    @property
    def p_value(self) -> float:
        """The probability, without drift, of evidence as strong in any window: at most this."""
        if not self.windows:
            return 1.0
        return min(1.0, self._n_tests * min(w.test.p_value for w in self.windows))

    @property
    def _n_tests(self) -> int:
        """What the rate of false alarms was divided by."""
        return round(self.false_alarm / self.windows[0].test.false_alarm)

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        best = self.strongest
        if best is None:
            return "There is nothing to compare yet: give at least two slices with rows."
        before, within = (counted(n, "row") for n in best.counts)
        if not self.drifted:
            return (
                f"No drift: of {counted(self._n_tests, 'window')} up to the last "
                f"{counted(2 ** (self._n_tests - 1), 'slice')} none differs from what came before, "
                f"p = {self.p_value:.2g}."
            )
        named = "" if self.by == TIME else f"{self.by} "
        return (
            f"Drift since {named}{best.since}: the last {counted(best.n_slices, 'slice')} "
            f"({within}) against {before} before, distance {best.test.distance:.3g}, threshold "
            f"{best.test.threshold:.3g}, p = {self.p_value:.2g}."
        )

    def __repr__(self) -> str:
        return f"<SinceWhen: {self.sentence}>"


@one_blas_thread
def since_when(
    slices: SketchTable | Mapping[Any, Sketch] | Sequence[Sketch],
    *,
    reference: Sketch | None = None,
    by: str | None = None,
    false_alarm: float = 0.01,
    seed: int = 0,
) -> SinceWhen:
    r"""Whether the newest slices differ from those before them, and since when.

    The last 1, 2, 4, 8, ... slices are compared with all slices before them, or with a
    reference. Short windows find jumps, long ones what is small but lasts. Each of the K windows
    has the rate ``false_alarm`` / K (Bonferroni), so that without drift the probability of any
    alarm is at most ``false_alarm``, whatever depends on what. The time told is the boundary with
    the largest

    .. math::

        \Big(\frac1{n_a} + \frac1{n_b}\Big)^{-1} \|z_a - z_b\|^2 ,

    whose law without drift is the same for all windows.

    Parameters
    ----------
    slices : SketchTable, mapping of times to sketches, or sequence of sketches
        In the order of time, with independent rows, of one spec. Private sketches are refused,
        since they do not subtract: use :func:`sketchshift.watch`.
    reference : Sketch or None
        What to compare with, of the same spec; none of its rows may be in the slices. None
        takes all slices before a window.
    by : str or None
        The column of time; slices that agree in it are added up. None takes the only one. Of a
        mapping or sequence, the name of its times.
    false_alarm : float, default=0.01
        The rate, from 1e-12 to 0.5, for all windows together.
    seed : int, default=0
        Of the decoder.

    Returns
    -------
    found : SinceWhen
        For n slices n additions, O(log n) subtractions and comparisons of O(m) each, and one fit
        of the sum of all rows.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> rng = np.random.default_rng(0)
    >>> X, day = rng.normal(size=(20_000, 2)), np.repeat(np.arange(20), 1000)
    >>> X[day >= 16] += 0.2
    >>> found = ss.since_when(ss.sketch_by(X, by=day, n_clusters=3))
    >>> found.drifted, found.since
    (True, 16)
    """
    rate = check_false_alarm("since_when", false_alarm)
    check_integer("since_when", "seed", seed, 0, 2**64 - 1)
    if isinstance(slices, Sequence):
        slices = dict(enumerate(slices))
    series = _Series.of(slices, by, "since_when", "slices")
    sums = list(accumulate(_raw(sketch, "slices") for sketch in series.sketches))
    if reference is not None:
        sums[-1].check_addable(_raw(reference, "reference"), "compare")
    whole = sums[-1] if reference is None else sums[-1] + reference
    windows = compare_windows(
        lambda n: sums[n - 1] if n else sums[-1] - sums[-1],
        (0, len(sums)),
        noise=learn_noise(whole, seed) if _has_rows(whole) else None,
        false_alarm=rate,
        reference=reference,
        keys=series.keys,
    )
    return SinceWhen(series.by, windows, rate)


def _raw(sketch: AnySketch, name: str) -> Sketch:
    if isinstance(sketch, Sketch):
        return sketch
    must = "of sketches that subtract, as private ones do not: ss.watch compares these"
    raise parameter_error("since_when", name, must, sketch)


def compare_windows(
    total: Callable[[int], Sketch],
    span: tuple[int, int],
    *,
    noise: Noise | None,
    false_alarm: float,
    reference: Sketch | None = None,
    keys: Sequence[Any] | None = None,
    only_strongest: bool = False,
) -> tuple[Window, ...]:
    """The last 1, 2, 4, ... slices of a span beside the rest of it, or beside a reference.

    Parameters
    ----------
    total : callable
        Sketch of the first n slices of all, for n in the span and both its ends.
    span : pair of int
        Slices that count: from the first number to before the second.
    noise : Noise or None
        Of the population; None where there are no rows.
    false_alarm : float
        For all windows together.
    reference : Sketch or None
        What to compare with.
    keys : sequence or None
        Times of all slices; None takes their numbers.
    only_strongest : bool
        Leave out all but the one with the strongest evidence. Its threshold is the same, and if
        it is not beyond it, no other is: their evidence has one law. The law is the costly part.

    Returns
    -------
    windows : tuple of Window
        Those with rows on both sides. O(log n) calls of ``total`` and comparisons.
    """
    first, last = span
    length = last - first if reference is not None else last - first - 1
    widths = [2**i for i in range(max(0, length).bit_length())]
    sides = []
    for width in widths if noise is not None else ():
        within = total(last) - total(last - width)
        before = total(last - width) - total(first) if reference is None else reference
        if _has_rows(within) and _has_rows(before):
            sides.append((width, before, within))
    if only_strongest and sides:
        sides = [max(sides, key=lambda each: _evidence(each[1], each[2]))]
    windows = []
    for width, before, within in sides:
        assert noise is not None
        test = _test(before, within, noise, false_alarm / len(widths))
        assert test is not None
        since = last - width if keys is None else keys[last - width]
        windows.append(Window(width, since, (before.count, within.count), test))
    return tuple(windows)


def _evidence(before: Sketch, within: Sketch) -> float:
    scale = 1.0 / before.count + 1.0 / within.count
    return float(np.linalg.norm(before.z - within.z)) ** 2 / scale


def learn_noise(population: Sketch, seed: int = 0) -> Noise:
    """What sampling alone does to sketches of rows like these: one fit."""
    return Population.of(population, None, seed, "since_when").noise
