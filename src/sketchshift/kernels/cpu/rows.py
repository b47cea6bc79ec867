"""What is done once a row: normalisation and norms, in float64."""

from __future__ import annotations

import numpy as np

from sketchshift._typing import FloatArray, RealArray
from sketchshift.kernels.cpu import simd

__all__ = ["normalise"]


@simd.jit
def normalise(
    X: RealArray,  # IN  (n, d), float32 or float64
    center: FloatArray,  # IN  (d,)
    per_unit: FloatArray,  # IN  (d,)
    rows: FloatArray,  # OUT  (n, d)
    squared_norms: FloatArray,  # OUT  (n,)
) -> None:
    """Fill in x' = (x - center) per_unit and the sum of squares in the order of the columns."""
    n, d = X.shape
    for i in range(n):
        for k in range(d):
            rows[i, k] = (np.float64(X[i, k]) - center[k]) * per_unit[k]
    last = n - n % 4
    for i in range(0, last, 4):  # four chains of additions at a time hide their latency
        s0 = s1 = s2 = s3 = 0.0
        for k in range(d):
            s0 += rows[i, k] * rows[i, k]
            s1 += rows[i + 1, k] * rows[i + 1, k]
            s2 += rows[i + 2, k] * rows[i + 2, k]
            s3 += rows[i + 3, k] * rows[i + 3, k]
        squared_norms[i : i + 4] = (s0, s1, s2, s3)
    for i in range(last, n):
        total = 0.0
        for k in range(d):
            total += rows[i, k] * rows[i, k]
        squared_norms[i] = total
