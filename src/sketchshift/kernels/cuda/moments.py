"""First and second moments on a GPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import cupy
import numpy as np

from sketchshift._typing import FloatArray, IntArray
from sketchshift.kernels.contract import LIMB_BITS, MOMENT_BITS
from sketchshift.kernels.cuda.launch import THREADS, blocks_down, own_stream
from sketchshift.kernels.cuda.source import kernel_of

__all__ = ["MOST_COLUMNS", "moments"]

NUMBERS = 2048  # of rows that a block holds at a time: 16 bytes each
MOST_COLUMNS = NUMBERS


@cache
def _columns(d: int, *, full: bool) -> tuple[Any, Any]:
    """The columns of each sum, on the GPU."""
    each = np.arange(d)
    i, j = np.triu_indices(d) if full else (each, each)
    pairs = (np.concatenate([each, each, k]).astype(np.int32) for k in (i, j))
    first, second = (cupy.asarray(pair) for pair in pairs)
    return first, second


def moments(rows: FloatArray, factors: FloatArray | None, unit: float, *, full: bool) -> IntArray:
    """See :class:`~sketchshift.kernels.contract.Kernel`; for up to 2048 columns."""
    n, d = rows.shape
    first, second = _columns(d, full=full)
    n_sums, tile = len(first), max(1, NUMBERS // d)
    lanes = min(THREADS, 1 << (n_sums - 1).bit_length())
    across = -(-n_sums // lanes)
    sizes = (("TILE", tile), ("LANES", lanes), ("LIMB_BITS", LIMB_BITS))
    add = kernel_of("add_moments", "double", sizes)
    with own_stream():
        limbs = cupy.zeros((3, n_sums), dtype=np.int64)
        weights = np.uintp(0) if factors is None else cupy.asarray(factors)
        numbers = np.float64(2.0**MOMENT_BITS / unit), np.int64(n), np.int32(d), np.int32(n_sums)
        add(
            (across, blocks_down(across, n, tile)),
            (THREADS,),
            (cupy.asarray(rows), weights, first, second, *numbers, limbs),
            shared_mem=16 * tile * d,
        )
        found: IntArray = limbs.get()
    return found
