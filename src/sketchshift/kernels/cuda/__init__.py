"""The kernel for NVIDIA GPUs: sums there, all else on the processor. Needs CuPy.

Here are the CUDA source, and what it is compiled with.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from sketchshift._typing import Float32Array
from sketchshift.kernels.contract import COSINE, SINE

__all__ = ["SOURCE", "definitions", "kernel_of"]

SOURCE = Path(__file__).with_name("sums.cu")


def definitions(real: str) -> dict[str, str]:
    """Macros of the source: the precision, and the polynomials to the last bit."""
    return {"REAL": real, "COSINE": _literals(COSINE), "SINE": _literals(SINE)}


def _literals(coefficients: Float32Array) -> str:
    return "{" + ",".join(f"{float(c).hex()}f" for c in coefficients) + "}"


@cache
def kernel_of(name: str, real: str, sizes: tuple[tuple[str, int], ...] = ()) -> Any:
    """A function of the source, compiled for this GPU; CuPy keeps it on disk."""
    import cupy

    macros = definitions(real) | {size: str(value) for size, value in sizes}
    options = ("-std=c++17", "--fmad=false", *(f"-D{key}={text}" for key, text in macros.items()))
    module = cupy.RawModule(code=SOURCE.read_text(encoding="utf-8"), options=options)
    return module.get_function(name)
