"""Checks of the parameters of a spec that are more than one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sketchshift._validation import check_number, parameter_error

__all__ = ["CALLER", "check_bandwidth", "check_scale", "check_vector"]

CALLER = "SketchSpec"


def _is_list(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def check_bandwidth(value: Any) -> float | tuple[float, float]:
    """One positive number, or a pair with the lower end first."""

    def check(number: Any) -> float:
        return check_number(CALLER, "bandwidth", number, low=1e-20, high=1e20)  # float32 turns

    if not _is_list(value):
        return check(value)
    if len(value) != 2:
        raise parameter_error(CALLER, "bandwidth", "a number or a pair (low, high)", value)
    low, high = check(value[0]), check(value[1])
    if not low < high:
        raise parameter_error(CALLER, "bandwidth", "a pair (low, high) with low < high", value)
    return low, high


def check_vector(name: str, value: Any, d: int) -> tuple[float, ...] | None:
    """As many finite numbers as there are columns, or None."""
    if value is None:
        return None
    if not _is_list(value) or len(value) != d:
        raise parameter_error(CALLER, name, f"{d} numbers, one a column, or None", value)
    checked = (check_number(CALLER, name, number, low=-1e150, high=1e150) for number in value)
    return tuple(number + 0.0 for number in checked)  # -0.0, equal to 0.0, is written as it


def check_scale(value: Any, d: int) -> float | tuple[float, ...] | None:
    """One positive number, one a column, or None."""
    if value is None or _is_list(value):
        numbers = check_vector("scale", value, d)
        positive = [check_number(CALLER, "scale", n, low=1e-150, high=1e150) for n in numbers or ()]
        return tuple(positive) if numbers is not None else None
    return check_number(CALLER, "scale", value, low=1e-150, high=1e150)
