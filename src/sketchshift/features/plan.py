"""A spec from a few rows: normalisation, cells and bandwidths that suit k clusters.

Takes rows that somebody else drew; hands a :class:`~sketchshift.SketchSpec`. Every number
is rounded to six digits of what it measures, so that a plan is short to read and the last
bits of a sum, which differ between machines, do not reach the fingerprint.

Symbols
-------
n, d, k   rows of the sample, columns, clusters
mu0, r0   mean and root of the total variance of the sample
x'        (x - mu0) / r0: the total variance of x' is 1
rq        the same where far rows count more
rw        radius of a cluster of x'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sketchshift._kmeans import weighted_kmeans
from sketchshift._text import column_in_words, counted
from sketchshift._threads import one_blas_thread
from sketchshift._typing import Float32Array, FloatArray
from sketchshift._validation import check_flag, check_integer
from sketchshift.errors import DataError, PlanWarning, ScaleHint, warn
from sketchshift.features.cells import (
    ROWS_PER_CELL,
    WIDE_CELLS,
    Cells,
    n_cells_for,
    n_wide_cells_for,
    plan_axes,
    plan_cells,
    plan_wide_cells,
)
from sketchshift.features.frequencies import MIN_FEATURES
from sketchshift.features.rows import Rows, unit_for
from sketchshift.features.spec import SketchSpec, Spectrum
from sketchshift.features.waves import Range, Waves
from sketchshift.kernels import MOMENT_BITS, select_kernel
from sketchshift.recipe import Recipe

__all__ = [
    "FAR_SHARE",
    "HIGH",
    "MAX_CLUSTERS",
    "RANGE",
    "cells_in_words",
    "cluster_radius",
    "clusters_served",
    "far_radius",
    "measure_spectrum",
    "plan_drift_rows",
    "plan_rows",
    "planned_clusters",
    "plans_waves_alone",
    "rounded",
    "rounded_center",
    "share_of_cells",
    "sketch_size_for",
]

# How wide a cluster is: a k-means of the sample, asked for its error alone.

FEW_CLUSTERS = 100  # up to here, the better of two starts
MOST_CLUSTERS = 1000  # beyond, a k-means would take minutes
MAX_ITERATIONS = 20  # the error is settled long before the centroids are


def cluster_radius(rows: FloatArray, shares: FloatArray, n_clusters: int) -> float:
    r"""Root mean squared distance of a row to the centroid of its cluster.

    .. math:: r_w^2 = \frac{n}{n - k} \sum_i w_i \min_j \|x_i - c_j\|^2

    Parameters
    ----------
    rows : array of shape (n, d)
        The sample.
    shares : array of shape (n,)
        Weights :math:`w_i` that sum up to 1.
    n_clusters : int
        Number k of clusters. If there are fewer than 2 k different rows, or more than 1000
        clusters, the radius of half as many clusters as rows, or of 1000 clusters, is continued
        by the law :math:`k^{-1/d}` of filled space.

    Returns
    -------
    radius : float
        Positive. It does not depend on the number of threads; O(n k d) an iteration.
    """
    n, d = rows.shape
    n_different = len(np.unique(rows, axis=0))
    k = min(n_clusters, n_different // 2, MOST_CLUSTERS)
    if k == 0:
        return float(n_clusters ** (-1.0 / d))  # of rows that fill a ball of radius 1
    error = _error(rows, shares, k) * n / (n - k)
    return max(math.sqrt(error), 1e-150) * float((k / n_clusters) ** (1.0 / d))


def _error(rows: FloatArray, shares: FloatArray, k: int) -> float:
    n_init = 2 if k <= FEW_CLUSTERS else 1
    weights = shares * len(shares)
    found = weighted_kmeans(rows, weights, k, n_init=n_init, max_iterations=MAX_ITERATIONS)
    return found.cost / len(shares)


CAP = 64.0  # of the weights of far rows in rq
HEAVY = 2.0  # an rq beyond which waves alone lose clusters: docs/plan.md has the measurements
LOW = 0.3  # lowest bandwidth, in rw sqrt(rq)
HIGH = 0.8  # highest bandwidth, in k^(-1/d) rq
LEAST = 1e-4  # no bandwidth below it: clusters that small are points
MARGIN = 30.0  # the rest of the data is expected within this many times the farthest row
RANGE = 3.0  # the highest bandwidth is at least this many times the lowest
FAR_SHARE = 0.15  # of the frequencies see beyond the highest bandwidth
FREQUENCIES = 10  # for each cluster and column
FEWEST_FREQUENCIES = 50
FEWEST_FOR_BANDWIDTHS, ROWS_PER_CLUSTER = 2000, 20  # rows that bandwidths are found on
MAX_CLUSTERS = 100_000

WIDE = 30  # columns; beyond, waves and squares are taken along a few axes
AXES = 10
MOST_WAVES_WHEN_WIDE = 4096
NUMBERS_AT_A_TIME = 2**22
FEW_ROWS = 1000  # of fewer, groups may be fewer than clusters were asked for
CELLS_WHEN_WIDE = 0.9  # of the numbers, if somebody says how many these are

QUARTILES_OF_NORMAL = 1.349  # their distance, in standard deviations
UNEVEN = 100.0  # ratio of standard deviations that looks like different units
FOREIGN = 1e6  # one that looks like a number which only names the row
FEWEST_FOR_HINT = 10  # of fewer rows, such a ratio may be chance
CONSTANT = 1e-13  # a standard deviation below this share of the largest value is rounding
LIMIT = 1e140  # a spec reaches 1e150
DIGITS = 6


def plan_rows(
    rows: FloatArray,
    n_clusters: int,
    *,
    weights: FloatArray | None = None,
    sketch_size: int | None = None,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    standardize: bool | str = False,
    bounds: tuple[FloatArray, FloatArray] | None = None,
    cells: bool | int = True,
    metric: str = "euclidean",
    has_axes: bool = True,
    splits_values: bool = False,
    overwrite: bool = False,
    recipe: Recipe | None = None,
) -> SketchSpec:
    r"""The spec for data that looks like these rows.

    .. math::

        x' = \frac{x - \mu_0}{r_0}, \quad
        \mathrm{bandwidth} \in [\,0.3\, r_w \sqrt{r_q},\; 0.8\, k^{-1/d}\, r_q\,]

    Parameters
    ----------
    rows : array of shape (n, d)
        The sample: finite numbers, n >= 1. The result depends on their order in the last
        bits of sums, and on the start of a k-means.
    n_clusters : int
        Number k of clusters the sketch should serve, or the largest one.
    weights : array of shape (n,), optional
        Positive weights of the rows.
    sketch_size : int, optional
        Number m of frequencies; None takes 10 k d, at least 50.
    seed : int, default=0
        Of the frequencies.
    columns : sequence of str, optional
        Names of the columns.
    standardize : bool or "robust", default=False
        Give every column a scale of its own, its standard deviation, instead of one for all;
        "robust" takes the distance of its quartiles, so that a few far rows do not count.
    bounds : pair of arrays of shape (d,), optional
        Least and largest values of the columns, where more rows are known than these.
    cells : bool or int, default=False
        Share the 2 m numbers of a sketch between cells and waves, or how many cells there are at
        most; False plans waves alone, and warns where these do not suit the rows. Beyond 30
        columns, unless each has a scale of its own, cells hold the sums of all columns, and squares
        and waves are those along the 10 principal axes.
    metric : {"euclidean", "cosine"}
        Of the spec; rows are those that it sees, for "cosine" of length 1.
    has_axes : bool, default=True
        Whether plans of many columns have axes.
    splits_values : bool, default=False
        Whether cells tell values that are frequent in a column from all others.
    overwrite : bool, default=False
        Whether the rows may be written over, which saves memory where they have many columns.
    recipe : Recipe, optional
        What made the columns; those of one part share one scale.

    Returns
    -------
    spec : SketchSpec
        Center, scale, cells and bandwidths are set. The cost is that of a k-means of the
        rows, O(n k d) an iteration.
    """
    k = check_integer("plan", "n_clusters", n_clusters, 1, MAX_CLUSTERS)
    n, d = rows.shape
    m = max(sketch_size_for(k, d), FEWEST_FREQUENCIES) if sketch_size is None else sketch_size
    shares = np.full(n, 1.0 / n) if weights is None else weights / weights.sum()
    center, deviations = _moments(rows, shares, columns)
    check_standardize("plan", standardize)
    widths = deviations if standardize != "robust" else _quartile_widths(rows, deviations)
    scale = _scale(center, widths, n, standardize=bool(standardize), recipe=recipe)
    if not standardize and n >= FEWEST_FOR_HINT:
        _hint_at_units(deviations, columns)
    center = rounded_center(center, scale)
    lower, upper = (rows.min(axis=0), rows.max(axis=0)) if bounds is None else bounds
    low, high = (tuple((end + 0.0).tolist()) for end in (lower, upper))  # -0.0 is 0.0
    basis = Rows(
        d,
        recipe or (None if columns is None else tuple(columns)),
        tuple(center.tolist()),
        tuple(scale.tolist()) if standardize else float(scale[0]),
        onto="sphere" if metric == "cosine" else None,
    )
    is_wide = has_axes and d > WIDE and not standardize
    n_wide = _n_wide_cells(cells, k, n, d, sketch_size) if is_wide else 0
    if n_wide:
        narrow = _narrowed(basis, rows, overwrite=overwrite)
        return _plan_wide(basis, narrow, weights, shares, k, n_wide, (low, high), seed)
    normalised = (rows - center) / scale
    if not cells:
        _warn_of_tails(far_radius(normalised, shares))
    farthest = _farthest(normalised, center, scale, bounds)
    some = slice(max(FEWEST_FOR_BANDWIDTHS, ROWS_PER_CLUSTER * k))  # in no order: a sample of all
    bandwidth = _bandwidths(normalised[some], shares[some], k, farthest)
    basis = replace(basis, unit=unit_for(bandwidth.low, d))
    waves = Waves(m, bandwidth, seed, structured=d >= MIN_FEATURES)  # as good, and faster
    J = n_cells_for(2 * m, n, d, k) if cells else 0
    if not isinstance(cells, bool):
        J = min(cells, n // ROWS_PER_CELL, 2 * m // (1 + 2 * d))
    if J == 0:
        return SketchSpec.of(basis, waves)
    normalised = (rows - center) * basis.per_unit
    planned = plan_cells(normalised, J, weights=weights, seed=seed, splits_values=splits_values)
    planned = replace(planned, lower=low, upper=high)
    n_waves = m - half_of_numbers(planned)
    return SketchSpec.of(basis, replace(waves, size=n_waves) if n_waves else None, cells=planned)


def _n_wide_cells(cells: bool | int, k: int, n: int, d: int, sketch_size: int | None) -> int:
    """Number of cells of a plan for many columns; 0 for a plan as of few."""
    wanted = n_wide_cells_for(k, n)
    if not isinstance(cells, bool):
        wanted = min(cells, n // ROWS_PER_CELL)
    if sketch_size is not None:
        wanted = min(wanted, int(CELLS_WHEN_WIDE * 2 * sketch_size / (2 + d + AXES)))
    return wanted if cells else 0


def _narrowed(basis: Rows, rows: FloatArray, *, overwrite: bool) -> Float32Array:
    """Normalised rows as float32, in the first half of the memory of the rows if that is ours."""
    is_ours = overwrite and rows.flags.c_contiguous and rows.flags.writeable
    narrow = np.empty(rows.shape, dtype=np.float32)
    if is_ours and rows.dtype == np.float64:
        narrow = rows.reshape(-1).view(np.float32)[: rows.size].reshape(rows.shape)
    for part in _parts(rows):  # what is written lies before what is still to be read
        narrow[part] = (rows[part] - basis.center_vector) * basis.per_unit
    return narrow


def _plan_wide(
    basis: Rows,
    narrow: Float32Array,
    weights: FloatArray | None,
    shares: FloatArray,
    k: int,
    n_cells: int,
    ends: tuple[tuple[float, ...], tuple[float, ...]],
    seed: int,
) -> SketchSpec:
    """Cells of all columns, waves and squares along the principal axes: no moments beside them."""
    axes = plan_axes(narrow, AXES, seed=seed)
    planned = plan_wide_cells(narrow, k, n_cells, weights=weights, seed=seed)
    some = slice(max(FEWEST_FOR_BANDWIDTHS, ROWS_PER_CLUSTER * k))
    seen = select_kernel().project(narrow[some].astype(np.float64), axes.table)
    farthest = MARGIN * math.sqrt(float(np.square(seen).sum(axis=1).max()))
    m = min(max(sketch_size_for(k, AXES), FEWEST_FREQUENCIES), MOST_WAVES_WHEN_WIDE)
    bandwidth = _bandwidths(seen, shares[some] / shares[some].sum(), k, farthest)
    return SketchSpec.of(
        replace(basis, unit=unit_for(bandwidth.low, basis.n_features)),
        Waves(m, bandwidth, seed),
        cells=replace(planned, lower=ends[0], upper=ends[1]),
        spread=axes,
    )


def _parts(rows: FloatArray) -> list[slice]:
    """Spans of rows: few numbers at a time, so that there is no second copy of a large sample."""
    step = max(1, NUMBERS_AT_A_TIME // rows.shape[1])
    return [slice(first, first + step) for first in range(0, len(rows), step)]


def half_of_numbers(cells: Cells) -> int:
    """What cells take of a sketch, in frequencies of two numbers each, rounded up."""
    return -(-cells.n_cells * (1 + 2 * cells.n_features) // 2)


def share_of_cells(spec: SketchSpec) -> float:
    """What cells take of the numbers of a sketch, waves the rest; 0 without cells."""
    cells, d = spec.cells, spec.n_features
    n_numbers = 1 + 2 * d if spec.axes is None else 2 + d + spec.n_coordinates
    taken = 0 if cells is None else cells.n_cells * n_numbers
    return taken / (taken + 2 * spec.sketch_size)


def cells_in_words(spec: SketchSpec) -> str | None:
    """What a plan saw, and how it shares the numbers of a sketch; None without cells."""
    cells = spec.cells
    if cells is None:
        return None
    share = f"{100 * share_of_cells(spec):.0f} % of the numbers"
    parts = f"{counted(cells.n_cells, 'cell')} ({share}), {counted(spec.sketch_size, 'wave')}"
    if spec.axes is not None:
        parts += f" along {counted(spec.axes.n_axes, 'axis')}"
    return f"planned on {counted(cells.n_rows, 'row')}: {parts}"


def sketch_size_for(n_clusters: int, n_features: int) -> int:
    """The sketch size m = 10 k d that serves k clusters of d columns."""
    return FREQUENCIES * n_clusters * n_features


def clusters_served(spec: SketchSpec) -> int:
    """The number k = m / (10 d) of clusters that a spec serves, rounded down; perhaps none.

    What cells take counts as frequencies. With axes, a group of cells is a cluster.
    """
    if spec.axes is not None and spec.cells is not None:
        has_clusters = spec.cells.probes == 1
        return len(spec.cells.starts) if has_clusters else spec.cells.n_cells // WIDE_CELLS[1]
    return _size_of(spec) // sketch_size_for(1, spec.n_features)


def _size_of(spec: SketchSpec) -> int:
    if (
        spec.cells is None or spec.rows.ball is not None
    ):  # private plans have cells beside all waves
        return spec.sketch_size
    return spec.sketch_size + half_of_numbers(spec.cells)


def planned_clusters(spec: SketchSpec) -> int | None:
    """The largest number of clusters that a turnkey plan was made for, as m tells it.

    Parameters
    ----------
    spec : SketchSpec
        Any.

    Returns
    -------
    n_clusters : int or None
        None for a spec made by hand, or with an m of its own: who chose it knows why.
    """
    if spec.axes is not None:
        cells = spec.cells
        has_clusters = cells is not None and cells.probes == 1 and cells.n_rows >= FEW_ROWS
        return clusters_served(spec) if has_clusters else None
    k, m = clusters_served(spec), _size_of(spec)
    is_usual = m == sketch_size_for(k, spec.n_features)  # the fewest of all, 50, may be meant
    return k if _is_turnkey(spec) and is_usual and k > 0 else None


def _is_turnkey(spec: SketchSpec) -> bool:
    return spec.waves is not None and spec.waves.beyond == FAR_SHARE


def plans_waves_alone(spec: SketchSpec) -> bool:
    """Whether a spec is a turnkey plan without cells, and not for private releases."""
    return spec.cells is None and spec.rows.ball is None and _is_turnkey(spec)


def _moments(
    rows: FloatArray, shares: FloatArray, columns: Sequence[str] | None
) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of the columns; 0 for constant ones."""
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    if largest.max() > LIMIT:
        j = int(np.argmax(largest))
        msg = (
            f"cannot plan for numbers as large as {largest[j]:.3g} in "
            f"{column_in_words(j, columns)}: a spec reaches {LIMIT:g}. Divide the column by "
            "a constant."
        )
        raise DataError(msg)
    center = _mean(rows, shares)
    farthest = max(float(np.abs(rows[part] - center).max()) for part in _parts(rows))
    unit = max(farthest, np.finfo(np.float64).tiny)
    squares = [_mean(np.square((rows[p] - center) / unit), shares[p]) for p in _parts(rows)]
    deviations = np.sqrt(np.sum(squares, axis=0)) * unit
    deviations[deviations <= CONSTANT * largest] = 0.0
    if 0.0 < deviations.max() < 1.0 / LIMIT:
        msg = (
            f"cannot plan for columns that vary by {deviations.max():.3g} at most: a spec reaches "
            f"down to {1 / LIMIT:g}. Multiply the columns by a constant."
        )
        raise DataError(msg)
    return center, deviations


def check_standardize(caller: str, value: Any) -> bool | str:
    """Whether each column has a scale of its own, and which."""
    return "robust" if value == "robust" else check_flag(caller, "standardize", value)


def _quartile_widths(rows: FloatArray, deviations: FloatArray) -> FloatArray:
    """Distances of the quartiles, as standard deviations of a normal law that has them.

    Of a column most of whose values are equal, the standard deviation.
    """
    low, high = np.quantile(rows, [0.25, 0.75], axis=0)
    widths = (high - low) / QUARTILES_OF_NORMAL
    return np.where(widths > CONSTANT * np.abs(rows).max(axis=0), widths, deviations)


def _scale(
    center: FloatArray,
    deviations: FloatArray,
    n: int,
    *,
    standardize: bool,
    recipe: Recipe | None = None,
) -> FloatArray:
    """What divides each column, so that the total variance is 1; shape (d,)."""
    varies = deviations > 0.0
    if not varies.any():
        if n > 1:
            msg = (
                f"all {n} rows of the sample are equal, so nothing is known about distances. "
                "If not all of the data is like that, plan on a sample across it."
            )
            warn(msg, PlanWarning)
        size = float(np.abs(center).max())
        return np.full(len(center), rounded(size) if size > 1.0 / LIMIT else 1.0)
    if standardize and recipe is not None:  # the columns of one part share one scale
        shared = np.sqrt(np.bincount(recipe.groups, np.square(deviations)))[recipe.groups]
        widths = np.where(shared > 0.0, shared, 1.0) * math.sqrt(len(recipe.parts))
        return np.array([rounded(width) for width in widths])
    if standardize:
        widths = np.where(varies, deviations, 1.0) * math.sqrt(varies.sum())
        return np.array([rounded(width) for width in widths])
    return np.full(len(center), rounded(math.sqrt(np.square(deviations).sum())))


def _hint_at_units(deviations: FloatArray, columns: Sequence[str] | None) -> None:
    wide = int(np.argmax(deviations))
    narrow = int(np.argmin(np.where(deviations > 0.0, deviations, np.inf)))
    times = float(deviations[wide]) / (float(deviations[narrow]) or math.inf)
    if times >= FOREIGN:
        msg = (
            f"{column_in_words(wide, columns)} spreads {times:.1g} times as widely as "
            f"{column_in_words(narrow, columns)}: if it is an identifier, leave it out; otherwise "
            "pass standardize=True (--scale standard)."
        )
        warn(msg, ScaleHint)
    elif times >= UNEVEN:
        msg = (
            f"{column_in_words(wide, columns)} varies by {deviations[wide]:.3g} and "
            f"{column_in_words(narrow, columns)} by {deviations[narrow]:.3g}: distances hardly see "
            "the latter. If their units differ, pass standardize=True (--scale standard)."
        )
        warn(msg, ScaleHint)


def _bandwidths(normalised: FloatArray, shares: FloatArray, k: int, farthest: float) -> Range:
    """Lowest and highest bandwidth, in the units of x'."""
    d = normalised.shape[1]
    rq = far_radius(normalised, shares)
    rw = cluster_radius(normalised, shares, k)
    high = HIGH * k ** (-1.0 / d) * rq
    low = max(LOW * rw * math.sqrt(rq), LEAST)
    if low < high / RANGE:  # not below what far rows need: the integers reach so far
        reaching = 2.0 * farthest * CAP * math.sqrt(d) / 2.0 ** (40 - MOMENT_BITS)
        low = min(max(low, reaching), high / RANGE)
    return Range(rounded(low), rounded(max(high, RANGE * low)), FAR_SHARE)


def far_radius(rows: FloatArray, shares: FloatArray) -> float:
    """Root of the total variance of rows that count min(64, 1/2 + |x|^2 / 2) times; 1 if it is 0.

    So the radius is also that of the space which few rows far out fill.
    """
    weights = shares * np.minimum(np.square(rows).sum(axis=1) * 0.5 + 0.5, CAP)
    weights /= weights.sum()
    return math.sqrt(_mean(np.square(rows - _mean(rows, weights)), weights).sum()) or 1.0


def _warn_of_tails(radius: float) -> None:
    """Warn of rows that waves alone do not suit."""
    if radius > HEAVY:
        msg = (
            "a few rows lie far from all others, or tails are heavy: counted by their squared "
            f"distance, the rows spread {radius:.3g} times as widely, and waves alone lose "
            f"clusters from {HEAVY:g} on. Plan with cells, and take a decoder that reads them, or "
            "leave out rows that are faults."
        )
        warn(msg, PlanWarning)


def _farthest(
    normalised: FloatArray,
    center: FloatArray,
    scale: FloatArray,
    bounds: tuple[FloatArray, FloatArray] | None,
) -> float:
    """The largest norm of x' to be expected: of rows seen, and some way beyond the sample."""
    expected = MARGIN * math.sqrt(np.square(normalised).sum(axis=1).max())
    if bounds is None:
        return expected
    with np.errstate(over="ignore"):
        ends = [np.abs(end - center) / scale for end in bounds]
        return max(expected, math.sqrt(np.square(np.maximum(*ends)).sum()))


def _mean(rows: FloatArray, shares: FloatArray) -> FloatArray:
    """Weighted mean of the rows, in an order of summation that no number of threads changes."""
    mean: FloatArray = np.einsum("i,ij->j", shares, rows)
    return mean


def rounded(number: float) -> float:
    """The number with six digits."""
    return float(f"{number:.{DIGITS}g}")


def rounded_center(center: FloatArray, scale: FloatArray) -> FloatArray:
    """The center on a grid of 1e-6 of the scale."""
    digits = (DIGITS - math.floor(math.log10(width)) for width in scale)
    return np.array([round(c, n) for c, n in zip(center.tolist(), digits, strict=True)])


# A plan for drift alone: waves of one bandwidth, and what sampling does to them.
#
# Symbols
# -------
# lambda    eigenvalues of the covariance of the 2 m real features of a row

DRIFT_BANDWIDTH = 0.7  # in the median distance of two rows: docs/drift.md has the measurements
DRIFT_ROWS = 4096
"""Rows that a plan for drift looks at."""

FEWEST_FOR_DRIFT = 100  # rows, to know how sketches of them vary
LEADING = 32  # eigenvalues that are kept one by one
SPECTRUM_DIGITS = 4
FAR_CENTER = 16.0  # median distances from 0 from which on phases of float32 need a center


def plan_drift_rows(
    rows: FloatArray,
    *,
    sketch_size: int,
    seed: int = 0,
    columns: Sequence[str] | None = None,
    standardize: bool = False,
    metric: str = "euclidean",
) -> SketchSpec:
    r"""The spec that finds drift in data that looks like these rows, and does nothing else.

    One bandwidth, 0.7 times the median distance of two rows; no cells. The center is left
    out unless the rows lie far from 0: distances do not need it, and it takes d numbers.

    Parameters
    ----------
    rows : array of shape (n, d)
        The sample, in no order: finite numbers, n >= 100.
    sketch_size : int
        Number m of frequencies.
    seed : int, default=0
        Of the frequencies.
    columns : sequence of str, optional
        Names of the columns.
    standardize : bool, default=False
        Give every column a scale of its own, instead of one for all.
    metric : {"euclidean", "cosine"}
        That of the spec; for "cosine", the rows have length 1 already.

    Returns
    -------
    spec : SketchSpec
        With a spectrum. O(n m (d + m) + m^3).
    """
    n, d = rows.shape
    if n < FEWEST_FOR_DRIFT:
        msg = (
            "a plan for drift must know how much samples of the data differ, and "
            f"{counted(n, 'row')} cannot tell. Give {FEWEST_FOR_DRIFT} at least, better "
            f"{DRIFT_ROWS:,}."
        )
        raise DataError(msg)
    center, deviations = _moments(rows, np.full(n, 1.0 / n), columns)
    check_flag("plan_drift", "standardize", standardize)
    per_column = np.where(deviations > 0.0, deviations, 1.0) if standardize else np.ones(d)
    distance = _median_distance((rows - center) / per_column)
    if not distance > 0.0:
        msg = (
            f"most of the {n} rows of the sample are equal, so nothing is known about distances. "
            "Plan on a sample across the data."
        )
        raise DataError(msg)
    scale = np.array([rounded(width) for width in per_column * distance])
    is_far = math.sqrt(np.square(center / scale).sum()) > FAR_CENTER
    own = Rows(
        d,
        None if columns is None else tuple(columns),
        tuple(rounded_center(center, scale).tolist()) if is_far else None,
        tuple(scale.tolist()) if standardize else float(scale[0]),
        unit_for(DRIFT_BANDWIDTH, d),
        "sphere" if metric == "cosine" else None,
    )
    waves = Waves(sketch_size, DRIFT_BANDWIDTH, seed, structured=d >= MIN_FEATURES)
    spec = SketchSpec.of(own, waves, spread=None)
    normalised = (rows - spec.rows.center_vector) * spec.rows.per_unit
    within = np.square(normalised).sum(axis=1) < spec.reach**2
    features = select_kernel().features(normalised[within], spec.frequencies.turns)
    noise = measure_spectrum(np.hstack([features.real, features.imag]))
    return spec.replaced(noise=noise)


def _median_distance(rows: FloatArray) -> float:
    """Median of the distances of disjoint pairs of rows; pairs that are equal do not count."""
    half = len(rows) // 2
    squares = np.square(rows[:half] - rows[half : 2 * half]).sum(axis=1)
    squares = squares[squares > 0.0]
    return float(np.sqrt(np.median(squares))) if len(squares) else 0.0


@one_blas_thread
def measure_spectrum(features: FloatArray) -> Spectrum:
    r"""Of the features of n rows, shape (n, 2 m): O(n m^2 + m^3).

    A sample makes large eigenvalues larger and small ones smaller. What most of them leave in the
    law of a distance is the sum of their squares, of which there is an unbiased estimate: with
    S the sample's covariance and :math:`Q = \sum_i |h_i|^4 / (n - 1)`,

    .. math:: \frac{n - 1}{n (n-2) (n-3)} \left((n-1)(n-2)\, \mathrm{tr} S^2
              + (\mathrm{tr} S)^2 - n Q\right)
    """
    n = len(features)
    h = features - features.mean(axis=0)
    wide = h if n >= h.shape[1] else h.T  # the smaller of two matrices with the same eigenvalues
    values = np.linalg.eigvalsh(wide.T @ wide / (n - 1))[::-1]
    total, fourth = float(values.sum()), float((np.square(h).sum(axis=1) ** 2).sum()) / (n - 1)
    squares = (n - 1) * (n - 2) * float(np.square(values).sum()) + total**2 - n * fourth
    squares *= (n - 1) / (n * (n - 2) * (n - 3))
    found = _find_leading(values / total, squares / total**2, n, h.shape[1])
    return replace(found, trace=min(1.0, rounded(total)))


def _find_leading(shares: FloatArray, squares: float, n: int, n_all: int) -> Spectrum:
    """The shares of a sample that are larger than noise makes them, and what the others have.

    n rows whose covariance has f equal eigenvalues show some up to (1 + sqrt(f / n))^2 times as
    large (Marchenko & Pastur 1967); to one that is larger they add their sum over n.
    """
    spectrum = Spectrum((), _freedom(1.0, squares, n_all))
    for _ in range(LEADING):
        freedom, k = spectrum.freedom, len(spectrum.leading)
        edge = spectrum.rest / freedom * (1.0 + math.sqrt(freedom / n)) ** 2
        kept = shares[:LEADING][shares[:LEADING] > max(edge, LEAST**2)]
        kept = kept - max(0.0, 1.0 - kept.sum()) / n
        leading = tuple(float(f"{share:.{SPECTRUM_DIGITS}g}") for share in kept)
        rest, rest_squares = 1.0 - sum(leading), squares - sum(share**2 for share in leading)
        if len(leading) <= k or (rest > LEAST and rest_squares <= 0.0):
            break
        n_rest = max(1, n_all - len(leading))
        spectrum = Spectrum(leading, _freedom(rest, rest_squares, n_rest))
    return spectrum


def _freedom(total: float, squares: float, most: int) -> float:
    """How many equal numbers have this sum and sum of squares: from 1 to the most there are."""
    if total <= LEAST:
        return 1.0
    found = min(max(total**2 / max(squares, 1e-12), 1.0), float(most))
    return float(f"{found:.{SPECTRUM_DIGITS}g}")
