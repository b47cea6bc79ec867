"""Which kernel runs, on how many processors, and the sentence saying why not another."""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module

from sketchshift.errors import MissingDependencyError, SpecError
from sketchshift.kernels.contract import Kernel

__all__ = ["KERNELS", "processors", "select_kernel"]

KERNELS = {
    "cpu": "sketchshift.kernels.cpu",
    "cuda": "sketchshift.kernels.cuda.kernel",
    "reference": "sketchshift.kernels.reference",
}
"""Names, each with the module whose ``KERNEL`` it is."""


@cache
def _load(name: str) -> Kernel:
    kernel: Kernel = import_module(KERNELS[name]).KERNEL
    return kernel


@cache
def _load_fastest() -> Kernel:
    """A GPU is taken when asked for: it may be another's."""
    try:
        return _load("cpu")
    except ImportError as error:
        msg = f"NumPy does the sums, about 1,000 times as slowly, with the same bytes: {error}."
        warnings.warn(msg, RuntimeWarning, stacklevel=3)
        return _load("reference")


def select_kernel(name: str = "auto") -> Kernel:
    """The kernel of that name, or the fastest that this machine has.

    Parameters
    ----------
    name : {"auto", "cpu", "cuda", "reference"}
        ``"auto"`` takes cpu, or reference with a warning where that is not compiled. All give the
        same integers.

    Returns
    -------
    kernel : Kernel
        See :mod:`sketchshift.kernels.contract`.
    """
    if name != "auto" and name not in KERNELS:
        msg = f"there is no kernel named {name!r}. Use 'auto' or one of {', '.join(KERNELS)}."
        raise SpecError(msg)
    if name == "auto":
        return _load_fastest()
    try:
        return _load(name)
    except ImportError as error:
        msg = f"kernel={name!r} cannot run here: {error}. Or take kernel='auto'."
        raise MissingDependencyError(msg) from error


def processors() -> int:
    """Number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
