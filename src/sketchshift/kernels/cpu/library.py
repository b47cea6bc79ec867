"""The compiled library: its functions for the widest vectors of this machine.

The sources are in ``native/``. One shared library holds a variant for each instruction set; all
give the same integers. ``SKETCHSHIFT_SIMD`` names one of them (``avx2``, ``plain``, ...) instead
of the widest. A call releases the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FILE", "Variant", "aligned_copy", "aligned_zeros", "load_variant", "variants"]

SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
FILE = Path(__file__).with_name("kernels.native" + SUFFIX)  # a name that is no module of Python
CHOICE = "SKETCHSHIFT_SIMD"
TABLE_VERSION = 5  # of native/table.h
REMEDY = "Install sketchshift again, which brings them"

_Array, _Size, _Real, _Flag = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_int32
_DENSE = (None, *[_Array] * 4, _Size, _Size, _Array, _Size, _Array)
_STRUCTURED = (None, *[_Array] * 4, *[_Size] * 2, *[_Array] * 2, *[_Size] * 3, _Array)
_NORMALISE = (None, _Array, _Size, _Size, *[_Array] * 4)
_PROBLEM = (*[_Array] * 3, _Size, _Size)
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "dense_32": _DENSE,
    "dense_64": _DENSE,
    "structured_32": _STRUCTURED,
    "structured_64": _STRUCTURED,
    "normalise_32": _NORMALISE,
    "normalise_64": _NORMALISE,
    "moments": (None, *[_Array] * 5, _Size, _Size, _Real, _Flag, _Array),
    "distances": (None, _Array, _Size, _Size, _Array, _Size, _Array),
    "nearest": (None, _Array, _Size, _Size, *[_Array] * 3, _Size, _Array, _Size, *[_Array] * 2),
    "add_cells": (None, *[_Array] * 5, _Size, _Size, _Array, _Real, _Real, _Array),
    "add_wide_cells": (
        *(None, *[_Array] * 5, _Size, _Size, *[_Array] * 3, _Size, _Real, _Real, _Array),
    ),
    "project": (None, _Array, _Size, _Size, _Array, _Size, _Array),
    "central": (None, *[_Array] * 4, *[_Size] * 5, _Array),
    "rotate": (None, *[_Array] * 3, _Size, _Size, _Array, _Array),
    "correlation": (None, _Array, _Size, _Size, _Array, _Size, *[_Array] * 3),
    "match": (_Real, *_PROBLEM, *[_Array] * 3, _Size, _Array),
    "descend": (
        *(_Real, *_PROBLEM, *[_Array] * 2, _Flag, _Real, _Array),
        *(_Size, _Real, _Size, _Real, _Real),
    ),
    "multiply_adds": (None, _Array, _Size),
}
"""Result and arguments of each, in the order of ``native/table.h``."""


class _Kernels(ctypes.Structure):
    _fields_ = [
        ("lanes", _Size),
        ("panel", _Size),
        *((name, ctypes.CFUNCTYPE(*types)) for name, types in FUNCTIONS.items()),
    ]


class _Named(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kernels", ctypes.POINTER(_Kernels))]


class Variant:
    """The functions for one instruction set; NumPy arrays stand for pointers.

    Attributes
    ----------
    name : str
        As ``SKETCHSHIFT_SIMD`` has it.
    lanes, panel : int
        Float32 numbers in a vector, frequencies in a panel.
    """

    def __init__(self, name: str, kernels: Any) -> None:
        self.name, self.lanes, self.panel = name, int(kernels.lanes), int(kernels.panel)
        self._kernels = kernels
        self._functions = {name: getattr(kernels, name) for name in FUNCTIONS}

    def call(self, name: str, *arguments: NDArray[Any] | float | None) -> Any:
        """Call a function of ``native/table.h``; arrays must be in C order and of its dtypes."""
        return self._functions[name](
            *[_address(a) if isinstance(a, np.ndarray) else a for a in arguments]
        )


def _address(array: NDArray[Any]) -> int:
    """Where the numbers are; ``array.ctypes`` says it five times as slowly."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # read-only, or of no numbers
        return array.ctypes.data


def variants() -> dict[str, Variant]:
    """What this machine can run, the widest vectors first."""
    if not FILE.exists():
        raise ImportError(f"the compiled kernels ({FILE.name}) are not there. {REMEDY}")
    try:
        library = ctypes.CDLL(str(FILE))
    except OSError as error:  # of another kind of machine
        msg = f"the compiled kernels cannot be loaded ({error}). {REMEDY}"
        raise ImportError(msg) from error
    if not _is_table_known(library):
        raise ImportError(f"the compiled kernels are not those of this version. {REMEDY}")
    library.sketchshift_variants.restype = ctypes.POINTER(_Named)
    listed, found, i = library.sketchshift_variants(), {}, 0
    while listed[i].name is not None:
        name = listed[i].name.decode()
        found[name] = Variant(name, listed[i].kernels.contents)
        i += 1
    return found


def _is_table_known(library: ctypes.CDLL) -> bool:
    """Whether the functions of a library are those of ``FUNCTIONS``: else a call would crash."""
    try:
        described = library.sketchshift_table
    except AttributeError:  # a library of before there was this, or of somebody else
        return False
    described.restype = _Size
    return bool(described() == (TABLE_VERSION << 32) + ctypes.sizeof(_Kernels))


def load_variant() -> Variant:
    """The variant that ``SKETCHSHIFT_SIMD`` names, or the one with the widest vectors."""
    found = variants()
    wanted = os.environ.get(CHOICE, "").strip().lower() or next(iter(found))
    if wanted not in found:
        raise ImportError(f"{CHOICE}={wanted!r}, and this machine has {', '.join(found)}")
    return found[wanted]


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Zeros that start at a multiple of 64 bytes: no vector then lies across two cache lines."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    buffer = np.zeros(size + 64, dtype=np.uint8)
    start = -_address(buffer) % 64
    zeros: NDArray[Any] = buffer[start : start + size].view(dtype).reshape(shape)
    return zeros


def aligned_copy(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers, in C order, from a multiple of 64 bytes on."""
    copy = aligned_zeros(array.shape, array.dtype)
    copy[...] = array
    return copy
