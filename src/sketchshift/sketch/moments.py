"""Mean and covariance from the exact integers of a measure, in the units of the data."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import FloatArray
from sketchshift.features import SketchSpec
from sketchshift.kernels import BITS, LIMB_BITS, MOMENT_BITS
from sketchshift.sketch.totals import WideArray

__all__ = ["covariance_of", "mean_of"]


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
    """Covariance in the units of the data; NaN where it is not kept or nothing has weight.

    With W the weight, s the sums, p the products: (W p - s s^T 2**shift) / W^2 in integers,
    so that nothing cancels however far the data lies from the center.
    """
    d = spec.n_features
    weight, sums, products = measure[0], measure[1 : 1 + d], measure[1 + 2 * d :]
    covariance = np.full((d, d), np.nan)
    if weight == 0:
        return covariance
    shift = BITS - exponent  # W counts 2**shift a row, s and p count 1
    i, j = np.triu_indices(d) if spec.has_full_covariance else (np.arange(d), np.arange(d))
    denominator = weight * weight
    values = np.array(
        [
            (weight * products[n] - sums[a] * sums[b] * 2**shift) / denominator
            for n, (a, b) in enumerate(zip(i, j, strict=True))
        ]
    )
    factor = (spec.moment_unit * 2.0**-MOMENT_BITS) ** 2 * 2.0**shift
    covariance[i, j] = covariance[j, i] = values * factor
    diagonal = np.einsum("ii->i", covariance)
    np.maximum(diagonal, 0.0, out=diagonal)  # rounded weights may leave -1e-10 for 0
    return covariance * np.outer(spec.scale_vector, spec.scale_vector)
