"""Checks of parameters, with one sentence for all of them.

"The 'bandwidth' parameter of SketchSpec must be a positive number. Got -1 instead."
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sketchshift._text import listed
from sketchshift.errors import Parameter, SpecError

__all__ = [
    "check_choice",
    "check_flag",
    "check_integer",
    "check_names",
    "check_number",
    "frozen",
    "is_short_float",
    "parameter_error",
    "read_fields",
    "told_progress",
    "unmasked",
    "widen",
]


def parameter_error(caller: str, name: str, must: str, value: Any) -> SpecError:
    """The exception for a parameter that is not what it must be."""
    shown = reprlib.repr(value)
    return SpecError(Parameter(caller, name), f" must be {must}. Got {shown} instead.")


def told_progress(
    caller: str, progress: Any, kind: str, label: str
) -> AbstractContextManager[Callable[..., None] | None]:
    """Whom to tell of progress: the function given, nobody, or, for True, a bar.

    Parameters
    ----------
    caller : str
        For messages.
    progress : callable, bool or None
        As the caller got it.
    kind, label : str
        What is counted, "rows" or "fits", and what is being done: for the bar.

    Returns
    -------
    context : context manager
        Yields what to call with each step, or None. The bar is gone when the body ends.
    """
    if progress is None or progress is False or callable(progress):
        return nullcontext(progress or None)
    check_flag(caller, "progress", progress)
    from sketchshift._progress import show_progress  # rich takes a while to import

    return show_progress(kind, label)


def check_integer(caller: str, name: str, value: Any, low: int, high: int) -> int:
    """An integer in [low, high]; NumPy integers are welcome, booleans are not."""
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_integer or not low <= int(value) <= high:
        raise parameter_error(caller, name, f"an integer from {low} to {high}", value)
    return int(value)


def check_number(
    caller: str, name: str, value: Any, *, low: float = -math.inf, high: float = math.inf
) -> float:
    """A finite number in [low, high]."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        number = _to_float(value)
    if not math.isfinite(number) or not low <= number <= high:
        limits = "" if math.isinf(low) and math.isinf(high) else f" from {low:g} to {high:g}"
        raise parameter_error(caller, name, f"a finite number{limits}", value)
    return number + 0.0  # -0.0, equal to 0.0, is written as it


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return math.inf


def check_choice(caller: str, name: str, value: Any, choices: Iterable[str]) -> str:
    """One of a few words."""
    words = list(choices)
    if not isinstance(value, str) or value not in words:
        raise parameter_error(caller, name, f"one of {', '.join(map(repr, words))}", value)
    return str(value)


def check_flag(caller: str, name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise parameter_error(caller, name, "True or False", value)
    return value


def check_names(caller: str, name: str, value: Any, length: int) -> tuple[str, ...]:
    """Distinct strings, as many as there are columns."""
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    names = tuple(value) if is_list else ()
    are_names = all(isinstance(name, str) for name in names)
    if not are_names or len(names) != length or len(set(names)) != length:
        raise parameter_error(caller, name, f"{length} different column names", value)
    return tuple(str(name) for name in names)


def unmasked(values: Any) -> Any:
    """The same values, NaN where they are masked: ``np.asarray`` would show what lies below.

    Parameters
    ----------
    values : anything
        Rows of a list may be masked arrays, too.

    Returns
    -------
    values : as given, or array of floats
        As given where nothing is a masked array.
    """
    if isinstance(values, list | tuple):
        if not any(isinstance(row, np.ma.MaskedArray) and row.ndim for row in values):
            return values
        values = np.ma.array(values)
    if not isinstance(values, np.ma.MaskedArray) or values.dtype.kind not in "biuf":
        return values
    is_float = values.dtype.kind == "f"
    return np.ma.filled(values if is_float else values.astype(np.float64), np.nan)


A = TypeVar("A", bound=NDArray[Any])


def frozen(array: A) -> A:
    """The array, which cannot be written to any more: those who are equal share it."""
    array.flags.writeable = False
    return array


def is_short_float(dtype: np.dtype[Any]) -> bool:
    """Whether another library's numbers are all float32, too: those of ml_dtypes, as JAX has."""
    return dtype.kind == "V" and bool(np.can_cast(dtype, np.float32, "safe"))


def widen(values: Any) -> Any:
    """Numbers such as bfloat16, which NumPy does not know itself, as float32; others as given."""
    return values.astype(np.float32) if is_short_float(values.dtype) else values


def read_fields(cls: type, content: Any, *, besides: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the fields of a dataclass in a JSON object; others, and missing ones, are refused.

    Parameters
    ----------
    cls : type
        The dataclass; fields without a default must be there.
    content : anything
        What JSON gave.
    besides : tuple of str
        Fields of the class that come from elsewhere.
    """
    fields = [field for field in dataclasses.fields(cls) if field.name not in besides]
    names = {field.name for field in fields}
    needed = {field.name for field in fields if field.default is dataclasses.MISSING}
    if not isinstance(content, Mapping):
        kind = type(content).__name__
        raise SpecError(f"the part {cls.__name__} of a sketch spec must be an object. Got {kind}.")
    unknown, missing = sorted(set(content) - names), sorted(needed - set(content))
    if unknown or missing:
        facts = [f"unknown: {listed(unknown)}"] * bool(unknown)
        facts += [f"missing: {listed(missing)}"] * bool(missing)
        msg = f"this is not a sketch spec: of the part {cls.__name__}, {'; '.join(facts)}."
        raise SpecError(msg)
    return dict(content)
