"""How work is laid out on a GPU."""

from __future__ import annotations

from typing import Any

import cupy

__all__ = ["THREADS", "blocks_down", "own_stream"]

THREADS = 256
"""Of every block, here and in the source."""

BLOCKS = 16  # for each multiprocessor: enough to keep it busy


def own_stream() -> Any:
    """The stream of this thread: threads need not wait for each other."""
    return cupy.cuda.Stream.ptds


def blocks_down(across: int, n_rows: int, at_a_time: int) -> int:
    """How many blocks share the rows, so that with those across they fill the GPU."""
    processors: int = cupy.cuda.Device().attributes["MultiProcessorCount"]
    return max(1, min(-(-n_rows // at_a_time), -(-BLOCKS * processors // across), 65535))
