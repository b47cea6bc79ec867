"""Which kernel runs, on how many processors, and the sentence saying why not another."""

from __future__ import annotations

import os
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

AUTO = ("cpu", "reference")
"""In order of preference. A GPU is taken when asked for: it may be another's."""


@cache
def _load(name: str) -> Kernel:
    kernel: Kernel = import_module(KERNELS[name]).KERNEL
    return kernel


def select_kernel(name: str = "auto") -> Kernel:
    """The kernel of that name, or the fastest that this machine has.

    Parameters
    ----------
    name : {"auto", "cpu", "cuda", "reference"}
        ``"auto"`` takes the first of cpu and reference that can be imported. All give the same
        integers.

    Returns
    -------
    kernel : Kernel
        See :mod:`sketchshift.kernels.contract`.
    """
    if name != "auto" and name not in KERNELS:
        msg = f"there is no kernel named {name!r}. Use 'auto' or one of {', '.join(KERNELS)}."
        raise SpecError(msg)
    reasons = []
    for candidate in AUTO if name == "auto" else (name,):
        try:
            return _load(candidate)
        except ImportError as error:
            reasons.append(f"{candidate}: {error}")
    again = "Install sketchshift again, which compiles them."
    remedy = "Take kernel='auto'." if name == "cuda" else again
    raise MissingDependencyError(f"no kernel can run here ({'; '.join(reasons)}). {remedy}")


def processors() -> int:
    """Number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
