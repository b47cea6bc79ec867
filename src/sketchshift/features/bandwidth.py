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
from collections.abc import Callable

import numpy as np

from sketchshift._typing import Float32Array, FloatArray
from sketchshift.errors import DataError
from sketchshift.features.frequencies import draw_frequencies
from sketchshift.features.plan import far_radius
from sketchshift.kernels import BITS, PHASE_LIMIT, select_kernel

__all__ = [
    "BLOCKS",
    "GRID",
    "MAX_ROWS",
    "N_BINS",
    "RULES",
    "SQUARED_LENGTH",
    "choose_bandwidth",
    "entropy_rule",
    "radius_rule",
    "regression_rule",
]

# The rules by which a bandwidth is chosen, each on rows of total variance 1.
#
# Called by ``features.bandwidth`` alone. Small sketches are taken with the kernel that takes
# the large ones.
#
# Symbols
# -------
# n, d, k   rows of the sample, columns, clusters
# m         frequencies of a small sketch
# R         length of a frequency at bandwidth 1
# modulus   abs(1/n sum_i e^{i <omega, x_i>}): of an entry of the sketch, without 1 / sqrt(m)

CLUSTERS = 10  # where the number of clusters is not given
SHARE = 0.9  # of the radius, for one cluster: docs/bandwidth.md has the measurements

BLOCKS = 30
"""Blocks of frequencies of like length, of which the highest modulus is fitted."""

SQUARED_LENGTH = 2.303915777583499
"""Mean of R^2 under the law "adapted_radius"."""

ROUNDS = 10  # of sketch and fit
START = 0.3  # cluster_std at first, as a share of the data's own
LEAST = 1e-3  # cluster_std never goes below this share: such clusters are points
STEPS = np.geomspace(0.05, 5.0, 61)  # factors by which cluster_std may change in one round
TOLERANCE = 1e-10  # of the factor

GRID = np.geomspace(2.0, 0.02, 41)
"""Bandwidths at which entropies are compared; of equal ones the widest is taken."""

N_BINS = 20
"""Bins of the histogram of the moduli over [0, 1]."""

_Rule = Callable[[FloatArray, int | None, int, int], float]


def radius_rule(rows: FloatArray, k: int | None, m: int, seed: int) -> float:
    """0.9 k^(-1/d) times the radius of the rows, as plans measure it.

    :math:`k^{-1/d}` is the share of the radius that one of k equal parts of space has.
    """
    radius = far_radius(rows, np.full(len(rows), 1.0 / len(rows)))
    return SHARE * float((k or CLUSTERS) ** (-1.0 / rows.shape[1])) * radius


def regression_rule(rows: FloatArray, k: int | None, m: int, seed: int) -> float:
    r"""The width s of a Gaussian cluster, from how the moduli decay with frequency.

    Frequencies of length R / s are sketched, sorted by length and cut into 30 blocks; the
    curve :math:`e^{-R^2 \hat s^2 / 2}` through the highest modulus of each block gives the
    next s (Keriven, Bourrier, Gribonval & Pérez 2018, "Sketching for large-scale learning of
    mixture models", section 3.3.3). That paper draws lengths of mean square 2.3 / s^2, whatever
    the dimension; Gaussian frequencies have d / bandwidth^2. Equating them gives
    bandwidth = s sqrt(d / 2.3).
    """
    d = rows.shape[1]
    turns = draw_frequencies(d, m, 1.0, law="adapted_radius", seed=seed).turns.astype(np.float64)
    lengths = np.linalg.norm(turns, axis=0)
    order = np.argsort(lengths)
    turns, lengths = turns[:, order], lengths[order]
    narrow = rows.astype(np.float32)
    reach = float(np.linalg.norm(rows, axis=1).max() * lengths[-1])
    least = max(LEAST / math.sqrt(d), 2.0 * reach / PHASE_LIMIT)
    cluster_std = START / math.sqrt(d)
    for _ in range(ROUNDS):
        moduli = _moduli(narrow, turns / cluster_std)
        blocks = np.array_split(np.arange(m), BLOCKS)
        highest = [block[np.argmax(moduli[block])] for block in blocks]
        factor = _fitted_decay(2.0 * math.pi * lengths[highest], moduli[highest])
        cluster_std = max(cluster_std * factor, least)
    return cluster_std * math.sqrt(d / SQUARED_LENGTH)


def _fitted_decay(R: FloatArray, heights: FloatArray) -> float:
    """The a within STEPS that makes exp(-R^2 a^2 / 2) nearest to the heights."""
    from scipy.optimize import minimize_scalar

    def error(a: float) -> float:
        return float(np.square(heights - np.exp(-0.5 * np.square(a * R))).sum())

    best = int(np.argmin([error(a) for a in STEPS]))
    bounds = (STEPS[max(best - 1, 0)], STEPS[min(best + 1, len(STEPS) - 1)])
    options = {"xatol": TOLERANCE}
    return float(minimize_scalar(error, bounds=bounds, method="bounded", options=options).x)


def entropy_rule(rows: FloatArray, k: int | None, m: int, seed: int) -> float:
    """The bandwidth whose sketch has the most varied moduli.

    Wide kernels make all of them 1, narrow ones 0; between, the histogram over [0, 1] with
    the largest entropy is taken (Giffon & Gribonval 2022, "Compressive clustering with an
    optical processing unit").
    """
    turns = draw_frequencies(rows.shape[1], m, 1.0, seed=seed).turns.astype(np.float64)
    narrow = rows.astype(np.float32)
    return float(GRID[np.argmax([_entropy(_moduli(narrow, turns / width)) for width in GRID])])


def _entropy(moduli: FloatArray) -> float:
    counts, _ = np.histogram(moduli, bins=N_BINS, range=(0.0, 1.0))
    shares = counts[counts > 0] / len(moduli)
    return -float(shares @ np.log(shares))


def _moduli(rows: Float32Array, turns: FloatArray) -> FloatArray:
    """Moduli of the sketch of the rows: O(n m d), by the kernel that sketches."""
    totals = np.zeros((2, turns.shape[1]), dtype=np.int64)
    accumulate = select_kernel().dense(np.ascontiguousarray(turns, dtype=np.float32))
    accumulate(np.ascontiguousarray(rows), np.ones(len(rows), dtype=np.float32), totals)
    moduli: FloatArray = np.hypot(totals[0], totals[1]) * 2.0**-BITS / len(rows)
    return np.minimum(moduli, 1.0)


RULES: dict[str, _Rule] = {
    "sketchshift": radius_rule,
    "regression": regression_rule,
    "entropy": entropy_rule,
}
"""Rules by name: from rows of total variance 1, k, m and a seed to a bandwidth."""

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
