"""Rows in normalised coordinates, on a GPU."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from sketchshift._typing import FloatArray, RealArray
from sketchshift.kernels.cuda.launch import THREADS, own_stream
from sketchshift.kernels.cuda.source import kernel_of

__all__ = ["normalise"]


def normalise(
    X: RealArray, center: FloatArray, per_unit: FloatArray, rows: Any, squared_norms: Any
) -> None:
    """See :class:`~sketchshift.kernels.contract.Kernel`; what is OUT lies on the GPU.

    The stream of this thread is taken for all that the thread does with them later.
    """
    own_stream().use()
    n, d = X.shape
    add = kernel_of("normalise", "float" if X.dtype == np.float32 else "double")
    arguments = (cupy.asarray(X), cupy.asarray(center), cupy.asarray(per_unit))
    add(
        (-(-n // THREADS),),
        (THREADS,),
        (*arguments, np.int64(n), np.int32(d), rows, squared_norms),
    )
