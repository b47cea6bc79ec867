"""Drift over time: every slice beside those before it, or beside what is usual."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np

from sketchshift._registry import show_card
from sketchshift._text import visible
from sketchshift._threads import one_blas_thread
from sketchshift._times import as_times
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
from sketchshift.sketch import AnySketch, Sketch, SketchTable
from sketchshift.sketch.sketch import merge_sketches

__all__ = [
    "EFFECT",
    "TIME",
    "Series",
    "Watch",
    "WatchedSlice",
    "has_rows",
    "watch",
]

TIME = "time"
"""What the keys of a mapping are called, if not said."""

EFFECT = 0.05
"""Share of the rows that a change concerns at least, if it is worth an alarm and none is given."""


@dataclass(frozen=True, eq=False)
class WatchedSlice:
    """One slice of those watched.

    Attributes
    ----------
    key : object
        Its time.
    count : int
        Number of its rows, or about that if it is private.
    shares : array of shape (k,)
        Of the clusters of all slices in this one; NaN without rows.
    share_errors : array of shape (k,)
        Standard errors of these, from sampling and from the noise of a release.
    effect : float
        Share of the rows that changed, at least: see :func:`watch`. Of the largest change that is
        beyond its threshold, or of the largest one where none is.
    least_effect : float
        What an alarm needs.
    is_reference : bool
        Whether it belongs to the reference, and is not judged.
    sentence : str
        What changed, in words; empty without a change beyond chance.
    before : Distance or None
        From the last slice with rows before it; None where there is none, or no rows, or where
        ``usual`` is asked for.
    earlier : Distance or None
        From all earlier slices together.
    usual : Distance or None
        From what is usual, the reference.
    """

    key: Any
    count: int
    shares: FloatArray
    share_errors: FloatArray
    effect: float
    least_effect: float
    is_reference: bool
    sentence: str
    before: Distance | None = None
    earlier: Distance | None = None
    usual: Distance | None = None

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
    """

    by: str
    sketches: tuple[AnySketch, ...]
    whole: AnySketch
    slices: tuple[WatchedSlice, ...]
    decoding: Decoding | None
    false_alarm: float
    effect: float = 0.0
    reference: str | None = None

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

    def _repr_html_(self) -> str | None:
        return show_card(self)

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

        def column(name: str) -> list[Any]:
            return [getattr(each, name) for each in self.slices]

        columns: dict[str, Any] = {self.by: column("key"), "count": column("count")}
        for which in ("before", "earlier", "usual"):
            for number in ("distance", "threshold"):
                values = [getattr(test, number, None) for test in column(which)]
                columns[f"{number}_{which}"] = pa.array(values, pa.float64())
        columns |= {name: column(name) for name in ("effect", "drifted", "sentence")}
        shares = [each.tolist() for each in column("shares")]
        return pa.table(columns | {"shares": pa.array(shares, pa.list_(pa.float64()))})


@one_blas_thread
def watch(
    table: SketchTable | Mapping[Any, AnySketch],
    *,
    by: str | None = None,
    n_clusters: Clusters = "auto",
    false_alarm: float = 0.01,
    seed: int = 0,
    reference: str | None = None,
    effect: float = EFFECT,
) -> Watch:
    r"""Which slices changed, by more than chance and by enough to matter.

    Every slice is compared with the one before it, which finds jumps, and with all earlier ones
    together, which finds slow drift. With a ``reference`` it is compared with that alone, and must
    differ by more than the slices of the reference do among themselves.

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
        O(r^3) a slice, with r the smaller of 1000 and 2 m. Slices without rows, or with no more
        than the noise in their number, have no distances.

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
    population = Population.of(series.whole, n_clusters, seed, "watch")
    followed = _Followed(population, series.whole)
    sides = [followed.side(sketch) for sketch in series.sketches]
    if reference is None:
        tests = _test_in_turn(sides, population.noise, rate)
    else:
        tests = _test_usual(sides, is_usual, population.noise, rate)
    slices = tuple(
        followed.judge(key, side, own, least, is_reference=bool(is_reference))
        for key, side, own, is_reference in zip(series.keys, sides, tests, is_usual, strict=True)
    )
    return Watch(
        series.by, series.sketches, series.whole, slices, population.decoding, rate, least,
        reference,
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
        return cls(by or TIME, tuple(given), sketches, _sum(sketches))

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


def _sum(sketches: Sequence[AnySketch]) -> AnySketch:
    """The sum of sketches; of raw ones quickly."""
    raw = [sketch for sketch in sketches if isinstance(sketch, Sketch)]
    return merge_sketches(raw) if len(raw) == len(sketches) else reduce(add, sketches)


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
            _sum((self.sketch, other.sketch)),
            self.rows + other.rows,
            self.squares + other.squares,
            self.in_clusters + other.in_clusters,
        )

    @property
    def shares(self) -> FloatArray:
        """Of the clusters."""
        return self.in_clusters / self.rows

    @cached_property
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

    @classmethod
    def of(cls, which: str, other: _Side, side: _Side, noise: Noise, level: float) -> _Test:
        """Compare a slice with another, or with a sum of others."""
        return cls(which, other, side, distance_between(other.sketch, side.sketch, noise, level))

    @property
    def factor(self) -> float:
        """What the spread of one slice is multiplied by beside a mean of others."""
        return 1.0 + self.other.squares / self.other.rows**2

    @property
    def elsewhere(self) -> float:
        """Share of the rows that lie elsewhere; chance taken off."""
        return math.sqrt(max(0.0, self.distance.excess) / 2.0)


def _test_in_turn(sides: Sequence[_Side], noise: Noise, rate: float) -> list[list[_Test]]:
    """Each slice beside the last one with rows, and beside the sum of all before."""
    level = rate / max(1, 2 * (len(sides) - 1))
    tests: list[list[_Test]] = []
    others: dict[str, _Side] = {}
    for side in sides:
        if not side.has_rows:
            tests.append([])
            continue
        tests.append([_Test.of(*each, side, noise, level) for each in others.items()])
        earlier = others["earlier"] + side if others else side
        others = {"before": side, "earlier": earlier}
    return tests


def _test_usual(
    sides: Sequence[_Side], is_usual: BoolArray, noise: Noise, rate: float
) -> list[list[_Test]]:
    """Each slice beside the reference, judged by how far its own are from the rest of it."""
    own = [side for side, usual in zip(sides, is_usual, strict=True) if usual]
    up_to, down_to = list(accumulate(own, add)), list(accumulate(own[::-1], add))[::-1]
    rests = [down_to[1], *map(add, up_to, down_to[2:]), up_to[-2]]
    judged = {i for i, side in enumerate(sides) if side.has_rows and not is_usual[i]}
    level = rate / max(1, len(judged))
    usual = [_Test.of("usual", *both, noise, level) for both in zip(rests, own, strict=True)]
    spread = _Spread.of(usual, level)
    return [
        [spread.judge(_Test.of("usual", up_to[-1], side, noise, level))] if i in judged else []
        for i, side in enumerate(sides)
    ]


# How slices vary that are as they should be: seasons, weather, weekdays.
#
# Let slices differ from their population by more than their rows do by chance, each by a draw of
# its own. The squared distance of a slice from the others has then two parts: what rows add by
# chance, whose mean is known, and a part that is estimated from the slices of the reference. The
# distance is judged by its ratio to both together, as Student's t is: the fewer slices, the larger
# it must be. How many directions slices vary in decides how far such a ratio reaches by chance; the
# eigenvalues of the reference tell them as too few rather than too many, which is the safe side.

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
    limit : float
        The ratio that chance exceeds at the rate of one test.
    """

    between: float
    weights: FloatArray
    freedom: int
    limit: float

    @classmethod
    def of(cls, tests: Sequence[_Test], rate: float) -> _Spread:
        """That of n slices, each beside the rest of the reference: O(n^2 m)."""
        freedom = len(tests) - 1
        z = np.array([test.side.sketch.z - test.other.sketch.z for test in tests])
        values = np.linalg.eigvalsh((z @ z.conj().T).real)[::-1][:freedom]
        weights = values[values > 1e-9 * values[0]] if values[0] > 0.0 else np.ones(1)
        weights[0] *= 1.0 + math.sqrt(8.0 / freedom)  # by chance it may be as much too small
        total = sum(test.distance.excess for test in tests) / sum(test.factor for test in tests)
        return cls(max(0.0, total), weights, freedom, ratio_quantile(rate, weights, freedom))

    def judge(self, test: _Test) -> _Test:
        """The same distance, with a threshold that allows for the spread."""
        found = test.distance
        squared = found.distance**2
        mean = self.between * test.factor + squared - found.excess
        p_value = ratio_tail(squared / mean, self.weights, self.freedom) if mean > 0.0 else 1.0
        judged = replace(
            found,
            threshold=max(found.threshold, math.sqrt(mean * self.limit)),
            p_value=max(found.p_value, p_value),
            bound=None,
        )
        return replace(test, distance=judged)


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
        moved = [self._moved(test, side) for test in tests]  # from one cluster to another
        effects = [
            (test.distance.drifted, min(1.0, max(test.elsewhere, moved[i])), i)
            for i, test in enumerate(tests)
        ]
        is_beyond, effect, i = max(effects, default=(False, 0.0, 0))
        sentence = ""
        if is_beyond:
            is_cluster = moved[i] >= tests[i].elsewhere / 2.0
            change = self._change_of_cluster if is_cluster else self._change_of_column
            sentence = f"{change(tests[i].other, side)}, compared with {BESIDE[tests[i].which]}."
        return WatchedSlice(
            key,
            side.sketch.count,
            side.shares,
            self._errors(side),
            effect,
            least,
            is_reference,
            sentence,
            **{test.which: test.distance for test in tests},
        )

    def _errors(self, *sides: _Side) -> FloatArray:
        """Standard errors of shares, or of what two shares differ by."""
        if self.decoding is None or not all(side.has_rows for side in sides):
            return np.full(len(self.variances), np.nan)
        added = AddedNoise.of(*(side.sketch for side in sides)).share_variances(self.clusters)
        scale = sum(1.0 / side.rows for side in sides)
        return np.asarray(np.sqrt(self.variances * scale + added))

    def _moved(self, test: _Test, side: _Side) -> float:
        """Share of the rows that changed clusters; chance taken off."""
        errors = self._errors(test.other, side)
        changes = np.square(side.shares - test.other.shares) - np.square(errors)
        return 0.5 * float(np.sqrt(np.maximum(changes, 0.0)).sum())

    def _change_of_cluster(self, before: _Side, after: _Side) -> str:
        """The cluster whose share changed most."""
        changes = after.shares - before.shares
        i = int(np.argmax(np.abs(changes)))
        word = "grew" if changes[i] > 0.0 else "shrank"
        shares = f"from {percent(before.shares[i])} to {percent(after.shares[i])}"
        return f"{name_clusters(self.decoding)[i]} {word} {shares} of rows"

    def _change_of_column(self, before: _Side, after: _Side) -> str:
        """The column whose mean moved most, in its standard deviations over all slices."""
        sketches = before.sketch, after.sketch, self.whole
        known = [moments for sketch in sketches if (moments := sketch.moments) is not None]
        if len(known) < len(sketches):
            return "rows lie elsewhere"
        (a, _), (b, _), (_, covariance) = known
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
