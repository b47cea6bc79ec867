"""Rows that cannot be sketched: the sentence that names them, or their number."""

from __future__ import annotations

import math

import numpy as np

from sketchshift._typing import BoolArray, FloatArray, IntArray
from sketchshift.data import Block
from sketchshift.errors import InvalidRowsError
from sketchshift.features import SketchSpec

__all__ = ["not_finite", "split_invalid"]

_SHOWN = 5


def split_invalid(
    block: Block,
    rows: FloatArray,
    is_valid: BoolArray,
    spec: SketchSpec,
    columns: tuple[str, ...] | None,
    *,
    skip: bool,
) -> IntArray:
    """Indices of the valid rows, or an exception naming the others.

    Rows out of reach are always refused: leaving them out would change what the sketch
    means. Rows with NaN or infinity, be it their weight, are left out when ``skip``.
    """
    is_finite = np.asarray(np.isfinite(block.values).all(axis=1))
    if block.weights is not None:
        is_finite &= np.isfinite(block.weights)
    is_far = is_finite & ~is_valid
    if is_far.any():
        at = int(np.argmax(is_far))
        k, norm = int(np.argmax(np.abs(rows[at]))), math.hypot(*rows[at].tolist())
        msg = (
            f"row {block.first_row + at} of {block.source} lies too far out: after "
            f"normalisation its norm is {norm:.4g}, mostly from {_name(k, columns)}, and this spec "
            f"reaches {spec.reach:.4g}. Leave the row out if it is broken; otherwise plan on a "
            "sample that has such rows, or choose center and scale nearer to the data."
        )
        raise InvalidRowsError(msg)
    if not skip:
        raise not_finite(block, is_finite, columns)
    return np.flatnonzero(is_valid)


def not_finite(
    block: Block, is_finite: BoolArray, columns: tuple[str, ...] | None
) -> InvalidRowsError:
    """The exception that names the rows of a block that are not finite."""
    bad, offset = np.flatnonzero(~is_finite), block.first_row
    named = ", ".join(str(offset + i) for i in bad[:_SHOWN])
    more = (
        f" and {len(bad) - _SHOWN} more of the {len(is_finite)} rows around it"
        if len(bad) > _SHOWN
        else ""
    )
    msg = (
        f"rows with missing or infinite values cannot be sketched: row {offset + bad[0]} of "
        f"{block.source} has {_fault(block, bad[0], columns)} (such rows: {named}{more}; the first "
        'row is 0). Clean the data, or leave such rows out with on_invalid="skip" '
        "(--on-invalid skip)."
    )
    return InvalidRowsError(msg)


def _fault(block: Block, row: int, columns: tuple[str, ...] | None) -> str:
    is_bad = ~np.isfinite(block.values[row])
    if block.weights is not None and not is_bad.any():
        return f"weight {block.weights[row]}"
    k = int(np.argmax(is_bad))
    return f"{block.values[row, k]} in {_name(k, columns)}"


def _name(k: int, columns: tuple[str, ...] | None) -> str:
    return f"column {k}" if columns is None else f"column {columns[k]!r}"
