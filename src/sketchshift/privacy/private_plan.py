"""A plan from private rows, with noise: three looks at the data, charged to the spec's ledger.

The first gives a rough mean, from rows clipped to a ball that the user declares; the second a
histogram of distances from it, whose bins halve the ball again and again; the third the mean of
rows clipped to a few spreads. So a ball a hundred times too large costs nearly nothing.

Symbols
-------
c0, B     center and radius of the declared ball
r0, rq    spread of the rows; the same of the rows weighted by their squared distance
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.data import Access, Source, open_source
from sketchshift.errors import DataError, PrivacyWarning, warn
from sketchshift.features import Charge, Origin, SketchSpec
from sketchshift.kernels import select_kernel
from sketchshift.privacy.mechanism import Budget
from sketchshift.privacy.plan import TAIL, check_ball, outline_spec
from sketchshift.sketch.rows import clip_rows

__all__ = ["plan"]

BITS = 20  # a row at the border of the ball adds a vector of length 2**BITS to the sums
COUNT_SHARE = 100  # the count has one part in so many of the squared sensitivity
BINS, PER_OCTAVE = 96, 4  # of the histogram, from 2 B downwards
SURE = 3.0  # bins below so many standard deviations of the noise count nothing
MARGIN = 1.0 + 1e-9  # clipping leaves rounding errors
LEAST_ROWS = 100.0
NEAR = 4.0  # rows beyond so many distances are clipped for the last mean
EDGES = 4.0 ** (-np.arange(1, BINS)[::-1] / PER_OCTAVE)
"""Upper ends of all bins but the last, which holds all far rows: squared norms in 2 B."""


def plan(
    rows: Any,
    center: Sequence[float],
    radius: float,
    n_clusters: int,
    epsilon: float,
    delta: float,
    *,
    adjacency: str = "add_remove",
    rows_per_person: int = 1,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
) -> SketchSpec:
    """A plan from private rows that does not leak: its cost stands in the spec.

    Half of the budget buys the mean, half the distances from it. A tenth of the rho of the
    release is enough.

    Parameters
    ----------
    rows : array, frame, Arrow data or path(s)
        The private data, read three times. Rows that are not finite are dropped in silence.
    center : sequence of float
        Of a ball that holds the data, known without looking at it.
    radius : float
        Of that ball; 100 times too large does little harm.
    n_clusters : int
        Number k of clusters, or the largest one that will be asked for.
    epsilon, delta : float
        What the plan may cost; the ledger of every release with it contains this.
    adjacency : {"add_remove", "replace_one"}
        As for the release.
    rows_per_person : int, default=1
        As for the release.
    sketch_size : int or None
        Number m of frequencies; None takes 10 k d, at least 200.
    seed : int, default=0
        Of the frequencies, not of the noise.
    columns : sequence of str or None
        Columns to read, by name.

    Returns
    -------
    spec : SketchSpec
        Marked with the origin "private". O(N d).
    """
    budget = Budget(epsilon, delta, adjacency, rows_per_person).check("plan")
    c0, B = check_ball("plan", center, radius)
    source = _open(rows, columns, len(c0))
    rough, *first = _noisy_mean(source, c0, B, budget)
    distance, tail, *second = _noisy_radii(source, rough, B, budget)
    mean, *third = _noisy_mean(source, rough, min(NEAR * distance, B), budget)
    off = float(np.linalg.norm(mean - rough))
    spread = math.sqrt(max(distance**2 - off**2, 0.25 * distance**2))
    ball = (B + float(np.linalg.norm(mean - c0))) / spread
    return outline_spec(
        mean,
        spread,
        tail,
        n_clusters,
        Origin("private", ball, (*first, *second, *third)),
        sketch_size=sketch_size,
        seed=seed,
        columns=source.columns,
    )


def _open(rows: Any, columns: Sequence[str] | None, d: int) -> Source:
    source = open_source(rows, columns=columns)
    if source.access is Access.ONCE:
        msg = (
            "a private plan reads the data three times, and a stream can be read once. Pass files "
            "or an array."
        )
        raise DataError(msg)
    if source.n_features != d:
        msg = (
            f"the data has {source.n_features} columns, and center has {d} numbers. Select the "
            "columns, or give a center for all of them."
        )
        raise DataError(msg)
    return source


def _normalised(
    source: Source, middle: FloatArray, radius: float
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Rows as (x - middle) / radius with their squared norms, by the kernel.

    It computes each row alone, to the last bit: one row more must not move another one.
    """
    normalise, per_unit = select_kernel().normalise, np.full(len(middle), 1.0 / radius)
    for block in source:
        X = np.ascontiguousarray(block.values, dtype=np.float64)
        rows, squared_norms = np.empty_like(X), np.empty(len(X))
        normalise(X, middle, per_unit, rows, squared_norms)
        yield rows, squared_norms


def _noisy_mean(
    source: Source, c0: FloatArray, B: float, budget: Budget
) -> tuple[FloatArray, Charge]:
    """Mean of the rows clipped to the ball; its center where they are too few."""
    d = len(c0)
    longest = 2.0**BITS * MARGIN + math.sqrt(d) / 2.0
    factor = round(longest / math.sqrt(COUNT_SHARE - 1))
    sums = np.zeros(d + 1, dtype=np.int64)
    for rows, squared_norms in _normalised(source, c0, B):
        clipped = clip_rows(rows, squared_norms, 1.0)
        sums[:d] += np.rint(clipped * 2.0**BITS).astype(np.int64).sum(axis=0)
        sums[d] += len(clipped) * factor
    sensitivity = math.hypot(longest, factor) * MARGIN
    noisy, charge = budget.spend(sums, sensitivity, "plan: mean", share=0.25)
    count = noisy[d] / factor
    if count < LEAST_ROWS:
        msg = f"there are about {max(count, 0):.0f} rows, too few to plan on: the ball is used."
        warn(msg, PrivacyWarning)
        return c0, charge
    shift = noisy[:d] / (2.0**BITS * count)
    return c0 + B * shift / max(1.0, float(np.linalg.norm(shift))), charge


def _noisy_radii(
    source: Source, mean: FloatArray, B: float, budget: Budget
) -> tuple[float, float, Charge]:
    """Spread r0, tail rq / r0, and what they cost."""
    counts = np.zeros(BINS, dtype=np.int64)
    for _, squared_norms in _normalised(source, mean, 2.0 * B):
        finite = squared_norms[np.isfinite(squared_norms)]
        counts += np.bincount(np.searchsorted(EDGES, finite), minlength=BINS)
    noisy, charge = budget.spend(counts, 1, "plan: radii", share=0.5)
    kept = np.where(noisy > SURE * charge.scale, noisy, 0).astype(np.float64)
    if not kept.any():
        return B, TAIL, charge
    shares = kept / kept.sum()
    radii = 2.0 * B * 2.0 ** (-(np.arange(BINS)[::-1] + 0.5) / PER_OCTAVE)
    square = float(shares @ radii**2)
    rq = math.sqrt(0.5 * square + 0.5 * float(shares @ radii**4) / square)
    return math.sqrt(square), rq / math.sqrt(square), charge
