"""Where the sums happen: arrays in, arrays out."""

from __future__ import annotations

from sketchshift.kernels.contract import (
    BITS,
    LIMB_BITS,
    MOMENT_BITS,
    MOMENT_ROWS,
    PHASE_LIMIT,
    Accumulator,
    Kernel,
    Matcher,
)
from sketchshift.kernels.select import processors, select_kernel

__all__ = [
    "BITS",
    "LIMB_BITS",
    "MOMENT_BITS",
    "MOMENT_ROWS",
    "PHASE_LIMIT",
    "Accumulator",
    "Kernel",
    "Matcher",
    "processors",
    "select_kernel",
]
