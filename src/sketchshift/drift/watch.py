"""Drift over time: every slice of a table of sketches beside those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift._validation import check_integer, parameter_error
from sketchshift.decoders import Decoding
from sketchshift.decoders.base import one_blas_thread
from sketchshift.decoders.shares import ClusterAtoms, shares
from sketchshift.drift.compare import Distance, check_false_alarm, distance_between
from sketchshift.drift.model import Clusters, Population
from sketchshift.drift.noise import SamplingNoise
from sketchshift.errors import SpecError
from sketchshift.sketch import Sketch, SketchTable

__all__ = ["Moment", "Watch", "watch"]


@dataclass(frozen=True, eq=False)
class Moment:
    """One slice of a watched table.

    Attributes
    ----------
    key : object
        Its value in the column of time.
    count : int
        Number of its rows.
    before : Distance or None
        From the last slice with rows before it; None where there is none, or no rows.
    earlier : Distance or None
        From all earlier slices together.
    shares : array of shape (k,)
        Of the clusters of all slices in this one; NaN without rows.
    share_errors : array of shape (k,)
        Standard errors of these, from sampling.
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
    """How the data of a table of sketches changed from slice to slice.

    Attributes
    ----------
    table : SketchTable
        What was watched, one slice for each time.
    moments : tuple of Moment
        One for each slice, in the same order.
    decoding : Decoding or None
        The clusters of all slices together.
    false_alarm : float
        The rate, without drift, of any alarm in the table.
    """

    table: SketchTable
    moments: tuple[Moment, ...]
    decoding: Decoding | None
    false_alarm: float

    @property
    def alarms(self) -> tuple[Moment, ...]:
        """The slices that differ from those before them."""
        return tuple(moment for moment in self.moments if moment.drifted)

    def __len__(self) -> int:
        return len(self.moments)

    def __repr__(self) -> str:
        return f"<Watch of {len(self)} slices by {self.table.by[0]}: {len(self.alarms)} alarms>"

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
            self.table.by[0]: self.table.keys.column(0),
            "count": [moment.count for moment in self.moments],
        }
        for which in ("before", "earlier"):
            tests = [getattr(moment, which) for moment in self.moments]
            for number in ("distance", "threshold"):
                values = [None if test is None else getattr(test, number) for test in tests]
                columns[f"{number}_{which}"] = pa.array(values, pa.float64())
        columns["drifted"] = [moment.drifted for moment in self.moments]
        listed = [moment.shares.tolist() for moment in self.moments]
        columns["shares"] = pa.array(listed, pa.list_(pa.float64()))
        return pa.table(columns)


@one_blas_thread
def watch(
    table: SketchTable,
    *,
    by: str | None = None,
    n_clusters: Clusters = "auto",
    false_alarm: float = 0.01,
    seed: int = 0,
) -> Watch:
    """Every slice of a table beside the one before it, and beside all earlier ones together.

    The first finds jumps, the second slow drift, and what never returns to how it was. Without
    drift in the whole table, the probability of any alarm is at most ``false_alarm``: each of the
    2 (n - 1) tests has that rate divided by their number (Bonferroni), whatever depends on what.

    Parameters
    ----------
    table : SketchTable
        Slices in the order of time, with independent rows.
    by : str or None
        The column of time; slices that agree in it are added up. None takes the only one.
    n_clusters : int, "auto" or None
        Clusters of all slices together to follow; None leaves them out.
    false_alarm : float, default=0.01
        The rate, from 1e-12 to 0.5, for the whole table.
    seed : int, default=0
        Of the decoder.

    Returns
    -------
    watch : Watch
        Costs one decoding of the sum of all slices, and O(m) a slice, O(k^2 m) with clusters:
        noise and clusters are those of all slices together. Slices without rows have no
        distances.

    Examples
    --------
    >>> import numpy as np, sketchshift as ss
    >>> rng = np.random.default_rng(0)
    >>> X, day = rng.normal(size=(5000, 2)), np.repeat(np.arange(5), 1000)
    >>> X[day == 3] += 1.0
    >>> found = ss.watch(ss.sketch_by(X, by=day, n_clusters=3))
    >>> [moment.key for moment in found.alarms]
    [3, 4]
    """
    if not isinstance(table, SketchTable) or not len(table):
        must = "a SketchTable of at least one slice"
        raise parameter_error("watch", "table", must, table)
    rate = check_false_alarm("watch", false_alarm)
    check_integer("watch", "seed", seed, 0, 2**64 - 1)
    slices = _in_time(table, by)
    whole = slices.merge()
    population = Population.of(whole, n_clusters, seed, "watch")
    level = rate / max(1, 2 * (len(slices) - 1))
    tests = _tests(slices.sketches, population.noise, level)
    followed = _Followed(population, whole)
    moments = tuple(
        Moment(key, sketch.count, before, earlier, *followed(sketch))
        for (key, sketch), (before, earlier) in zip(slices, tests, strict=True)
    )
    return Watch(slices, moments, population.decoding, rate)


def _in_time(table: SketchTable, by: str | None) -> SketchTable:
    if by is not None:
        return table.merge_by(by)
    if len(table.by) > 1:
        names = " or ".join(f"by={name!r}" for name in table.by)
        msg = (
            f"this table has slices by {', '.join(table.by)}, and only one of them is the time. "
            f"Say which: {names}; slices are added up over the others."
        )
        raise SpecError(msg)
    return table


def _tests(
    sketches: Sequence[Sketch], noise: SamplingNoise, level: float
) -> list[tuple[Distance | None, Distance | None]]:
    """Distances of each slice from the last one with rows, and from the sum of all before."""
    tests: list[tuple[Distance | None, Distance | None]] = []
    last: Sketch | None = None
    total: Sketch | None = None
    for sketch in sketches:
        if sketch.total_weight <= 0:
            tests.append((None, None))
            continue
        tests.append((_test(last, sketch, noise, level), _test(total, sketch, noise, level)))
        last, total = sketch, sketch if total is None else total + sketch
    return tests


def _test(a: Sketch | None, b: Sketch, noise: SamplingNoise, level: float) -> Distance | None:
    if a is None:
        return None
    return distance_between(a, b, (float(a.count), float(b.count)), noise, level)


class _Followed:
    """The shares of the clusters of all slices in one of them, and their errors."""

    def __init__(self, population: Population, whole: Sketch) -> None:
        self.decoding, self.whole = population.decoding, whole
        self.variances = np.zeros(0)
        if self.decoding is not None:
            atoms = ClusterAtoms.of(self.decoding, whole.spec)
            self.variances = population.noise.share_variances(atoms)

    def __call__(self, sketch: Sketch) -> tuple[FloatArray, FloatArray]:
        if self.decoding is None or sketch.total_weight <= 0:
            nothing = np.full(len(self.variances), np.nan)
            return nothing, nothing
        found = shares(self.decoding, sketch, reference=self.whole)
        return found, np.sqrt(self.variances / sketch.count)
