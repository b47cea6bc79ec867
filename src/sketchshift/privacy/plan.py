"""Plans that may be published: declared, from public rows, or from private rows with noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sketchshift._typing import FloatArray, IntArray
from sketchshift._validation import (
    check_flag,
    check_integer,
    check_number,
    parameter_error,
    unmasked,
)
from sketchshift.data import Access, Source, open_source
from sketchshift.errors import DataError, PrivacyWarning, warn
from sketchshift.features import Ball, Range, Rows, SketchSpec, Waves
from sketchshift.features.plan import (
    FAR_SHARE,
    HIGH,
    MAX_CLUSTERS,
    RANGE,
    rounded,
    rounded_center,
    sketch_size_for,
)
from sketchshift.features.rows import unit_for
from sketchshift.features.spec import MAX_PRIVATE_CELLS
from sketchshift.kernels import select_kernel
from sketchshift.privacy.ledger import Account, check_account
from sketchshift.privacy.mechanism import Budget, Look
from sketchshift.sketch.plan import plan_collection_or_rows
from sketchshift.sketch.reading import Planning, Reading
from sketchshift.sketch.rows import clip_rows
from sketchshift.sketch.sketcher import REACHED

__all__ = ["check_ball", "outline_spec", "plan", "plan_declared", "plan_public", "within_reach"]

# Plans that may be published: from declared numbers, or from a sample that is public.
#
# A spec travels with every release, so its numbers must not tell of private rows. The third way,
# from private rows with noise, is ``private_plan``.
#
# Symbols
# -------
# d, k, m   columns, clusters, frequencies
# r0        spread: the root of the total variance of the rows
# rq        the same of the rows weighted by their squared distance from the center

LOW = 0.3  # lowest bandwidth, in k^(-1/d) r0
TAIL = 1.5  # rq in r0, where nothing is known of it
BALL = 10.0  # radius of the public ball, in r0, where none is declared
FEWEST_FREQUENCIES = 200
CELLS_PER_CLUSTER = 5
WITHIN = 0.99 * REACHED  # of the reach of a spec


def plan_declared(
    center: Sequence[float],
    spread: float,
    n_clusters: int,
    *,
    radius: float | None = None,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
) -> SketchSpec:
    """A plan from numbers that you know without looking at the data.

    Parameters
    ----------
    center : sequence of float
        About the middle of the rows, one number a column.
    spread : float
        About the root of the total variance, the typical distance of a row from the center.
        Twice too large costs some 2 % of error, half of it 5 %: guess rather too large.
    n_clusters : int
        Number k of clusters, or the largest one that will be asked for.
    radius : float or None
        Rows farther from the center are moved to this distance; None takes 10 spreads.
    sketch_size : int or None
        Number m of frequencies; None takes 10 k d, at least 200.
    seed : int, default=0
        Of the frequencies.
    columns : sequence of str or None
        Names of the columns.

    Returns
    -------
    spec : SketchSpec
        With a ball of the kind "declared".

    Examples
    --------
    >>> import sketchshift as ss
    >>> spec = ss.privacy.plan_declared(center=[170, 70], spread=20, n_clusters=5)
    >>> spec.rows.ball.kind, spec.sketch_size
    ('declared', 200)
    """
    middle, ball = check_ball("plan_declared", center, BALL * spread if radius is None else radius)
    spread = check_number("plan_declared", "spread", spread, low=1e-140, high=1e140)
    return outline_spec(
        middle,
        spread,
        TAIL,
        n_clusters,
        Ball("declared", ball / spread),
        sketch_size=sketch_size,
        seed=seed,
        columns=columns,
    )


def plan_public(
    sample: Any,
    n_clusters: int,
    *,
    radius: float | None = None,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    cells: bool = True,
) -> SketchSpec:
    """A plan from rows that are public, or whose people do not mind.

    Parameters
    ----------
    sample : array, frame, Arrow data, path(s) or iterator of blocks
        A thousand rows that look like the private ones. They must not be private.
    n_clusters : int
        Number k of clusters, or the largest one that will be asked for.
    radius : float or None
        Rows farther from the center are moved to this distance; None takes 10 times the root
        of the sample's total variance.
    sketch_size : int or None
        Number m of frequencies; None takes 10 k d, at least 200.
    seed : int, default=0
        Of the frequencies.
    columns : sequence of str or None
        Columns to read, by name.
    cells : bool, default=True
        Plan five cells for each cluster beside the waves, but no more than one for 20 rows of the
        sample. A release then tells their numbers of rows, sums and squares as well, and
        :func:`sketchshift.certify` bounds what centroids cost.

    Returns
    -------
    spec : SketchSpec
        With a ball of the kind "public".
    """
    k = check_integer("plan_public", "n_clusters", n_clusters, 1, MAX_CLUSTERS)
    check_flag("plan_public", "cells", cells)
    J = min(CELLS_PER_CLUSTER * k, MAX_PRIVATE_CELLS) if cells else False
    planning = Planning(k, seed=seed, cells=J, has_axes=False)  # releases clip cells of columns
    spec = plan_collection_or_rows(sample, Reading(columns=columns), planning)
    m = _sketch_size(spec.n_features, n_clusters) if sketch_size is None else sketch_size
    scale = float(spec.rows.scale_vector[0])
    if radius is not None:
        radius = check_number("plan_public", "radius", radius, low=1e-140, high=1e140)
    ball = BALL if radius is None else radius / scale
    assert spec.waves is not None
    waves, rows = replace(spec.waves, size=m), replace(spec.rows, onto=Ball("public", ball))
    return within_reach(spec.replaced(rows=rows, waves=waves))


def outline_spec(
    center: FloatArray,
    spread: float,
    tail: float,
    n_clusters: int,
    ball: Ball,
    *,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
) -> SketchSpec:
    """The spec for rows of which only the outline is known: bandwidths in k^(-1/d) [r0, rq].

    Parameters
    ----------
    center : array of shape (d,)
        Of the rows.
    spread, tail : float
        r0, and rq in units of r0.
    n_clusters : int
        Number k of clusters.
    ball : Ball
        Where these numbers come from; its radius in units of r0.
    sketch_size, seed, columns
        As in :func:`plan_declared`.

    Returns
    -------
    spec : SketchSpec
        Of total variance 1 in normalised units.
    """
    k = check_integer("plan", "n_clusters", n_clusters, 1, MAX_CLUSTERS)
    d = len(center)
    scale = rounded(spread)
    apart = k ** (-1.0 / d)
    low = LOW * apart
    bandwidth = Range(rounded(low), rounded(max(HIGH * apart * tail, RANGE * low)), FAR_SHARE)
    middle = tuple(rounded_center(center, np.full(d, scale)).tolist())
    names = None if columns is None else tuple(columns)
    return within_reach(
        SketchSpec.of(
            Rows(d, names, middle, scale, unit_for(bandwidth.low, d), ball),
            Waves(_sketch_size(d, k) if sketch_size is None else sketch_size, bandwidth, seed),
        )
    )


def within_reach(spec: SketchSpec) -> SketchSpec:
    """The spec with its ball made small enough for the exact integers."""
    ball = spec.rows.ball
    assert ball is not None
    ball = replace(ball, radius=rounded(min(ball.radius, WITHIN * spec.cell_reach)))
    return spec.replaced(rows=replace(spec.rows, onto=ball))


def check_ball(caller: str, center: Any, radius: Any) -> tuple[FloatArray, float]:
    """Center and radius of a ball that somebody declared."""
    middle = np.asarray(unmasked(center), dtype=np.float64)
    if middle.ndim != 1 or not middle.size or not (np.abs(middle) <= 1e140).all():
        raise parameter_error(caller, "center", "a list of finite numbers, one a column", center)
    return middle, check_number(caller, "radius", radius, low=1e-140, high=1e140)


def _sketch_size(d: int, k: int) -> int:
    return max(sketch_size_for(k, d), FEWEST_FREQUENCIES)


# A plan from private rows, with noise: three looks at the data, charged to the spec's ledger.
#
# The first gives a rough mean, from rows clipped to a ball that the user declares; the second a
# histogram of distances from it, whose bins halve the ball again and again; the third the mean of
# rows clipped to a few spreads. So a ball a hundred times too large costs nearly nothing.
#
# Symbols
# -------
# c0, B     center and radius of the declared ball
# r0, rq    spread of the rows; the same of the rows weighted by their squared distance

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
    account: Account | None = None,
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
    account : Account or None
        A budget that this plan is charged to, or refused by before anything is told. Data that
        cannot be read costs nothing. Releases with this plan do not pay for it again.

    Returns
    -------
    spec : SketchSpec
        With a ball of the kind "private". O(N d).
    """
    budget = Budget(epsilon, delta, adjacency, rows_per_person).check("plan")
    check_account("plan", account)
    c0, B = check_ball("plan", center, radius)
    source = _open(rows, columns, len(c0))
    shared: dict[str, Any] = {"sketch_size": sketch_size, "seed": seed, "columns": source.columns}
    outline_spec(c0, B, TAIL, n_clusters, Ball("declared", 1.0), **shared)  # refused for nothing
    looks = _looks(budget, len(c0))
    charges = tuple(look.charge for look in looks)
    sums = _sums(source, c0, B)
    if account is not None:
        account.add(charges)
    rough = _mean(looks[0].draw(sums), c0, B)
    distance, tail = _radii(looks[1], _histogram(source, rough, B), B)
    near = min(NEAR * distance, B)
    mean = _mean(looks[2].draw(_sums(source, rough, near)), rough, near)
    off = float(np.linalg.norm(mean - rough))
    spread = math.sqrt(max(distance**2 - off**2, 0.25 * distance**2))
    ball = (B + float(np.linalg.norm(mean - c0))) / spread
    return outline_spec(mean, spread, tail, n_clusters, Ball("private", ball, charges), **shared)


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


def _normalise(
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


def _looks(budget: Budget, d: int) -> tuple[Look, Look, Look]:
    """At the mean, the radii, and the mean again."""
    longest, factor = _lengths(d)
    sensitivity = math.hypot(longest, factor) * MARGIN
    return (
        budget.look(sensitivity, "plan: mean", share=0.25),
        budget.look(1, "plan: radii", share=0.5),
        budget.look(sensitivity, "plan: mean", share=0.25),
    )


def _lengths(d: int) -> tuple[float, int]:
    """Of the longest vector that a row adds to the sums, and what it adds to the count."""
    longest = 2.0**BITS * MARGIN + math.sqrt(d) / 2.0
    return longest, round(longest / math.sqrt(COUNT_SHARE - 1))


def _sums(source: Source, c0: FloatArray, B: float) -> IntArray:
    """Sums of the rows clipped to the ball, and their scaled number, as exact integers."""
    d = len(c0)
    _, factor = _lengths(d)
    sums = np.zeros(d + 1, dtype=np.int64)
    for rows, squared_norms in _normalise(source, c0, B):
        clipped = clip_rows(rows, squared_norms, 1.0)
        sums[:d] += np.rint(clipped * 2.0**BITS).astype(np.int64).sum(axis=0)
        sums[d] += len(clipped) * factor
    return sums


def _mean(noisy: IntArray, c0: FloatArray, B: float) -> FloatArray:
    """Mean of the rows in the ball, from their noisy sums; its center where they are too few."""
    d = len(c0)
    count = noisy[d] / _lengths(d)[1]
    if count < LEAST_ROWS:
        rows = f"about {max(count, 0):.0f} rows are too few to plan on"
        msg = f"{rows}: the plan is made from center and radius instead."
        warn(msg, PrivacyWarning)
        return c0
    shift = noisy[:d] / (2.0**BITS * count)
    return np.asarray(c0 + B * shift / max(1.0, float(np.linalg.norm(shift))))


def _histogram(source: Source, mean: FloatArray, B: float) -> IntArray:
    """Numbers of rows by their distance from the mean."""
    counts = np.zeros(BINS, dtype=np.int64)
    for _, squared_norms in _normalise(source, mean, 2.0 * B):
        finite = squared_norms[np.isfinite(squared_norms)]
        counts += np.bincount(np.searchsorted(EDGES, finite), minlength=BINS)
    return counts


def _radii(look: Look, counts: IntArray, B: float) -> tuple[float, float]:
    """Spread r0 and tail rq / r0, from the histogram with noise."""
    noisy = look.draw(counts)
    kept = np.where(noisy > SURE * look.charge.scale, noisy, 0).astype(np.float64)
    if not kept.any():
        return B, TAIL
    shares = kept / kept.sum()
    radii = 2.0 * B * 2.0 ** (-(np.arange(BINS)[::-1] + 0.5) / PER_OCTAVE)
    square = float(shares @ radii**2)
    rq = math.sqrt(0.5 * square + 0.5 * float(shares @ radii**4) / square)
    return math.sqrt(square), rq / math.sqrt(square)
