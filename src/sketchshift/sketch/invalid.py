"""Rows that cannot be sketched: the sentence that names them, or their number."""

from __future__ import annotations

import math

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, IntArray, RealArray
from sketchshift.data import Block
from sketchshift.errors import InvalidRowsError
from sketchshift.features import SketchSpec

__all__ = ["not_finite", "split_invalid"]

_SHOWN = 5


def split_invalid(
    X: RealArray,
    rows: FloatArray,
    is_valid: BoolArray,
    spec: SketchSpec,
    block: Block,
    first: int,
    columns: tuple[str, ...] | None,
    *,
    skip: bool,
) -> IntArray:
    """Indices of the valid rows, or an exception naming the others.

    Rows out of reach are always refused: leaving them out would change what the sketch
    means. Rows with NaN or infinity are left out when ``skip``.
    """
    is_finite = np.asarray(np.isfinite(X).all(axis=1))
    is_far = is_finite & ~is_valid
    offset = block.first_row + first
    if is_far.any():
        at = int(np.argmax(is_far))
        k, norm = int(np.argmax(np.abs(rows[at]))), math.hypot(*rows[at].tolist())
        msg = (
            f"row {offset + at} of {block.source} lies too far out: after normalisation its norm "
            f"is {norm:.4g}, mostly from {_name(k, columns)}, and this spec reaches "
            f"{spec.reach:.4g}. Leave the row out if it is broken; otherwise plan on a sample that "
            "has such rows, or choose center and scale nearer to the data."
        )
        raise InvalidRowsError(msg)
    if not skip:
        raise not_finite(X, is_finite, block.source, offset, columns)
    return np.flatnonzero(is_valid)


def not_finite(
    X: RealArray,
    is_finite: BoolArray,
    source: str,
    offset: int,
    columns: tuple[str, ...] | None,
) -> InvalidRowsError:
    """The exception that names the rows of X that are not finite; X[0] is row ``offset``."""
    bad = np.flatnonzero(~is_finite)
    k = int(np.argmax(~np.isfinite(X[bad[0]])))
    named = ", ".join(str(offset + i) for i in bad[:_SHOWN])
    more = (
        f" and {len(bad) - _SHOWN} more of the {len(X)} rows around it" if len(bad) > _SHOWN else ""
    )
    msg = (
        f"rows with missing or infinite values cannot be sketched: row {offset + bad[0]} of "
        f"{source} has {X[bad[0], k]} in {_name(k, columns)} (such rows: {named}{more}; the first "
        'row is 0). Clean the data, or leave such rows out with on_invalid="skip" '
        "(--on-invalid skip)."
    )
    return InvalidRowsError(msg)


def _name(k: int, columns: tuple[str, ...] | None) -> str:
    return f"column {k}" if columns is None else f"column {columns[k]!r}"
