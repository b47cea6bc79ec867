"""The kernel for NVIDIA GPUs: sums there, all else on the processor. Needs CuPy."""

from __future__ import annotations

__all__: list[str] = []
