"""Two published rules for one bandwidth, beside ``ss.decoders.bandwidth``.

Both look at the moduli of small sketches: abs(1/n sum_i e^{i <omega, x_i>}) is 1 at low frequencies
and decays as clusters are wide.

Symbols
-------
n, d      rows, columns
m         frequencies of a small sketch
R         length of a frequency at bandwidth 1
r0        root of the total variance of the rows
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from sketchshift import SketchSpec, sketch
from sketchshift.features import draw_frequencies

__all__ = ["GRID", "N_BINS", "SQUARED_LENGTH", "entropy_rule", "regression_rule"]

FloatArray: TypeAlias = NDArray[np.float64]

BLOCKS = 30  # of frequencies of like length, of which the highest modulus is fitted
SQUARED_LENGTH = 2.303915777583499
"""Mean of R^2 under the law "adapted_radius"."""
ROUNDS = 10  # of sketch and fit
START = 0.3  # cluster_std at first, as a share of the data's own
LEAST = 1e-3  # cluster_std never goes below this share: such clusters are points
STEPS = np.geomspace(0.05, 5.0, 61)  # factors by which cluster_std may change in one round

GRID = np.geomspace(2.0, 0.02, 41)
"""Bandwidths at which entropies are compared, in r0; of equal ones the widest is taken."""
N_BINS = 20
"""Bins of the histogram of the moduli over [0, 1]."""


def regression_rule(X: FloatArray, *, sketch_size: int = 500, seed: int = 0) -> float:
    r"""The bandwidth of clusters as wide as the decay of the moduli with frequency says.

    Frequencies of length R / s are sketched, sorted by length and cut into 30 blocks; the
    curve :math:`e^{-R^2 \hat s^2 / 2}` through the highest modulus of each block gives the
    next s (Keriven, Bourrier, Gribonval & Perez 2018, "Sketching for large-scale learning of
    mixture models", section 3.3.3). That paper draws lengths of mean square 2.3 / s^2, whatever
    the dimension; Gaussian frequencies have d / bandwidth^2. Equating them gives
    bandwidth = s sqrt(d / 2.3).

    Parameters
    ----------
    X : array of shape (n, d)
        Rows that are not all equal.
    sketch_size : int
        m, at least 30.
    seed : int
        Of the frequencies.

    Returns
    -------
    bandwidth : float
        Ten sketches, O(n m d) each.
    """
    rows, r0 = _normalised(X)
    d, law = X.shape[1], "adapted_radius"
    turns = draw_frequencies(d, sketch_size, (1.0, 1.0), law=law, seed=seed).turns.astype(
        np.float64
    )
    lengths = 2.0 * math.pi * np.linalg.norm(turns, axis=0)
    blocks = np.array_split(np.argsort(lengths), BLOCKS)
    cluster_std, least = START / math.sqrt(d), LEAST / math.sqrt(d)
    for _ in range(ROUNDS):
        moduli = _moduli(rows, SketchSpec(d, sketch_size, cluster_std, law=law, seed=seed))
        highest = [block[np.argmax(moduli[block])] for block in blocks]
        factor = _fitted_decay(lengths[highest], moduli[highest])
        cluster_std = max(cluster_std * factor, least)
    return r0 * cluster_std * math.sqrt(d / SQUARED_LENGTH)


def _fitted_decay(R: FloatArray, heights: FloatArray) -> float:
    """The a within STEPS that makes exp(-R^2 a^2 / 2) nearest to the heights."""

    def error(a: float) -> float:
        return float(np.square(heights - np.exp(-0.5 * np.square(a * R))).sum())

    best = int(np.argmin([error(a) for a in STEPS]))
    bounds = (STEPS[max(best - 1, 0)], STEPS[min(best + 1, len(STEPS) - 1)])
    return float(minimize_scalar(error, bounds=bounds, options={"xatol": 1e-10}).x)


def entropy_rule(X: FloatArray, *, sketch_size: int = 500, seed: int = 0) -> float:
    """The bandwidth whose sketch has the most varied moduli.

    Wide kernels make all of them 1, narrow ones 0; between, the histogram over [0, 1] with
    the largest entropy is taken (Giffon & Gribonval 2022, "Compressive clustering with an
    optical processing unit").

    Parameters
    ----------
    X : array of shape (n, d)
        Rows that are not all equal.
    sketch_size : int
        m.
    seed : int
        Of the frequencies.

    Returns
    -------
    bandwidth : float
        Forty-one sketches, O(n m d) each.
    """
    rows, r0 = _normalised(X)
    specs = [SketchSpec(X.shape[1], sketch_size, width, seed=seed) for width in GRID.tolist()]
    return r0 * float(GRID[np.argmax([_entropy(_moduli(rows, spec)) for spec in specs])])


def _entropy(moduli: FloatArray) -> float:
    counts, _ = np.histogram(moduli, bins=N_BINS, range=(0.0, 1.0))
    shares = counts[counts > 0] / len(moduli)
    return -float(shares @ np.log(shares))


def _moduli(rows: FloatArray, spec: SketchSpec) -> FloatArray:
    z = sketch(rows, spec).z
    return np.minimum(np.abs(z) * math.sqrt(len(z)), 1.0)


def _normalised(X: FloatArray) -> tuple[FloatArray, float]:
    """Rows with mean 0 and total variance 1, and r0."""
    centred = X - X.mean(axis=0)
    r0 = math.sqrt(np.square(centred).sum() / len(X))
    return centred / r0, r0
