r"""Whether rows could have left the integers of a sketch.

What is checked holds for the rows of any data, for sums of such sketches and for differences that
leave rows. It takes O(m + d^2), and not all that is impossible is found; but weights are positive
where rows are, and means, variances and z are numbers that later code can work with.

Symbols
-------
u         rows that were added, a whole weight counted as often as it says
W, F      weight, fine weight (2**-22 and 2**-52)
S, R, Q   sums, their rests and those of rows of partial weight (1 and 2**-20 steps)
P         products (squared steps)
"""

from __future__ import annotations

import numpy as np

from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, LIMB_BITS
from sketchshift.sketch.totals import CAPACITY_BITS, WEIGHT_BITS, Totals, WideArray

__all__ = ["is_sound"]

REACH_BITS = 40  # a row of weight 1 lies within 2**REACH_BITS steps of the center
LARGEST = 2 ** (CAPACITY_BITS + BITS)


def is_sound(totals: Totals, spec: SketchSpec) -> bool:
    """Whether rows could have left these totals, as far as that is cheap to see.

    Parameters
    ----------
    totals : Totals
        Of the shapes that the spec asks for.
    spec : SketchSpec
        What was summed.

    Returns
    -------
    is_sound : bool
        True for all rows; false for most of what a forger would write.
    """
    weights = totals.measures[:, 0]
    is_in_range = (
        0 <= totals.count < LARGEST
        and 0 <= totals.n_invalid < LARGEST
        and all(0 <= weight < LARGEST for weight in weights)
    )
    if not is_in_range or (totals.count == 0 and totals.measures.any()):
        return False
    u = totals.count + (weights[0] >> BITS)
    exponents = (0, spec.tilt_exponent)
    return (
        all(
            _is_sound_measure(measure, u, exponent, spec)
            for measure, exponent in zip(totals.measures, exponents, strict=False)
        )
        and _are_sound_waves(totals, u)
        and _is_sound_tilt(totals, u, spec)
    )


def _are_sound_waves(totals: Totals, u: int) -> bool:
    """A row adds a point of the disk whose radius is its weight, rounded in both parts."""
    weight = int(totals.measures[-1, 0])
    if int(totals.waves.max()) > weight or int(totals.waves.min()) < -weight:
        return False
    return bool(np.hypot(*totals.waves.astype(np.float64)).max() <= 1.001 * weight + 2.0 * u)


def _is_sound_tilt(totals: Totals, u: int, spec: SketchSpec) -> bool:
    """Tilts are from 1/2 to the cap, and rounded: weights and squares, too, lie so."""
    if spec.tilt is None:
        return True
    plain, tilted, cap = totals.measures[0, 1], totals.measures[1, 1], 2**spec.tilt_exponent
    if plain > 2 * tilted + 3 * u or tilted > cap * plain + (2 * cap + 1) * u:
        return False
    squares, weighted = (_squares(measure, spec) for measure in totals.measures)
    is_low, is_high = squares > 8 * (weighted + u), weighted > 4 * cap * (squares + u)
    return not bool(is_low.any() or is_high.any())


def _squares(measure: WideArray, spec: SketchSpec) -> WideArray:
    """Those of each column, among the products."""
    d, products = spec.n_features, measure[2 + 3 * spec.n_features :]
    k = np.arange(d)
    return products[k * d - k * (k - 1) // 2] if spec.has_full_covariance else products


def _is_sound_measure(measure: WideArray, u: int, exponent: int, spec: SketchSpec) -> bool:
    """Each weight against the other, sums within reach, products as of real numbers."""
    d, (W, F) = spec.n_features, measure[:2]
    S, R, Q = measure[2 : 2 + 3 * d].reshape(3, d)
    unit = 2 ** (WEIGHT_BITS - BITS + exponent)
    if F < 0 or abs(W * unit - F) > u * unit:
        return False
    rests = max(abs(R).max(), abs(Q).max())
    sums = abs(S * 2**LIMB_BITS + R).max()
    in_reach = F * 2 ** (REACH_BITS + LIMB_BITS - WEIGHT_BITS) + u * 2**9  # float64 rounds F x'
    if rests > u * 2 ** (LIMB_BITS - 1) or sums > in_reach:
        return False
    return _are_sound_products(measure, S * 2**LIMB_BITS + Q, u, spec)


def _are_sound_products(measure: WideArray, sums: WideArray, u: int, spec: SketchSpec) -> bool:
    """Squares are positive and within reach; Cauchy and Schwarz hold, but for rounding."""
    d, F, squares = spec.n_features, measure[1], _squares(measure, spec)
    largest = F * 2 ** (2 * REACH_BITS - WEIGHT_BITS) + u * 2 ** (REACH_BITS + 3)
    if squares.min() < 0 or squares.max() > largest:
        return False
    rounded = np.maximum(abs(sums) - u * 2**9, 0)
    if (rounded**2 * 2 ** (WEIGHT_BITS - 2 * LIMB_BITS) > (F + u) * (2 * squares + u)).any():
        return False
    if not spec.has_full_covariance:
        return True
    (i, j), products = np.triu_indices(d), measure[2 + 3 * d :]
    return not bool((squares[i] * squares[j] < products**2).any())
