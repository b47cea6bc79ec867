"""Drift over time: every slice beside those before it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

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
from sketchshift.sketch import AnySketch, SketchTable

__all__ = ["Watch", "WatchedSlice", "watch"]

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
    def of(cls, given: SketchTable | Mapping[Any, AnySketch], by: str | None) -> _Series:
        if isinstance(given, SketchTable) and len(given):
            table = _in_time(given, by)
            keys = tuple(key for key, _ in table)
            return cls(table.by[0], keys, table.sketches, table.merge())
        sketches = tuple(given.values()) if isinstance(given, Mapping) else ()
        if not sketches or not all(isinstance(sketch, AnySketch) for sketch in sketches):
            must = "a SketchTable of at least one slice, or a mapping of times to sketches"
            raise parameter_error("watch", "table", must, given)
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
