"""Where the sums happen: arrays in, arrays out."""

from __future__ import annotations

from sketchshift.kernels.contract import (
    BITS,
    CELL_BITS,
    CELL_REACH,
    CELL_ROWS,
    CELL_WEIGHT_BITS,
    LIMB_BITS,
    MOMENT_BITS,
    MOMENT_ROWS,
    PHASE_LIMIT,
    SQUARE_BITS,
    WIDE_CELL_BITS,
    Accumulator,
    CellAccumulator,
    Centers,
    Kernel,
    Matcher,
    Runs,
)
from sketchshift.kernels.select import processors, select_kernel

__all__ = [
    "BITS",
    "CELL_BITS",
    "CELL_REACH",
    "CELL_ROWS",
    "CELL_WEIGHT_BITS",
    "LIMB_BITS",
    "MOMENT_BITS",
    "MOMENT_ROWS",
    "PHASE_LIMIT",
    "SQUARE_BITS",
    "WIDE_CELL_BITS",
    "Accumulator",
    "CellAccumulator",
    "Centers",
    "Kernel",
    "Matcher",
    "Runs",
    "processors",
    "select_kernel",
]
