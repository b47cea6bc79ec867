"""Mean and covariance from the exact integers of a measure, in the units of the data."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import FloatArray, IntArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import LIMB_BITS, MOMENT_BITS
from sketchshift.sketch.totals import WEIGHT_BITS, WideArray

__all__ = ["covariance_of", "mean_of", "variance_of"]


def mean_of(measure: WideArray, spec: SketchSpec) -> FloatArray:
    """Mean in the units of the data; NaN when nothing has weight.

    The finer weight counts 2**-WEIGHT_BITS, the sums with their rests moment_unit /
    2**(MOMENT_BITS + LIMB_BITS): the division of Python's integers is rounded once.
    """
    d, weight = spec.n_features, measure[1]
    if weight == 0:
        return np.full(d, np.nan)
    sums = measure[2 : 2 + d] * 2**LIMB_BITS + measure[2 + d : 2 + 2 * d]
    factor = spec.moment_unit * 2.0 ** (WEIGHT_BITS - MOMENT_BITS - LIMB_BITS)
    quotients = np.array([total / weight for total in sums])
    return spec.center_vector + spec.scale_vector * (quotients * factor)


def covariance_of(measure: WideArray, spec: SketchSpec) -> FloatArray:
    """Covariance in the units of the data; NaN where it is not kept or nothing has weight."""
    d = spec.n_features
    covariance = np.full((d, d), np.nan)
    if spec.has_full_covariance:
        i, j = np.triu_indices(d)
        values = _central(measure, spec, i, j, np.arange(len(i)))
        covariance[i, j] = covariance[j, i] = values
    np.fill_diagonal(covariance, variance_of(measure, spec))
    return covariance


def variance_of(measure: WideArray, spec: SketchSpec) -> FloatArray:
    """Variances in the units of the data; NaN when nothing has weight."""
    k = np.arange(spec.n_features)
    # where column k's square stands among the products
    at = k * spec.n_features - k * (k - 1) // 2 if spec.has_full_covariance else k
    values = _central(measure, spec, k, k, at)
    return np.maximum(values, 0.0)  # rounded weights may leave -1e-10 for 0


def _central(
    measure: WideArray, spec: SketchSpec, i: IntArray, j: IntArray, at: IntArray
) -> FloatArray:
    """Covariances of columns i and j, whose products stand ``at``.

    With W the weight, s the sums, p the products, (W p - s s^T) / W^2 in integers, so that no
    digit cancels however far the data lies from the center. Rows of weight 1 enter s and p by
    the same rounded numbers; rows of partial weight by sums with their rests, since their
    products are of other numbers, those times the root of the weight.
    """
    d, weight = spec.n_features, measure[1]
    if weight == 0:
        return np.full(len(i), np.nan)
    sums = measure[2 : 2 + d] * 2**LIMB_BITS + measure[2 + 2 * d : 2 + 3 * d]
    products = measure[2 + 3 * d :]
    # in one unit: W counts 2**WEIGHT_BITS a row, s 2**LIMB_BITS a step, p one a squared step
    of_products, of_sums = weight * 2 ** (2 * LIMB_BITS), 2**WEIGHT_BITS
    denominator = weight * weight
    values = np.array(
        [
            (of_products * products[n] - of_sums * sums[a] * sums[b]) / denominator
            for a, b, n in zip(i, j, at, strict=True)
        ]
    )
    step = spec.moment_unit * 2.0 ** (-MOMENT_BITS - LIMB_BITS)
    factor = step**2 * 2.0**WEIGHT_BITS
    return values * factor * spec.scale_vector[i] * spec.scale_vector[j]
