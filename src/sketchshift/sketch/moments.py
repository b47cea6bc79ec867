"""Mean and covariance from the exact integers of a measure, in the units of the data."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import FloatArray, IntArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, LIMB_BITS, MOMENT_BITS
from sketchshift.sketch.totals import WideArray

__all__ = ["covariance_of", "mean_of", "variance_of"]


def mean_of(measure: WideArray, spec: SketchSpec, *, exponent: int) -> FloatArray:
    """Mean in the units of the data; NaN when nothing has weight.

    The weight is in units of 2**(exponent - BITS), the sums in units of moment_unit /
    2**MOMENT_BITS: the division of Python's integers is rounded once.
    """
    d, weight = spec.n_features, measure[0]
    if weight == 0:
        return np.full(d, np.nan)
    sums = measure[1 : 1 + d] * 2**LIMB_BITS + measure[1 + d : 1 + 2 * d]
    factor = spec.moment_unit * 2.0 ** (BITS - MOMENT_BITS - LIMB_BITS - exponent)
    quotients = np.array([total / weight for total in sums])
    return spec.center_vector + spec.scale_vector * (quotients * factor)


def covariance_of(measure: WideArray, spec: SketchSpec, *, exponent: int) -> FloatArray:
    """Covariance in the units of the data; NaN where it is not kept or nothing has weight."""
    d = spec.n_features
    covariance = np.full((d, d), np.nan)
    if spec.has_full_covariance:
        i, j = np.triu_indices(d)
        values = _central(measure, spec, exponent, i, j, np.arange(len(i)))
        covariance[i, j] = covariance[j, i] = values
    np.fill_diagonal(covariance, variance_of(measure, spec, exponent=exponent))
    return covariance


def variance_of(measure: WideArray, spec: SketchSpec, *, exponent: int) -> FloatArray:
    """Variances in the units of the data; NaN when nothing has weight."""
    k = np.arange(spec.n_features)
    # where column k's square stands among the products
    at = k * spec.n_features - k * (k - 1) // 2 if spec.has_full_covariance else k
    values = _central(measure, spec, exponent, k, k, at)
    return np.maximum(values, 0.0)  # rounded weights may leave -1e-10 for 0


def _central(
    measure: WideArray, spec: SketchSpec, exponent: int, i: IntArray, j: IntArray, at: IntArray
) -> FloatArray:
    """Covariances of columns i and j, whose products stand ``at``.

    With W the weight, s the sums, p the products: (W p - s s^T 2**shift) / W^2 in integers,
    so that nothing cancels however far the data lies from the center.
    """
    d, weight = spec.n_features, measure[0]
    if weight == 0:
        return np.full(len(i), np.nan)
    sums, products = measure[1 : 1 + d], measure[1 + 2 * d :]
    shift = BITS - exponent  # W counts 2**shift a row, s and p count 1
    square, denominator = 2**shift, weight * weight
    values = np.array(
        [
            (weight * products[n] - sums[a] * sums[b] * square) / denominator
            for a, b, n in zip(i, j, at, strict=True)
        ]
    )
    factor = (spec.moment_unit * 2.0**-MOMENT_BITS) ** 2 * 2.0**shift
    return values * factor * spec.scale_vector[i] * spec.scale_vector[j]
