"""Arrow's decimals as the floats nearest to them.

Arrow's own cast rounds more than once: of six digits, every third number comes out one unit of
the last place off, and is then not the number that the same digits in a text file are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sketchshift._typing import BoolArray, FloatArray, IntArray

__all__ = ["floats_of"]

LARGEST_WHOLE = 2**53  # float64 holds every whole number up to it
LARGEST_POWER = 22  # and every power of ten up to 10**22


def floats_of(column: Any) -> FloatArray:
    """Decimals as ``float(decimal.Decimal)`` gives them, in float64; nulls become NaN.

    Parameters
    ----------
    column : Arrow array or chunked array
        Of any decimal type.

    Returns
    -------
    values : array of shape (n,)
        Digits and powers of ten that are floats themselves make one division, which is rounded
        once; others go through text, which takes some ten times longer.
    """
    if isinstance(column, pa.ChunkedArray):
        return np.concatenate([floats_of(chunk) for chunk in column.chunks] or [np.empty(0)])
    if len(column) == column.null_count:
        return np.full(len(column), np.nan)
    digits, is_short = _digits(column)
    scale = column.type.scale
    is_short &= abs(scale) <= LARGEST_POWER
    power = 10.0 ** min(abs(scale), LARGEST_POWER)
    values: FloatArray = digits / power if scale >= 0 else digits * power
    if column.null_count:
        is_missing = column.is_null().to_numpy(zero_copy_only=False)
        values[is_missing], is_short = np.nan, is_short | is_missing
    if not is_short.all():
        rest = column.filter(pa.array(~is_short))
        values[~is_short] = rest.cast(pa.string()).cast(pa.float64()).to_numpy()
    return values


def _digits(column: Any) -> tuple[IntArray, BoolArray]:
    """The whole numbers behind the decimals, and which of them float64 holds as they are."""
    width = column.type.bit_width
    kind: type[np.int32 | np.int64] = np.int32 if width == 32 else np.int64
    words = np.frombuffer(column.buffers()[1], kind).reshape(-1, max(1, width // 64))
    words = words[column.offset : column.offset + len(column)]
    lowest = words[:, 0].astype(np.int64, copy=False)
    is_short = (lowest <= LARGEST_WHOLE) & (lowest >= -LARGEST_WHOLE)
    for higher in words[:, 1:].T:  # of small numbers, they repeat the sign
        is_short &= higher == lowest >> 63
    return lowest, is_short
