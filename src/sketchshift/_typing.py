"""Names of the array types that cross module borders."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BoolArray",
    "ComplexArray",
    "Digits",
    "Float32Array",
    "FloatArray",
    "IntArray",
    "RealArray",
]

BoolArray: TypeAlias = NDArray[np.bool_]
ComplexArray: TypeAlias = NDArray[np.complex128]
Digits: TypeAlias = NDArray[np.int32]  # of integers: see sketch/digits.py
Float32Array: TypeAlias = NDArray[np.float32]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
RealArray: TypeAlias = NDArray[Any]  # any real dtype: float16 to float64, integers, bool
