"""One bandwidth from a few rows.

Takes rows that somebody else drew; hands a number in their units. A rule sees the rows moved
and scaled to mean 0 and total variance 1 and answers in that unit, so that the bandwidth
grows with the data and does not move with it.

Symbols
-------
n, d, k   rows of the sample, columns, clusters
m         frequencies of a small sketch
r0        root of the total variance of the rows
"""

from __future__ import annotations

import math

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.errors import DataError
from sketchshift.features.bandwidth_rules import RULES

__all__ = ["MAX_ROWS", "choose_bandwidth"]

MAX_ROWS = 10_000
"""More rows are not needed; with many more the phases of far ones would leave their range."""

CONSTANT = 1e-13  # a deviation below this share of the largest number is rounding
LOWEST, HIGHEST = 1e-20, 1e20  # what a spec takes


def choose_bandwidth(
    rows: FloatArray,
    *,
    rule: str = "sketchshift",
    n_clusters: int | None = None,
    sketch_size: int = 500,
    seed: int = 0,
) -> float:
    """The bandwidth that a rule gives to these rows, in their units.

    Parameters
    ----------
    rows : array of shape (n, d)
        Finite numbers that are not all equal, n at most ``MAX_ROWS``.
    rule : {"sketchshift", "regression", "entropy"}
        One of ``RULES``.
    n_clusters : int or None
        Number k of clusters. The rule "sketchshift" uses it, and takes 10 for None.
    sketch_size : int, default=500
        Number m of frequencies of the small sketches of the other two, at least 30.
    seed : int, default=0
        Of these frequencies.

    Returns
    -------
    bandwidth : float
        For a spec with the law "gaussian". O(n d), or O(n m d) for each small sketch: 10 for
        "regression", 41 for "entropy".
    """
    normalised, r0 = _normalised(rows)
    bandwidth = r0 * RULES[rule](normalised, n_clusters, sketch_size, seed)
    if not LOWEST <= bandwidth <= HIGHEST:
        msg = (
            f"the rows vary by {r0:.3g}, which makes a bandwidth of {bandwidth:.3g}, and a spec "
            f"takes {LOWEST:g} to {HIGHEST:g}. Multiply the data by a constant."
        )
        raise DataError(msg)
    return bandwidth


def _normalised(rows: FloatArray) -> tuple[FloatArray, float]:
    """Rows with mean 0 and total variance 1, and r0."""
    n, largest = len(rows), float(np.abs(rows).max(initial=0.0))
    if not math.isfinite(largest):
        row = int(np.argmin(np.isfinite(rows).all(axis=1)))
        raise DataError(f"row {row} of the sample holds NaN or infinity. Leave such rows out.")
    spread = 0.0
    if largest > 0.0:
        rows = rows / largest  # their squares do not overflow
        rows = rows - rows.mean(axis=0)
        spread = math.sqrt(np.square(rows).sum() / n)
    if spread <= CONSTANT:
        fact = {0: "there are no rows", 1: "there is one row"}.get(n, f"all {n} rows are equal")
        msg = (
            f"{fact}, so there are no distances to choose a bandwidth by. Take a sample across "
            "the data, or give the bandwidth yourself."
        )
        raise DataError(msg)
    return rows / spread, spread * largest
